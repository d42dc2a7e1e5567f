"""What is no longer seen drops the memory it took."""

import gc
import weakref

from textual.screen import Screen
from textual.widget import Widget

from jobtui.screens.jobs import JobsScreen
from jobtui.screens.sources import SourcesScreen
from jobtui.widgets.filter_bar import CommandBar
from jobtui.widgets.job_table import JobTable
from tests.screens.scene import read
from tests.waiting import wait_until
from tests.widgets.widget_app import press, screen_text, text


def drawn(screen: Screen[object]) -> int:
    return sum(len(widget._styles_cache._cache) for widget in screen.walk_children(Widget))


def is_drawn(widget: Widget) -> bool:
    return bool(widget._styles_cache._cache)


async def test_a_screen_behind_another_keeps_nothing_drawn_and_is_drawn_anew() -> None:
    async with read() as (scene, pilot):
        jobs = scene.app.screen
        await wait_until(lambda: drawn(jobs) > 30 and " sure" in text(scene.app), pilot)
        before = screen_text(scene.app)
        await press(pilot, "6", until=SourcesScreen)
        await wait_until(lambda: drawn(jobs) == 0, pilot)
        await wait_until(lambda: drawn(scene.app.screen) > 30, pilot)
        await press(pilot, "1", until=JobsScreen)
        await wait_until(lambda: drawn(jobs) > 30, pilot)
        assert screen_text(scene.app) == before
        assert jobs.query_one(JobTable).is_attached


async def test_what_was_closed_is_let_go_of() -> None:
    async with read() as (scene, pilot):
        kept: weakref.WeakSet[object] = weakref.WeakSet()
        for _ in range(3):
            await press(pilot, "colon", until=lambda: any(map(is_drawn, scene.app.screen.query(CommandBar))))
            kept.update(bar._styles_cache for bar in scene.app.screen.query(CommandBar))
            await press(pilot, "escape", until=lambda: not scene.app.screen.query(CommandBar))
        gc.collect()
        assert len(kept) == 3, "textual lets go of them by itself now: app._give_back need not"
        scene.app._give_back()
        gc.collect()
        assert len(kept) <= 1  # the screen knows the children it had last
