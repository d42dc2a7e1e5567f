"""The times of a job that tables, filters and searches agree on."""

from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.jobs import Job, JobStatus


def status_since(job: Job) -> Nanos | None:
    """When the job came into its present state, as far as the record tells."""
    if job.status is JobStatus.PENDING:
        return job.queued_at
    if job.status is JobStatus.RUNNING:
        return job.started_at if job.started_at is not None else job.queued_at
    return _first_known(job.ended_at, job.updated_at, job.written_at)


def age_s(job: Job, now: Nanos) -> float | None:
    """Seconds since the job came into its present state."""
    since = status_since(job)
    return None if since is None else seconds_between(since, now)


def first_seen(job: Job) -> Nanos | None:
    """When the present run began to exist."""
    return _first_known(job.queued_at, job.started_at, job.updated_at, job.written_at)


def last_active(job: Job, now: Nanos) -> Nanos | None:
    """When something last happened to the job; now while it lives."""
    return now if job.status.is_live else _first_known(job.ended_at, job.updated_at, job.written_at)


def _first_known(*times: Nanos | None) -> Nanos | None:
    return next((at for at in times if at is not None), None)
