"""Lines of a waterfall: sign, service, name in its place of the tree, bar at its place in time, length."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby, takewhile
from typing import NamedTuple

from jobtui.analysis.traces.axis import Axis
from jobtui.analysis.traces.critical_path import Segment
from jobtui.analysis.traces.failures import EXCEPTION as EXCEPTION_EVENT
from jobtui.analysis.traces.failures import RootCause
from jobtui.analysis.traces.layout import Layout, LineKind, TraceLine
from jobtui.analysis.traces.runs import Run
from jobtui.analysis.traces.services import ServiceMark
from jobtui.analysis.traces.tree import Tree, end_of, flags_of_span
from jobtui.model.trace_ids import SpanId
from jobtui.model.traces import Span
from jobtui.render.spans import Line, padded, width_of
from jobtui.render.spans import Span as Text
from jobtui.render.text import NONE, fit, show, width
from jobtui.render.trace_view import FLAG_WORDS, span_time

ROOT_CAUSE, PASSED_ON, HANDLED = ("✗", "error"), ("↑", "error"), ("!", "warning")
"""Sign and style: where it failed, what an error only passed through, an error that was handled."""
HIDDEN_ERROR, OPEN_SPAN, NOT_RECEIVED = ("✗", "warning"), ("●", "good"), ("◌", "warning")
"""The same of what is folded over an error, of what has not ended, of a parent that did not come."""
NO_SIGN = (" ", "")
FULL, LEFT, RIGHT, TICK = "━", "╸", "╺", "│"
THIN, AWAITED = "─", "┄"
SQUEEZED, EXCEPTION = "┊", "✗"
EARLIER, LATER = "‹", "›"
OPENED, CLOSED = "▾", "▸"
COLOURS = 6
"""Styles `service.0` and on."""
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


Path = Mapping[SpanId, Sequence[Segment]]


class View(NamedTuple):
    """What a line is drawn by. `path` is None unless the critical path is marked, with the segments by span.

    `passes` tells, where there is a filter, which spans pass.
    """

    tree: Tree
    layout: Layout
    axis: Axis
    columns: Columns
    causes: Mapping[SpanId, RootCause]
    mark_of: Callable[[str], ServiceMark]
    path: Path | None = None
    passes: Callable[[Span], bool] | None = None


def heading_line(view: View) -> Line:
    """The services with their letters, and the ruler."""
    name, _, took = view.columns
    legend = _legend(view, name - 1)
    line = padded((Text(" ", "heading", 1), *legend), name, "heading")
    return (*line, *_ruler(view), Text(fit("took", took, align="right"), "heading", took))


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


def service_style(mark: ServiceMark) -> str:
    """The style of a service, which is never that of an error."""
    return f"service.{mark.number % COLOURS}"


def _ruler(view: View) -> Iterable[Text]:
    cells = [" "] * view.columns.bar
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


def trace_line(view: View, index: int, *, is_closed: bool) -> Line:
    """A line of the waterfall."""
    line = view.layout.lines[index]
    name = _name_part(view, index, line, is_closed=is_closed)
    bar = _bar_part(view, index, line, is_closed=is_closed) if view.columns.bar else ()
    took, style = _took(line)
    cells = view.columns.took
    return (*name, *bar, Text(fit(took, cells, align="right"), style, cells))


def _took(line: TraceLine) -> tuple[str, str]:
    match line.kind:
        case LineKind.WAIT if line.wait is not None:
            return span_time(line.wait.duration_ns), "dim"
        case LineKind.RUN if line.run is not None:
            return span_time(line.run.total_ns), "dim"
        case LineKind.SPAN if line.span is not None:
            return ("open", "good") if line.span.ended_at is None else (span_time(line.span.duration_ns), "")
    return "", "dim"


def sign_of(view: View, index: int, *, is_closed: bool) -> tuple[str, str]:
    """The sign of a line and its style: what there is to look at."""
    line = view.layout.lines[index]
    span = line.span if line.kind is LineKind.SPAN else None
    if line.kind is LineKind.MISSING:
        return NOT_RECEIVED
    if span is not None and span.is_error:
        cause = view.causes.get(span.span_id)
        return PASSED_ON if cause is None else HANDLED if cause.is_handled else ROOT_CAUSE
    if is_closed and view.layout.errors[index]:
        return HIDDEN_ERROR
    return OPEN_SPAN if span is not None and span.ended_at is None else NO_SIGN


def _name_part(view: View, index: int, line: TraceLine, *, is_closed: bool) -> Line:
    cells = view.columns.name
    sign, sign_style = sign_of(view, index, is_closed=is_closed)
    is_wide = view.columns.bar > 0
    step = 2 if is_wide else 1
    most = max(0, cells - 20) // step
    deep = f"[{line.depth}] " if line.depth > most else ""
    indent = " " * (step * min(line.depth, most)) + deep
    fold = ("" if not view.layout.has_below(index) else CLOSED if is_closed else OPENED).ljust(2)
    mark, mark_style = _service(view, line)
    head = (Text(sign, sign_style, 1), Text(mark, mark_style, 1), Text(f" {indent}{fold}", "dim"))
    words, style = _name(view, line)
    extra = _extra(view, index, line, is_closed=is_closed)
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


def _name(view: View, line: TraceLine) -> tuple[str, str]:
    match line.kind:
        case LineKind.WAIT:
            return f"{AWAITED * 2} nothing ran {AWAITED * 2}", "dim"
        case LineKind.MISSING:
            return f"{line.missing}", "settled"
        case LineKind.RUN if line.run is not None:
            return show(line.run.name) or NONE, ""
    assert line.span is not None
    is_beside = view.passes is not None and not view.passes(line.span)
    return show(line.span.name) or NONE, "settled" if is_beside else _bar_style(view, line.span)


def _extra(view: View, index: int, line: TraceLine, *, is_closed: bool) -> str:
    """What is said behind the name."""
    words: list[str] = []
    match line.kind:
        case LineKind.MISSING:
            return "  not received"
        case LineKind.RUN if line.run is not None:
            words.append(f"× {len(line.run.spans):,}")
        case LineKind.SPAN if line.span is not None:
            flags = flags_of_span(view.tree, line.span)
            words += [FLAG_WORDS[flag] for flag in flags if flag in FLAG_WORDS and flag != "open"]
            if is_closed:
                words.append(f"{view.layout.spans[index] - 1:,} below")
    if is_closed and (errors := view.layout.errors[index]):
        words.append(f"✗ {errors:,}")
    return "".join(f"  {word}" for word in words)


# Bars.


def _bar_part(view: View, index: int, line: TraceLine, *, is_closed: bool) -> Iterable[Text]:
    cells = [" "] * view.columns.bar
    styles = [""] * view.columns.bar
    for squeezed in view.axis.squeezed:
        middle = squeezed.first + squeezed.cells // 2
        cells[middle], styles[middle] = SQUEEZED, "rule"
    if line.kind is LineKind.WAIT and line.wait is not None:
        if not _is_beside(cells, styles, view.axis, line.wait.start, line.wait.end):
            _stroke(cells, styles, view.axis, line.wait.start, line.wait.end, (AWAITED, "dim"))
    elif line.run is not None and line.span is not None:
        _run_bar(cells, styles, view, line.run)
    elif line.span is not None:
        last = view.layout.lasts[index]
        if is_closed and last > end_of(line.span):
            _stroke(cells, styles, view.axis, end_of(line.span), last, (AWAITED, "dim"))
        _span_bar(cells, styles, view, line.span)
    pairs = zip(cells, styles, strict=True)
    for style, same in groupby(pairs, key=lambda pair: pair[1]):
        text = "".join(char for char, _ in same)
        yield Text(text, style, len(text))


def _span_bar(cells: list[str], styles: list[str], view: View, span: Span) -> None:
    if not span.started_at:
        return
    own = service_style(view.mark_of(span.service))
    style = _bar_style(view, span) or own
    end = view.tree.ended_at or end_of(span) if span.ended_at is None else end_of(span)
    if _is_beside(cells, styles, view.axis, span.started_at, end):
        return
    thick = view.path is None
    look = (FULL if thick else THIN, style if thick else "settled")
    _stroke(cells, styles, view.axis, span.started_at, end, look, with_tick=True)
    if span.ended_at is None and span.started_at <= view.axis.high:
        _put(cells, styles, view.axis.half(end) // 2, LATER, "good")
    _path_bar(cells, styles, view, span, style)
    for event in span.events[-1:] if style != own else ():
        if event.name == EXCEPTION_EVENT and view.axis.low <= event.at <= view.axis.high:
            _put(cells, styles, view.axis.half(event.at) // 2, EXCEPTION, style)


def _bar_style(view: View, span: Span) -> str:
    """The style of the bar of a span at which something failed, "" for others."""
    cause = view.causes.get(span.span_id)
    return "" if cause is None else "warning" if cause.is_handled else "error"


def _run_bar(cells: list[str], styles: list[str], view: View, run: Run) -> None:
    if _is_beside(cells, styles, view.axis, run.spans[0].started_at, run.ended_at):
        return
    style = service_style(view.mark_of(run.spans[0].service))
    look, tint = (FULL, style) if view.path is None else (THIN, "settled")
    for cell in range(len(cells)):
        if run.runs_within(view.axis.time(2 * cell), max(view.axis.time(2 * cell + 2), 1)):
            _put(cells, styles, cell, look, tint)
    begin = view.tree.started_at or 0
    for span in run.spans if view.path is not None else ():
        if segments := (view.path or {}).get(span.span_id):
            ends = (begin + segments[0].from_ns, begin + segments[-1].to_ns)
            _stroke(cells, styles, view.axis, *ends, (FULL, f"{style} path"))


def _path_bar(cells: list[str], styles: list[str], view: View, span: Span, style: str) -> None:
    """What of a span is on the critical path, thick and strong."""
    begin = view.tree.started_at or 0
    for segment in (view.path or {}).get(span.span_id, ()):
        look = (AWAITED, "dim") if segment.is_wait else (FULL, f"{style} path")
        _stroke(cells, styles, view.axis, begin + segment.from_ns, begin + segment.to_ns, look)


def _is_beside(cells: list[str], styles: list[str], axis: Axis, start: int, end: int) -> bool:
    """Whether something lies before or after what is looked at; on which side is marked then."""
    if end < axis.low:
        _put(cells, styles, 0, EARLIER, "dim")
    elif start > axis.high:
        _put(cells, styles, len(cells) - 1, LATER, "dim")
    else:
        return False
    return True


def _stroke(
    cells: list[str],
    styles: list[str],
    axis: Axis,
    start: int,
    end: int,
    look: tuple[str, str],
    *,
    with_tick: bool = False,
) -> None:
    """A stroke from one time to another; one of less than a cell is a tick where that is wanted."""
    char, style = look
    first, last = axis.half(start), axis.half(end)
    if last - first < 2:
        _put(cells, styles, min(first // 2, len(cells) - 1), TICK if with_tick else char, style)
        return
    if first % 2:
        _put(cells, styles, first // 2, RIGHT if char == FULL else char, style)
    if last % 2:
        _put(cells, styles, last // 2, LEFT if char == FULL else char, style)
    for cell in range((first + 1) // 2, last // 2):
        _put(cells, styles, cell, char, style)


def _put(cells: list[str], styles: list[str], at: int, char: str, style: str) -> None:
    if 0 <= at < len(cells):
        cells[at], styles[at] = char, style
    elif at == len(cells) > 0:
        cells[-1], styles[-1] = char, style


def path_by_span(segments: Iterable[Segment]) -> Path:
    """The segments of a critical path by the span that they belong to."""
    found: dict[SpanId, list[Segment]] = {}
    for segment in segments:
        found.setdefault(segment.span.span_id, []).append(segment)
    return found
