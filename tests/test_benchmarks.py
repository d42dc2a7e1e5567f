"""Measuring and the endurance run: their verdicts, meters and checks, and in small what the run does."""

import pytest

from benchmarks.painted import CLIPBOARD, Painted
from benchmarks.tour import LEAVING, is_known, sent_for, tour, way_to
from jobtui.actions import ACTIONS, actions_at
from jobtui.actions import ScreenName as Screen


def painted(*parts: bytes, columns: int = 12, rows: int = 3) -> Painted:
    screen = Painted(columns, rows)
    for part in parts:
        screen.feed(part)
    return screen


STRAYS = ("\x07", "\x00", "\x9b", "\x1b]0;title\x07", "\x1bPq\x1b\\", "\x1b[5n", "\x1b[?9999h", "\x1bc")


def test_an_unexpected_terminal_sequence_is_found() -> None:
    assert [one for one in (*STRAYS, "\x1b[99;99Hx") if not painted(f"ok {one} ok".encode()).strays] == []
    copied = painted(f"{CLIPBOARD}aGk=\x07".encode())
    assert (len(copied.copied), copied.strays) == (1, [])


def test_the_tour_presses_every_key_but_those_that_leave() -> None:
    assert [screen for screen in Screen if not is_known(screen)] == []
    legs = list(tour("EPRSqtUW"))
    for screen in Screen:
        wanted = {sent_for(key) for one in actions_at(screen) if one.call not in LEAVING for key in one.keys}
        assert {leg.typed[0] for leg in legs if leg.screen is screen} == wanted
    assert any("EPRSqtUW" in words for leg in legs for words in leg.way)
    assert {action.call for action in ACTIONS} >= LEAVING
    with pytest.raises(KeyError):
        way_to("nowhere")  # type: ignore[arg-type]
