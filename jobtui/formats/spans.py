"""Reads spans and log records in OTLP's JSON and in Jaeger's own JSON, whatever a file or an answer holds.

Every reader gives a `Telemetry`; one bad span costs that span, is counted, and named among the first few.

OTLP JSON (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding): ids in hex of any case, enums as
numbers, 64-bit numbers as texts or numbers, what is absent is zero, unknown fields are ignored. Tempo follows
protobuf's own rules: ids in base64, enums by name. Phoenix and others write names with underscores.

Jaeger's own JSON: times are microseconds. The parent is the first CHILD_OF reference, other references are
links; kind, status and scope are tags, with the names in
https://opentelemetry.io/docs/specs/otel/trace/sdk_exporters/jaeger/. Senders of its own protocol name an
event in its field `message` and not in `event`.

JSON is OTLP or Jaeger's, one document or one per line; what is neither text nor empty is taken for protobuf.
Nothing here raises: what cannot be read is skipped and counted.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from jobtui.formats.json_values import Document, as_dict, as_list, as_nanos, as_text, decoded, opened
from jobtui.model.clock import MICROSECOND, Nanos
from jobtui.model.health import SKIPS_NAMED, Skip, rows_of
from jobtui.model.ids import SpanId, TraceId, span_id_of_hex, trace_id_of_hex
from jobtui.model.numbers import whole_of
from jobtui.model.traces import Resource, Span, SpanEvent, SpanKind, SpanLink, SpanLog, SpanStatus, Telemetry

DEEPEST_VALUE = 20
"""Attribute values nested deeper are left out."""
KINDS: tuple[SpanKind, ...] = tuple(SpanKind)
"""By their number in OTLP."""
STATUSES: tuple[SpanStatus, ...] = tuple(SpanStatus)

LEVELS: tuple[str, ...] = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
"""Of log records, each for four severity numbers from 1 on."""

Item = TypeVar("Item")
Id = TypeVar("Id", SpanId, TraceId)
Result = TypeVar("Result")
Member = TypeVar("Member", SpanKind, SpanStatus)


class ReadSpans:
    def __init__(self, where: str) -> None:
        self._where = where
        self.spans: list[Span] = []
        self.logs: list[SpanLog] = []
        self._skips: list[Skip] = []
        self._skip_count = 0

    def skip(self, where: str, why: str) -> None:
        self._skip_count += 1
        if len(self._skips) < SKIPS_NAMED:
            self._skips.append(Skip(f"{self._where}: {where}" if where else self._where, why))

    def each(
        self, items: Iterable[Item], make: Callable[[Item], Result], name: Callable[[Item], str]
    ) -> Iterator[Result]:
        """The result for each item; one that cannot be read is skipped under its name."""
        return rows_of(items, make, lambda item, why: self.skip(name(item), why), ValueError)

    def telemetry(self) -> Telemetry:
        return Telemetry(
            spans=tuple(self.spans),
            logs=tuple(self.logs),
            skipped=tuple(self._skips),
            skip_count=self._skip_count,
        )


def kind_of(value: object) -> SpanKind:
    return _member(value, KINDS)


def status_of(value: object) -> SpanStatus:
    """The status of a span by its number, or its name as `STATUS_CODE_ERROR`."""
    return _member(value, STATUSES)


def _member(value: object, members: tuple[Member, ...]) -> Member:
    """One of these by its number or the end of its name, the first for any other."""
    if isinstance(value, str) and not value.isdigit():
        name = value.rpartition("_")[2].lower()
        return next((one for one in members if one == name), members[0])
    number = whole_of(value) or 0
    return members[number] if 0 <= number < len(members) else members[0]


def level_of(number: int) -> str:
    """The level of a log record by its severity number; empty when that says none."""
    return LEVELS[(number - 1) // 4] if 1 <= number <= 4 * len(LEVELS) else ""


WRAPPERS = ("trace", "result", "tracesData")
"""Keys under which servers put the whole document."""
SPAN_LISTS = ("resourceSpans", "batches")
SCOPE_SPANS = ("scopeSpans", "instrumentationLibrarySpans")
SCOPE_LOGS = ("scopeLogs", "instrumentationLibraryLogs")
SERVICE = "service.name"
SERVER_WARNINGS = "@jaeger@warnings"
"""The attribute in which Jaeger puts its warnings about a span."""
DEEPEST_NAMES = 100


def holds_otlp(document: Document) -> bool:
    if any(key in document for key in (*SPAN_LISTS, "resourceLogs", "resource_spans", "resource_logs")):
        return True
    return any(isinstance(document.get(key), dict) for key in WRAPPERS)


def read_otlp(document: Document, found: ReadSpans) -> None:
    """Take the spans and log records of a document into `found`. Raises nothing."""
    if "resource_spans" in document or "resource_logs" in document:
        document = as_dict(_with_camel_names(document, 0))
    for key in WRAPPERS:
        if isinstance(inner := document.get(key), dict):
            read_otlp_lists(inner, found)
    read_otlp_lists(document, found)


def read_otlp_lists(document: Document, found: ReadSpans) -> None:
    def take(group: Document) -> None:
        attributes = attributes_of(as_dict(group.get("resource")).get("attributes"))
        resource = Resource(as_text(attributes.get(SERVICE)), attributes)
        found.spans += found.each(
            _within(group, SCOPE_SPANS, "spans"),
            lambda one: _span(one[1], resource, one[0]),
            lambda one: f"span {as_text(one[1].get('name'))!r}",
        )
        # most log records belong to no trace
        records = (record for _, record in _within(group, SCOPE_LOGS, "logRecords") if record.get("traceId"))
        found.logs += found.each(records, lambda record: _log(record, resource), lambda _: "log record")

    for key in (*SPAN_LISTS, "resourceLogs"):
        for _ in found.each(map(as_dict, as_list(document.get(key))), take, lambda _: "resource"):
            pass


def _within(group: Document, scopes: tuple[str, ...], items: str) -> Iterator[tuple[str, Document]]:
    for key in scopes:
        for scoped in map(as_dict, as_list(group.get(key))):
            scope = as_dict(scoped.get("scope") or scoped.get("instrumentationLibrary"))
            name = as_text(scope.get("name"))
            for item in as_list(scoped.get(items)):
                yield name, as_dict(item)


def _span(span: Document, resource: Resource, scope: str) -> Span:
    """Raises ValueError for a span without valid ids."""
    attributes = attributes_of(span.get("attributes"))
    status = as_dict(span.get("status"))
    dropped = ("droppedAttributesCount", "droppedEventsCount", "droppedLinksCount")
    odd = attributes.get(SERVER_WARNINGS)
    odd = odd if isinstance(odd, list) else [] if odd is None else [odd]
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
        dropped=sum(max(0, whole_of(span.get(name)) or 0) for name in dropped),
        warnings=tuple(map(str, odd)),
    )


def _event(event: object) -> SpanEvent:
    parts = as_dict(event)
    at, name = as_nanos(parts.get("timeUnixNano")), as_text(parts.get("name"))
    return SpanEvent(at, name, attributes_of(parts.get("attributes")))


def _links(span: Document) -> Iterator[SpanLink]:
    for link in map(as_dict, as_list(span.get("links"))):
        try:
            trace_id, span_id = _trace_id(link.get("traceId")), _span_id(link.get("spanId"))
        except ValueError:
            continue  # a link to nothing says nothing
        yield SpanLink(trace_id, span_id, attributes_of(link.get("attributes")))


def _log(record: Document, resource: Resource) -> SpanLog:
    body = value_of(record.get("body"))
    number = whole_of(record.get("severityNumber")) or 0
    return SpanLog(
        trace_id=_trace_id(record.get("traceId")),
        span_id=parent_of(record.get("spanId")),
        at=as_nanos(record.get("timeUnixNano")) or as_nanos(record.get("observedTimeUnixNano")),
        level=as_text(record.get("severityText")) or level_of(number),
        body=body if isinstance(body, str) else "" if body is None else str(body),
        resource=resource,
        attributes=attributes_of(record.get("attributes")),
    )


def _known(found: Id | None, what: str, value: object) -> Id:
    if found is None:
        raise ValueError(f"no {what} id: {as_text(value)[:50]!r}")
    return found


def _trace_id(value: object) -> TraceId:
    text = as_text(value)
    return _known(trace_id_of_hex(text) or trace_id_of_hex(_hex_of_base64(text, 16)), "trace", value)


def _span_id(value: object) -> SpanId:
    return _known(parent_of(value), "span", value)


def parent_of(value: object) -> SpanId | None:
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
    known: dict[str, object] = {}
    for item in map(as_dict, as_list(value)):
        if isinstance(key := item.get("key"), str):
            known[key] = value_of(item.get("value"))
    return known


def value_of(value: object, depth: int = 0) -> object:
    """The value of an attribute; None if there is none, or if it is nested too deep."""
    if depth > DEEPEST_VALUE:
        return None
    for key, inner in as_dict(value).items():
        if key in ("stringValue", "bytesValue"):
            return as_text(inner)
        if key == "intValue":
            return whole_of(inner)
        if key in ("boolValue", "doubleValue"):
            return inner if isinstance(inner, bool | int | float | str) else None
        if key == "arrayValue":
            return [value_of(item, depth + 1) for item in as_list(as_dict(inner).get("values"))]
        if key == "kvlistValue":
            pairs = map(as_dict, as_list(as_dict(inner).get("values")))
            return {as_text(pair.get("key")): value_of(pair.get("value"), depth + 1) for pair in pairs}
    return None


_UNDERSCORE = re.compile(r"_([a-z])")


def _with_camel_names(value: object, depth: int) -> object:
    """A document with OTLP's names; protobuf's JSON may have underscores instead."""
    if depth > DEEPEST_NAMES:
        return None
    value = opened(value)
    if isinstance(value, dict):
        return {
            _UNDERSCORE.sub(lambda found: found[1].upper(), key): _with_camel_names(item, depth + 1)
            for key, item in value.items()
        }
    return [_with_camel_names(item, depth + 1) for item in value] if isinstance(value, list) else value


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
"""Tags for which a span has a field of its own."""


def holds_jaeger(document: Document) -> bool:
    held = any(_is_trace(as_dict(one)) for one in as_list(document.get("data")))
    return held or _is_trace(document) or _is_span(document)


def _is_span(document: Document) -> bool:
    return "traceID" in document and "spanID" in document


def _is_trace(document: Document) -> bool:
    return isinstance(document.get("spans"), list) and "traceID" in document


def read_jaeger(document: Document, found: ReadSpans) -> None:
    """Take the spans of a document into `found`. Raises nothing."""
    if _is_span(document):
        document = {"traceID": document["traceID"], "spans": [document]}

    def take(trace: Document) -> None:
        named = as_dict(trace.get("processes")).items()
        processes = {key: _jaeger_resource(as_dict(one)) for key, one in named}
        found.spans += found.each(
            map(as_dict, as_list(trace.get("spans"))),
            lambda span: _jaeger_span(span, processes),
            lambda span: f"span {as_text(span.get('operationName'))!r}",
        )

    traces = [document] if _is_trace(document) else map(as_dict, as_list(document.get("data")))
    for _ in found.each(traces, take, lambda trace: f"trace {trace.get('traceID')!r}"):
        pass


def _jaeger_resource(process: Document) -> Resource:
    return Resource(as_text(process.get("serviceName")), _tags(process.get("tags")))


def _jaeger_span(span: Document, processes: Mapping[str, Resource]) -> Span:
    """Raises ValueError for a span without valid ids."""
    tags = _tags(span.get("tags"))
    start_us = _micros(span.get("startTime"))
    duration_us = whole_of(span.get("duration")) or 0
    resource = processes.get(as_text(span.get("processID")), Resource("", {}))
    if own := span.get("process"):
        resource = _jaeger_resource(as_dict(own))
    status = status_of(as_text(tags.get("otel.status_code")) or "0")
    if tags.get("error") is True or as_text(tags.get("error")).lower() == "true":  # some write it as text
        status = SpanStatus.ERROR
    parent, links = _references(span)
    return Span(
        trace_id=_known(trace_id_of_hex(as_text(span.get("traceID"))), "trace", span.get("traceID")),
        span_id=_known(span_id_of_hex(as_text(span.get("spanID"))), "span", span.get("spanID")),
        parent_id=parent,
        name=as_text(span.get("operationName")),
        resource=resource,
        started_at=Nanos(start_us * MICROSECOND),
        ended_at=Nanos((start_us + duration_us) * MICROSECOND) if abs(duration_us) <= LATEST_US else None,
        kind=kind_of(as_text(tags.get("span.kind"))),
        status=status,
        message=as_text(tags.get("otel.status_description")),
        scope=next((as_text(tags[name]) for name in SCOPES if name in tags), ""),
        attributes={key: value for key, value in tags.items() if key not in STRUCTURAL},
        events=tuple(_jaeger_event(as_dict(one)) for one in as_list(span.get("logs"))),
        links=links,
        warnings=tuple(as_text(one) for one in as_list(span.get("warnings"))),
    )


def _references(span: Document) -> tuple[SpanId | None, tuple[SpanLink, ...]]:
    """The parent, and the links. Old documents give the parent in a field of its own."""
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


def _jaeger_event(log: Document) -> SpanEvent:
    fields = _tags(log.get("fields"))
    name = next((key for key in EVENT_NAMES if isinstance(fields.get(key), str)), None)
    text = as_text(fields.pop(name)) if name else ""
    return SpanEvent(Nanos(_micros(log.get("timestamp")) * MICROSECOND), text, fields)


def _tags(tags: object) -> dict[str, object]:
    found: dict[str, object] = {}
    for tag in map(as_dict, as_list(tags)):
        if isinstance(key := tag.get("key"), str):
            value = opened(tag.get("value"))
            if tag.get("type") == "bool" and isinstance(value, str):
                value = value.lower() == "true"
            elif tag.get("type") == "int64" and isinstance(value, str):
                value = whole_of(value)
            found[key] = value
    return found


def _micros(value: object) -> int:
    number = whole_of(value) or 0
    return number if 0 <= number <= LATEST_US else 0


def telemetry_of(document: object, where: str) -> Telemetry:
    """All spans and log records with a trace id in a decoded document; `where` names it in skips."""
    found = ReadSpans(where)
    _take(document, found, "")
    return found.telemetry()


def read_json(text: bytes, found: ReadSpans) -> None:
    """Take a document into `found`, or one per line if the first of several lines is one."""
    try:
        _take(decoded(text), found, "")
        return
    except ValueError as error:
        first, newline, _ = text.partition(b"\n")
        if not newline or not _is_document(first):
            found.skip("", f"is not JSON: {error}")
            return
    for number, line in enumerate(text.split(b"\n"), start=1):
        if line.strip():
            try:
                document = decoded(line)
            except ValueError as error:
                found.skip(f"line {number}", f"is not JSON: {error}")
            else:
                _take(document, found, f"line {number}")


_KEYS = (b'"resourceSpans"', b'"resourceLogs"', b'"traceID"', b'"batches"', b'"resource_spans"')
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


def begins_with_spans(head: bytes) -> bool:
    """Whether a file begins as one of spans or their log records: with their keys, or as no text does."""
    return any(key in head for key in _KEYS) or _BINARY.search(head) is not None


def is_line_of_json(head: bytes) -> bool:
    first, newline, _ = head.partition(b"\n")
    return bool(newline) and first[:1] == b"{" and _is_document(first)


def _is_document(line: bytes) -> bool:
    try:
        return isinstance(decoded(line), dict)
    except ValueError:
        return False


def _take(whole: object, found: ReadSpans, where: str) -> None:
    def take(piece: object) -> None:
        document = as_dict(piece) or piece
        if isinstance(document, dict) and holds_otlp(document):
            read_otlp(document, found)
        elif isinstance(document, dict) and holds_jaeger(document):
            read_jaeger(document, found)
        elif document != {}:
            raise ValueError("expected OTLP as JSON or protobuf, or Jaeger's JSON")

    for _ in found.each(whole if isinstance(whole, list) else [whole], take, lambda _: where):
        pass
