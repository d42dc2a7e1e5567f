"""jobtui on a real Balsam, live: what its server knows, through outages, and the figures of its analytics."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobtui.backends.balsam.credentials import read_login
from jobtui.backends.balsam.login import LoginServer, Method, keep_login
from jobtui.backends.balsam.opening import open_balsam
from jobtui.model.clock import SystemClock
from jobtui.model.health import SourceState
from jobtui.model.ids import JobId
from jobtui.model.specs import parse_balsam
from jobtui.store.poller import Poller
from jobtui.store.store import Store
from tests.analysis.balsam_data import nanos
from tests.commands.running import Runner
from tests.fakes import FakeCorrelation
from tests.real.balsam_agent import SiteAgent
from tests.real.balsam_system import PASSWORD, USER, BalsamSystem

pytestmark = pytest.mark.real

TOLERANCE = 1e-9
UTILIZATION, THROUGHPUT, NODES = "utilization_report", "throughput_report", "available_nodes"


@pytest.fixture(scope="module")
def system() -> Iterator[BalsamSystem]:
    venv = os.environ.get("REAL_BALSAM_VENV")
    if not venv:
        pytest.skip("scripts/real installs Balsam and names it")
    # A short path: it holds sockets
    root = Path(tempfile.mkdtemp(prefix="balsam-"))
    root.chmod(0o755)
    try:
        with BalsamSystem(Path(venv), root) as running:
            server = LoginServer(running.url)
            assert Method.PASSWORD in server.methods()
            keep_login(
                str(running.login), running.url, server.by_password(USER, lambda: PASSWORD), Method.PASSWORD
            )
            yield running
    finally:
        shutil.rmtree(root)


@pytest.fixture(autouse=True)
def logged_in(system: BalsamSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BALSAM_CLIENT_PATH", str(system.login))


class Watched:
    """The source on the real server, and the store it fills."""

    def __init__(self, system: BalsamSystem) -> None:
        self.source = open_balsam(parse_balsam(system.url), None)
        self.store = Store(FakeCorrelation(), SystemClock())
        self.poller = Poller(self.source, self.store, strict=True)

    async def poll(self, times: int) -> None:
        for _ in range(times):
            await self.poller.poll_once()

    async def follow(self) -> None:
        """Until nothing more comes at once."""
        await self.poll(3)
        await self.poller.catch_up()


def truth(system: BalsamSystem) -> tuple[dict[str, str], set[int]]:
    """The state of every job, and the ids of all events, as the server has them."""
    jobs = system.call("GET", "/jobs/", params={"limit": 10_000})["results"]
    events = system.call("GET", "/events/", params={"limit": 100_000})["results"]
    return {f"balsam/{job['id']}": job["state"] for job in jobs}, {event["id"] for event in events}


def seen(watched: Watched) -> tuple[dict[str, str], set[int]]:
    return (
        {job.id: job.native_status for job in watched.store.jobs.values()},
        {change.id for change in watched.store.changes.all()},
    )


async def test_it_follows_what_happens(system: BalsamSystem) -> None:
    agent = SiteAgent(system, 1)
    early = agent.add_jobs(60)
    agent.work(early)
    watched = Watched(system)
    await watched.poller.catch_up()
    assert seen(watched) == truth(system)
    later = agent.add_jobs(40)
    agent.move(later, "PREPROCESSED")
    agent.run(later)
    # A sender whose clock is five minutes behind
    agent.move(later[:20], "RUN_DONE", late_s=300)
    await watched.follow()
    assert seen(watched) == truth(system)
    failed = await watched.source.detail(JobId(f"balsam/{early[0]}"))
    assert failed is not None
    assert failed.runs[-1].error == "return code 3: ValueError: no such element"
    assert len((await watched.source.detail(JobId(f"balsam/{early[1]}")) or failed).runs) == 2
    await watched.source.aclose()


async def test_an_outage_loses_and_doubles_nothing(system: BalsamSystem) -> None:
    agent = SiteAgent(system, 2)
    watched = Watched(system)
    await watched.poller.catch_up()
    jobs = agent.add_jobs(30)
    await asyncio.to_thread(system.stop_server)
    await watched.poll(2)
    (health,) = watched.store.sources()
    assert health.state is SourceState.DOWN
    assert health.read_at is not None
    await asyncio.to_thread(system.start_server)
    agent.work(jobs)
    await watched.follow()
    assert watched.store.sources()[0].state is SourceState.OK
    assert seen(watched) == truth(system)
    await watched.source.aclose()


async def test_a_login_that_is_renewed_is_taken(system: BalsamSystem) -> None:
    watched = Watched(system)
    await watched.poller.catch_up()
    good = system.login.read_bytes()
    system.login.write_bytes(good.replace(read_login(str(system.login)).token.encode(), b"expired.token.x"))
    await watched.poll(1)
    assert "jobtui login balsam" in (watched.store.sources()[0].error or "")
    system.login.write_bytes(good)
    await watched.follow()
    assert watched.store.sources()[0].state is SourceState.OK
    await watched.source.aclose()


def questions(system: BalsamSystem) -> list[tuple[str, dict[str, Any], dict[str, Any], list[str]]]:
    """What is asked of Balsam's own analytics, and how the same is asked of jobtui."""
    batch_jobs = system.call("GET", "/batch-jobs/")["results"]
    scheduler_id = batch_jobs[0]["scheduler_id"]
    filters: list[tuple[dict[str, Any], list[str]]] = [
        ({}, []),
        ({"tags": {"experiment": "a"}}, ["--tag=experiment:a"]),
        ({"tags": {"experiment": "none"}}, ["--tag=experiment:none"]),
        ({"batch_job_id": batch_jobs[0]["id"]}, [f"--batch-job={batch_jobs[0]['id']}"]),
        ({"scheduler_id": scheduler_id}, [f"--scheduler-id={scheduler_id}"]),
    ]
    asked: list[tuple[str, dict[str, Any], dict[str, Any], list[str]]] = [(NODES, {}, {}, ["nodes"])]
    for query, words in filters:
        for state in ("JOB_FINISHED", "RUN_ERROR"):
            asked.append(
                (THROUGHPUT, query, {"to_state": state}, ["throughput", f"--to-state={state}", *words])
            )
        asked.append((UTILIZATION, query, {"node_weighting": True}, ["utilization", *words]))
        asked.append((UTILIZATION, query, {"node_weighting": False}, ["utilization", "--unweighted", *words]))
    return asked


def test_exact_reports_are_those_of_balsam(system: BalsamSystem, capsys: pytest.CaptureFixture[str]) -> None:
    run = Runner(capsys)
    agent = SiteAgent(system, 3)
    agent.work(agent.add_jobs(50))
    agent.finish()
    asked = questions(system)
    answers = system.analytics([question[:3] for question in asked])
    assert any("error" in answer for answer in answers)
    for (*_, words), answer in zip(asked, answers, strict=True):
        ran = run("--balsam", system.url, "report", *words, "--exact", "--json")
        if "error" in answer:
            assert ran.code == 1, (words, answer)
            continue
        (series,) = ran.json["series"]
        times = [nanos(text.removesuffix("Z")) for text in series["x"]]
        assert times == [nanos(text.removesuffix("+00:00")) for text in answer["x"]], words
        assert series["y"] == pytest.approx(answer["y"], abs=TOLERANCE), words
