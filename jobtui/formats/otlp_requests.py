"""What is sent over OTLP/HTTP, and what is answered (https://opentelemetry.io/docs/specs/otlp/#otlphttp).

A small message can become very many objects, so the parts of one are counted before it is decoded.
"""

import json
from collections.abc import Mapping
from enum import StrEnum

import msgspec

from jobtui.formats.otlp_json import read_otlp
from jobtui.formats.otlp_protobuf import read_logs, read_traces
from jobtui.formats.protobuf_parts import LOGS_DATA, TRACES_DATA, count_parts
from jobtui.formats.telemetry import Found, decoded
from jobtui.model.secrets import mask_text
from jobtui.model.traces import Telemetry

MOST_PARTS = 500_000
"""Messages, lists and objects in one request; 40,000 usual spans have as many."""
WORDS = 200


class Signal(StrEnum):
    """What is sent. Of metrics nothing is kept."""

    TRACES = "traces"
    LOGS = "logs"
    METRICS = "metrics"


class Encoding(StrEnum):
    """How it is sent, by its content type."""

    PROTOBUF = "application/x-protobuf"
    JSON = "application/json"


class TooMany(ValueError):
    """A request has more parts than are taken in."""


_REJECTED: Mapping[Signal, str] = {
    Signal.TRACES: "rejectedSpans",
    Signal.LOGS: "rejectedLogRecords",
    Signal.METRICS: "rejectedDataPoints",
}
"""How the count of what was left out is called in JSON; in protobuf it is the first field of all three."""


def read_export(data: bytes, signal: Signal, encoding: Encoding, where: str) -> Telemetry:
    """What a request holds; what of it makes no sense is skipped. Raises ValueError for one that is none."""
    found = Found(where)
    if signal is Signal.METRICS:
        return found.telemetry()
    if encoding is Encoding.JSON:
        _read_json(data, found)
    else:
        _read_protobuf(data, signal, found)
    told = found.telemetry()
    if signal is Signal.TRACES:
        return msgspec.structs.replace(told, logs=())
    return msgspec.structs.replace(told, spans=())


def _read_json(data: bytes, found: Found) -> None:
    if data.count(b"{") + data.count(b"[") + data.count(b",") > MOST_PARTS:
        raise TooMany(f"more than {MOST_PARTS:,} parts in one request")
    try:
        document = decoded(data)
    except ValueError as error:
        raise ValueError(f"is no JSON: {error}") from error
    if not isinstance(document, dict):
        raise ValueError("is no JSON object")
    read_otlp(document, found)


def _read_protobuf(data: bytes, signal: Signal, found: Found) -> None:
    of_logs = signal is Signal.LOGS
    if count_parts(data, LOGS_DATA if of_logs else TRACES_DATA, MOST_PARTS) > MOST_PARTS:
        raise TooMany(f"more than {MOST_PARTS:,} parts in one request")
    if not (read_logs if of_logs else read_traces)(data, found):
        raise ValueError(f"is no protobuf message of {signal.value}")


def answer_to(signal: Signal, encoding: Encoding, rejected: int = 0, why: str = "") -> bytes:
    """The body of the answer to a request that was taken in; `why` says what was left out of it."""
    why = _in_words(why)
    if encoding is Encoding.JSON:
        partial = {"partialSuccess": {_REJECTED[signal]: str(rejected), "errorMessage": why}} if why else {}
        return json.dumps(partial).encode()
    if not why:
        return b""
    # The only field of each response is its partial success, of which these are the first two fields
    counted = b"\x08" + _varint(rejected) if rejected else b""
    return _field(1, counted + _field(2, why.encode()))


def status_of_error(code: int, message: str, encoding: Encoding) -> bytes:
    """A `google.rpc.Status`: a code of gRPC and a message."""
    message = _in_words(message)
    if encoding is Encoding.JSON:
        return json.dumps({"code": code, "message": message}).encode()
    return b"\x08" + _varint(code) + _field(2, message.encode())


def _in_words(text: str) -> str:
    shown = "".join(sign if sign.isprintable() else " " for sign in mask_text(text[: 4 * WORDS]))
    return " ".join(shown.split())[:WORDS]


def _field(number: int, data: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])
