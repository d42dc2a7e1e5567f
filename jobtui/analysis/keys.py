"""Join keys: two records of different systems that share a key are about one job.

They find the Slurm job as which a job of Sirepo runs, and the other way round. Sirepo's agent on a cluster
writes down the number that sbatch returned (`sbatch_id`). It submits in the run directory, whose last part is
the job's id in Sirepo, so Slurm's record alone is enough too.
"""

from collections.abc import Iterable, Iterator
from enum import Enum, auto
from typing import NamedTuple

from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.ids import JobId, answers_to
from jobtui.model.jobs import SLURM, Job, JobStatus

OF_SIREPO = "sirepo:"
"""The beginning of the tag of a job that Sirepo submitted; its id in Sirepo follows."""
CLUSTER_MODE = "sbatch"


class Space(Enum):
    JOB = auto()
    SUBMITTED_BY = auto()
    SCHEDULER = auto()
    TRACE = auto()


ENDS = frozenset({JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELED})
POLLED_S = 90.0
"""How long Sirepo's agent may take to see a change in Slurm: it asks every 15 s, every 60 s in 2020."""
EARLY_S = 60.0
"""How much earlier than in Sirepo's record a job may have been submitted: two clocks."""


class Key(NamedTuple):
    """An id of a record: its space and its text."""

    space: Space
    id: str


def keys_of(job: Job) -> Iterator[Key]:
    """The keys of a record: its id, the job of Sirepo that submitted it, its scheduler's ids, its trace."""
    yield Key(Space.JOB, job.id)
    if job.system == SLURM:
        submitters = (tag for tag in job.tags.split() if tag.startswith(OF_SIREPO))
        yield from (Key(Space.SUBMITTED_BY, tag.removeprefix(OF_SIREPO)) for tag in submitters)
    yield from (Key(Space.SCHEDULER, number) for number in job.allocation.split())
    if job.trace:
        yield Key(Space.TRACE, job.trace)


def sirepo_of(job: Job) -> JobId | None:
    return next((JobId(key.id) for key in keys_of(job) if key.space is Space.SUBMITTED_BY), None)


def slurm_of(job: Job | None, jobs: Iterable[Job], noted: str | None = None) -> Job | None:
    """The Slurm job of the latest run of a job of Sirepo; `noted` is its number, if that is known.

    None if there is none, or if several on different clusters fit.
    """
    if job is None or job.mode != CLUSTER_MODE:
        return None
    submitted = Key(Space.SUBMITTED_BY, job.id)
    every = [one for one in jobs if one.system == SLURM]
    of_dir = [one for one in every if submitted in keys_of(one) and _may_be_of(one, job)]
    if noted is not None:
        numbered = [one for one in every if one.allocation.split()[:1] == [noted]]
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
    """Whether both had time to learn of the last change of the other."""
    times = (slurm.updated_at, job.written_at, job.updated_at)
    latest = max((at for at in times if at is not None), default=None)
    return latest is None or seconds_between(latest, now) > POLLED_S


def slurm_words(slurm: Job) -> str:
    """The state of the Slurm job in its own words: not masked, not safe for a terminal."""
    number = slurm.id.partition("/")[2]
    waits = slurm.alert or slurm.message if slurm.status is JobStatus.PENDING else None
    why = slurm.error or (f"waits for {waits}" if waits else "")
    return f"Slurm {number} {slurm.native_status}{f': {why}' if why else ''}"
