"""Spans of a trace, their events, and the log records that carry its id.

Field for field what OpenTelemetry says (https://opentelemetry.io/docs/specs/otel/trace/api/), with our own
unit of time. Attribute values are what JSON has: not masked, not safe for a terminal. What a trace means is
`analysis.traces`.
"""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

from jobtui.model.clock import Nanos
from jobtui.model.health import Skip
from jobtui.model.trace_ids import SpanId, TraceId

Attributes = Mapping[str, object]


class SpanKind(StrEnum):
    """What a span is towards other services."""

    UNSPECIFIED = "unspecified"
    INTERNAL = "internal"
    SERVER = "server"
    CLIENT = "client"
    PRODUCER = "producer"
    CONSUMER = "consumer"


class SpanStatus(StrEnum):
    """How a span says that it ended."""

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

    `dropped` counts attributes, events and links which its sender left out, `warnings` are those of the
    server it came from.
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
        """The name of the service that sent it."""
        return self.resource.service

    @property
    def is_error(self) -> bool:
        """Whether it says that it failed."""
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
