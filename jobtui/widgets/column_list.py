"""Columns of the job table: which are shown, in which order, and by which one the jobs are sorted."""

from collections.abc import Sequence

from jobtui.render.columns import Column
from jobtui.render.spans import Line, Span
from jobtui.render.text import fit
from jobtui.widgets.row_view import RowView

NAME_CELLS = 12
SORT_CELLS = 3


class ColumnList(RowView):
    """One column a row; the shown ones have a sign."""

    HEADINGS = 0

    def __init__(self, columns: Sequence[Column], shown: Sequence[str], *, id: str | None = None) -> None:
        super().__init__(id=id)
        ranks = {key: rank for rank, key in enumerate(shown)}
        self._columns = sorted(columns, key=lambda column: ranks.get(column.key, len(ranks)))
        self._shown = set(shown)
        self.sort: str | None = None
        self.reverse = False

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self._columns)

    @property
    def key(self) -> str:
        """The column under the cursor."""
        return self._columns[self.cursor].key

    @property
    def shown(self) -> tuple[str, ...]:
        """The columns that are shown, from left to right."""
        return tuple(column.key for column in self._columns if column.key in self._shown)

    def set_shown(self, shown: Sequence[str]) -> None:
        """Show these, in their order."""
        ranks = {key: rank for rank, key in enumerate(shown)}
        self._columns.sort(key=lambda column: ranks.get(column.key, len(ranks)))
        self._shown = set(shown)
        self.repaint()

    def toggle(self) -> None:
        """Show the column under the cursor, or leave it out; one is shown at least."""
        if self._shown != {self.key}:
            self._shown ^= {self.key}
        self.repaint()

    def shift(self, steps: int) -> None:
        """Put the column under the cursor elsewhere, and go with it."""
        to = max(0, min(self.cursor + steps, self.count - 1))
        self._columns.insert(to, self._columns.pop(self.cursor))
        self.go(to)
        self.repaint()

    def sort_here(self) -> None:
        """Sort by the column under the cursor, then in reverse, then no longer."""
        if self.sort != self.key:
            self.sort, self.reverse = self.key, False
        elif not self.reverse:
            self.reverse = True
        else:
            self.sort, self.reverse = None, False
        self.repaint()

    def row(self, index: int) -> Line:
        """A column: whether it is shown, its name, whether it is sorted by, what it tells."""
        column = self._columns[index]
        is_shown = column.key in self._shown
        arrow = ("▼" if self.reverse else "▲") if column.key == self.sort else ""
        sign = Span(" ✓ " if is_shown else "   ", "good", 3)
        name = Span(fit(column.key, NAME_CELLS), "" if is_shown else "dim", NAME_CELLS)
        room = max(0, self.cells - 3 - NAME_CELLS - SORT_CELLS)
        return (sign, name, Span(fit(arrow, SORT_CELLS), "sorted"), Span(fit(column.about, room), "dim"))
