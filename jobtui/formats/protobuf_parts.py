"""How many messages there are in a message of OTLP, counted without making them.

Two bytes can be a message of a hundred: what is to be decoded is counted first. Wire format:
https://protobuf.dev/programming-guides/encoding/; field numbers: opentelemetry-proto.
"""

from collections.abc import Mapping

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
LONGEST_VARINT = 10


_SHAPES: Mapping[str, Mapping[int, str]] = {
    "TracesData": {1: "ResourceSpans"},
    "ResourceSpans": {1: "Resource", 2: "ScopeSpans"},
    "ScopeSpans": {1: "Scope", 2: "Span"},
    "Span": {9: "KeyValue", 11: "Event", 13: "Link", 15: "Leaf"},
    "Event": {3: "KeyValue"},
    "Link": {4: "KeyValue"},
    "LogsData": {1: "ResourceLogs"},
    "ResourceLogs": {1: "Resource", 2: "ScopeLogs"},
    "ScopeLogs": {1: "Scope", 2: "LogRecord"},
    "LogRecord": {5: "AnyValue", 6: "KeyValue"},
    "Resource": {1: "KeyValue", 3: "Leaf"},
    "Scope": {3: "KeyValue"},
    "KeyValue": {2: "AnyValue"},
    "AnyValue": {5: "ArrayValue", 6: "KeyValueList"},
    "ArrayValue": {1: "AnyValue"},
    "KeyValueList": {1: "KeyValue"},
    "Leaf": {},
}
TRACES_DATA = "TracesData"
LOGS_DATA = "LogsData"


def count_parts(data: bytes, shape: str, most: int) -> int:
    """The messages within a message, counted until there are more than `most`.

    What is no message is counted as far as it can be read: who decodes it will say so.
    """
    if len(data) < 2 * most:
        return 0  # none has less than two bytes
    parts = 0
    open_ends = [(0, len(data), _SHAPES[shape])]
    while open_ends and parts <= most:
        at, end, fields = open_ends.pop()
        while at < end and parts <= most:
            tag, at = _varint(data, at, end)
            kind = tag & 7
            if kind == BYTES:
                size, at = _varint(data, at, end)
                parts += 1
                if (inner := fields.get(tag >> 3)) is not None and size and at + size <= end:
                    open_ends.append((at, at + size, _SHAPES[inner]))
                at += size
            elif kind == VARINT:
                _, at = _varint(data, at, end)
            elif kind in (FIXED64, FIXED32):
                at += 8 if kind == FIXED64 else 4
            else:
                break
    return parts


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """A number and where it ends; the end of all when it has none."""
    number = shift = 0
    while at < end and shift < 7 * LONGEST_VARINT:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
    return 0, end
