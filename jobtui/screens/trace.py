"""One trace: which span failed and why, where the time went; on a screen of its own, and in that of a job."""

import asyncio
from collections.abc import Iterable, Iterator

from textual import on, work
from textual.app import ComposeResult
from textual.message import Message
from textual.widget import Widget

from jobtui.actions import ScreenName
from jobtui.analysis.traces.failures import Findings
from jobtui.analysis.traces.filters import SPAN_FIELDS, SpanTest, known_test
from jobtui.analysis.traces.layout import LineKey, ServiceMarks
from jobtui.model.commands import Command
from jobtui.model.ids import SpanId, TraceId, TraceRef
from jobtui.model.numbers import counted
from jobtui.render.lanes import CERTAINTY_OF_TRACE
from jobtui.render.spans import Paragraph, Piece
from jobtui.render.text import safe, show
from jobtui.render.traces import detail_parts
from jobtui.render.waterfall import sentence_of, short_id, span_time
from jobtui.screens.base import FilteringScreen, test_of
from jobtui.screens.command_table import complete_fields
from jobtui.screens.job_tabs import JobTab
from jobtui.screens.shared import CopyTarget, Shared, open_screen
from jobtui.screens.text import ReadingScreen
from jobtui.screens.trace_reader import JobTracing, TraceReader
from jobtui.store.store import Changes
from jobtui.widgets.filter_bar import FilterBar, Mistake
from jobtui.widgets.frame import RuleLine
from jobtui.widgets.row_view import Move, PaneGroup
from jobtui.widgets.text_pane import TextPane
from jobtui.widgets.waterfall import TraceFacts, Waterfall, WaterfallTrace, failed_keys, path_of


class TracePane(PaneGroup):
    """The waterfall of one trace, its rule, and the details of a span below; `facts` belong above it."""

    class Filtered(Message):
        """Other spans are shown than before."""

    def __init__(self, shared: Shared) -> None:
        super().__init__()
        self.shared = shared
        shared.marks = shared.marks or ServiceMarks()
        self.facts = TraceFacts()
        self.waterfall = Waterfall(shared.marks)
        self.filter_text = ""
        self._only_failures = False
        self._failed: frozenset[LineKey] = frozenset()
        self._rule = RuleLine()
        self._detail = TextPane()
        self._detail.is_active = False
        self.panes = self.waterfall, self._detail
        self._at: object = None
        self._finding: object = None
        self._failure = ""

    def compose(self) -> ComposeResult:
        yield self.waterfall
        yield self._rule
        yield self._detail

    def on_mount(self) -> None:
        self.show_words()

    def set_trace(self, picture: WaterfallTrace, growing: str) -> None:
        self.facts.sentence, self.facts.stages = sentence_of(picture.found, growing), picture.stages
        self.waterfall.set_trace(picture)
        self.waterfall.empty = ("no span passes the filter",)
        if self._only_failures and failed_keys(picture.found) != self._failed:
            self._show_failures(picture.found)
        self._find_path()

    def next_failure(self, step: int) -> None:
        found = self.waterfall.next_failure(step)
        self._failure = f"failure {found[0]:,} of {found[1]:,}" if found else ""
        if found is None:
            self.notify("nothing failed in this trace", timeout=2)
        self.show_words()

    def set_filter(self, text: str) -> Mistake | None:
        """Show only spans that pass. Returns the mistake in the filter, in which case all are shown.

        Work on every span of a large trace is done in a thread.
        """
        passes, mistake = test_of(SPAN_FIELDS.parse, text)
        self.filter_text, self._only_failures = "" if mistake else text.strip(), False
        self._filter(passes)
        return mistake

    def toggle_failures(self) -> None:
        found = self.waterfall.found
        if found is None or self._only_failures:
            self.set_filter("")
        elif not failed_keys(found):
            self.notify("nothing failed in this trace", timeout=2)
        else:
            self.filter_text, self._only_failures = "", True
            self._show_failures(found)

    def _show_failures(self, found: Findings) -> None:
        self.workers.cancel_group(self, "filter")
        failed = self._failed = failed_keys(found)
        self.waterfall.set_filter(lambda span: span.span_id in failed)

    def toggle_path(self) -> None:
        self.waterfall.toggle_path()
        self._find_path()

    def _find_path(self) -> None:
        found = self.waterfall.found
        if found is not None and self.waterfall.lacks_path and self._finding is not found:
            self._finding = found
            self._show_path(found)

    @work(group="find path", exclusive=True, description="")
    async def _show_path(self, found: Findings) -> None:
        self.waterfall.set_path(found, await asyncio.to_thread(path_of, found))

    @work(group="filter", exclusive=True, description="")
    async def _filter(self, passes: SpanTest | None) -> None:
        found = self.waterfall.found
        if found is not None and passes is not None:
            passes = await asyncio.to_thread(known_test, passes, found.tree.spans)
        self.waterfall.set_filter(passes)

    def read(self) -> None:
        if text := [*self.paragraphs()]:
            self.app.push_screen(ReadingScreen(self.shared, "span", text, CopyTarget("", self.command)))

    @property
    def filter_sign(self) -> str:
        """The filter in effect, in few cells; "" when all is shown."""
        return " /failures" if self._only_failures else f" /{safe(self.filter_text)}" * bool(self.filter_text)

    @property
    def trace_id(self) -> TraceId | None:
        return self.waterfall.trace_id

    @property
    def command(self) -> Command:
        return self.shared.command("trace", about=[self.trace_id]) if self.trace_id else Command()

    def paragraphs(self) -> Iterator[Paragraph]:
        found, line = self.waterfall.found, self.waterfall.current
        if found is not None and line is not None:
            yield from detail_parts(found, line, self.waterfall.names_above)

    @on(Waterfall.LineHighlighted)
    def _show_detail(self, message: Waterfall.LineHighlighted) -> None:
        key = (self.trace_id, message.line.key) if message.line else None
        is_other, self._at = key != self._at, key
        self._detail.set_text(self.paragraphs())
        if is_other:
            self._detail.move(Move.TOP)

    @on(Waterfall.Viewed)
    def show_words(self) -> None:
        words = " · ".join(self._words())
        self.post_message(self.Filtered())
        self._rule.words = words
        self._rule.set_class(self.waterfall.passing is not None, "-needed")

    def _words(self) -> Iterator[str]:
        view = self.waterfall
        if (passing := view.passing) is not None:
            wanted = f"/{safe(self.filter_text)}" if self.filter_text else "what leads to failures"
            yield f"{wanted}: {counted(passing, 'span')}"
        if self._failure:
            yield self._failure
        if not view.is_whole and (seen := view.seen) is not None:
            begin = view.found.tree.started_at or 0 if view.found else 0
            yield f"+{span_time(seen[0] - begin)} to +{span_time(seen[1] - begin)}"
        if view.marks_path:
            yield "critical path thick"
        if not view.squeezes:
            yield "to scale"


class TraceScreen(FilteringScreen):
    """A trace as a waterfall, and the details of the span under the cursor."""

    NAME = ScreenName.TRACE

    def __init__(
        self, shared: Shared, trace_id: TraceId, span_id: SpanId | None = None, note: str = ""
    ) -> None:
        super().__init__(shared)
        self.trace_id = trace_id
        self._span_id = span_id
        self._note = note
        self._reader = TraceReader(self, shared, trace_id, self.show_all)
        self._main = self._pane = pane = TracePane(shared)
        fall = pane.waterfall
        self.action_switch_pane, self.action_toggle_fold = pane.switch_pane, fall.toggle_fold
        self.action_failure, self.action_failures = pane.next_failure, pane.toggle_failures
        self.action_zoom, self.action_pan, self.action_zoom_to = fall.zoom, fall.pan, fall.zoom_to_line
        self.action_whole, self.action_fold_all = fall.show_whole, fall.toggle_all
        self.action_path, self.action_squeeze = pane.toggle_path, fall.toggle_squeeze

    def body(self) -> Iterator[Widget]:
        yield from (self._pane.facts, self._pane, self._rule)

    def on_mount(self) -> None:
        self._reader.begin()

    @on(TracePane.Filtered)
    def _filtered(self) -> None:
        self.show_trail()

    @property
    def crumb(self) -> str:
        return f"{short_id(self.trace_id)}{self._pane.filter_sign}"

    def take(self, changes: Changes) -> None:
        if self.trace_id in changes.traces:
            self._reader.changed()
        super().take(changes)

    def tick(self) -> None:
        super().tick()
        self._reader.look()

    def show_all(self) -> None:
        super().show_all()
        picture, reader = self._reader.picture, self._reader
        notes = [*map(show, reader.notes)]
        if picture is not None:
            self._pane.set_trace(picture, reader.growing)
            if self._span_id is not None:
                self._pane.waterfall.reveal(self._span_id)
                self._span_id = None
        else:
            unknown = f"no source that was asked has trace {self.trace_id}"
            self._pane.waterfall.empty = (unknown, *notes) if reader.is_read else ()
            self._pane.facts.sentence = Piece("" if reader.is_read else "reading …", "dim")
        counts = picture.counts if picture else ""
        self._rule.words = " · ".join(filter(None, (counts, *notes, show(self._note))))

    def action_open(self) -> None:
        line = self._pane.waterfall.current
        if line is None or line.run is None or not self._pane.waterfall.toggle_fold():
            self._pane.read()

    def action_fold(self, step: int) -> None:
        if step < 0:
            self._pane.waterfall.go_out()
        elif not self._pane.waterfall.unfold():
            self._pane.waterfall.move(Move.DOWN)

    def action_compare(self) -> None:
        open_screen(self.app, ScreenName.TRACE_CHANGES, self.shared, self.trace_id)

    def filter_bar(self) -> FilterBar:
        def values(field: str) -> Iterable[str]:
            found = self._pane.waterfall.found
            return SPAN_FIELDS.values(field, found.tree.spans) if found else ()

        return FilterBar(
            self._pane.filter_text,
            history=self.filters,
            completer=lambda text, cursor: complete_fields(text, cursor, SPAN_FIELDS.names, values),
            placeholder="words, or: service:worker dur>10ms error:yes name:step host.name:w03",
        )

    def set_filter(self, text: str) -> Mistake | None:
        return self._pane.set_filter(text)

    def action_back(self) -> None:
        if self._pane.waterfall.passing is not None:
            self._pane.set_filter("")
        elif not self._pane.waterfall.is_whole:
            self.action_whole()
        else:
            super().action_back()

    def copied(self) -> str:
        return self.trace_id

    def paragraphs(self) -> Iterator[Paragraph]:
        return self._pane.paragraphs()

    def command(self) -> Command:
        return self._pane.command


NONE_FOUND = (
    "No trace of this job was found: no line of its logs names one, nor its record; no span names the job.",
    "A trace id or TRACEPARENT from elsewhere can be pasted after `:`.",
)
NOT_CONFIGURED = ("No source of traces is configured: see screen 5.",)


class TraceTab(JobTab):
    """The waterfall of the job's trace; enter opens it on its own screen, at the span under the cursor."""

    NAME = "trace"
    COMMAND = ("trace",)
    IS_WHOLE = True

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._pane = TracePane(shared)
        self.panes = self._pane.panes

    def compose(self) -> ComposeResult:
        yield from (self._pane.facts, self._pane)

    def on_mount(self) -> None:
        self.show_subject()

    @property
    def _tracing(self) -> JobTracing | None:
        return self.subject.tracing

    def show_subject(self) -> None:
        if not self.is_attached:
            return
        reader = self._tracing.reader if self._tracing else None
        if reader is not None and reader.picture is not None:
            self._pane.set_trace(reader.picture, reader.growing)
        self._pane.waterfall.empty = self._silence()

    def _silence(self) -> tuple[str, ...]:
        tracing = self._tracing
        if self._pane.trace_id is not None:
            return ("no span passes the filter",)
        if self.shared.trace_client is None:
            return NOT_CONFIGURED
        if tracing is None or not tracing.is_looked_for or (tracing.reader and not tracing.reader.is_read):
            return ("looking for its trace …",)
        if tracing.link is not None:
            return (f"no source that was asked has trace {tracing.link.trace_id}, which {tracing.link.why}",)
        maybe = tracing.ways.candidates
        offered = [f"{100 * one.score:.0f} %  {one.trace_id}  {show('; '.join(one.why))}" for one in maybe]
        head = ["These were submitted at about the same time; ↵ chooses one:"] if offered else []
        return (*NONE_FOUND, *head, *offered, *map(show, tracing.ways.notes))

    @property
    def words(self) -> str:
        tracing = self._tracing
        if tracing is None or tracing.link is None:
            return ""
        others = tracing.others
        left = f"{others:,} other process{'es' * (others != 1)} not shown" if others else ""
        sure = f"{CERTAINTY_OF_TRACE[tracing.link.certainty]}: {show(tracing.link.why)}"
        return " · ".join(filter(None, (short_id(tracing.link.trace_id), sure, left)))

    def open(self) -> None:
        tracing = self._tracing
        if tracing is not None and tracing.link is not None:
            line = self._pane.waterfall.current
            span_id = line.span.span_id if line is not None and line.span is not None else None
            note = show(tracing.link.why)
            open_screen(self.app, ScreenName.TRACE, self.shared, tracing.link.trace_id, span_id, note)
        elif tracing is not None and tracing.ways.candidates:
            from jobtui.screens.choices import Goal, Guide  # most jobs have one trace or none

            goals = [
                Goal(f"trace {one.trace_id}", "; ".join(one.why), trace=TraceRef(one.trace_id))
                for one in tracing.ways.candidates
            ]
            Guide(self.app, self.shared).choose("its trace", goals, is_clear=False)

    @on(Waterfall.LineHighlighted)
    def _line_highlighted(self) -> None:
        self.post_message(self.TextChanged())

    @property
    def copied(self) -> str | None:
        return self._tracing.link.trace_id if self._tracing and self._tracing.link else None
