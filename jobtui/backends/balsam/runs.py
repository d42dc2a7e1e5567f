"""The runs of a Balsam job out of its events: each entry into RUNNING begins one. Pure."""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from jobtui.backends.balsam.rows import RUNNING, STATUSES, error_of
from jobtui.model.changes import StateChange
from jobtui.model.clock import Nanos
from jobtui.model.jobs import Job, JobStatus, Run

ENDS = {
    "RUN_DONE": JobStatus.COMPLETED,
    "RUN_ERROR": JobStatus.FAILED,
    "RUN_TIMEOUT": JobStatus.CANCELED,
    "FAILED": JobStatus.FAILED,
    "JOB_FINISHED": JobStatus.COMPLETED,
}
"""How a run ended, by the state after it."""
BEFORE_RUN = frozenset({"PREPROCESSED", "RESTART_READY", "READY", "STAGED_IN", "AWAITING_PARENTS"})


def runs_of(changes: Iterable[StateChange], job: Job) -> tuple[Run, ...]:
    """Every run, oldest first, by the order in which the server learnt of changes.

    A job that never ran has one: that which it waits for, or which its failure kept from it.
    """
    own = sorted(changes, key=lambda change: change.id)
    runs: list[Run] = []
    begins = [at for at, change in enumerate(own) if change.after == RUNNING]
    for number, (at, end) in enumerate(pairwise([*begins, len(own)]), 1):
        before = begins[number - 2] if number > 1 else -1
        runs.append(_run(number, own[at:end], _queued_at(own[before + 1 : at], own[at])))
    waiting = own[-1] if own and own[-1].after in BEFORE_RUN else None
    if not begins or waiting is not None:
        runs.append(_not_begun(len(runs) + 1, own, job, waiting))
    return tuple(runs)


def _queued_at(before: Sequence[StateChange], start: StateChange) -> Nanos | None:
    """When a run came into line: with the job, or when it was to run again."""
    return next((change.at for change in before if change.after in BEFORE_RUN), None)


def _run(number: int, own: Sequence[StateChange], queued_at: Nanos | None) -> Run:
    """One run: its beginning and all up to the next."""
    left = next((change for change in own[1:] if change.before == RUNNING), None)
    last = own[-1]
    error = next((text for change in reversed(own) if (text := error_of(change)) is not None), None)
    return Run(
        number=number,
        status=JobStatus.RUNNING if left is None else ENDS.get(left.after, JobStatus.UNKNOWN),
        native_status=RUNNING if left is None else left.after,
        queued_at=queued_at,
        started_at=own[0].at,
        ended_at=None if left is None else left.at,
        updated_at=last.at,
        error=error,
        message=None if left is None else _said(left),
    )


def _said(change: StateChange) -> str | None:
    text = (change.detail or {}).get("message")
    return text if isinstance(text, str) and text else None


def _not_begun(number: int, own: Sequence[StateChange], job: Job, waiting: StateChange | None) -> Run:
    is_over = waiting is None and not job.status.is_live
    return Run(
        number=number,
        status=job.status if waiting is None else STATUSES.get(waiting.after, JobStatus.PENDING),
        native_status=job.native_status,
        queued_at=waiting.at if waiting is not None else job.queued_at,
        updated_at=own[-1].at if own else job.updated_at,
        ended_at=job.ended_at if is_over else None,
        error=job.error if is_over else None,
        message=job.message,
    )
