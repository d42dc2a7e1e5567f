"""Spans out of Jaeger's own JSON, as its `/api/traces` answers and as its pages download it.

Times are microseconds. The parent is the first CHILD_OF reference, other references are links; kind, status
and scope stand among the tags, by the names in
https://opentelemetry.io/docs/specs/otel/trace/sdk_exporters/jaeger/.
Senders of Jaeger's own protocol name an event in its field `message` and not in `event`.
"""

from collections.abc import Iterator, Mapping

from jobtui.formats.telemetry import (
    Document,
    Found,
    as_dict,
    as_int,
    as_list,
    as_text,
    kind_of,
    opened,
    status_of,
)
from jobtui.model.clock import Nanos
from jobtui.model.trace_ids import SpanId, TraceId, span_id_of_hex, trace_id_of_hex
from jobtui.model.traces import Resource, Span, SpanEvent, SpanLink, SpanStatus

MICROSECOND = 1_000
LATEST_US = 1 << 53
"""Later times are beyond what JSON's numbers hold."""
CHILD_OF = "CHILD_OF"
SCOPES = ("otel.scope.name", "otel.library.name")
EVENT_NAMES = ("event", "message")
STRUCTURAL = frozenset(
    {
        "span.kind", "error", "otel.status_code", "otel.status_description",
        "otel.scope.name", "otel.scope.version", "otel.library.name", "otel.library.version",
    }
)  # fmt: skip
"""Tags that say something for which a span has a field of its own."""


def holds_jaeger(document: Document) -> bool:
    """Whether a document is one of Jaeger's: an answer, one trace of it, or one span of that."""
    held = any(_is_trace(as_dict(one)) for one in as_list(document.get("data")))
    return held or _is_trace(document) or _is_span(document)


def _is_span(document: Document) -> bool:
    return "traceID" in document and "spanID" in document


def _is_trace(document: Document) -> bool:
    return isinstance(document.get("spans"), list) and "traceID" in document


def read_jaeger(document: Document, found: Found) -> None:
    """Take the spans of a document into `found`. Raises nothing."""
    if _is_span(document):
        document = {"traceID": document["traceID"], "spans": [document]}
    traces = [document] if _is_trace(document) else map(as_dict, as_list(document.get("data")))
    for trace in traces:
        processes = {key: _resource(as_dict(one)) for key, one in as_dict(trace.get("processes")).items()}
        for span in map(as_dict, as_list(trace.get("spans"))):
            try:
                found.spans.append(_span(span, processes))
            except ValueError as error:
                found.skip(f"span {as_text(span.get('operationName'))!r}", str(error))


def _resource(process: Document) -> Resource:
    return Resource(as_text(process.get("serviceName")), _tags(process.get("tags")))


def _span(span: Document, processes: Mapping[str, Resource]) -> Span:
    """Raises ValueError for a span without valid ids."""
    tags = _tags(span.get("tags"))
    start_us = _micros(span.get("startTime"))
    duration_us = as_int(span.get("duration")) or 0
    own = span.get("process")
    resource = (
        _resource(as_dict(own)) if own else processes.get(as_text(span.get("processID")), Resource("", {}))
    )
    parent, links = _references(span)
    return Span(
        trace_id=_trace_id(span.get("traceID")),
        span_id=_span_id(span.get("spanID")),
        parent_id=parent,
        name=as_text(span.get("operationName")),
        resource=resource,
        started_at=Nanos(start_us * MICROSECOND),
        ended_at=Nanos((start_us + duration_us) * MICROSECOND) if abs(duration_us) <= LATEST_US else None,
        kind=kind_of(as_text(tags.get("span.kind"))),
        status=_status(tags),
        message=as_text(tags.get("otel.status_description")),
        scope=next((as_text(tags[name]) for name in SCOPES if name in tags), ""),
        attributes={key: value for key, value in tags.items() if key not in STRUCTURAL},
        events=tuple(_event(as_dict(one)) for one in as_list(span.get("logs"))),
        links=links,
        warnings=tuple(as_text(one) for one in as_list(span.get("warnings"))),
    )


def _status(tags: Mapping[str, object]) -> SpanStatus:
    """Some dumps write booleans as text."""
    if tags.get("error") is True or as_text(tags.get("error")).lower() == "true":
        return SpanStatus.ERROR
    return status_of(as_text(tags.get("otel.status_code")) or "0")


def _references(span: Document) -> tuple[SpanId | None, tuple[SpanLink, ...]]:
    """The parent, and what else is named. Old documents give the parent in a field of its own."""
    trace_id = as_text(span.get("traceID")).lower()
    parent = span_id_of_hex(as_text(span.get("parentSpanID")))
    links: list[SpanLink] = []
    for reference in map(as_dict, as_list(span.get("references"))):
        of_trace = trace_id_of_hex(as_text(reference.get("traceID")))
        of_span = span_id_of_hex(as_text(reference.get("spanID")))
        if of_span is None or of_trace is None:
            continue
        is_parent = reference.get("refType") == CHILD_OF and of_trace == trace_id_of_hex(trace_id)
        if is_parent and parent is None:
            parent = of_span
        elif of_span != parent or not is_parent:
            links.append(SpanLink(of_trace, of_span, {}))
    return parent, tuple(links)


def _event(log: Document) -> SpanEvent:
    fields = _tags(log.get("fields"))
    name = next((key for key in EVENT_NAMES if isinstance(fields.get(key), str)), None)
    text = as_text(fields.pop(name)) if name else ""
    return SpanEvent(Nanos(_micros(log.get("timestamp")) * MICROSECOND), text, fields)


def _tags(value: object) -> dict[str, object]:
    return dict(_pairs(as_list(value)))


def _pairs(tags: list[object]) -> Iterator[tuple[str, object]]:
    for tag in map(as_dict, tags):
        if isinstance(key := tag.get("key"), str):
            value = opened(tag.get("value"))
            if tag.get("type") == "bool" and isinstance(value, str):
                value = value.lower() == "true"
            elif tag.get("type") == "int64" and isinstance(value, str):
                value = as_int(value)
            yield key, value


def _micros(value: object) -> int:
    number = as_int(value) or 0
    return number if 0 <= number <= LATEST_US else 0


def _trace_id(value: object) -> TraceId:
    found = trace_id_of_hex(as_text(value))
    if found is None:
        raise ValueError(f"no trace id: {as_text(value)[:50]!r}")
    return found


def _span_id(value: object) -> SpanId:
    found = span_id_of_hex(as_text(value))
    if found is None:
        raise ValueError(f"no span id: {as_text(value)[:50]!r}")
    return found
