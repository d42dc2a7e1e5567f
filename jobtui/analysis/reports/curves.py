"""Step functions of time: y[i] holds from x[i] until x[i+1]; before x[0] it is 0.

A `Series` is what a report prints. A `Curve` is a series made ready to be drawn: what it does in any
stretch of time is found without looking at all of it.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from math import isfinite
from operator import itemgetter
from typing import NamedTuple, cast

from jobtui.analysis.reports.cooperative import AT_ONCE, Turns, let_go_turns
from jobtui.model.clock import SECOND, Nanos

DIGITS = 9
"""Sums of thirds and sixty-fourths of nodes leave dust behind; what is below this is dust."""

Delta = tuple[Nanos, float]


class Series(NamedTuple):
    """One series of a report. `notes` say in words what was estimated or left out to make it.

    `estimated` and `left_out` are how many runs or allocations that were.
    """

    name: str
    unit: str
    x: Sequence[Nanos]
    y: Sequence[float]
    notes: tuple[str, ...] = ()
    estimated: int = 0
    left_out: int = 0

    def at(self, time: Nanos) -> float:
        place = bisect_right(self.x, time)
        return self.y[place - 1] if place else 0.0


class Window(NamedTuple):
    """The stretch of time that is asked about; None where it has no end."""

    since: Nanos | None = None
    until: Nanos | None = None

    def clip(self, time: Nanos) -> Nanos:
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
    in_window = (
        (window.clip(time), delta) for time, delta in deltas if window.until is None or time <= window.until
    )
    for time, group in groupby(sorted(in_window), key=itemgetter(0)):
        total += sum(delta for _, delta in group)
        times.append(time)
        values.append(round(total, DIGITS))
    return times, values


BLOCK = 256
"""Points whose extremes are known together."""
BLOCKS_AT_ONCE = 512
MOST = 1e15
"""What is drawn at most: nobody has more nodes, and axes end somewhere."""
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
        return self.series.at(time)

    def step(self, since: Nanos, until: Nanos) -> Step:
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
    values = array("d")
    for start in range(0, len(series.y), AT_ONCE):
        part = series.y[start : start + AT_ONCE]
        is_drawable = min(part) >= -MOST and max(part) <= MOST and isfinite(sum(part))
        values.extend(part if is_drawable else map(_drawable, part))
        yield
    for number, start in enumerate(range(0, len(values), BLOCK)):
        block = values[start : start + BLOCK]
        lows.append(min(block))
        highs.append(max(block))
        if number % BLOCKS_AT_ONCE == 0:
            yield
    x = yield from _packed_turns(series.x)
    for points in (series.x, series.y):
        if isinstance(points, list):
            yield from let_go_turns(points)
    return Curve(series._replace(x=x, y=values), lows, highs)


def _drawable(value: float) -> float:
    return max(-MOST, min(MOST, value)) if value == value else 0.0  # not a number is no other number


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
    return (curve.at(time) - curve.at(Nanos(time - width))) * MINUTE / max(1, width)
