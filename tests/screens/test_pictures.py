"""Every screen in windows from very large to a single cell: it fits, can be left, and looks as it did.

In four sizes it is compared with what is kept, in our colours and in the terminal's own. After a wanted
change run with `--snapshot-update`, and look at what changed. `scripts/screenshots` makes pictures.
"""

from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion
from textual.pilot import Pilot

from jobtui.app import JobtuiApp
from jobtui.theme import ANSI, DARK
from tests.screens.pictures import Picture, TextFile, document
from tests.screens.tour import STOPS, Stop, at_stop, settled
from tests.widgets.widget_app import press, screen_text

KEPT = [(120, 40), (80, 24), (40, 10), (60, 1)]
SIZES = [*KEPT, (200, 60), (69, 20), (40, 3), (20, 5), (3, 1), (1, 1)]


@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: stop.name)
async def test_screen(stop: Stop, snapshot: SnapshotAssertion) -> None:
    pictures: dict[tuple[int, int], dict[str, Picture]] = {size: {} for size in KEPT}
    colours = [DARK.name, ANSI.name]
    async with at_stop(stop, SIZES[0], theme=DARK.name) as (app, pilot):
        for size in SIZES:
            await pilot.resize_terminal(*size)
            await settled(app, pilot)
            check_fits(app, size)
            for name in sorted(colours, key=lambda name: name != app.theme) if size in KEPT else ():
                app.theme = name
                await settled(app, pilot)
                pictures[size][name] = Picture(app)
        await leave(stop, app, pilot)
    for (columns, lines), found in pictures.items():
        assert found[DARK.name].text == found[ANSI.name].text, "the words depend on the colours"
        shown = document({name: found[name] for name in colours})
        assert shown == snapshot(name=f"{columns}x{lines}", extension_class=TextFile)


def check_fits(app: JobtuiApp, size: tuple[int, int]) -> None:
    lines = screen_text(app)
    assert len(lines) == size[1]
    assert all(len(line) <= size[0] for line in lines)
    assert not app.screen.show_vertical_scrollbar
    assert not app.screen.show_horizontal_scrollbar


async def leave(stop: Stop, app: JobtuiApp, pilot: Pilot[Any]) -> None:
    if stop.name in {"palette", "commander", "filter"}:
        await pilot.press("escape", "escape")
    await press(pilot, "q", until=lambda: app._exit)
