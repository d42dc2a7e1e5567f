"""JSON of servers and files that may hold anything: decoded in pieces, one bad piece costs that piece.

The work is at most in proportion to the text: numbers and nesting have limits.
"""

import re

import msgspec

from jobtui.model.clock import LATEST_S, SECOND, Nanos
from jobtui.model.numbers import read_json, whole_of

Document = dict[str, object]

PIECE_BYTES = 1 << 16
"""Larger texts are decoded piece by piece: no other thread runs while a decoder works."""


def decoded(text: bytes) -> object:
    """A JSON document. Raises ValueError.

    Objects and lists within a large one stay as they are written, for `as_dict` and `as_list`: so a trace of
    many spans is never in memory as a document. What the strict decoder refuses is repaired first.
    """
    try:
        return _in_pieces(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        text = mended(text)
    try:
        return _in_pieces(text)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    except msgspec.DecodeError:
        return read_json(text)


_ODD = re.compile(rb'"(?:[^"\\]|\\.)*+"?+|-?(?:NaN|Infinity)\b', re.DOTALL)
_ESCAPE = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\.",
    re.DOTALL,
)
_HALF = 6
"""The length of an escaped half of a character; a whole pair is twice as long."""


def mended(text: bytes) -> bytes:
    """JSON for a strict decoder: without invalid UTF-8, halves of characters, or NaN."""
    text = text.decode("utf-8", "replace").encode()
    if b"\\u" in text:
        text = _ESCAPE.sub(lambda found: b"\\ufffd" if len(found[0]) == _HALF else found[0], text)
    if b"NaN" in text or b"Infinity" in text:
        text = _ODD.sub(lambda found: found[0] if found[0][:1] == b'"' else b"null", text)
    return text


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
    """The value of a piece that was left as it is written; None if it cannot be read."""
    if not isinstance(value, msgspec.Raw):
        return value
    try:
        return decoded(bytes(memoryview(value)))
    except ValueError:
        return None


def whole(value: object) -> object:
    """A decoded value without pieces that are left as they are written; None where it is nested too deep."""
    try:
        return _whole(value)
    except RecursionError:
        return None


def _whole(value: object) -> object:
    if isinstance(value, dict):
        return {key: _whole(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_whole(one) for one in value]
    return opened(value)


def as_dict(value: object) -> Document:
    value = opened(value)
    return value if isinstance(value, dict) else {}


def as_list(value: object) -> list[object]:
    value = opened(value)
    return value if isinstance(value, list) else []


def as_text(value: object) -> str:
    return value if isinstance(value, str) else ""


def as_nanos(value: object) -> Nanos:
    """A time; 0 if there is none, or it is not a time."""
    number = whole_of(value)
    return Nanos(number) if number is not None and 0 <= number < LATEST_S * SECOND else Nanos(0)
