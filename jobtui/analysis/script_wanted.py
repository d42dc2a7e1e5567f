"""Which script is the one of a job: its number in the scheduler, its cluster, and when it was submitted."""

from collections.abc import Mapping

from jobtui.formats.scheduler_ids import parse_wanted
from jobtui.model.cluster import SbatchStatus
from jobtui.model.jobs import Job, JobDetail, JobStatus
from jobtui.model.scripts import Wanted
from jobtui.model.slurm import SYSTEM

NOT_STARTED = frozenset({JobStatus.PENDING, JobStatus.UNKNOWN})


def wanted_of_slurm(job: Job, detail: JobDetail | None = None) -> Wanted | None:
    """The script of a job of Slurm, None when its id is none that Slurm gives."""
    wanted = parse_wanted(job.id)
    if wanted is None or job.system != SYSTEM:
        return None
    record = _table(detail.native.get("slurm")) if detail is not None else {}
    cluster = record.get("cluster")
    times = [run.queued_at for run in detail.runs if run.queued_at is not None] if detail is not None else []
    return wanted._replace(
        cluster=cluster if isinstance(cluster, str) else "",
        submitted_at=min(times, default=job.queued_at),
        is_batch=detail is None or _is_batch(detail),
    )


def wanted_of_sirepo(status: SbatchStatus) -> Wanted | None:
    """The script of a run that Sirepo's agent submitted, by what it noted; None before it was submitted."""
    wanted = parse_wanted(status.slurm_id) if status.slurm_id else None
    return None if wanted is None else wanted._replace(submitted_at=status.submitted_at)


def _is_batch(detail: JobDetail) -> bool:
    """Whether it was submitted with a script, as far as Slurm tells: srun and salloc have none."""
    flag = _table(detail.native.get("scontrol")).get("BatchFlag")
    if isinstance(flag, str) and flag in ("0", "1"):
        return flag == "1"
    steps = _table(detail.native.get("slurm")).get("steps")
    if detail.job.status in NOT_STARTED or not isinstance(steps, list | tuple) or not steps:
        return True
    return any(str(_table(step).get("id")).endswith("batch") for step in steps)


def _table(value: object) -> Mapping[str, object]:
    return value if isinstance(value, Mapping) else {}
