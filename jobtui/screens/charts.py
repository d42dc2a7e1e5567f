"""The charts: how busy it is, how much is done, how many jobs are in each state, and for how long."""

from collections.abc import Callable, Iterator
from functools import partial
from time import monotonic

from textual import work
from textual.widget import Widget

from jobtui.actions import ScreenName
from jobtui.analysis.reports.charts import Chart, ChartData, ChartKind, KnownJobs, chart_of, material_of
from jobtui.backends.registry import Gives, kinds_that_give
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.commands import Command
from jobtui.model.numbers import counted
from jobtui.render.chart import times_lines, title_of
from jobtui.render.spans import Paragraph, words_of
from jobtui.render.text import Zone, clock_time, duration, safe, show
from jobtui.screens.base import test_of
from jobtui.screens.jobs import JobsFilteringScreen
from jobtui.screens.shared import CopyTarget, Shared, in_thread
from jobtui.store.store import Changes
from jobtui.widgets.chart import ChartView
from jobtui.widgets.filter_bar import FilterBar
from jobtui.widgets.frame import TabLine
from jobtui.widgets.row_view import Move

OLD_S = 2
"""From this age on the age of a chart is shown."""
PANS = {Move.TOP: -1e9, Move.PAGE_UP: -1.0, Move.HALF_UP: -0.5, Move.PAGE_DOWN: 1.0, Move.HALF_DOWN: 0.5}
"""By how many windows a key moves in time."""
KINDS = tuple(ChartKind)
REPORTS = {ChartKind.RATE: ChartKind.THROUGHPUT, ChartKind.TIMES: ChartKind.STATES}
"""Charts whose figures are in a report of another name."""
REST_S = 1.0
RESTS = 20
"""The pause between two drawings: REST_S seconds, or RESTS times as long as a slow drawing took."""


class ChartsScreen(JobsFilteringScreen):
    """One chart at a time, of the jobs that pass a filter."""

    NAME = ScreenName.CHARTS

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._kind = KINDS[0]
        self._material: ChartData | None = None
        self._counted: str | None = None
        self._charts: dict[ChartKind, Chart] = {}
        self._charts_of: ChartData | None = None
        self._due_at = 0.0
        self._is_stale = True
        """Whether something changed since the jobs were counted."""
        self._is_busy = False
        self._tabs = TabLine(KINDS)
        self._main = self._view = ChartView(shared.now)
        window = self._view.window
        self.action_zoom, self.action_pan = partial(self._go, window.zoom), partial(self._go, window.pan)
        self.action_whole = partial(self._go, window.show_whole)
        self.action_window = partial(self._go, window.next_span)

    def body(self) -> Iterator[Widget]:
        yield self._tabs
        yield self._view
        yield self._rule

    def on_mount(self) -> None:
        self._make()

    def take(self, changes: Changes) -> None:
        if changes.jobs or changes.gone:
            self._is_stale = True
        self._strip.sources = self.shared.store.sources()
        if self._is_due:
            self._make()

    def tick(self) -> None:
        super().tick()
        if self._is_due:
            self._make()

    @property
    def _is_due(self) -> bool:
        return self._is_stale and self.shared.paused_at is None and monotonic() >= self._due_at

    @property
    def _is_made(self) -> bool:
        """Whether the chart shows the last count, with the present filter."""
        is_counted = self._charts_of is self._material and self._counted == self.filter_text
        return is_counted and self._kind in self._charts

    @property
    def _chart(self) -> Chart | None:
        """The chart as it was last made, extended until now if nothing changed since."""
        chart = self._charts.get(self._kind)
        if chart is not None and not self._is_stale and self.shared.paused_at is None:
            chart = self._charts[self._kind] = chart._replace(end=self.shared.now())
        return chart

    def _make(self) -> None:
        if not self._is_busy:
            self._is_busy = True
            self._work()
        self._show_words()

    @work(name="charts")
    async def _work(self) -> None:
        began, must_count = monotonic(), self._is_due
        try:
            while must_count or not self._is_made:
                if must_count or self._counted != self.filter_text:
                    must_count = False
                    await self._count()
                if (material := self._material) is not None:
                    chart_now = partial(chart_of, kind := self._kind, material)
                    before = self._charts if self._charts_of is material else {}
                    self._charts = {**before, kind: await in_thread(chart_now)}
                    self._charts_of = material
        finally:
            self._is_busy = False
        self._due_at = monotonic() + max(REST_S, RESTS * (monotonic() - began))
        self.show_all()

    async def _count(self) -> None:
        self._is_stale, counted_by, store = False, self.filter_text, self.shared.store
        keeps = None if self._passes is None else self.job_test(partial(store.now_at, now=self.shared.now()))
        of_jobs = kinds_that_give(Gives.JOBS)
        is_reading = any(one.is_first_read for one in store.sources() if one.kind in of_jobs)
        now = self.shared.now()
        known = KnownJobs(store.jobs, store.changes.histories(), store.allocations(), now, is_reading)
        self._material = await in_thread(lambda: material_of(known, keeps))
        self._counted = counted_by

    def show_all(self) -> None:
        super().show_all()
        if (chart := self._chart) is not None:
            self._view.set_chart(chart)
        self._show_words()

    def _show_words(self) -> None:
        self._tabs.current = self._kind
        self._tabs.words = " · ".join(filter(None, self._words()))
        self._rule.words = show(" · ".join(chart.notes)) if (chart := self._chart) is not None else ""

    def _words(self) -> Iterator[str]:
        chart, window = self._chart, self._view.window
        if self.filter_text:
            yield f"/{safe(self.filter_text)}"
        if chart is not None:
            yield counted(chart.jobs, "job")
        if chart is not None and self._kind is not ChartKind.TIMES:
            then = "" if window.follows else " then"
            yield f"{'all ' * window.is_whole}{duration(window.span // SECOND)}{then}"
        if chart is not None and self._is_stale and self.shared.now() - chart.end > OLD_S * SECOND:
            yield f"as of {clock_time(chart.end)}{Zone.mark()}"
        if self._is_busy and chart is None:
            yield "counting …"

    def action_next_chart(self, by: int) -> None:
        self._kind = self._view.kind = KINDS[(KINDS.index(self._kind) + by) % len(KINDS)]
        self.show_all()
        if not self._is_made:
            self._make()

    def action_cursor(self, columns: int) -> None:
        self._view.move_cursor(columns)
        self._show_words()

    def _go(self, go: Callable[..., None], *given: float) -> None:
        go(*given)
        self._look()

    def _look(self) -> None:
        self._view.redraw()
        self._show_words()

    def action_move(self, move: str) -> None:
        self.forget_selected()
        match Move(move):
            case Move.UP:
                self._view.choose(-1)
            case Move.DOWN:
                self._view.choose(1)
            case Move.BOTTOM:
                self._view.window.pan(1e9)
                self._view.window.cursor = None
                self._look()
            case other:
                self.action_pan(PANS[other])

    def edit_filter(self, bar: FilterBar, text: str) -> None:
        bar.set_mistake(test_of(self.parsed, text)[1])

    def apply_filter(self) -> None:
        self._make()

    def action_back(self) -> None:
        if not self.filter_text and self._view.window.cursor is not None:
            self._view.window.cursor = None
            self._look()
        else:
            super().action_back()

    def action_open(self) -> None:
        from jobtui.screens.text import ReadingScreen

        if self._chart is None:
            self.notify("the chart is still being made", timeout=2)
            return
        taken = CopyTarget("", self.command())
        self.app.push_screen(ReadingScreen(self.shared, "chart", self.paragraphs(), taken))

    def copied(self) -> str:
        return self._view.words

    def action_picture(self) -> None:
        from jobtui.render.chart_svg import chart_svg
        from jobtui.screens.export import write_file

        chart, window = self._chart, self._view.window
        if chart is None or not chart.curves:
            self.notify("there is no chart to make a picture of", timeout=3)
            return
        since = Nanos(window.until - window.span)
        write_file(self, "\n".join(chart_svg(chart, since, window.until)), ending=".svg")

    def command(self) -> Command:
        return self.shared.command("report", REPORTS.get(self._kind, self._kind))

    def paragraphs(self) -> Iterator[Paragraph]:
        if (chart := self._chart) is None:
            return
        yield Paragraph(title_of(chart), "title")
        if self._view.words:
            yield Paragraph(self._view.words)
        for line in times_lines(chart.times, self._view.cells - 2) if chart.times else ():
            yield Paragraph(words_of(line))
        for curve in chart.curves:
            words = f"{curve.series.name}: {counted(len(curve.series.x), 'point')}, in {curve.series.unit}"
            yield Paragraph(show(words))
        for note in chart.notes:
            yield Paragraph(show(note), "dim")
