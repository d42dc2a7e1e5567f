"""A table of records of any kind, one a row. The cursor stays with its record while rows move."""

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, ClassVar, Generic, TypeVar

from textual import events
from textual.message import Message

from jobtui.render.columns import fit_columns, gap_for
from jobtui.render.spans import Line, Span
from jobtui.render.text import fit
from jobtui.widgets.row_view import Move, RowView

MARGIN = 1
"""Cells before the first column."""

Record = TypeVar("Record")


class RecordTable(RowView, Generic[Record]):
    """Records in the order they are handed over. `look` gives what their cells depend on beside them."""

    COLUMNS: ClassVar[Sequence[Any]]
    """As `render.agent_columns` and `render.trace_columns` have them."""

    class Highlighted(Message):
        """The cursor is on another record, or on none, or that one has changed."""

    class Opened(Message):
        """Somebody wants to see more of the record under the cursor."""

    def __init__(self, look: Callable[[], object], *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._look = look
        self._records: Sequence[Record] = ()
        self._sorted_by: str | None = None
        self._reverse = False
        self._held: Hashable = None
        self._told: Record | None = None

    def key_of(self, record: Record) -> Hashable:
        """What tells a record from every other, as long as it is known."""
        raise NotImplementedError

    @property
    def count(self) -> int:
        """How many records are shown."""
        return len(self._records)

    @property
    def record(self) -> Record | None:
        """The record under the cursor."""
        return self._records[self.cursor] if self._records else None

    def set_records(
        self, records: Iterable[Record], *, sorted_by: str | None = None, reverse: bool = False
    ) -> None:
        """Show these in this order; on the first row the cursor stays with whatever comes first."""
        self._records = tuple(records)
        self._sorted_by, self._reverse = sorted_by, reverse
        if self._held is not None:
            keys = enumerate(map(self.key_of, self._records))
            at = next((at for at, key in keys if key == self._held), None)
            if at is not None:
                self.top += at - self.cursor
                self.cursor = at
        self.keep_in_view()
        self.repaint()
        self._tell()

    def go(self, index: int) -> None:
        """Put the cursor on a row, and keep it with that record."""
        super().go(index)
        self._held = self.key_of(self.record) if self.record is not None else None
        self._tell()

    def move(self, move: Move) -> None:
        """Move the cursor; on top it stays with whatever comes first."""
        super().move(move)
        if move is Move.TOP:
            self._held = None

    def heading(self, y: int) -> Line:
        """Names of the columns; that of the sorted one stands out."""
        spans = [Span(" " * MARGIN, "", MARGIN)]
        for column, cells in self._placed():
            is_sorted = column.key == self._sorted_by
            arrow = ("▼" if self._reverse else "▲") if is_sorted else ""
            text = fit(column.header + arrow, cells, align=column.align)
            spans += [Span(text, "sorted" if is_sorted else "heading", cells), self._gap]
        return tuple(spans[:-1])

    def row(self, index: int) -> Line:
        """A record."""
        record, look = self._records[index], self._look()
        spans = [Span(" " * MARGIN, "", MARGIN)]
        for column, cells in self._placed():
            text = fit(column.cell(record, look), cells, align=column.align)
            spans += [Span(text, column.style(record, look), cells), self._gap]
        return tuple(spans[:-1])

    def on_click(self, event: events.Click) -> None:
        """A second click on a row opens it."""
        if event.chain == 2 and self.record is not None:
            self.post_message(self.Opened())

    @property
    def _room(self) -> int:
        return max(1, self.cells - MARGIN - 1)

    @property
    def _gap(self) -> Span:
        cells = gap_for(self._room)
        return Span(" " * cells, "", cells)

    def _placed(self) -> Sequence[tuple[Any, int]]:
        return fit_columns(self._room, self.COLUMNS)

    def _tell(self) -> None:
        """Say so when the cursor is on another record than before, or that one has changed."""
        if self.record != self._told:
            self._told = self.record
            self.post_message(self.Highlighted())
