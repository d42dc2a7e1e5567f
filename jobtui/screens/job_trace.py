"""The trace of a job: where it failed, or which traces could be its own."""

from textual import on
from textual.app import ComposeResult

from jobtui.actions import ScreenName
from jobtui.model.ids import TraceRef
from jobtui.render.lanes import CERTAINTY_OF_TRACE
from jobtui.render.text import show
from jobtui.render.waterfall import short_id
from jobtui.screens.job_tabs import JobTab
from jobtui.screens.shared import Shared, open_screen
from jobtui.screens.trace import TracePane
from jobtui.screens.trace_reader import JobTracing
from jobtui.widgets.waterfall import Waterfall

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
        head = ["These were submitted near it, ↵ lets you choose one:"] if offered else []
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
