"""Lines in several colours to be read: folded at the width, scrolled. They must be safe to show.

Folding takes up to 4 µs for a character: many lines are folded in parts, between which keys are heard.
"""

from collections.abc import Iterable
from itertools import pairwise

from rich.cells import chop_cells

from jobtui.render.spans import Line, Span
from jobtui.widgets.row_view import RowView

AT_ONCE = 6_000
"""Characters that are folded before others have their turn."""


class SpanPane(RowView):
    """Lines, one below the other."""

    HEADINGS = 0

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: tuple[Line, ...] = ()
        self._rows: list[Line] = []
        self._next = 0
        self._folding = 0
        self._wanted = 0
        self.shows_cursor = False

    @property
    def text(self) -> str:
        """All its lines, as they may be copied."""
        return "\n".join("".join(span.text for span in line) for line in self._lines)

    @property
    def count(self) -> int:
        """How many rows its lines take at this width, as far as they are folded."""
        return len(self._rows)

    def set_lines(self, lines: Iterable[Line]) -> None:
        """Show other lines, from where it was scrolled to."""
        self._lines = tuple(lines)
        self.keep_in_view()

    def row(self, index: int) -> Line:
        """A row of a line."""
        return self._rows[index]

    def go(self, index: int) -> None:
        """Scroll, as there is no cursor to be seen: a move by one line moves the text by one."""
        self._wanted = max(0, index)
        self._settle()

    def scroll_rows(self, rows: int) -> None:
        """Move the rows."""
        self.go(self.top + rows)

    def keep_in_view(self) -> None:
        """Fold anew, and show no emptiness below the last line."""
        self._rows, self._next = [], 0
        self._folding += 1
        self._fold(self._folding)

    def _fold(self, folding: int) -> None:
        """Fold some more lines, unless it has begun anew meanwhile."""
        if folding != self._folding:
            return
        cells, left = max(2, self.cells - 2), AT_ONCE
        while left > 0 and self._next < len(self._lines):
            line = self._lines[self._next]
            self._rows += folded(line, cells)
            self._next += 1
            left -= sum(len(span.text) for span in line)
        if self._next < len(self._lines):
            self.call_later(self._fold, folding)
        self._settle()

    def _settle(self) -> None:
        """Be where it is wanted, as far as there are rows."""
        self.top = self.cursor = max(0, min(self._wanted, self.count - self.page))
        if self._next == len(self._lines):
            self._wanted = self.top
        self.repaint()


def folded(line: Line, cells: int) -> list[Line]:
    """A line in rows of at most so many cells, each with a blank before it."""
    rows: list[list[Span]] = [[Span(" ")]]
    left = cells
    for span in line:
        for part in _parts(span, left, cells):
            if part.width > left:
                rows.append([Span(" ")])
                left = cells
            rows[-1].append(part)
            left -= part.width
    return [tuple(row) for row in rows]


def _parts(span: Span, left: int, cells: int) -> list[Span]:
    """A span in pieces of which the first fits into what is left of a row."""
    if span.width <= left:
        return [span]
    if span.text.isascii():  # one cell each
        texts = (span.text[begin:end] for begin, end in pairwise(_cuts(span.text, left, cells)))
        return [Span(text, span.style, len(text)) for text in texts if text]
    first, *rest = chop_cells(span.text, left) if left > 0 else ("", span.text)
    parts = [first, *(piece for text in ["".join(rest)] if text for piece in chop_cells(text, cells))]
    return [Span(part, span.style) for part in parts if part]


def _cuts(text: str, left: int, cells: int) -> list[int]:
    """Where to part a text: behind a blank where one is near the end of the row, else at its end."""
    cuts, at, room = [0], 0, left
    while len(text) - at > room:
        blank = text.rfind(" ", at, at + room) + 1
        at = blank if blank > at + room // 2 else at + room
        cuts.append(at)
        room = cells
    return [*cuts, len(text)]
