"""The charts: how busy all is, how much gets done, how many jobs are in which state and how long."""

from collections.abc import Iterator

from textual.app import ComposeResult

from jobtui.actions import Place, hints_at
from jobtui.analysis.charts import ChartKind
from jobtui.model.clock import SECOND
from jobtui.model.words import counted
from jobtui.render.chart_times import HEADS, time_rows
from jobtui.render.chart_words import title_of
from jobtui.render.text import Zone, clock_time, duration, safe, show
from jobtui.screens.base import Board, Taken, bindings_at
from jobtui.screens.chart_maker import ChartMaker
from jobtui.screens.filtering import FilteringScreen
from jobtui.screens.job_filter import JobFilter, Whereabouts, mistake_in
from jobtui.store.store import Changes
from jobtui.widgets.chart import ChartView
from jobtui.widgets.filter_bar import FilterBar, Mistake
from jobtui.widgets.header import Header
from jobtui.widgets.key_line import KeyLine
from jobtui.widgets.row_view import Move
from jobtui.widgets.source_strip import SourceStrip
from jobtui.widgets.tab_line import TabLine
from jobtui.widgets.text_pane import Paragraph

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


class ChartsScreen(FilteringScreen):
    """One chart at a time, of the jobs that pass a filter."""

    PLACE = Place.CHARTS
    BINDINGS = bindings_at(Place.CHARTS)

    DEFAULT_CSS = """
    ChartsScreen.-flat TabLine, ChartsScreen.-tiny Header, ChartsScreen.-tiny NoticeLine { display: none; }
    """

    def __init__(self, board: Board) -> None:
        super().__init__(board)
        self._kind = KINDS[0]
        self._filter = JobFilter(board.now, Whereabouts(board).context)
        self._maker = ChartMaker(board, self._filter)
        self._header = Header(board.now, board.title)
        self._strip = SourceStrip(board.now)
        self._tabs = TabLine(KINDS)
        self._view = ChartView(board.now)

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield self._header
        yield self._strip
        yield self._tabs
        yield self._view
        yield self._rule
        yield KeyLine(hints_at(Place.CHARTS))

    def on_mount(self) -> None:
        """Show what is known already."""
        self._strip.set_sources(self.board.store.sources())
        self._make()

    def show_trail(self) -> None:
        """Say where one is."""
        self._header.set_title(self.titled(self.crumb))

    def take(self, changes: Changes) -> None:
        """Count what changed, when it is time again."""
        if changes.jobs or changes.gone:
            self._maker.is_stale = True
        self._strip.set_sources(self.board.store.sources())
        self._make_when_due()

    def tick(self) -> None:
        """Let the time go on."""
        self._strip.set_sources(self.board.store.sources())
        self._header.repaint()
        self._make_when_due()
        self._show()

    def show_all(self) -> None:
        """Draw everything anew."""
        self._show()

    def _make_when_due(self) -> None:
        if self._maker.is_due:
            self._make()

    def _make(self) -> None:
        """Begin to make the chart that is shown, unless that is being done."""
        if not self._maker.is_busy:
            self._maker.is_busy = True
            self.run_worker(self._made(), name="charts")
        self._show_words()

    async def _made(self) -> None:
        await self._maker.make(lambda: self._kind)
        self._show()

    def _show(self) -> None:
        """Show the chart as far as it is known now."""
        chart = self._maker.chart(self._kind)
        if chart is not None:
            self._view.set_chart(chart)
        self._show_words()

    def _show_words(self) -> None:
        self._tabs.set_current(self._kind)
        self._tabs.set_words(" · ".join(filter(None, self._words())))
        chart = self._maker.chart(self._kind)
        self._rule.set_words(show(" · ".join(chart.notes)) if chart is not None else "")

    def _words(self) -> Iterator[str]:
        """What is looked at, and how old it is."""
        chart, window = self._maker.chart(self._kind), self._view.window
        if self._filter.text:
            yield f"/{safe(self._filter.text)}"
        if chart is not None:
            yield counted(chart.jobs, "job")
        if self._kind is not ChartKind.TIMES:
            yield f"{'all ' * window.is_whole}{duration(window.span // SECOND)}" + (
                "" if window.follows else " then"
            )
        if chart is not None and self._maker.is_stale and self.board.now() - chart.end > OLD_S * SECOND:
            yield f"as of {clock_time(chart.end)}{Zone.mark()}"
        if self._maker.is_busy and chart is None:
            yield "counting …"

    # What is looked at.

    def action_next_chart(self, by: int) -> None:
        """Show the next chart."""
        self._kind = KINDS[(KINDS.index(self._kind) + by) % len(KINDS)]
        self._show()
        if not self._maker.is_made(self._kind):
            self._make()

    def action_cursor(self, columns: int) -> None:
        """Move the cursor."""
        self._view.move_cursor(columns)
        self._show_words()

    def action_zoom(self, factor: float) -> None:
        """Look at more or less."""
        self._view.window.zoom(factor)
        self._look()

    def action_pan(self, part: float) -> None:
        """Look at other times."""
        self._view.window.pan(part)
        self._look()

    def action_whole(self) -> None:
        """Look at everything."""
        self._view.window.show_whole()
        self._look()

    def action_window(self) -> None:
        """Look at the next longer stretch up to now."""
        self._view.window.next_span()
        self._look()

    def _look(self) -> None:
        self._view.redraw()
        self._show_words()

    def move_list(self, move: Move) -> None:
        """Let one state stand alone, go to other times, to the beginning or to now."""
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

    def filter_bar(self) -> FilterBar:
        """The line in which the filter is typed."""
        # Imported here, as the first paint does not need it
        from jobtui.screens.command_table import complete_filter_at

        known = self.known_values()
        return FilterBar(
            self._filter.text,
            history=self._filters,
            completer=lambda text, cursor: complete_filter_at(text, cursor, known),
        )

    def preview_filter(self, text: str) -> Mistake | None:
        """What is wrong with it; counting by it takes too long for every key."""
        return mistake_in(text)

    def set_filter(self, text: str) -> Mistake | None:
        """Let only these jobs count, or all when something is wrong with it: what it is."""
        before = self._filter.text
        mistake = self._filter.set(text)
        if self._filter.text != before:
            self._make()
        return mistake

    def action_back(self) -> None:
        """End the filter, then the cursor, then leave the screen."""
        if self._filter.text:
            self.set_filter("")
        elif self._view.window.cursor is not None:
            self._view.window.cursor = None
            self._look()
        else:
            super().action_back()

    # What is taken along.

    def action_open(self) -> None:
        """Read all that the chart says."""
        # Imported here, as the first paint does not need it
        from jobtui.screens.reading import ReadingScreen

        self.app.push_screen(ReadingScreen(self.board, "chart", list(self._paragraphs()), self._taken()))

    def action_copy(self) -> None:
        """Copy what is said of the time under the cursor."""
        if self._view.words:
            self.copy(self._view.words)

    async def taken(self) -> Taken | None:
        """All that the chart says, and the command that prints its figures."""
        return self._taken()

    def _taken(self) -> Taken:
        from jobtui.screens.taking import jobtui_command

        block = "\n".join(part.text for part in self._paragraphs())
        return Taken(block, jobtui_command(self.board, "report", REPORTS[self._kind]))

    def _paragraphs(self) -> Iterator[Paragraph]:
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
