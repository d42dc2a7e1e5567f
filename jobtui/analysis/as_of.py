"""A job as it was earlier, as far as its own record tells: what a person sees who goes back in time."""

from collections.abc import Iterator

import msgspec

from jobtui.model.clock import Nanos
from jobtui.model.jobs import Job, JobStatus

BEGINNING = Nanos(0)


def states_of(job: Job) -> Iterator[tuple[Nanos, Job]]:
    """The states of its last run, each with when it began; the record itself comes last, when it was written.

    Where no time is stored of a state it is left out: nothing is made up.
    """
    over_at = job.ended_at if not job.status.is_live else None
    if job.queued_at is not None and _is_before(job.queued_at, job.started_at, over_at, job.written_at):
        yield job.queued_at, _reset(job, JobStatus.PENDING, started_at=None)
    if job.started_at is not None and _is_before(job.started_at, over_at):
        yield job.started_at, _reset(job, JobStatus.RUNNING, started_at=job.started_at)
    written = (job.written_at, over_at, job.updated_at, job.started_at, job.queued_at)
    yield next((at for at in written if at is not None), BEGINNING), job


def _is_before(at: Nanos, *later: Nanos | None) -> bool:
    known = [one for one in later if one is not None]
    return bool(known) and at < min(known)


def _reset(job: Job, status: JobStatus, started_at: Nanos | None) -> Job:
    """The job before it was known how it ends."""
    return msgspec.structs.replace(
        job, status=status, native_status=str(status), started_at=started_at, ended_at=None, percent=None,
        frames=None, message=None, error=None, alert=None, passed="", written_at=None, updated_at=None,
    )  # fmt: skip
