"""The agents on their screen: rows, order, filter, what is said of one, and where one gets from it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import msgspec
import pytest
from textual.pilot import Pilot

from jobtui.analysis.paths import log_of
from jobtui.app import JobtuiApp
from jobtui.backends.logfile import LogFile
from jobtui.model.clock import FixedClock
from jobtui.model.ids import JobId, OpPrefix
from jobtui.model.ops import Agent, AgentState, HeldOp
from jobtui.screens.agents import AgentsScreen, where_to_open
from jobtui.screens.choices import ChoosingScreen
from jobtui.screens.job import JobScreen
from jobtui.screens.logs import LogsScreen
from jobtui.screens.text import ErrorScreen
from jobtui.session import Session
from jobtui.widgets.record_list import RecordTable
from tests.builders import ago, an_agent, job_id
from tests.conftest import NOW
from tests.screens.captured import CAPTURE, copied, until_said
from tests.screens.scene import FAILED, RUN, Scene, agents, read
from tests.waiting import wait_until
from tests.widgets.widget_app import press, screen_text, text

COMMAND = 'ssh v4.example.org "journalctl --utc CONTAINER_NAME=srj-p-u8sKq2Pe CONTAINER_ID=14ebb6cea369'


@asynccontextmanager
async def on_agents(
    known: Sequence[Agent] | None = None, *, size: tuple[int, int] = (120, 40)
) -> AsyncIterator[tuple[Scene, Pilot[None]]]:
    scene = Scene(agents=agents() if known is None else known)
    async with read(scene, size=size) as (_, pilot):
        await press(pilot, "3", until=AgentsScreen)
        await pilot.pause()
        yield scene, pilot


def table_of(scene: Scene) -> RecordTable[Agent]:
    return scene.app.screen.query_one(RecordTable)


def shown(scene: Scene) -> list[str]:
    table = table_of(scene)
    return [str(agent.agent) for agent in table.records]


async def on_row(scene: Scene, pilot: Pilot[None], prefix: str) -> None:
    table_of(scene).go(shown(scene).index(prefix))
    await wait_until(lambda: f"agent           {prefix}," in text(scene.app), pilot)


async def test_enter_on_a_local_agent_opens_its_log_where_it_begins() -> None:
    path = CAPTURE / "supervisor.log"
    session = Session([LogFile(path)], FixedClock(NOW))
    app = JobtuiApp(session)
    async with app.run_test(size=(120, 40)) as pilot:
        await press(pilot, "3", until="yBWz")
        screen = app.screen
        assert isinstance(screen, AgentsScreen)
        table = screen.query_one(RecordTable)
        table.go([str(agent.agent) for agent in table.records].index("yBWz"))
        await press(pilot, "enter", until=LogsScreen)
        await wait_until(lambda: any("'agent_id': 'yBWz…'" in line for line in screen_text(app)[:4]), pilot)
        assert "yBWz7FvyLy" not in text(app)


@pytest.mark.parametrize("is_configured", [False, True])
async def test_enter_on_a_docker_agent_reads_its_journal_or_says_what_to_type(
    is_configured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with on_agents() as (scene, pilot):
        scene.app._shared.hosts = {"v4": "/no/such/journal"} if is_configured else {}
        await on_row(scene, pilot, "t7K7")
        if is_configured:
            await press(pilot, "enter", until=LogsScreen)
            found = where_to_open(
                scene.app._shared, agents()[1], log_of(agents()[1], scene.app._shared.hosts)
            )
            name = "/no/such/journal CONTAINER_NAME=srj-p-u8sKq2Pe CONTAINER_ID=14ebb6cea369"
            assert found is not None
            assert found[:2] == (name, None), "all of it is of this container"
            await wait_until(lambda: "/no/such/journal" in text(scene.app), pilot)
            return
        await press(pilot, "enter", until="cannot be read from here")
        assert isinstance(scene.app.screen, ErrorScreen)
        assert "[hosts]" in text(scene.app)
        assert "ssh v4.example.org" in text(scene.app)
        texts = copied(scene.app, monkeypatch)
        await pilot.press("y")
        await until_said(scene.app, pilot, "copied ssh v4.example.org")
        assert texts[-1].startswith(COMMAND)
        await press(pilot, "escape", until=AgentsScreen)


async def test_the_log_on_the_cluster_itself_comes_before_its_copies() -> None:
    agent = an_agent("ukUt", driver="SbatchDriver", host="cori", cluster_log="/scratch/jdoe/job_agent.log")
    shared = Scene().app._shared
    shared.mounts = {"/scratch": "/mnt"}
    copy = msgspec.structs.replace(agent, log="/srv/db/user/EPRSqtUW/agent-sbatch/cori", log_at=7)
    for known in (agent, copy):
        assert where_to_open(shared, known, log_of(known, {})) == ("/mnt/jdoe/job_agent.log", None, None)
    shared.mounts, shared.hosts = {}, {"cori": "ssh://op@cori"}
    remote = ("ssh://op@cori/scratch/jdoe/job_agent.log", None, None)
    assert where_to_open(shared, copy, log_of(copy, shared.hosts)) == remote
    shared.hosts = {}
    assert where_to_open(shared, copy, log_of(copy, {})) == (copy.log, None, None)
    own = msgspec.structs.replace(agent, log="/mnt/other/job_agent.log", log_at=9)
    shared.mounts = {"/scratch": "/mnt"}
    assert where_to_open(shared, own, log_of(own, {})) == ("/mnt/other/job_agent.log", None, None)
    busy = msgspec.structs.replace(own, ops=(HeldOp(OpPrefix("pb5u"), "run", sent_at=ago(60)),))
    assert where_to_open(shared, busy, log_of(busy, {})) == (own.log, None, ago(65))


async def test_o_goes_to_the_job_an_agent_works_for_of_several_to_the_chosen_one() -> None:
    other = HeldOp(OpPrefix("k2Wc"), "analysis", JobId(job_id(4)))
    known = (an_agent("busy", state=AgentState.CONNECTED, ops=(RUN, other)), an_agent("idle"), agents()[0])
    async with on_agents(known) as (scene, pilot):
        await on_row(scene, pilot, "busy")
        await press(pilot, "o", until=ChoosingScreen)
        await wait_until(lambda: "analysis k2Wc" in text(scene.app), pilot)
        await press(pilot, "j", "enter", until=JobScreen)
        await press(pilot, "3", until=AgentsScreen)
        await on_row(scene, pilot, "idle")
        await pilot.press("o")
        await until_said(scene.app, pilot, "it holds no op")
        await on_row(scene, pilot, agents()[0].agent)
        await press(pilot, "o", until=JobScreen)
        assert FAILED in text(scene.app)


async def test_without_agents_it_says_why() -> None:
    async with on_agents(()) as (scene, pilot):
        await wait_until(lambda: "no line of a supervisor's log" in text(scene.app), pilot)
        await pilot.press("enter", "o", "y", "j", "s")
        assert isinstance(scene.app.screen, AgentsScreen)
