"""What is usual, and the live jobs that take longer."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.analysis.filter import FilterContext, parse
from jobtui.analysis.lateness import KINDS_KEPT, RUNS_KEPT, Lateness
from jobtui.analysis.usual import LEAST_RUNS, TELLING_RUNS, is_beyond, usual_of, usual_words
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobStatus
from jobtui.model.verdicts import Usual
from tests.builders import a_job, job_id
from tests.conftest import NOW

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


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (live(JobStatus.RUNNING, 100), None),
        (live(JobStatus.RUNNING, 600), "late: runs 10m, usually 1m49s (p99 1m59s, n=20)"),
        (live(JobStatus.PENDING, 5), None),
        (live(JobStatus.PENDING, 60), "late: waits 1m, usually 2s (p99 2s, n=20)"),
        (live(JobStatus.RUNNING, 600, model="other"), None),
    ],
)
def test_a_job_is_late_beyond_what_is_usual_for_its_like(one: Job, words: str | None) -> None:
    lateness = Lateness.of(known(one, *HISTORY), NOW)
    late = lateness.late(one, NOW)
    assert (late.words if late is not None else None) == words


def test_too_few_runs_make_nothing_late() -> None:
    one = live(JobStatus.RUNNING, 86_400)
    assert Lateness.of(known(one, *HISTORY[1:]), NOW).late(one, NOW) is None


def test_failed_runs_do_not_count() -> None:
    import msgspec

    failed = [msgspec.structs.replace(job, status=JobStatus.FAILED) for job in HISTORY]
    one = live(JobStatus.RUNNING, 86_400)
    assert Lateness.of(known(one, *failed), NOW).late(one, NOW) is None


def test_time_alone_makes_a_job_late_and_its_end_ends_that() -> None:
    one = live(JobStatus.RUNNING, 100)
    jobs = known(one, *HISTORY)
    lateness = Lateness()
    lateness.note(jobs)
    assert lateness.look(jobs, NOW, 10.0) == set()
    later = Nanos(NOW + 600 * SECOND)
    assert lateness.look(jobs, later, 10.0) == {LIVE}
    assert lateness.look(jobs, later, 10.0) == set()
    jobs[LIVE] = a_job(9_999, status=JobStatus.COMPLETED)
    assert lateness.look(jobs, later, 10.0) == {LIVE}


def test_what_is_over_the_budget_comes_next_time() -> None:
    one = live(JobStatus.RUNNING, 600)
    jobs = known(one, *HISTORY)
    lateness = Lateness()
    lateness.note(jobs)
    assert lateness.look(jobs, NOW, 0.0) == set()
    assert lateness.look(jobs, NOW, 10.0) == {LIVE}


def test_what_is_kept_has_a_bound() -> None:
    lateness = Lateness()
    jobs = known(*(done(number, 5) for number in range(RUNS_KEPT + 50)))
    jobs |= known(*(done(10_000 + n, 5, model=f"m{n}") for n in range(KINDS_KEPT + 50)))
    lateness.note(jobs)
    lateness.look(jobs, NOW, 10.0)
    assert len(lateness._kinds) == KINDS_KEPT
    assert all(len(lengths._taken) <= RUNS_KEPT for lengths in lateness._kinds.values())


def test_the_filter_finds_late_ones() -> None:
    context = FilterContext(is_late=lambda job: job.id == LIVE)
    for words in ("flag:late", "is:any"):
        assert parse(words).matches(live(JobStatus.RUNNING, 1), NOW, context)
        assert not parse(words).matches(done(1, 1), NOW, context)


@given(st.lists(st.floats(0, 1e6), min_size=LEAST_RUNS, max_size=200))
@settings(max_examples=50)
def test_nothing_that_was_seen_is_beyond_what_is_usual_but_the_last_hundredth(seconds: list[float]) -> None:
    usual = usual_of(seconds)
    assert usual is not None
    assert usual.p50_s <= usual.p99_s <= max(seconds)
    assert sum(is_beyond(one, usual) for one in seconds) <= len(seconds) // 100


def test_few_runs_are_said_to_be_few() -> None:
    assert usual_of([1.0, 2.0]) is None
    assert usual_words(Usual(34, 120, 300)) == "usually 2m (p99 5m, n=34)"
    assert usual_words(Usual(4, 120, 300)) == "usually 2m (n=4, too few to tell what is late)"
