"""One chart: what is looked at of it, the cursor in it, and what it says of the time under the cursor."""

import asyncio
from collections.abc import Callable
from typing import NamedTuple

from jobtui.analysis.charts import Chart, ChartKind
from jobtui.model.clock import Nanos
from jobtui.render.chart import Drawn, Frame, chart_lines, draw_chart, legend_lines, spark_line
from jobtui.render.chart_times import times_lines
from jobtui.render.chart_words import time_of_cursor, title_of, words_at
from jobtui.render.spans import Line, Span, spread
from jobtui.render.text import Zone, fit, show
from jobtui.render.wrapping import wrapped
from jobtui.widgets.chart_window import ChartWindow
from jobtui.widgets.lines import LineView

FEWEST_CELLS, FEWEST_ROWS = 60, 8
"""Below either there is one line of bars and a number."""
LEGEND_SHARE = 6
"""One row of so many may be taken by the names of lines."""
NOTHING = "nothing is known of when jobs began or ended"


class _Wish(NamedTuple):
    """What is to be drawn: of which chart, which window, and how many of its columns are known."""

    chart: Chart
    frame: Frame
    known: int
    chosen: int | None

    def is_as(self, other: "_Wish | None") -> bool:
        """Whether the other one looks the same."""
        return other is not None and other.chart.curves is self.chart.curves and other[1:] == self[1:]


class ChartView(LineView):
    """A chart with a cursor. It is drawn in a thread; until that is done the one before is shown."""

    def __init__(self, now: Callable[[], Nanos], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.window = ChartWindow(now)
        self.chosen: int | None = None
        self._chart: Chart | None = None
        self._drawn: Drawn | None = None
        self._drawn_of: _Wish | None = None
        self._shown: tuple[object, ...] = ()
        self._picture_lines: list[Line] = []
        self._is_drawing = False
        self._problem = ""
        self._lines: list[Line] = []

    @property
    def chart(self) -> Chart | None:
        """What is shown."""
        return self._chart

    @property
    def is_small(self) -> bool:
        """Whether there is no room for more than a line of bars."""
        return self.cells < FEWEST_CELLS or self.rows_high < FEWEST_ROWS or bool(self._problem)

    @property
    def frame(self) -> Frame:
        """What is looked at."""
        return self.window.frame(self.cells, max(3, self.rows_high - 1 - len(self._legend())))

    @property
    def words(self) -> str:
        """What is said of the time under the cursor; safe to show."""
        if self._chart is None:
            return ""
        return words_at(self._chart, self.cursor_time, self.frame)

    @property
    def cursor_time(self) -> Nanos:
        """The time under the cursor."""
        end = self._chart.end if self._chart is not None else self.window.now()
        if self.window.cursor is None or self._drawn is None:
            return min(end, self.window.until) if self.window.cursor is None else self.window.cursor
        return time_of_cursor(self._drawn, self._column(self._drawn), end)

    def set_chart(self, chart: Chart) -> None:
        """Show this chart."""
        if self._chart is not None and self._chart.kind is not chart.kind:
            self.chosen = None
            self._drawn = None
        self._chart = chart
        self.window.begin = chart.begin
        self.redraw()

    def redraw(self) -> None:
        """Show what is looked at now; it is drawn when it was not yet."""
        self._lines = []
        if not self._is_drawing and self._wish() is not None:
            self._is_drawing = True
            self.run_worker(self._draw(), name="draw", exit_on_error=True)
        self.repaint()

    def _wish(self) -> "_Wish | None":
        """What is to be drawn, if anything."""
        chart, frame = self._chart, self.frame
        if chart is None or not chart.curves or self.is_small or not self.cells:
            return None
        span = max(1, frame.until - frame.since)
        known = (min(chart.end, frame.until) - frame.since) * frame.cells // span
        wish = _Wish(chart, frame, known, self.chosen if chart.kind is ChartKind.STATES else None)
        return None if wish.is_as(self._drawn_of) else wish

    async def _draw(self) -> None:
        """Draw what is wished until nothing more is."""
        try:
            while (wish := self._wish()) is not None:
                self._drawn = await asyncio.to_thread(draw_chart, wish.chart, wish.frame, wish.chosen)
                self._drawn_of, self._shown = wish, ()
                self._lines = []
                self.repaint()
        except (ImportError, OSError) as error:
            self._problem = show(f"charts cannot be drawn: {error}")
            self.repaint()
        finally:
            self._is_drawing = False

    def move_cursor(self, columns: int) -> None:
        """Move the cursor; at an edge what is looked at goes along."""
        if self._drawn is None:
            return
        column = self._column(self._drawn) + columns
        if column < 0:
            self.window.pan(-0.5)
        elif column >= self._drawn.columns:
            self.window.pan(0.5)
        begin, _ = self._drawn.time_of(column)
        self.window.put_cursor(begin)
        self.redraw()

    def choose(self, by: int) -> None:
        """Let the next state stand alone; beyond the last one all are there again."""
        is_of_states = self._chart is not None and self._chart.kind in (ChartKind.STATES, ChartKind.TIMES)
        lines = len(self._chart.times or self._chart.curves) if self._chart and is_of_states else 0
        places = [None, *range(lines)]
        if lines:
            at = 0 if self.chosen is None else self.chosen + 1
            self.chosen = places[(at + by) % len(places)]
            self.redraw()

    def on_resize(self) -> None:
        """Draw it in its new size."""
        super().on_resize()
        self.redraw()

    def line(self, y: int) -> Line:
        """What is said, and the chart below it."""
        if not self._lines:
            self._lines = self._made()
        return self._lines[y] if y < len(self._lines) else ()

    def _made(self) -> list[Line]:
        chart = self._chart
        if chart is None:
            return [(Span(fit(" …", self.cells), "dim"),)]
        if chart.kind is ChartKind.TIMES and chart.times:
            return times_lines(chart.times, self.cells, self.chosen)
        if not chart.curves:
            return [(Span(fit(f" {NOTHING}", self.cells), "dim"),)]
        if self.is_small:
            problem = [(Span(fit(f" {self._problem}", self.cells), "warning"),)] if self._problem else []
            told = self.words.partition("  ")[2] if self.rows_high == 1 else ""
            words = [(Span(line),) for line in wrapped(self.words, max(2, self.cells))]
            return [spark_line(chart, self.frame, told), *words, *problem]
        return [self._head(chart), *self._picture(chart)]

    def _head(self, chart: Chart) -> Line:
        words = Span(fit(f" {self.words}", self.cells).rstrip(), "strong")
        return spread((words,), (Span(f"  {title_of(chart)} ", "dim"),), self.cells)

    def _picture(self, chart: Chart) -> list[Line]:
        if self._drawn is None or self._drawn_of is None or self._drawn_of.chart.kind is not chart.kind:
            return []
        cursor = self._column(self._drawn) if self.window.cursor is not None else None
        if self._shown != (shown := (self._drawn.frame, cursor, Zone.is_local)):
            self._picture_lines = chart_lines(self._drawn, cursor)
            self._shown = shown
        return [*self._legend(), *self._picture_lines]

    def _legend(self) -> list[Line]:
        """Which line is which. No values beside the names: they are told above, and would move the names."""
        chart = self._chart
        if chart is None or chart.kind is not ChartKind.STATES:
            return []
        most = max(1, self.rows_high // LEGEND_SHARE)
        lines = legend_lines(chart, self.chosen, max(1, self.cells - 2), most)
        return [(Span(" ", "", 1), *line) for line in lines]

    def _column(self, drawn: Drawn) -> int:
        """The column under the cursor."""
        if self.window.cursor is None:
            return drawn.columns - 1
        since, until, _, _ = drawn.frame
        column = (self.window.cursor - since) * drawn.columns // max(1, until - since)
        return max(0, min(drawn.columns - 1, column))
