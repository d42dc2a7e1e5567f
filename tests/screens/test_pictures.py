"""Every screen as it looks, in three sizes, in our colours and in the terminal's own.

After a wanted change run with `--snapshot-update`, and look at what changed. `scripts/screenshots` makes
pictures of the same screens.
"""

import pytest
from syrupy.assertion import SnapshotAssertion

from jobtui.theme import ANSI, DARK
from tests.screens.pictures import Picture, TextFile, document
from tests.screens.tour import STOPS, Stop, at_stop, settled

SIZES = [(120, 40), (80, 24), (40, 10)]


@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: stop.name)
async def test_screen(stop: Stop, snapshot: SnapshotAssertion) -> None:
    pictures: dict[tuple[int, int], dict[str, Picture]] = {size: {} for size in SIZES}
    themes = (DARK.name, ANSI.name)
    # Textual's own list keeps colours for which it was drawn
    for drawn in zip(themes, strict=True) if stop.name == "palette" else [themes]:
        async with at_stop(stop, SIZES[0], theme=drawn[0]) as (app, pilot):
            for size in SIZES:
                await pilot.resize_terminal(*size)
                for theme in drawn:
                    app.theme = theme
                    await settled(app, pilot)
                    pictures[size][theme] = Picture(app)
    for (columns, rows), both in pictures.items():
        texts = [picture.text for picture in both.values()]
        assert texts[0] == texts[1], "the words depend on the colours"
        assert document(both) == snapshot(extension_class=TextFile, name=f"{columns}x{rows}")
