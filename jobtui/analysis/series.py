"""Step functions of time: y[i] holds from x[i] until x[i+1]; before x[0] it is 0."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from jobtui.model.clock import Nanos

DIGITS = 9
"""Sums of thirds and sixty-fourths of nodes leave dust behind; what is below this is dust."""

Delta = tuple[Nanos, float]


class Series(NamedTuple):
    """One series of a report. `notes` say in words what was estimated or left out to make it."""

    name: str
    unit: str
    x: Sequence[Nanos]
    y: Sequence[float]
    notes: tuple[str, ...] = ()

    def at(self, time: Nanos) -> float:
        """The value that holds at a time."""
        place = bisect_right(self.x, time)
        return self.y[place - 1] if place else 0.0


class Window(NamedTuple):
    """The stretch of time that is asked about; None where it has no end."""

    since: Nanos | None = None
    until: Nanos | None = None

    def clip(self, time: Nanos) -> Nanos:
        """The time in the window that is nearest to one."""
        if self.since is not None and time < self.since:
            return self.since
        return self.until if self.until is not None and time > self.until else time


def accumulate(deltas: Iterable[Delta], window: Window) -> tuple[list[Nanos], list[float]]:
    """The running sum of deltas in a window, one point for each time at which it may change.

    What comes before the window counts from its beginning on.
    """
    times: list[Nanos] = []
    values: list[float] = []
    total = 0.0
    in_window = ((window.clip(time), delta) for time, delta in deltas if not _is_after(time, window))
    for time, group in groupby(sorted(in_window), key=itemgetter(0)):
        total += sum(delta for _, delta in group)
        times.append(time)
        values.append(round(total, DIGITS))
    return times, values


def _is_after(time: Nanos, window: Window) -> bool:
    return window.until is not None and time > window.until
