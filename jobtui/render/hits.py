"""Where in a shown line stands what is searched for.

Only expressions that cannot take long are tried here, where keys wait; where others were found is not marked.
"""

import re
from collections.abc import Callable
from itertools import islice

from jobtui.model.pages import Query
from jobtui.render.spans import Line, Span

Ranges = list[tuple[int, int]]
Finder = Callable[[str], Ranges]

MARKED = 100
"""Places marked in one line at most."""
_REPEATS = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|(?P<group>\)[*+?{])|(?P<repeat>[*+?{])|(?P<back>\(\?(?!:))")
_LIMITS = (16_384, 2_000, 250)
"""How much of a line is looked at, by the number of repeats in the expression."""

HIT = "hit"
"""The style of what was found."""


def finder(query: Query) -> Finder | None:
    """What finds the query in a line; None when only another process can tell."""
    flags = re.IGNORECASE if query.ignores_case else 0
    limit = _limit(query.text) if query.is_regex else _LIMITS[0]
    if limit is None:
        return None
    try:
        pattern = re.compile(query.text if query.is_regex else re.escape(query.text), flags)
    except (re.error, OverflowError, RecursionError):
        return None
    return lambda text: [
        found.span()
        for found in islice(pattern.finditer(text, 0, limit), MARKED)
        if found.end() > found.start()
    ]


def _limit(pattern: str) -> int | None:
    """How much of a line the expression may be tried on, None for those that may take for ever."""
    if re.search(r"\\\d", pattern):
        return None
    repeats = 0
    for found in _REPEATS.finditer(pattern):
        if found["group"] or found["back"]:
            return None
        repeats += found["repeat"] is not None
    return _LIMITS[repeats] if repeats < len(_LIMITS) else None


def marked(line: Line, ranges: Ranges, style: str = HIT) -> Line:
    """The line with one more style on these characters of its whole text."""
    if not ranges:
        return line
    spans: list[Span] = []
    at = 0
    for span in line:
        spans += _split(span, at, ranges, style)
        at += len(span.text)
    return tuple(spans)


def _split(span: Span, at: int, ranges: Ranges, style: str) -> list[Span]:
    parts: list[Span] = []
    done = 0
    for start, stop in ranges:
        begin, end = max(0, start - at), min(len(span.text), stop - at)
        if begin >= end:
            continue
        if begin > done:
            parts.append(Span(span.text[done:begin], span.style))
        parts.append(Span(span.text[begin:end], f"{span.style} {style}".strip()))
        done = end
    if not parts:
        return [span]
    if done < len(span.text):
        parts.append(Span(span.text[done:], span.style))
    return parts
