"""Ids of traces and spans, and how they are found in what somebody pasted.

A TRACEPARENT is `00-<32 hex trace id>-<16 hex span id>-<2 hex flags>` (https://www.w3.org/TR/trace-context/);
ids of zeros are invalid, version ff too, other versions are read by their first four fields. Loose forms
found in logs: without the version, upper case, a bare trace id, an address ending in `/trace/<id>`. An id
that is too short or too long is read as well as can be, and what was done is said.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple, NewType

TraceId = NewType("TraceId", str)
"""32 lower-case hex digits."""
SpanId = NewType("SpanId", str)
"""16 lower-case hex digits."""

TRACE_DIGITS = 32
SPAN_DIGITS = 16
LONGEST = 40
"""More hex digits than this are no mistyped id."""
SEARCHED = 64 << 10
"""Characters of a pasted text that are looked at."""

_PARENT = re.compile(
    rf"(?<![\w-])(?:(?P<version>[0-9a-f]{{2}})-)?(?P<trace>[0-9a-f]{{24,{LONGEST}}})"
    rf"-(?P<span>[0-9a-f]{{12,20}})-(?P<flags>[0-9a-f]{{2}})(?!\w)",
    re.ASCII | re.IGNORECASE,
)
_ADDRESS = re.compile(
    rf"://\S*?/traces?/(?P<trace>[0-9a-f]{{1,{LONGEST}}})(?![\w-])", re.ASCII | re.IGNORECASE
)
_LABELLED = re.compile(
    rf"(?<![a-z0-9])trace[ _.-]?id\b\W{{0,10}}(?P<trace>[0-9a-f]{{8,{LONGEST}}})(?![\w-])",
    re.ASCII | re.IGNORECASE,
)
_BARE = re.compile(rf"(?<![\w-])(?P<trace>[0-9a-f]{{{TRACE_DIGITS}}})(?![\w-])", re.ASCII | re.IGNORECASE)
_ALONE = re.compile(rf"\s*(?P<trace>[0-9a-f]{{1,{LONGEST}}})\s*", re.ASCII | re.IGNORECASE)


class TraceRef(NamedTuple):
    """A trace that a text names, and the span that was to be the parent of what it was handed to.

    `notes` say in what the text was not as it should be. `others` are ids that may be meant instead.
    """

    trace_id: TraceId
    span_id: SpanId | None = None
    notes: tuple[str, ...] = ()
    others: tuple[TraceId, ...] = ()


def find_trace(text: str) -> TraceRef | None:
    """The trace that a text names: an id, a TRACEPARENT, an address, or a line which holds one of these.

    None when it names none. When it names several, the first one of the surest form, which is said.
    """
    text = text[:SEARCHED]
    if alone := _ALONE.fullmatch(text):
        return _read(alone)
    for pattern in (_PARENT, _ADDRESS, _LABELLED, _BARE):
        found = list(_valid(pattern, text))
        if not found:
            continue
        different = {ref.trace_id for ref in found}
        first = found[0]
        if len(different) == 1:
            return first
        note = f"{len(different)} traces are named, this is the first"
        return first._replace(notes=(*first.notes, note))
    return None


def _valid(pattern: re.Pattern[str], text: str) -> Iterator[TraceRef]:
    for match in pattern.finditer(text):
        if (ref := _read(match)) is not None:
            yield ref


def _read(match: re.Match[str]) -> TraceRef | None:
    """What a match says; None for ids of zeros and the version that is none."""
    parts = match.groupdict()
    digits = parts["trace"].lower()
    if not digits.strip("0") or (parts.get("version") or "").lower() == "ff":
        return None
    notes: list[str] = []
    trace_id, others = _fitted(digits, notes)
    return TraceRef(trace_id, _span_id(parts.get("span"), notes), tuple(notes), others)


def _fitted(digits: str, notes: list[str]) -> tuple[TraceId, tuple[TraceId, ...]]:
    surplus = len(digits) - TRACE_DIGITS
    if surplus < 0:
        notes.append(f"the trace id has {len(digits)} digits of {TRACE_DIGITS}: zeros were put before it")
        return TraceId(digits.zfill(TRACE_DIGITS)), ()
    if surplus == 0:
        return TraceId(digits), ()
    notes.append(f"the trace id has {len(digits)} digits, {surplus} too many: any {TRACE_DIGITS} of them fit")
    fits = [TraceId(digits[at : at + TRACE_DIGITS]) for at in range(surplus + 1)]
    return fits[0], tuple(fits[1:])


def _span_id(digits: str | None, notes: list[str]) -> SpanId | None:
    """The span that a TRACEPARENT names; one of another length is no span, and this is said."""
    if digits is None or not digits.strip("0"):
        return None
    if len(digits) != SPAN_DIGITS:
        notes.append(f"the span id has {len(digits)} digits of {SPAN_DIGITS}: it is left out")
        return None
    return SpanId(digits.lower())


def trace_id_of_hex(text: str) -> TraceId | None:
    """The trace id that a document writes in hex, with the zeros that Jaeger leaves out; None for none."""
    return TraceId(digits) if (digits := _hex(text, TRACE_DIGITS)) else None


def span_id_of_hex(text: str) -> SpanId | None:
    """The span id that a document writes in hex, with the zeros that Jaeger leaves out; None for none."""
    return SpanId(digits) if (digits := _hex(text, SPAN_DIGITS)) else None


_HEX = re.compile(r"[0-9a-f]+", re.ASCII)


def _hex(text: str, digits: int) -> str | None:
    low = text.lower()
    if len(low) > digits or not _HEX.fullmatch(low) or not low.strip("0"):
        return None
    return low.zfill(digits)
