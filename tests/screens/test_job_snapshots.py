"""Pictures of the tabs of the job screen. After a wanted change run with `--snapshot-update`, and look."""

from typing import Any

import pytest
from textual.pilot import Pilot

from tests.screens.scene import FAILED, Scene
from tests.screens.test_job_tabs import THREE, with_runs
from tests.screens.test_snapshots import SIZES, SnapCompare
from tests.waiting import wait_until
from tests.widgets.stage import screen_text


@pytest.mark.parametrize("size", SIZES, ids=lambda size: "x".join(map(str, size)))
@pytest.mark.parametrize(
    ("keys", "sign"),
    [(("l",), "of 1 log"), (("h",), "RUN"), (("r",), '"runs": 3'), (("h", "e"), "esc back")],
    ids=["logs", "history", "raw", "error"],
)
def test_tab(snap_compare: SnapCompare, size: tuple[int, int], keys: tuple[str, ...], sign: str) -> None:
    scene = with_runs(Scene(open_at=FAILED), *THREE)

    async def run_before(pilot: Pilot[Any]) -> None:
        await wait_until(scene.is_read, pilot)
        await wait_until(lambda: scene.db._details and "failed" in screen_text(scene.app)[0], pilot)
        await pilot.pause()
        await pilot.press(*keys)

        await wait_until(lambda: sign in "\n".join(screen_text(scene.app)), pilot)
        await pilot.pause()

    assert snap_compare(scene.app, terminal_size=size, run_before=run_before)
