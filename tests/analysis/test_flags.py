"""Flags: what looks wrong with a job, and why."""

import asyncio
from itertools import product
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.analysis.alerts import AlertFinder
from jobtui.analysis.correlation.correlator import Correlator
from jobtui.analysis.explain.flow import LEAST_RUNS, TELLING_RUNS, is_beyond, usual_of
from jobtui.analysis.explain.verdict import REST, Disputes, explain
from jobtui.analysis.filter import parse
from jobtui.analysis.flags import JobContext, flags_of, needs_person, waits_for
from jobtui.analysis.late_jobs import KINDS_KEPT, RUNS_KEPT, LateJobs
from jobtui.analysis.waits import waited_slot
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import AgentPrefix, JobId
from jobtui.model.jobs import Job, JobStatus
from jobtui.model.verdicts import Slot, Verdict
from tests.analysis.captured import correlate
from tests.analysis.explain.cases import Played, gatherer_of, played
from tests.analysis.lines import looked_at
from tests.builders import a_job, a_step, ago, an_op, job_id, some
from tests.conftest import NOW
from tests.demo.sites import DriverName
from tests.fakes import FakeCorrelation
from tests.offenders import each
from tests.rows import table

GRAVE = {"no_progress", "over_limit", "exception", "stale"}
"""Flags that need a person."""

CASES = table("flags")["case"]


def a_case(status: str, mode: str = "parallel", **fields: Any) -> Job:
    """A job without other times than `queued`, `started` and `written`, in seconds before now."""
    times = {f"{at}_at": ago(fields.pop(at)) for at in ("queued", "started", "written") if at in fields}
    values = {"plan": "basic", "queued_at": None, "started_at": None, "updated_at": None, **times, **fields}
    return a_job(id=JobId("EPRSqtUW-IVh7w74d-animation"), status=JobStatus(status), mode=mode, **values)


@each(*CASES)
def test_flags_and_reason_and_whether_a_person_is_needed(told: dict[str, Any]) -> None:
    flags = told.get("flags", [])
    job = a_case(**{key: value for key, value in told.items() if key not in ("flags", "reason")})
    assert [*flags_of(job, NOW)] == flags
    assert waits_for(job, NOW) == told.get("reason")
    assert needs_person(job, NOW) == bool(GRAVE & {*flags})


LIVE = job_id(9_999)


def done(number: int, ran_s: int, waited_s: int = 2, model: str = "animation") -> Job:
    queued = NOW - 86_400 * SECOND
    started = queued + waited_s * SECOND
    return a_job(
        number,
        status=JobStatus.COMPLETED,
        model=model,
        queued_at=Nanos(queued),
        started_at=Nanos(started),
        ended_at=Nanos(started + ran_s * SECOND),
    )


def live(status: JobStatus, for_s: int, model: str = "animation") -> Job:
    since = Nanos(NOW - for_s * SECOND)
    started = since if status is JobStatus.RUNNING else None
    return a_job(9_999, status=status, model=model, queued_at=since, started_at=started, ended_at=None)


def known(*jobs: Job) -> dict[JobId, Job]:
    return {job.id: job for job in jobs}


HISTORY = [done(number, 100 + number) for number in range(TELLING_RUNS)]

FAILED = [msgspec.structs.replace(job, status=JobStatus.FAILED) for job in HISTORY]
DAY_S = 86_400


@each(
    (live(JobStatus.RUNNING, 100), HISTORY, None),
    (live(JobStatus.RUNNING, 600), HISTORY, "late: runs 10m, usually 1m49s (99 % within 1m59s, of 20)"),
    (live(JobStatus.PENDING, 5), HISTORY, None),
    (live(JobStatus.PENDING, 60), HISTORY, "late: waits 1m, usually 2s (99 % within 2s, of 20)"),
    (live(JobStatus.RUNNING, 600, model="other"), HISTORY, None),
    (live(JobStatus.RUNNING, DAY_S), HISTORY[1:], None),  # too few
    (live(JobStatus.RUNNING, DAY_S), FAILED, None),
)
def test_a_job_is_late_beyond_what_is_usual_for_it(one: Job, history: list[Job], words: str | None) -> None:
    assert LateJobs.of(known(one, *history), NOW).late(one, NOW) == words


def test_time_alone_makes_a_job_late_and_its_end_ends_that() -> None:
    one = live(JobStatus.RUNNING, 100)
    jobs = known(one, *HISTORY)
    lateness = LateJobs()
    lateness.note(jobs)
    assert lateness.look(jobs, NOW, 10.0) == set()
    later = Nanos(NOW + 600 * SECOND)
    assert lateness.look(jobs, later, 10.0) == {LIVE}
    assert lateness.look(jobs, later, 10.0) == set()
    jobs[LIVE] = a_job(9_999, status=JobStatus.COMPLETED)
    assert lateness.look(jobs, later, 10.0) == {LIVE}


def test_the_runs_kept_are_bounded() -> None:
    lateness = LateJobs()
    jobs = known(*(done(number, 5) for number in range(RUNS_KEPT + 50)))
    jobs |= known(*(done(10_000 + n, 5, model=f"m{n}") for n in range(KINDS_KEPT + 50)))
    lateness.note(jobs)
    lateness.look(jobs, NOW, 10.0)
    assert len(lateness._kinds) == KINDS_KEPT
    assert all(len(lengths._taken) <= RUNS_KEPT for lengths in lateness._kinds.values())


@given(st.lists(st.floats(0, 1e6), min_size=LEAST_RUNS, max_size=200))
@settings(max_examples=50)
def test_at_most_one_run_in_a_hundred_is_longer_than_usual(seconds: list[float]) -> None:
    usual = some(usual_of(seconds))
    assert usual.p50_s <= usual.p99_s <= max(seconds)
    assert sum(is_beyond(one, usual) for one in seconds) <= len(seconds) // 100


LATER = Nanos(NOW + REST)


def at_odds(*numbers: int) -> tuple[FakeCorrelation, dict[JobId, Job]]:
    """Jobs whose records say running, and whose logs say that they ended half a minute ago."""
    jobs = {job_id(number): a_job(number, written_at=NOW) for number in numbers}
    steps = [a_step("op created"), a_step("sent", 1), a_step("status completed", 30)]
    return FakeCorrelation(an_op(jid=one, steps=steps) for one in jobs), jobs


def test_a_job_is_looked_at_when_it_has_rested() -> None:
    knows, jobs = at_odds(1)
    disputes = Disputes()
    disputes.note(jobs, NOW)
    assert looked_at(disputes, knows, jobs, NOW) == set()
    assert looked_at(disputes, knows, jobs, LATER) == {job_id(1)}
    assert job_id(1) in disputes
    disputes.note(jobs, LATER)
    agreeing = {job_id(1): a_job(1, status=JobStatus.COMPLETED, written_at=NOW)}
    assert looked_at(disputes, knows, agreeing, Nanos(LATER + REST)) == {job_id(1)}
    assert job_id(1) not in disputes


@each(
    ("late", JobContext(late_of=lambda job: "late" if job.id == LIVE else None, time_of=lambda source: NOW)),
    ("contradiction", JobContext(is_disputed=lambda job: job.id == LIVE, time_of=lambda source: NOW)),
)
def test_the_filter_finds_them(flag: str, context: JobContext) -> None:
    for words in (f"flag:{flag}", "is:any"):
        assert [*map(parse(words).test(context), (live(JobStatus.RUNNING, 1), done(1, 1)))] == [True, False]


BEGAN = ago(100)


def looked(trouble: AlertFinder, *jobs: Job, after_s: int = 0) -> set[JobId]:
    known = {job.id: job for job in jobs}
    trouble.note(known)
    return set(trouble.look(known, Nanos(NOW + after_s * SECOND), 10.0))


@each("late", "at odds", "trouble")
def test_a_check_that_ran_out_of_time_is_continued_by_the_next(kind: str) -> None:
    if kind == "late":
        jobs, lateness, found = known(live(JobStatus.RUNNING, 600), *HISTORY), LateJobs(), {LIVE}
        lateness.note(jobs)
        looks = [set(lateness.look(jobs, NOW, budget_s)) for budget_s in (0.0, 10.0)]
    elif kind == "at odds":
        knows, jobs = at_odds(*range(50))
        disputes, found = Disputes(), set(jobs)
        disputes.note(jobs, NOW)
        looks = [looked_at(disputes, knows, jobs, LATER, budget_s=budget_s) for budget_s in (0.0, 10.0)]
    else:
        jobs, trouble = known(failed(1, ago(5)), failed(2, ago(5))), AlertFinder(BEGAN)
        trouble.note(jobs)
        trouble.note([*jobs][:1])
        found = set(jobs)
        orders = [trouble.look(jobs, NOW, budget_s) for budget_s in (0.0, 10.0)]
        assert orders[1] == [*jobs], "what changed last is checked first"
        looks = [*map(set, orders)]
    assert looks == [set(), found]


def failed(number: int, ended_at: Nanos) -> Job:
    return a_job(number, status=JobStatus.FAILED, ended_at=ended_at)


def pending(number: int, queued_at: Nanos) -> Job:
    return a_job(number, status=JobStatus.PENDING, mode="parallel", queued_at=queued_at, started_at=None)


def test_a_failure_is_new_once_and_an_old_stuck_job_is_not_new() -> None:
    trouble = AlertFinder(BEGAN)
    assert looked(trouble, failed(1, ago(200)), failed(2, ago(50))) == {job_id(2)}
    assert looked(trouble, failed(1, ago(200)), failed(2, ago(50))) == set()
    assert looked(trouble, failed(2, ago(1))) == {job_id(2)}
    assert looked(AlertFinder(BEGAN), pending(1, ago(500))) == set()
    assert looked(AlertFinder(BEGAN), pending(1, ago(70))) == {job_id(1)}
    assert looked(AlertFinder(Nanos(NOW + 1)), failed(1, NOW)) == {job_id(1)}, "records note whole seconds"


def test_a_stuck_job_is_new_once_and_again_after_it_ran() -> None:
    trouble, waits = AlertFinder(BEGAN), pending(1, ago(5))
    assert looked(trouble, waits) == set()
    for after_s, told in ((60, [waits.id]), (90, [])):  # by time alone
        assert trouble.look({waits.id: waits}, Nanos(NOW + after_s * SECOND), 10.0) == told
    assert looked(trouble, a_job(1, status=JobStatus.RUNNING, started_at=NOW)) == set()
    assert looked(trouble, pending(1, NOW), after_s=61) == {job_id(1)}


def studied(play: Played) -> tuple[Correlator, Verdict]:
    correlator = correlate(play.logs, Nanos(play.now + SECOND))
    job_id = JobId(play.jid)
    gatherer = gatherer_of(correlator, [some(play.detail).job], play.now)
    return correlator, explain(asyncio.run(gatherer.gather(job_id, play.detail)))


@each(*product([DriverName.LOCAL, DriverName.DOCKER], range(2)))
def test_a_run_that_waits_for_a_cpu_slot_names_those_that_have_them(driver: DriverName, seed: int) -> None:
    correlator, found = studied(played("waiting-for-slot", seed, driver, 130))
    (wait,) = found.waits.waits
    assert wait.slot is Slot.CPU
    holders = {holder.op.jid for holder in wait.holders}
    hosts = {agent.agent: agent.host for agent in correlator.agents()}
    own = hosts[wait.op.assigned_agent or wait.op.agent or AgentPrefix("")]
    running = {
        op.jid
        for op in correlator.open_ops()
        if op.name == "run" and op.kind == "parallel" and op.agent is not None and hosts[op.agent] == own
    }
    assert holders == running
    assert found.job_id not in holders
    assert all(holder.held_s is not None and holder.held_s > 0 for holder in wait.holders)
    assert found.waits.cycle == ()


@each(*range(2))
def test_a_run_behind_another_of_its_user_names_that_one(seed: int) -> None:
    _, found = studied(played("waiting-op-slot", seed, DriverName.LOCAL, 130))
    (wait,) = found.waits.waits
    assert wait.slot is Slot.OP
    (holder,) = wait.holders
    assert found.job_id.startswith(some(holder.op.uid))
    assert holder.limit_s == 3600
    low, high = some(found.waits.range_s)
    assert 0 <= low <= high <= 3600


def test_a_running_job_waits_for_nothing() -> None:
    correlator, found = studied(played("healthy", 1, DriverName.LOCAL, 90))
    assert found.waits.waits == ()
    assert all(waited_slot(op) is None for op in correlator.open_ops())
