"""Every screen in windows from very large to a single cell: nothing breaks, and what matters most is said."""

import pytest

from tests.screens.tour import STOPS, Stop, at_stop, settled
from tests.waiting import wait_until
from tests.widgets.widget_app import press, screen_text

SIZES = [(200, 60), (40, 10), (40, 5), (40, 3), (40, 1), (12, 2), (1, 1)]
BY_NAME = {stop.name: stop for stop in STOPS}


@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: stop.name)
async def test_every_screen_fits_and_can_be_left(stop: Stop) -> None:
    async with at_stop(stop, SIZES[0]) as (app, pilot):
        for size in SIZES:
            await pilot.resize_terminal(*size)
            await settled(app, pilot)
            lines = screen_text(app)
            assert len(lines) == size[1]
            assert all(len(line) <= size[0] for line in lines)
            assert not app.screen.show_vertical_scrollbar
            assert not app.screen.show_horizontal_scrollbar
        if stop.name in {"palette", "commander", "filter"}:
            await pilot.press("escape", "escape")
        await press(pilot, "q", until=lambda: app._exit)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("jobs", "●3 ○2 !"),
        ("job", "✗ failed"),
        ("error", "crystal3"),
        ("logs", "20:36:01"),
        ("sources", "agent.log down"),
        ("help", "On this screen"),
        ("columns", "state"),
    ],
)
async def test_in_one_line_the_most_important_is_said(name: str, words: str) -> None:
    async with at_stop(BY_NAME[name], (60, 1)) as (app, _):
        assert words in screen_text(app)[0]


async def test_where_one_is_is_said_before_how_one_came() -> None:
    stop = Stop("sources", ("6",), open_at=BY_NAME["job"].open_at)
    async with at_stop(stop, (40, 10)) as (app, pilot):
        assert screen_text(app)[0].split() == ["jobtui", "›", "sources", "21:00:00Z"]
        await pilot.resize_terminal(120, 40)
        await wait_until(
            lambda: "jobtui › EPRSqtUW…heightWeightReport › sources" in screen_text(app)[0], pilot
        )
