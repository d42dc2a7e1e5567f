"""Every command behind `:` with every hostile text after it, on hostile jobs and from hostile views."""

import json
from pathlib import Path

import pytest
from textual.pilot import Pilot

from jobtui.app import JobtuiApp
from jobtui.model.clock import FixedClock
from jobtui.screens.command_table import COMMANDS, AppCommand
from jobtui.session import Session
from jobtui.store.store import Store
from jobtui.views import Views
from jobtui.widgets.filter_bar import CommandBar
from jobtui.widgets.filter_input import FilterInput
from tests.conftest import NOW
from tests.fakes import FakeCorrelation, ScriptedSource, batch
from tests.hostile.texts import FEW, TEXTS, cells, faults_in
from tests.hostile.widgets import jobs
from tests.waiting import wait_until
from tests.widgets.widget_app import screen_text

COLUMNS, ROWS = 90, 20


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


def check(app: JobtuiApp, what: str) -> None:
    for line in screen_text(app):
        line = line.replace("hunter2", "")  # it was typed by the user
        assert not faults_in(line), f"{what}: {line!a}"
        assert cells(line) <= COLUMNS, f"{what}: {line!a}"


async def say(pilot: Pilot[None], app: JobtuiApp, words: str) -> None:
    await wait_until(lambda: not app.screen.query(CommandBar), pilot)
    await app.screen.run_action("command")
    await wait_until(lambda: app.screen.query(FilterInput), pilot)
    app.screen.query_one(FilterInput).value = words
    await pilot.pause()
    check(app, words)
    app.screen.query_one(CommandBar).close(app.screen.query_one(FilterInput).value)
    await pilot.pause()


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
async def test_a_command_takes_it(command: AppCommand, views: Path) -> None:
    app = app_on(views)
    async with app.run_test(size=(COLUMNS, ROWS), notifications=True) as pilot:
        await wait_until(lambda: app._session.store.jobs, pilot)
        for name in FEW if command.argument else ("empty",):
            await say(pilot, app, f"{command.name} {TEXTS[name][:2_000]}")
            check(app, f"{command.name} {name}")
            for bar in app.screen.query(CommandBar):
                bar.close(None)
            if not app.is_running:
                break
            await app.run_action("go('jobs')")
            await pilot.pause()
            check(app, f"{command.name} {name}, back")


async def test_the_palette_offers_them(views: Path) -> None:
    app = app_on(views)
    async with app.run_test(size=(COLUMNS, ROWS)) as pilot:
        await wait_until(lambda: app._session.store.jobs, pilot)
        await pilot.press("ctrl+p")
        for letter in "bal":
            await pilot.press(letter)
        await wait_until(lambda: "balsam" in "\n".join(screen_text(app)), pilot)
        check(app, "the palette")
