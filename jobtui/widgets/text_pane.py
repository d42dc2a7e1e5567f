"""Text to be read: paragraphs wrapped to the width, scrolled by lines. They must be safe to show."""

from collections.abc import Iterable
from typing import NamedTuple

from jobtui.render.spans import Line, Span
from jobtui.render.wrapping import wrapped
from jobtui.widgets.row_view import RowView


class Paragraph(NamedTuple):
    """Some text in a style, an empty line without text. Its lines after the first begin at `hang`."""

    text: str = ""
    style: str = ""
    hang: int = 0


class TextPane(RowView):
    """Paragraphs, one below the other."""

    HEADINGS = 0

    def __init__(self, paragraphs: Iterable[Paragraph] = (), *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._paragraphs = tuple(paragraphs)
        self._rows: list[Span] = []
        self.shows_cursor = False

    @property
    def count(self) -> int:
        """How many lines it has at this width."""
        return len(self._rows)

    def set_text(self, paragraphs: Iterable[Paragraph], *, follow: bool = False) -> None:
        """Show other paragraphs; with `follow` stay at the end when it is in view."""
        at_end = follow and self.top + self.page >= self.count
        self._paragraphs = tuple(paragraphs)
        self._wrap()
        if at_end:
            self.top = self.cursor = max(0, self.count - self.page)
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
        cells = max(2, self.cells - 2)
        self._rows = [
            Span(f" {line}", part.style)
            for part in self._paragraphs
            for line in wrapped(part.text, cells, hang=part.hang)
        ]
