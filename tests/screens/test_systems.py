"""Agents, and jobs of clusters and of a Balsam server, on the screens: logs, files, records and steps."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from shutil import copytree, ignore_patterns

import msgspec
import pytest
from textual.pilot import Pilot

from jobtui.analysis.find import Candidate
from jobtui.analysis.paths import log_of
from jobtui.app import JobtuiApp
from jobtui.backends.balsam.client import BalsamClient
from jobtui.backends.balsam.source import Balsam
from jobtui.backends.base import Source
from jobtui.backends.logfile import LogFile
from jobtui.backends.sirepo.source import SirepoDb
from jobtui.backends.slurm.client import Commands, slurm_faults
from jobtui.backends.slurm.source import Slurm
from jobtui.commands.reader import watch_clusters
from jobtui.model.clock import FixedClock
from jobtui.model.ids import JobId, OpPrefix
from jobtui.model.ops import Agent, HeldOp
from jobtui.screens.agents import AgentsScreen, where_to_open
from jobtui.screens.jobs import JobsScreen
from jobtui.screens.logs import LogsScreen
from jobtui.screens.text import ErrorScreen
from jobtui.session import Session
from jobtui.session.evidence import Gatherer
from jobtui.transport.ssh import LocalShell
from jobtui.widgets.record_list import RecordTable
from tests.balsam_server import TOKEN, RecordedBalsam, nanos
from tests.builders import ago, an_agent
from tests.carried import carried, timed
from tests.commands.running import shown
from tests.conftest import NOW
from tests.screens.captured import HERE, JID, ON_CLUSTER, THERE, copied, until_said
from tests.screens.scene import Scene, agents, prompt, read
from tests.slurm_stand_in import StandIn
from tests.waiting import wait_until
from tests.widgets.widget_app import press, screen_text, text

CANCELED = JobId("3pMDuIiL-2cmdSPql-activityAnimation")


@asynccontextmanager
async def on(
    jid: JobId | None, mounts: dict[str, str], root: Path = ON_CLUSTER
) -> AsyncIterator[tuple[JobtuiApp, Pilot[None]]]:
    sources: list[Source] = [SirepoDb(root), LogFile(root / "supervisor.log")]
    session = Session(sources, FixedClock(NOW))
    session.mounts = mounts
    watch_clusters(session, [str(root)])
    app = JobtuiApp(session, jid)
    async with app.run_test(size=(160, 40)) as pilot:
        yield app, pilot


async def test_its_files_are_those_on_the_cluster() -> None:
    async with on(JID, {THERE: HERE}) as (app, pilot):
        await wait_until(lambda: "Slurm 12" in text(app), pilot)
        await press(pilot, "f", until="sbatch_status.json")
        assert "run.bash" in text(app)


async def test_keys_are_heard_while_files_of_jobs_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    gate, jobs_on_disk = asyncio.Event(), Gatherer.jobs_on_disk

    async def late(self: Gatherer, text: str) -> tuple[Candidate, ...]:
        await gate.wait()
        return await jobs_on_disk(self, text)

    monkeypatch.setattr(Gatherer, "jobs_on_disk", late)
    async with on(None, {THERE: HERE}) as (app, pilot):
        await wait_until(lambda: CANCELED in app._session.store.jobs, pilot)
        await prompt(pilot, "colon", "no such error anywhere")
        await press(pilot, "enter", until="reading the files of the newest jobs")
        await press(pilot, "escape", "2", until=LogsScreen)
        gate.set()
        await press(pilot, "1", "colon", *"nothing7", "enter", until="no command nothing7")
        assert isinstance(app.screen, JobsScreen)


async def test_out_of_reach_nothing_is_said_of_slurm(tmp_path: Path) -> None:
    root = tmp_path / "sbatch"
    copytree(ON_CLUSTER, root, ignore=ignore_patterns("scratch"))
    async with on(JID, {}, root) as (app, pilot):
        await wait_until(lambda: "3Qbr" in text(app), pilot)
        await press(pilot, "f", until="cannot be read here")
        assert "Slurm" not in text(app)


async def test_the_copies_of_its_agents_log_are_read_and_open_from_the_agents() -> None:
    async with on(None, {}) as (app, pilot):
        await wait_until(lambda: any("agent-sbatch" in s.name for s in app._session.store.sources()), pilot)
        await press(pilot, "3", until=lambda: "somG" in text(app) and "localhost" in text(app))
        table = app.screen.query_one(RecordTable)
        table.go([str(agent.agent) for agent in table.records].index("somG"))
        await press(pilot, "enter", until=LogsScreen)
        await wait_until(lambda: "'agent_id': 'somG…'" in text(app), pilot)
        assert "***" in text(app)


RUN_DIR = f"{THERE}/jdoe/sirepo-dev/user/3pMDuIiL/myapp/{JID}"
TWELVE = {"%i": "12", "%A": "12", "%F": "12", "%T": "FAILED", "%r": "NodeFail",
          "%e": "2026-11-20T20:30:00"}  # fmt: skip


@asynccontextmanager
async def on_cluster(
    cluster: StandIn, job_id: str, mounts: dict[str, str]
) -> AsyncIterator[tuple[JobtuiApp, Pilot[None]]]:
    shell = LocalShell("local", slurm_faults(), {"PATH": cluster.search_path})
    slurm = timed(Slurm(Commands("local", shell)), FixedClock(NOW))
    slurm.every_s = 0.2
    sources: list[Source] = [SirepoDb(ON_CLUSTER), LogFile(ON_CLUSTER / "supervisor.log"), slurm]
    session = Session(sources, FixedClock(NOW))
    session.mounts = mounts
    app = JobtuiApp(session, JobId(job_id))
    async with app.run_test(size=(200, 45)) as pilot:
        yield app, pilot


async def test_by_the_number_that_its_agent_noted(cluster: StandIn) -> None:
    cluster.queue({**TWELVE, "%Z": "/elsewhere"})
    async with on_cluster(cluster, JID, {THERE: HERE}) as (app, pilot):
        words = "Slurm 12 FAILED: a node of it failed (its agent noted completed)"
        await wait_until(lambda: words in text(app), pilot)
        await press(pilot, "w", until="the record says completed, Slurm says failed")


async def test_the_slurm_job_names_the_one_of_sirepo(cluster: StandIn) -> None:
    cluster.queue({**TWELVE, "%Z": RUN_DIR})
    async with on_cluster(cluster, "slurm/12", {}) as (app, pilot):
        await wait_until(lambda: f"Sirepo's {JID} completed" in text(app), pilot)


async def test_what_slurm_says_later_is_shown_too(cluster: StandIn) -> None:
    cluster.queue()
    async with on_cluster(cluster, JID, {}) as (app, pilot):
        await wait_until(lambda: JID in text(app), pilot)
        cluster.queue({**TWELVE, "%T": "COMPLETED", "%Z": RUN_DIR, "%V": "2026-11-20T20:59:00"})
        await wait_until(lambda: "Slurm 12 COMPLETED" in text(app), pilot)


@pytest.mark.parametrize("out", ["mine.out", "gone.out", "/nowhere/gone.out"])
async def test_its_files_begin_with_its_own_output(cluster: StandIn, tmp_path: Path, out: str) -> None:
    (tmp_path / "mine.out").write_text("of mine\n")
    (tmp_path / "other.out").write_text("of another\n")
    cluster.captured().show("31", shown(31, tmp_path, out))
    async with on_cluster(cluster, "slurm/31", {}) as (app, pilot):
        await pilot.press("f")
        words = "of mine" if out == "mine.out" else "gone.out: not there"
        await wait_until(lambda: words in text(app), pilot)
        assert "of another" not in text(app)


async def test_a_record_is_shown_as_slurm_has_it(cluster: StandIn) -> None:
    cluster.captured()
    async with on_cluster(cluster, "slurm/8", {}) as (app, pilot):
        await wait_until(lambda: "Its program ended with exit code 3" in text(app), pilot)
        await wait_until(lambda: "nodes" in text(app), pilot)
        assert "PENDING" in text(app)
        await press(pilot, "r", until="lattice-8.err")
        await press(pilot, "h", until="exit code 3")


LATER = nanos("2026-11-20T19:30:00")


@asynccontextmanager
async def dashboard(balsam: RecordedBalsam, open_at: JobId | None = None) -> AsyncIterator[Pilot[None]]:
    clock = FixedClock(LATER)
    client = carried(BalsamClient("http://balsam.test", lambda: TOKEN), balsam.transport)
    source = timed(Balsam(client, owner="operator"), clock)
    async with Session([source], clock) as session:
        app = JobtuiApp(session, open_at)
        async with app.run_test(size=(120, 40)) as pilot:
            await wait_until(lambda: len(session.store.jobs) == len(balsam.jobs), pilot)
            yield pilot


def shows(pilot: Pilot[None], *words: str) -> bool:
    text = "\n".join(screen_text(pilot.app))
    return all(word in text for word in words)


async def test_of_a_job_without_events_no_log_is_said_to_be_missing() -> None:
    balsam = RecordedBalsam()
    balsam.events.clear()
    async with dashboard(balsam, open_at=JobId("balsam/99")) as pilot:
        await wait_until(lambda: shows(pilot, "balsam has told of no change of its state"), pilot)
        assert not shows(pilot, "No log is read")


async def test_a_job_is_told_by_its_events() -> None:
    balsam = RecordedBalsam()
    failed = next(row for row in balsam.events if row["to_state"] == "RUN_ERROR")
    async with dashboard(balsam, JobId(f"balsam/{failed['job_id']}")) as pilot:
        await wait_until(lambda: shows(pilot, "RUN_ERROR"), pilot)
        assert shows(pilot, "balsam", "site", "launcher", "PREPROCESSED")
        assert not shows(pilot, "supervisor")
        await press(pilot, "r", until=lambda: shows(pilot, "workdir", "tags "))
        await press(pilot, "h", until=lambda: shows(pilot, f"return code {failed['data']['returncode']}"))


async def test_an_event_that_comes_is_a_step_more() -> None:
    balsam = RecordedBalsam()
    row = next(row for row in balsam.jobs if row["state"] == "RUNNING")
    async with dashboard(balsam, open_at=JobId(f"balsam/{row['id']}")) as pilot:
        await wait_until(lambda: shows(pilot, "RUNNING"), pilot)
        row["state"], row["last_update"] = "RUN_DONE", "2026-11-20T19:29:59+00:00"
        balsam.events.append(
            {
                "id": 99_999, "job_id": row["id"], "timestamp": "2026-11-20T19:29:58",
                "from_state": "RUNNING", "to_state": "RUN_DONE", "data": {},
            }
        )  # fmt: skip
        await wait_until(lambda: shows(pilot, "RUN_DONE"), pilot)


async def test_its_jobs_sites_and_allocations() -> None:
    async with dashboard(RecordedBalsam()) as pilot:
        await wait_until(lambda: shows(pilot, "post", "running", "parent job", "demo-"), pilot)
        await press(pilot, "8", until=lambda: shows(pilot, "demo-site", "running"))
        await wait_until(lambda: shows(pilot, "~", "submit_failed", "finished", "allocations"), pilot)
        await press(pilot, "escape", until=lambda: not shows(pilot, "SITES"))


COMMAND = 'ssh v4.example.org "journalctl --utc CONTAINER_NAME=srj-p-u8sKq2Pe CONTAINER_ID=14ebb6cea369'


@asynccontextmanager
async def on_agents(
    known: Sequence[Agent] | None = None, *, size: tuple[int, int] = (120, 40)
) -> AsyncIterator[tuple[Scene, Pilot[None]]]:
    scene = Scene(agents=agents() if known is None else known)
    async with read(scene, size=size) as (_, pilot):
        await press(pilot, "3", until=AgentsScreen)
        await wait_until(lambda: shown_agents(scene), pilot)
        yield scene, pilot


def table_of(scene: Scene) -> RecordTable[Agent]:
    return scene.app.screen.query_one(RecordTable)


def shown_agents(scene: Scene) -> list[str]:
    table = table_of(scene)
    return [str(agent.agent) for agent in table.records]


async def on_row(scene: Scene, pilot: Pilot[None], prefix: str) -> None:
    table_of(scene).go(shown_agents(scene).index(prefix))
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
