"""Spans and log records out of OTLP as JSON, also as Tempo and Jaeger v3 write it.

OTLP JSON (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding): ids in hex of any case, enums as
numbers, 64-bit numbers as texts or numbers, what is absent is zero, unknown fields are ignored. Tempo follows
protobuf's own rules: ids in base64, enums by name. Phoenix and others write names with underscores.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping

from jobtui.formats.telemetry import (
    DEEPEST_VALUE,
    Document,
    Found,
    as_dict,
    as_int,
    as_list,
    as_nanos,
    as_text,
    kind_of,
    level_of,
    opened,
    status_of,
)
from jobtui.model.trace_ids import SpanId, TraceId, span_id_of_hex, trace_id_of_hex
from jobtui.model.traces import Resource, Span, SpanEvent, SpanLink, SpanLog

WRAPPERS = ("trace", "result", "tracesData")
"""Keys under which servers put the whole."""
SPAN_LISTS = ("resourceSpans", "batches")
SCOPE_SPANS = ("scopeSpans", "instrumentationLibrarySpans")
SCOPE_LOGS = ("scopeLogs", "instrumentationLibraryLogs")
SERVICE = "service.name"
SERVER_WARNINGS = "@jaeger@warnings"
"""The attribute in which Jaeger says what it found odd of a span."""
DEEPEST_NAMES = 100


def holds_otlp(document: Document) -> bool:
    """Whether a document is OTLP."""
    if any(key in document for key in (*SPAN_LISTS, "resourceLogs", "resource_spans", "resource_logs")):
        return True
    return any(isinstance(document.get(key), dict) for key in WRAPPERS)


def read_otlp(document: Document, found: Found) -> None:
    """Take the spans and log records of a document into `found`. Raises nothing."""
    if "resource_spans" in document or "resource_logs" in document:
        document = as_dict(_with_camel_names(document, 0))
    for key in WRAPPERS:
        if isinstance(inner := document.get(key), dict):
            read_otlp_lists(inner, found)
    read_otlp_lists(document, found)


def read_otlp_lists(document: Document, found: Found) -> None:
    """Take what stands directly in a document into `found`."""
    for key in SPAN_LISTS:
        for group in as_list(document.get(key)):
            _read_group(as_dict(group), found)
    for group in as_list(document.get("resourceLogs")):
        _read_logs(as_dict(group), found)


def _read_group(group: Document, found: Found) -> None:
    resource = _resource(group)
    for scope_name, span in _within(group, SCOPE_SPANS, "spans"):
        try:
            found.spans.append(_span(span, resource, scope_name))
        except ValueError as error:
            found.skip(f"span {as_text(span.get('name'))!r}", str(error))


def _read_logs(group: Document, found: Found) -> None:
    resource = _resource(group)
    for _, record in _within(group, SCOPE_LOGS, "logRecords"):
        if not record.get("traceId"):
            continue  # most log records belong to no trace
        try:
            found.logs.append(_log(record, resource))
        except ValueError as error:
            found.skip("log record", str(error))


def _within(group: Document, scopes: tuple[str, ...], items: str) -> Iterator[tuple[str, Document]]:
    """What a group holds, with the name of its scope."""
    for key in scopes:
        for scoped in map(as_dict, as_list(group.get(key))):
            scope = as_dict(scoped.get("scope") or scoped.get("instrumentationLibrary"))
            name = as_text(scope.get("name"))
            for item in as_list(scoped.get(items)):
                yield name, as_dict(item)


def _resource(group: Document) -> Resource:
    attributes = attributes_of(as_dict(group.get("resource")).get("attributes"))
    return Resource(as_text(attributes.get(SERVICE)), attributes)


def _span(span: Document, resource: Resource, scope: str) -> Span:
    """Raises ValueError for a span without valid ids."""
    attributes = attributes_of(span.get("attributes"))
    status = as_dict(span.get("status"))
    dropped = ("droppedAttributesCount", "droppedEventsCount", "droppedLinksCount")
    return Span(
        trace_id=_trace_id(span.get("traceId")),
        span_id=_span_id(span.get("spanId")),
        parent_id=parent_of(span.get("parentSpanId")),
        name=as_text(span.get("name")),
        resource=resource,
        started_at=as_nanos(span.get("startTimeUnixNano")),
        ended_at=as_nanos(span.get("endTimeUnixNano")) or None,
        kind=kind_of(span.get("kind")),
        status=status_of(status.get("code")),
        message=as_text(status.get("message")),
        scope=scope,
        attributes=attributes,
        events=tuple(map(_event, as_list(span.get("events")))),
        links=tuple(_links(span)),
        dropped=sum(max(0, as_int(span.get(name)) or 0) for name in dropped),
        warnings=warnings_of(attributes),
    )


def _event(event: object) -> SpanEvent:
    parts = as_dict(event)
    return SpanEvent(
        as_nanos(parts.get("timeUnixNano")),
        as_text(parts.get("name")),
        attributes_of(parts.get("attributes")),
    )


def _links(span: Document) -> Iterator[SpanLink]:
    for link in map(as_dict, as_list(span.get("links"))):
        try:
            trace_id, span_id = _trace_id(link.get("traceId")), _span_id(link.get("spanId"))
        except ValueError:
            continue  # a link to nothing says nothing
        yield SpanLink(trace_id, span_id, attributes_of(link.get("attributes")))


def _log(record: Document, resource: Resource) -> SpanLog:
    body = value_of(record.get("body"))
    number = as_int(record.get("severityNumber")) or 0
    return SpanLog(
        trace_id=_trace_id(record.get("traceId")),
        span_id=parent_of(record.get("spanId")),
        at=as_nanos(record.get("timeUnixNano")) or as_nanos(record.get("observedTimeUnixNano")),
        level=as_text(record.get("severityText")) or level_of(number),
        body=body if isinstance(body, str) else "" if body is None else str(body),
        resource=resource,
        attributes=attributes_of(record.get("attributes")),
    )


def warnings_of(attributes: Mapping[str, object]) -> tuple[str, ...]:
    """What a server says of a span in an attribute."""
    said = attributes.get(SERVER_WARNINGS)
    return tuple(map(str, said)) if isinstance(said, list) else () if said is None else (str(said),)


def _trace_id(value: object) -> TraceId:
    text = as_text(value)
    found = trace_id_of_hex(text) or trace_id_of_hex(_hex_of_base64(text, 16))
    if found is None:
        raise ValueError(f"no trace id: {text[:50]!r}")
    return found


def _span_id(value: object) -> SpanId:
    found = parent_of(value)
    if found is None:
        raise ValueError(f"no span id: {as_text(value)[:50]!r}")
    return found


def parent_of(value: object) -> SpanId | None:
    """A span id that may be absent."""
    text = as_text(value)
    return (span_id_of_hex(text) or span_id_of_hex(_hex_of_base64(text, 8))) if text else None


def _hex_of_base64(text: str, size: int) -> str:
    """The hex digits of `size` bytes in base64, else nothing. Hex ids of these lengths never end with `=`."""
    try:
        raw = base64.b64decode(text, validate=True) if len(text) % 4 == 0 and text.endswith("=") else b""
    except (binascii.Error, ValueError):
        return ""
    return raw.hex() if len(raw) == size else ""


def attributes_of(value: object) -> dict[str, object]:
    """Attributes out of their list of keys and values."""
    known: dict[str, object] = {}
    for item in map(as_dict, as_list(value)):
        if isinstance(key := item.get("key"), str):
            known[key] = value_of(item.get("value"))
    return known


def value_of(value: object, depth: int = 0) -> object:
    """What an attribute value holds; None for nothing, or when it is nested too deep."""
    if depth > DEEPEST_VALUE:
        return None
    for key, inner in as_dict(value).items():
        if key == "stringValue":
            return as_text(inner)
        if key == "intValue":
            return as_int(inner)
        if key in ("boolValue", "doubleValue"):
            return inner if isinstance(inner, bool | int | float | str) else None
        if key == "arrayValue":
            return [value_of(item, depth + 1) for item in as_list(as_dict(inner).get("values"))]
        if key == "kvlistValue":
            pairs = map(as_dict, as_list(as_dict(inner).get("values")))
            return {as_text(pair.get("key")): value_of(pair.get("value"), depth + 1) for pair in pairs}
        if key == "bytesValue":
            return as_text(inner)
    return None


_UNDERSCORE = re.compile(r"_([a-z])")


def _with_camel_names(value: object, depth: int) -> object:
    """A document with names as OTLP has them; protobuf's JSON may have underscores instead."""
    if depth > DEEPEST_NAMES:
        return None
    value = opened(value)
    if isinstance(value, dict):
        return {
            _UNDERSCORE.sub(lambda found: found[1].upper(), key): _with_camel_names(item, depth + 1)
            for key, item in value.items()
        }
    return [_with_camel_names(item, depth + 1) for item in value] if isinstance(value, list) else value
