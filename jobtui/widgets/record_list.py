"""Lists and tables of records of any kind, one a row. The cursor stays with its record while rows move."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from textual import events
from textual.message import Message

from jobtui.render.columns import Cells, Column, TableColumn, TableLines, text_widths
from jobtui.render.spans import Line, Piece
from jobtui.render.text import fit
from jobtui.widgets.row_view import Move, RowView

Record = TypeVar("Record")


class RecordList(RowView, Generic[Record]):
    """Records in the order they are given. Subclasses give `row`, and `key_of` if records change."""

    @dataclass
    class Highlighted(Message):
        """There is another record under the cursor, or none, or it has changed."""

        record: Any

    class Opened(Message):
        """The user opened the record under the cursor."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        super().__init__()
        self.records: Sequence[Record] = tuple(records)
        self._held: Hashable = None
        self._announced: Record | None = None

    def key_of(self, record: Record) -> Hashable:
        return record

    @property
    def count(self) -> int:
        return len(self.records)

    @property
    def record(self) -> Record | None:
        return self.records[self.cursor] if self.records else None

    def set_records(self, records: Iterable[Record], at: int | None = None) -> None:
        """Show these. On the first row the cursor stays on that row.

        With `at` they are another list: the cursor is put on that row, without a message.
        """
        self.records = tuple(records)
        keys = enumerate(map(self.key_of, self.records)) if self._held is not None else ()
        if at is not None:
            self.cursor = at
        elif (held := next((n for n, key in keys if key == self._held), None)) is not None:
            self.follow(held)
        self.keep_in_view()
        self.repaint()
        if at is not None:
            self._announced = self.record
        self._announce()

    def follow(self, at: int) -> None:
        """Put the cursor on this row, on the same line of the screen.

        The first row stays visible while there is room for both: new records often come there.
        """
        if self.top or at >= self.page:
            self.top += at - self.cursor
        self.cursor = at

    def go(self, index: int) -> None:
        super().go(index)
        self._held = self.key_of(self.record) if self.record is not None else None
        self._announce()

    def move(self, move: Move) -> None:
        super().move(move)
        if move is Move.TOP:
            self._held = None

    def on_click(self, event: events.Click) -> None:
        if event.chain == 2 and self.record is not None:
            self.post_message(self.Opened())

    def _announce(self) -> None:
        if self.record != self._announced:
            self._announced = self.record
            self.post_message(self.Highlighted(self.record))


LOOKED_AT = 200
"""Columns that are empty for this many first records are left out."""


class RecordTable(RecordList[Record]):
    """Records in columns, which are data. `look` gives what cells depend on beside their record."""

    MARGIN = 1
    """Cells before the first column."""

    def __init__(
        self,
        columns: Sequence[TableColumn[Record, Any]],
        look: Callable[[], object],
        key_of: Callable[[Record], Hashable],
    ) -> None:
        super().__init__()
        self.columns = tuple(columns)
        self._look = look
        self._key_of = key_of
        self._texts: dict[str, int] = {}
        """The cells of the longest text seen in each column, 0 if it is empty in all that is shown."""
        self._laid_out: tuple[object, TableLines[Record, Any]] | None = None
        self.sorted_by: str | None = None
        self.reverse = False
        self.marked: set[Hashable] = set()

    def sort_by(self, key: str | None, *, reverse: bool = False) -> None:
        self.sorted_by, self.reverse = key, reverse

    def toggle_mark(self) -> None:
        if self.record is not None:
            self.marked ^= {self.key_of(self.record)}
            self.move(Move.DOWN)
            self.repaint()

    def forget_marks(self) -> None:
        self.marked.clear()
        self.repaint()

    def key_of(self, record: Record) -> Hashable:
        return self._key_of(record)

    def heading(self, y: int) -> Line:
        return self._lines.heading(self.sorted_by, self._look(), reverse=self.reverse)

    def row(self, index: int) -> Line:
        record = self.records[index]
        return self._lines.row(record, self._look(), is_marked=self.key_of(record) in self.marked)

    def set_records(self, records: Iterable[Record], at: int | None = None) -> None:
        known = tuple(records)
        texts = text_widths(self.columns, known[:LOOKED_AT], self._look(), self.cells) if known else {}
        seen = self._texts if at is None else {}
        self._texts = {key: size and max(size, seen.get(key, 0)) for key, size in texts.items()}
        super().set_records(known, at)

    def texts(self) -> Iterator[str]:
        """Each record, with all its columns."""
        for record in self.records:
            yield "  ".join(column.cell(record, self._look()) for column in self.columns)

    @property
    def _lines(self) -> TableLines[Record, Any]:
        laid_out_for = self.cells, self._texts, self.columns
        if self._laid_out is None or self._laid_out[0] != laid_out_for:
            self._laid_out = laid_out_for, TableLines(self.columns, self.cells, self.MARGIN, self._texts)
        return self._laid_out[1]


SIGN_CELLS, NAME_CELLS, SORT_CELLS = 3, 9, 2


class Choice(NamedTuple):
    """A choice and its reason; both safe to show."""

    words: str
    reason: str = ""


CHOICE_COLUMNS: tuple[TableColumn[Choice, object], ...] = (
    TableColumn("words", "", lambda choice, look: choice.words, Cells(20, 60, 10_000), 100,
                keeps_ends=True),
    TableColumn("reason", "", lambda choice, look: choice.reason, Cells(24, 60, 10_000), 50,
                style=lambda choice, look: "dim"),
)  # fmt: skip


class ChoiceList(RecordTable[Choice]):
    """Choices, each with a reason; some may be marked."""

    HEADINGS = 0

    def __init__(self, choices: Iterable[Choice]) -> None:
        super().__init__(CHOICE_COLUMNS, lambda: None, lambda choice: choice)
        self.set_records(choices)


class ColumnList(RecordList[Column]):
    """Columns of the job table: which are shown, in which order, and by which one the jobs are sorted."""

    HEADINGS = 0

    def __init__(self, columns: Sequence[Column], shown: Sequence[str]) -> None:
        super().__init__(columns)
        self.sort: str | None = None
        self.reverse = False
        self.set_shown(shown)

    @property
    def shown(self) -> tuple[str, ...]:
        return tuple(column.key for column in self.records if column.key in self._shown)

    def set_shown(self, shown: Sequence[str]) -> None:
        ranks = {key: rank for rank, key in enumerate(shown)}
        self.records = sorted(self.records, key=lambda column: ranks.get(column.key, len(ranks)))
        self._shown = set(shown)
        self.repaint()

    def toggle(self) -> None:
        """Show or hide the column under the cursor; at least one is shown."""
        key = self.records[self.cursor].key
        if self._shown != {key}:
            self._shown ^= {key}
        self.repaint()

    def shift(self, steps: int) -> None:
        to = max(0, min(self.cursor + steps, self.count - 1))
        columns = list(self.records)
        columns.insert(to, columns.pop(self.cursor))
        self.records = columns
        self.go(to)
        self.repaint()

    def sort_here(self) -> None:
        key = self.records[self.cursor].key
        if self.sort != key:
            self.sort, self.reverse = key, False
        elif not self.reverse:
            self.reverse = True
        else:
            self.sort, self.reverse = None, False
        self.repaint()

    def row(self, index: int) -> Line:
        column = self.records[index]
        is_shown = column.key in self._shown
        arrow = ("▼" if self.reverse else "▲") if column.key == self.sort else ""
        room = max(0, self.cells - SIGN_CELLS - NAME_CELLS - SORT_CELLS)
        return (
            Piece(" ✓ " if is_shown else "   ", "good", SIGN_CELLS),
            Piece(fit(column.key, NAME_CELLS), "" if is_shown else "dim", NAME_CELLS),
            Piece(fit(arrow, SORT_CELLS), "sorted"),
            Piece(fit(column.about, room), "dim"),
        )
