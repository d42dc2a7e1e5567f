"""Lists and tables of records of any kind, one a row. The cursor stays with its record while rows move."""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from textual import events
from textual.message import Message

from jobtui.analysis.incidents import Incident
from jobtui.analysis.timeline import JobLine
from jobtui.model.clock import Nanos
from jobtui.model.health import SourceHealth, SourceState
from jobtui.model.job_reader import RunFile
from jobtui.model.jobs import Run
from jobtui.model.numbers import counted
from jobtui.render.columns import Column, TableColumn, TableLines, blank_columns
from jobtui.render.incidents import HEADINGS, incident_row, row_cells
from jobtui.render.job_files import file_line
from jobtui.render.log_lines import job_line, tag_cells
from jobtui.render.runs import run_lines
from jobtui.render.sources import judge, labels
from jobtui.render.spans import Line, Span
from jobtui.render.text import Zone, clock_time, fit, width
from jobtui.widgets.row_view import Move, RowView

Record = TypeVar("Record")


class RecordList(RowView, Generic[Record]):
    """Records in the order they are handed over. Subclasses give `row`, and `key_of` where records change."""

    class Highlighted(Message):
        """The record under the cursor is another, none, or has changed."""

        def __init__(self, record: Any) -> None:
            self.record = record
            super().__init__()

    class Opened(Message):
        """The user opened the record under the cursor."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        super().__init__()
        self.records: Sequence[Record] = tuple(records)
        self._held: Hashable = None
        self._told: Record | None = None

    def key_of(self, record: Record) -> Hashable:
        return record

    @property
    def count(self) -> int:
        return len(self.records)

    @property
    def record(self) -> Record | None:
        return self.records[self.cursor] if self.records else None

    @property
    def held_at(self) -> int | None:
        """Where the record is now on which somebody put the cursor, None where there is none."""
        keys = enumerate(map(self.key_of, self.records)) if self._held is not None else ()
        return next((at for at, key in keys if key == self._held), None)

    def set_records(self, records: Iterable[Record], at: int | None = None) -> None:
        """Show these; on the first row the cursor stays with whatever comes first.

        With `at` it is put on that row, and who put it there needs no message.
        """
        self.records = tuple(records)
        if at is not None:
            self.cursor = at
        elif (held := self.held_at) is not None:
            self.top += held - self.cursor
            self.cursor = held
        self.keep_in_view()
        self.repaint()
        if at is not None:
            self._told = self.record
        self._tell()

    def go(self, index: int) -> None:
        super().go(index)
        self._held = self.key_of(self.record) if self.record is not None else None
        self._tell()

    def move(self, move: Move) -> None:
        super().move(move)
        if move is Move.TOP:
            self._held = None

    def on_click(self, event: events.Click) -> None:
        if event.chain == 2 and self.record is not None:
            self.post_message(self.Opened())

    def _tell(self) -> None:
        if self.record != self._told:
            self._told = self.record
            self.post_message(self.Highlighted(self.record))


LOOKED_AT = 200
"""Columns that say nothing of the first so many records are left out."""


class RecordTable(RecordList[Record]):
    """Records in columns, which are data. `look` gives what cells depend on beside their record."""

    def __init__(
        self,
        columns: Sequence[TableColumn[Record, Any]],
        look: Callable[[], object],
        key_of: Callable[[Record], Hashable],
    ) -> None:
        super().__init__()
        self._columns = tuple(columns)
        self._look = look
        self._key_of = key_of
        self._blank: frozenset[str] = frozenset()
        self._drawn: tuple[object, TableLines[Record, Any]] | None = None
        self.sorted_by: str | None = None
        self.reverse = False
        self.marked: set[Hashable] = set()
        """The keys of the records that are marked."""

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
        return self._lines.heading(self.sorted_by, reverse=self.reverse)

    def row(self, index: int) -> Line:
        record = self.records[index]
        return self._lines.row(record, self._look(), is_marked=self.key_of(record) in self.marked)

    def set_records(self, records: Iterable[Record], at: int | None = None) -> None:
        known = tuple(records)
        some = known[:LOOKED_AT]
        self._blank = blank_columns(self._columns, some, self._look()) if some else frozenset()
        super().set_records(known, at)

    @property
    def _lines(self) -> TableLines[Record, Any]:
        drawn_for = self.cells, self._blank
        if self._drawn is None or self._drawn[0] != drawn_for:
            columns = [column for column in self._columns if column.key not in self._blank]
            self._drawn = drawn_for, TableLines(columns, self.cells)
        return self._drawn[1]


class TimedList(RecordList[Record]):
    """Records that are told with their ages, or the times of day."""

    absolute = False

    def __init__(self, now: Callable[[], Nanos]) -> None:
        super().__init__()
        self._now = now


class FileList(TimedList[RunFile]):
    """The files of a run directory: names, sizes and ages. The cursor stays with its file."""

    _left_out = 0

    def set_files(self, files: Sequence[RunFile], left_out: int = 0, *, absolute: bool = False) -> None:
        name = self.record.name if self.record is not None else None
        self._left_out, self.absolute = left_out, absolute
        self.set_records(files, next((at for at, file in enumerate(files) if file.name == name), 0))

    def key_of(self, record: RunFile) -> str:
        return record.name

    def heading(self, y: int) -> Line:
        more = f", {self._left_out:,} more not listed" if self._left_out else ""
        words = f" {counted(self.count, 'file')}{more}" if self.records else ""
        return (Span(fit(words, self.cells), "heading", self.cells),)

    def row(self, index: int) -> Line:
        return file_line(self.records[index], self._now(), self.cells, absolute=self.absolute)


class IncidentList(TimedList[Incident]):
    """Groups of jobs that went wrong alike, the largest first; those that are like no other come last."""

    def key_of(self, record: Incident) -> Hashable:
        return record.code, record.first

    def heading(self, y: int) -> Line:
        return tuple(Span(text, "heading") for text in row_cells(*HEADINGS, self.cells))

    def row(self, index: int) -> Line:
        return incident_row(self.records[index], self._now(), self.cells, absolute=self.absolute)


class RunList(TimedList[Run]):
    """The runs of a job, oldest first; the one under the cursor is the one that is shown everywhere else."""

    _heading = Span("")
    _rows: Sequence[Span] = ()

    def set_runs(self, runs: Sequence[Run], number: int | None) -> None:
        at = next((at for at, run in enumerate(runs) if run.number == number), len(runs) - 1)
        self.set_records(runs, at)

    def key_of(self, record: Run) -> int:
        return record.number

    def tick(self) -> None:
        if any(run.status.is_live for run in self.records):
            self.keep_in_view()
            self.repaint()

    def keep_in_view(self) -> None:
        super().keep_in_view()
        if self.records:
            self._heading, self._rows = run_lines(self.records, self._now(), max(1, self.cells - 2))

    def heading(self, y: int) -> Line:
        return (Span(" "), self._heading)

    def row(self, index: int) -> Line:
        return (Span(" "), self._rows[index])


class JobLog(RecordList[JobLine]):
    """The lines of all logs that belong to one job. On the last one the cursor goes on with new ones."""

    def __init__(self) -> None:
        super().__init__()
        self._tags: Mapping[str, str] = {}
        self._tag_cells = 1

    def set_lines(self, lines: Sequence[JobLine], tags: Mapping[str, str]) -> None:
        before, at_end = self.record, self.cursor >= self.count - 1
        self._tags, self._tag_cells = tags, tag_cells(tags.values())
        places = {line.place: at for at, line in enumerate(lines)}
        found = None if before is None or at_end else places.get(before.place)
        self.set_records(lines, len(lines) - 1 if found is None else found)

    def key_of(self, record: JobLine) -> Hashable:
        return record.place

    def heading(self, y: int) -> Line:
        words = f" {counted(self.count, 'line')} of {counted(len(self._tags), 'log')}"
        return (Span(fit(words, self.cells), "heading", self.cells),)

    def row(self, index: int) -> Line:
        line = self.records[index]
        return job_line(line, self._tags.get(line.source, ""), self._tag_cells, self.cells)


GLYPHS: Mapping[SourceState, tuple[str, str]] = {
    SourceState.STARTING: ("○", "dim"),
    SourceState.OK: ("●", "good"),
    SourceState.PARTIAL: ("●", "warning"),
    SourceState.DOWN: ("✗", "error"),
}
KIND_CELLS = 14
AGE_CELLS = 24
NUMBER_CELLS = 10
LEAST_NAME_CELLS = 18


class SourceList(TimedList[SourceHealth]):
    """Every source: what it is, how old it is, how much was read and left out."""

    _labels: Sequence[str] = ()

    def set_sources(self, sources: Sequence[SourceHealth], *, absolute: bool = False) -> None:
        self._labels, self.absolute = labels(sources), absolute
        self.set_records(sources)

    def key_of(self, record: SourceHealth) -> str:
        return record.name

    def heading(self, y: int) -> Line:
        names = self._cells("", "SOURCE", "KIND", "AGE", "RECORDS", "SKIPPED")
        return tuple(Span(text, "heading") for text in names)

    def row(self, index: int) -> Line:
        source = self.records[index]
        glyph, style = GLYPHS[source.state]
        words, words_style = judge(source, self._now())
        if self.absolute and source.read_at is not None:
            words = f"read {clock_time(source.read_at)}{Zone.mark()}"
        skipped = f"{source.skipped:,}" if source.skipped else ""
        cells = self._cells(glyph, self._labels[index], source.kind, words, f"{source.records:,}", skipped)
        styles = (style, "", "dim", words_style, "dim", "warning")
        return tuple(Span(text, own) for text, own in zip(cells, styles, strict=True))

    def _cells(
        self, glyph: str, name: str, kind: str, words: str, records: str, skipped: str
    ) -> tuple[str, ...]:
        """The texts cut to their columns; numbers, then the kind, go where it is narrow."""
        left = self.cells - 3 - LEAST_NAME_CELLS
        age_cells = max(0, min(AGE_CELLS, left))
        left -= age_cells
        kind_cells = KIND_CELLS if left >= KIND_CELLS else 0
        left -= kind_cells
        number_cells = NUMBER_CELLS if left >= 2 * NUMBER_CELLS else 0
        left -= 2 * number_cells
        return (
            fit(f" {glyph}", 3),
            fit(name, max(0, LEAST_NAME_CELLS + left - 1)) + " " * (LEAST_NAME_CELLS + left > 0),
            fit(kind, kind_cells),
            fit(words, age_cells),
            fit(records, number_cells, align="right"),
            fit(skipped, number_cells, align="right"),
        )


REASON_CELLS = 24
"""With less room for them reasons are left out."""
SIGN_CELLS, NAME_CELLS, SORT_CELLS = 3, 12, 3


class Choice(NamedTuple):
    """A choice and its reason; both safe to show."""

    words: str
    reason: str = ""


class ChoiceList(RecordList[Choice]):
    """Choices, each with a reason."""

    HEADINGS = 0

    def row(self, index: int) -> Line:
        words, reason = self.records[index]
        room = self.cells - 2
        widest = min(max(width(choice.words) for choice in self.records) + 2, room)
        if room - widest < REASON_CELLS:
            return (Span(fit(f" {words}", self.cells), "", self.cells),)
        return (Span(fit(f" {words}", widest + 1), ""), Span(fit(reason, room - widest), "dim"))


class MarkedList(RecordList[Choice]):
    """Choices of which any number can be marked."""

    HEADINGS = 0

    def __init__(self, choices: Iterable[Choice], marked: Iterable[int] = ()) -> None:
        super().__init__(choices)
        self._marked = set(marked)

    @property
    def marked(self) -> tuple[int, ...]:
        return tuple(sorted(self._marked))

    def toggle(self) -> None:
        if self.count:
            self._marked ^= {self.cursor}
        self.repaint()

    def toggle_all(self) -> None:
        self._marked = set() if len(self._marked) == self.count else set(range(self.count))
        self.repaint()

    def row(self, index: int) -> Line:
        words, reason = self.records[index]
        room = max(0, self.cells - SIGN_CELLS)
        name_cells = min(room, max(width(words), room // 2))
        sign, name = marked(words, name_cells, is_marked=index in self._marked)
        rest = room - name_cells
        return (sign, name, Span(fit(f"  {reason}", rest), "dim", rest))


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
        """Show the column under the cursor, or leave it out; one is shown at least."""
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
        arrow = ("▼" if self.reverse else "▲") if column.key == self.sort else ""
        sign, name = marked(column.key, NAME_CELLS, is_marked=column.key in self._shown)
        room = max(0, self.cells - SIGN_CELLS - NAME_CELLS - SORT_CELLS)
        return (sign, name, Span(fit(arrow, SORT_CELLS), "sorted"), Span(fit(column.about, room), "dim"))


def marked(words: str, cells: int, *, is_marked: bool) -> tuple[Span, Span]:
    sign = Span(" ✓ " if is_marked else "   ", "good", SIGN_CELLS)
    return sign, Span(fit(words, cells), "" if is_marked else "dim", cells)
