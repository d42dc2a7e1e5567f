"""The waterfall of a trace as lines of text: those that the screen has, with words for its signs."""

from collections.abc import Iterator, Sequence
from itertools import chain

from jobtui.analysis.traces.axis import Axis
from jobtui.analysis.traces.critical_path import whole_path
from jobtui.analysis.traces.failures import error_spans
from jobtui.analysis.traces.findings import Findings
from jobtui.analysis.traces.layout import (
    Layout,
    LineKey,
    LineKind,
    TraceLine,
    closed_at_first,
    lay_out,
    shown_lines,
)
from jobtui.analysis.traces.services import ServiceMarks
from jobtui.analysis.traces.tree import Tree
from jobtui.model.trace_ids import SpanId
from jobtui.model.traces import Span
from jobtui.model.words import counted
from jobtui.render.span_words import span_time
from jobtui.render.table import Cell, Head, table_lines
from jobtui.render.text import NONE, show
from jobtui.render.trace_bars import bar_of
from jobtui.render.trace_line import (
    HANDLED,
    PASSED_ON,
    ROOT_CAUSE,
    View,
    name_of,
    remarks_on,
    sign_of,
    took_of,
)

INDENT = "  "
BAR_CELLS = 30
WAIT_CELLS = 3
"""Of a stretch in which nothing ran; its length stands in the column of lengths."""
LEVELS, FEWEST_LEVELS = 30, 4
"""Levels that are indented where there is room, and on the narrowest terminal; deeper ones are told."""
CELLS_BESIDE = 80
"""Cells that are no room for levels: those of the other columns, and of a name."""
MOST_ROWS = 1_000
"""Of a trace with more rows those are drawn that matter."""
SIGN_WORDS = {ROOT_CAUSE: "root cause", PASSED_ON: "error", HANDLED: "handled"}
"""What the signs of the screen are called here; of other lines the remarks say as much."""

HEADS = (
    Head("FROM", "right", least=6),
    Head("TOOK", "right", least=6),
    Head("", least=BAR_CELLS, drop=2),
    Head("SERVICE", least=8, drop=3),
    Head("SPAN", least=16),
    Head("NOTE", least=14),
)


def waterfall_lines(found: Findings, cells: int | None, colour: bool, most: int | None) -> Iterator[str]:
    """Its lines, runs folded; of more than `most` those that matter. Without that limit all, also of runs."""
    view = _view(found)
    closed = closed_at_first(view.layout) if most is not None else frozenset[LineKey]()
    rows = shown_lines(view.layout, closed.__contains__)
    if most is not None and len(rows) > most:
        drawn = _that_matter(found, view.layout, rows, most)
        yield f"{len(drawn)} of {len(rows)} rows, those that lead to errors or took the time; --plain has all"
        rows = drawn
    levels = LEVELS if cells is None else min(LEVELS, max(FEWEST_LEVELS, (cells - CELLS_BESIDE) // 2))
    yield from table_lines(HEADS, [_row(view, number, levels) for number in rows], cells, colour)


def _view(found: Findings) -> View:
    tree = found.tree
    axis = Axis(tree.started_at or 0, tree.ended_at or 0, BAR_CELLS, found.waits, WAIT_CELLS)
    return View(tree, lay_out(found), axis, found.failed_at, ServiceMarks().of)


def _that_matter(found: Findings, layout: Layout, rows: Sequence[int], most: int) -> list[int]:
    """Rows of what failed, of waits, of what is open, then of what took longest; each with all above it."""
    row_of: dict[SpanId, int] = {}
    for row, end in zip(rows, (*rows[1:], len(layout.lines)), strict=True):  # with what is folded into it
        own = (line for line in layout.lines[row:end] if line.kind is LineKind.SPAN)
        row_of.update((line.span.span_id, row) for line in own if line.span is not None)
    waits = (row for row in rows if layout.lines[row].kind is LineKind.WAIT)
    path = sorted(whole_path(found.tree), key=lambda segment: segment.from_ns - segment.to_ns)
    kept: set[int] = set()
    for wanted in chain(
        (row_of[span.span_id] for span in _failed(found)),
        waits,
        (row_of[span.span_id] for span in found.tree.spans if span.ended_at is None),
        (row_of[segment.span.span_id] for segment in path),
    ):
        for row in chain((wanted,), layout.above(wanted)):
            if row in kept or len(kept) >= most:
                break
            kept.add(row)
    return sorted(kept)


def _failed(found: Findings) -> Iterator[Span]:
    """What failed, root causes first."""
    yield from (cause.span for cause in found.causes)
    yield from (failure.span for failure in found.failures)
    yield from error_spans(found.tree)


def _row(view: View, number: int, levels: int) -> list[Cell]:
    """A line as cells; it is indented as deep as `levels`, beyond that its level stands before its name."""
    line = view.layout.lines[number]
    name, style = name_of(view, line)
    indent = INDENT * min(line.depth, levels) + (f"[{line.depth}] " if line.depth > levels else "")
    sign = sign_of(view, number, is_closed=False)
    words = [SIGN_WORDS[sign]] if sign in SIGN_WORDS else []
    words += remarks_on(view, number, is_closed=False)
    said = sign[1] or ("dim" if line.run else "warning")
    return [
        Cell(_from(view.tree, line), style if line.kind is LineKind.WAIT else ""),
        Cell(*took_of(line)),
        Cell(bar_of(view, number, is_closed=False).text.rstrip(), style),
        Cell(_services(line)),
        Cell(f"{indent}{name}", style),
        Cell(", ".join(words), said if words else ""),
    ]


def _from(tree: Tree, line: TraceLine) -> str:
    """How long after the beginning of the trace it began."""
    at = line.wait.start if line.wait else line.span.started_at if line.span else None
    if at is None:
        return ""
    return span_time(at - (tree.started_at or 0)) if at else NONE


def _services(line: TraceLine) -> str:
    if line.span is None or line.kind is LineKind.WAIT:
        return ""
    if line.run is not None and line.run.services > 1:
        return counted(line.run.services, "service")
    return show(line.span.service)
