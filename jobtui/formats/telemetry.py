"""What readers of spans share: numbers and texts as they may be written, and the book of what made no sense.

Every reader gives a `Telemetry`; one bad span costs that span, is counted, and named among the first few.
"""

import json
import math

import msgspec

from jobtui.model.clock import Nanos
from jobtui.model.health import Skip
from jobtui.model.traces import Span, SpanKind, SpanLog, SpanStatus, Telemetry

SKIPS_NAMED = 20
DEEPEST_VALUE = 20
"""Attribute values nested deeper are left out."""
LATEST_NS = (1 << 64) - 1
"""OTLP times are unsigned and have 64 bits."""

KINDS: tuple[SpanKind, ...] = tuple(SpanKind)
"""By their number in OTLP."""
STATUSES: tuple[SpanStatus, ...] = tuple(SpanStatus)

LEVELS: tuple[str, ...] = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
"""Of log records, each for four severity numbers from 1 on."""

Document = dict[str, object]


class Found:
    """What a reader has found so far."""

    def __init__(self, where: str) -> None:
        self._where = where
        self.spans: list[Span] = []
        self.logs: list[SpanLog] = []
        self._skips: list[Skip] = []
        self._skip_count = 0

    def skip(self, where: str, why: str) -> None:
        """Note one piece that made no sense."""
        self._skip_count += 1
        if len(self._skips) < SKIPS_NAMED:
            self._skips.append(Skip(f"{self._where}: {where}" if where else self._where, why))

    @property
    def skip_count(self) -> int:
        """How many pieces made no sense."""
        return self._skip_count

    @property
    def is_empty(self) -> bool:
        """Whether nothing was found, not even something that made no sense."""
        return not (self.spans or self.logs or self._skip_count)

    def telemetry(self) -> Telemetry:
        """All of it."""
        return Telemetry(
            spans=tuple(self.spans),
            logs=tuple(self.logs),
            skipped=tuple(self._skips),
            skip_count=self._skip_count,
        )


PIECE_BYTES = 1 << 16
"""What is larger is decoded a piece at a time: a decoder at work lets no other thread have its turn."""


def decoded(text: bytes) -> object:
    """A JSON document. Raises ValueError.

    What is an object or list within a large one is left as it is written, for `as_dict` and `as_list`: so a
    trace of many spans never stands in memory as a document. What the fast decoder refuses the other one may
    take: halves of characters, NaN, bytes that are no UTF-8.
    """
    try:
        return _in_pieces(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        try:
            return json.loads(text.decode("utf-8", "replace"))
        except RecursionError as error:
            raise ValueError("nested too deep") from error


def _in_pieces(text: bytes | msgspec.Raw) -> object:
    data = memoryview(text)
    if len(data) < PIECE_BYTES:
        return msgspec.json.decode(data)
    first = bytes(data[:100]).lstrip()[:1]
    if first == b"{":
        parts = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
        return {key: _piece(one) for key, one in parts.items()}
    if first == b"[":
        return [_piece(one) for one in msgspec.json.decode(data, type=list[msgspec.Raw])]
    return msgspec.json.decode(data)


def _piece(raw: msgspec.Raw) -> object:
    data = memoryview(raw)
    is_small_container = len(data) < PIECE_BYTES and bytes(data[:1]) in (b"{", b"[")
    return raw if is_small_container else _in_pieces(raw)


def opened(value: object) -> object:
    """What stands in a piece that was left as it is written; None for one that makes no sense."""
    if not isinstance(value, msgspec.Raw):
        return value
    try:
        return decoded(bytes(memoryview(value)))
    except ValueError:
        return None


def as_dict(value: object) -> Document:
    """`value` if it is an object, else an empty one."""
    value = opened(value)
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[object]:
    """`value` if it is a list, else an empty one."""
    value = opened(value)
    return value if isinstance(value, list) else []


def as_text(value: object) -> str:
    """`value` if it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def as_int(value: object) -> int | None:
    """A whole number written as number or text; None when it is none, or has more digits than 64 bits."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if math.isfinite(value) else None
    if isinstance(value, str) and len(value) <= 20 and value.isascii() and value.lstrip("-").isdigit():
        try:
            return int(value)
        except ValueError:  # a minus within
            return None
    return None


def as_nanos(value: object) -> Nanos:
    """A time; 0 when there is none that 64 bits hold."""
    number = as_int(value)
    return Nanos(number) if number is not None and 0 <= number <= LATEST_NS else Nanos(0)


def kind_of(value: object) -> SpanKind:
    """The kind of a span by its number, or its name as `SPAN_KIND_SERVER`."""
    if isinstance(value, str) and not value.isdigit():
        name = value.rpartition("_")[2].lower()
        return SpanKind(name) if name in _KIND_NAMES else SpanKind.UNSPECIFIED
    number = as_int(value) or 0
    return KINDS[number] if 0 <= number < len(KINDS) else SpanKind.UNSPECIFIED


_KIND_NAMES = frozenset(SpanKind)


def status_of(value: object) -> SpanStatus:
    """The status of a span by its number, or its name as `STATUS_CODE_ERROR`."""
    if isinstance(value, str) and not value.isdigit():
        name = value.rpartition("_")[2].lower()
        return SpanStatus(name) if name in _STATUS_NAMES else SpanStatus.UNSET
    number = as_int(value) or 0
    return STATUSES[number] if 0 <= number < len(STATUSES) else SpanStatus.UNSET


_STATUS_NAMES = frozenset(SpanStatus)


def level_of(number: int) -> str:
    """The level of a log record by its severity number; empty when that says none."""
    return LEVELS[(number - 1) // 4] if 1 <= number <= 4 * len(LEVELS) else ""
