"""How lines of a log lie on the screen: one row each, or several where they are wrapped. Drawn once each."""

from typing import NamedTuple

from jobtui.model.pages import LogLine, Place
from jobtui.render.crop import crop, rows
from jobtui.render.hits import Finder, marked
from jobtui.render.log_line import GUTTER_CELLS, NO_GUTTER, Look, body, gutter
from jobtui.render.spans import Line, Span, width_of

DRAWN = 600
"""Drawn lines that are kept."""
MORE_LEFT, MORE_RIGHT = "‹", "›"
NEVER_MORE = 50
"""Rows of one line at most."""


class Drawing(NamedTuple):
    """What decides how lines are drawn."""

    cells: int
    page: int
    wraps: bool = False
    left: int = 0
    look: Look = Look()
    find: Finder | None = None


class LogRows:
    """Draws lines; `set` begins anew with another drawing."""

    def __init__(self) -> None:
        self.drawing = Drawing(0, 1)
        self._bodies: dict[tuple[Place, int], Line] = {}

    def set(self, drawing: Drawing) -> None:
        """Draw in another way."""
        if (drawing.look, drawing.find) != (self.drawing.look, self.drawing.find):
            self._bodies.clear()
        self.drawing = drawing

    def forget(self) -> None:
        """Draw all lines anew: how times are shown has changed."""
        self._bodies.clear()

    def of(self, line: LogLine, *, bookmarked: bool = False) -> list[Line]:
        """The rows of a line, never more than there are on the screen."""
        drawing = self.drawing
        whole = self._body(line)
        cells = max(1, drawing.cells - GUTTER_CELLS)
        if drawing.wraps:
            shown = rows(whole, cells, min(drawing.page, NEVER_MORE))
        else:
            shown = [self._cropped(whole, cells)]
        hides_hit = _has_hit(whole) and not any(map(_has_hit, shown))
        first = gutter(line, bookmarked=bookmarked, hides_hit=hides_hit)
        return [(*(NO_GUTTER if at else first), *row) for at, row in enumerate(shown)]

    def height(self, line: LogLine) -> int:
        """How many rows it has."""
        return len(self.of(line)) if self.drawing.wraps else 1

    def width(self, line: LogLine) -> int:
        """How many cells it would take in one row."""
        return width_of(self._body(line))

    def _body(self, line: LogLine) -> Line:
        key = (line.place, line.size)
        found = self._bodies.get(key)
        if found is None:
            if len(self._bodies) >= DRAWN:
                self._bodies.clear()
            found = body(line, self.drawing.look)
            if self.drawing.find is not None:
                found = marked(found, self.drawing.find("".join(span.text for span in found)))
            self._bodies[key] = found
        return found

    def _cropped(self, whole: Line, cells: int) -> Line:
        left = self.drawing.left
        width = width_of(whole)
        if not left and width <= cells:
            return whole
        before = left > 0 and width > 0
        behind = width > left + cells
        middle = crop(whole, left + before, cells - before - behind)
        start = (Span(MORE_LEFT, "dim", 1),) if before else ()
        end = (Span(MORE_RIGHT, "dim", 1),) if behind else ()
        return (*start, *middle, *end)


def _has_hit(line: Line) -> bool:
    return any("hit" in span.style for span in line)
