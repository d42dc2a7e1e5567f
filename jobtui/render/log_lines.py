"""Lines of logs: their tags, the line itself, what a search found in it, and where lines are in time."""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from jobtui.analysis.log_shapes import LINE_HEAD, Facet, FacetCount
from jobtui.analysis.timeline import BAD, JobLine
from jobtui.model.clock import DAY, MINUTE, Nanos
from jobtui.model.health import SourceHealth
from jobtui.model.ops import Certainty, Component
from jobtui.model.pages import Level, LogLine, Overview, Query, Stretch
from jobtui.model.secrets import mask_line
from jobtui.render.chart import BARS
from jobtui.render.columns import Cells, TableColumn, count_column, fixed
from jobtui.render.sources import labels
from jobtui.render.spans import Line, Piece, fitting, padded, width_of
from jobtui.render.text import clock_time, date_time, fit, safe, show, telling, width

TAG_STYLES = tuple(f"source.{number}" for number in range(5))
"""Styles of sources, in their order; then again from the first."""
_PREFIX = "sirepo_job_"
_CONTAINER = re.compile(r"srj-(?P<kind>[sp])-(?P<user>\w{1,4})\w*(?P<instance>\.\w+)?", re.ASCII)


def stream_label(name: str) -> str:
    """A stream of a journal in few cells: `supervisor@v3`, `p-VUlh@v7`; of a path its end; safe to show."""
    stream, at, host = name.rpartition("@")
    if not at or "/" in name:
        return show("/".join(name.split("/")[-3:]))
    if found := _CONTAINER.fullmatch(stream):
        return show(f"{found['kind']}-{found['user']}{found['instance'] or ''}@{host}")
    return show(f"{stream.removeprefix(_PREFIX)}@{host}")


MARKED_CELLS = 8
"""From this width on a tag shows both ends of a longer label."""


class Tags:
    """The tags of sources: `labels` for those known by now, `most` cells wide at most."""

    def __init__(self, labels: Mapping[str, str], most: int) -> None:
        self._labels = dict(labels)
        widest = max((width(label) for label in labels.values()), default=most)
        self._cells = min(most, widest)
        self._tags: dict[str, Piece] = {}
        self._styles: dict[str, str] = {}
        for origin in labels:  # so that a source keeps its style, whichever is seen first
            self.of(origin)

    def of(self, origin: str) -> Piece:
        """The tag of a source, with a blank after it. An unknown source gets one, too."""
        tag = self._tags.get(origin)
        if tag is None:
            label = self._labels.get(origin) or stream_label(origin)
            # With few cells for letters a cut is not marked
            short = telling(label, self._cells) if self._cells >= MARKED_CELLS else label
            text = fit(short, self._cells, ellipsis="") + " "
            style = TAG_STYLES[len(self._styles) % len(TAG_STYLES)]
            tag = self._tags[origin] = Piece(text, self._styles.setdefault(label, style))
        return tag


WHOLE_SECONDS = "14:20:31"
CLOCK_CELLS = len(WHOLE_SECONDS) + 1
GUTTER_CELLS = 3
LEVEL_STYLES: Mapping[Level, str] = {Level.ERROR: "error", Level.WARNING: "warning", Level.PLAIN: ""}
GAP = "╌╌"


class LineLook(NamedTuple):
    """How lines are shown. `whole` with their heads as they are, else the time of day only.

    `tags` gives the short names of sources where lines of several are mixed; `indents` sets lines without a
    time below the messages of those with one.
    """

    whole: bool = False
    tags: Tags | None = None
    indents: bool = True


def body(line: LogLine, look: LineLook) -> Line:
    text = safe(mask_line(line.text))
    head = LINE_HEAD.match(text)
    spans: list[Piece] = []
    if not look.whole:
        spans.append(_clock(line, head, look))
    if look.tags is not None:
        spans.append(look.tags.of(line.origin))
    if line.is_gap:
        return (*spans, Piece(f"{GAP} {text} {GAP}", LEVEL_STYLES[Level.WARNING]))
    cut = head.end() if head else 0
    if look.whole and cut:
        spans.append(Piece(text[:cut], "dim", cut))
    if line.note:
        spans.append(Piece(f"[{line.note}] ", "dim"))
    if line.folded:
        spans.append(Piece(f"+{line.folded:,} ", "accent"))
    spans.append(Piece(text[cut:], LEVEL_STYLES[line.level]))
    return tuple(span for span in spans if span.text)


def has_clock(line: LogLine) -> bool:
    """Whether a time is shown before it."""
    head = LINE_HEAD.match(line.text)
    return (line.stamped and line.at is not None) or (head is not None and head["clock"] is not None)


def _clock(line: LogLine, head: "re.Match[str] | None", look: LineLook) -> Piece:
    clock = head["clock"] if head else None
    if line.stamped and line.at is not None:
        clock, head = clock_time(line.at), None
    elif clock is not None and line.at is not None:
        # In the zone of the reader; fractions of seconds are kept
        clock = clock_time(line.at) + clock[len(WHOLE_SECONDS) :]
    if clock is not None:
        text = fit(clock, max(CLOCK_CELLS, len(clock) + 1))
        return Piece(text, "dim", len(text))
    cells = CLOCK_CELLS if look.indents else 0
    return Piece(" " * cells, "", cells)


def gutter(line: LogLine, *, bookmarked: bool, hides_hit: bool) -> Line:
    """The signs before the line: for a bookmark, a hit that is not visible, or a doubt; and the level."""
    if bookmarked:
        mark = Piece("◆", "marked", 1)
    elif line.unproven and not hides_hit:
        mark = Piece("±", "warning", 1)  # it may belong before the one above it: clocks do not tell
    else:
        mark = Piece("/" if hides_hit else " ", "accent", 1)
    return (mark, Piece(line.level.value or " ", LEVEL_STYLES[line.level], 1), Piece(" ", "", 1))


NO_GUTTER: Line = (Piece(" " * GUTTER_CELLS, "", GUTTER_CELLS),)

OP_CELLS = 5
LEAST_TEXT_CELLS = 24
MOST_SHOWN = 2_000
"""How many characters of a line are used; no screen is wider."""


def tags(lines: Iterable[JobLine], sources: Sequence[SourceHealth]) -> Mapping[str, str]:
    short = {source.name: label for source, label in zip(sources, labels(sources), strict=True)}
    return {
        line.source: Component.SPAN if line.component is Component.SPAN
        else short.get(line.source) or show(line.source).rstrip("/").rsplit("/", 1)[-1]
        for line in lines
    }  # fmt: skip


def job_line(line: JobLine, tags: Tags, cells: int) -> Line:
    """The line, without its op if there is little room."""
    tag = tags.of(line.source)
    head = CLOCK_CELLS + width(tag.text)
    ops = OP_CELLS if cells >= head + OP_CELLS + LEAST_TEXT_CELLS else 0
    room = max(1, cells - 1 - head - ops)
    text = show(mask_line(line.text[:MOST_SHOWN]))
    sure = line.certainty is not Certainty.ADJACENT
    spans = (
        Piece(" ", "", 1),
        Piece(fit(clock_time(line.at), CLOCK_CELLS), "dim", CLOCK_CELLS),
        tag,
        Piece(fit(show(line.op.op) if line.op else "", ops), "dim", ops),
        Piece(fit(text, room), _style(line) if sure else "dim", room),
    )
    return fitting(spans, cells)


def _style(line: JobLine) -> str:
    if line.level == "warning":
        return "warning"
    is_bad = line.level in ("error", "critical") or BAD.search(line.text[:MOST_SHOWN])
    return "error" if is_bad else ""


def facet_value(facet: Facet) -> str:
    """A value, safe to show."""
    return stream_label(facet.value) if facet.field == "log" else show(mask_line(facet.value))


def facet_words(facet: Facet) -> str:
    return f"{facet.field}:{facet_value(facet)}"


BAR_CELLS = 12
FACET_COLUMNS: tuple[TableColumn[FacetCount, int], ...] = (
    count_column("count", "RECORDS", lambda one: one.records, fixed(9), 90),
    TableColumn("share", "", lambda one, most: "▇" * max(1, round(BAR_CELLS * one.records / most)),
                fixed(BAR_CELLS), 50, style=lambda one, most: "accent"),
    TableColumn("field", "FIELD", lambda one, most: show(one.facet.field), Cells(6, 10, 21), 80,
                style=lambda one, most: "dim"),
    TableColumn("value", "VALUE", lambda one, most: facet_value(one.facet), Cells(12, 40, 10_000), 100,
                keeps_ends=True),
)  # fmt: skip

Ranges = list[tuple[int, int]]
Finder = Callable[[str], Ranges]

MARKED = 100
"""Positions marked in one line at most."""
_REPEATS = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|(?P<group>\)[*+?{])|(?P<repeat>[*+?{])|(?P<back>\(\?(?!:))")
_LIMITS = (16_384, 2_000, 250)
"""How much of a line is searched, by the number of repeats in the expression."""

HIT = "hit"


def finder(query: Query) -> Finder | None:
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
    """How much of a line the expression is tried on, None for one that may take forever."""
    if re.search(r"\\\d", pattern):
        return None
    repeats = 0
    for found in _REPEATS.finditer(pattern):
        if found["group"] or found["back"]:
            return None
        repeats += found["repeat"] is not None
    return _LIMITS[repeats] if repeats < len(_LIMITS) else None


def marked(line: Line, ranges: Ranges, style: str = HIT) -> Line:
    if not ranges:
        return line
    spans: list[Piece] = []
    at = 0
    for span in line:
        spans += _split(span, at, ranges, style)
        at += len(span.text)
    return tuple(spans)


def _split(span: Piece, at: int, ranges: Ranges, style: str) -> list[Piece]:
    parts: list[Piece] = []
    done = 0
    for start, stop in ranges:
        begin, end = max(0, start - at), min(len(span.text), stop - at)
        if begin >= end:
            continue
        if begin > done:
            parts.append(Piece(span.text[done:begin], span.style))
        parts.append(Piece(span.text[begin:end], f"{span.style} {style}".strip()))
        done = end
    if not parts:
        return [span]
    if done < len(span.text):
        parts.append(Piece(span.text[done:], span.style))
    return parts


FEWEST_BARS = 8
SMALLEST = 20
"""Cells below which there are no bars."""


class Histogram:
    """The bars of one overview at one width, computed once; only the reader's position moves."""

    def __init__(self, overview: Overview, cells: int) -> None:
        timed = [stretch for stretch in overview.stretches if stretch.at is not None]
        self._cells = cells
        more = "" if overview.complete else "+"
        errors = Piece(f"errors {overview.errors:,}{more}", "error" if overview.errors else "dim")
        self._words: Line = (errors, Piece(f" of {overview.lines:,}{more} lines", "dim"))
        times = [at for at in (*(stretch.at for stretch in timed), overview.until) if at is not None]
        first, last = min(times, default=Nanos(0)), max(times, default=Nanos(0))
        self._begin, self._end, count = _frame(first, last, len(timed), cells - width_of(self._words))
        self._bars: list[Piece] = []
        self._positions = [stretch.position for stretch in timed]
        if count >= FEWEST_BARS:
            cells_ns = max(1, last - first)
            since = (stretch.at - first for stretch in timed if stretch.at is not None)
            self._of_position = [min(count - 1, passed * count // cells_ns) for passed in since]
            self._bars = _bars(timed, self._of_position, count)

    def line(self, position: int | None) -> Line:
        bars = list(self._bars)
        if position is not None and bars:
            here = self._of_position[max(0, bisect_right(self._positions, position) - 1)]
            bars[here] = bars[here]._replace(style=f"{bars[here].style} cursor")
        begin = (Piece(f" {self._begin} " if self._begin else " ", "dim"),)
        left = (*begin, *bars, Piece(" " if bars else "", "", len(bars[:1])), *self._words)
        tail = f" {self._end} " if bars and self._end else ""
        missing = self._cells - width_of(left) - len(tail) - 1
        if missing < 0:
            return padded(left, self._cells)
        return (*left, Piece(" "), Piece("─" * missing, "rule", missing), Piece(tail, "dim", len(tail)))


def _frame(first: Nanos, last: Nanos, stretches: int, cells: int) -> tuple[str, str, int]:
    """The times at both ends, if there is room, and how many bars are between them."""
    if stretches < 2 or cells < SMALLEST:
        return "", "", 0
    begin, end = _time(first, last), _time(last, first)
    most = 3 * stretches
    bars = min(cells - len(begin) - len(end) - 6, most)
    return (begin, end, bars) if bars >= FEWEST_BARS else ("", "", min(cells - 3, most))


def _time(at: Nanos, other: Nanos) -> str:
    """A time of day; with its date where the other one is not of the same day."""
    if at // DAY == other // DAY:
        return clock_time(at)[:5] if abs(at - other) > 2 * MINUTE else clock_time(at)
    return date_time(at)[5:16]


def _bars(timed: Sequence[Stretch], of_place: Sequence[int], count: int) -> list[Piece]:
    """The bars: the lines of a stretch are spread evenly up to the beginning of the next one."""
    lines, errors = [0.0] * count, [0] * count
    for stretch, begin, until in zip(timed, of_place, [*of_place[1:], count], strict=True):
        end = max(begin, until - 1)
        for bar in range(begin, end + 1):
            lines[bar] += stretch.lines / (end - begin + 1)
        errors[begin] += stretch.errors
    most = max(lines) or 1.0
    return [
        Piece(BARS[max(1, round(8 * value / most))] if value > 0 else " ", "error" if bad else "dim", 1)
        for value, bad in zip(lines, errors, strict=True)
    ]
