"""How a run stands on its cluster, in words. Safe to show."""

from jobtui.analysis.slurm_join import slurm_words
from jobtui.model.cluster import SbatchStatus
from jobtui.model.jobs import Job, JobStatus
from jobtui.render.json_output import Document, text_or_null, time_or_null
from jobtui.render.text import show


def cluster_words(status: SbatchStatus | None, slurm: Job | None = None) -> str:
    """Its id in Slurm and its state there: Slurm's own word, else what the agent noted last."""
    if slurm is not None:
        noted = (
            f" (its agent noted {show(status.state)})"
            if status is not None and _differ(status, slurm)
            else ""
        )
        return f"{show(slurm_words(slurm))}{noted}"
    if status is None:
        return ""
    number = f"Slurm {show(status.slurm_id)}" if status.slurm_id else "Slurm"
    return f"{number} {show(status.state)}"


def _differ(status: SbatchStatus, slurm: Job) -> bool:
    said = {"error": JobStatus.FAILED}.get(status.state)
    return slurm.status != (said or status.state)


def joined_words(job_id: str, job: Job | None) -> str:
    """The job of Sirepo that a Slurm job is, and how it stands there."""
    return f"Sirepo's {show(job_id)}{f' {job.status.value}' if job is not None else ''}"


def is_of_newest_run(status: SbatchStatus, job: Job) -> bool:
    """Whether what was noted is about the run that the record is about, and not one before."""
    return status.submitted_at is None or job.queued_at is None or status.submitted_at == job.queued_at


def cluster_record(status: SbatchStatus, directory: str) -> Document:
    """What was noted, as in `show`."""
    return {
        "slurm_id": text_or_null(status.slurm_id),
        "state": text_or_null(status.state),
        "submitted_at": time_or_null(status.submitted_at),
        "started_at": time_or_null(status.started_at),
        "percent": status.percent,
        "directory": text_or_null(directory),
    }
