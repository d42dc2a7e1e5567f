"""What is typed or pasted at once, faster than lines and screens open, as over a slow line."""

import pytest
from textual import events
from textual.command import CommandPalette
from textual.keys import _character_to_key
from textual.widgets import Input

from jobtui.screens.agents import AgentsScreen
from jobtui.screens.charts import ChartsScreen
from jobtui.screens.job import JobScreen
from jobtui.screens.jobs import JobsScreen
from jobtui.screens.logs import LogsScreen
from jobtui.screens.sources import SourcesScreen
from jobtui.screens.text import HelpScreen
from jobtui.widgets.filter_bar import CommandBar, FilterBar
from tests.screens.scene import FAILED, Scene, on_jobs
from tests.waiting import wait_until
from tests.widgets.widget_app import press

KEYS = {"\r": "enter", "\x1b": "escape", "\x10": "ctrl+p"}


def type_at_once(scene: Scene, text: str) -> None:
    for char in text:
        character = None if char in KEYS else char
        scene.app.post_message(events.Key(KEYS.get(char) or _character_to_key(char), character))


def field(scene: Scene) -> str | None:
    fields = scene.app.screen.query(Input)
    return fields.first().value if fields else None


@pytest.mark.parametrize("opening", [":", "/"])
async def test_all_that_is_typed_behind_the_key_goes_into_the_line(opening: str) -> None:
    async with on_jobs(size=(100, 24)) as (scene, pilot, _):
        for words in ("quit quit q", "EPRSqtUW-IVh7w74d qqq 12367 tpM", "j", "::", "/q", " ", "ünïcode 表 q"):
            type_at_once(scene, opening + words)
            await wait_until(lambda: field(scene) == words, pilot)  # noqa: B023
            assert isinstance(scene.app.screen, JobsScreen)
            assert scene.app.is_running
            await press(pilot, "escape", until=lambda: field(scene) is None)


@pytest.mark.parametrize(
    ("typed", "held", "screen"),
    [
        ("2:qsq1x", "qsq1x", LogsScreen),
        ("3/qsq1x", "qsq1x", AgentsScreen),
        ("3:qsq1x", "qsq1x", AgentsScreen),
        ("4/qsq1x", "qsq1x", ChartsScreen),
        ("?:qsq1x", "qsq1x", HelpScreen),
        (":nothing such\rqq", "nothing suchqq", JobsScreen),
        ("\x10qsource", "qsource", CommandPalette),
        (f":{FAILED}\r:so", "so", JobScreen),
        (f"6\x1b1/{FAILED}\r:qq", "qq", JobScreen),
    ],
)
async def test_what_opens_a_line_hands_it_the_keys_that_follow(typed: str, held: str, screen: type) -> None:
    async with on_jobs(size=(100, 24)) as (scene, pilot, _):
        type_at_once(scene, typed)
        await wait_until(lambda: field(scene) == held, pilot)
        assert isinstance(scene.app.screen, screen)


async def test_a_line_is_closed_and_the_next_opened_in_one_go() -> None:
    async with on_jobs(size=(100, 24)) as (scene, pilot, table):
        type_at_once(scene, "/status:failed q\r/\x1b:filter status:failed\r:sources\r:agents\r:jobs\r:sou")
        await wait_until(lambda: field(scene) == "sou", pilot)
        assert isinstance(scene.app.screen, JobsScreen)
        assert table.count == 1
        type_at_once(scene, "rces\r6jk1:save\x1b:sources\r")
        await wait_until(lambda: isinstance(scene.app.screen, SourcesScreen), pilot)
        assert not scene.app.screen.query(FilterBar)


async def test_a_paste_without_a_line_opens_one_with_it_on_every_screen() -> None:
    async with on_jobs(size=(100, 24)) as (scene, pilot, _):
        for screen in "123467?":
            type_at_once(scene, screen)
            scene.app.post_message(events.Paste("q\x1b[31m\nq1 "))
            type_at_once(scene, "q")
            await wait_until(lambda: field(scene) == "q␛[31m q1q", pilot)
            assert scene.app.screen.query(CommandBar)
            await press(pilot, "escape", until=lambda: field(scene) is None)


async def test_a_paste_goes_into_the_line_that_is_open_or_opens() -> None:
    async with on_jobs(size=(100, 24)) as (scene, pilot, table):
        type_at_once(scene, "/sta")
        scene.app.post_message(events.Paste("tus:"))
        type_at_once(scene, "failed\r")
        await wait_until(lambda: table.count == 1, pilot)
        await wait_until(lambda: field(scene) is None, pilot)


async def test_a_pasted_id_leads_there_and_a_paste_of_nothing_nowhere() -> None:
    async with on_jobs(size=(100, 24)) as (scene, pilot, _):
        scene.app.post_message(events.Paste(" \n"))
        type_at_once(scene, "6")
        await wait_until(lambda: isinstance(scene.app.screen, SourcesScreen), pilot)
        assert not scene.app.screen.query(FilterBar)
        scene.app.post_message(events.Paste(f"{FAILED}\n"))
        await wait_until(lambda: isinstance(scene.app.screen, JobScreen), pilot)
        assert not scene.app.screen.query(FilterBar)
