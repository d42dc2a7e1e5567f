"""Who ended a program, by messages of its host as they were really written."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from jobtui.analysis.killer import Ending, find_killer
from jobtui.formats.causes import load_kills
from jobtui.model.clock import SECOND, Nanos, time_of_parts
from jobtui.model.journal import Cursor, JournalEntry

CASES = tomllib.loads((Path(__file__).parents[1] / "fixtures/kills.toml").read_text())["case"]
END = time_of_parts(2026, 11, 20, 3, 12, 8)
_MESSAGE = re.compile(r"(?:([+-]\d+) )?([\w-]+)(?:\[(\d+)\])?: (.*)", re.DOTALL)


def entry_of(number: int, text: str, host: str) -> JournalEntry:
    found = _MESSAGE.fullmatch(text)
    assert END is not None
    assert found is not None, text
    at = Nanos(END + int(found[1] or -1) * SECOND)
    return JournalEntry(
        cursor=Cursor(str(number)), at=at, message=found[4], size=len(text), host=host, identifier=found[2],
        pid=int(found[3]) if found[3] else None,
    )  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_who_ended_it_is_said_only_by_what_names_the_job(case: dict[str, Any]) -> None:
    host = case.get("host", "v4")
    entries = [entry_of(number, text, f"{host}.example.org") for number, text in enumerate(case["messages"])]
    low, high = case.get("ahead_s", (0.0, 0.0))
    assert END is not None
    killer = find_killer(
        entries,
        Ending(END, "v4", frozenset(case.get("pids", ())), frozenset(case.get("names", ())), (low, high)),
    )
    assert killer.words == case.get("says", "")
    assert killer.confidence == case.get("sure", 0.0)
    assert len(killer.near) == case.get("near", 0)
    assert bool(killer.words) == bool(killer.tied) == (not killer.doubt)


def test_every_message_has_the_shape_it_is_a_sample_of() -> None:
    kills = load_kills()
    assert len(kills.shapes) > 40
    for shape in kills.shapes:
        found = kills.first(shape.writers[0], shape.sample)
        assert found is not None, shape.sample
        assert found[0] is shape, (shape.sample, found[0].pattern.pattern)
        assert bool(shape.says) == (shape.role in ("kill", "crash", "host", "boot"))
