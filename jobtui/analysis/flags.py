"""Cheap judgements on one job record: what about it should be seen, and what it waits for.

Only the record and the time are looked at, so every verdict here is a "may be"; what really happened is for
the logs to tell. The traps these rules know are those of a job supervisor whose records are not heartbeats: a
job whose agent never started stays `pending` without a word, and after a crash a record stays live for ever.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum

from jobtui.analysis.time_words import age
from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.jobs import Job, JobStatus
from jobtui.model.slurm import SYSTEM as SLURM


class Flag(StrEnum):
    """What about a job should be seen."""

    NO_PROGRESS = "no_progress"
    """Pending without saying why: its agent may never have started."""
    OVER_LIMIT = "over_limit"
    """Runs longer than it may."""
    EXCEPTION = "exception"
    """The supervisor failed while the job waited."""
    STALE = "stale"
    """Live, and not written for so long that what wrote it may be gone."""
    NEVER_STARTS = "never_starts"
    """Waits for what cannot come, so that it will not begin by itself."""
    LONG_WAIT = "long_wait"
    """Waits for a slot for long."""
    TIME_LIMIT = "time_limit"
    """Was canceled because it took too long."""
    ALERT = "alert"
    """Completed with a warning to its user."""
    UNKNOWN_STATUS = "unknown_status"
    """Has a status that jobtui does not know."""
    QUASI = "quasi"
    """No simulation, only the record of a compute call."""


LATE = "late"
"""The flag of a job that takes longer than is usual here, which its record alone does not tell."""
AGENT_START_S = 20.0
"""An agent that has not answered by then never will: the supervisor gives up after 5 to 15 s."""
LONG_WAIT_S = 600.0
LIMITS_S: Mapping[str, float] = {"sequential": 360.0, "parallel": 3600.0}
"""How long a job may run, by mode, as the supervisor is delivered; no limit for the others."""
PAID_PARALLEL_LIMIT_S = 7200.0
PAID_PLANS = frozenset({"premium", "enterprise"})
LIMIT_GRACE_S = 60.0
"""How long the supervisor may take to cancel what is over its limit."""
STALE_S: Mapping[str, float] = {"sequential": 3600.0, "parallel": 4 * 3600.0, "sbatch": 3 * 86400.0}
"""After how long without a word a live record is suspect, by mode."""

TELL_THEMSELVES = frozenset({"balsam", "slurm", "condor", "jobsub"})
"""Systems whose jobs wait and run for long as a matter of course; `alert` tells of one that is stuck."""

_SLOTS = (
    ("await=op_slot", "another op of this user"),
    ("await=run_dir_slot", "another op in its run directory"),
    ("await=cpu_slot", "CPU slot"),
    ("another sim", "another op of this user"),
    ("sim state", "another op in its run directory"),
    ("cpu", "CPU slot"),
)
"""What the wait messages of all versions of the supervisor mean."""
_EXCEPTION = "Exception: "


def flags_of(job: Job, now: Nanos) -> tuple[str, ...]:
    """The flags of a job, the gravest first."""
    if job.status.is_live:
        return _live_flags(job, now)
    if job.alert is None and job.limit_s is None and not job.is_quasi and job.status is not JobStatus.UNKNOWN:
        return ()
    return tuple(
        flag
        for flag, applies in (
            (Flag.TIME_LIMIT, job.limit_s is not None and job.status is JobStatus.CANCELED),
            (Flag.ALERT, job.alert is not None),
            (Flag.UNKNOWN_STATUS, job.status is JobStatus.UNKNOWN),
            (Flag.QUASI, job.is_quasi),
        )
        if applies
    )


def needs_person(job: Job, now: Nanos) -> bool:
    """Whether somebody should look at this job."""
    return job.status.is_live and any(applies(job, now) for applies in _GRAVE.values())


def waits_for(job: Job, now: Nanos) -> str | None:
    """What a live job waits for or suffers from, None when there is nothing to say.

    May contain the supervisor's own text: not masked, not safe for a terminal.
    """
    if job.system in TELL_THEMSELVES and job.status.is_live:
        return job.alert or job.message
    if job.status is JobStatus.PENDING:
        return _pending_reason(job, now)
    if job.status is not JobStatus.RUNNING:
        return None
    if (over_s := _over_limit_s(job, now)) > 0:
        return f"{age(over_s)} over its limit"
    if _is_stale(job, now):
        return f"no word for {age(_silent_s(job, now))}"
    return None


def limit_s(job: Job) -> float | None:
    """How long the job may run in seconds, None when there is no limit or none is known."""
    if job.mode == "parallel" and job.plan in PAID_PLANS:
        return PAID_PARALLEL_LIMIT_S
    return LIMITS_S.get(job.mode)


def _live_flags(job: Job, now: Nanos) -> tuple[str, ...]:
    return tuple(
        flag
        for flag, applies in (
            *((flag, applies(job, now)) for flag, applies in _GRAVE.items()),
            (Flag.LONG_WAIT, _waits_long(job, now)),
            (Flag.ALERT, job.alert is not None and job.system not in TELL_THEMSELVES),
            (Flag.QUASI, job.is_quasi),
        )
        if applies
    )


def _pending_reason(job: Job, now: Nanos) -> str:
    if job.message:
        low = job.message.lower()
        if job.message.startswith(_EXCEPTION):
            return job.message
        return next((words for sign, words in _SLOTS if sign in low), job.message)
    if _has_no_progress(job, now):
        return f"no agent answered for {age(_pending_s(job, now))} (limit {age(AGENT_START_S)})"
    return "Slurm or its agent" if job.mode == "sbatch" else "its agent"


def _has_no_progress(job: Job, now: Nanos) -> bool:
    # a pending sbatch job may just be in Slurm's queue, which its record does not tell
    return (
        job.status is JobStatus.PENDING
        and not job.message
        and job.mode in LIMITS_S
        and _pending_s(job, now) > AGENT_START_S
    )


def _is_over_limit(job: Job, now: Nanos) -> bool:
    return _over_limit_s(job, now) > LIMIT_GRACE_S


def _has_exception(job: Job, now: Nanos) -> bool:
    return (
        job.system not in TELL_THEMSELVES and job.message is not None and job.message.startswith(_EXCEPTION)
    )


def _waits_long(job: Job, now: Nanos) -> bool:
    waits = job.status is JobStatus.PENDING and bool(job.message) and job.system not in TELL_THEMSELVES
    return waits and _pending_s(job, now) > LONG_WAIT_S


def _pending_s(job: Job, now: Nanos) -> float:
    since = job.queued_at if job.queued_at is not None else _last_word(job)
    return 0.0 if since is None else seconds_between(since, now)


def _over_limit_s(job: Job, now: Nanos) -> float:
    """Seconds beyond the limit, negative or zero when within."""
    limit = limit_s(job)
    if job.status is not JobStatus.RUNNING or limit is None or job.started_at is None:
        return 0.0
    return seconds_between(job.started_at, now) - limit


def _is_stale(job: Job, now: Nanos) -> bool:
    if job.system in TELL_THEMSELVES:
        return job.alert is not None and not _never_starts(job, now)
    return _silent_s(job, now) > STALE_S.get(job.mode, float("inf"))


def _never_starts(job: Job, now: Nanos) -> bool:
    return job.system == SLURM and job.status is JobStatus.PENDING and job.alert is not None


def _silent_s(job: Job, now: Nanos) -> float:
    last = _last_word(job)
    return 0.0 if last is None else seconds_between(last, now)


def _last_word(job: Job) -> Nanos | None:
    """The latest time the record names."""
    times = (job.written_at, job.updated_at, job.started_at, job.queued_at)
    return max((at for at in times if at is not None), default=None)


_GRAVE: Mapping[Flag, Callable[[Job, Nanos], bool]] = {
    Flag.NO_PROGRESS: _has_no_progress,
    Flag.OVER_LIMIT: _is_over_limit,
    Flag.EXCEPTION: _has_exception,
    Flag.STALE: _is_stale,
    Flag.NEVER_STARTS: _never_starts,
}
"""The flags of live jobs that need a person."""
