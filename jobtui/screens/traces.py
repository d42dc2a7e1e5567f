"""Recent traces of all that knows of some; one of them opens as a waterfall."""

from textual import on
from textual.app import ComposeResult

from jobtui.actions import Place, hints_at
from jobtui.analysis.filter import token_span
from jobtui.analysis.traces.standing import FIELD_NAMES, Standing, TraceTest, parse_trace_filter
from jobtui.model.words import counted
from jobtui.render.text import safe, show
from jobtui.render.trace_columns import TRACE_COLUMNS, TraceLook, sort_traces
from jobtui.screens.base import Board, Taken, bindings_at
from jobtui.screens.filtering import FilteredList
from jobtui.screens.taking import jobtui_command
from jobtui.screens.trace_list import TraceLister
from jobtui.store.store import Changes
from jobtui.widgets.filter_bar import Completion, FilterBar
from jobtui.widgets.header import Header
from jobtui.widgets.key_line import KeyLine
from jobtui.widgets.row_view import Move
from jobtui.widgets.rule_line import RuleLine
from jobtui.widgets.source_strip import SourceStrip
from jobtui.widgets.trace_table import TraceTable

NOTHING_CONFIGURED = (
    "No trace is known.",
    "Name where traces are: --trace-file FILE (OTLP as JSON, JSONL or protobuf, Jaeger's JSON), "
    "or a server; `jobtui --help` and the README list the settings, `jobtui doctor` says what each is worth.",
    "Any trace id, TRACEPARENT or log line that holds one can be pasted behind `:`.",
)
"""What is said where there is nothing to see."""


class TraceFilterBar(FilterBar):
    """A filter of traces is typed in it."""

    PLACEHOLDER = "words, or: service:fife dur>10m error:yes state:growing name:submit"


class TracesScreen(FilteredList):
    """The newest traces."""

    PLACE = Place.TRACES
    BINDINGS = bindings_at(Place.TRACES)
    SORT_KEYS = tuple(column.key for column in TRACE_COLUMNS)

    DEFAULT_CSS = """
    TracesScreen TraceTable { height: 1fr; }
    TracesScreen.-low RuleLine.-needed { display: block; }
    TracesScreen.-tiny Header, TracesScreen.-tiny NoticeLine { display: none; }
    """

    def __init__(self, board: Board) -> None:
        super().__init__(board)
        self._passes: TraceTest = parse_trace_filter("")
        self._lister = TraceLister(self, board, self.show_all)
        self._header = Header(board.now, board.title)
        self._strip = SourceStrip(board.now)
        self._table = TraceTable(self._look)

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield self._header
        yield self._strip
        yield RuleLine()
        yield self._table
        yield self._rule
        yield KeyLine(hints_at(Place.TRACES))

    def on_mount(self) -> None:
        """Ask at once."""
        self._lister.look()
        self.show_all()

    def show_trail(self) -> None:
        """Say where one is."""
        self._header.set_title(self.titled(self.crumb))

    def take(self, changes: Changes) -> None:
        """List what came, soon."""
        if changes.traces:
            self._lister.news()
        self._strip.set_sources(self.board.store.sources())

    def tick(self) -> None:
        """Let ages go on, and ask again when it is time."""
        self._lister.look()
        self._header.repaint()
        self._table.repaint()
        self._strip.set_sources(self.board.store.sources())

    def show_all(self) -> None:
        """Show the traces anew; what is the same is not painted again."""
        passing = [listed for listed in self._lister.traces if self._passes(listed)]
        ordered = sort_traces(passing, self._sorted_by, reverse=self._reverse)
        self._table.set_empty(self._silence())
        self._table.set_records(ordered, sorted_by=self._sorted_by, reverse=self._reverse)
        self._strip.set_sources(self.board.store.sources())
        self._rule.set_words(self._words())
        self._rule.set_class(bool(self._filter_text), "-needed")

    def _look(self) -> TraceLook:
        return TraceLook(self.board.now(), relative=not self.board.absolute)

    def _silence(self) -> tuple[str, ...]:
        """Why no trace is shown."""
        if not self._lister.is_read:
            return ("asking …",)
        if self._lister.traces:
            return ("no trace passes the filter",)
        return (*NOTHING_CONFIGURED, *map(show, self._lister.notes))

    def _words(self) -> str:
        """How many there are, how many of them failed or grow, and what could not be asked."""
        traces = self._lister.traces
        failed = sum(bool(listed.told.errors) for listed in traces)
        grow = sum(listed.standing is Standing.GROWING for listed in traces)
        total = counted(len(traces), "trace")
        parts = (
            f"/{safe(self._filter_text)}" if self._filter_text else "",
            f"{self._table.count:,} of {total}" if self._filter_text else total,
            f"{failed:,} with errors" if failed else "",
            f"{grow:,} growing" if grow else "",
            self._order_words,
            *map(show, self._lister.notes),
        )
        return " · ".join(filter(None, parts))

    def move_list(self, move: Move) -> None:
        """Move the cursor."""
        self._table.move(move)

    @on(TraceTable.Opened)
    def action_open(self) -> None:
        """Open the trace under the cursor."""
        from jobtui.screens.trace import TraceScreen

        if (listed := self._table.record) is not None:
            self.app.push_screen(TraceScreen(self.board, listed.told.trace_id))

    def action_copy(self) -> None:
        """Copy the id of the trace under the cursor."""
        if (listed := self._table.record) is not None:
            self.copy(listed.told.trace_id)

    async def taken(self) -> Taken | None:
        """All that is told of the trace under the cursor, and the command that shows it."""
        listed = self._table.record
        if listed is None:
            return None
        look = self._look()
        facts = (f"{column.key:<10}{column.cell(listed, look)}" for column in TRACE_COLUMNS)
        block = "\n".join((f"{'trace':<10}{listed.told.trace_id}", *facts))
        return Taken(block, jobtui_command(self.board, "trace", listed.told.trace_id))

    def filter_bar(self) -> FilterBar:
        """The line in which the filter is typed."""
        return TraceFilterBar(self._filter_text, history=self._filters, completer=_complete)

    def let_pass(self, text: str) -> None:
        """Let only traces pass of which this is true."""
        self._passes = parse_trace_filter(text)


def _complete(text: str, cursor: int) -> Completion:
    start, end = token_span(text, cursor)
    begun = text[start:end]
    return Completion(start, end, [f"{name}:" for name in FIELD_NAMES if name.startswith(begun)])
