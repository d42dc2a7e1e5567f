"""A job of HTCondor as every system has it, out of its life."""

from collections.abc import Mapping

from jobtui.model.condor import HELD, IDLE, REMOVED, RUNNING
from jobtui.model.condor_life import CondorLife
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobStatus

CONDOR, JOBSUB = "condor", "jobsub"
NO_REASON = "no reason is given"


def job_of(job_id: JobId, life: CondorLife, source: str) -> Job:
    """The job as its life is by now."""
    values, status = life.values, life.status
    failed = status is JobStatus.FAILED and life.exit is not None
    return Job(
        id=job_id,
        system=JOBSUB if life.is_jobsub else CONDOR,
        status=status,
        native_status=life.state or "unknown",
        source=source,
        owner=values.get("Owner", ""),
        name=_name_of(values),
        app=values.get("Jobsub_Group", ""),
        queued_at=life.queued_at,
        started_at=next((run.started_at for run in reversed(life.runs)), None),
        updated_at=life.updated_at,
        ended_at=life.ended_at,
        runs=life.starts,
        message=_message(life),
        error=str(life.exit) if failed else None,
        alert=_alert(life),
        host=life.host,
        tags=f"DAGNodeName:{node}" if (node := values.get("DAGNodeName")) else "",
        trace=next(iter(life.traces), ""),
    )


def _name_of(values: Mapping[str, str]) -> str | None:
    """What is run: jobsub's name of it, else that of the executable."""
    exe = values.get("JobsubCmd") or values.get("exe") or values.get("Cmd", "").rpartition("/")[2]
    return exe or None


def _alert(life: CondorLife) -> str | None:
    """What of a live job needs a person."""
    if life.state == HELD:
        return f"held: {life.reason or NO_REASON}"
    return "its execute host is disconnected" if life.is_disconnected and life.state == RUNNING else None


def _message(life: CondorLife) -> str | None:
    """What is to be said of it beside its state."""
    if life.state == REMOVED:
        return life.reason or None
    again = f"run {life.lost + 1}, after {life.lost} that did not end well" if life.lost else None
    return again if life.state in (IDLE, RUNNING) else None
