"""Which part of a trace is looked at: all of it as it grows, or a stretch that stays."""

from collections.abc import Sequence

from jobtui.analysis.traces.axis import Axis
from jobtui.analysis.traces.waits import Wait

LEAST_NS = 100
"""No shorter stretch is looked at."""
MARGIN = 20
"""A span that is looked at has one part in so many of it on either side."""


class TraceWindow:
    """Times of a trace, nanoseconds since the epoch."""

    def __init__(self) -> None:
        self._begin, self._end = 0, 1
        self._chosen: tuple[int, int] | None = None

    def set_trace(self, begin: int, end: int) -> None:
        """From when to when the trace goes. A stretch that was chosen stays."""
        self._begin, self._end = begin, max(end, begin + 1)

    @property
    def is_whole(self) -> bool:
        """Whether all of it is looked at."""
        return self._chosen is None

    def axis(self, cells: int, waits: Sequence[Wait], wait_cells: int) -> Axis:
        """What is looked at on so many cells."""
        low, high = self._chosen or (self._begin, self._end)
        return Axis(low, high, cells, waits, wait_cells)

    def show_whole(self) -> None:
        """Look at all of it."""
        self._chosen = None

    def show(self, start: int, end: int) -> None:
        """Look at a stretch, and a little around it."""
        margin = max(LEAST_NS, end - start) // MARGIN
        self._choose(start - margin, end + margin)

    def zoom(self, axis: Axis, factor: float, focus: int) -> None:
        """Look at less (below 1) or more around a time, as it is seen on the axis."""
        centre, halves = axis.half(focus), 2 * axis.cells
        if factor < 1:
            first = int(centre * (1 - factor))
            self._choose(axis.time(first), axis.time(first + max(1, int(halves * factor))))
        else:
            more = int((axis.high - axis.low) * (factor - 1))
            before = more * centre // halves
            self._choose(axis.low - before, axis.high + more - before)

    def pan(self, axis: Axis, part: float) -> None:
        """Look at what is earlier (below 0) or later by a part of what is seen."""
        length = axis.high - axis.low
        seen = axis.time(int(2 * axis.cells * abs(part))) - axis.low
        step = min(seen, self._end - axis.high) if part > 0 else -min(seen, axis.low - self._begin)
        if step:
            self._choose(axis.low + step, axis.low + step + length)

    def _choose(self, low: int, high: int) -> None:
        low, high = max(low, self._begin), min(high, self._end)
        if high - low < LEAST_NS:
            high = low + LEAST_NS
        self._chosen = None if (low, high) == (self._begin, self._end) else (low, high)
