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


@pytest.mark.parametrize("size", SIZES, ids=lambda size: "x".join(map(str, size)))
@pytest.mark.parametrize("stop", STOPS, ids=lambda stop: stop.name)
async def test_screen(stop: Stop, size: tuple[int, int], snapshot: SnapshotAssertion) -> None:
    pictures = {}
    async with at_stop(stop, size) as (app, pilot):
        pictures[DARK.name] = Picture(app)
        if stop.name != "palette":  # Textual's own list keeps colours for which it was drawn
            app.theme = ANSI.name
            await settled(app, pilot)
            pictures[ANSI.name] = Picture(app)
    if not pictures.get(ANSI.name):
        async with at_stop(stop, size, theme=ANSI.name) as (app, _):
            pictures[ANSI.name] = Picture(app)
    texts = [picture.text for picture in pictures.values()]
    assert texts[0] == texts[1], "the words depend on the colours"
    assert document(pictures) == snapshot(extension_class=TextFile)
