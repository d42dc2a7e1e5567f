"""Why a job stands as it does: text with a cursor, wrapped to the width. Some of it can be opened."""

from collections.abc import Iterable

from jobtui.render.spans import Line, Span
from jobtui.render.text import fit, width
from jobtui.render.why import Item, Part
from jobtui.render.wrapping import wrapped
from jobtui.widgets.row_view import RowView


class WhyList(RowView):
    """The parts of a verdict, one below the other. The cursor begins at the first that can be opened."""

    HEADINGS = 0

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._parts: tuple[Part, ...] = ()
        self._rows: list[tuple[Span, Item | None]] = []
        self._held = False

    @property
    def count(self) -> int:
        """How many lines there are at this width."""
        return len(self._rows)

    @property
    def item(self) -> Item | None:
        """The evidence or the command under the cursor."""
        return self._rows[self.cursor][1] if self._rows else None

    def set_parts(self, parts: Iterable[Part]) -> None:
        """Show these. The cursor stays with what it is on, as far as that is still there."""
        self._parts = tuple(parts)
        self.keep_in_view()
        self.repaint()

    def go(self, index: int) -> None:
        """Put the cursor on a line, and keep it there from now on."""
        self._held = True
        super().go(index)

    def row(self, index: int) -> Line:
        """A line."""
        return (self._rows[index][0],)

    def keep_in_view(self) -> None:
        """Wrap anew, and keep the cursor with what it is on; at first on what can be opened first."""
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


def _lines(part: Part, cells: int) -> list[str]:
    if part.whole or width(part.text) <= cells:
        return wrapped(part.text, cells, hang=4)
    return [fit(part.text, cells)]
