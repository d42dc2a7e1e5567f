"""A waterfall, and below it all about the span under its cursor."""

import asyncio
from collections.abc import Iterator
from functools import partial

from textual import on
from textual.app import ComposeResult
from textual.containers import Container

from jobtui.analysis.filter_syntax import FilterError
from jobtui.analysis.traces.layout import LineKey
from jobtui.analysis.traces.span_filter import SpanTest, parse_span_filter
from jobtui.model.trace_ids import SpanId, TraceId
from jobtui.model.traces import Span
from jobtui.model.words import counted
from jobtui.render.span_detail import Part, detail_parts
from jobtui.render.span_words import span_time
from jobtui.render.text import safe, show
from jobtui.screens.board import Board, Taken
from jobtui.screens.job_tab import start
from jobtui.screens.reading import ReadingScreen
from jobtui.screens.taking import jobtui_command
from jobtui.widgets.filter_bar import Mistake
from jobtui.widgets.row_view import Move
from jobtui.widgets.rule_line import RuleLine
from jobtui.widgets.text_pane import Paragraph, TextPane
from jobtui.widgets.trace_lines import Picture, path_of
from jobtui.widgets.waterfall import Waterfall, failed_keys

FILTERING = "filter"
"""What looks at the spans that a filter is for; a later one takes its place."""


class TracePane(Container):
    """One trace, told by its screen when it is known better."""

    SCOPED_CSS = False  # its rules name the classes of screens, which say how much room there is
    DEFAULT_CSS = """
    TracePane { height: 1fr; }
    TracePane Waterfall { height: 1fr; }
    TracePane TextPane { height: 34%; min-height: 4; }
    .-low TracePane TextPane, .-flat TracePane TextPane { display: none; }
    .-low TracePane RuleLine.-needed { display: block; }
    """

    def __init__(self, board: Board) -> None:
        super().__init__()
        self.board = board
        self.waterfall = Waterfall(board.service_marks())
        self.filter_text = ""
        self._only_failures = False
        self._failed: frozenset[LineKey] = frozenset()
        self._rule = RuleLine()
        self._detail = TextPane()
        self._at: object = None
        self._finding: object = None
        self._place = ""

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield self.waterfall
        yield self._rule
        yield self._detail

    def on_mount(self) -> None:
        """The waterfall has the keys."""
        self._show_words()

    def set_trace(self, picture: Picture) -> None:
        """Show a trace, or the same as it is now."""
        self.waterfall.set_trace(picture)
        if self._only_failures and failed_keys(picture.found) != self._failed:
            self._show_failures()
        self._know_path()
        self._show_words()

    def move(self, move: Move) -> None:
        """Move in the part that has the keys."""
        (self.waterfall if self.waterfall.is_active else self._detail).move(move)

    def switch_pane(self) -> None:
        """From the waterfall to the text below, or back."""
        to_text = self.waterfall.is_active and self._detail.display
        self.waterfall.set_active(not to_text)

    def next_failure(self, step: int) -> None:
        """Go to the next span that failed."""
        found = self.waterfall.next_failure(step)
        self._place = f"failure {found[0]:,} of {found[1]:,}" if found else ""
        if found is None:
            self.notify("nothing failed in this trace", timeout=2)
        self._show_words()

    def set_filter(self, text: str) -> Mistake | None:
        """Show only spans that pass, all when something is wrong with the filter: what it is.

        What looks at every span of a large trace is done beside the event loop.
        """
        mistake = None
        try:
            passes = parse_span_filter(text) if text.strip() else None
        except FilterError as error:
            passes, mistake, text = None, Mistake(error.start, error.end, show(str(error))), ""
        self.filter_text, self._only_failures = text.strip(), False
        self._let_pass(passes)
        return mistake

    def toggle_failures(self) -> None:
        """Show only what leads to a failure, or all again."""
        found = self.waterfall.found
        if found is None or self._only_failures:
            self.set_filter("")
        elif not failed_keys(found):
            self.notify("nothing failed in this trace", timeout=2)
        else:
            self.filter_text, self._only_failures = "", True
            self._show_failures()

    def _show_failures(self) -> None:
        """Show only what leads to a failure: these are known, and few."""
        found = self.waterfall.found
        if found is not None:
            self.workers.cancel_group(self, FILTERING)
            self._failed = failed_keys(found)
            self.waterfall.set_filter(self._is_failure, keys=self._failed)
            self._show_words()

    def toggle_path(self) -> None:
        """Mark what the trace spent its time on, or no longer."""
        self.waterfall.toggle_path()
        self._know_path()
        self._show_words()

    def _know_path(self) -> None:
        """Find the path once the trace is shown, each time that it is known better."""
        if self.waterfall.lacks_path and self._finding is not self.waterfall.found:
            self._finding = self.waterfall.found
            start(self, self._find_path, group="find path", exclusive=True)

    async def _find_path(self) -> None:
        found = self.waterfall.found
        if found is not None:
            self.waterfall.set_path(found, await asyncio.to_thread(path_of, found))

    def _is_failure(self, span: Span) -> bool:
        return span.span_id in self._failed

    def _let_pass(self, passes: SpanTest | None) -> None:
        start(self, partial(self._filter, passes), group=FILTERING, exclusive=True)

    async def _filter(self, passes: SpanTest | None) -> None:
        found = self.waterfall.found
        tested: dict[SpanId, bool] | None = None
        if found is not None and passes is not None:
            tested = await asyncio.to_thread(lambda: {one.span_id: passes(one) for one in found.tree.spans})
        self.waterfall.set_filter(passes, tested)
        self._show_words()

    def read(self) -> None:
        """Read all about the line under the cursor on a screen of its own."""
        text = [*self.paragraphs()]
        if text:
            taken = Taken("", self.command)
            self.app.push_screen(ReadingScreen(self.board, "span", text, taken))

    @property
    def trace_id(self) -> TraceId | None:
        """The trace that is shown."""
        return self.waterfall.trace_id

    @property
    def command(self) -> str:
        """The command that shows the same outside."""
        return jobtui_command(self.board, "trace", self.trace_id) if self.trace_id else ""

    def paragraphs(self) -> Iterator[Paragraph]:
        """All about the line under the cursor."""
        found, line = self.waterfall.found, self.waterfall.current
        if found is not None and line is not None:
            yield from map(_paragraph, detail_parts(found, line, self.waterfall.names_above))

    @on(Waterfall.Highlighted)
    def _show_detail(self, message: Waterfall.Highlighted) -> None:
        key = (self.trace_id, message.line.key) if message.line else None
        is_other, self._at = key != self._at, key
        self._detail.set_text(self.paragraphs())
        if is_other:
            self._detail.move(Move.TOP)

    def show_words(self) -> None:
        """Say how it is looked at."""
        self._show_words()

    def _show_words(self) -> None:
        words = " · ".join(self._words())
        self._rule.set_words(words)
        self._rule.set_class(self.waterfall.passing is not None, "-needed")

    def _words(self) -> Iterator[str]:
        view = self.waterfall
        if (passing := view.passing) is not None:
            wanted = f"/{safe(self.filter_text)}" if self.filter_text else "what leads to failures"
            yield f"{wanted}: {counted(passing, 'span')}"
        if self._place:
            yield self._place
        if not view.is_whole and (seen := view.seen) is not None:
            begin = view.found.tree.started_at or 0 if view.found else 0
            yield f"+{span_time(seen[0] - begin)} to +{span_time(seen[1] - begin)}"
        if view.marks_path:
            yield "critical path thick"
        if not view.squeezes:
            yield "to scale"


def _paragraph(part: Part) -> Paragraph:
    return Paragraph(part.text, part.style, part.hang)
