"""Text to be read: paragraphs wrapped to the width, scrolled by lines. They must be safe to show."""

import re
from collections.abc import Iterable, Iterator

from jobtui.render.spans import Line, Paragraph, Piece, rows
from jobtui.render.text import SEPARATOR, fit_facts, telling, width, wrapped
from jobtui.widgets.frame import RuleLine
from jobtui.widgets.row_view import RowView

NARROW = 50
"""In fewer cells names have no column of their own."""


def wrapped_lines(
    paragraphs: Iterable[Paragraph], cells: int, hang: int = 0
) -> Iterator[tuple[Line, object]]:
    for part in paragraphs:
        text, indent = part.text, part.hang or hang
        if part.hang and cells < NARROW:
            text, indent = re.sub(" {2,}", "  ", text, count=1), 2
        if part.whole or width(text) <= cells:
            lines = wrapped(text, cells, hang=indent)
        else:
            lines = [fit_facts(text, cells) if SEPARATOR in text else telling(text, cells)]
        yield from (((Piece(f" {line}", part.style),), part.item) for line in lines)


class WrappedText(RowView):
    """Paragraphs, one below the other, each in as many rows as it needs."""

    HEADINGS = 0
    HANG = 0
    """Where further lines of a paragraph begin, if it does not say so itself."""

    def __init__(self, paragraphs: Iterable[Paragraph] = ()) -> None:
        super().__init__()
        self.paragraphs = tuple(paragraphs)
        self._rows: list[tuple[Line, object]] = []
        self._holds_end = False
        """Whether the end of a growing text is visible, and stays so."""

    @property
    def count(self) -> int:
        return len(self._rows)

    @property
    def text(self) -> str:
        return "\n".join(part.text for part in self.paragraphs)

    def set_text(self, paragraphs: Iterable[Paragraph], *, follow: bool = False) -> None:
        """Show other paragraphs; with `follow` stay at the end if it is visible."""
        self._holds_end = follow and self.top + self.page >= self.count
        self.paragraphs = tuple(paragraphs)
        self.keep_in_view()
        self.repaint()

    def row(self, index: int) -> Line:
        return self._rows[index][0]

    def keep_in_view(self) -> None:
        self._rows = [*self._wrapped(max(2, self.cells - 2))]
        if self._holds_end:
            self.top = self.cursor = max(0, self.count - self.page)
        super().keep_in_view()

    def _wrapped(self, cells: int) -> Iterator[tuple[Line, object]]:
        return wrapped_lines(self.paragraphs, cells, self.HANG)


class TextPane(WrappedText):
    rule: RuleLine | None = None
    """The rule below, if it is to say how much more there is."""

    def __init__(self, paragraphs: Iterable[Paragraph] = ()) -> None:
        super().__init__(paragraphs)
        self.shows_cursor = False

    def go(self, index: int) -> None:
        self.top = max(0, min(self.top + index - self.cursor, self.count - self.page))
        self.cursor = self.top
        self._holds_end &= self.top + self.page >= self.count
        self._say_rest()
        self.repaint()

    def scroll_rows(self, rows: int) -> None:
        self.go(self.cursor + rows)

    def keep_in_view(self) -> None:
        super().keep_in_view()
        self.cursor = self.top
        self._say_rest()

    def _say_rest(self) -> None:
        if self.rule is not None:
            rest = self.count - self.top - self.page
            self.rule.words = f"{rest:,} more below" if rest > 0 else ""


class SpanPane(TextPane):
    """Lines of several styles, one below the other."""

    def __init__(self) -> None:
        super().__init__()
        self._lines: tuple[Line, ...] = ()

    @property
    def text(self) -> str:
        return "\n".join("".join(span.text for span in line) for line in self._lines)

    def set_lines(self, lines: Iterable[Line]) -> None:
        self._lines = tuple(lines)
        self.keep_in_view()
        self.repaint()

    def _wrapped(self, cells: int) -> Iterator[tuple[Line, object]]:
        yield from (((Piece(" "), *row), None) for line in self._lines for row in rows(line, cells))


class WhyList(WrappedText):
    """The parts of a verdict. The cursor begins at the first that is about something that can be opened."""

    HANG = 4

    def __init__(self) -> None:
        super().__init__()
        self._held = False

    @property
    def item(self) -> object:
        return self._rows[self.cursor][1] if self._rows else None

    def go(self, index: int) -> None:
        self._held = True
        super().go(index)

    def keep_in_view(self) -> None:
        before = self.item
        super().keep_in_view()
        items = [item for _, item in self._rows]
        if not self._held:
            # the verdict itself is visible until somebody moves
            first = next((at for at, item in enumerate(items) if item is not None), 0)
            self.cursor, self.top = first if first < self.page else 0, 0
        elif before is not None and before in items and before != items[self.cursor]:
            self.cursor = items.index(before)
            self.top = max(min(self.top, self.cursor), self.cursor - self.page + 1)
