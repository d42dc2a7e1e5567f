"""Flags of one job record: quick hints about trouble, and what the job waits for.

They use only the record and the time, so each is only a hint; `explain` reads the logs too. A supervisor's
records are no heartbeats: a job whose agent never started stays `pending` without a reason, and after a crash
a record stays live forever.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum

import msgspec

from jobtui.analysis.times import age
from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.jobs import SLURM, Job, JobStatus


class JobContext(msgspec.Struct, frozen=True, kw_only=True):
    """Facts of a job besides its record; without them the values of the record are used.

    `with_agent` gives the job with host and driver as logs tell them, `is_disputed` tells whether sources
    disagree about it, `late_of` how much longer than usual it takes, `time_of` what the clock of its source
    shows. `offset_s` is the time zone of times that are typed.
    """

    with_agent: Callable[[Job], Job] = lambda job: job
    is_disputed: Callable[[Job], bool] = lambda job: False
    late_of: Callable[[Job], str | None] = lambda job: None
    time_of: Callable[[str], Nanos] = lambda source: Nanos(0)
    offset_s: int = 0


class Flag(StrEnum):
    CONTRADICTION = "contradiction"
    NO_PROGRESS = "no_progress"
    """Pending without a reason: its agent may never have started."""
    OVER_LIMIT = "over_limit"
    EXCEPTION = "exception"
    """The supervisor failed while the job waited."""
    STALE = "stale"
    """Live, but not written for so long that its writer may be gone."""
    NEVER_STARTS = "never_starts"
    """Waits for something that cannot come, and will not start by itself."""
    LONG_WAIT = "long_wait"
    TIME_LIMIT = "time_limit"
    ALERT = "alert"
    """Completed with a warning to its user."""
    UNKNOWN_STATUS = "unknown_status"
    QUASI = "quasi"
    """Not a simulation, only the record of a compute call."""


LATE = "late"
"""The flag of a job that takes longer than usual here; the record alone does not show it."""
AGENT_START_S = 60.0
"""No site is known to give its agents more time to start; the supervisor's own limits are 5 to 15 s."""
LONG_WAIT_S = 600.0
LIMITS_S: Mapping[str, float] = {"sequential": 360.0, "parallel": 3600.0}
"""How long a job may run by the supervisor's defaults, by mode; other modes have no limit."""
PAID_PARALLEL_LIMIT_S = 7200.0
PAID_PLANS = frozenset({"premium", "enterprise"})
LIMIT_GRACE_S = 60.0
"""How long the supervisor may take to cancel a job that is over its limit."""
STALE_S: Mapping[str, float] = {"sequential": 3600.0, "parallel": 4 * 3600.0, "sbatch": 3 * 86400.0}
"""After how long without a write a live record is suspect, by mode."""

SLOTS: tuple[tuple[tuple[str, ...], str, str, str], ...] = (
    (("op_slot", "another sim", "op_q"), "op_slot", "another op of this user",
     "another op of the same user has the agent's only op slot"),
    (("run_dir", "sim state"), "run_dir_slot", "another op in its run directory",
     "another op works in its run directory"),
    (("cpu",), "cpu_slot", "CPU slot", "all CPU slots for such runs are taken"),
)  # fmt: skip
"""What parts of texts about waiting mean, for all versions of the supervisor: which slot is waited
for, in short, and in words."""
_EXCEPTION = "Exception: "


def flags_of(job: Job, now: Nanos) -> tuple[str, ...]:
    if differing(job):
        alone = msgspec.structs.replace(job, others=())
        return (Flag.CONTRADICTION, *flags_of(alone, now))
    if job.status.is_live:
        waits = job.status is JobStatus.PENDING and bool(job.message) and job.needs_logs
        found = [flag for flag, applies in _GRAVE.items() if applies(job, now)]
        if waits and _pending_s(job, now) > LONG_WAIT_S:
            found.append(Flag.LONG_WAIT)
    else:
        found = [Flag.TIME_LIMIT] if job.limit_s is not None and job.status is JobStatus.CANCELED else []
    if job.alert is not None and (job.needs_logs or not job.status.is_live):
        found.append(Flag.ALERT)
    if job.status is JobStatus.UNKNOWN:
        found.append(Flag.UNKNOWN_STATUS)
    return (*found, Flag.QUASI) if job.is_quasi else tuple(found)


def differing(job: Job) -> tuple[Job, ...]:
    return tuple(other for other in job.others if _claims(other) != _claims(job)) if job.others else ()


def _claims(job: Job) -> tuple[object, ...]:
    return job.status, job.native_status, job.queued_at, job.runs, job.error


def needs_person(job: Job, now: Nanos) -> bool:
    return job.status.is_live and any(applies(job, now) for applies in _GRAVE.values())


def waits_for(job: Job, now: Nanos) -> str | None:
    """The reason of a live job: what it waits for or what is wrong; None if there is nothing to say.

    May contain the supervisor's own text: not masked, not safe for a terminal.
    """
    if not job.needs_logs and job.status.is_live:
        return job.alert or job.message
    if job.status is JobStatus.PENDING:
        if job.message:
            slot = None if job.message.startswith(_EXCEPTION) else slot_of(job.message)
            return job.message if slot is None else slot[1]
        if _has_no_progress(job, now):
            return f"no agent answered for {age(_pending_s(job, now))}"
        return "Slurm or its agent" if job.mode == "sbatch" else "its agent"
    if job.status is not JobStatus.RUNNING:
        return None
    if (over_s := _over_limit_s(job, now)) > 0:
        return f"{age(over_s)} over its limit"
    if _is_stale(job, now):
        return f"no update for {age(_silent_s(job, now))}"
    return None


def limit_s(job: Job) -> float | None:
    """How many seconds the job may run; None if there is no limit or none is known."""
    if job.mode == "parallel" and job.plan in PAID_PLANS:
        return PAID_PARALLEL_LIMIT_S
    return LIMITS_S.get(job.mode)


def slot_of(text: str) -> tuple[str, str, str] | None:
    low = text.lower()
    return next((row[1:] for row in SLOTS if any(sign in low for sign in row[0])), None)


def _has_no_progress(job: Job, now: Nanos) -> bool:
    # a pending sbatch job may be in Slurm's queue, which its record does not say
    return (
        job.status is JobStatus.PENDING
        and not job.message
        and job.mode in LIMITS_S
        and _pending_s(job, now) > AGENT_START_S
    )


def _pending_s(job: Job, now: Nanos) -> float:
    since = job.queued_at if job.queued_at is not None else _last_word(job)
    return 0.0 if since is None else seconds_between(since, now)


def _over_limit_s(job: Job, now: Nanos) -> float:
    limit = limit_s(job)
    if job.status is not JobStatus.RUNNING or limit is None or job.started_at is None:
        return 0.0
    return seconds_between(job.started_at, now) - limit


def _is_stale(job: Job, now: Nanos) -> bool:
    if not job.needs_logs:
        return job.alert is not None and not _never_starts(job, now)
    return _silent_s(job, now) > STALE_S.get(job.mode, float("inf"))


def _never_starts(job: Job, now: Nanos) -> bool:
    return job.system == SLURM and job.status is JobStatus.PENDING and job.alert is not None


def _silent_s(job: Job, now: Nanos) -> float:
    last = _last_word(job)
    return 0.0 if last is None else seconds_between(last, now)


def _last_word(job: Job) -> Nanos | None:
    times = (job.written_at, job.updated_at, job.started_at, job.queued_at)
    return max((at for at in times if at is not None), default=None)


_GRAVE: Mapping[Flag, Callable[[Job, Nanos], bool]] = {
    Flag.NO_PROGRESS: _has_no_progress,
    Flag.OVER_LIMIT: lambda job, now: _over_limit_s(job, now) > LIMIT_GRACE_S,
    Flag.EXCEPTION: lambda job, now: job.needs_logs and (job.message or "").startswith(_EXCEPTION),
    Flag.STALE: _is_stale,
    Flag.NEVER_STARTS: _never_starts,
}
"""Flags of live jobs that need a person."""
