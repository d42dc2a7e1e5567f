"""The palette, and what is typed or pasted faster than lines and screens open."""

import pytest
from textual import events
from textual.command import CommandList, CommandPalette
from textual.keys import _character_to_key
from textual.pilot import Pilot
from textual.widgets import Input

from jobtui.screens.agents import AgentsScreen
from jobtui.screens.charts import ChartsScreen
from jobtui.screens.incidents import SeenScreen
from jobtui.screens.job import JobScreen
from jobtui.screens.jobs import JobsScreen
from jobtui.screens.logs import LogsScreen
from jobtui.screens.sources import SourcesScreen
from jobtui.screens.text import HelpScreen
from jobtui.widgets.filter_bar import CommandBar, FilterBar
from jobtui.widgets.job_table import JobTable
from tests.screens.scene import FAILED, Scene, agents, on_jobs, opened, words
from tests.waiting import wait_until
from tests.widgets.widget_app import press, text

QUERIES = ("incidents", "stuck", "doctor", "replay", "in a replay", "filter")


async def test_screens_are_found_by_their_names_and_other_words_and_no_keys_of_a_replay() -> None:
    scene = Scene()
    async with scene.app.run_test(size=(120, 40)) as pilot:
        for query, key in zip(QUERIES, "7F6pp/", strict=True):
            found = await opened(scene, pilot, query)
            await wait_until(lambda found=found, key=key: " ".join(words(found)).startswith(key + " "), pilot)  # type: ignore[misc]
            assert not any("a minute back" in line for line in words(found))
            await pilot.press("escape")


async def test_other_colours_are_found_and_hold_at_once() -> None:
    scene = Scene()
    async with scene.app.run_test(size=(120, 40)) as pilot:
        table, first = scene.app.screen.query_one(JobTable), scene.app.theme
        seen = [table.look("status.failed")]
        found = await opened(scene, pilot, "theme")
        await wait_until(lambda: words(found)[:1] and words(found)[0].startswith("ctrl+t"), pilot)
        await press(pilot, "enter", until=lambda: table.look("status.failed") != seen[0])
        while scene.app.theme != first:
            seen.append(table.look("status.failed"))
            theme = scene.app.theme
            await press(pilot, "ctrl+t", until=lambda theme=theme: scene.app.theme != theme)  # type: ignore[misc]
        assert len(set(map(str, seen))) > 3


async def test_what_is_on_another_screen_is_found_and_taken_there() -> None:
    scene = Scene()
    async with scene.app.run_test(size=(120, 40)) as pilot:
        app = scene.app
        for begin, query, line, there in (
            ("1", "verdict", "w           Why", lambda: "evidence" in text(app)),
            ("6", "stuck", "F           Only jobs", lambda: "/failed or stuck" in text(app)),
            ("4", "before", ":seen       Failures", lambda: isinstance(app.screen, SeenScreen)),
        ):
            await pilot.press(begin)
            found = await opened(scene, pilot, query)
            await pick(pilot, found, line)
            await press(pilot, "enter", until=there)


async def pick(pilot: Pilot[None], found: CommandList, line: str) -> None:
    await wait_until(lambda: any(one.startswith(line) for one in words(found)), pilot)
    await pilot.press(*["down"] * [one.startswith(line) for one in words(found)].index(True))


async def test_a_job_is_found_by_id_name_or_filter_and_opened() -> None:
    scene = Scene()
    async with scene.app.run_test(size=(120, 40)) as pilot:
        for query in (FAILED, "beamline test", "status:failed"):
            found = await opened(scene, pilot, query)
            await wait_until(lambda found=found: any(FAILED in word for word in words(found)), pilot)  # type: ignore[misc]
            await press(pilot, "enter", until=JobScreen)
            assert isinstance(scene.app.screen, JobScreen)
            assert scene.app.screen.job_id == FAILED
            await press(pilot, "escape", until=lambda: len(scene.app.screen_stack) == 1)


async def test_an_op_and_an_agent_are_found_by_their_ids() -> None:
    scene = Scene(agents=agents())
    async with scene.app.run_test(size=(120, 40)) as pilot:
        found = await opened(scene, pilot, "pb5u")
        await wait_until(lambda: f"op pb5u, run of {FAILED}" in words(found), pilot)
        await press(pilot, "enter", until=JobScreen)
        await pilot.press("escape")
        found = await opened(scene, pilot, "srj-p-u8sKq2Pe")
        await wait_until(lambda: "agent hOJT srj-p-u8sKq2Pe" in words(found), pilot)


KEYS = {"\r": "enter", "\x1b": "escape", "\x10": "ctrl+p"}


def type_at_once(scene: Scene, text: str) -> None:
    for char in text:
        character = None if char in KEYS else char
        scene.app.post_message(events.Key(KEYS.get(char) or _character_to_key(char), character))


def field(scene: Scene) -> str | None:
    fields = scene.app.screen.query(Input)
    return fields.first().value if fields else None


@pytest.mark.parametrize(
    ("typed", "held", "screen"),
    [
        ("2:qsq1x", "qsq1x", LogsScreen),
        ("3/qsq1x", "qsq1x", AgentsScreen),
        ("3:qsq1x", "qsq1x", AgentsScreen),
        ("4/qsq1x", "qsq1x", ChartsScreen),
        ("?:qsq1x", "qsq1x", HelpScreen),
        (":ünïcode 表 q", "ünïcode 表 q", JobsScreen),
        ("//q", "/q", JobsScreen),
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


async def test_a_paste_without_a_line_opens_one_with_it_on_every_screen() -> None:
    async with on_jobs(size=(100, 24)) as (scene, pilot, _):
        for screen in "123467?":
            type_at_once(scene, screen)
            scene.app.post_message(events.Paste("q\x1b[31m\nq1 "))
            type_at_once(scene, "q")
            await wait_until(lambda: field(scene) == "q␛[31m q1q", pilot)
            assert scene.app.screen.query(CommandBar)
            await press(pilot, "escape", until=lambda: field(scene) is None)


async def test_a_pasted_id_leads_there_and_a_paste_of_nothing_nowhere() -> None:
    async with on_jobs(size=(100, 24)) as (scene, pilot, _):
        scene.app.post_message(events.Paste(" \n"))
        type_at_once(scene, "6")
        await wait_until(lambda: isinstance(scene.app.screen, SourcesScreen), pilot)
        assert not scene.app.screen.query(FilterBar)
        scene.app.post_message(events.Paste(f"{FAILED}\n"))
        await wait_until(lambda: isinstance(scene.app.screen, JobScreen), pilot)
        assert not scene.app.screen.query(FilterBar)
