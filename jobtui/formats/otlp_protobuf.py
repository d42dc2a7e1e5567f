"""OTLP as protobuf, and the requests and answers of OTLP/HTTP.

Two bytes can become a hundred when decoded: the parts of a message are counted before that. Wire format:
https://protobuf.dev/programming-guides/encoding/; field numbers: opentelemetry-proto.

A file may be several exports one after another: that is one valid message. Traces and logs have the same
outer form, and read as the other the ids are invalid, so both are tried. Tempo wraps a trace once more.
"""

import json
from collections.abc import Mapping
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING

import msgspec

from jobtui.formats.json_values import Document, as_dict, decoded
from jobtui.formats.spans import ReadSpans, read_json, read_otlp, read_otlp_lists
from jobtui.model.secrets import mask_text
from jobtui.model.traces import Telemetry

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor
    from google.protobuf.message import Message

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
LONGEST_VARINT = 10


TRACES_DATA = "TracesData"
LOGS_DATA = "LogsData"


def _new_message(shape: str) -> "Message":
    # imported here: it takes a tenth of a second, which no other command needs
    from opentelemetry.proto.logs.v1.logs_pb2 import LogsData
    from opentelemetry.proto.trace.v1.trace_pb2 import TracesData

    return LogsData() if shape == LOGS_DATA else TracesData()


@cache
def _messages_in(shape: "Descriptor") -> "Mapping[int, Descriptor]":
    return {field.number: field.message_type for field in shape.fields if field.message_type is not None}


def count_parts(data: bytes, shape: str, most: int) -> int:
    """The messages within a message, counted until there are more than `most`.

    Bytes that are no message are counted as far as they can be read; decoding reports them.
    """
    if len(data) < 2 * most:
        return 0  # none has less than two bytes
    parts = 0
    open_ends = [(0, len(data), _messages_in(_new_message(shape).DESCRIPTOR))]
    while open_ends and parts <= most:
        at, end, fields = open_ends.pop()
        while at < end and parts <= most:
            tag, at = _varint(data, at, end)
            kind = tag & 7
            if kind == BYTES:
                size, at = _varint(data, at, end)
                parts += 1
                if (inner := fields.get(tag >> 3)) is not None and size and at + size <= end:
                    open_ends.append((at, at + size, _messages_in(inner)))
                at += size
            elif kind == VARINT:
                _, at = _varint(data, at, end)
            elif kind in (FIXED64, FIXED32):
                at += 8 if kind == FIXED64 else 4
            else:
                break
    return parts


def _varint(data: bytes, at: int, end: int) -> tuple[int, int]:
    """A number and where it ends; if it has no end, that of the data."""
    number = shift = 0
    while at < end and shift < 7 * LONGEST_VARINT:
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, at
        shift += 7
    return 0, end


FIRST_FIELD = b"\x0a"
"""The tag of a first field that holds a message."""


def read_telemetry(data: bytes, where: str) -> Telemetry:
    """All spans and log records with a trace id in the bytes of a file; `where` names it in skips."""
    found = ReadSpans(where)
    text = data.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n")
    if text[:1] in (b"{", b"["):
        read_json(text, found)
    elif data.strip(b" \t\r\n\0"):
        size, at = _varint(data, 1, len(data))
        is_wrapped = data[:1] == FIRST_FIELD and at + size <= len(data)
        for part in filter(None, (data, data[at : at + size] if is_wrapped else b"")):
            for shape in (TRACES_DATA, LOGS_DATA):
                attempt = ReadSpans(where)
                read_otlp_lists(_document_in(part, shape) or {}, attempt)
                if attempt.spans or attempt.logs:
                    return attempt.telemetry()
        found.skip("", "no spans could be decoded: expected OTLP as protobuf or JSON, or Jaeger's JSON")
    return found.telemetry()


def _document_in(data: bytes, shape: str) -> Document | None:
    """A message of this shape in the form of JSON, ids in base64; None for bytes that are no such message."""
    from google.protobuf.json_format import MessageToDict
    from google.protobuf.message import DecodeError

    read = _new_message(shape)
    try:
        read.ParseFromString(data)
    except DecodeError:
        return None
    return as_dict(MessageToDict(read, use_integers_for_enums=True))


MOST_PARTS = 500_000
"""Messages, lists and objects in one request; 40,000 usual spans have as many."""
WORDS = 200


class Signal(StrEnum):
    """The kind of data in a request. Metrics are not kept."""

    TRACES = "traces"
    LOGS = "logs"
    METRICS = "metrics"


class Encoding(StrEnum):
    """The encoding of a request, by its content type."""

    PROTOBUF = "application/x-protobuf"
    JSON = "application/json"


class TooMany(ValueError):
    """A request has more parts than are taken in."""


_REJECTED: Mapping[Signal, str] = {
    Signal.TRACES: "rejectedSpans",
    Signal.LOGS: "rejectedLogRecords",
    Signal.METRICS: "rejectedDataPoints",
}
"""The name of the count of rejected parts in JSON; in protobuf it is the first field of all three."""


def read_export(data: bytes, signal: Signal, encoding: Encoding, where: str) -> Telemetry:
    """The content of a request; parts that cannot be read are skipped. Raises ValueError if it is none."""
    found = ReadSpans(where)
    if signal is Signal.METRICS:
        return found.telemetry()
    shape = LOGS_DATA if signal is Signal.LOGS else TRACES_DATA
    is_json = encoding is Encoding.JSON
    parts = sum(map(data.count, (b"{", b"[", b","))) if is_json else count_parts(data, shape, MOST_PARTS)
    if parts > MOST_PARTS:
        raise TooMany(f"more than {MOST_PARTS:,} parts in one request")
    if is_json:
        try:
            document = decoded(data)
        except ValueError as error:
            raise ValueError(f"is not JSON: {error}") from error
        if not isinstance(document, dict):
            raise ValueError("is not a JSON object")
        read_otlp(document, found)
    else:
        message = _document_in(data, shape)
        if message is None:
            raise ValueError(f"is not a protobuf message of {signal.value}")
        read_otlp_lists(message, found)
    left_out = {"logs": ()} if signal is Signal.TRACES else {"spans": ()}
    return msgspec.structs.replace(found.telemetry(), **left_out)


def answer_to(signal: Signal, encoding: Encoding, rejected: int = 0, why: str = "") -> bytes:
    """The body of the answer to a request that was taken in; `why` says what was left out of it."""
    why = _in_words(why)
    if encoding is Encoding.JSON:
        said = {"partialSuccess": {_REJECTED[signal]: str(rejected), "errorMessage": why}} if why else {}
        return json.dumps(said).encode()
    if not why:
        return b""
    # The responses to all three have the same fields under the same numbers
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service

    partial = service.ExportTracePartialSuccess(rejected_spans=rejected, error_message=why)
    return service.ExportTraceServiceResponse(partial_success=partial).SerializeToString()


def status_of_error(code: int, message: str, encoding: Encoding) -> bytes:
    message = _in_words(message)
    if encoding is Encoding.JSON:
        return json.dumps({"code": code, "message": message}).encode()
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTracePartialSuccess

    # Numbered as the fields of google.rpc.Status
    return ExportTracePartialSuccess(rejected_spans=code, error_message=message).SerializeToString()


def _in_words(text: str) -> str:
    shown = "".join(sign if sign.isprintable() else " " for sign in mask_text(text[: 4 * WORDS]))
    return " ".join(shown.split())[:WORDS]
