"""Reads and follows a trace, and finds the trace of a job. No widgets."""

from collections.abc import Callable, Collection, Sequence
from functools import partial
from itertools import islice
from time import monotonic

from textual.dom import DOMNode

from jobtui.analysis.traces import job_traces
from jobtui.analysis.traces.failures import study_trace
from jobtui.analysis.traces.job_traces import TraceLink
from jobtui.model.ids import TraceId
from jobtui.model.jobs import Job
from jobtui.model.ops import Certainty, Op, Unlinked
from jobtui.model.traces import Trace, growing, is_same_job, names_job
from jobtui.screens.shared import Shared, in_thread, start
from jobtui.session.traces import ways_from_job
from jobtui.terminal.textual_patches import kept_up
from jobtui.widgets.waterfall import WaterfallTrace, picture_of

SHARE = 10
"""At most one part in so many of the time is spent on a growing trace."""


class TraceReader:
    """Reads and follows one trace. Each change calls `on_change`; `expects_more` says that more must come.

    `part_of` gives what of it is shown, when that is not all.
    """

    def __init__(
        self,
        node: DOMNode,
        shared: Shared,
        trace_id: TraceId,
        on_change: Callable[[], None],
        expects_more: Callable[[], bool] = lambda: False,
        part_of: Callable[[Trace], Trace] = lambda trace: trace,
    ) -> None:
        self.trace_id = trace_id
        self.picture: WaterfallTrace | None = None
        """The trace as it was last studied, None while it is read, or if no source has it."""
        self.growing = ""
        """Why more of it may come, "" when it is complete; outside text."""
        self.notes: tuple[str, ...] = ()
        """Which sources could not be asked, and why; outside text."""
        self.is_read = False
        """Whether all that could be asked was asked once."""
        self._node, self._shared, self._on_change, self._expects_more = node, shared, on_change, expects_more
        self._part_of = part_of
        self._size = -1
        self._rests_until = 0.0
        self._is_due = False

    def begin(self) -> None:
        following = partial(kept_up, self._node, "following a trace", self._follow)
        start(self._node, following, group="follow trace", exclusive=True)

    def changed(self) -> None:
        self._is_due = True
        self.look()

    def look(self) -> None:
        if self._is_due and self._shared.paused_at is None and monotonic() >= self._rests_until:
            start(self._node, self._study_known, group="study trace", exclusive=True)

    async def _follow(self) -> None:
        if self._shared.trace_client is None:
            await self._study_known()
            self.is_read = True
            self._on_change()
            return
        async for answer in self._shared.trace_client().follow(self.trace_id, self._expects_more):
            self.growing, self.notes = answer.growing, answer.notes
            self._is_due = True
            if self.picture is None or self._shared.paused_at is None:
                await self._study_known()
            self.is_read = True
            self._on_change()

    async def _study_known(self) -> None:
        self._is_due = False
        book = self._shared.live.traces
        size, trace = book.size(self.trace_id), book.trace(self.trace_id)
        if trace is None or size == self._size:
            return
        self._size = size
        began = monotonic()
        now = self._shared.now()
        self.picture = await in_thread(lambda: picture_of(study_trace(self._part_of(trace))))
        if self.growing:  # the reason is known better now than when it was asked for
            self.growing = await in_thread(lambda: growing(trace, now, now))
        self._rests_until = monotonic() + SHARE * (monotonic() - began)
        self._on_change()


MOST_LOOKED_AT = 20
"""How many traces that came together are checked for the job's."""


class JobTracing:
    """The trace of one job. `on_change` is called when it changes."""

    def __init__(self, node: DOMNode, shared: Shared, on_change: Callable[[], None]) -> None:
        self._node, self._shared, self._on_change = node, shared, on_change
        self._job: Job | None = None
        self._op: tuple[object, Op] | None = None
        self.link: TraceLink | None = None
        self.ways = job_traces.TraceMatches()
        self.reader: TraceReader | None = None
        self.is_looked_for = False
        """Whether every way to find it was tried."""
        self.others = 0
        """How many other processes are in the trace, which are not shown."""

    async def find(self, job: Job | None, ops: Sequence[Op], unlinked: Sequence[Unlinked]) -> None:
        if self._shared.trace_client is None:
            return
        self.note(job, ops, unlinked)
        if self.reader is None and job is not None:
            client, names = self._shared.trace_client(), self._shared.store.traces.job_attributes
            self.ways = await ways_from_job(client, job, names)
            if self.ways.found:
                self._follow(self.ways.found[0])
        self.is_looked_for = True
        self._on_change()

    def note(self, job: Job | None, ops: Sequence[Op], unlinked: Sequence[Unlinked]) -> None:
        self._job = job
        if self.reader is not None or self._shared.trace_client is None:
            return
        if job is not None and job.trace:
            self._follow(TraceLink(TraceId(job.trace), "it was given this trace", Certainty.FULL_ID))
        elif (link := job_traces.link_in_lines(ops, unlinked)) is not None:
            self._follow(link)

    def changed(self, traces: Collection[TraceId]) -> None:
        if self.reader is not None:
            if self.reader.trace_id in traces:
                self.reader.changed()
            self.reader.look()
        if self.is_looked_for and (self.reader is None or self._is_of_earlier_run()):
            old = self.link.trace_id if self.link is not None else None
            found = (one for one in islice(traces, MOST_LOOKED_AT) if one != old and self._names_job(one))
            if (own := next(found, None)) is not None:
                self._follow(TraceLink(own, "its spans name the job"))

    def _is_of_earlier_run(self) -> bool:
        """Whether the trace ended before the run of the job was submitted that is the latest now."""
        job = self._shared.live.job(self._job.id) if self._job is not None else None
        trace = self._shared.live.traces.trace(self.link.trace_id) if self.link is not None else None
        ends = [span.ended_at or span.started_at for span in trace.spans] if trace is not None else ()
        return job is not None and max(ends, default=job.queued_at or 0) < (job.queued_at or 0)

    def is_to_be_found_again(self, is_job_renewed: bool, traces: Collection[TraceId]) -> bool:
        """Whether a new search may find more: by the job, known by now, or a new trace submitted near it."""
        if self._job is None:
            return self.is_looked_for and is_job_renewed
        if self.reader is not None or not self.is_looked_for:
            return False
        book, names = self._shared.live.traces, self._shared.store.traces.job_attributes
        some = [trace for one in islice(traces, MOST_LOOKED_AT) if (trace := book.trace(one)) is not None]
        known = {one.trace_id for one in self.ways.candidates}
        return not {one.trace_id for one in job_traces.candidates(some, self._job, names)} <= known

    def _names_job(self, trace_id: TraceId) -> bool:
        trace = self._shared.live.traces.trace(trace_id)
        if trace is None or self._job is None:
            return False
        senders = {id(span.resource): span.resource for span in trace.spans}.values()
        written = (names_job(one.attributes, self._shared.store.traces.job_attributes) for one in senders)
        return any(name is not None and is_same_job(name, self._job.id) for name in written)

    def _follow(self, link: TraceLink) -> None:
        self.link = link
        self.reader = TraceReader(
            self._node, self._shared, link.trace_id, self._on_change, self._is_live, self._alone
        )
        self.reader.begin()

    def _is_live(self) -> bool:
        job = self._shared.live.job(self._job.id) if self._job is not None else None
        return job is not None and job.status.is_live

    def _alone(self, trace: Trace) -> Trace:
        if self._job is None:
            return trace
        own = job_traces.alone(trace, self._job.id, self._shared.store.traces.job_attributes, self._job.host)
        self.others = len(own.others)
        return own.trace

    def ops(self, ops: Sequence[Op], unlinked: Sequence[Unlinked]) -> tuple[Op, ...]:
        picture = self.reader.picture if self.reader is not None else None
        if picture is None or self.link is None or self._job is None:
            return ()
        grows = bool(self.reader and self.reader.growing) and self._is_live()
        key = (id(picture), tuple(map(id, ops)), len(unlinked), grows)
        if self._op is None or self._op[0] != key:
            found, layout = picture[:2]
            op = job_traces.trace_op(found, layout, self.link, self._job.id, ops, unlinked, grows=grows)
            self._op = (key, op)
        return (self._op[1],)
