"""How a run stands on its cluster, in words. Safe to show."""

from jobtui.model.cluster import SbatchStatus
from jobtui.model.jobs import Job
from jobtui.render.json_output import Document, text_or_null, time_or_null
from jobtui.render.text import show


def cluster_words(status: SbatchStatus) -> str:
    """Its id in Slurm, and the state that the agent noted last."""
    slurm = f"Slurm {show(status.slurm_id)}" if status.slurm_id else "Slurm"
    return f"{slurm} {show(status.state)}"


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
