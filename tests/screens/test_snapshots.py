"""Pictures of every screen. After a wanted change run with `--snapshot-update`, and look at them."""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import pytest
from textual.app import App
from textual.pilot import Pilot

from jobtui.model.ids import JobId
from tests.screens.scene import FAILED, Scene
from tests.waiting import wait_until
from tests.widgets.stage import screen_text

SIZES = [(120, 40), (80, 24), (40, 10)]


class SnapCompare(Protocol):
    """What pytest-textual-snapshot gives."""

    def __call__(
        self,
        app: App[Any],
        *,
        terminal_size: tuple[int, int],
        run_before: Callable[[Pilot[Any]], Awaitable[None]],
    ) -> bool: ...


@pytest.mark.parametrize("size", SIZES, ids=lambda size: "x".join(map(str, size)))
@pytest.mark.parametrize(
    ("open_at", "keys", "sign"),
    [
        (None, (), "Doubler"),
        (FAILED, (), "status error"),
        (None, ("6", "j", "j"), "agent.log"),
        (None, ("question_mark",), "All jobs"),
    ],
    ids=["jobs", "job", "sources", "help"],
)
def test_screen(
    snap_compare: SnapCompare, size: tuple[int, int], open_at: JobId | None, keys: tuple[str, ...], sign: str
) -> None:
    scene = Scene(open_at=open_at)

    async def run_before(pilot: Pilot[Any]) -> None:
        await wait_until(scene.is_read, pilot)
        await pilot.press(*keys)
        await wait_until(lambda: sign in "\n".join(screen_text(scene.app)), pilot)
        await pilot.pause()

    assert snap_compare(scene.app, terminal_size=size, run_before=run_before)
