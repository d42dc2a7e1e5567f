"""The runs of a Balsam job out of its events. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from jobtui.backends.balsam.rows import STATUSES
from jobtui.model.changes import StateChange
from jobtui.model.jobs import Job, JobStatus, Run
from jobtui.model.state_runs import RUNNING, by_run, error_of

ENDS: Mapping[str, JobStatus] = {
    "RUN_DONE": JobStatus.COMPLETED,
    "RUN_ERROR": JobStatus.FAILED,
    "RUN_TIMEOUT": JobStatus.CANCELED,
    "FAILED": JobStatus.FAILED,
    "JOB_FINISHED": JobStatus.COMPLETED,
}
"""How a run ended, by the state after it."""


def runs_of(changes: Iterable[StateChange], job: Job) -> tuple[Run, ...]:
    """Every run, oldest first; one that has not begun is the one that the job waits for."""
    runs = by_run(changes)
    return tuple(_run(number, run, job) for number, run in enumerate(runs, 1))


def _run(number: int, own: Sequence[StateChange], job: Job) -> Run:
    start = next((change for change in own if change.after == RUNNING), None)
    left = next((change for change in own if change.before == RUNNING or change.after in ENDS), None)
    errors = [text for change in own if (text := error_of(change)) is not None]
    last = own[-1]
    return Run(
        number=number,
        status=STATUSES.get(last.after, JobStatus.UNKNOWN)
        if left is None
        else ENDS.get(left.after, JobStatus.UNKNOWN),
        native_status=last.after if left is None else left.after,
        queued_at=own[0].at,
        started_at=None if start is None else start.at,
        ended_at=None if left is None else left.at,
        updated_at=last.at,
        error=errors[-1] if errors else None,
        message=job.message if left is None else _said(left),
    )


def _said(change: StateChange) -> str | None:
    text = (change.detail or {}).get("message")
    return text if isinstance(text, str) and text else None
