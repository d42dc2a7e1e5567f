"""jobtui on a real Balsam, live: what its server knows, through outages, and the figures of its analytics."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from jobtui.analysis.explain.case import LIKELY
from jobtui.analysis.explain.verdict import explain
from jobtui.backends.balsam.login import LoginServer, Method, keep_login, read_login
from jobtui.backends.balsam.source import open_source
from jobtui.model.health import SourceState
from jobtui.model.ids import JobId
from jobtui.model.specs import ReadWindow, parse_balsam
from jobtui.model.verdicts import Code, Concern
from jobtui.session import Session
from jobtui.session.evidence import Gatherer
from tests.balsam_server import nanos
from tests.commands.running import Ran, Runner
from tests.fakes import changes_in
from tests.real.balsam_plants import Plants, SiteAgent
from tests.real.balsam_system import PASSWORD, USER, BalsamSystem
from tests.real.live import PATIENCE_S, Due, Watched, compare
from tests.waiting import wait_until

pytestmark = pytest.mark.real

TOLERANCE = 1e-9
OFF_S = 330
"""How far the server's clock is off, which is more than a launcher may be silent."""
SEEDS = tuple(range(int(os.environ.get("REAL_SEED", "1")), int(os.environ.get("REAL_SEED", "1")) + 2))
EXITS = {Concern.FINE: 0, Concern.FAILED: 1, Concern.STUCK: 3, Concern.OPEN: 3}
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
        with BalsamSystem(Path(venv), root) as live:
            server = LoginServer(live.url)
            assert Method.PASSWORD in server.methods()
            keep_login(str(live.login), live.url, server.by_password(USER, lambda: PASSWORD), Method.PASSWORD)
            yield live
    finally:
        shutil.rmtree(root)


@pytest.fixture(autouse=True)
def logged_in(system: BalsamSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BALSAM_CLIENT_PATH", str(system.login))


def watched_on(system: BalsamSystem) -> Watched:
    return Watched(open_source(parse_balsam(system.url), ReadWindow()))


async def follow(watched: Watched) -> None:
    """Until nothing more comes at once."""
    for _ in range(3):
        await watched.poller.poll_once()
    await watched.poll()


def truth(system: BalsamSystem) -> tuple[dict[str, str], set[int]]:
    """The state of every job, and the ids of all events, as the server has them."""
    jobs = system.call("GET", "/jobs/", params={"limit": 10_000})["results"]
    events = system.call("GET", "/events/", params={"limit": 100_000})["results"]
    return {f"balsam/{job['id']}": job["state"] for job in jobs}, {event["id"] for event in events}


def seen(watched: Watched) -> tuple[dict[str, str], set[int]]:
    return (
        {job.id: job.native_status for job in watched.store.jobs.values()},
        {change.id for change in changes_in(watched.store)},
    )


async def test_it_follows_what_happens(system: BalsamSystem) -> None:
    agent = SiteAgent(system, 1)
    early = agent.add_jobs(60)
    agent.work(early)
    watched = watched_on(system)
    await watched.poll()
    assert seen(watched) == truth(system)
    later = agent.add_jobs(40)
    agent.move(later, "PREPROCESSED")
    agent.run(later)
    # A sender whose clock is five minutes behind
    agent.move(later[:20], "RUN_DONE", late_s=300)
    await follow(watched)
    assert seen(watched) == truth(system)
    balsam: Any = watched.source
    failed = await balsam.detail(JobId(f"balsam/{early[0]}"))
    assert failed is not None
    assert failed.runs[-1].error == "return code 3: ValueError: no such element"
    assert len((await balsam.detail(JobId(f"balsam/{early[1]}")) or failed).runs) == 2
    agent.delete(later[20:25])
    jobs, _ = truth(system)
    await watched.until(lambda: seen(watched)[0] == jobs)
    await watched.source.aclose()


async def test_an_outage_loses_and_doubles_nothing(system: BalsamSystem) -> None:
    agent = SiteAgent(system, 2)
    watched = watched_on(system)
    await watched.poll()
    jobs = agent.add_jobs(30)
    await asyncio.to_thread(system.stop_server)
    for _ in range(2):
        await watched.poller.poll_once()
    assert watched.health().state is SourceState.DOWN
    assert watched.health().read_at is not None
    await asyncio.to_thread(system.start_server)
    agent.work(jobs)
    await follow(watched)
    assert watched.health().state is SourceState.OK
    assert seen(watched) == truth(system)
    await watched.source.aclose()


async def test_a_login_that_is_renewed_is_taken(system: BalsamSystem) -> None:
    watched = watched_on(system)
    await watched.poll()
    good = system.login.read_bytes()
    system.login.write_bytes(good.replace(read_login(str(system.login)).token.encode(), b"expired.token.x"))
    await watched.poller.poll_once()
    assert "jobtui login balsam" in (watched.health().error or "")
    system.login.write_bytes(good)
    await follow(watched)
    assert watched.health().state is SourceState.OK
    await watched.source.aclose()


def explained(system: BalsamSystem, plants: Plants, run: Runner) -> list[tuple[str, Due, Ran]]:
    return [
        (
            f"{one.family} {one.job}",
            one.due,
            run("--balsam", system.url, "explain", f"balsam/{one.job}", "--json"),
        )
        for one in plants.planted
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_verdicts_match_the_planted_faults(
    system: BalsamSystem, seed: int, capsys: pytest.CaptureFixture[str]
) -> None:
    plants = Plants(system, 100 + seed, each=2)
    plants.all()
    told = explained(system, plants, Runner(capsys))
    compare(f"Balsam, seed {seed}", ((name, due, ran.json) for name, due, ran in told), capsys)
    exits = {code.value: EXITS[code.concern] for code in Code}
    unlike = [(name, ran.code) for name, due, ran in told if ran.code != exits[due.code]]
    assert not unlike


@pytest.mark.parametrize("off_s", [-OFF_S, OFF_S])
def test_verdicts_are_right_when_the_servers_clock_is_off(
    system: BalsamSystem, off_s: int, capsys: pytest.CaptureFixture[str]
) -> None:
    system.stop_server()
    system.start_server(off_s=off_s)
    try:
        plants = Plants(system, 200 + (off_s > 0), each=2, off_s=off_s)
        plants.by_clocks()
        told = explained(system, plants, Runner(capsys))
    finally:
        system.stop_server()
        system.start_server()
    compare(f"Balsam, clock {off_s:+d} s", ((name, due, ran.json) for name, due, ran in told), capsys)


async def test_no_verdict_is_sure_while_the_server_is_down(system: BalsamSystem) -> None:
    agent = SiteAgent(system, 4)
    jobs = [JobId(f"balsam/{job}") for job in agent.add_jobs(3)]
    agent.move([int(job.removeprefix("balsam/")) for job in jobs], "PREPROCESSED")
    async with Session([open_source(parse_balsam(system.url), ReadWindow())]) as live:
        running = asyncio.create_task(live.run())
        await wait_until(lambda: all(job in live.store.jobs for job in jobs), timeout_s=PATIENCE_S)
        before = [explain(await Gatherer.of(live).whole(job)) for job in jobs]
        await asyncio.to_thread(system.stop_server)
        try:
            await wait_until(lambda: live.store.sources()[0].state is SourceState.DOWN, timeout_s=PATIENCE_S)
            during = [explain(await Gatherer.of(live).whole(job)) for job in jobs]
        finally:
            await asyncio.to_thread(system.start_server)
            running.cancel()
    assert [verdict.code for verdict in before] == [Code.WAITING_ALLOCATION] * 3
    assert all(verdict.confidence < LIKELY and verdict.doubts for verdict in during)


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
