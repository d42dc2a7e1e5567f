"""Lines of a log on the screen: a cursor, a selection, bookmarks, wrapped rows or one row each and sideways.

Shows the window it is given; where lines come from is for its subclass.
"""

from jobtui.model.pages import LogLine, Place
from jobtui.render.hits import HIT, Finder
from jobtui.render.log_line import Look
from jobtui.render.spans import Line, Span, padded, styled
from jobtui.widgets.lines import LineView
from jobtui.widgets.log_rows import Drawing, LogRows
from jobtui.widgets.log_window import LogWindow

SIDE_STEP = 20
"""Cells a step to the left or right goes."""
PLAIN_LOOK = Look()


class LogLines(LineView):
    """The lines of a window, with a cursor."""

    def __init__(self, *, look: Look = PLAIN_LOOK, id: str | None = None) -> None:
        super().__init__(id=id)
        self.bookmarks: set[Place] = set()
        """Lines somebody wants to find again."""
        self._look = look
        self._find: Finder | None = None
        self._wraps = False
        self._left = 0
        self._window = LogWindow()
        self._rows = LogRows()
        self._top = 0
        self._skip = 0
        self._cursor = 0
        self._anchor: Place | None = None
        self._layout: list[Line] = []
        self._visible = 1

    @property
    def line_at_cursor(self) -> LogLine | None:
        """The line under the cursor."""
        return self._window.lines[self._cursor] if len(self._window) else None

    @property
    def place(self) -> Place | None:
        """The place of the line under the cursor."""
        line = self.line_at_cursor
        return line.place if line else None

    @property
    def selection(self) -> tuple[Place, Place] | None:
        """The first and last place of the selected lines, None when none are."""
        if self._anchor is None or self.place is None:
            return None
        return min(self._anchor, self.place), max(self._anchor, self.place)

    @property
    def wraps(self) -> bool:
        """Whether long lines are broken into rows."""
        return self._wraps

    @property
    def shows_heads(self) -> bool:
        """Whether lines are shown with their heads as they are."""
        return self._look.whole

    def set_finder(self, find: Finder | None) -> None:
        """Mark what this finds in lines."""
        self._find = find
        self._redraw()

    def redraw(self) -> None:
        """Draw all lines anew: how times are shown has changed."""
        self._rows.forget()
        self._redraw()

    def set_look(self, look: Look) -> None:
        """Show lines in another way."""
        self._look = look
        self._redraw()

    def toggle_selection(self) -> None:
        """Begin to select lines at the cursor, or end it."""
        self._anchor = self.place if self._anchor is None else None
        self.repaint()

    def toggle_wrap(self) -> None:
        """Break long lines into rows, or have them in one row and go sideways."""
        self._wraps = not self._wraps
        self._left = 0
        self._redraw()

    def toggle_heads(self) -> None:
        """Show lines with their heads as they are, or with the time of day only."""
        self.set_look(self._look._replace(whole=not self._look.whole))

    def go_sideways(self, steps: int) -> None:
        """Show what is farther to the right, or left with negative steps."""
        widest = max((self._rows.width(line) for line in self._on_screen()), default=0)
        most = max(0, widest - self.cells // 2)
        self._left = max(0, min(self._left + steps * SIDE_STEP, most)) if not self._wraps else 0
        self._redraw()

    def toggle_bookmark(self) -> None:
        """Keep the line under the cursor in mind, or forget it."""
        if self.place is not None:
            self.bookmarks ^= {self.place}
            self.repaint()

    # How it is drawn.

    def line(self, y: int) -> Line:
        """What row `y` of the widget holds now."""
        return self._layout[y] if y < len(self._layout) else ()

    def repaint(self) -> None:
        """Mark for painting whatever differs from what is on the screen."""
        self._lay_out()
        super().repaint()

    def on_resize(self) -> None:
        """Draw for another size."""
        self._redraw()

    def _redraw(self) -> None:
        indents = any(line.at is not None for line in self._on_screen())
        look = self._look._replace(indents=indents)
        self._rows.set(Drawing(self.cells, max(1, self.rows_high), self._wraps, self._left, look, self._find))
        self._keep_in_view()
        self.repaint()

    def _on_screen(self) -> list[LogLine]:
        return self._window.lines[self._top : self._top + self._visible]

    def _lay_out(self) -> None:
        layout: list[Line] = []
        shown = 0
        chosen = self.selection
        for line in self._window.lines[self._top :]:
            if len(layout) >= self.rows_high:
                break
            style = "cursor" if line.place == self.place else ""
            if not style and chosen and chosen[0] <= line.place <= chosen[1]:
                style = "selected"
            drawn = self._rows.of(line, bookmarked=line.place in self.bookmarks)
            hidden = 0 if layout else self._skip
            layout += [_in_style(padded(row, self.cells), style) if style else row for row in drawn[hidden:]]
            shown += len(layout) <= self.rows_high
        self._layout = layout[: self.rows_high]
        self._visible = max(1, shown)

    def _keep_in_view(self) -> None:
        """Show all of the cursor's line, and no emptiness below the last one."""
        count = len(self._window)
        self._cursor = max(0, min(self._cursor, count - 1))
        if not count:
            self._top = self._skip = 0
            return
        begin = max((0, 0), min((self._top, self._skip), (self._cursor, 0), self._begin_above(count - 1)))
        self._top, self._skip = max(begin, self._begin_above(self._cursor))

    def _begin_above(self, index: int) -> tuple[int, int]:
        """Which line is the first, and how many of its rows are hidden, when a line ends at the bottom."""
        left = self.rows_high
        if not self._wraps:
            return max(0, index - left + 1), 0
        while index >= 0 and (left := left - self._rows.height(self._window.lines[index])) > 0:
            index -= 1
        return max(0, index), max(0, -left) if index >= 0 else 0


def _in_style(line: Line, style: str) -> Line:
    """The line with one more style, below that of what was found in it."""
    parts: list[Span] = []
    for span in line:
        is_found = HIT in span.style.split()
        parts += [span._replace(style=f"{style} {span.style}")] if is_found else styled((span,), style)
    return tuple(parts)
