"""The stretch of time that is looked at in a chart, and the time under the cursor."""

from collections.abc import Callable

from jobtui.model.clock import SECOND, Nanos
from jobtui.render.chart import Frame

MINUTE, HOUR, DAY = 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND
SPANS = (5 * MINUTE, 15 * MINUTE, HOUR, 6 * HOUR, DAY, 7 * DAY)
"""What can be looked at with one key, beside everything."""
SMALLEST = 10 * SECOND
ZOOM = 2


class ChartWindow:
    """The last day, or all that is known, and what comes, until something else is asked for.

    `begin` is the first time of which anything is known. `cursor` is None where there is none: the newest is
    told then.
    """

    def __init__(self, now: Callable[[], Nanos]) -> None:
        self.now = now
        self.begin: Nanos | None = None
        self.cursor: Nanos | None = None
        self._span: int | None = DAY
        self._end: Nanos | None = None

    @property
    def follows(self) -> bool:
        """Whether it goes on with the present time."""
        return self._end is None

    @property
    def whole(self) -> int:
        """How long all is that is known."""
        return max(SMALLEST, self.now() - (self.begin if self.begin is not None else self.now()))

    @property
    def span(self) -> int:
        """How much is looked at."""
        return self.whole if self._span is None else min(self._span, self.whole)

    @property
    def until(self) -> Nanos:
        """Where it ends."""
        return self.now() if self._end is None else self._end

    @property
    def is_whole(self) -> bool:
        """Whether all that is known is looked at."""
        return self._span is None or self._span >= self.whole

    def frame(self, cells: int, rows: int) -> Frame:
        """The window in so many cells. While it follows, it goes on a cell at a time."""
        until, span = self.until, self.span
        if self._end is None:
            cell = max(1, span // max(1, cells))
            until = Nanos(-(-until // cell) * cell)
            span = -(-span // cell) * cell
        return Frame(Nanos(until - span), until, cells, rows)

    def zoom(self, factor: float) -> None:
        """Look at so many times as much, about the cursor, or about the end when it follows."""
        before, span = self.span, max(SMALLEST, int(self.span * factor))
        if span >= self.whole:
            self.show_whole()
            return
        if self.cursor is not None or self._end is not None:
            middle = self.cursor if self.cursor is not None else Nanos(self.until - before // 2)
            part = (self.until - middle) / before
            self._go_to(Nanos(middle + int(span * part)), span)
        self._span = span

    def pan(self, part: float) -> None:
        """Look at an earlier or later stretch, further by this part of its length."""
        if self.is_whole:
            return
        span = self.span
        self._go_to(Nanos(self.until + int(span * part)), span)

    def _go_to(self, end: Nanos, span: int) -> None:
        """End there, as far as that is not beyond what is known."""
        first = (self.begin if self.begin is not None else self.now()) + min(span, self.whole)
        end = Nanos(max(end, first))
        self._end = None if end >= self.now() else end
        if self.cursor is not None:
            self.cursor = max(Nanos(self.until - span), min(self.cursor, self.until))

    def show_whole(self) -> None:
        """Look at all that is known, and what comes."""
        self._span = self._end = None

    def next_span(self) -> None:
        """Look at the next longer stretch up to now, after the longest at everything, then the shortest."""
        fitting = [span for span in SPANS if span < self.whole and (self.is_whole or span > self.span)]
        self._span, self._end, self.cursor = (fitting[0] if fitting else None), None, None

    def put_cursor(self, at: Nanos) -> None:
        """Put the cursor at a time; behind the end there is none."""
        at = max(at, Nanos(self.until - self.span))
        self.cursor = None if self._end is None and at >= self.now() else min(at, self.until)
