"""JSON read so that one odd byte costs one value, not the document. Pure.

Slower than a strict decoder and wider than JSON: bytes that are not UTF-8, half surrogate pairs, NaN and
infinite numbers and integers of any length are let in, and turned into something that can be stored, compared
and written as JSON again.
"""

import math
import re

DEEPEST = 40
"""Levels of nesting that are kept."""
TOO_DEEP = "(nested too deep)"

_HALF_PAIR = re.compile("[\ud800-\udfff]")


class NotARecord(ValueError):
    """The bytes are no JSON object at all. The text says why."""


def read_document(data: bytes) -> tuple[dict[str, object], list[str]]:
    """The object in `data`, and what had to be changed to read it. Raises NotARecord.

    Numbers that JSON readers could not take (NaN, infinite, over 64 bits) are kept as text, half surrogate
    pairs become U+FFFD, what lies deeper than `DEEPEST` is replaced by a note.
    """
    faults: list[str] = []
    if not data.strip(b"\0 \t\r\n"):
        raise NotARecord("empty" if not data else "nothing but blanks or NULs")
    import json  # few records are odd, and a first paint need not wait for it

    text = _text(data, faults)
    try:
        document = json.loads(text, parse_int=_integer, parse_float=_float, parse_constant=str)
    except RecursionError as error:
        raise NotARecord("not readable: nested too deep") from error
    except ValueError as error:
        raise NotARecord(f"not valid JSON, torn or damaged: {error}") from error
    if not isinstance(document, dict):
        raise NotARecord(f"not a JSON object but {_KINDS.get(type(document), 'a number')}")
    return {_tidy_text(key): _tidy(value, 1) for key, value in document.items()}, faults


_KINDS = {list: "a list", str: "a text", bool: "true or false", type(None): "null"}


def _text(data: bytes, faults: list[str]) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        faults.append(f"byte {error.start} is not UTF-8, such bytes are shown as U+FFFD")
        return data.decode("utf-8-sig", "replace")


def _integer(text: str) -> int | str:
    # The longest 64-bit integer has 20 characters; int() of millions of digits takes minutes, or is refused.
    value = int(text) if len(text) <= 20 else None
    return value if value is not None and -(2**63) <= value < 2**64 else text


def _float(text: str) -> float | str:
    value = float(text)
    return value if math.isfinite(value) else text


def _tidy(value: object, depth: int) -> object:
    if isinstance(value, str):
        return _tidy_text(value)
    if isinstance(value, dict | list) and depth >= DEEPEST:
        return TOO_DEEP
    if isinstance(value, dict):
        return {_tidy_text(key): _tidy(inner, depth + 1) for key, inner in value.items()}
    if isinstance(value, list):
        return [_tidy(inner, depth + 1) for inner in value]
    return value


def _tidy_text(text: str) -> str:
    return text if text.isascii() else _HALF_PAIR.sub("\ufffd", text)
