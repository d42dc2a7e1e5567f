"""The bar of a line of a trace: when it was, on the cells of an axis."""

from collections.abc import Iterator
from itertools import groupby

from jobtui.analysis.traces.axis import Axis
from jobtui.analysis.traces.failures import EXCEPTION as EXCEPTION_EVENT
from jobtui.analysis.traces.runs import Run
from jobtui.analysis.traces.tree import end_of
from jobtui.model.traces import Span
from jobtui.render.spans import Span as Text
from jobtui.render.trace_line import AWAITED, View, bar_style, service_style

FULL, LEFT, RIGHT, TICK = "━", "╸", "╺", "│"
THIN = "─"
SQUEEZED, EXCEPTION = "┊", "✗"
EARLIER, LATER = "‹", "›"


class Bar:
    """The cells of an axis, with what is drawn on them: at first where it is squeezed."""

    def __init__(self, axis: Axis) -> None:
        self._axis = axis
        self._signs = [" "] * axis.cells
        self._styles = [""] * axis.cells
        for squeezed in axis.squeezed:
            self._put(squeezed.first + squeezed.cells // 2, SQUEEZED, "rule")

    @property
    def text(self) -> str:
        """What it looks like without colours."""
        return "".join(self._signs)

    def parts(self) -> Iterator[Text]:
        """The same, with styles."""
        pairs = zip(self._signs, self._styles, strict=True)
        for style, same in groupby(pairs, key=lambda pair: pair[1]):
            text = "".join(sign for sign, _ in same)
            yield Text(text, style, len(text))

    def mark(self, at: int, sign: str, style: str) -> None:
        """A sign at a time."""
        self._put(self._axis.half(at) // 2, sign, style)

    def is_beside(self, start: int, end: int) -> bool:
        """Whether something lies before or after what is looked at; on which side is marked then."""
        if end < self._axis.low:
            self._put(0, EARLIER, "dim")
        elif start > self._axis.high:
            self._put(len(self._signs) - 1, LATER, "dim")
        else:
            return False
        return True

    def stroke(self, start: int, end: int, sign: str, style: str, *, with_tick: bool = False) -> None:
        """A stroke from one time to another; one of less than a cell is a tick where that is wanted."""
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

    def run(self, run: Run, sign: str, style: str) -> None:
        """A sign on each cell in which one of several spans went on."""
        time = self._axis.time
        for cell in range(len(self._signs)):
            if run.runs_within(time(2 * cell), max(time(2 * cell + 2), 1)):
                self._put(cell, sign, style)

    def _put(self, at: int, sign: str, style: str) -> None:
        at = min(at, len(self._signs) - 1)
        self._signs[at], self._styles[at] = sign, style


def bar_of(view: View, index: int, *, is_closed: bool) -> Bar:
    """The bar of a line."""
    line, bar = view.layout.lines[index], Bar(view.axis)
    if line.wait is not None:
        if not bar.is_beside(line.wait.start, line.wait.end):
            bar.stroke(line.wait.start, line.wait.end, AWAITED, "dim")
    elif line.run is not None:
        _draw_run(bar, view, line.run)
    elif line.span is not None:
        last = view.layout.lasts[index]
        if is_closed and last > end_of(line.span):
            bar.stroke(end_of(line.span), last, AWAITED, "dim")
        _draw_span(bar, view, line.span)
    return bar


def _draw_span(bar: Bar, view: View, span: Span) -> None:
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
    _draw_path(bar, view, span, style)
    for event in span.events[-1:] if style != own else ():
        if event.name == EXCEPTION_EVENT and view.axis.low <= event.at <= view.axis.high:
            bar.mark(event.at, EXCEPTION, style)


def _draw_run(bar: Bar, view: View, run: Run) -> None:
    if bar.is_beside(run.spans[0].started_at, run.ended_at):
        return
    style = service_style(view.mark_of(run.spans[0].service))
    bar.run(run, *((FULL, style) if view.path is None else (THIN, "settled")))
    begin = view.tree.started_at or 0
    for span in run.spans if view.path is not None else ():
        if segments := (view.path or {}).get(span.span_id):
            bar.stroke(begin + segments[0].from_ns, begin + segments[-1].to_ns, FULL, f"{style} path")


def _draw_path(bar: Bar, view: View, span: Span, style: str) -> None:
    """What of a span is on the critical path, thick and strong."""
    begin = view.tree.started_at or 0
    for segment in (view.path or {}).get(span.span_id, ()):
        look = (AWAITED, "dim") if segment.is_wait else (FULL, f"{style} path")
        bar.stroke(begin + segment.from_ns, begin + segment.to_ns, *look)
