"""An op's steps as rows of a timeline: who, what, how long since the start and since the step before."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.ops import Certainty, Component, Op, OpStatus, Step

GAP_S = 5.0
"""A step that comes this many seconds after the one before it, or more, is marked as a gap."""
LEAST_TIMES = 4
"""What comes so often in a row is folded."""
MOST_TOGETHER = 3
"""Up to so many steps that come again and again together are one thing that repeats."""


BAD = re.compile(
    r"\b(error|fail\w*|destroyed|lost|time ?out|time limit|given up|killed|no reply|never|restart\w*"
    r"|exception|run_error|run_timeout)\b",
    re.IGNORECASE,
)
"""Words of a step that somebody looks for."""


class TimelineRow(NamedTuple):
    """One row. Times in seconds are None where a line carries none; `since_prev_s` of the first row too."""

    at: Nanos | None
    from_start_s: float | None
    since_prev_s: float | None
    lane: Component
    text: str
    step: Step
    is_gap: bool
    certainty: Certainty

    @property
    def is_bad(self) -> bool:
        """Whether its words say that something went wrong."""
        return BAD.search(self.text) is not None


def timeline_rows(op: Op, now: Nanos) -> tuple[TimelineRow, ...]:
    """The rows of an op, in the order of its steps. `now` is not needed for ops that have ended."""
    start = next((step.at for step in op.steps if step.at is not None), None)
    rows: list[TimelineRow] = []
    before: Nanos | None = None
    for step in op.steps:
        since = seconds_between(before, step.at) if before is not None and step.at is not None else None
        rows.append(
            TimelineRow(
                at=step.at,
                from_start_s=_since(start, step.at),
                since_prev_s=since,
                lane=step.component,
                text=step.step,
                step=step,
                is_gap=since is not None and since >= GAP_S,
                certainty=step.certainty,
            )
        )
        before = step.at if step.at is not None else before
    return tuple(rows)


class Fold(NamedTuple):
    """Rows from `first` to `last` that are the same `together` steps, so many `times`.

    `longest_s` is the longest wait between two of them, None where no line carries a time.
    """

    first: int
    last: int
    together: int
    times: int
    longest_s: float | None


def folds_in(rows: Sequence[TimelineRow]) -> Iterator[Fold]:
    """What repeats in the rows, from the first on; never anything that went wrong.

    What was found stays as it is when rows are added at the end, but for the last fold, which may grow.
    """
    at = 0
    while at < len(rows):
        fold = max((_fold_at(rows, at, each) for each in range(1, MOST_TOGETHER + 1)), key=_extent)
        if fold.times >= LEAST_TIMES:
            yield fold
            at = fold.last + 1
        else:
            at += 1


def _extent(fold: Fold) -> tuple[bool, int]:
    return fold.times >= LEAST_TIMES, fold.last


def _fold_at(rows: Sequence[TimelineRow], first: int, together: int) -> Fold:
    """How often the next so many rows come, whatever that is."""
    pattern = rows[first : first + together]
    end = first
    if not any(row.is_bad for row in pattern):
        while end < len(rows) and _same(rows[end], pattern[(end - first) % len(pattern)]):
            end += 1
    times = (end - first) // together
    last = first + times * together - 1
    waits = [row.since_prev_s for row in rows[first + 1 : last + 1] if row.since_prev_s is not None]
    return Fold(first, last, together, times, max(waits, default=None))


def _same(one: TimelineRow, other: TimelineRow) -> bool:
    return (one.lane, one.text) == (other.lane, other.text)


def _since(start: Nanos | None, at: Nanos | None) -> float | None:
    return None if start is None or at is None else seconds_between(start, at)


def op_duration_s(op: Op, now: Nanos) -> float | None:
    """Seconds from an op's creation (its first known time) to its end, or to now while it is open."""
    start = op.created_at if op.created_at is not None else next((s.at for s in op.steps if s.at), None)
    if start is None:
        return None
    if op.status.is_open:
        return max(0.0, seconds_between(start, now))
    end = op.ended_at if op.ended_at is not None else op.replied_at
    return None if end is None else max(0.0, seconds_between(start, end))


def waits_since(op: Op) -> Nanos | None:
    """When an open op passed its last step; None when it has ended or no line carries a time."""
    if not op.status.is_open or op.status is OpStatus.REPLIED:
        return None
    return next((step.at for step in reversed(op.steps) if step.at is not None), None)
