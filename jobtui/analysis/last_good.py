"""The run of a job, or the other job, that one is compared with."""

from collections.abc import Iterable, Sequence

from jobtui.model.jobs import Job, JobStatus, Run


def last_good(runs: Sequence[Run], number: int) -> Run | None:
    """The newest other run that completed: the last one before run `number`, else the newest after it."""
    good = [run for run in runs if run.status is JobStatus.COMPLETED and run.number != number]
    before = [run for run in good if run.number < number]
    return next(reversed(before or good), None)


def last_good_like(job: Job, jobs: Iterable[Job]) -> Job | None:
    """The newest completed job of the same name and user: the last one submitted before, else after it.

    Tasks of the same array are none: they have one script.
    """
    array = job.id.partition("_")[0]
    good = [
        one
        for one in jobs
        if one.status is JobStatus.COMPLETED
        and (one.system, one.owner, one.name) == (job.system, job.owner, job.name)
        and one.id.partition("_")[0] != array
    ]
    before = [one for one in good if (one.queued_at or 0) <= (job.queued_at or 0)]
    return max(before or good, key=lambda one: one.queued_at or 0, default=None)
