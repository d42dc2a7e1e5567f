"""Step functions of time: y[i] holds from x[i] until x[i+1]; before x[0] it is 0.

A report prints a `Series`. A `Curve` is a series for drawing: the values of a time are found quickly.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from math import isfinite
from typing import NamedTuple, cast

from jobtui.analysis.times import ROUND_S
from jobtui.model.clock import MINUTE, SECOND, Nanos

DIGITS = 9
"""Sums of thirds and sixty-fourths of nodes have rounding errors; smaller values are such errors."""


class Series(NamedTuple):
    """One series of a report. `notes` say in words what was estimated or left out to make it.

    `estimated` and `left_out` count such runs or allocations.
    """

    name: str
    unit: str
    x: Sequence[Nanos]
    y: Sequence[float]
    notes: tuple[str, ...] = ()
    estimated: int = 0
    left_out: int = 0

    def at(self, time: Nanos) -> float:
        index = bisect_right(self.x, time)
        return self.y[index - 1] if index else 0.0


BLOCK = 256
"""How many points have their extremes computed together."""
MOST = 1e15
"""The largest value drawn: nobody has more nodes, and axes must end somewhere."""


class CurveStep(NamedTuple):
    """The values of a series in a stretch of time: the first, the extremes, the last."""

    first: float
    low: float
    high: float
    last: float


class Curve:
    """One series with the extremes of each block of its points, which are kept as arrays.

    The garbage collector looks at every number of a list, which holds up a screen.
    """

    def __init__(self, series: Series) -> None:
        values = array("d", series.y)
        if values and not (min(values) >= -MOST and max(values) <= MOST and isfinite(sum(values))):
            values = array("d", (max(-MOST, min(MOST, one)) if one == one else 0.0 for one in values))
        blocks = [values[start : start + BLOCK] for start in range(0, len(values), BLOCK)]
        try:
            times = cast("Sequence[Nanos]", array("q", series.x))
        except OverflowError:  # centuries away
            times = tuple(series.x)
        self.series = series._replace(x=times, y=values)
        self._lows, self._highs = list(map(min, blocks)), list(map(max, blocks))

    def at(self, time: Nanos) -> float:
        return self.series.at(time)

    def step(self, since: Nanos, until: Nanos) -> CurveStep:
        x, y = self.series.x, self.series.y
        begin, end = bisect_right(x, since), bisect_left(x, until)
        first = y[begin - 1] if begin else 0.0
        if end <= begin:
            return CurveStep(first, first, first, first)
        low, high = self._extremes(begin, end)
        return CurveStep(first, min(first, low), max(first, high), y[end - 1])

    def _extremes(self, begin: int, end: int) -> tuple[float, float]:
        y = self.series.y
        first, last = -(-begin // BLOCK), end // BLOCK
        if last <= first:
            part = y[begin:end]
            return min(part), max(part)
        edges = [*y[begin : first * BLOCK], *y[last * BLOCK : end]]
        return min([*self._lows[first:last], *edges]), max([*self._highs[first:last], *edges])


def steps(curve: Curve, since: Nanos, until: Nanos, end: Nanos, count: int) -> list[CurveStep]:
    """The values of a curve in each of `count` equal stretches; those that begin after `end` are left out."""
    span = max(1, until - since)
    edges = [Nanos(since + span * at // count) for at in range(count + 1)]
    return [curve.step(begin, behind) for begin, behind in pairwise(edges) if begin <= end]


def rate(curve: Curve, since: Nanos, until: Nanos, end: Nanos, most: int) -> Series:
    """How much a sum grows each minute, for at most about `most` periods that people count in. The period
    that is not over yet is given once half of it is, from what came so far.
    """
    width = rate_width(until - since, most)
    x: list[Nanos] = []
    y: list[float] = []
    begin = since // width * width
    while begin < min(until, end):
        behind = min(begin + width, end)
        if behind - begin >= width / 2 or not x:
            grown = curve.at(Nanos(behind)) - curve.at(Nanos(begin))
            x.append(Nanos(begin))
            y.append(grown * MINUTE / max(1, behind - begin))
        begin += width
    return Series("rate", "jobs/min", x, y, ())


def rate_width(span: int, most: int) -> int:
    fewest = -(-span // max(1, most))
    return next((seconds * SECOND for seconds in ROUND_S if seconds * SECOND >= fewest), fewest)


def rate_at(curve: Curve, time: Nanos, width: int) -> float:
    return (curve.at(time) - curve.at(Nanos(time - width))) * MINUTE / max(1, width)
