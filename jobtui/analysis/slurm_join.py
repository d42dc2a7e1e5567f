"""Which job of Slurm a job of Sirepo runs as, and the other way round.

Sirepo's agent on a cluster notes the number that sbatch gave it (`sbatch_id`); and it submits in the run
directory, whose last part is the job's id in Sirepo, so that Slurm's record alone tells it too.
"""

from collections.abc import Iterable

from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobStatus
from jobtui.model.servers import answers_to
from jobtui.model.slurm import SYSTEM

OF_SIREPO = "sirepo:"
"""The tag of a job that Sirepo submitted begins so; its id there follows."""
CLUSTER_MODE = "sbatch"
ENDS = frozenset({JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELED})
"""How a job may have ended."""
POLLED_S = 90.0
"""How long Sirepo's agent may take to see what Slurm did: it asks every 15 s, every 60 s in 2020."""
EARLY_S = 60.0
"""How much earlier than in Sirepo's record a job may have been submitted: two clocks."""


def sirepo_of(job: Job) -> JobId | None:
    """The id in Sirepo of a job that it submitted, None for any other."""
    found = next((tag for tag in job.tags.split() if tag.startswith(OF_SIREPO)), None)
    return JobId(found.removeprefix(OF_SIREPO)) if found is not None and job.system == SYSTEM else None


def slurm_of(job: Job | None, jobs: Iterable[Job], noted: str | None = None) -> Job | None:
    """The Slurm job of the latest run of a job of Sirepo; `noted` is its number where that is known.

    None where there is none, or several on different clusters and nothing tells which.
    """
    if job is None or job.mode != CLUSTER_MODE:
        return None
    tag = f"{OF_SIREPO}{job.id}"
    every = [one for one in jobs if one.system == SYSTEM]
    of_dir = [one for one in every if tag in one.tags.split() and _may_be_of(one, job)]
    if noted is not None:
        numbered = [one for one in every if one.allocation.partition(" ")[0] == noted]
        both = [one for one in numbered if one in of_dir]
        there = [one for one in numbered if job.host and answers_to(one.source, job.host)]
        found = both or there or numbered
        return found[0] if len(found) == 1 else None
    return max(of_dir, key=lambda one: one.queued_at or 0, default=None)


def _may_be_of(one: Job, job: Job) -> bool:
    """Whether a Slurm job was submitted for the latest run, and not for an earlier one."""
    if one.queued_at is None or job.queued_at is None:
        return True
    return seconds_between(one.queued_at, job.queued_at) <= EARLY_S


def is_polled(job: Job, slurm: Job, now: Nanos) -> bool:
    """Whether both have had the time to hear of each other since either changed."""
    times = (slurm.updated_at, job.written_at, job.updated_at)
    latest = max((at for at in times if at is not None), default=None)
    return latest is None or seconds_between(latest, now) > POLLED_S


def slurm_words(slurm: Job) -> str:
    """How the Slurm job stands, in its own words: not masked, not safe for a terminal."""
    number = slurm.id.partition("/")[2]
    waits = slurm.alert or slurm.message if slurm.status is JobStatus.PENDING else None
    why = slurm.error or (f"waits for {waits}" if waits else "")
    return f"Slurm {number} {slurm.native_status}{f': {why}' if why else ''}"
