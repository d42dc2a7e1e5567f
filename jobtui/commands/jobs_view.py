"""The job table as text."""

from collections.abc import Callable, Iterator, Sequence

from jobtui.model.clock import Nanos
from jobtui.model.jobs import Job
from jobtui.render.cells import RowContext
from jobtui.render.columns import JOB_COLUMNS, Column
from jobtui.render.table import Cell, Head, table_lines
from jobtui.render.text import NONE

SHOWN = ("state", "age", "id", "name", "app", "mode", "host", "percent", "waits")
"""User and model are in the id, which is what one copies from here."""
KEPT = frozenset({"state", "id"})
HIGHEST_PRIORITY = 100
_WHOLE = 1_000

LateOf = Callable[[Job], str | None]

COLUMNS: tuple[Column, ...] = tuple(
    next(column for column in JOB_COLUMNS if column.key == key) for key in SHOWN
)


def view(jobs: Sequence[Job], now: Nanos, width: int | None, colour: bool, late_of: LateOf) -> Iterator[str]:
    """The lines of the table. Columns in which no job has a value are left out."""
    context = RowContext(now=now, late_of=late_of)
    rows = [
        [Cell(column.cell(job, context), column.style(job, context)) for column in COLUMNS] for job in jobs
    ]
    used = [
        at
        for at, column in enumerate(COLUMNS)
        if column.key in KEPT or any(row[at].text not in ("", NONE) for row in rows)
    ]
    heads = [_head(COLUMNS[at]) for at in used]
    return table_lines(heads, [[row[at] for at in used] for row in rows], width, colour)


def _head(column: Column) -> Head:
    """The column as a table of text has it: ids are never cut, they are there to be copied."""
    drop = 0 if column.key in KEPT else HIGHEST_PRIORITY - column.priority + 1
    least = _WHOLE if column.key == "id" else column.cells.least
    return Head(column.header, column.align, least, drop)
