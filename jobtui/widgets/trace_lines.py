"""The lines of a trace as a widget draws them: only those that are visible, each once until it changes."""

from typing import NamedTuple

from textual.message import Message

from jobtui.analysis.traces.axis import Axis
from jobtui.analysis.traces.critical_path import whole_path
from jobtui.analysis.traces.findings import Findings
from jobtui.analysis.traces.layout import Layout, TraceLine, lay_out
from jobtui.analysis.traces.services import ServiceMarks
from jobtui.analysis.traces.shown import ShownLines
from jobtui.analysis.traces.window import TraceWindow
from jobtui.render.spans import Line
from jobtui.render.trace_facts import count_words, stage_words
from jobtui.render.trace_line import Path, View, path_by_span
from jobtui.render.waterfall import WAIT_CELLS, columns_in, heading_line, trace_line
from jobtui.widgets.row_view import RowView

MOST_DRAWN = 1_000
"""Lines that are kept drawn."""


class Picture(NamedTuple):
    """A trace, all that is to be said of it, and the lines that it can have.

    `counts` say how much there is of it, `stages` on what its time went.
    """

    found: Findings
    layout: Layout
    counts: str
    stages: str


def picture_of(found: Findings) -> Picture:
    """What is shown of a trace. Takes time in proportion to its spans: not for the event loop."""
    return Picture(found, lay_out(found), count_words(found), stage_words(found))


def path_of(found: Findings) -> Path:
    """What a trace spent its time on. Takes as long as all the rest: only for who wants to see it."""
    return path_by_span(whole_path(found.tree))


class TraceLines(RowView):
    """The lines of one trace that are shown, and the part of its time that is looked at."""

    class Highlighted(Message):
        """The cursor is on another line, or that line is known better."""

        def __init__(self, line: TraceLine | None) -> None:
            self.line = line
            super().__init__()

    def __init__(self, marks: ServiceMarks, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._marks = marks
        self._picture: Picture | None = None
        self._path: tuple[Findings, Path] | None = None
        self._shown: ShownLines | None = None
        self._window = TraceWindow()
        self._view: View | None = None
        self._columns = columns_in(0)
        self._drawn: dict[tuple[int, bool], Line] = {}
        self.marks_path = False
        """Whether the critical path is marked."""
        self.squeezes = True
        """Whether stretches in which nothing ran are squeezed."""

    @property
    def found(self) -> Findings | None:
        """What is known of the trace."""
        return self._picture.found if self._picture else None

    @property
    def count(self) -> int:
        """How many lines are shown."""
        return len(self._shown.numbers) if self._shown else 0

    @property
    def current(self) -> TraceLine | None:
        """The line under the cursor."""
        return self._shown.line(self.cursor) if self._shown and self.cursor < self.count else None

    @property
    def passing(self) -> int | None:
        """How many spans pass the filter, None without one."""
        return self._shown.passing if self._shown and self._shown.passes is not None else None

    @property
    def is_whole(self) -> bool:
        """Whether all of the time of the trace is looked at."""
        return self._window.is_whole

    @property
    def seen(self) -> tuple[int, int] | None:
        """From when to when it is looked at, nanoseconds since the epoch; None without a trace."""
        return (self._view.axis.low, self._view.axis.high) if self._view else None

    @property
    def names_above(self) -> tuple[str, ...]:
        """The names of the spans above the line under the cursor, the highest first; outside text."""
        if self._shown is None or not self.count:
            return ()
        layout = self._shown.layout
        above = (layout.lines[at].span for at in layout.above(self._shown.numbers[self.cursor]))
        return tuple(span.name for span in above if span is not None)[::-1]

    def heading(self, y: int) -> Line:
        """Services and ruler."""
        return heading_line(self._view, self._columns) if self._view else ()

    def row(self, index: int) -> Line:
        """A line; drawn once, until something changes."""
        if self._shown is None or self._view is None:
            return ()
        number = self._shown.numbers[index]
        is_closed = self._shown.is_closed(self._shown.layout.lines[number].key)
        drawn = self._drawn.get((number, is_closed))
        if drawn is None:
            if len(self._drawn) >= MOST_DRAWN:
                self._drawn.clear()
            drawn = trace_line(self._view, self._columns, number, is_closed=is_closed)
            self._drawn[number, is_closed] = drawn
        return drawn

    def cursor_moved(self) -> None:
        """Tell which line it is."""
        self.post_message(self.Highlighted(self.current))

    def on_resize(self) -> None:
        """Choose the columns anew."""
        self._renew()

    def _refold(self) -> None:
        """Show other lines of those there are; what they look like stays."""
        if self._view is not None and self._shown is not None and self._view.passes is not self._shown.passes:
            self._renew()
        self.keep_in_view()
        self.repaint()

    def _renew(self) -> None:
        """Draw everything anew: other lines, columns, or times."""
        self._drawn.clear()
        self._view = self._new_view()
        self.keep_in_view()
        self.repaint()

    def _new_view(self) -> View | None:
        if self._picture is None or self._shown is None:
            return None
        found, layout = self._picture[:2]
        self._columns = columns_in(self.cells)
        return View(
            found.tree,
            layout,
            self._axis(max(1, self._columns.bar)),
            found.failed_at,
            self._marks.of,
            self._path[1] if self.marks_path and self._path else None,
            self._shown.passes,
        )

    def _axis(self, cells: int) -> Axis:
        waits = self._picture.found.waits if self._picture and self.squeezes else ()
        return self._window.axis(cells, waits, WAIT_CELLS)
