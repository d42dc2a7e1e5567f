"""What is asked of all that knows traces, and what it answers: files, servers and what was received, alike.

Everything here is outside text as it was found: not masked, not safe for a terminal.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from typing import Protocol

import msgspec

from jobtui.model.clock import Nanos
from jobtui.model.trace_ids import TraceId
from jobtui.model.traces import Span, Trace

JOB_ATTRIBUTES = ("jobsub.job.id", "job.id", "batch.job.id", "slurm.job.id", "condor.job.id")
"""Attributes in which jobs say who they are; there is no standard."""
MOST = 50
"""Traces that are listed when no other number is asked for."""


class TraceSearch(msgspec.Struct, frozen=True, kw_only=True):
    """Which traces are wanted: all that is given must hold; nothing given asks for the most recent.

    `value` is that of an attribute of one of the `names`, of a span or of what sent it. `service` and
    `operation` are those of a span; `since` and `until` bound its start. The newest `most` are listed.
    """

    names: tuple[str, ...] = ()
    value: str = ""
    service: str = ""
    operation: str = ""
    since: Nanos | None = None
    until: Nanos | None = None
    most: int = MOST


class TraceSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One trace of a list: its root and its size. None and nothing where a server does not say.

    `source` is the name of the source that told of it first.
    """

    trace_id: TraceId
    service: str = ""
    name: str = ""
    started_at: Nanos | None = None
    ended_at: Nanos | None = None
    spans: int | None = None
    errors: int | None = None
    services: tuple[str, ...] = ()
    source: str = ""


class TraceList(msgspec.Struct, frozen=True):
    """Traces that were found, the newest first; `notes` say what could not be asked, or only in part.

    `awaited` are the sources that have not answered yet.
    """

    traces: tuple[TraceSummary, ...] = ()
    notes: tuple[str, ...] = ()
    awaited: frozenset[str] = frozenset()


class TraceAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a trace by now, None for nothing; `notes` say which source could not be asked.

    `growing` says why more of it may come, in a few words; it is "" when it is complete.
    """

    trace: Trace | None = None
    notes: tuple[str, ...] = ()
    growing: str = ""


class TraceDesk(Protocol):
    """Answers questions about traces out of every source that knows of some. Its methods raise nothing.

    A source that cannot be asked is named in the notes, and in its health; the others are asked all the same.
    """

    async def fetch(self, trace_id: TraceId) -> TraceAnswer:
        """A trace, read anew from every source; the store knows it then too."""
        ...

    def follow(self, trace_id: TraceId, expects_more: Callable[[], bool] = ...) -> AsyncIterator[TraceAnswer]:
        """A trace, and again whenever it is known better, until it is complete.

        It is complete when its root has ended, no parent is missing and nothing came for a while; not as
        long as `expects_more` says so, as of a job that still runs.
        """
        ...

    async def search(self, search: TraceSearch) -> TraceList:
        """The traces that are wanted, each once."""
        ...

    def searching(self, search: TraceSearch) -> AsyncGenerator[TraceList]:
        """The same at once, as far as it is known, and again whenever one more source has answered."""
        ...

    async def services(self) -> tuple[str, ...]:
        """The services of which there are traces, by name."""
        ...

    async def operations(self, service: str) -> tuple[str, ...]:
        """The names of spans of a service, by name."""
        ...


def better_told(known: TraceSummary | None, told: TraceSummary) -> TraceSummary:
    """Of two that tell of one trace the one that knows more spans."""
    return known if known is not None and (known.spans or 0) >= (told.spans or 0) else told


def with_awaited(
    found: TraceList, before: Iterable[TraceSummary], most: int = MOST
) -> tuple[TraceSummary, ...]:
    """What was found and what sources told `before` that have not answered yet, at `most` so many."""
    told = {one.trace_id: one for one in found.traces}
    for one in before:
        if one.source in found.awaited:
            told[one.trace_id] = better_told(told.get(one.trace_id), one)
    return newest(told.values(), most)


def summary_of(trace: Trace, source: str = "") -> TraceSummary:
    """A trace in short, by its spans."""
    spans = trace.spans
    ids = {span.span_id for span in spans}
    starts = [span.started_at for span in spans if span.started_at]
    ends = [max(span.started_at, span.ended_at or Nanos(0)) for span in spans if span.started_at]
    root = min(spans, key=lambda span: (span.parent_id is not None, span.started_at), default=None)
    return TraceSummary(
        trace_id=trace.trace_id,
        service=root.service if root else "",
        name=root.name if root else "",
        started_at=min(starts, default=None),
        ended_at=max(ends, default=None),
        spans=len(ids),
        errors=len({span.span_id for span in spans if span.is_error}),
        services=tuple(dict.fromkeys(span.service for span in sorted(spans, key=lambda one: one.started_at))),
        source=source,
    )


def is_wanted(trace: Trace, search: TraceSearch) -> bool:
    """Whether one span of a trace is as a search wants it."""
    return any(_fits(span, search) for span in trace.spans)


def _fits(span: Span, search: TraceSearch) -> bool:
    return (
        (not search.service or span.service == search.service)
        and (not search.operation or span.name == search.operation)
        and (search.since is None or span.started_at >= search.since)
        and (search.until is None or span.started_at <= search.until)
        and (not search.value or any(_holds(span, name, search.value) for name in search.names))
    )


def _holds(span: Span, name: str, value: str) -> bool:
    """Servers compare attributes as texts."""
    held = (span.resource.attributes.get(name), span.attributes.get(name))
    return any(one is not None and str(one) == value for one in held)


def newest(summaries: Iterable[TraceSummary], most: int) -> tuple[TraceSummary, ...]:
    """The newest of these, the newest first; what has no time comes last."""
    return tuple(sorted(summaries, key=lambda one: (-(one.started_at or 0), one.trace_id))[:most])
