"""How lines and errors of a log spread over its time, as bars of one line."""

from bisect import bisect_right
from collections.abc import Sequence

from jobtui.model.clock import SECOND, Nanos
from jobtui.model.pages import Overview, Place, Stretch
from jobtui.render.spans import Line, Span, padded, width_of
from jobtui.render.text import clock_time, date_time

BARS = " ▁▂▃▄▅▆▇█"
FEWEST_BARS = 8
SMALLEST = 20
"""Cells below which there are no bars."""
_DAY = 86_400 * SECOND
_MINUTE = 60 * SECOND


class Histogram:
    """The bars of one overview at one width. Worked out once; only the place of the reader moves in them."""

    def __init__(self, overview: Overview, cells: int) -> None:
        timed = [stretch for stretch in overview.stretches if stretch.at is not None]
        self._cells = cells
        self._words = _words(overview)
        self._begin, self._end, count = _frame(timed, cells - width_of(self._words))
        self._bars: list[Span] = []
        self._places = [stretch.place for stretch in timed]
        if count >= FEWEST_BARS:
            first, last = _ends(timed)
            self._of_place = [_bar(stretch, first, last, count) for stretch in timed]
            self._bars = _bars(timed, self._of_place, count)

    def line(self, place: Place | None) -> Line:
        """Times at both ends, bars between, the one with `place` standing out."""
        bars = list(self._bars)
        if place is not None and bars:
            here = self._of_place[max(0, bisect_right(self._places, place) - 1)]
            bars[here] = bars[here]._replace(style=f"{bars[here].style} cursor")
        begin = (Span(f" {self._begin} " if self._begin else " ", "dim"),)
        left = (*begin, *bars, Span(" " if bars else "", "", len(bars[:1])), *self._words)
        return _filled(left, self._cells, self._end if bars else "")


def _filled(left: Line, cells: int, end: str) -> Line:
    """A rule up to the right end, which is `end`."""
    tail = f" {end} " if end else ""
    missing = cells - width_of(left) - len(tail) - 1
    if missing < 0:
        return padded(left, cells)
    return (*left, Span(" "), Span("─" * missing, "rule", missing), Span(tail, "dim", len(tail)))


def _words(overview: Overview) -> Line:
    more = "" if overview.complete else "+"
    errors = Span(f"errors {overview.errors:,}{more}", "error" if overview.errors else "dim")
    return (errors, Span(f" of {overview.lines:,}{more} lines", "dim"))


def _frame(timed: Sequence[Stretch], cells: int) -> tuple[str, str, int]:
    """The times at both ends, as far as there is room for them, and how many bars go between."""
    if len(timed) < 2 or cells < SMALLEST:
        return "", "", 0
    first, last = _ends(timed)
    begin, end = _time(first, last), _time(last, first)
    most = 3 * len(timed)
    bars = min(cells - len(begin) - len(end) - 6, most)
    return (begin, end, bars) if bars >= FEWEST_BARS else ("", "", min(cells - 3, most))


def _ends(timed: Sequence[Stretch]) -> tuple[Nanos, Nanos]:
    times = [stretch.at for stretch in timed if stretch.at is not None]
    return min(times), max(times)


def _time(at: Nanos, other: Nanos) -> str:
    """A time of day; with its date where the other one is not of the same day."""
    if at // _DAY == other // _DAY:
        return clock_time(at)[:5] if abs(at - other) > 2 * _MINUTE else clock_time(at)
    return date_time(at)[5:16]


def _bar(stretch: Stretch, first: Nanos, last: Nanos, bars: int) -> int:
    return min(bars - 1, ((stretch.at or first) - first) * bars // max(1, last - first))


def _bars(timed: Sequence[Stretch], of_place: Sequence[int], count: int) -> list[Span]:
    """The bars: the lines of a stretch are spread evenly up to the beginning of the next one."""
    lines, errors = [0.0] * count, [0] * count
    for stretch, begin, until in zip(timed, of_place, [*of_place[1:], 0], strict=True):
        end = max(begin, until - 1)
        for bar in range(begin, end + 1):
            lines[bar] += stretch.lines / (end - begin + 1)
        errors[begin] += stretch.errors
    most = max(lines) or 1.0
    return [
        Span(_glyph(value, most), "error" if bad else "dim", 1)
        for value, bad in zip(lines, errors, strict=True)
    ]


def _glyph(value: float, most: float) -> str:
    return BARS[max(1, round(value / most * (len(BARS) - 1)))] if value > 0 else BARS[0]
