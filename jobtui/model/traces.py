"""Spans of a trace, their events, and the log records that carry its id.

Field for field what OpenTelemetry says (https://opentelemetry.io/docs/specs/otel/trace/api/), with our own
unit of time. Attribute values are what JSON has: not masked, not safe for a terminal. Their meaning is in
`analysis.traces`.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum

import msgspec

from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.health import Skip
from jobtui.model.ids import SpanId, TraceId, condor_id, numbered

JOB_ATTRIBUTES = ("jobsub.job.id", "job.id", "batch.job.id", "slurm.job.id", "condor.job.id")
"""Attributes in which jobs say who they are; there is no standard."""


def spellings(job_id: str) -> tuple[str, ...]:
    """The ways in which spans may write the id of a job, the likeliest first."""
    if (condor := condor_id(job_id)) is not None:
        return tuple(dict.fromkeys((condor.job_id, condor.number)))
    parts = numbered(job_id)
    return (job_id,) if parts is None else (job_id, parts.number)


def names_job(attributes: Mapping[str, object], names: tuple[str, ...]) -> str | None:
    """The job that attributes name, as it is written there; None for none."""
    for name in names:
        if (value := attributes.get(name)) is not None and str(value):
            return str(value)
    return None


def jobs_named_by(span: "Span", names: tuple[str, ...]) -> tuple[str, ...]:
    held = (names_job(attributes, names) for attributes in (span.attributes, span.resource.attributes))
    return tuple(filter(None, held))


def is_same_job(written: str, job_id: str) -> bool:
    if written == job_id or written in spellings(job_id):
        return True
    one, other = condor_id(written), condor_id(job_id)
    return one is not None and other is not None and one.proc is not None and other.holds(one)


Attributes = Mapping[str, object]


class SpanKind(StrEnum):
    UNSPECIFIED = "unspecified"
    INTERNAL = "internal"
    SERVER = "server"
    CLIENT = "client"
    PRODUCER = "producer"
    CONSUMER = "consumer"


class SpanStatus(StrEnum):
    UNSET = "unset"
    OK = "ok"
    ERROR = "error"


class SpanEvent(msgspec.Struct, frozen=True, gc=False):
    """Something that happened at one moment of a span, as an exception."""

    at: Nanos
    name: str
    attributes: Attributes


class SpanLink(msgspec.Struct, frozen=True, gc=False):
    """Another span that a span names without being its child."""

    trace_id: TraceId
    span_id: SpanId
    attributes: Attributes


class Resource(msgspec.Struct, frozen=True, gc=False):
    """Who sent spans: a process of a service. Shared by all that it sent."""

    service: str
    attributes: Attributes


class Span(msgspec.Struct, frozen=True, gc=False):
    """One span. `ended_at` is None while it is open; it may lie before the start, as clocks do.

    `dropped` counts attributes, events and links which its sender left out, `warnings` are its server's.
    """

    trace_id: TraceId
    span_id: SpanId
    parent_id: SpanId | None
    name: str
    resource: Resource
    started_at: Nanos
    ended_at: Nanos | None
    kind: SpanKind = SpanKind.UNSPECIFIED
    status: SpanStatus = SpanStatus.UNSET
    message: str = ""
    scope: str = ""
    attributes: Attributes = {}
    events: tuple[SpanEvent, ...] = ()
    links: tuple[SpanLink, ...] = ()
    dropped: int = 0
    warnings: tuple[str, ...] = ()

    @property
    def service(self) -> str:
        return self.resource.service

    @property
    def is_error(self) -> bool:
        return self.status is SpanStatus.ERROR

    @property
    def duration_ns(self) -> int | None:
        """Nanoseconds from start to end; None while it is open."""
        return None if self.ended_at is None else self.ended_at - self.started_at


class SpanLog(msgspec.Struct, frozen=True, gc=False):
    """A log record that says to which trace, and perhaps span, it belongs."""

    trace_id: TraceId
    span_id: SpanId | None
    at: Nanos
    level: str
    body: str
    resource: Resource
    attributes: Attributes = {}


class Telemetry(msgspec.Struct, frozen=True, kw_only=True):
    """What one piece of input held; `skip_count` counts what made no sense, `skipped` names some of it."""

    spans: tuple[Span, ...] = ()
    logs: tuple[SpanLog, ...] = ()
    skipped: tuple[Skip, ...] = ()
    skip_count: int = 0


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of one trace: its spans as they came, also those that came twice."""

    trace_id: TraceId
    spans: tuple[Span, ...]
    logs: tuple[SpanLog, ...] = ()


QUIET_S = 30.0
"""How long after its last span a trace may still grow: senders wait for a batch."""
AGED_S = 3600.0
"""The time after which missing spans are no longer expected."""


def growing(trace: Trace | None, now: Nanos, grew_at: Nanos | None = None) -> str:
    """Why more of a trace may come, "" when it is complete. `grew_at` is when it was last seen to grow."""
    if trace is None or not trace.spans:
        return "no span was received"
    ids = {span.span_id for span in trace.spans}
    ended = {span.span_id for span in trace.spans if span.ended_at is not None}
    missing = {span.parent_id for span in trace.spans} - ids - {None}
    roots = {span.span_id for span in trace.spans if span.parent_id is None}
    if not roots:
        return "its root was not received"
    if roots - ended:
        return "its root has not ended"
    if missing:
        return f"{len(missing)} parent{'s were' if len(missing) > 1 else ' was'} not received"
    quiet_s = _quiet_s(trace, now, grew_at)
    return f"its last span came {quiet_s:.0f}s ago" if quiet_s < QUIET_S else ""


def is_waited_for(trace: Trace | None, now: Nanos, grew_at: Nanos | None = None) -> bool:
    """Whether to read a trace again: what is not complete after `AGED_S` will not be."""
    if trace is None or not trace.spans:
        return True
    return bool(growing(trace, now, grew_at)) and _quiet_s(trace, now, grew_at) < AGED_S


def _quiet_s(trace: Trace, now: Nanos, grew_at: Nanos | None) -> float:
    """Seconds since the last sign of it. An end ahead is that of another clock."""
    ends = (max(span.started_at, span.ended_at or Nanos(0)) for span in trace.spans)
    last = max((at for at in ends if at <= now), default=Nanos(0))
    return seconds_between(max(last, grew_at or Nanos(0)), now)


MOST = 50
"""Traces that are listed when no other number is asked for."""


class TraceSearch(msgspec.Struct, frozen=True, kw_only=True):
    """Which traces are wanted: all that is given must hold; nothing given asks for the most recent.

    `value` is that of an attribute of one of the `names`, of a span or of what sent it; without it the jobs
    that these attributes name are listed as far as that costs little. `service` and `operation` are those of
    a span; `since` and `until` bound its start. The newest `most` are listed.
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

    `source` is the name of the source that gave it first.
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
    jobs: tuple[str, ...] = ()
    """The jobs that its spans name, as far as a server tells."""


class TraceList(msgspec.Struct, frozen=True):
    """Traces that were found, the newest first; `notes` say what could not be asked, or only in part.

    `awaited` are the sources that have not answered yet. `left_out` counts those that were found and are not
    listed, as there are too many; `may_be_more` says that a source gave as many as it was asked for.
    """

    traces: tuple[TraceSummary, ...] = ()
    notes: tuple[str, ...] = ()
    awaited: frozenset[str] = frozenset()
    left_out: int = 0
    may_be_more: bool = False


class TraceAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a trace by now, None for nothing; `notes` say which source could not be asked.

    `growing` says why more of it may come, in a few words; it is "" when it is complete.
    """

    trace: Trace | None = None
    notes: tuple[str, ...] = ()
    growing: str = ""


def more_complete(known: TraceSummary | None, other: TraceSummary) -> TraceSummary:
    """Of two summaries of one trace the one with more spans."""
    return known if known is not None and (known.spans or 0) >= (other.spans or 0) else other


def with_awaited(found: TraceList, old: Iterable[TraceSummary], most: int = MOST) -> tuple[TraceSummary, ...]:
    """What was found, with the `old` summaries of sources that have not answered yet; `most` at most."""
    by_id = {one.trace_id: one for one in found.traces}
    for one in old:
        if one.source in found.awaited:
            by_id[one.trace_id] = more_complete(by_id.get(one.trace_id), one)
    return newest(by_id.values(), most)


def summary_of(trace: Trace, source: str = "", names: tuple[str, ...] = ()) -> TraceSummary:
    """A trace in short, by its spans; `names` are the attributes that name jobs."""
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
        jobs=tuple(dict.fromkeys(job for span in spans for job in jobs_named_by(span, names))),
    )


def is_wanted(trace: Trace, search: TraceSearch) -> bool:
    return any(_fits(span, search) for span in trace.spans)


def _fits(span: Span, search: TraceSearch) -> bool:
    attributes = (span.resource.attributes, span.attributes)
    held = (str(one[name]) for one in attributes for name in search.names if one.get(name) is not None)
    return (
        (not search.service or span.service == search.service)
        and (not search.operation or span.name == search.operation)
        and (search.since is None or span.started_at >= search.since)
        and (search.until is None or span.started_at <= search.until)
        and (not search.value or search.value in held)
    )


def newest(summaries: Iterable[TraceSummary], most: int) -> tuple[TraceSummary, ...]:
    """The newest of these, newest first; those without a time come last."""
    return tuple(sorted(summaries, key=lambda one: (-(one.started_at or 0), one.trace_id))[:most])
