"""The columns of the job table, for the dashboard and the one-shot command alike; how they share its width.

Sorting is by the values of the record, never by what is shown.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol, Self, TypeVar

import msgspec

from jobtui.model.jobs import Job
from jobtui.render.cells import (
    RowContext,
    SortKey,
    driver_cell,
    duration_cell,
    elapsed_order,
    host_cell,
    mode_cell,
    percent_cell,
    plain_style,
    since_cell,
    since_order,
    state_cell,
    state_glyphs,
    state_style,
    status_order,
    text_cell,
    text_order,
    time_cell,
    waits_cell,
    waits_style,
    whole_host_cell,
)
from jobtui.render.text import Align

__all__ = ["DEFAULT_COLUMNS", "JOB_COLUMNS", "Column", "RowContext", "columns_for", "gap_for", "sort_jobs"]


class Cells(NamedTuple):
    """How many cells a column takes: at least, in a table with room for all, and at most."""

    least: int
    usual: int
    most: int


class Fitted(Protocol):
    """What is asked of a column when it is fitted into a width, whatever its table shows."""

    @property
    def cells(self) -> Cells:
        """How many cells it takes."""
        ...

    @property
    def priority(self) -> int:
        """Which goes first: that with the least."""
        ...

    @property
    def narrow(self) -> Self | None:
        """What takes its place in a narrow table."""
        ...

    @property
    def narrow_below(self) -> int:
        """Cells below which a table is narrow."""
        ...


AnyColumn = TypeVar("AnyColumn", bound=Fitted)


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """One column. `cell` gives text that may be shown as it is, `style` the name of its style.

    `sort` gives None where there is no value; such jobs come last in either direction. Of a table too narrow
    for all, the columns with the least `priority` go first. In a table narrower than `narrow_below` cells
    `narrow` takes its place.
    """

    key: str
    header: str
    about: str
    cell: Callable[[Job, RowContext], str]
    sort: Callable[[Job], SortKey]
    cells: Cells
    priority: int
    style: Callable[[Job, RowContext], str] = plain_style
    align: Align = "left"
    narrow: "Column | None" = None
    narrow_below: int = 0
    is_default: bool = True


def _fixed(cells: int) -> Cells:
    return Cells(cells, cells, cells)


_TIME = Cells(8, 19, 19)
_WHOLE_HOSTS_FROM = 160
"""Cells of a table in which there is room for the domain of a host."""

JOB_COLUMNS: tuple[Column, ...] = (
    Column(
        key="state",
        header="  STATE",
        about="what it is doing; ! where a person should look",
        cell=state_cell,
        sort=status_order,
        style=state_style,
        cells=_fixed(12),
        priority=100,
        narrow=Column(
            key="state",
            header="",
            about="what it is doing, as a sign",
            cell=state_glyphs,
            sort=status_order,
            style=state_style,
            cells=_fixed(2),
            priority=100,
        ),
        narrow_below=80,
    ),
    Column(
        key="age",
        header="AGE",
        about="time in its present state",
        cell=since_cell,
        sort=since_order,
        align="right",
        cells=_fixed(6),
        priority=80,
    ),
    Column(
        key="user",
        header="USER",
        about="whose job it is",
        cell=text_cell(lambda job: job.owner),
        sort=text_order(lambda job: job.owner),
        cells=Cells(8, 8, 12),
        priority=60,
    ),
    Column(
        key="name",
        header="JOB",
        about="name given by the user",
        cell=text_cell(lambda job: job.name),
        sort=text_order(lambda job: job.name),
        cells=Cells(14, 22, 40),
        priority=90,
    ),
    Column(
        key="app",
        header="APP",
        about="application",
        cell=text_cell(lambda job: job.app),
        sort=text_order(lambda job: job.app),
        cells=Cells(5, 7, 12),
        priority=40,
    ),
    Column(
        key="model",
        header="MODEL",
        about="what of the application is computed",
        cell=text_cell(lambda job: job.model),
        sort=text_order(lambda job: job.model),
        cells=Cells(12, 21, 32),
        priority=50,
    ),
    Column(
        key="mode",
        header="MODE",
        about="sequential, parallel or sbatch",
        cell=mode_cell,
        sort=text_order(lambda job: job.mode),
        cells=_fixed(6),
        priority=30,
    ),
    Column(
        key="host",
        header="HOST",
        about="where it runs, as far as known",
        cell=whole_host_cell,
        sort=text_order(lambda job: job.host),
        cells=Cells(4, 12, 40),
        priority=35,
        narrow=Column(
            key="host",
            header="HOST",
            about="where it runs, as far as known",
            cell=host_cell,
            sort=text_order(lambda job: job.host),
            cells=Cells(4, 6, 16),
            priority=35,
        ),
        narrow_below=_WHOLE_HOSTS_FROM,
    ),
    Column(
        key="percent",
        header="%",
        about="how much is done",
        cell=percent_cell,
        sort=lambda job: job.percent,
        align="right",
        cells=_fixed(3),
        priority=45,
    ),
    Column(
        key="waits",
        header="WAITS FOR",
        about="what it waits for, or why it failed",
        cell=waits_cell,
        sort=text_order(lambda job: job.message if job.status.is_live else job.error or job.alert),
        style=waits_style,
        cells=Cells(14, 24, 10_000),
        priority=70,
    ),
    Column(
        key="id",
        header="ID",
        about="id of the job",
        cell=text_cell(lambda job: job.id),
        sort=text_order(lambda job: job.id),
        cells=Cells(17, 38, 60),
        priority=65,
        is_default=False,
    ),
    Column(
        key="runs",
        header="RUNS",
        about="how often it was run",
        cell=lambda job, context: str(job.runs),
        sort=lambda job: job.runs,
        align="right",
        cells=_fixed(4),
        priority=28,
        is_default=False,
    ),
    Column(
        key="dur",
        header="DUR",
        about="how long it runs or ran",
        cell=duration_cell,
        sort=elapsed_order,
        align="right",
        cells=_fixed(6),
        priority=48,
        is_default=False,
    ),
    Column(
        key="queued",
        header="QUEUED",
        about="when it was submitted",
        cell=time_cell(lambda job: job.queued_at),
        sort=lambda job: job.queued_at,
        align="right",
        cells=_TIME,
        priority=26,
        is_default=False,
    ),
    Column(
        key="started",
        header="STARTED",
        about="when it started",
        cell=time_cell(lambda job: job.started_at),
        sort=lambda job: job.started_at,
        align="right",
        cells=_TIME,
        priority=25,
        is_default=False,
    ),
    Column(
        key="ended",
        header="ENDED",
        about="when it ended",
        cell=time_cell(lambda job: job.ended_at),
        sort=lambda job: job.ended_at,
        align="right",
        cells=_TIME,
        priority=24,
        is_default=False,
    ),
    Column(
        key="plan",
        header="PLAN",
        about="the user's plan",
        cell=text_cell(lambda job: job.plan),
        sort=text_order(lambda job: job.plan),
        cells=Cells(5, 8, 12),
        priority=20,
        is_default=False,
    ),
    Column(
        key="driver",
        header="DRIVER",
        about="what starts its agent",
        cell=driver_cell,
        sort=text_order(lambda job: job.driver),
        cells=Cells(6, 12, 20),
        priority=22,
        is_default=False,
    ),
    Column(
        key="system",
        header="SYSTEM",
        about="the system it belongs to",
        cell=text_cell(lambda job: job.system),
        sort=text_order(lambda job: job.system),
        cells=Cells(6, 8, 12),
        priority=15,
        is_default=False,
    ),
    Column(
        key="source",
        header="SOURCE",
        about="the source it was read from",
        cell=text_cell(lambda job: job.source),
        sort=text_order(lambda job: job.source),
        cells=Cells(6, 20, 40),
        priority=10,
        is_default=False,
    ),
)
DEFAULT_COLUMNS = tuple(column for column in JOB_COLUMNS if column.is_default)

_ESSENTIAL = 80
"""Columns of this priority and above are squeezed before one of them is dropped."""
_SQUEEZED = 6
_WIDE = 100
"""From this width on two blanks stand between columns, below it one."""


def gap_for(width: int) -> int:
    """How many blanks stand between two columns of a table `width` cells wide."""
    return 2 if width >= _WIDE else 1


def columns_for(width: int, chosen: Sequence[Column] = DEFAULT_COLUMNS) -> tuple[tuple[Column, int], ...]:
    """The columns of jobs that are shown in a table `width` cells wide; as `fit_columns` says."""
    return fit_columns(width, chosen)


def fit_columns(width: int, chosen: Sequence[AnyColumn]) -> tuple[tuple[AnyColumn, int], ...]:
    """The columns that are shown in a table `width` cells wide, with the cells of each; at least one.

    With `gap_for(width)` blanks between them they fill no more than `width`. Columns are dropped by priority
    until the others have the least they need; what is left over is shared. The essential ones are squeezed
    before they are dropped.
    """
    gap = gap_for(width)
    kept = [_variant(column, width) for column in chosen]
    while len(kept) > 1 and not _have_room([column.cells.least for column in kept], gap, width):
        last = min(kept, key=lambda column: column.priority)
        if last.priority >= _ESSENTIAL and _have_room([_squeezed(column) for column in kept], gap, width):
            break
        kept.remove(last)
    room = max(1, width - gap * (len(kept) - 1))
    return tuple(zip(kept, _shared(kept, room), strict=True))


def _variant(column: AnyColumn, width: int) -> AnyColumn:
    return column.narrow if column.narrow is not None and width < column.narrow_below else column


def _squeezed(column: Fitted) -> int:
    return min(column.cells.least, _SQUEEZED)


def _have_room(sizes: Sequence[int], gap: int, width: int) -> bool:
    return sum(sizes) + gap * (len(sizes) - 1) <= width


def _shared(columns: Sequence[Fitted], room: int) -> list[int]:
    """How many of the cells in `room` each gets: the least, then towards the usual, then towards the most."""
    sizes = [min(_squeezed(column), room) for column in columns]
    for step in range(len(Cells._fields)):
        goals = [column.cells[step] for column in columns]
        spare = room - sum(sizes)
        # the smallest wishes first: a few cells complete an id, and only shorten a long text a little
        waiting = sorted(
            (i for i in range(len(sizes)) if goals[i] > sizes[i]), key=lambda i: goals[i] - sizes[i]
        )
        for place, index in enumerate(waiting):
            given = min(goals[index] - sizes[index], spare // (len(waiting) - place))
            sizes[index] += given
            spare -= given
    return sizes


def sort_jobs(jobs: Iterable[Job], column: Column, *, reverse: bool = False) -> list[Job]:
    """Jobs in the order of a column, those without a value last in either direction, then by id."""
    keyed = [(column.sort(job), job) for job in sorted(jobs, key=lambda job: job.id)]
    with_value = [pair for pair in keyed if pair[0] is not None]
    with_value.sort(key=lambda pair: pair[0], reverse=reverse)  # type: ignore[arg-type, return-value]
    return [job for _, job in with_value] + [job for key, job in keyed if key is None]
