"""The command copied from each screen shows the same: it is a right one and names the same sources."""

import shlex
import subprocess
from pathlib import Path

import pytest
from textual.pilot import Pilot

from jobtui import cli
from jobtui.app import JobtuiApp
from jobtui.backends.logfile import LogFile
from jobtui.backends.sirepo_db import SirepoDb
from jobtui.commands.spelled import of_specs
from jobtui.model.clock import FixedClock
from jobtui.model.ids import JobId
from jobtui.model.specs import LogRole, SourceSpec
from jobtui.screens.base import LiveScreen
from jobtui.session import Session
from tests.conftest import NOW
from tests.screens.scene import Scene
from tests.screens.test_commands import say
from tests.waiting import wait_until
from tests.widgets.stage import screen_text

LOCAL = Path(__file__).parents[1] / "fixtures" / "sirepo" / "local"
LOGS = tuple(LOCAL / name for name in ("supervisor.log", "server.log"))
SPECS = (
    SourceSpec("srdb", str(LOCAL)),
    SourceSpec("log", str(LOGS[0]), LogRole.SUPERVISOR),
    SourceSpec("log", str(LOGS[1]), LogRole.SERVER),
)
WORDS = of_specs(SPECS)
JOB = JobId("hZk95g40-4u2Pj0fB-heightWeightReport")


def an_app(open_at: JobId | None = None) -> JobtuiApp:
    sources = (SirepoDb(LOCAL), LogFile(LOGS[0], "supervisor"), LogFile(LOGS[1], "server"))
    return JobtuiApp(Session(sources, FixedClock(NOW), strict=True), open_at, words=WORDS)


async def until(app: JobtuiApp, pilot: Pilot[None], words: str) -> None:
    await wait_until(lambda: words in "\n".join(screen_text(app)), pilot)


def grep(words: list[str]) -> list[str]:
    """What the program prints."""
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout.splitlines()


async def command_of(app: JobtuiApp, pilot: Pilot[None]) -> list[str]:
    """The words of the command that is copied here."""
    await pilot.pause()
    assert isinstance(app.screen, LiveScreen)
    taken = await app.screen.taken()
    assert taken is not None
    return shlex.split(taken.command)


@pytest.mark.parametrize(
    ("keys", "sign", "said"),
    [
        (("o",), "OPS", ("timeline", JOB)),
        (("l",), "lines of", ("logs", JOB)),
        (("h",), "RUN", ("show", JOB)),
        (("6",), "SOURCE", ("doctor",)),
        (("6", "enter"), "› source", ("doctor",)),
        (("1", "c"), "› columns", ("jobs",)),
    ],
    ids=["timeline", "logs", "history", "sources", "source", "columns"],
)
async def test_commands_of_jobtui(keys: tuple[str, ...], sign: str, said: tuple[str, ...]) -> None:
    app = an_app(JOB)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(app, pilot, "api_runSimulation")
        await pilot.press(*keys)
        await until(app, pilot, sign)
        words = await command_of(app, pilot)
    assert words == ["jobtui", *WORDS, *said]
    assert cli.parse(words[1:]).command.name == said[0]


async def test_the_jobs_are_shown_with_their_filter() -> None:
    app = an_app()
    async with app.run_test(size=(120, 40)) as pilot:
        await until(app, pilot, "jobs, ")
        await say(pilot, 'filter -app:srw name:"a b"')
        await until(app, pilot, "0 of ")
        words = await command_of(app, pilot)
    assert words == ["jobtui", *WORDS, "jobs", '-app:srw name:"a b"']
    assert cli.parse(words[1:]).words == ('-app:srw name:"a b"',)


async def test_what_may_be_meant_is_found_outside_too() -> None:
    scene = Scene()
    async with scene.app.run_test(size=(120, 40)) as pilot:
        await until(scene.app, pilot, "jobs, ")
        await say(pilot, "goto heights")
        await until(scene.app, pilot, "may mean")
        assert (await command_of(scene.app, pilot))[-2:] == ["find", "heights"]


async def test_a_line_of_a_log_is_shown_by_less_and_those_found_by_grep() -> None:
    app = an_app()
    async with app.run_test(size=(120, 40)) as pilot:
        await until(app, pilot, "jobs, ")
        await pilot.press("2")
        await until(app, pilot, "following")
        assert await command_of(app, pilot) == ["tail", "-F", *map(str, LOGS)]
        await pilot.press("tab")
        await until(app, pilot, "of 1,431 lines")
        await say(pilot, "700")
        await until(app, pilot, "line 700")
        assert await command_of(app, pilot) == ["less", "+700", str(LOGS[0])]
        await pilot.press("slash", *"~exit.?cod", "enter")
        await until(app, pilot, " of ")
        await pilot.press("slash", *"status=error", "enter")
        await until(app, pilot, "/status=error ")
        await pilot.press("ampersand")
        await until(app, pilot, "&status=error ")
        words = await command_of(app, pilot)
        found = next(line for line in screen_text(app) if "&status=error" in line)
    assert words == ["grep", "-n", "-F", "-i", "-e", "status=error", "--", str(LOGS[0])]
    printed = grep(words)
    assert f" of {len(printed)} " in found


async def test_secrets_and_escapes_are_not_copied_with_a_command() -> None:
    app = an_app()
    async with app.run_test(size=(120, 40)) as pilot:
        await until(app, pilot, "jobs, ")
        await say(pilot, "filter password=hunter2 \x1b[31m")
        words = " ".join(await command_of(app, pilot))
        assert "hunter2" not in words
        assert "\x1b" not in words
