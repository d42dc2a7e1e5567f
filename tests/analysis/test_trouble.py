"""New trouble is told once; what was so before one looked, and what gets better, is not."""

from jobtui.analysis.trouble import Trouble
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobStatus
from tests.builders import a_job, ago, job_id
from tests.conftest import NOW

BEGAN = ago(100)


def looked(trouble: Trouble, *jobs: Job, after_s: int = 0) -> set[JobId]:
    known = {job.id: job for job in jobs}
    trouble.note(known)
    return set(trouble.look(known, Nanos(NOW + after_s * SECOND), 10.0))


def failed(number: int, ended_at: Nanos) -> Job:
    return a_job(number, status=JobStatus.FAILED, ended_at=ended_at)


def pending(number: int, queued_at: Nanos) -> Job:
    return a_job(number, status=JobStatus.PENDING, mode="parallel", queued_at=queued_at, started_at=None)


def test_a_failure_since_one_looks_is_told_once() -> None:
    trouble = Trouble(BEGAN)
    assert looked(trouble, failed(1, ago(200)), failed(2, ago(50))) == {job_id(2)}
    assert looked(trouble, failed(1, ago(200)), failed(2, ago(50))) == set()
    assert looked(trouble, failed(2, ago(1))) == {job_id(2)}


def test_a_job_that_comes_to_be_stuck_is_told_once() -> None:
    trouble = Trouble(BEGAN)
    waits = pending(1, ago(5))
    assert looked(trouble, waits) == set()
    assert trouble.look({waits.id: waits}, Nanos(NOW + 60 * SECOND), 10.0) == [waits.id]
    assert trouble.look({waits.id: waits}, Nanos(NOW + 90 * SECOND), 10.0) == []


def test_what_was_stuck_before_is_not_new() -> None:
    assert looked(Trouble(BEGAN), pending(1, ago(500))) == set()
    assert looked(Trouble(BEGAN), pending(1, ago(50))) == {job_id(1)}


def test_one_that_got_well_and_stuck_again_is_told_again() -> None:
    trouble = Trouble(BEGAN)
    assert looked(trouble, pending(1, ago(50))) == {job_id(1)}
    assert looked(trouble, a_job(1, status=JobStatus.RUNNING, started_at=NOW)) == set()
    assert looked(trouble, pending(1, NOW), after_s=60) == {job_id(1)}


def test_what_is_over_the_budget_comes_next_time() -> None:
    trouble = Trouble(BEGAN)
    known = {job.id: job for job in (failed(1, ago(5)), failed(2, ago(5)))}
    trouble.note(known)
    assert trouble.look(known, NOW, 0.0) == []
    assert set(trouble.look(known, NOW, 10.0)) == set(known)
