"""The charts: how busy all is, how much gets done, how many jobs are in which state and how long."""

from collections.abc import Callable, Iterator
from time import monotonic

from textual.widget import Widget

from jobtui.actions import Place
from jobtui.analysis.reports.charts import Chart, ChartKind, KnownJobs, Material, chart_of, material_of
from jobtui.backends.registry import Gives, kinds_that_give
from jobtui.model.clock import SECOND
from jobtui.model.commands import Command
from jobtui.model.numbers import counted
from jobtui.render.chart import HEADS, time_rows, title_of
from jobtui.render.spans import Paragraph
from jobtui.render.text import Zone, clock_time, duration, safe, show
from jobtui.screens.base import bindings_at
from jobtui.screens.jobs import JobFilter, JobsFilteringScreen, mistake_in
from jobtui.screens.shared import Shared, Taken, in_thread
from jobtui.store.store import Changes
from jobtui.widgets.chart import ChartView
from jobtui.widgets.filter_bar import Mistake
from jobtui.widgets.frame import TabLine
from jobtui.widgets.row_view import Move

OLD_S = 2
"""From this age on it is said how old a chart is."""
KINDS = tuple(ChartKind)
REPORTS = {
    ChartKind.UTILIZATION: "utilization",
    ChartKind.THROUGHPUT: "throughput",
    ChartKind.RATE: "throughput",
    ChartKind.STATES: "states",
    ChartKind.TIMES: "states",
}
"""The report that prints the figures of a chart."""


class ChartsScreen(JobsFilteringScreen):
    """One chart at a time, of the jobs that pass a filter."""

    PLACE = Place.CHARTS
    BINDINGS = bindings_at(Place.CHARTS)

    DEFAULT_CSS = "ChartsScreen.-flat TabLine { display: none; }"

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._kind = KINDS[0]
        self._maker = ChartMaker(shared, self._filter)
        self._tabs = TabLine(KINDS)
        self._view = ChartView(shared.now)

    def body(self) -> Iterator[Widget]:
        yield self._tabs
        yield self._view
        yield self._rule

    def on_mount(self) -> None:
        self._strip.sources = self.shared.store.sources()
        self._make()

    def take(self, changes: Changes) -> None:
        if changes.jobs or changes.gone:
            self._maker.is_stale = True
        self._strip.sources = self.shared.store.sources()
        self._make_when_due()

    def tick(self) -> None:
        self._strip.sources = self.shared.store.sources()
        self._header.repaint()
        self._make_when_due()
        self._show()

    def show_all(self) -> None:
        self._show()

    def _make_when_due(self) -> None:
        if self._maker.is_due:
            self._make()

    def _make(self) -> None:
        if not self._maker.is_busy:
            self._maker.is_busy = True
            self.run_worker(self._made(), name="charts")
        self._show_words()

    async def _made(self) -> None:
        await self._maker.make(lambda: self._kind)
        self._show()

    def _show(self) -> None:
        chart = self._maker.chart(self._kind)
        if chart is not None:
            self._view.set_chart(chart)
        self._show_words()

    def _show_words(self) -> None:
        self._tabs.current = self._kind
        self._tabs.words = " · ".join(filter(None, self._words()))
        chart = self._maker.chart(self._kind)
        self._rule.words = show(" · ".join(chart.notes)) if chart is not None else ""

    def _words(self) -> Iterator[str]:
        chart, window = self._maker.chart(self._kind), self._view.window
        if self._filter.text:
            yield f"/{safe(self._filter.text)}"
        if chart is not None:
            yield counted(chart.jobs, "job")
        if self._kind is not ChartKind.TIMES:
            yield f"{'all ' * window.is_whole}{duration(window.span // SECOND)}" + (
                "" if window.follows else " then"
            )
        if chart is not None and self._maker.is_stale and self.shared.now() - chart.end > OLD_S * SECOND:
            yield f"as of {clock_time(chart.end)}{Zone.mark()}"
        if self._maker.is_busy and chart is None:
            yield "counting …"

    # What is looked at.

    def action_next_chart(self, by: int) -> None:
        self._kind = self._view.kind = KINDS[(KINDS.index(self._kind) + by) % len(KINDS)]
        self._show()
        if not self._maker.is_made(self._kind):
            self._make()

    def action_cursor(self, columns: int) -> None:
        self._view.move_cursor(columns)
        self._show_words()

    def action_zoom(self, factor: float) -> None:
        self._view.window.zoom(factor)
        self._look()

    def action_pan(self, part: float) -> None:
        self._view.window.pan(part)
        self._look()

    def action_whole(self) -> None:
        self._view.window.show_whole()
        self._look()

    def action_window(self) -> None:
        self._view.window.next_span()
        self._look()

    def _look(self) -> None:
        self._view.redraw()
        self._show_words()

    def move_list(self, move: Move) -> None:
        match move:
            case Move.UP | Move.DOWN:
                self._view.choose(-1 if move is Move.UP else 1)
            case Move.TOP:
                self._view.window.pan(-1e9)
                self._look()
            case Move.BOTTOM:
                self._view.window.pan(1e9)
                self._view.window.cursor = None
                self._look()
            case Move.PAGE_UP | Move.HALF_UP:
                self.action_pan(-1.0 if move is Move.PAGE_UP else -0.5)
            case Move.PAGE_DOWN | Move.HALF_DOWN:
                self.action_pan(1.0 if move is Move.PAGE_DOWN else 0.5)

    # Which jobs count.

    def preview_filter(self, text: str) -> Mistake | None:
        return mistake_in(text)

    def set_filter(self, text: str) -> Mistake | None:
        before = self._filter.text
        mistake = self._filter.set(text)
        if self._filter.text != before:
            self._make()
        return mistake

    def action_back(self) -> None:
        if self._filter.text:
            self.set_filter("")
        elif self._view.window.cursor is not None:
            self._view.window.cursor = None
            self._look()
        else:
            super().action_back()

    # What is taken along.

    def action_open(self) -> None:
        from jobtui.screens.text import ReadingScreen

        taken = Taken("", self.command())
        self.app.push_screen(ReadingScreen(self.shared, "chart", self.paragraphs(), taken))

    def copied(self) -> str:
        return self._view.words

    def action_picture(self) -> None:
        self.copy(f"{self.shared.command('report', REPORTS[self._kind], '--svg')} > chart.svg")

    def command(self) -> Command:
        return self.shared.command("report", REPORTS[self._kind])

    def paragraphs(self) -> Iterator[Paragraph]:
        chart = self._maker.chart(self._kind)
        if chart is None:
            return
        yield Paragraph(title_of(chart), "title")
        if self._view.words:
            yield Paragraph(self._view.words)
        for row in (HEADS, *time_rows(chart.times)) if chart.times else ():
            yield Paragraph("  ".join(f"{text:<12}" for text in row).rstrip())
        for curve in chart.curves:
            yield Paragraph(
                show(f"{curve.series.name}: {len(curve.series.x):,} points, in {curve.series.unit}")
            )
        for note in chart.notes:
            yield Paragraph(show(note), "dim")


REST_S = 1.0
RESTS = 20
"""After charts were made comes a rest: that long, or so many times as long as it took."""


class ChartMaker:
    """The charts of the jobs that pass a filter."""

    def __init__(self, shared: Shared, jobs: JobFilter) -> None:
        self._shared = shared
        self._jobs = jobs
        self._material: Material | None = None
        self._counted: str | None = None
        self._charts: dict[ChartKind, Chart] = {}
        self._charts_of: Material | None = None
        self._due_at = 0.0
        self.is_stale = True
        """Whether something changed since the jobs were counted."""
        self.is_busy = False

    @property
    def is_due(self) -> bool:
        return self.is_stale and self._shared.paused_at is None and monotonic() >= self._due_at

    def is_made(self, kind: ChartKind) -> bool:
        """Whether a chart is made of what was counted last, by the filter that holds."""
        is_counted = self._charts_of is self._material and self._counted == self._jobs.text
        return is_counted and kind in self._charts

    def chart(self, kind: ChartKind) -> Chart | None:
        """A chart as it was made last; where nothing changed since, it goes on until now."""
        chart = self._charts.get(kind)
        if chart is not None and not self.is_stale and self._shared.paused_at is None:
            chart = self._charts[kind] = chart._replace(end=self._shared.now())
        return chart

    async def make(self, kind: Callable[[], ChartKind]) -> None:
        begun, self.is_busy = monotonic(), True
        counts_anew = self.is_due
        try:
            while counts_anew or not self.is_made(kind()):
                if counts_anew or self._counted != self._jobs.text:
                    counts_anew = False
                    await self._count()
                await self._make(kind())
        finally:
            self.is_busy = False
        self._due_at = monotonic() + max(REST_S, RESTS * (monotonic() - begun))

    async def _count(self) -> None:
        self.is_stale, counted, store = False, self._jobs.text, self._shared.store
        keeps = None if self._jobs.is_empty else self._jobs.test()
        of_jobs = kinds_that_give(Gives.JOBS)
        is_reading = any(one.is_first_read for one in store.sources() if one.kind in of_jobs)
        now = self._shared.now()
        known = KnownJobs(store.jobs, store.changes.histories(), store.allocations(), now, is_reading)
        self._material = await in_thread(lambda: material_of(known, keeps))
        self._counted = counted

    async def _make(self, kind: ChartKind) -> None:
        material = self._material
        if material is not None:
            chart = await in_thread(lambda: chart_of(kind, material))
            self._charts = {**(self._charts if self._charts_of is material else {}), kind: chart}
            self._charts_of = material
