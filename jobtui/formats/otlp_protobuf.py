"""Spans and log records out of OTLP as protobuf, through the messages of the `opentelemetry-proto` package.

A file may be several exports one after another: that is one valid message. Traces and logs have the same
outer form, and what is the other thing has ids that are none; so both are tried. Tempo puts a trace into one
more message.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from jobtui.formats.otlp_json import SERVICE, warnings_of
from jobtui.formats.telemetry import DEEPEST_VALUE, KINDS, STATUSES, Found, as_text, level_of
from jobtui.model.clock import Nanos
from jobtui.model.trace_ids import SpanId, TraceId
from jobtui.model.traces import Resource, Span, SpanEvent, SpanKind, SpanLink, SpanLog, SpanStatus

if TYPE_CHECKING:
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
    from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, LogsData
    from opentelemetry.proto.resource.v1.resource_pb2 import Resource as ResourceMessage
    from opentelemetry.proto.trace.v1.trace_pb2 import Span as SpanMessage
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

TRACE_ID_BYTES = 16
SPAN_ID_BYTES = 8
FIRST_FIELD = 0x0A
"""The tag of a first field that holds a message."""


def read_protobuf(data: bytes, found: Found, where: str) -> None:
    """Take the spans and log records of a message into `found`; what is no message is skipped there."""
    tries = [part for part in (data, _unwrapped(data)) if part]
    for part in tries:
        for read in (read_traces, read_logs):
            attempt = Found(where)
            if read(part, attempt) and (attempt.spans or attempt.logs):
                found.spans += attempt.spans
                found.logs += attempt.logs
                for skip in attempt.telemetry().skipped:
                    found.skip(skip.where.removeprefix(f"{where}: "), skip.why)
                return
    if data:
        found.skip("", "no spans could be decoded: expected OTLP as protobuf or JSON, or Jaeger's JSON")


def _unwrapped(data: bytes) -> bytes:
    """The message in the first field of a message, empty when there is none."""
    if data[:1] != bytes([FIRST_FIELD]):
        return b""
    size = shift = 0
    for at, byte in enumerate(data[1:11], start=2):
        size |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return data[at : at + size] if at + size <= len(data) else b""
    return b""


def read_traces(data: bytes, found: Found) -> bool:
    """Take the spans of a message into `found`; whether it is one."""
    # imported where it is needed: a tenth of a second that no other command pays
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    message = TracesData()
    try:
        message.ParseFromString(data)
    except DecodeError:
        return False
    _take_spans(message, found)
    return True


def read_logs(data: bytes, found: Found) -> bool:
    """Take the log records of a message that have a trace into `found`; whether it is one."""
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.logs.v1.logs_pb2 import LogsData

    message = LogsData()
    try:
        message.ParseFromString(data)
    except DecodeError:
        return False
    _take_logs(message, found)
    return True


def _take_spans(message: "TracesData", found: Found) -> None:
    for group in message.resource_spans:
        resource = _resource(group.resource)
        for scoped in group.scope_spans:
            for span in scoped.spans:
                if len(span.trace_id) != TRACE_ID_BYTES or not any(span.trace_id):
                    found.skip(f"span {span.name!r}", f"no trace id: {span.trace_id[:20].hex()!r}")
                elif len(span.span_id) != SPAN_ID_BYTES or not any(span.span_id):
                    found.skip(f"span {span.name!r}", f"no span id: {span.span_id[:20].hex()!r}")
                else:
                    found.spans.append(_span(span, resource, scoped.scope.name))


def _take_logs(message: "LogsData", found: Found) -> None:
    for group in message.resource_logs:
        resource = _resource(group.resource)
        for scoped in group.scope_logs:
            for record in scoped.log_records:
                if len(record.trace_id) == TRACE_ID_BYTES and any(record.trace_id):
                    found.logs.append(_log(record, resource))


def _resource(message: "ResourceMessage") -> Resource:
    attributes = _attributes(message.attributes)
    return Resource(as_text(attributes.get(SERVICE)), attributes)


def _span(span: "SpanMessage", resource: Resource, scope: str) -> Span:
    attributes = _attributes(span.attributes)
    return Span(
        trace_id=TraceId(span.trace_id.hex()),
        span_id=SpanId(span.span_id.hex()),
        parent_id=_span_id(span.parent_span_id),
        name=span.name,
        resource=resource,
        started_at=Nanos(span.start_time_unix_nano),
        ended_at=Nanos(span.end_time_unix_nano) if span.end_time_unix_nano else None,
        kind=KINDS[span.kind] if 0 <= span.kind < len(KINDS) else SpanKind.UNSPECIFIED,
        status=STATUSES[span.status.code] if 0 <= span.status.code < len(STATUSES) else SpanStatus.UNSET,
        message=span.status.message,
        scope=scope,
        attributes=attributes,
        events=tuple(
            SpanEvent(Nanos(event.time_unix_nano), event.name, _attributes(event.attributes))
            for event in span.events
        ),
        links=tuple(_links(span)),
        dropped=span.dropped_attributes_count + span.dropped_events_count + span.dropped_links_count,
        warnings=warnings_of(attributes),
    )


def _links(span: "SpanMessage") -> Iterator[SpanLink]:
    for link in span.links:
        span_id = _span_id(link.span_id)
        if span_id is not None and len(link.trace_id) == TRACE_ID_BYTES:
            yield SpanLink(TraceId(link.trace_id.hex()), span_id, _attributes(link.attributes))


def _log(record: "LogRecord", resource: Resource) -> SpanLog:
    body = _value(record.body)
    return SpanLog(
        trace_id=TraceId(record.trace_id.hex()),
        span_id=_span_id(record.span_id),
        at=Nanos(record.time_unix_nano or record.observed_time_unix_nano),
        level=record.severity_text or level_of(record.severity_number),
        body=body if isinstance(body, str) else "" if body is None else str(body),
        resource=resource,
        attributes=_attributes(record.attributes),
    )


def _span_id(raw: bytes) -> SpanId | None:
    return SpanId(raw.hex()) if len(raw) == SPAN_ID_BYTES and any(raw) else None


def _attributes(pairs: Iterable["KeyValue"]) -> Mapping[str, object]:
    return {pair.key: _value(pair.value) for pair in pairs}


def _value(value: "AnyValue", depth: int = 0) -> object:
    match value.WhichOneof("value"):
        case None:
            return None
        case "array_value" if depth <= DEEPEST_VALUE:
            return [_value(item, depth + 1) for item in value.array_value.values]
        case "kvlist_value" if depth <= DEEPEST_VALUE:
            return {pair.key: _value(pair.value, depth + 1) for pair in value.kvlist_value.values}
        case "array_value" | "kvlist_value":
            return None
        case "bytes_value":
            return value.bytes_value.hex()
        case name:
            held: object = getattr(value, name)
            return held
