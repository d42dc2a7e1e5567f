"""Text to be read: paragraphs wrapped to the width, scrolled by lines. They must be safe to show."""

from collections.abc import Iterable

from rich.cells import chop_cells

from jobtui.render.spans import Line, Span
from jobtui.render.text import width
from jobtui.widgets.row_view import RowView


class TextPane(RowView):
    """Paragraphs. A paragraph with no text is an empty line."""

    HEADINGS = 0

    def __init__(self, paragraphs: Iterable[Span] = (), *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._paragraphs = tuple(paragraphs)
        self._rows: list[Span] = []
        self.shows_cursor = False

    @property
    def count(self) -> int:
        """How many lines it has at this width."""
        return len(self._rows)

    def set_text(self, paragraphs: Iterable[Span]) -> None:
        """Show other paragraphs."""
        self._paragraphs = tuple(paragraphs)
        self._wrap()
        self.repaint()

    def row(self, index: int) -> Line:
        """A line of text."""
        return (self._rows[index],)

    def go(self, index: int) -> None:
        """Scroll, as there is no cursor to be seen: a move by one line moves the text by one."""
        step = index - self.cursor
        self.top = max(0, min(self.top + step, self.count - self.page))
        self.cursor = self.top
        self.repaint()

    def keep_in_view(self) -> None:
        """Wrap anew, and show no emptiness below the last line."""
        self._wrap()
        self.top = self.cursor = max(0, min(self.top, self.count - self.page))

    def _wrap(self) -> None:
        cells = max(2, self.size.width - 2)
        self._rows = [
            Span(f" {part}", span.style) for span in self._paragraphs for part in wrapped(span.text, cells)
        ]


def wrapped(text: str, cells: int) -> list[str]:
    """A safe text in lines of at most so many cells, broken at blanks where there are any."""
    lines: list[str] = []
    line = ""
    for word in text.split(" "):
        joined = f"{line} {word}" if line else word
        if width(joined) <= cells:
            line = joined
            continue
        if line:
            lines.append(line)
        *full, line = chop_cells(word, cells) or [""]
        lines += full
    return [*lines, line]
