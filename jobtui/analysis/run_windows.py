"""Which ops and lines belong to which run of a job: by the time from its submission to that of the next."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from jobtui.model.clock import SECOND, Nanos
from jobtui.model.jobs import Run
from jobtui.model.ops import Op, Unlinked

SLACK = 2 * SECOND
"""A request is logged shortly before the record says that its run was queued, and logs cut off fractions."""


class Window(NamedTuple):
    """From `begin` to before `end`; None where there is no bound."""

    begin: Nanos | None = None
    end: Nanos | None = None

    def holds(self, at: Nanos | None) -> bool:
        """Whether a time is in it; what has no time is in every window."""
        if at is None:
            return True
        return (self.begin is None or at >= self.begin) and (self.end is None or at < self.end)


def window_of(runs: Sequence[Run], number: int) -> Window:
    """The time of the run with this number; what came before the first run belongs to it."""
    starts = [(run.number, _start(run)) for run in runs]
    begin = next((at for known, at in starts if known == number), None)
    end = next((at for known, at in starts if known > number and at is not None), None)
    is_first = all(known >= number for known, _ in starts)
    return Window(None if is_first else begin, end)


def _start(run: Run) -> Nanos | None:
    at = run.queued_at if run.queued_at is not None else run.started_at
    return None if at is None else Nanos(at - SLACK)


def ops_in(window: Window, ops: Iterable[Op]) -> tuple[Op, ...]:
    """The ops that were made in it."""
    return tuple(op for op in ops if window.holds(began_at(op)))


def unlinked_in(window: Window, lines: Iterable[Unlinked]) -> tuple[Unlinked, ...]:
    """The lines that were written in it."""
    return tuple(line for line in lines if window.holds(line.step.at))


def began_at(op: Op) -> Nanos | None:
    """When an op was made, or the first time that is known of it."""
    if op.created_at is not None:
        return op.created_at
    return next((step.at for step in op.steps if step.at is not None), None)
