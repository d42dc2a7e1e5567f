"""jobtui on a real Slurm, live: a thousand short jobs, arrays and failures; outages; and what it costs."""

import asyncio
import os
import re
import signal
import time
from collections.abc import Iterator, Mapping

import pytest

from jobtui.model.clock import SECOND
from jobtui.model.health import SourceState
from jobtui.model.ids import JobId
from jobtui.model.jobs import JobStatus
from tests.real.live import Watched
from tests.real.slurm_system import SlurmSystem, a_cluster, local_slurm
from tests.waiting import wait_for

pytestmark = pytest.mark.real

JOBS = 1000
PATIENCE_S = 600.0
HOSTILE = [
    "a|b\nc~1~RUNNING~\x1b[31mred",
    "[/nope] $(id) `id`",
    "überlang=x",
    "x UserId=root(0) StdOut=/etc/passwd",
]
FINAL = re.compile(r"COMPLETED|FAILED|CANCELLED|TIMEOUT|OUT_OF_MEMORY|NODE_FAIL|PREEMPTED|DEADLINE")


@pytest.fixture(scope="module")
def system() -> Iterator[SlurmSystem]:
    yield from a_cluster()


@pytest.fixture(autouse=True)
def configured(system: SlurmSystem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_CONF", str(system.conf))


def jobs_of(watched: Watched) -> dict[str, tuple[str, str, int | None, int | None]]:
    """State, exit, start and end in seconds of each job, as the table has them."""
    return {
        job.id: (job.native_status, job.exit, _seconds(job.started_at), _seconds(job.ended_at))
        for job in watched.store.jobs.values()
    }


def _seconds(at: int | None) -> int | None:
    return None if at is None else at // SECOND


def accounted(system: SlurmSystem) -> Mapping[str, tuple[str, str, int | None, int | None]]:
    """The same of every ended job by sacct itself, in a form and a time zone of its own."""
    os.environ["SLURM_TIME_FORMAT"] = "%s"
    try:
        printed = system.run(
            "sacct", "-a", "-X", "-n", "-P", "-S", "now-1days", "-o", "JobID,State,ExitCode,Start,End"
        )
    finally:
        del os.environ["SLURM_TIME_FORMAT"]
    found = {}
    for line in printed.splitlines():
        job, state, exit_, start, end = line.split("|")
        state = state.split()[0]
        if (
            FINAL.fullmatch(state) and _number(end) is not None
        ):  # it tells the end a moment later than the state
            told = exit_ if state in ("COMPLETED", "FAILED", "OUT_OF_MEMORY") else ""
            name = job.partition("_[")[0]
            found[f"slurm/{name}"] = (state, told, _number(start), _number(end))
    return found


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() else None


def submit_many(system: SlurmSystem) -> None:
    """A thousand short jobs of every outcome."""
    system.submit("exit 0", "--array=1-300", "--job-name=many", "--time=1")
    system.submit("exit $((SLURM_ARRAY_TASK_ID % 5))", "--array=1-400%40", "--job-name=sweep", "--time=1")
    for number in range(40):
        system.submit("kill -SEGV $$", f"--job-name=crash{number}", "--time=1")
        system.submit("exit 3", f"--job-name={HOSTILE[number % len(HOSTILE)]}", "--time=1")
    for number in range(JOBS - 300 - 400 - 80):
        system.submit("true", f"--job-name=one{number}", "--time=1")


def release_failed_launches(system: SlurmSystem, watched: Watched) -> None:
    """Let jobs go on that a busy machine could not launch in time; Slurm holds them until somebody does."""
    for job in watched.store.jobs.values():
        if job.status is JobStatus.PENDING and job.reason == "launch_failed_requeued_held":
            system.run("scontrol", "release", job.id.removeprefix("slurm/"))


def served(system: SlurmSystem, message: str = "REQUEST_JOB_INFO ") -> int:
    """How many such requests slurmctld has served."""
    found = re.search(rf"{message}\s*\(.*?count:(\d+)", system.run("sdiag"))
    return int(found[1]) if found else 0


async def test_a_thousand_jobs_agree_with_sacct_at_every_check(system: SlurmSystem) -> None:
    watched = Watched(local_slurm())
    before = served(system)
    submitting = asyncio.create_task(asyncio.to_thread(submit_many, system))
    checks, deadline = 0, time.monotonic() + 2 * PATIENCE_S
    while time.monotonic() < deadline:
        known_before = accounted(system)
        await watched.poll()
        known_after, jobs = accounted(system), jobs_of(watched)
        checks += 1
        release_failed_launches(system, watched)
        for job_id, told in known_before.items():
            if known_after.get(job_id) == told and job_id in jobs:
                state, exit_, *times = jobs[job_id]
                if FINAL.fullmatch(state):
                    # The exit code comes with accounting, which is asked less often than the queue
                    assert (state, exit_ or told[1], *times) == told, job_id
        if submitting.done() and len(known_after) >= JOBS and "PENDING" not in {s for s, *_ in jobs.values()}:
            break
        await watched.source.changed(2.0)
    await submitting
    await _settle(watched, system)
    assert {
        job_id: told for job_id, told in jobs_of(watched).items() if job_id in accounted(system)
    } == accounted(system)
    assert len(jobs_of(watched)) == JOBS
    assert checks > 3
    asked = served(system) - before
    assert asked <= watched.polls, f"{asked} squeues in {watched.polls} polls"
    print(f"{JOBS} jobs, {checks} checks, {asked} squeues in {watched.polls} polls")  # noqa: T201
    await watched.source.aclose()


async def _settle(watched: Watched, system: SlurmSystem) -> None:
    """Until accounting and the table have both heard of all ends."""
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        await watched.source.changed(2.0)
        await watched.poll()
        truth = accounted(system)
        if len(truth) >= JOBS and truth.items() <= jobs_of(watched).items():
            return


async def test_hostile_names_come_as_they_are(system: SlurmSystem) -> None:
    watched = Watched(local_slurm())
    await watched.poll()
    names = {job.name for job in watched.store.jobs.values()}
    assert set(HOSTILE) <= names
    assert watched.health().skipped == 0
    await watched.source.aclose()


def has_status(watched: Watched, job_id: JobId, status: JobStatus) -> bool:
    job = watched.store.job(job_id)
    return job is not None and job.status is status


async def test_outages_are_reported_and_recovered_from(system: SlurmSystem) -> None:
    watched = Watched(local_slurm())
    await watched.poll()
    job = JobId(f"slurm/{system.submit('sleep 5', '--time=1')}")
    system.stop_daemon("slurmctld")
    await watched.source.changed(5.0)
    await watched.poll()
    assert watched.health().state is SourceState.DOWN
    assert "scontrol ping" in (watched.health().error or "")
    system.start("slurmctld")
    wait_for(lambda: "UP" in system.run("scontrol", "ping", check=False), timeout_s=PATIENCE_S, step_s=0.2)
    await watched.until(lambda: has_status(watched, job, JobStatus.COMPLETED), 5.0)
    assert watched.health().state is SourceState.OK
    await watched.source.aclose()


async def test_a_daemon_that_hangs_is_given_up(system: SlurmSystem) -> None:
    watched = Watched(local_slurm())
    await watched.poll()
    system.signal("slurmctld", signal.SIGSTOP)
    try:
        await watched.source.changed(5.0)
        await watched.poll()
        assert watched.health().state is SourceState.DOWN
        assert "slurmctld" in (watched.health().error or "")
    finally:
        system.signal("slurmctld", signal.SIGCONT)
    await watched.source.aclose()


async def test_accounting_that_is_down_costs_only_its_part(system: SlurmSystem) -> None:
    system.stop_daemon("slurmdbd")
    watched = Watched(local_slurm())
    try:
        await watched.poll()
        assert watched.health().state is SourceState.PARTIAL
        assert "accounting does not answer" in watched.health().reason
        assert watched.store.jobs
    finally:
        system.start_dbd()
    await watched.source.aclose()
