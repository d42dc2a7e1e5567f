"""The waterfall on the screen: sign, service, name in its place of the tree, bar on an axis, length."""

from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import NamedTuple

from jobtui.analysis.traces.layout import LineKind, TraceLine
from jobtui.render.span_words import span_time
from jobtui.render.spans import Line, padded, width_of
from jobtui.render.spans import Span as Text
from jobtui.render.text import NONE, fit, show, width
from jobtui.render.trace_bars import bar_of
from jobtui.render.trace_line import (
    AWAITED,
    View,
    name_of,
    remarks_on,
    service_style,
    sign_of,
    took_of,
)

OPENED, CLOSED = "▾", "▸"
WAIT_CELLS = 9
"""Of a squeezed stretch, in which its length is written."""
TOOK_CELLS = 8
BAR_FROM = 60
"""From so many cells on there is room for bars."""
NAME_SHARE, LEAST_NAME, MOST_NAME = 0.42, 26, 64
TICK_CELLS = 10
LEGEND_GAP = "  "
LEAST_LEGEND = 2 + len(LEGEND_GAP)
"""Cells of a service in the legend beside its name: its letter and a blank, and those to the next one."""


class Columns(NamedTuple):
    """Cells of the name with its signs, of the bar (0: there is none), and of the length."""

    name: int
    bar: int
    took: int


def columns_in(cells: int) -> Columns:
    """The columns of a waterfall of so many cells."""
    took = min(TOOK_CELLS, max(0, cells - 12))
    if cells < BAR_FROM:
        return Columns(cells - took, 0, took)
    name = max(LEAST_NAME, min(MOST_NAME, int(cells * NAME_SHARE)))
    return Columns(name, cells - name - took, took)


def heading_line(view: View, columns: Columns) -> Line:
    """The services with their letters, and the ruler."""
    name, bar, took = columns
    legend = _legend(view, name - 1)
    line = padded((Text(" ", "heading", 1), *legend), name, "heading")
    return (*line, *_ruler(view, bar), Text(fit("took", took, align="right"), "heading", took))


def _legend(view: View, cells: int) -> list[Text]:
    """As many services as there is room for; without what all names begin with where that makes room."""
    services = view.tree.services[: cells // LEAST_LEGEND]
    names = [show(service) or NONE for service in services]
    if sum(map(width, names)) + LEAST_LEGEND * len(names) > cells + len(LEGEND_GAP):
        shared = _shared_start(names)
        names = [name[shared:] for name in names]
    parts: list[Text] = []
    for service, name in zip(services, names, strict=True):
        gap, words = LEGEND_GAP if parts else "", f" {name}"
        if width_of(parts) + width(gap) + 1 + width(words) > cells:
            break
        mark = view.mark_of(service)
        parts += [Text(gap, "heading"), Text(mark.letter, service_style(mark), 1), Text(words, "heading")]
    return parts


def _shared_start(names: Sequence[str]) -> int:
    """How many characters several names begin with alike, up to the end of a word; 0 if one is no longer."""
    if len(names) < 2:
        return 0
    alike = takewhile(lambda pair: pair[0] == pair[1], zip(min(names), max(names), strict=False))
    end = max((at + 1 for at, (char, _) in enumerate(alike) if not char.isalnum()), default=0)
    return end if all(len(name) > end for name in names) else 0


def _ruler(view: View, bar: int) -> Iterable[Text]:
    cells = [" "] * bar
    for squeezed in view.axis.squeezed:
        words = f"{AWAITED}{span_time(squeezed.duration_ns)}{AWAITED}"
        _write(cells, squeezed.first, f"{words:{AWAITED}^{squeezed.cells}}"[: squeezed.cells])
    if cells:
        for tick in view.axis.ticks(view.tree.started_at or 0, TICK_CELLS):
            sign = "+" if tick.origin_ns else ""
            _write(cells, tick.cell, f"{sign}{span_time(tick.after_ns)}")
    text = "".join(cells)
    return (Text(text, "heading", len(text)),) if text else ()


def _write(cells: list[str], at: int, words: str) -> None:
    """Write words where nothing stands yet, with a blank before and behind them."""
    end = at + len(words)
    if end <= len(cells) and all(cell == " " for cell in cells[max(0, at - 1) : end + 1]):
        cells[at:end] = words


def trace_line(view: View, columns: Columns, index: int, *, is_closed: bool) -> Line:
    """A line of the waterfall."""
    name = _name_part(view, columns, index, is_closed=is_closed)
    bar = bar_of(view, index, is_closed=is_closed).parts() if columns.bar else ()
    took, style = took_of(view.layout.lines[index])
    return (*name, *bar, Text(fit(took, columns.took, align="right"), style, columns.took))


def _name_part(view: View, columns: Columns, index: int, *, is_closed: bool) -> Line:
    line, cells = view.layout.lines[index], columns.name
    sign, sign_style = sign_of(view, index, is_closed=is_closed)
    step = 2 if columns.bar else 1
    most = max(0, cells - 20) // step
    deep = f"[{line.depth}] " if line.depth > most else ""
    indent = " " * (step * min(line.depth, most)) + deep
    fold = ("" if not view.layout.has_below(index) else CLOSED if is_closed else OPENED).ljust(2)
    mark, mark_style = _service(view, line)
    head = (Text(sign, sign_style, 1), Text(mark, mark_style, 1), Text(f" {indent}{fold}", "dim"))
    words, style = name_of(view, line)
    extra = "".join(f"  {remark}" for remark in remarks_on(view, index, is_closed=is_closed))
    room = max(1, cells - width_of(head) - 1)
    extra_cells = min(width(extra), max(0, room - 8))
    name = fit(words, min(width(words), max(1, room - extra_cells)))
    body = (Text(name, style), Text(fit(extra, extra_cells), "warning" if "✗" in extra else "dim"))
    kept = padded((*head, *body), cells)
    return kept if width_of(kept) == cells else (Text(fit("".join(t.text for t in kept), cells), style),)


def _service(view: View, line: TraceLine) -> tuple[str, str]:
    if line.span is None or line.kind is LineKind.WAIT:
        return " ", ""
    mark = view.mark_of(line.span.service)
    if line.run is not None and line.run.services > 1:
        return "*", "dim"
    return mark.letter, service_style(mark)
