"""One line of a log: its head stepping back, its message in the colour of its level. Masked and safe."""

import re
from collections.abc import Mapping
from typing import NamedTuple

from jobtui.model.pages import Level, LogLine
from jobtui.render.log_tags import Tags
from jobtui.render.spans import Line, Span
from jobtui.render.text import clock_time, fit, show

_SITE = r"[^\s:]+:\d+:[\w<>]+ "
_HEAD = re.compile(
    r"(?:(?P<date>[A-Z][a-z]{2} [ \d]\d |\d{4}-\d\d-\d\d[T ]))?"
    r"(?P<clock>\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)(?:Z|[+-]\d\d:?\d\d)?(?: +|$)"
    rf"(?:\d+ +\d+ (?={_SITE}))?(?P<site>{_SITE})?"
    rf"|(?={_SITE})[^\s:]+\.py:\d+:[\w<>]+ ",
    re.ASCII,
)
"""Time, process, thread and call site, as far as they are there."""
WHOLE_SECONDS = "14:20:31"
CLOCK_CELLS = len(WHOLE_SECONDS) + 1
GUTTER_CELLS = 3
STYLES: Mapping[Level, str] = {Level.ERROR: "error", Level.WARNING: "warning", Level.PLAIN: ""}
BOOKMARK = "◆"
HIDDEN_HIT = "/"
GAP = "╌╌"
UNPROVEN = "±"
"""Before a line that may as well come before the one above it: clocks do not tell."""


class Look(NamedTuple):
    """How lines are shown. `whole` with their heads as they are, else the time of day only.

    `tags` gives the short names of sources where lines of several are mixed; `indents` sets lines without a
    time below the messages of those with one.
    """

    whole: bool = False
    tags: Tags | None = None
    indents: bool = True


def body(line: LogLine, look: Look) -> Line:
    """All that is shown of a line, however wide that is."""
    text = show(line.text)
    head = _HEAD.match(text)
    spans: list[Span] = []
    if not look.whole:
        spans.append(_clock(line, head, look))
    if look.tags is not None:
        spans.append(look.tags.of(line.origin))
    if line.is_gap:
        return (*spans, Span(f"{GAP} {text} {GAP}", STYLES[Level.WARNING]))
    cut = head.end() if head else 0
    if look.whole and cut:
        spans.append(Span(text[:cut], "dim", cut))
    if line.note:
        spans.append(Span(f"[{line.note}] ", "dim"))
    spans.append(Span(text[cut:], STYLES[line.level]))
    return tuple(span for span in spans if span.text)


def _clock(line: LogLine, head: "re.Match[str] | None", look: Look) -> Span:
    clock = head["clock"] if head else None
    if line.stamped and line.at is not None:
        clock, head = clock_time(line.at), None
    elif clock is not None and line.at is not None:
        # In the zone that is wanted; what it says beyond seconds is kept
        clock = clock_time(line.at) + clock[len(WHOLE_SECONDS) :]
    if clock is not None:
        text = fit(clock, max(CLOCK_CELLS, len(clock) + 1))
        return Span(text, "dim", len(text))
    cells = CLOCK_CELLS if look.indents else 0
    return Span(" " * cells, "", cells)


def gutter(line: LogLine, *, bookmarked: bool, hides_hit: bool) -> Line:
    """What stands before the line: a bookmark, the sign of a hit out of sight, or of doubt; and the level."""
    if bookmarked:
        mark = Span(BOOKMARK, "marked", 1)
    elif line.unproven and not hides_hit:
        mark = Span(UNPROVEN, "warning", 1)
    else:
        mark = Span(HIDDEN_HIT if hides_hit else " ", "accent", 1)
    return (mark, Span(line.level.value or " ", STYLES[line.level], 1), Span(" ", "", 1))


NO_GUTTER: Line = (Span(" " * GUTTER_CELLS, "", GUTTER_CELLS),)
