"""Every widget, every command of the dashboard and its palette with hostile text: nothing is shown raw."""

import json
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from textual.pilot import Pilot
from textual.widget import Widget

import jobtui.screens
import jobtui.widgets
from jobtui.app import JobtuiApp
from jobtui.model.clock import FixedClock
from jobtui.screens.command_table import COMMANDS, AppCommand
from jobtui.session import Session
from jobtui.store.store import Store
from jobtui.views import Views
from jobtui.widgets.filter_bar import CommandBar, FilterBar
from jobtui.widgets.filter_input import FilterInput
from jobtui.widgets.lines import LineView
from tests.conftest import NOW
from tests.fakes import FakeCorrelation, ScriptedSource, batch
from tests.hostile.texts import FEW, SECRET, TEXTS, cells, faults_in
from tests.hostile.widgets import BASES, CASES, TraceTable, jobs
from tests.waiting import wait_until
from tests.widgets.widget_app import Stack, screen_text

COLUMNS, ROWS = [100, 9], 10


def all_widgets() -> Iterator[type[Widget]]:
    """Every widget of jobtui.widgets, and those of screens that draw lines themselves."""
    for package in (jobtui.widgets, jobtui.screens):
        kind = Widget if package is jobtui.widgets else LineView
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for found in vars(import_module(module.name)).values():
                if isinstance(found, type) and issubclass(found, kind) and found.__module__ == module.name:
                    yield found


def test_every_widget_has_a_case() -> None:
    missing = {widget.__name__ for widget in {*all_widgets()} - CASES.keys() - BASES}
    assert not missing, "a new widget needs a case in tests/hostile/widgets.py"
    assert ({*CASES} | BASES) - {TraceTable} <= {*all_widgets()}


@pytest.mark.parametrize("widget", CASES, ids=lambda widget: widget.__name__)
async def test_a_widget_takes_every_text(widget: type[Widget]) -> None:
    cases = [CASES[widget](text) for text in TEXTS.values()]
    rows = ROWS * len(cases)
    app = Stack([shown for shown, _ in cases], ROWS)
    async with app.run_test(size=(COLUMNS[0], rows)) as pilot:
        await pilot.pause()
        for _, tell in cases:
            tell()
        assert len(app.screen.query(widget)) == len(cases)
        for columns in COLUMNS:
            await pilot.resize_terminal(columns, rows)
            await pilot.pause()
            await pilot.pause()
            check(widget, columns, [strip.text for strip in app.screen._compositor.render_strips()])


def check(widget: type[Widget], columns: int, lines: list[str]) -> None:
    for number, name in enumerate(TEXTS):
        for line in lines[number * ROWS : (number + 1) * ROWS]:
            typed = issubclass(widget, FilterBar | FilterInput) and name == "secret"
            assert not faults_in(line.replace(SECRET, "") if typed else line), f"{name}: {line!a}"
            assert cells(line) == columns, f"{name}: {line!a}"


WIDE, HIGH = 90, 20


def app_on(views: Path) -> JobtuiApp:
    session = Session([], FixedClock(NOW))
    session.store = Store(FakeCorrelation(), FixedClock(NOW))
    every = [job for text in TEXTS.values() for job in jobs(text)]
    session.add(ScriptedSource([batch(*every)], name=TEXTS["everything"]))
    return JobtuiApp(session, title="jobtui", views=Views(views))


@pytest.fixture
def views(tmp_path: Path) -> Path:
    view = {"filter": TEXTS["csi"], "sort": TEXTS["osc"], "columns": list(TEXTS.values())}
    path = tmp_path / "views.json"
    path.write_text(json.dumps({"": {"start": view, **dict.fromkeys(TEXTS.values(), view)}}))
    return path


def check_screen(app: JobtuiApp, what: str) -> None:
    for line in screen_text(app):
        line = line.replace("hunter2", "")  # it was typed by the user
        assert not faults_in(line), f"{what}: {line!a}"
        assert cells(line) <= WIDE, f"{what}: {line!a}"


async def say(pilot: Pilot[None], app: JobtuiApp, words: str) -> None:
    await wait_until(lambda: not app.screen.query(CommandBar), pilot)
    await app.screen.run_action("command")
    await wait_until(lambda: app.screen.query(FilterInput), pilot)
    app.screen.query_one(FilterInput).value = words
    await pilot.pause()
    check_screen(app, words)
    app.screen.query_one(CommandBar).close(app.screen.query_one(FilterInput).value)
    await pilot.pause()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
async def test_every_command_accepts_hostile_text(command: AppCommand, views: Path) -> None:
    app = app_on(views)
    async with app.run_test(size=(WIDE, HIGH), notifications=True) as pilot:
        await wait_until(lambda: app._session.store.jobs, pilot)
        for name in FEW if command.argument else ("empty",):
            await say(pilot, app, f"{command.name} {TEXTS[name][:2_000]}")
            check_screen(app, f"{command.name} {name}")
            for bar in app.screen.query(CommandBar):
                bar.close(None)
            if not app.is_running:
                break
            await app.run_action("go('jobs')")
            await pilot.pause()
            check_screen(app, f"{command.name} {name}, back")


async def test_the_palette_offers_hostile_names_safely(views: Path) -> None:
    app = app_on(views)
    async with app.run_test(size=(WIDE, HIGH)) as pilot:
        await wait_until(lambda: app._session.store.jobs, pilot)
        await pilot.press("ctrl+p")
        for letter in "bal":
            await pilot.press(letter)
        await wait_until(lambda: "balsam" in "\n".join(screen_text(app)), pilot)
        check_screen(app, "the palette")
