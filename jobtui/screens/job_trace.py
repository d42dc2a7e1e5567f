"""The trace of a job: where it failed, or which traces could be its own."""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from itertools import islice

from textual import on
from textual.app import ComposeResult
from textual.dom import DOMNode

from jobtui.analysis.traces.job_traces import (
    Alone,
    TraceLink,
    Ways,
    alone,
    candidates,
    link_in_lines,
    trace_op,
    ways_from_job,
)
from jobtui.model.ids import TraceId, TraceRef
from jobtui.model.jobs import Job
from jobtui.model.ops import Certainty, Op, Unlinked
from jobtui.model.traces import Trace, is_same_job, names_job
from jobtui.render.lanes import CERTAINTY_OF_TRACE
from jobtui.render.text import show
from jobtui.render.waterfall import sentence_of, short_id
from jobtui.screens.job_tabs import JobTab, Subject
from jobtui.screens.shared import Shared
from jobtui.screens.trace import TracePane, TraceReader, TraceScreen
from jobtui.widgets.row_view import Move
from jobtui.widgets.waterfall import Picture, TraceFacts, Waterfall

MOST_LOOKED_AT = 20
"""Traces that came at once of which it is asked whether one is the job's."""


class JobTracing:
    """The trace of one job. `told` is called when it changes."""

    def __init__(self, node: DOMNode, shared: Shared, told: Callable[[], None]) -> None:
        self._node, self._shared, self._told = node, shared, told
        self._job: Job | None = None
        self._op: tuple[object, Op] | None = None
        self.link: TraceLink | None = None
        self.ways = Ways()
        self.reader: TraceReader | None = None
        self.is_looked_for = False
        """Whether every way to find it was tried."""
        self.others = 0
        """How many other processes are in the trace, which are not shown."""

    async def find(self, job: Job | None, ops: Sequence[Op], unlinked: Sequence[Unlinked]) -> None:
        if self._shared.trace_desk is None:
            return
        self.note(job, ops, unlinked)
        if self.reader is None and job is not None:
            self.ways = await ways_from_job(self._shared.trace_desk(), job, self._shared.job_attributes())
            if self.ways.found:
                self._follow(TraceLink(self.ways.found[0].trace_id, Certainty.JID, self.ways.found[0].why))
        self.is_looked_for = True
        self._told()

    def note(self, job: Job | None, ops: Sequence[Op], unlinked: Sequence[Unlinked]) -> None:
        self._job = job
        if self.reader is not None or self._shared.trace_desk is None:
            return
        if job is not None and job.trace:
            self._follow(TraceLink(TraceId(job.trace), Certainty.FULL_ID, "it was handed this trace"))
        elif (link := link_in_lines(ops, unlinked)) is not None:
            self._follow(link)

    def changed(self, traces: Collection[TraceId]) -> None:
        if self.reader is None and self._job is not None and self.is_looked_for:
            own = next((one for one in islice(traces, MOST_LOOKED_AT) if self._names_job(one)), None)
            if own is not None:
                self._follow(TraceLink(own, Certainty.JID, "its spans name the job"))
        elif self.reader is not None:
            if self.reader.trace_id in traces:
                self.reader.changed()
            self.reader.look()

    def is_to_be_found_again(self, is_job_told: bool, traces: Collection[TraceId]) -> bool:
        """Whether looking for it would give more than before: by the job, or by traces that came.

        Perhaps the job is known by now, or one of the traces was submitted near it, and was not before.
        """
        if self._job is None:
            return self.is_looked_for and is_job_told
        if self.reader is not None or not self.is_looked_for:
            return False
        book, names = self._shared.live.traces, self._shared.job_attributes()
        told = [trace for one in islice(traces, MOST_LOOKED_AT) if (trace := book.trace(one)) is not None]
        known = {one.trace_id for one in self.ways.candidates}
        return not {one.trace_id for one in candidates(told, self._job, names)} <= known

    def _names_job(self, trace_id: TraceId) -> bool:
        trace = self._shared.live.traces.trace(trace_id)
        if trace is None or self._job is None:
            return False
        senders = {id(span.resource): span.resource for span in trace.spans}.values()
        written = (names_job(one.attributes, self._shared.job_attributes()) for one in senders)
        return any(name is not None and is_same_job(name, self._job.id) for name in written)

    def _follow(self, link: TraceLink) -> None:
        self.link = link
        self.reader = TraceReader(
            self._node, self._shared, link.trace_id, self._told, self._is_live, self._alone
        )
        self.reader.begin()

    def _is_live(self) -> bool:
        job = self._shared.live.job(self._job.id) if self._job is not None else None
        return job is not None and job.status.is_live

    def _alone(self, trace: Trace) -> Trace:
        if self._job is None:
            return trace
        found: Alone = alone(trace, self._job.id, self._shared.job_attributes(), self._job.host)
        self.others = len(found.others)
        return found.trace

    def ops(self, ops: Sequence[Op], unlinked: Sequence[Unlinked]) -> tuple[Op, ...]:
        picture = self.reader.picture if self.reader is not None else None
        if picture is None or self.link is None or self._job is None:
            return ()
        grows = bool(self.reader and self.reader.growing) and self._is_live()
        key = (id(picture), tuple(map(id, ops)), len(unlinked), grows)
        if self._op is None or self._op[0] != key:
            found, layout = picture[:2]
            op = trace_op(found, layout, self.link, self._job.id, ops, unlinked, grows=grows)
            self._op = (key, op)
        return (self._op[1],)


NONE_FOUND = (
    "No trace of this job was found: no line of its logs names one, nor its record; no span names the job.",
    "A trace id or TRACEPARENT from elsewhere can be pasted behind `:`.",
)
NOT_CONFIGURED = ("No source of traces is configured: see screen 5.",)


class TraceTab(JobTab):
    """The waterfall of the job's trace; enter opens it on its own screen, at the span under the cursor."""

    NAME = "trace"
    COMMAND = ("trace",)
    IS_WHOLE = True

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._tracing: JobTracing | None = None
        self._picture: Picture | None = None
        self._facts = TraceFacts()
        self._pane = TracePane(shared)

    def compose(self) -> ComposeResult:
        yield self._facts
        yield self._pane

    def on_mount(self) -> None:
        self._show()

    def set_subject(self, subject: Subject) -> None:
        self._tracing = subject.tracing
        if self.is_attached:
            self._show()

    def _show(self) -> None:
        reader = self._tracing.reader if self._tracing else None
        picture = reader.picture if reader else None
        if picture is not None and picture is not self._picture:
            self._picture = picture
            self._pane.set_trace(picture)
        if picture is not None and reader is not None:
            self._facts.set_facts(sentence_of(picture.found, reader.growing), picture.stages)
        self._pane.waterfall.set_empty(self._silence())

    def _silence(self) -> tuple[str, ...]:
        tracing = self._tracing
        if self.shared.trace_desk is None:
            return NOT_CONFIGURED
        if tracing is None or not tracing.is_looked_for or (tracing.reader and not tracing.reader.is_read):
            return ("looking for its trace …",)
        if tracing.link is not None:
            return (
                f"no source that was asked knows of trace {tracing.link.trace_id}, which {tracing.link.why}",
            )
        maybe = tracing.ways.candidates
        told = [f"{one.score:.0%}  {one.trace_id}  {show('; '.join(one.why))}" for one in maybe]
        head = ["These were submitted near it, ↵ lets you choose one:"] if told else []
        return (*NONE_FOUND, *head, *told, *map(show, tracing.ways.notes))

    @property
    def words(self) -> str:
        tracing = self._tracing
        if tracing is None or tracing.link is None:
            return ""
        others = tracing.others
        left = f"{others:,} other process{'es' * (others != 1)} not shown" if others else ""
        sure = f"{CERTAINTY_OF_TRACE[tracing.link.certainty]}: {show(tracing.link.why)}"
        return " · ".join(filter(None, (short_id(tracing.link.trace_id), sure, left)))

    def move(self, move: Move) -> None:
        self._pane.move(move)

    def switch_pane(self) -> None:
        self._pane.switch_pane()

    def open(self) -> None:
        tracing = self._tracing
        if tracing is not None and tracing.link is not None:
            line = self._pane.waterfall.current
            span_id = line.span.span_id if line is not None and line.span is not None else None
            note = show(tracing.link.why)
            self.app.push_screen(TraceScreen(self.shared, tracing.link.trace_id, span_id, note))
        elif tracing is not None and tracing.ways.candidates:
            self._choose(tracing)

    def _choose(self, tracing: JobTracing) -> None:
        from jobtui.screens.choices import ChoosingScreen, Goal
        from jobtui.screens.commander import Commander

        goals = [
            Goal(f"trace {one.trace_id}", "; ".join(one.why), trace=TraceRef(one.trace_id))
            for one in tracing.ways.candidates
        ]
        go = Commander(self.app, self.shared).go
        self.app.push_screen(ChoosingScreen(self.shared, "its trace", goals, partial(go)))

    @on(Waterfall.LineHighlighted)
    def _told_place(self) -> None:
        self.post_message(self.Told())

    @property
    def copied(self) -> str | None:
        return self._tracing.link.trace_id if self._tracing and self._tracing.link else None
