import pytest

from jobtui.analysis.flags import (
    AGENT_START_S,
    LIMIT_GRACE_S,
    Flag,
    flags_of,
    limit_s,
    needs_person,
    waits_for,
)
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobStatus

NOW = Nanos(1_795_207_531 * SECOND)
CPU = "Waiting for CPU resources await=cpu_slot"


def before(seconds: float | None) -> Nanos | None:
    return None if seconds is None else Nanos(NOW - round(seconds * SECOND))


def a_job(
    status: JobStatus,
    mode: str = "parallel",
    *,
    queued: float | None = None,
    started: float | None = None,
    written: float | None = None,
    message: str | None = None,
    plan: str | None = "basic",
    alert: str | None = None,
    limit: float | None = None,
    quasi: bool = False,
) -> Job:
    """A job whose times are seconds before now."""
    return Job(
        id=JobId("EPRSqtUW-IVh7w74d-animation"),
        system="sirepo",
        source="db",
        status=status,
        native_status=status.value,
        mode=mode,
        queued_at=before(queued),
        started_at=before(started),
        written_at=before(written),
        message=message,
        plan=plan,
        alert=alert,
        limit_s=limit,
        is_quasi=quasi,
    )


PENDING, RUNNING, COMPLETED, CANCELED = (
    JobStatus.PENDING,
    JobStatus.RUNNING,
    JobStatus.COMPLETED,
    JobStatus.CANCELED,
)

CASES = [
    # an agent that never started
    (a_job(PENDING, queued=3), (), "its agent"),
    (a_job(PENDING, queued=AGENT_START_S), (), "its agent"),
    (a_job(PENDING, queued=372), (Flag.NO_PROGRESS,), "no agent answered for 6m12s (limit 20s)"),
    (a_job(PENDING, "sequential", queued=21), (Flag.NO_PROGRESS,), "no agent answered for 21s (limit 20s)"),
    (a_job(PENDING, written=60), (Flag.NO_PROGRESS,), "no agent answered for 1m (limit 20s)"),
    (a_job(PENDING), (), "its agent"),
    (a_job(PENDING, queued=-100), (), "its agent"),
    # Slurm's queue looks the same and is no fault
    (a_job(PENDING, "sbatch", queued=5000), (), "Slurm or its agent"),
    (a_job(PENDING, "", queued=5000), (), "its agent"),
    # slots, in the words of all versions
    (a_job(PENDING, queued=60, message=CPU), (), "CPU slot"),
    (a_job(PENDING, queued=700, message=CPU), (Flag.LONG_WAIT,), "CPU slot"),
    (
        a_job(PENDING, queued=60, message="Waiting for another sim op to complete await=op_slot"),
        (),
        "another op of this user",
    ),
    (
        a_job(PENDING, queued=60, message="Waiting for another simulation to complete"),
        (),
        "another op of this user",
    ),
    (
        a_job(PENDING, queued=60, message="Waiting for access to sim state await=run_dir_slot"),
        (),
        "another op in its run directory",
    ),
    (a_job(PENDING, queued=60, message="Something new"), (), "Something new"),
    (
        a_job(PENDING, queued=60, message=f"Exception: boom, while {CPU}"),
        (Flag.EXCEPTION,),
        f"Exception: boom, while {CPU}",
    ),
    # limits
    (a_job(RUNNING, started=3000), (), None),
    (a_job(RUNNING, started=3600 + LIMIT_GRACE_S - 1), (), "59s over its limit"),
    (a_job(RUNNING, started=3840), (Flag.OVER_LIMIT,), "4m over its limit"),
    (a_job(RUNNING, started=3840, plan="premium"), (), None),
    (a_job(RUNNING, started=7440, plan="enterprise"), (Flag.OVER_LIMIT,), "4m over its limit"),
    (a_job(RUNNING, "sequential", started=430, plan="premium"), (Flag.OVER_LIMIT,), "1m10s over its limit"),
    (a_job(RUNNING, "sbatch", started=100_000), (), None),
    (a_job(RUNNING, started=-50), (), None),
    (a_job(RUNNING), (), None),
    # records that nobody writes any more
    (a_job(RUNNING, "sbatch", started=9 * 86400, written=4 * 86400), (Flag.STALE,), "no word for 4d"),
    (a_job(RUNNING, "sbatch", started=9 * 86400, written=86400), (), None),
    (
        a_job(RUNNING, started=90_000, written=89_000),
        (Flag.OVER_LIMIT, Flag.STALE),
        "1d over its limit",
    ),
    # what has ended
    (a_job(COMPLETED, queued=9999, started=9000), (), None),
    (a_job(COMPLETED, alert="mesh is coarse"), (Flag.ALERT,), None),
    (a_job(CANCELED, limit=20.0), (Flag.TIME_LIMIT,), None),
    (a_job(JobStatus.MISSING, quasi=True), (Flag.QUASI,), None),
    (a_job(JobStatus.UNKNOWN), (Flag.UNKNOWN_STATUS,), None),
    (a_job(JobStatus.FAILED, message=CPU), (), None),
]


@pytest.mark.parametrize(("job", "flags", "reason"), CASES)
def test_flags_and_reason(job: Job, flags: tuple[str, ...], reason: str | None) -> None:
    assert flags_of(job, NOW) == flags
    assert waits_for(job, NOW) == reason


@pytest.mark.parametrize(("job", "flags", "reason"), CASES)
def test_who_needs_a_person(job: Job, flags: tuple[str, ...], reason: str | None) -> None:
    grave = {"no_progress", "over_limit", "exception", "stale"}
    assert needs_person(job, NOW) == bool(grave & set(flags))


def test_limits() -> None:
    assert limit_s(a_job(RUNNING)) == 3600
    assert limit_s(a_job(RUNNING, "sbatch")) is None
