"""The palette: every action of the screen, and jobs."""

from textual.command import CommandList
from textual.pilot import Pilot

from jobtui.screens.choices import ColumnsScreen
from jobtui.screens.job import JobScreen
from jobtui.screens.seen import SeenScreen
from jobtui.widgets.job_table import JobTable
from tests.screens.scene import FAILED, Scene, agents, opened, words
from tests.waiting import wait_until
from tests.widgets.widget_app import press, text

QUERIES = ("incidents", "stuck", "doctor", "replay", "in a replay", "filter")


async def test_an_action_is_found_by_its_words_with_its_key_and_taken() -> None:
    scene = Scene()
    async with scene.app.run_test(size=(120, 40)) as pilot:
        found = await opened(scene, pilot, "choose col")
        await wait_until(lambda: words(found)[:1] and "Choose columns" in words(found)[0], pilot)
        assert words(found)[0].startswith("c ")
        await press(pilot, "enter", until=ColumnsScreen)


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
