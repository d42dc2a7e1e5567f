"""Finds the trace of a job, reads it, and keeps it up to date as long as the job's screen is open."""

from collections.abc import Callable, Collection, Sequence
from itertools import islice

from textual.dom import DOMNode

from jobtui.analysis.traces.candidates import candidates
from jobtui.analysis.traces.join import TraceLink, link_in_lines, trace_op
from jobtui.analysis.traces.processes import Alone, alone
from jobtui.analysis.traces.ways import Ways, ways_from_job
from jobtui.model.jobs import Job
from jobtui.model.ops import Certainty, Op, Unlinked
from jobtui.model.trace_ids import TraceId
from jobtui.model.trace_jobs import is_same_job, names_job
from jobtui.model.traces import Trace
from jobtui.screens.board import Board
from jobtui.screens.trace_reader import TraceReader

MOST_LOOKED_AT = 20
"""Traces that came at once of which it is asked whether one is the job's."""


class JobTracing:
    """The trace of one job. `told` is called when there is news."""

    def __init__(self, node: DOMNode, board: Board, told: Callable[[], None]) -> None:
        self._node, self._board, self._told = node, board, told
        self._job: Job | None = None
        self._op: tuple[object, Op] | None = None
        self.link: TraceLink | None = None
        self.ways = Ways()
        self.reader: TraceReader | None = None
        self.is_looked_for = False
        """Whether everything was tried."""
        self.others = 0
        """How many other processes are in the trace, which are not shown."""

    async def find(self, job: Job | None, ops: Sequence[Op], unlinked: Sequence[Unlinked]) -> None:
        """Find the trace by the lines of the job, its record, what spans say, and when it was submitted."""
        if self._board.trace_desk is None:
            return
        self.note(job, ops, unlinked)
        if self.reader is None and job is not None:
            self.ways = await ways_from_job(self._board.trace_desk(), job, self._board.job_attributes())
            if self.ways.found:
                self._follow(TraceLink(self.ways.found[0].trace_id, Certainty.JID, self.ways.found[0].why))
        self.is_looked_for = True
        self._told()

    def note(self, job: Job | None, ops: Sequence[Op], unlinked: Sequence[Unlinked]) -> None:
        """The job is known better: perhaps its record or a line names its trace by now."""
        self._job = job
        if self.reader is not None or self._board.trace_desk is None:
            return
        if job is not None and job.trace:
            self._follow(TraceLink(TraceId(job.trace), Certainty.FULL_ID, "it was handed this trace"))
        elif (link := link_in_lines(ops, unlinked)) is not None:
            self._follow(link)

    def changed(self, traces: Collection[TraceId]) -> None:
        """More may be known of some traces; of one of them the job's own, perhaps."""
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
        book, names = self._board.live.traces, self._board.job_attributes()
        told = [trace for one in islice(traces, MOST_LOOKED_AT) if (trace := book.trace(one)) is not None]
        known = {one.trace_id for one in self.ways.candidates}
        return not {one.trace_id for one in candidates(told, self._job, names)} <= known

    def _names_job(self, trace_id: TraceId) -> bool:
        """Whether one that sent spans of a trace says that it is the job."""
        trace = self._board.live.traces.trace(trace_id)
        if trace is None or self._job is None:
            return False
        senders = {id(span.resource): span.resource for span in trace.spans}.values()
        written = (names_job(one.attributes, self._board.job_attributes()) for one in senders)
        return any(name is not None and is_same_job(name, self._job.id) for name in written)

    def _follow(self, link: TraceLink) -> None:
        self.link = link
        self.reader = TraceReader(
            self._node, self._board, link.trace_id, self._told, self._is_live, self._alone
        )
        self.reader.begin()

    def _is_live(self) -> bool:
        job = self._board.live.job(self._job.id) if self._job is not None else None
        return job is not None and job.status.is_live

    def _alone(self, trace: Trace) -> Trace:
        """The trace without the other processes of a cluster, which share it."""
        if self._job is None:
            return trace
        found: Alone = alone(trace, self._job.id, self._board.job_attributes(), self._job.host)
        self.others = len(found.others)
        return found.trace

    def ops(self, ops: Sequence[Op], unlinked: Sequence[Unlinked]) -> tuple[Op, ...]:
        """The trace as an op beside those of the job, with their lines among its spans; none without one."""
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
