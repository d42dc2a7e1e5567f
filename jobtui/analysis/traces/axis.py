"""The time axis of a trace in cells, and the visible part of it.

A submission takes seconds, its queue hours, the job minutes: to scale, the rest would vanish, so stretches in
which nothing ran are squeezed. Positions are counted in halves of a cell.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from jobtui.analysis.times import ROUND_S
from jobtui.analysis.traces.tree import SpanWait
from jobtui.model.clock import SECOND

WAIT_SHARE = 2
"""All squeezed stretches together take at most one cell in so many."""


class AxisBreak(NamedTuple):
    """A squeezed stretch: its cells, and how long it is."""

    first: int
    cells: int
    duration_ns: int


class Tick(NamedTuple):
    """A mark on the axis: its cell, and how long after `origin_ns` it is.

    `origin_ns` is the beginning of the trace, or the end of the squeezed stretch before, since the beginning.
    """

    cell: int
    after_ns: int
    origin_ns: int


class _Piece(NamedTuple):
    """A stretch of time on half cells."""

    low: int
    high: int
    first: int
    last: int
    is_squeezed: bool


class Axis:
    """Times from `low` to `high`, nanoseconds, on `cells` cells; `waits` have `wait_cells` each."""

    def __init__(
        self, low: int, high: int, cells: int, waits: Sequence[SpanWait] = (), wait_cells: int = 8
    ) -> None:
        self.low, self.high, self.cells = low, max(high, low + 1), max(1, cells)
        inside = [wait for wait in waits if wait.start >= low and wait.end <= self.high]
        scale = (self.high - low) / self.cells
        longer = [wait for wait in inside if wait.duration_ns > wait_cells * scale]
        most = self.cells // (WAIT_SHARE * wait_cells)
        squeezed = sorted(sorted(longer, key=lambda wait: -wait.duration_ns)[:most])
        self._pieces = self._cut(squeezed, wait_cells)
        self._lows = [piece.low for piece in self._pieces]
        self._firsts = [piece.first for piece in self._pieces]

    def half(self, at: int) -> int:
        """The half cell of a time; times before and after have the first and the last."""
        if at <= self.low:
            return 0
        if at >= self.high:
            return 2 * self.cells
        piece = self._pieces[bisect_right(self._lows, at) - 1]
        return piece.first + (at - piece.low) * (piece.last - piece.first) // (piece.high - piece.low)

    def time(self, half: int) -> int:
        half = max(0, min(half, 2 * self.cells))
        piece = self._pieces[max(0, bisect_right(self._firsts, half) - 1)]
        return piece.low + (half - piece.first) * (piece.high - piece.low) // max(1, piece.last - piece.first)

    @property
    def squeezed(self) -> Iterator[AxisBreak]:
        for piece in self._pieces:
            if piece.is_squeezed:
                first, end = piece.first // 2, piece.last // 2
                yield AxisBreak(first, end - first, piece.high - piece.low)

    def ticks(self, begin: int, apart: int) -> Iterator[Tick]:
        """Round times at least `apart` cells from each other, since `begin` or the last squeezed stretch."""
        origin = begin
        for piece in self._pieces:
            if piece.is_squeezed:
                origin = piece.high
                continue
            halves = piece.last - piece.first
            if not halves:
                continue
            step = _round_step((piece.high - piece.low) * 2 * apart // halves)
            at = origin + -(-(piece.low - origin) // step) * step
            while at < piece.high:
                half = piece.first + (at - piece.low) * halves // (piece.high - piece.low)
                yield Tick(half // 2, at - origin, origin - begin)
                at += step

    def _cut(self, waits: Sequence[SpanWait], wait_cells: int) -> list[_Piece]:
        active = self.high - self.low - sum(wait.duration_ns for wait in waits)
        halves = 2 * (self.cells - wait_cells * len(waits))
        pieces: list[_Piece] = []
        passed, at, half = 0, self.low, 0
        for nth, wait in enumerate(waits):
            passed += wait.start - at
            # a whole cell, so that a squeezed stretch can hold words
            end = min(halves, (passed * halves // max(1, active) + 1) // 2 * 2) + 2 * wait_cells * nth
            pieces.append(_Piece(at, wait.start, half, max(half, end), is_squeezed=False))
            half = max(half, end) + 2 * wait_cells
            pieces.append(_Piece(wait.start, wait.end, half - 2 * wait_cells, half, is_squeezed=True))
            at = wait.end
        pieces.append(_Piece(at, self.high, half, 2 * self.cells, is_squeezed=False))
        return [piece for piece in pieces if piece.high > piece.low]


def _round_step(least: int) -> int:
    """The next round number of nanoseconds: 1, 2 or 5 with zeros; minutes and hours as people count them."""
    if least >= SECOND and (longer := [one * SECOND for one in ROUND_S if one * SECOND >= least]):
        return longer[0]
    power = 1
    while power * 10 < least:
        power *= 10
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least)


SHORTEST_NS = 100
"""The shortest stretch that can be chosen."""
MARGIN = 20
"""The margin on either side of a chosen span is one part in so many of it."""


class TraceWindow:
    """The visible part of a trace, in nanoseconds since the epoch."""

    def __init__(self) -> None:
        self._begin, self._end = 0, 1
        self._chosen: tuple[int, int] | None = None

    def set_trace(self, begin: int, end: int) -> None:
        """Set begin and end of the trace. A stretch that was chosen stays."""
        self._begin, self._end = begin, max(end, begin + 1)

    @property
    def is_whole(self) -> bool:
        return self._chosen is None

    def axis(self, cells: int, waits: Sequence[SpanWait], wait_cells: int) -> Axis:
        low, high = self._chosen or (self._begin, self._end)
        return Axis(low, high, cells, waits, wait_cells)

    def show_whole(self) -> None:
        self._chosen = None

    def show(self, start: int, end: int) -> None:
        margin = max(SHORTEST_NS, end - start) // MARGIN
        self._choose(start - margin, end + margin)

    def zoom(self, axis: Axis, factor: float, focus: int) -> None:
        """Show less (below 1) or more around a time, which keeps its place on the axis."""
        centre, halves = axis.half(focus), 2 * axis.cells
        if factor < 1:
            first = int(centre * (1 - factor))
            self._choose(axis.time(first), axis.time(first + max(1, int(halves * factor))))
        else:
            more = int((axis.high - axis.low) * (factor - 1))
            before = more * centre // halves
            self._choose(axis.low - before, axis.high + more - before)

    def pan(self, axis: Axis, part: float) -> None:
        """Show what is earlier (below 0) or later, by a part of what is visible."""
        length = axis.high - axis.low
        seen = axis.time(int(2 * axis.cells * abs(part))) - axis.low
        step = min(seen, self._end - axis.high) if part > 0 else -min(seen, axis.low - self._begin)
        if step:
            self._choose(axis.low + step, axis.low + step + length)

    def _choose(self, low: int, high: int) -> None:
        low, high = max(low, self._begin), min(high, self._end)
        if high - low < SHORTEST_NS:
            high = low + SHORTEST_NS
        self._chosen = None if (low, high) == (self._begin, self._end) else (low, high)
