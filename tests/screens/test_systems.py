"""Agents, and jobs of clusters and of a Balsam server, on the screens: logs, files, records and steps."""

import asyncio

import msgspec
import pytest
from textual.pilot import Pilot

from jobtui.analysis.find import Candidate
from jobtui.analysis.paths import log_of
from jobtui.model.ids import JobId, OpPrefix
from jobtui.model.ops import Agent, HeldOp
from jobtui.model.settings import ClusterAccess
from jobtui.screens.agents import AgentsScreen, where_to_open
from jobtui.screens.jobs import JobsScreen
from jobtui.screens.logs import LogsScreen
from jobtui.screens.text import ErrorScreen
from jobtui.session.evidence import Gatherer
from jobtui.widgets.record_list import RecordTable
from tests.balsam_server import RecordedBalsam
from tests.builders import ago, an_agent, some
from tests.screens import captured
from tests.screens.scene import Scene, agents, prompt, read
from tests.slurm_stand_in import StandIn
from tests.waiting import wait_until
from tests.widgets.widget_app import press, text

CANCELED = JobId("3pMDuIiL-2cmdSPql-activityAnimation")


async def test_keys_work_while_files_of_jobs_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    gate, jobs_on_disk = asyncio.Event(), Gatherer.jobs_on_disk

    async def late(self: Gatherer, text: str) -> tuple[Candidate, ...]:
        await gate.wait()
        return await jobs_on_disk(self, text)

    monkeypatch.setattr(Gatherer, "jobs_on_disk", late)
    async with captured.shown(captured.app_on_cluster(reach=captured.REACH)) as (app, pilot):
        await wait_until(lambda: CANCELED in app._session.store.jobs, pilot)
        await prompt(pilot, "colon", "no such error anywhere")
        await press(pilot, "enter", until="reading the files of the newest jobs")
        await press(pilot, "escape", "2", until=LogsScreen)
        gate.set()
        await press(pilot, "1", "colon", *"nothing7", "enter", until="no command nothing7")
        assert isinstance(app.screen, JobsScreen)


async def test_a_later_state_of_slurm_is_shown(cluster: StandIn) -> None:
    cluster.queue()
    async with captured.shown(captured.app_on_slurm(cluster, captured.JID), (200, 45)) as (app, pilot):
        await wait_until(lambda: captured.JID in text(app), pilot)
        cluster.queue({**captured.TWELVE, "%T": "COMPLETED", "%V": "2026-11-20T20:59:00"})
        await wait_until(lambda: "Slurm 12 COMPLETED" in text(app), pilot)


async def test_a_new_event_adds_a_step() -> None:
    balsam = RecordedBalsam()
    row = next(row for row in balsam.jobs if row["state"] == "RUNNING")
    async with captured.shown(captured.app_on_balsam(balsam, JobId(f"balsam/{row['id']}"))) as (app, pilot):
        await captured.until(app, pilot, "RUNNING")
        balsam.move_on(99_999)
        await captured.until(app, pilot, "RUN_DONE")


COMMAND = 'ssh v4.example.org "journalctl --utc CONTAINER_NAME=srj-p-u8sKq2Pe CONTAINER_ID=14ebb6cea369'


async def on_row(table: RecordTable[Agent], pilot: Pilot[None], prefix: str) -> None:
    await wait_until(lambda: table.records, pilot)
    table.go([str(agent.agent) for agent in table.records].index(prefix))
    await wait_until(lambda: f"agent           {prefix}," in text(pilot.app), pilot)


@pytest.mark.parametrize("is_configured", [False, True])
async def test_enter_on_a_docker_agent_reads_its_journal_or_says_what_to_type(
    is_configured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with read(Scene(agents=agents())) as (scene, pilot):
        await press(pilot, "3", until=AgentsScreen)
        reach = ClusterAccess(hosts={"v4": "/no/such/journal"} if is_configured else {})
        scene.app._shared.reach = reach
        await on_row(scene.app.screen.query_one(RecordTable), pilot, "t7K7")
        if is_configured:
            await press(pilot, "enter", until=LogsScreen)
            found = where_to_open(scene.app._shared, agents()[1], log_of(agents()[1], reach))
            name = "/no/such/journal CONTAINER_NAME=srj-p-u8sKq2Pe CONTAINER_ID=14ebb6cea369"
            assert some(found)[:2] == (name, None), "all of it is of this container"
            await wait_until(lambda: "/no/such/journal" in text(scene.app), pilot)
            return
        await press(pilot, "enter", until="cannot be read from here")
        assert isinstance(scene.app.screen, ErrorScreen)
        assert "[hosts]" in text(scene.app)
        assert "ssh v4.example.org" in text(scene.app)
        texts = captured.copied(scene.app, monkeypatch)
        await pilot.press("y")
        await captured.until_said(scene.app, pilot, "copied ssh v4.example.org")
        assert texts[-1].startswith(COMMAND)
        await press(pilot, "escape", until=AgentsScreen)


async def test_the_log_on_the_cluster_itself_comes_before_its_copies() -> None:
    agent = an_agent("ukUt", driver="SbatchDriver", host="cori", cluster_log="/scratch/jdoe/job_agent.log")
    shared = Scene().app._shared
    shared.reach = ClusterAccess({"/scratch": "/mnt"})
    copy = msgspec.structs.replace(agent, log="/srv/db/user/EPRSqtUW/agent-sbatch/cori", log_at=7)
    for known in (agent, copy):
        assert where_to_open(shared, known, log_of(known)) == ("/mnt/jdoe/job_agent.log", None, None)
    shared.reach = ClusterAccess(hosts={"cori": "ssh://op@cori"})
    remote = ("ssh://op@cori/scratch/jdoe/job_agent.log", None, None)
    assert where_to_open(shared, copy, log_of(copy, shared.reach)) == remote
    shared.reach = ClusterAccess()
    assert where_to_open(shared, copy, log_of(copy)) == (copy.log, None, None)
    own = msgspec.structs.replace(agent, log="/mnt/other/job_agent.log", log_at=9)
    shared.reach = ClusterAccess({"/scratch": "/mnt"})
    assert where_to_open(shared, own, log_of(own)) == ("/mnt/other/job_agent.log", None, None)
    busy = msgspec.structs.replace(own, ops=(HeldOp(OpPrefix("pb5u"), "run", sent_at=ago(60)),))
    assert where_to_open(shared, busy, log_of(busy)) == (own.log, None, ago(65))
