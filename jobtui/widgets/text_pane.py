"""Text to be read: paragraphs wrapped to the width, scrolled by lines. They must be safe to show."""

from collections.abc import Iterable
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import chop_cells

from jobtui.render.spans import Line, Span
from jobtui.render.text import telling, width, wrapped
from jobtui.widgets.row_view import RowView

if TYPE_CHECKING:
    from jobtui.render.verdicts import Item, WhyPart


class Paragraph(NamedTuple):
    """Some text in a style, an empty line without text. Its lines after the first begin at `hang`."""

    text: str = ""
    style: str = ""
    hang: int = 0


class TextPane(RowView):
    """Paragraphs, one below the other."""

    HEADINGS = 0

    def __init__(self, paragraphs: Iterable[Paragraph] = ()) -> None:
        super().__init__()
        self._paragraphs = tuple(paragraphs)
        self._rows: list[Span] = []
        self.shows_cursor = False

    @property
    def count(self) -> int:
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
        return (self._rows[index],)

    def go(self, index: int) -> None:
        step = index - self.cursor
        self.top = max(0, min(self.top + step, self.count - self.page))
        self.cursor = self.top
        self.repaint()

    def keep_in_view(self) -> None:
        self._wrap()
        self.top = self.cursor = max(0, min(self.top, self.count - self.page))

    def _wrap(self) -> None:
        cells = max(2, self.cells - 2)
        self._rows = [
            Span(f" {line}", part.style)
            for part in self._paragraphs
            for line in wrapped(part.text, cells, hang=part.hang)
        ]


AT_ONCE = 6_000
"""Characters that are folded before others have their turn."""


class SpanPane(RowView):
    """Lines, one below the other."""

    HEADINGS = 0

    def __init__(self) -> None:
        super().__init__()
        self._lines: tuple[Line, ...] = ()
        self._rows: list[Line] = []
        self._next = 0
        self._folding = 0
        self._wanted = 0
        self.shows_cursor = False

    @property
    def text(self) -> str:
        return "\n".join("".join(span.text for span in line) for line in self._lines)

    @property
    def count(self) -> int:
        return len(self._rows)

    def set_lines(self, lines: Iterable[Line]) -> None:
        self._lines = tuple(lines)
        self.keep_in_view()

    def row(self, index: int) -> Line:
        return self._rows[index]

    def go(self, index: int) -> None:
        self._wanted = max(0, index)
        self._settle()

    def scroll_rows(self, rows: int) -> None:
        self.go(self.top + rows)

    def keep_in_view(self) -> None:
        self._rows, self._next = [], 0
        self._folding += 1
        self._fold(self._folding)

    def _fold(self, folding: int) -> None:
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
        self.top = self.cursor = max(0, min(self._wanted, self.count - self.page))
        if self._next == len(self._lines):
            self._wanted = self.top
        self.repaint()


def folded(line: Line, cells: int) -> list[Line]:
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
    if span.width <= left:
        return [span]
    if span.text.isascii():  # one cell each
        texts = (span.text[begin:end] for begin, end in pairwise(_cuts(span.text, left, cells)))
        return [Span(text, span.style, len(text)) for text in texts if text]
    first, *rest = chop_cells(span.text, left) if left > 0 else ("", span.text)
    parts = [first, *(piece for text in ["".join(rest)] if text for piece in chop_cells(text, cells))]
    return [Span(part, span.style) for part in parts if part]


def _cuts(text: str, left: int, cells: int) -> list[int]:
    """Where to break a text: after a blank near the end of the row, else at its end."""
    cuts, at, room = [0], 0, left
    while len(text) - at > room:
        blank = text.rfind(" ", at, at + room) + 1
        at = blank if blank > at + room // 2 else at + room
        cuts.append(at)
        room = cells
    return [*cuts, len(text)]


class WhyList(RowView):
    """The parts of a verdict, one below the other. The cursor begins at the first that can be opened."""

    HEADINGS = 0

    def __init__(self) -> None:
        super().__init__()
        self._parts: tuple[WhyPart, ...] = ()
        self._rows: list[tuple[Span, Item | None]] = []
        self._held = False

    @property
    def count(self) -> int:
        return len(self._rows)

    @property
    def item(self) -> "Item | None":
        return self._rows[self.cursor][1] if self._rows else None

    def set_parts(self, parts: "Iterable[WhyPart]") -> None:
        self._parts = tuple(parts)
        self.keep_in_view()
        self.repaint()

    def go(self, index: int) -> None:
        self._held = True
        super().go(index)

    def row(self, index: int) -> Line:
        return (self._rows[index][0],)

    def keep_in_view(self) -> None:
        before = self.item
        self._wrap()
        items = [item for _, item in self._rows]
        if not self._held:
            # the verdict itself is in view as long as nobody went on
            first = next((at for at, item in enumerate(items) if item is not None), 0)
            self.cursor = first if first < self.page else 0
        elif before is not None and before in items and before != items[min(self.cursor, len(items) - 1)]:
            self.cursor = items.index(before)
        super().keep_in_view()
        if not self._held:
            self.top = 0

    def _wrap(self) -> None:
        cells = max(2, self.cells - 2)
        self._rows = [
            (Span(f" {line}", part.style), part.item) for part in self._parts for line in _lines(part, cells)
        ]


def _lines(part: "WhyPart", cells: int) -> list[str]:
    if part.whole or width(part.text) <= cells:
        return wrapped(part.text, cells, hang=4)
    return [telling(part.text, cells)]
