"""State changes of jobs whose system keeps no log of them, out of the times in their records.

A record tells when its present run was submitted, began and ended; earlier runs are in its history, where
that was read.
"""

from collections.abc import Iterable, Iterator

from jobtui.model.changes import StateChange
from jobtui.model.clock import Nanos
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobStatus, Run

ENDS = frozenset({JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELED})


def changes_of_jobs(jobs: Iterable[Job]) -> Iterator[StateChange]:
    """The changes that the records of jobs tell, each job's in order; ids grow with time within a job."""
    for job in jobs:
        yield from _changes(job.id, job.source, job.status, job.queued_at, job.started_at, job.ended_at)


def changes_of_runs(job: Job, runs: Iterable[Run]) -> Iterator[StateChange]:
    """The same for every run of one job."""
    for run in runs:
        yield from _changes(job.id, job.source, run.status, run.queued_at, run.started_at, run.ended_at)


def _changes(
    job_id: JobId,
    source: str,
    status: JobStatus,
    queued_at: Nanos | None,
    started_at: Nanos | None,
    ended_at: Nanos | None,
) -> Iterator[StateChange]:
    before, last = "", Nanos(0)
    for at, after in (
        (queued_at, JobStatus.PENDING),
        (started_at, JobStatus.RUNNING),
        (ended_at if status in ENDS else None, status),
    ):
        if at is not None:
            # A clock that was set back must not change the order
            last = max(last, at)
            yield StateChange(last, job_id, at, before, after.value, source)
            before = after.value
