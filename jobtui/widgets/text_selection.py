"""Text that is selected with the mouse, as terminals do it: from one cell on over the lines to another."""

from collections.abc import Sequence
from typing import NamedTuple

from jobtui.render.crop import crop
from jobtui.render.spans import Line, padded, styled

STYLE = "selection"


class TextSelection(NamedTuple):
    """From the cell at `anchor` to that at `end`, both as (line, column), in either direction; both count."""

    anchor: tuple[int, int]
    end: tuple[int, int]

    def columns(self, y: int, cells: int) -> tuple[int, int]:
        """From where to where line `y` of so many cells is selected; the same twice where it is not."""
        (first, left), (last, right) = sorted(self)
        if not first <= y <= last:
            return 0, 0
        return left if y == first else 0, min(cells, right + 1) if y == last else cells

    def marked(self, line: Line, y: int, cells: int) -> Line:
        """Line `y` with what of it is selected in a style of its own."""
        start, stop = self.columns(y, cells)
        if start >= stop:
            return line
        line = padded(line, cells)
        chosen = styled(crop(line, start, stop - start), STYLE)
        return (*crop(line, 0, start), *chosen, *crop(line, stop, cells - stop))

    def text(self, lines: Sequence[Line], cells: int) -> str:
        """What is selected of these lines, without blanks at their ends."""
        (first, _), (last, _) = sorted(self)
        parts = []
        for y in range(first, min(last + 1, len(lines))):
            start, stop = self.columns(y, cells)
            parts.append("".join(span.text for span in crop(lines[y], start, stop - start)).rstrip())
        return "\n".join(parts)
