"""A series made ready to be drawn: what it does in any stretch of time is found without looking at it all."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple, cast

from jobtui.analysis.series import Series
from jobtui.analysis.turns import AT_ONCE, Turns, let_go_turns
from jobtui.model.clock import SECOND, Nanos

BLOCK = 256
"""Points whose extremes are known together."""
BLOCKS_AT_ONCE = 512
MINUTE = 60 * SECOND
WIDTHS = tuple(
    count * unit
    for unit, counts in (
        (SECOND, (1, 2, 5, 10, 15, 30)),
        (MINUTE, (1, 2, 5, 10, 15, 30)),
        (60 * MINUTE, (1, 2, 3, 6, 12, 24, 48, 168)),
    )
    for count in counts
)
"""Stretches of time for which rates are told, as people count them."""


class Step(NamedTuple):
    """What a series does in a stretch of time: its first value, extremes, last value."""

    first: float
    low: float
    high: float
    last: float


class Curve:
    """One series with the extremes of each block of its points."""

    def __init__(self, series: Series, lows: list[float], highs: list[float]) -> None:
        self.series = series
        self._lows = lows
        self._highs = highs

    def at(self, time: Nanos) -> float:
        """The value that holds at a time."""
        return self.series.at(time)

    def step(self, since: Nanos, until: Nanos) -> Step:
        """What it does from a time up to another, that one left out."""
        x, y = self.series.x, self.series.y
        begin, end = bisect_right(x, since), bisect_left(x, until)
        first = y[begin - 1] if begin else 0.0
        if end <= begin:
            return Step(first, first, first, first)
        low, high = self._extremes(begin, end)
        return Step(first, min(first, low), max(first, high), y[end - 1])

    def _extremes(self, begin: int, end: int) -> tuple[float, float]:
        y = self.series.y
        first, last = -(-begin // BLOCK), end // BLOCK
        if last <= first:
            part = y[begin:end]
            return min(part), max(part)
        edges = [*y[begin : first * BLOCK], *y[last * BLOCK : end]]
        return min([*self._lows[first:last], *edges]), max([*self._highs[first:last], *edges])


def curve_turns(series: Series) -> Turns[Curve]:
    """A series made ready, in short turns; its lists are empty then, as their numbers are kept in arrays."""
    lows: list[float] = []
    highs: list[float] = []
    for number, start in enumerate(range(0, len(series.y), BLOCK)):
        block = series.y[start : start + BLOCK]
        lows.append(min(block))
        highs.append(max(block))
        if number % BLOCKS_AT_ONCE == 0:
            yield
    y = array("d")
    for start in range(0, len(series.y), AT_ONCE):
        y.extend(series.y[start : start + AT_ONCE])
        yield
    x = yield from _packed_turns(series.x)
    for values in (series.x, series.y):
        if isinstance(values, list):
            yield from let_go_turns(values)
    return Curve(series._replace(x=x, y=y), lows, highs)


def _packed_turns(times: Sequence[Nanos]) -> Turns[Sequence[Nanos]]:
    """Times as an array: the garbage collector looks at every number of a list, which holds up a screen."""
    packed = array("q")
    try:
        for start in range(0, len(times), AT_ONCE):
            packed.extend(times[start : start + AT_ONCE])
            yield
    except OverflowError:  # centuries away
        return tuple(times)
    return cast("Sequence[Nanos]", packed)


def steps(curve: Curve, since: Nanos, until: Nanos, end: Nanos, count: int) -> list[Step]:
    """What a curve does in each of `count` equal stretches; those that begin after `end` are left out."""
    span = max(1, until - since)
    edges = [Nanos(since + span * at // count) for at in range(count + 1)]
    return [curve.step(begin, behind) for begin, behind in pairwise(edges) if begin <= end]


def rate(curve: Curve, since: Nanos, until: Nanos, end: Nanos, most: int) -> Series:
    """How much a sum grows each minute, told for at most about `most` stretches that people count in.

    The stretch that is not over yet is told once half of it is, by what came so far.
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
    """The stretch of time for which rates are told in a window of this length."""
    fewest = -(-span // max(1, most))
    return next((width for width in WIDTHS if width >= fewest), max(WIDTHS[-1], fewest))


def rate_at(curve: Curve, time: Nanos, width: int) -> float:
    """How much a sum grew each minute in the stretch up to a time."""
    return (curve.at(time) - curve.at(Nanos(time - width))) * MINUTE / max(1, width)
