"""A job's changes of state grouped by run, and why one failed. For Balsam and Slurm."""

from collections.abc import Iterable

from jobtui.model.changes import StateChange, in_order
from jobtui.model.jobs import JobStatus
from jobtui.model.slurm import STATUSES
from jobtui.model.tables import tables_of

RUNNING = "RUNNING"
RUN_ERROR = "RUN_ERROR"
FAILED = "FAILED"
BEFORE_RUN = frozenset({*tables_of("jobtui.model", "states")["balsam"]["pending"], "PENDING"})
FAILURES = frozenset({FAILED, *(state for state, status in STATUSES.items() if status is JobStatus.FAILED)})
MESSAGE_CHARACTERS = 2_000


def by_run(changes: Iterable[StateChange]) -> list[tuple[StateChange, ...]]:
    """The changes of one job, those of each run together, oldest first; none where there are none.

    In the order in which the system learnt of them, which counts more than its reporters' clocks. A run
    begins where the job comes into line, and the next when it is in line or runs once more.
    """
    runs: list[list[StateChange]] = []
    has_run = False
    for change in in_order(changes):
        is_next = has_run and (change.after in BEFORE_RUN or change.after == RUNNING)
        if is_next or not runs:
            runs.append([])
            has_run = False
        has_run = has_run or change.after == RUNNING
        runs[-1].append(change)
    return [tuple(run) for run in runs]


def last_error(changes: Iterable[StateChange]) -> StateChange | None:
    """The error of the last run, whose detail has the end of its output; None if that had none."""
    last = (one for run in by_run(changes)[-1:] for one in reversed(run))
    return next((one for one in last if one.after == RUN_ERROR), None)


def error_of(change: StateChange) -> str | None:
    """Why a run failed, by its event: the return code and the end of its output, or what FAILED says.

    Outside text: not masked, not safe for a terminal.
    """
    detail = change.detail or {}
    if change.after == RUN_ERROR and "returncode" in detail:
        tail = str(detail.get("error") or "").strip()
        head = f"return code {detail['returncode']}"
        rest = tail.removeprefix(head).lstrip(": ")  # a launcher may have said it already
        return f"{head}{': ' if rest else ''}{rest}"[:MESSAGE_CHARACTERS]
    if change.after in FAILURES:
        words = dict.fromkeys(str(detail[key]) for key in ("message", "exception") if detail.get(key))
        return ": ".join(words)[:MESSAGE_CHARACTERS] or None
    return None
