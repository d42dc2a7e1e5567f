"""Every screen at every size, the way between them, and what is kept of one that is left."""

import gc
import weakref
from pathlib import Path

from textual.screen import Screen
from textual.widget import Widget

from jobtui.screens.jobs import JobsScreen
from jobtui.screens.logs import LogsScreen
from jobtui.screens.sources import SourcesScreen
from jobtui.widgets.filter_bar import CommandBar
from jobtui.widgets.job_table import JobTable
from jobtui.widgets.log_view import LogView
from tests.screens.captured import CAPTURED, app_on, on, until
from tests.screens.scene import prompt, read, say
from tests.waiting import wait_until
from tests.widgets.widget_app import press, screen_text, text


async def test_a_log_is_at_its_line_searched_and_filtered_as_it_was_left() -> None:
    app = app_on(CAPTURED)
    async with app.run_test(size=(100, 24)) as pilot:
        await press(pilot, "2", until="following")
        await press(pilot, "tab", until="errors 39 of 1,431 lines")
        await prompt(pilot, "slash", "Traceback")
        await press(pilot, "enter", until="/Traceback")
        await press(pilot, "N", "N", "ampersand", until="&Traceback")
        view = app.screen.query_one(LogView)
        await wait_until(lambda: view.place is not None, pilot)
        place, seen = view.place, screen_text(app)[2:]
        await pilot.press("6", "1", "2")
        await on(app, pilot, LogsScreen)
        await until(app, pilot, "&Traceback")
        assert (view.place, screen_text(app)[2:]) == (place, seen)


async def test_behind_the_colon_of_a_log_are_lines_and_all_commands(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("".join(f"line {number}\n" for number in range(1, 501)))
    app = app_on([log])
    async with app.run_test(size=(80, 24)) as pilot:
        await press(pilot, "2", until="line 500")
        await say(pilot, "12")
        await until(app, pilot, "line 12", "line 9")
        await say(pilot, "1,000")
        await until(app, pilot, "line 500")
        await prompt(pilot, "colon", "soruces")
        await press(pilot, "enter", until="did you mean sources?")
        await pilot.press("escape")
        await say(pilot, "sources")
        await on(app, pilot, SourcesScreen)


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
        kept, typed_in = weakref.WeakSet[object](), weakref.WeakSet[object]()
        for _ in range(3):
            await press(pilot, "colon", until=lambda: any(map(is_drawn, scene.app.screen.query(CommandBar))))
            kept.update(bar._styles_cache for bar in scene.app.screen.query(CommandBar))
            typed_in.add(scene.app.focused)
            await press(pilot, "escape", until=lambda: not scene.app.screen.query(CommandBar))
        gc.collect()
        assert len(kept) == 3, "textual lets go of them by itself now: app._give_back need not"
        scene.app._give_back()
        gc.collect()
        assert len(kept) <= 1  # the screen knows the children it had last
        assert len(typed_in) <= 1


async def test_no_way_around_makes_the_stack_grow() -> None:
    async with read() as (scene, pilot):
        await pilot.press(*"26262626")
        await wait_until(lambda: len(scene.app.screen_stack) <= 3, pilot)
        await press(pilot, "1", until=lambda: len(scene.app.screen_stack) == 1)
