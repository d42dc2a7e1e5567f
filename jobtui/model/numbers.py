"""Numbers in outside text. Nothing here raises: the result is None for anything else, or out of range.

A whole number has at most 64 bits, which every service, file and table can hold. Any other number is finite.
Times are in `model.clock`. `tests/model/test_numbers.py` fails on a bare `int(...)` elsewhere.
"""

import math
import re
from collections.abc import Callable
from typing import overload

LEAST_INT64, MOST_INT64 = -(1 << 63), (1 << 63) - 1
MOST_UNSIGNED = (1 << 64) - 1
"""The largest number without a sign, such as the hash in a journal's cursor."""
_LONGEST = 64
"""Longer texts are no numbers: int() of a million digits takes seconds, and of 5,000 it raises."""


@overload
def whole(text: str | bytes | None) -> int | None: ...
@overload
def whole(text: str | bytes | None, default: int) -> int: ...
def whole(text: str | bytes | None, default: int | None = None) -> int | None:
    """A whole number in ASCII digits, with or without a sign; `default` for anything else."""
    # `isdigit` of text is also true of digits in other scripts and of superscripts
    if not text or len(text) > _LONGEST or not text.isascii():
        return default
    if not text.isdigit() and not (text[1:].isdigit() and text[:1] in ("-", "+", b"-", b"+")):
        return default
    number = int(text)
    return number if LEAST_INT64 <= number <= MOST_INT64 else default


def of_base(text: str | None, base: int) -> int | None:
    """A whole number of up to 64 bits without a sign, in another base, such as 16."""
    if not text or len(text) > _LONGEST or not text.isalnum() or not text.isascii():
        return None
    try:
        number = int(text, base)
    except ValueError:
        return None
    return number if number <= MOST_UNSIGNED else None


def real(text: str | None) -> float | None:
    """A finite number in decimal text, such as `1.5` or `2e-3`; None for anything else."""
    if not text or len(text) > _LONGEST or not text.isascii() or "_" in text:
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def whole_of(value: object) -> int | None:
    """A whole number in a decoded document, also one written as text. A fraction is cut off."""
    if isinstance(value, str):
        return whole(value)
    number = real_of(value)
    if number is None or not LEAST_INT64 <= number <= MOST_INT64:
        return None
    number = value if isinstance(value, int) else int(number)
    return number if LEAST_INT64 <= number <= MOST_INT64 else None


def real_of(value: object) -> float | None:
    """A finite number in a decoded document; None for anything else, also for text."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if isinstance(value, int):
        return float(value) if LEAST_INT64 <= value <= MOST_INT64 else None
    return value if math.isfinite(value) else None


def read_json(text: str | bytes) -> object:
    """A decoded JSON document; numbers out of range are text. Raises ValueError and nothing else."""
    import json  # few commands need it

    try:
        return json.loads(text, parse_int=_or_text(whole), parse_float=_or_text(real), parse_constant=str)
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def _or_text(read: Callable[[str], float | None]) -> Callable[[str], float | str]:
    return lambda text: text if (number := read(text)) is None else number


def counted(count: int, word: str) -> str:
    """A count with its word in the right number: "1 span", "2,000 spans"."""
    return f"{count:,} {word}{'s' * (count != 1)}"


def and_more(count: int, named: int, joint: str = ", ") -> str:
    """How a list ends of which only the first are named: ", and 2 more". Nothing where all are."""
    return f"{joint}and {count - named:,} more" if count > named else ""


_HALF_PAIR = re.compile("[\ud800-\udfff]")


def storable(text: str) -> str:
    """A text that UTF-8 can hold: half pairs, as in JSON and names of files, are replaced."""
    return text if text.isascii() else _HALF_PAIR.sub("\N{REPLACEMENT CHARACTER}", text)
