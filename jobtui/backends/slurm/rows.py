"""Jobs of Slurm as jobs of every system, and in words why they wait or ended. Pure."""

import signal
from sys import intern

from jobtui.model.clock import Nanos
from jobtui.model.ids import JobId, jid_of_run_dir, system_job_id
from jobtui.model.jobs import Job, JobStatus
from jobtui.model.slurm import SYSTEM, Exit, SlurmJob
from jobtui.model.slurm_reasons import ENDED, reason_of

OF_SIREPO = "sirepo"
"""The tag of a job that Sirepo submitted, with the id that it has there."""
BY_SHELL = 128
"""A shell gives this and the signal's number as exit code when a signal ended the last command."""
OUT_OF_MEMORY = 125
"""What Slurm writes in place of a signal for a job that was out of memory."""

_PHASES = {
    "COMPLETING": "its nodes are being cleared",
    "CONFIGURING": "its nodes are being made ready",
    "POWER_UP_NODE": "its nodes are being switched on",
    "RESIZING": "it is being resized",
    "SIGNALING": "it is being sent a signal",
    "STAGE_OUT": "its data is taken out of the burst buffer",
    "STOPPED": "it was stopped by a signal and keeps its nodes",
    "SUSPENDED": "it is suspended",
}
"""What is to be said of a job that has its nodes and does not simply run."""

_WHY = {
    "BOOT_FAIL": "its nodes did not start",
    "DEADLINE": "its deadline was over",
    "LAUNCH_FAILED": "it could not be launched",
    "NODE_FAIL": "a node of it failed",
    "OUT_OF_MEMORY": "out of memory",
    "PREEMPTED": "preempted: a job of higher priority took its nodes",
    "RECONFIG_FAIL": "a node of it could not be set up anew",
}
"""Why a job ended in such a state."""


def key_of(job: SlurmJob) -> str:
    """What names a job as long as it is there: the rest of an array has the array's own number."""
    return job.array if job.is_rest and job.array else job.id


def job_id_of(job: SlurmJob, label: str = SYSTEM) -> JobId:
    """The id of a job; `label` tells several clusters apart."""
    return system_job_id(label, key_of(job))


def job_of(job: SlurmJob, source: str, label: str = SYSTEM, left: str = "") -> Job:
    """The job as every system has it: its app is the partition, its model the id as Slurm writes it.

    `left` says in words that it left the queue unseen.
    """
    status = JobStatus.UNKNOWN if left else job.status
    reason = reason_of(job.reason or "None")
    waits = status is JobStatus.PENDING
    sirepo = jid_of_run_dir(job.directory) if job.directory else None
    return Job(
        id=job_id_of(job, label),
        system=SYSTEM,
        status=status,
        native_status=intern(job.state),
        source=source,
        owner=intern(job.user),
        name=job.name or None,
        app=intern(job.partition),
        model=job.id,
        mode="array" if job.array else "",
        queued_at=job.submitted_at,
        started_at=job.started_at,
        updated_at=_latest(job),
        ended_at=None if left else job.ended_at,
        runs=job.restarts + (job.started_at is not None),
        message=left or _message(job),
        error=error_of(job),
        alert=reason.words if waits and reason.is_stuck else None,
        limit_s=job.limit_s if job.state == "TIMEOUT" else None,
        host=job.nodes or None,
        plan=intern(job.qos) or None,
        tags=f"{OF_SIREPO}:{sirepo}" if sirepo else "",
        allocation=" ".join(dict.fromkeys(filter(None, (job.raw, job.array)))),
        reason=intern(job.reason),
        exit=str(job.exit) if job.exit is not None else "",
    )


def _latest(job: SlurmJob) -> Nanos | None:
    times = (job.ended_at, job.started_at, job.submitted_at)
    return next((at for at in times if at is not None), None)


def _message(job: SlurmJob) -> str | None:
    """What a live job waits for or does, or who canceled it."""
    if job.status is JobStatus.PENDING:
        return reason_of(job.reason or "None").words
    if job.status is JobStatus.CANCELED:
        return canceled_words(job)
    return _PHASES.get(job.state)


def canceled_words(job: SlurmJob) -> str:
    """Who canceled it, as far as that is told."""
    if not job.canceled_by:
        return "canceled"
    by = "root" if job.canceled_by == "0" else job.canceled_by
    return f"canceled by {f'user id {by}' if by.isdecimal() else by}"


def error_of(job: SlurmJob) -> str | None:
    """Why it failed, in words; None when it did not."""
    if job.status is not JobStatus.FAILED:
        return None
    if job.state == "TIMEOUT":
        return f"over its time limit of {job.limit_s / 60:g} min" if job.limit_s else "over its time limit"
    if job.state in _WHY:
        return _WHY[job.state]
    return exit_words(job.exit) or ENDED.get(job.reason) or "no reason is given"


def exit_words(exit_: Exit | None) -> str:
    """How a program ended, "" when it did well or nothing is told."""
    if exit_ is None or not any(exit_):
        return ""
    if exit_.signal and exit_.signal != OUT_OF_MEMORY:
        return f"killed by signal {signal_name(exit_.signal)}"
    if exit_.code > BY_SHELL and (name := _name_of(exit_.code - BY_SHELL)):
        return f"exit code {exit_.code}: killed by signal {exit_.code - BY_SHELL} ({name})"
    return f"exit code {exit_.code}" if exit_.code else ""


def signal_name(number: int) -> str:
    """A signal by its number and name."""
    name = _name_of(number)
    return f"{number} ({name})" if name else str(number)


def _name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return ""
