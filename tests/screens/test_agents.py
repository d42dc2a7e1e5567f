"""The agents on their screen: rows, order, filter, what is said of one, and where one gets from it."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import msgspec
import pytest
from textual.pilot import Pilot

from jobtui.analysis.paths import log_of
from jobtui.model.ids import OpPrefix
from jobtui.model.ops import Agent, HeldOp
from jobtui.screens.agents import AgentsScreen, where_to_open
from jobtui.screens.logs import LogsScreen
from jobtui.screens.text import ErrorScreen
from jobtui.widgets.record_list import RecordTable
from tests.builders import ago, an_agent
from tests.screens.captured import copied, until_said
from tests.screens.scene import Scene, agents, read
from tests.waiting import wait_until
from tests.widgets.widget_app import press, text

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
