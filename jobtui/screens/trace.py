"""One trace: which span failed and why, what came before it, on what the time went."""

from textual.app import ComposeResult

from jobtui.actions import Place, hints_at
from jobtui.analysis.filter import token_span
from jobtui.analysis.traces.findings import Findings
from jobtui.analysis.traces.span_filter import FIELD_NAMES, values_of
from jobtui.model.trace_ids import SpanId, TraceId
from jobtui.render.text import show
from jobtui.render.trace_facts import Sentence, sentence_of, short_id
from jobtui.screens.base import Board, Taken, bindings_at
from jobtui.screens.filtering import FilteringScreen
from jobtui.screens.trace_pane import TracePane
from jobtui.screens.trace_reader import TraceReader
from jobtui.store.store import Changes
from jobtui.widgets.filter_bar import Completion, FilterBar, Mistake
from jobtui.widgets.header import Header
from jobtui.widgets.key_line import KeyLine
from jobtui.widgets.row_view import Move
from jobtui.widgets.source_strip import SourceStrip
from jobtui.widgets.trace_facts import TraceFacts

MOST_OFFERED = 50
ZOOM_IN, PAN = 0.5, 0.25


class SpanFilterBar(FilterBar):
    """A filter of spans is typed in it."""

    PLACEHOLDER = "words, or: service:worker dur>10ms error:yes name:step host.name:w03"


class TraceScreen(FilteringScreen):
    """A trace as a waterfall, and all about the span under the cursor."""

    PLACE = Place.TRACE
    BINDINGS = bindings_at(Place.TRACE)

    DEFAULT_CSS = """
    TraceScreen.-low SourceStrip, TraceScreen.-tiny Header, TraceScreen.-tiny NoticeLine { display: none; }
    """

    def __init__(
        self, board: Board, trace_id: TraceId, span_id: SpanId | None = None, note: str = ""
    ) -> None:
        super().__init__(board)
        self.trace_id = trace_id
        self._span_id = span_id
        self._note = note
        self._reader = TraceReader(self, board, trace_id, self._told)
        self._header = Header(board.now, board.title)
        self._facts = TraceFacts()
        self._strip = SourceStrip(board.now)
        self._pane = TracePane(board)

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield self._header
        yield self._strip
        yield self._facts
        yield self._pane
        yield self._rule
        yield KeyLine(hints_at(Place.TRACE))

    def on_mount(self) -> None:
        """Read it."""
        self._told()
        self._reader.begin()

    @property
    def crumb(self) -> str:
        """The trace, short."""
        return short_id(self.trace_id)

    def show_trail(self) -> None:
        """Say where one is."""
        self._header.set_title(self.titled(self.crumb))

    def take(self, changes: Changes) -> None:
        """Study it again when more of it came."""
        if self.trace_id in changes.traces:
            self._reader.changed()
        self._strip.set_sources(self.board.store.sources())

    def tick(self) -> None:
        """Let the clock go on."""
        self._header.repaint()
        self._strip.set_sources(self.board.store.sources())
        self._reader.look()

    def show_all(self) -> None:
        """Show everything anew, in other times perhaps."""
        self._told()

    def _told(self) -> None:
        """There is news of the trace."""
        picture = self._reader.picture
        if picture is not None:
            self._pane.set_trace(picture)
            if self._span_id is not None:
                self._pane.waterfall.reveal(self._span_id)
                self._span_id = None
        else:
            self._pane.waterfall.set_empty(self._silence())
        self._facts.set_facts(*self._sentence(picture.found if picture else None))
        self._rule.set_words(self._words())
        self._strip.set_sources(self.board.store.sources())

    def _sentence(self, found: Findings | None) -> tuple[Sentence, str]:
        picture = self._reader.picture
        if found is None or picture is None:
            return Sentence("" if self._reader.is_read else "reading …", "dim"), ""
        return sentence_of(found, self._reader.growing), picture.stages

    def _words(self) -> str:
        """How much of it there is, what could not be asked, how it was found."""
        counts = self._reader.picture.counts if self._reader.picture else ""
        growing = f"not complete: {show(self._reader.growing)}" if self._reader.growing and counts else ""
        notes = map(show, (*self._reader.notes, self._note))
        return " · ".join(filter(None, (counts, growing, *notes)))

    def _silence(self) -> tuple[str, ...]:
        """Why there is nothing to see."""
        if not self._reader.is_read:
            return ()
        asked = f"no source that was asked knows of trace {self.trace_id}"
        return (asked, *map(show, self._reader.notes))

    # Moving, folding, looking.

    def move_list(self, move: Move) -> None:
        """Move in the part that has the keys."""
        self._pane.move(move)

    def action_switch_pane(self) -> None:
        """From the waterfall to the text, or back."""
        self._pane.switch_pane()

    def action_open(self) -> None:
        """Read all about the span; unfold a run."""
        line = self._pane.waterfall.current
        if line is None or line.run is None or not self._pane.waterfall.toggle_fold():
            self._pane.read()

    def action_fold(self, step: int) -> None:
        """Fold, or unfold."""
        if step < 0:
            self._pane.waterfall.fold()
        elif not self._pane.waterfall.unfold():
            self._pane.waterfall.move(Move.DOWN)

    def action_toggle_fold(self) -> None:
        """Fold or unfold."""
        self._pane.waterfall.toggle_fold()

    def action_fold_all(self) -> None:
        """Fold everything, or unfold it."""
        self._pane.waterfall.toggle_all()

    def action_failure(self, step: int) -> None:
        """The next span that failed."""
        self._pane.next_failure(step)

    def action_failures(self) -> None:
        """Only what leads to a failure."""
        self._pane.toggle_failures()

    def action_zoom(self, factor: float) -> None:
        """Look at less or more of the time."""
        self._pane.waterfall.zoom(factor)
        self._pane.show_words()

    def action_pan(self, part: float) -> None:
        """Look at other times."""
        self._pane.waterfall.pan(part)
        self._pane.show_words()

    def action_zoom_to(self) -> None:
        """Look at the span under the cursor."""
        self._pane.waterfall.zoom_to_line()
        self._pane.show_words()

    def action_whole(self) -> None:
        """Look at everything."""
        self._pane.waterfall.show_whole()
        self._pane.show_words()

    def action_path(self) -> None:
        """Mark the critical path."""
        self._pane.toggle_path()

    def action_squeeze(self) -> None:
        """Squeeze what is idle, or not."""
        self._pane.waterfall.toggle_squeeze()
        self._pane.show_words()

    # Which spans.

    def filter_bar(self) -> FilterBar:
        """The line in which the filter is typed."""
        return SpanFilterBar(self._pane.filter_text, history=self._filters, completer=self._complete)

    def set_filter(self, text: str) -> Mistake | None:
        """Show only spans that pass, all when something is wrong with the filter: what it is."""
        return self._pane.set_filter(text)

    def _complete(self, text: str, cursor: int) -> Completion:
        """Fields, and the values that the spans have."""
        start, end = token_span(text, cursor)
        field, colon, begun = text[start:end].partition(":")
        if not colon:
            return Completion(start, end, [f"{name}:" for name in FIELD_NAMES if name.startswith(field)])
        found = self._pane.waterfall.found
        values = values_of(found.tree.spans, field.lower()) if found else ()
        plain = [value for value in values if not any(char in ' "(),' for char in value)]
        begun_so = [value for value in plain if value.lower().startswith(begun.lower())]
        return Completion(start, end, [f"{field}:{value}" for value in sorted(begun_so)[:MOST_OFFERED]])

    def action_back(self) -> None:
        """End the filter, then look at everything, then leave the screen."""
        if self._pane.waterfall.passing is not None:
            self._pane.set_filter("")
        elif not self._pane.waterfall.is_whole:
            self.action_whole()
        else:
            super().action_back()

    # What is taken along.

    def action_copy(self) -> None:
        """Copy the id of the trace."""
        self.copy(self.trace_id)

    async def taken(self) -> Taken | None:
        """All about the span, and the command that shows the trace."""
        block = "\n".join(part.text for part in self._pane.paragraphs())
        return Taken(block, self._pane.command)
