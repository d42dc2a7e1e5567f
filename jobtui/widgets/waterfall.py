"""The spans of a trace as a waterfall: to fold, filter, zoom, and step through failures. It opens on the span
that failed. The cursor, the folds and the zoom stay as they are while the trace grows. Only lines that are
visible are drawn, each once until it changes.
"""

from dataclasses import dataclass
from typing import NamedTuple

from textual import events
from textual.message import Message

from jobtui.analysis.traces.axis import TraceWindow
from jobtui.analysis.traces.critical_path import whole_path
from jobtui.analysis.traces.failures import FailureKind, Findings
from jobtui.analysis.traces.filters import SpanTest
from jobtui.analysis.traces.layout import LineKey, ServiceMarks, ShownLines, TraceLayout, TraceLine, lay_out
from jobtui.analysis.traces.tree import end_of
from jobtui.model.ids import TraceId
from jobtui.render import waterfall
from jobtui.render.spans import Line, Piece, spread
from jobtui.render.text import fit, gist, width
from jobtui.widgets.lines import LineView, ShownAttribute
from jobtui.widgets.row_view import RowView


class TraceFacts(LineView):
    sentence = ShownAttribute(Piece("", ""))
    stages = ShownAttribute("")

    def line(self, y: int) -> Line:
        words = gist(f" {self.sentence.text}", self.cells)
        left = Piece(fit(words, min(width(words), self.cells)), self.sentence.style)
        stages = f"   {self.stages} " if self.stages else ""
        return spread((left,), (Piece(stages, "dim"),), self.cells)


MOST_DRAWN = 1_000


class WaterfallTrace(NamedTuple):
    """A trace, what was found in it, and the lines that it can have.

    `counts` says how large it is, `stages` where its time went.
    """

    found: Findings
    layout: TraceLayout
    counts: str
    stages: str


def picture_of(found: Findings) -> WaterfallTrace:
    """A trace as it is shown. Takes time in proportion to its spans: not for the event loop."""
    return WaterfallTrace(found, lay_out(found), waterfall.count_words(found), waterfall.stage_words(found))


def path_of(found: Findings) -> waterfall.Path:
    """Where the time of a trace went. Takes as long as all the rest: only made when it is shown."""
    return waterfall.path_by_span(whole_path(found.tree))


class Waterfall(RowView):
    """The spans of one trace that are shown, and the visible part of its time."""

    @dataclass
    class LineHighlighted(Message):
        """The cursor is on another line, or more is known of that line."""

        line: TraceLine | None

    class Viewed(Message):
        """Folds, filter, zoom or marks may have changed."""

    def __init__(self, marks: ServiceMarks) -> None:
        super().__init__()
        self._marks = marks
        self._picture: WaterfallTrace | None = None
        self._path: tuple[Findings, waterfall.Path] | None = None
        self._shown = ShownLines()
        self._window = TraceWindow()
        self._view: waterfall.WaterfallView | None = None
        self._columns = waterfall.columns_in(0)
        self._drawn: dict[tuple[int, bool], Line] = {}
        self.marks_path = False
        self.squeezes = True
        self._begun: LineKey | None = None
        """The line under the cursor when it was opened."""
        self._is_scrolled = False

    @property
    def found(self) -> Findings | None:
        return self._picture.found if self._picture else None

    @property
    def count(self) -> int:
        return len(self._shown.numbers)

    @property
    def current(self) -> TraceLine | None:
        return self._shown.line(self.cursor) if self.cursor < self.count else None

    @property
    def passing(self) -> int | None:
        """How many spans pass the filter, None without one."""
        return self._shown.passing if self._shown.passes is not None else None

    @property
    def is_whole(self) -> bool:
        return self._window.is_whole

    @property
    def seen(self) -> tuple[int, int] | None:
        """The visible part of time, nanoseconds since the epoch; None without a trace."""
        return (self._view.axis.low, self._view.axis.high) if self._view else None

    @property
    def names_above(self) -> tuple[str, ...]:
        """The names of the spans above the line under the cursor, the highest first; outside text."""
        if not self.count:
            return ()
        layout = self._shown.layout
        above = (layout.lines[at].span for at in layout.above(self._shown.numbers[self.cursor]))
        return tuple(span.name for span in above if span is not None)[::-1]

    def heading(self, y: int) -> Line:
        return waterfall.heading_line(self._view, self._columns) if self._view else ()

    def row(self, index: int) -> Line:
        if self._view is None:
            return ()
        number = self._shown.numbers[index]
        is_closed = self._shown.is_closed(self._shown.layout.lines[number].key)
        drawn = self._drawn.get((number, is_closed))
        if drawn is None:
            if len(self._drawn) >= MOST_DRAWN:
                self._drawn.clear()
            drawn = waterfall.trace_line(self._view, self._columns, number, is_closed=is_closed)
            self._drawn[number, is_closed] = drawn
        return drawn

    def go(self, index: int) -> None:
        before = self.cursor
        super().go(index)
        if self.cursor != before:
            self._announce()

    def _announce(self) -> None:
        self.post_message(self.LineHighlighted(self.current))

    def on_resize(self) -> None:
        self._renew()

    def _refolded(self, is_other: bool) -> bool:
        if is_other:
            self._refold()
        return is_other

    def _refold(self) -> None:
        if self._view is not None and self._view.passes is not self._shown.passes:
            self._renew()
        self.keep_in_view()
        self.repaint()

    def _renew(self) -> None:
        self._drawn.clear()
        self._view = None
        if self._picture is not None:
            found, self._columns = self._picture.found, waterfall.columns_in(max(0, self.cells - 1))
            waits = found.waits if self.squeezes else ()
            self._view = waterfall.WaterfallView(
                found.tree,
                self._picture.layout,
                self._window.axis(max(1, self._columns.bar), waits, waterfall.WAIT_CELLS),
                found.failed_at,
                self._marks.of,
                self._path[1] if self.marks_path and self._path else None,
                self._shown.passes,
            )
        self.keep_in_view()
        self.repaint()
        self.post_message(self.Viewed())

    @property
    def trace_id(self) -> TraceId | None:
        return self.found.tree.trace_id if self.found else None

    def set_trace(self, picture: WaterfallTrace) -> None:
        if picture is self._picture:
            return  # it is reported again and again, and may be large
        is_other = self.trace_id != picture.found.tree.trace_id
        key = self._key
        # nobody has moved since it was opened: what failed may be known only now
        is_untouched = key == self._begun and not self._is_scrolled
        self._picture = picture
        tree = picture.found.tree
        self._marks.meet(tree.services)
        self._window.set_trace(tree.started_at or 0, tree.ended_at or 1)
        if is_other:
            self._shown = ShownLines(picture.layout)
            self._window.show_whole()
            self._begin(picture)
        else:
            self._shown.set_layout(picture.layout)
            self._stay_at(key)
            if is_untouched:
                self._follow(picture)
        self._renew()
        self._announce()

    def set_filter(self, passes: SpanTest | None) -> None:
        """Show only spans that pass and what is above them, or all."""
        key = self._key
        self._shown.set_filter(passes)
        self._stay_at(key)
        self._renew()
        self._announce()

    def fold(self) -> bool:
        return self._refolded(self.count > 0 and self._shown.close(self.cursor))

    def unfold(self) -> bool:
        return self._refolded(self.count > 0 and self._shown.open(self.cursor))

    def toggle_fold(self) -> bool:
        return self.unfold() or self.fold()

    def go_out(self) -> None:
        above = self._shown.above(self.cursor) if self.count else None
        if not self.fold() and above is not None:
            self.go(above)

    def toggle_all(self) -> None:
        key = self._key
        self._shown.toggle_all()
        self._stay_at(key)
        self._refold()
        self._announce()

    def next_failure(self, step: int) -> tuple[int, int] | None:
        """Go to the next failed span, even if hidden. Gives which one of how many; None without any."""
        if self.found is None:
            return None
        keys = failed_keys(self.found)
        key = self._shown.next_of(keys, self.cursor, step)
        if key is None:
            return None
        self.reveal(key)
        at = self._shown.layout.at
        return sorted(keys, key=lambda one: at.get(one, 0)).index(key) + 1, len(keys)

    def reveal(self, key: LineKey) -> None:
        index = self._shown.reveal(key)
        self._refold()
        if index is not None:
            self.go(index)

    def zoom(self, factor: float) -> None:
        if self._view is not None:
            self._window.zoom(self._view.axis, factor, self._focus)
            self._renew()

    def pan(self, part: float) -> None:
        if self._view is not None:
            self._window.pan(self._view.axis, part)
            self._renew()

    def zoom_to_line(self) -> None:
        line = self.current
        if line is not None and line.span is not None:
            self._window.show(line.span.started_at, max(end_of(line.span), line.last))
            self._renew()

    def show_whole(self) -> None:
        self._window.show_whole()
        self._renew()

    @property
    def lacks_path(self) -> bool:
        return self.found is not None and (not self._path or self._path[0] is not self.found)

    def set_path(self, found: Findings, path: waterfall.Path) -> None:
        self._path = (found, path)
        self._renew()

    def toggle_path(self) -> None:
        self.marks_path = not self.marks_path
        self._renew()

    def toggle_squeeze(self) -> None:
        self.squeezes = not self.squeezes
        self._renew()

    def scroll_rows(self, rows: int) -> None:
        self._is_scrolled = True
        super().scroll_rows(rows)

    def on_click(self, event: events.Click) -> None:
        if event.chain == 2:
            self.toggle_fold()

    @property
    def _key(self) -> LineKey | None:
        return self.current.key if self.current else None

    @property
    def _focus(self) -> int:
        """The time to zoom around: the middle of the span under the cursor, if that is visible."""
        assert self._view is not None
        low, high = self._view.axis.low, self._view.axis.high
        if (line := self.current) is not None and line.span is not None:
            middle = (line.span.started_at + end_of(line.span)) // 2
            if low <= middle <= high:
                return middle
        return self._view.axis.time(self._view.axis.cells)

    def _begin(self, picture: WaterfallTrace) -> None:
        self.cursor = self.top = 0
        self._path = None if self._path and self._path[0] is not picture.found else self._path
        first = first_to_read(picture.found)
        index = self._shown.reveal(first) if first else None
        if index is not None:
            self.cursor = index
            self.top = max(0, index - 2 * self.page // 3)
        self._begun, self._is_scrolled = self._key, False

    def _follow(self, picture: WaterfallTrace) -> None:
        first = first_to_read(picture.found)
        if first is None or first == self._begun:
            return
        if self._begun is None or first in failed_keys(picture.found, at_end=False):
            self._begin(picture)

    def _stay_at(self, key: LineKey | None) -> None:
        index = self._shown.index_of(key) if key else None
        if index is not None:
            self.top += index - self.cursor
            self.cursor = index


def first_to_read(found: Findings) -> LineKey | None:
    """The line of the span that failed, unhandled failures first; None if none did."""
    fatal = [cause.span.span_id for cause in found.causes if not cause.is_handled]
    said = [one.span.span_id for one in found.failures if one.kind is not FailureKind.UNFINISHED]
    last = [one.span.span_id for one in found.failures if one.is_last]
    handled = [cause.span.span_id for cause in found.causes if cause.is_handled]
    return next(iter((*fatal, *said, *last, *handled)), None)


def failed_keys(found: Findings, *, at_end: bool = True) -> frozenset[LineKey]:
    """The lines of all spans that failed; those that are merely the last only with `at_end`."""
    causes = (cause.span.span_id for cause in found.causes)
    said = (one for one in found.failures if at_end or one.kind is not FailureKind.UNFINISHED)
    return frozenset((*causes, *(failure.span.span_id for failure in said)))
