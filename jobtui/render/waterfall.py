"""A line of a trace, on the screen and as text: sign, service, name in its place of the tree, bar, length."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby, takewhile
from typing import NamedTuple

from jobtui.analysis.times import duration
from jobtui.analysis.traces.axis import Axis
from jobtui.analysis.traces.critical_path import PathSegment
from jobtui.analysis.traces.failures import EXCEPTION as EXCEPTION_EVENT
from jobtui.analysis.traces.failures import FailureKind, Findings
from jobtui.analysis.traces.layout import ServiceMark, SpanRun, TraceLayout, TraceLine
from jobtui.analysis.traces.tree import Tree, end_of, flags_of_span
from jobtui.model.clock import MICROSECOND, MILLISECOND, SECOND
from jobtui.model.ids import SpanId, TraceId
from jobtui.model.numbers import counted
from jobtui.model.tables import tables_of
from jobtui.model.traces import Span
from jobtui.render.spans import Line, padded, width_of
from jobtui.render.spans import Piece as Text
from jobtui.render.text import NONE, fit, show, width

FLAG_WORDS: Mapping[str, str] = tables_of("jobtui.render", "signs")["span_flags"]


def span_time(nanos: int | None) -> str:
    """A length of time in the precision of spans: "1m23s", "2.9s", "845ms", "12.3µs"."""
    if nanos is None:
        return NONE
    if nanos < 0:
        return f"-{span_time(-nanos)}"
    if nanos < MICROSECOND:
        return f"{nanos}ns" if nanos else "0"
    if nanos < MILLISECOND:
        return f"{nanos / MICROSECOND:.1f}µs" if nanos < 100 * MICROSECOND else f"{nanos // MICROSECOND}µs"
    if nanos < SECOND:
        return f"{nanos / MILLISECOND:.1f}ms" if nanos < 10 * MILLISECOND else f"{nanos // MILLISECOND}ms"
    return duration(nanos / SECOND)


GIVEN_CELLS = 24
"""A longer attribute is not shown in a line."""
GIVEN = 2
STAGES = 5
"""The most stretches between waits that are listed."""


def short_id(trace_id: TraceId) -> str:
    return f"{trace_id[:8]}…{trace_id[-4:]}"


def sentence_of(found: Findings, growing: str = "") -> Text:
    """The state of a trace in one sentence; `growing` says why more may come."""
    fatal = [cause for cause in found.causes if not cause.is_handled]
    if fatal:
        more = f"  (and {len(fatal) - 1:,} more)" if len(fatal) > 1 else ""
        return Text(f"✗ {named(fatal[0].span)}: {show(fatal[0].message) or 'failed'}{more}", "error")
    said = [failure for failure in found.failures if failure.kind is not FailureKind.UNFINISHED]
    if said:
        return Text(f"✗ {show(said[0].text)}", "error")
    if growing:
        return Text(f"… not complete: {show(growing)}", "good")
    last = next((failure for failure in found.failures if failure.is_last), None)
    if last is not None:
        return Text(f"✗ {show(last.text)}", "warning")
    if not found.tree.spans:
        return Text("no span of it was received", "warning")
    if found.causes:
        more = f"  (and {len(found.causes) - 1:,} more)" if len(found.causes) > 1 else ""
        first = found.causes[0]
        words = f"{named(first.span)}: {show(first.message) or 'failed'}, and its parents succeeded"
        return Text(f"! {words}{more}", "warning")
    return Text("✓ nothing failed in it", "settled")


def named(span: Span) -> str:
    given = (f"{key}={value}" for key, value in span.attributes.items())
    short = [words for words in given if len(words) <= GIVEN_CELLS][:GIVEN]
    return " ".join((show(span.name) or NONE, *map(show, short)))


def stage_words(found: Findings) -> str:
    """The stretches between the longest waits, and these: who ran in each, and for how long."""
    tree = found.tree
    if tree.started_at is None or tree.ended_at is None:
        return ""
    waits = sorted(found.waits)[: STAGES // 2]
    begins = [tree.started_at, *(wait.end for wait in waits)]
    ends = [*(wait.start for wait in waits), tree.ended_at]
    words = []
    for nth, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        if nth:
            words.append(f"waited {span_time(waits[nth - 1].duration_ns)}")
        within = [span for span in tree.spans if begin <= span.started_at and end_of(span) <= end]
        service = show(within[0].service) if within else ""
        words.append(f"{service} {span_time(end - begin)}".strip())
    return " · ".join(words)


def count_words(found: Findings) -> str:
    spans, services = len(found.tree.spans), len(found.tree.services)
    errors = sum(span.is_error for span in found.tree.spans)
    parts = [counted(spans, "span"), counted(services, "service")]
    if errors:
        parts.insert(1, counted(errors, "error"))
    if found.tree.missing:
        parts.append(f"{len(found.tree.missing):,} not received")
    if open_spans := sum(1 for span in found.tree.spans if span.ended_at is None):
        parts.append(f"{open_spans:,} open")
    if found.tree.doubles:
        parts.append(f"{found.tree.doubles:,} received twice")
    if found.tree.loops:
        parts.append(f"{len(found.tree.loops):,} in loops of parents")
    if found.skewed:
        parts.append("clocks differ")
    return ", ".join(parts)


ROOT_CAUSE, PASSED_ON, HANDLED = ("✗", "error"), ("↑", "error"), ("!", "warning")
"""Sign and style: where it failed, what an error only passed through, an error that was handled."""
HIDDEN_ERROR, OPEN_SPAN, NOT_RECEIVED = ("✗", "warning"), ("●", "good"), ("◌", "warning")
"""The same for a fold with an error below, for an open span, for a parent that was not received."""
AWAITED = "┄"
"""The mark of a time without a span."""
COLOURS = 6
"""Styles `service.0` and on."""

Path = Mapping[SpanId, Sequence[PathSegment]]


class WaterfallView(NamedTuple):
    """What a line is drawn from. `failed_at` says of spans that failed whether it was handled.

    `path` has the segments of the critical path by span, None if it is not marked. `passes` tells which spans
    pass the filter, None without one.
    """

    tree: Tree
    layout: TraceLayout
    axis: Axis
    failed_at: Mapping[SpanId, bool]
    mark_of: Callable[[str], ServiceMark]
    path: Path | None = None
    passes: Callable[[Span], bool] | None = None


def service_style(mark: ServiceMark) -> str:
    return f"service.{mark.number % COLOURS}"


def took_of(line: TraceLine) -> tuple[str, str]:
    if line.wait is not None:
        return span_time(line.wait.duration_ns), "dim"
    if line.run is not None:
        return span_time(line.run.total_ns), "dim"
    if line.span is None:
        return "", "dim"
    return ("open", "good") if line.span.ended_at is None else (span_time(line.span.duration_ns), "")


def sign_of(view: WaterfallView, index: int, *, is_closed: bool) -> tuple[str, str]:
    line = view.layout.lines[index]
    span = line.own
    if line.missing is not None:
        return NOT_RECEIVED
    if span is not None and (is_handled := view.failed_at.get(span.span_id)) is not None:
        return HANDLED if is_handled else ROOT_CAUSE
    if span is not None and span.is_error:
        return PASSED_ON
    if is_closed and line.errors:
        return HIDDEN_ERROR
    return OPEN_SPAN if span is not None and span.ended_at is None else (" ", "")


def name_of(view: WaterfallView, line: TraceLine) -> tuple[str, str]:
    """Its name, safe to show, and its style."""
    if line.wait is not None:
        return f"{AWAITED * 2} nothing ran {AWAITED * 2}", "dim"
    if line.run is not None:
        return show(line.run.name) or NONE, ""
    if line.span is None:
        return f"{line.missing}", "settled"
    is_beside = view.passes is not None and not view.passes(line.span)
    return show(line.span.name) or NONE, "settled" if is_beside else bar_style(view, line.span)


def remarks_on(view: WaterfallView, index: int, *, is_closed: bool) -> list[str]:
    line = view.layout.lines[index]
    words: list[str] = []
    if line.missing is not None:
        return ["not received"]
    if line.run is not None:
        words.append(f"× {len(line.run.spans):,}")
    if line.own is not None:
        flags = flags_of_span(view.tree, line.own)
        words += [FLAG_WORDS[flag] for flag in flags if flag in FLAG_WORDS and flag != "open"]
        if is_closed:
            words.append(f"{line.spans - 1:,} below")
    if is_closed and line.errors:
        words.append(f"✗ {line.errors:,}")
    return words


def bar_style(view: WaterfallView, span: Span) -> str:
    is_handled = view.failed_at.get(span.span_id)
    return "" if is_handled is None else "warning" if is_handled else "error"


def path_by_span(segments: Iterable[PathSegment]) -> Path:
    found: dict[SpanId, list[PathSegment]] = {}
    for segment in segments:
        found.setdefault(segment.span.span_id, []).append(segment)
    return found


FULL, LEFT, RIGHT, TICK = "━", "╸", "╺", "│"
THIN = "─"
SQUEEZED, EXCEPTION = "┊", "✗"
EARLIER, LATER = "‹", "›"


class Bar:
    """The cells of an axis, and what is drawn on them; at first only marks where it is squeezed."""

    def __init__(self, axis: Axis) -> None:
        self._axis = axis
        self._signs = [" "] * axis.cells
        self._styles = [""] * axis.cells
        for squeezed in axis.squeezed:
            self._put(squeezed.first + squeezed.cells // 2, SQUEEZED, "rule")

    def parts(self) -> Iterator[Text]:
        pairs = zip(self._signs, self._styles, strict=True)
        for style, same in groupby(pairs, key=lambda pair: pair[1]):
            text = "".join(sign for sign, _ in same)
            yield Text(text, style, len(text))

    def mark(self, at: int, sign: str, style: str) -> None:
        self._put(self._axis.half(at) // 2, sign, style)

    def is_beside(self, start: int, end: int) -> bool:
        """Whether a span is outside of the visible part; if so, a sign marks on which side."""
        if end < self._axis.low:
            self._put(0, EARLIER, "dim")
        elif start > self._axis.high:
            self._put(len(self._signs) - 1, LATER, "dim")
        else:
            return False
        return True

    def stroke(self, start: int, end: int, sign: str, style: str, *, with_tick: bool = False) -> None:
        """A stroke from one time to another. With `with_tick` one of less than a cell is a tick."""
        first, last = self._axis.half(start), self._axis.half(end)
        if last - first < 2:
            self._put(first // 2, TICK if with_tick else sign, style)
            return
        if first % 2:
            self._put(first // 2, RIGHT if sign == FULL else sign, style)
        if last % 2:
            self._put(last // 2, LEFT if sign == FULL else sign, style)
        for cell in range((first + 1) // 2, last // 2):
            self._put(cell, sign, style)

    def run(self, run: SpanRun, sign: str, style: str) -> None:
        time = self._axis.time
        for cell in range(len(self._signs)):
            if run.runs_within(time(2 * cell), max(time(2 * cell + 2), 1)):
                self._put(cell, sign, style)

    def _put(self, at: int, sign: str, style: str) -> None:
        at = min(at, len(self._signs) - 1)
        self._signs[at], self._styles[at] = sign, style


def bar_of(view: WaterfallView, index: int, *, is_closed: bool) -> Bar:
    line, bar = view.layout.lines[index], Bar(view.axis)
    if line.wait is not None:
        if not bar.is_beside(line.wait.start, line.wait.end):
            bar.stroke(line.wait.start, line.wait.end, AWAITED, "dim")
    elif line.run is not None:
        _draw_run(bar, view, line.run)
    elif line.span is not None:
        if is_closed and line.last > end_of(line.span):
            bar.stroke(end_of(line.span), line.last, AWAITED, "dim")
        _draw_span(bar, view, line.span)
    return bar


def _draw_span(bar: Bar, view: WaterfallView, span: Span) -> None:
    if not span.started_at:
        return
    own = service_style(view.mark_of(span.service))
    style = bar_style(view, span) or own
    end = view.tree.ended_at or end_of(span) if span.ended_at is None else end_of(span)
    if bar.is_beside(span.started_at, end):
        return
    look = (FULL, style) if view.path is None else (THIN, "settled")
    bar.stroke(span.started_at, end, *look, with_tick=True)
    if span.ended_at is None and span.started_at <= view.axis.high:
        bar.mark(end, LATER, "good")
    begin = view.tree.started_at or 0
    for segment in (view.path or {}).get(span.span_id, ()):
        look = (AWAITED, "dim") if segment.is_wait else (FULL, f"{style} path")
        bar.stroke(begin + segment.from_ns, begin + segment.to_ns, *look)
    for event in span.events[-1:] if style != own else ():
        if event.name == EXCEPTION_EVENT and view.axis.low <= event.at <= view.axis.high:
            bar.mark(event.at, EXCEPTION, style)


def _draw_run(bar: Bar, view: WaterfallView, run: SpanRun) -> None:
    if bar.is_beside(run.spans[0].started_at, run.ended_at):
        return
    style = service_style(view.mark_of(run.spans[0].service))
    bar.run(run, *((FULL, style) if view.path is None else (THIN, "settled")))
    begin = view.tree.started_at or 0
    for span in run.spans if view.path is not None else ():
        if segments := (view.path or {}).get(span.span_id):
            bar.stroke(begin + segments[0].from_ns, begin + segments[-1].to_ns, FULL, f"{style} path")


OPENED, CLOSED = "▾", "▸"
WAIT_CELLS = 9
"""The sign of a squeezed stretch; its length is written there."""
NAME_SHARE, LEAST_NAME, MOST_NAME = 0.42, 26, 64
LEVELS = 30
"""How many levels are indented if names have as many cells as they need."""
LEGEND_GAP = "  "
LEAST_LEGEND = 2 + len(LEGEND_GAP)
"""Cells of a service in the legend besides its name: its letter, a blank, and the gap after it."""


class Columns(NamedTuple):
    """Cells of the name with its signs, of the bar (0: there is none), of the length."""

    name: int
    bar: int
    took: int


def columns_in(cells: int) -> Columns:
    took = min(8, max(0, cells - 12))
    if cells < 60:  # there is no room for bars
        return Columns(cells - took, 0, took)
    name = max(LEAST_NAME, min(MOST_NAME, int(cells * NAME_SHARE)))
    return Columns(name, cells - name - took, took)


def heading_line(view: WaterfallView, columns: Columns) -> Line:
    name, bar, took = columns
    legend = _legend(view, name - 1)
    line = padded((Text(" ", "heading", 1), *legend), name, "heading")
    return (*line, *_ruler(view, bar), Text(fit("took", took, align="right"), "heading", took))


def _legend(view: WaterfallView, cells: int) -> list[Text]:
    """As many services as fit; a beginning that all names share is cut to make room."""
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
    """The length of the words that all names begin with; 0 if that is the whole of one."""
    if len(names) < 2:
        return 0
    alike = takewhile(lambda pair: pair[0] == pair[1], zip(min(names), max(names), strict=False))
    end = max((at + 1 for at, (char, _) in enumerate(alike) if not char.isalnum()), default=0)
    return end if all(len(name) > end for name in names) else 0


def _ruler(view: WaterfallView, bar: int) -> Iterable[Text]:
    cells = [" "] * bar
    for squeezed in view.axis.squeezed:
        words = f"{AWAITED}{span_time(squeezed.duration_ns)}{AWAITED}"
        _write(cells, squeezed.first, f"{words:{AWAITED}^{squeezed.cells}}"[: squeezed.cells])
    if cells:
        for tick in view.axis.ticks(view.tree.started_at or 0, 10):
            sign = "+" if tick.origin_ns else ""
            _write(cells, tick.cell, f"{sign}{span_time(tick.after_ns)}")
    return (Text("".join(cells), "heading", bar),) if cells else ()


def _write(cells: list[str], at: int, words: str) -> None:
    end = at + len(words)
    if end <= len(cells) and all(cell == " " for cell in cells[max(0, at - 1) : end + 1]):
        cells[at:end] = words


def trace_line(view: WaterfallView, columns: Columns, index: int, *, is_closed: bool) -> Line:
    name = _name_part(view, columns, index, is_closed=is_closed)
    bar = bar_of(view, index, is_closed=is_closed).parts() if columns.bar else ()
    took, style = took_of(view.layout.lines[index])
    return (*name, *bar, Text(fit(took, columns.took, align="right"), style, columns.took))


def name_cells(view: WaterfallView, index: int) -> int:
    """The cells that the whole name of a line needs, with its signs and remarks."""
    line = view.layout.lines[index]
    words = (name_of(view, line)[0], *remarks_on(view, index, is_closed=True))
    return 20 + 2 * min(line.depth, LEVELS) + sum(2 + width(word) for word in words)


def _name_part(view: WaterfallView, columns: Columns, index: int, *, is_closed: bool) -> Line:
    line, cells = view.layout.lines[index], columns.name
    sign, sign_style = sign_of(view, index, is_closed=is_closed)
    step = 2 if columns.bar else 1
    most = max(0, cells - 20) // step
    deep = f"[{line.depth}] " if line.depth > most else ""
    indent = " " * (step * min(line.depth, most)) + deep
    fold = ("" if not view.layout.has_below(index) else CLOSED if is_closed else OPENED).ljust(2)
    mark, mark_style = " ", ""
    if line.span is not None and line.wait is None:
        service = view.mark_of(line.span.service)
        is_mixed = line.run is not None and line.run.services > 1
        mark, mark_style = ("*", "dim") if is_mixed else (service.letter, service_style(service))
    head = (Text(sign, sign_style, 1), Text(mark, mark_style, 1), Text(f" {indent}{fold}", "dim"))
    words, style = name_of(view, line)
    extra = "".join(f"  {remark}" for remark in remarks_on(view, index, is_closed=is_closed))
    room = max(1, cells - width_of(head) - 1)
    extra_cells = min(width(extra), max(0, room - 8))
    name = fit(words, min(width(words), max(1, room - extra_cells)))
    body = (Text(name, style), Text(fit(extra, extra_cells), "warning" if "✗" in extra else "dim"))
    kept = padded((*head, *body), cells)
    return kept if width_of(kept) == cells else (Text(fit("".join(t.text for t in kept), cells), style),)
