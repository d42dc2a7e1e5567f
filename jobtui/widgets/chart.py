"""One chart: its time window, the cursor in it, and the values at the cursor."""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from textual import work

from jobtui.analysis.reports.charts import Chart, ChartKind
from jobtui.model.clock import SECOND, Nanos
from jobtui.render import chart as charts
from jobtui.render.spans import Line, Piece, spread
from jobtui.render.text import Zone, fit, wrapped
from jobtui.widgets.lines import LineView

FEWEST_CELLS, FEWEST_ROWS = 30, 6
"""In fewer cells or rows there is one line of bars and a number."""
KEYS_AHEAD = 200
LEGEND_SHARE, LEGEND_FROM = 6, 10
"""The names of curves take at most one row in so many, and need at least so many rows."""
NOTHING = "no start or end of a job is known"


class _DrawRequest(NamedTuple):
    """What is to be drawn: of which chart, which window, and how many of its columns are known."""

    chart: Chart
    frame: charts.Frame
    known: int
    chosen: int | None


class ChartView(LineView):
    """A chart with a cursor. A thread draws it; the previous drawing is shown until then."""

    def __init__(self, now: Callable[[], Nanos]) -> None:
        super().__init__()
        self.window = ChartWindow(now)
        self.chosen: int | None = None
        self.kind: ChartKind | None = None
        """The kind that was asked for. Keys wait until its chart is there."""
        self._keys_ahead: deque[Callable[[], None]] = deque(maxlen=KEYS_AHEAD)
        self._chart: Chart | None = None
        self._drawn: charts.DrawnChart | None = None
        self._drawn_of: _DrawRequest | None = None
        self._shown: tuple[object, ...] = ()
        self._picture_lines: list[Line] = []
        self._is_drawing = False
        self._lines: list[Line] = []

    @property
    def is_small(self) -> bool:
        return self.cells < FEWEST_CELLS or self.rows_high < FEWEST_ROWS

    @property
    def frame(self) -> charts.Frame:
        return self.window.frame(self.cells, max(3, self.rows_high - 1 - len(self._legend())))

    @property
    def words(self) -> str:
        """Words about the time under the cursor; safe to show."""
        if self._chart is None:
            return ""
        has_legend = self.is_small or bool(self._legend())
        return charts.words_at(self._chart, self.cursor_time, self.frame, has_legend=has_legend)

    @property
    def cursor_time(self) -> Nanos:
        end = self._chart.end if self._chart is not None else self.window.now()
        if self.window.cursor is None or self._drawn is None:
            return min(end, self.window.until) if self.window.cursor is None else self.window.cursor
        begin, behind = self._drawn.time_of(self._column(self._drawn))
        return max(begin, min(Nanos(behind - 1), end))  # its last instant of which anything is known

    def set_chart(self, chart: Chart) -> None:
        if self._chart is not None and self._chart.kind is not chart.kind:
            self.chosen = None
            self._drawn = None
        times = [one.series.x[-1] for one in chart.curves if one.series.x]
        self._chart, self.kind = chart, chart.kind
        self.window.begin, self.window.last = chart.begin, max(times, default=None)
        while self._keys_ahead:
            self._keys_ahead.popleft()()
        self.redraw()

    @property
    def _is_awaited(self) -> bool:
        return self._chart is None or self._chart.kind is not (self.kind or self._chart.kind)

    def redraw(self) -> None:
        self._lines = []
        if not self._is_drawing and self._wish() is not None:
            self._is_drawing = True
            self._draw()
        self.repaint()

    def _wish(self) -> "_DrawRequest | None":
        """What to draw, None if that is drawn already."""
        chart, frame, before = self._chart, self.frame, self._drawn_of
        if chart is None or not chart.curves or self.is_small or not self.cells:
            return None
        span = max(1, frame.until - frame.since)
        known = (min(chart.end, frame.until) - frame.since) * frame.cells // span
        wish = _DrawRequest(chart, frame, known, self.chosen if chart.kind is ChartKind.STATES else None)
        is_drawn = before is not None and before.chart.curves is chart.curves and before[1:] == wish[1:]
        return None if is_drawn else wish

    @work(name="draw")
    async def _draw(self) -> None:
        try:
            while (wish := self._wish()) is not None:
                self._drawn = await asyncio.to_thread(charts.draw_chart, wish.chart, wish.frame, wish.chosen)
                self._drawn_of, self._shown = wish, ()
                self._lines = []
                self.repaint()
        finally:
            self._is_drawing = False

    def move_cursor(self, columns: int) -> None:
        if self._is_awaited:
            self._keys_ahead.append(partial(self.move_cursor, columns))
            return
        if self._chart is None or not self._chart.curves:
            return
        # by the visible part, as the drawing may be of an earlier window
        left = self._drawn.left if self._drawn is not None else 0
        looked_at = charts.DrawnChart(self.frame, [], left, 0.0, ())
        column = self._column(looked_at) + columns
        if column < 0:
            self.window.pan(-0.5)
        elif column >= looked_at.columns:
            self.window.pan(0.5)
        begin, _ = looked_at.time_of(column)
        self.window.put_cursor(begin)
        self.redraw()

    def choose(self, by: int) -> None:
        """Show only the next state; after the last one show all again."""
        if self._is_awaited:
            self._keys_ahead.append(partial(self.choose, by))
            return
        is_of_states = self._chart is not None and self._chart.kind in (ChartKind.STATES, ChartKind.TIMES)
        lines = len(self._chart.times or self._chart.curves) if self._chart and is_of_states else 0
        choices = [None, *range(lines)]
        if lines:
            at = 0 if self.chosen is None else self.chosen + 1
            self.chosen = choices[(at + by) % len(choices)]
            self.redraw()

    def on_resize(self) -> None:
        self.redraw()

    def line(self, y: int) -> Line:
        if not self._lines:
            self._lines = self._made()
        return self._lines[y] if y < len(self._lines) else ()

    def _made(self) -> list[Line]:
        chart = self._chart
        if chart is None:
            return [(Piece(fit(" …", self.cells), "dim"),)]
        if chart.kind is ChartKind.TIMES and chart.times:
            return charts.times_lines(chart.times, self.cells, self.chosen)
        if not chart.curves:
            return [(Piece(fit(f" {NOTHING}", self.cells), "dim"),)]
        if self.is_small:
            value = self.words.partition("  ")[2] if self.rows_high == 1 else ""
            scale = (charts.scale_words(chart, self.frame),) if self.rows_high > 1 else ()
            texts, most = (self.words, *scale), max(2, self.cells)
            words = [(Piece(line),) for text in texts for line in wrapped(text, most)]
            return [charts.spark_line(chart, self.frame, value), *words]
        said = Piece(fit(f" {self.words}", self.cells).rstrip(), "strong")
        head = spread((said,), (Piece(f"  {charts.title_of(chart)} ", "dim"),), self.cells)
        return [head, *self._picture(chart)]

    def _picture(self, chart: Chart) -> list[Line]:
        if self._drawn is None or self._drawn_of is None or self._drawn_of.chart.kind is not chart.kind:
            return []
        cursor = self._column(self._drawn) if self.window.cursor is not None else None
        if self._shown != (shown := (self._drawn.frame, cursor, Zone.is_local)):
            self._picture_lines = charts.chart_lines(self._drawn, cursor)
            self._shown = shown
        return [*self._legend(), *self._picture_lines]

    def _legend(self) -> list[Line]:
        """Which line is which. Without values, which are shown above and would move the names."""
        chart = self._chart
        if chart is None or not chart.curves or self.rows_high < LEGEND_FROM:
            return []
        most = max(1, self.rows_high // LEGEND_SHARE)
        lines = charts.legend_lines(chart, self.chosen, max(1, self.cells - 2), most)
        return [(Piece(" ", "", 1), *line) for line in lines]

    def _column(self, drawn: charts.DrawnChart) -> int:
        if self.window.cursor is None:
            return drawn.columns - 1
        since, until, _, _ = drawn.frame
        column = (self.window.cursor - since) * drawn.columns // max(1, until - since)
        return max(0, min(drawn.columns - 1, column))


MINUTE, HOUR, DAY = 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND
SPANS = (5 * MINUTE, 15 * MINUTE, HOUR, 6 * HOUR, DAY, 7 * DAY)
"""What can be looked at with one key, beside everything."""
SMALLEST = 10 * SECOND


class ChartWindow:
    """The time window of a chart: at first the last day, following the present.

    `begin` is the first time of which anything is known, `last` that of the last event: if it is over a day
    old it stands for the present. `cursor` is None if there is none: then the newest values are shown.
    """

    def __init__(self, now: Callable[[], Nanos]) -> None:
        self._now = now
        self.begin: Nanos | None = None
        self.last: Nanos | None = None
        self.cursor: Nanos | None = None
        self._span: int | None = DAY
        self._end: Nanos | None = None

    def now(self) -> Nanos:
        now = self._now()
        return now if self.last is None or now - self.last < DAY else Nanos(self.last + SMALLEST)

    @property
    def follows(self) -> bool:
        return self._end is None

    @property
    def whole(self) -> int:
        return max(SMALLEST, self.now() - (self.begin if self.begin is not None else self.now()))

    @property
    def span(self) -> int:
        return self.whole if self._span is None else min(self._span, self.whole)

    @property
    def until(self) -> Nanos:
        return self.now() if self._end is None else self._end

    @property
    def is_whole(self) -> bool:
        return self._span is None or self._span >= self.whole

    def frame(self, cells: int, rows: int) -> charts.Frame:
        """The window in this many cells. While it follows, it moves a cell at a time, and grows in steps."""
        until, span = self.until, self.span
        if self._end is None:
            step = max(1, 1 << span.bit_length() >> 8)  # else all that is known would grow at each look
            span = -(-span // step) * step
            cell = max(1, span // max(1, cells))
            until = Nanos(-(-until // cell) * cell)
            span = -(-span // cell) * cell
        return charts.Frame(Nanos(until - span), until, cells, rows)

    def zoom(self, factor: float) -> None:
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
        if self.is_whole:
            return
        span = self.span
        self._go_to(Nanos(self.until + int(span * part)), span)

    def _go_to(self, end: Nanos, span: int) -> None:
        first = (self.begin if self.begin is not None else self.now()) + min(span, self.whole)
        end = Nanos(max(end, first))
        self._end = None if end >= self.now() else end
        if self.cursor is not None:
            self.cursor = max(Nanos(self.until - span), min(self.cursor, self.until))

    def show_whole(self) -> None:
        self._span = self._end = None

    def next_span(self) -> None:
        fitting = [span for span in SPANS if span < self.whole and (self.is_whole or span > self.span)]
        self._span, self._end, self.cursor = (fitting[0] if fitting else None), None, None

    def put_cursor(self, at: Nanos) -> None:
        at = max(at, Nanos(self.until - self.span))
        self.cursor = None if self._end is None and at >= self.now() else min(at, self.until)
