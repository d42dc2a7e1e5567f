"""The columns of the job table, for the dashboard and the one-shot command alike; how they share its width.

Sorting is by the values of the record, never by what is shown.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from jobtui.analysis.flags import JobContext, needs_person, waits_for
from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.health import FAULTS, ClockOf, here
from jobtui.model.jobs import Job, JobStatus, age_s, status_since
from jobtui.model.patterns import regex
from jobtui.render.spans import Line, Piece
from jobtui.render.styles import GLYPHS, NEEDS_PERSON_GLYPH, NEEDS_PERSON_STYLE, STATUS_STYLES, WORDS
from jobtui.render.table import painted
from jobtui.render.text import NONE, Align, age, date_time, duration, fit, gist, short_time, show, width

_DOMAIN_NAME = regex(r"(?=[^.]*[a-z])[\w-]+(\.[\w-]+)*\.[a-z][\w-]*\.?", re.IGNORECASE | re.ASCII)
"""With a letter in its first and last label, so that it is no address."""
MODES = {"sequential": "seq", "parallel": "par"}
_MINUTE_S = 60.0
_STATUS_ORDER = {status: index for index, status in enumerate(JobStatus)}
_RUNNING_ORDER = 1 << 64
"""Longer than any job ran, in nanoseconds."""

SortKey = str | int | float | None


class RowContext(JobContext, frozen=True, kw_only=True):
    """What a cell depends on besides its job.

    `relative` shows ages instead of times, `profile_of` tells which of several profiles names its source,
    `cause_of` the line of its output that says why it failed, if known.
    """

    now: Nanos
    now_at: ClockOf = here
    relative: bool = True
    cause_of: Callable[[Job], str | None] = lambda job: None
    profile_of: Callable[[str], str] = lambda source: ""

    def now_of(self, job: Job) -> Nanos:
        return self.now_at(job.source, self.now)


class TimeLook(NamedTuple):
    """What a cell depends on besides its record. `relative` shows ages instead of times."""

    now: Nanos
    relative: bool = True

    def since(self, at: Nanos | None) -> str:
        if at is None:
            return NONE
        if self.relative:
            return age(max(0.0, seconds_between(at, self.now)))
        return short_time(at, self.now)


class Cells(NamedTuple):
    """The width of a column in cells: at least, in a table with room for all columns, and at most."""

    least: int
    usual: int
    most: int


Record = TypeVar("Record")
Look = TypeVar("Look")


def no_style(record: object, look: object) -> str:
    return ""


class Narrow(NamedTuple):
    """What differs in a column of a table narrower than `below` cells; None if nothing does."""

    below: int
    cells: Cells
    cell: Callable[[Any, Any], str] | None = None
    header: str | None = None


class TableColumn(msgspec.Struct, Generic[Record, Look], frozen=True):
    """One column of a table. `cell` gives text that may be shown as it is, `style` the name of its style.

    Both depend on the record and on what the table knows besides it, such as the present time. `sort` gives
    None if there is no value; such records come last in either direction. If the table is too narrow, columns
    with the least `priority` are left out first. A text that does not fit is cut at its end, or in its middle
    if the column `keeps_ends`.
    """

    key: str
    header: str
    cell: Callable[[Record, Look], str]
    cells: Cells
    priority: int
    align: Align = "left"
    about: str = ""
    sort: Callable[[Record], SortKey] = lambda record: None
    style: Callable[[Record, Look], str] = no_style
    keeps_ends: bool = False
    narrow: tuple[Narrow, ...] = ()
    """The widest first."""
    times_header: str = ""
    """The header where times are shown instead of ages, if it is another one."""


AnyColumn = TypeVar("AnyColumn", bound=TableColumn[Any, Any])


def text_column(
    key: str, header: str, get: Callable[[Record], str | None], cells: Cells, priority: int, **more: Any
) -> TableColumn[Record, Any]:
    """A text; `more` are further fields of the column."""
    return TableColumn(key, header, text_cell(get), cells, priority, sort=text_order(get), **more)


def count_column(
    key: str, header: str, get: Callable[[Record], int | None], cells: Cells, priority: int
) -> TableColumn[Record, Any]:
    """A number, sorted from the greatest; empty if there is none."""
    return TableColumn(
        key, header, lambda record, look: "" if (count := get(record)) is None else f"{count:,}", cells,
        priority, "right", sort=lambda record: -(get(record) or 0),
    )  # fmt: skip


def time_column(
    key: str, header: str, get: Callable[[Record], Nanos | None], cells: Cells, priority: int, **more: Any
) -> TableColumn[Record, TimeLook]:
    return TableColumn(
        key, header, lambda record, look: look.since(get(record)), cells, priority, "right",
        sort=lambda record: None if (at := get(record)) is None else -at, **more,
    )  # fmt: skip


def in_style(
    style: Callable[[Record, Look], str], *columns: TableColumn[Record, Look]
) -> tuple[TableColumn[Record, Look], ...]:
    return tuple(replace(column, style=style) if column.style is no_style else column for column in columns)


def sort_records(
    records: Iterable[Record],
    columns: Iterable[TableColumn[Record, Any]],
    key: str | None,
    *,
    reverse: bool = False,
) -> list[Record]:
    """Records in the order of a column, those without a value last in either direction, else as they were."""
    column = next((column for column in columns if column.key == key), None)
    if column is None:
        return list(records)[::-1] if reverse else list(records)
    keyed = [(column.sort(record), record) for record in records]
    with_value = [pair for pair in keyed if pair[0] is not None]
    with_value.sort(key=lambda pair: pair[0], reverse=reverse)  # type: ignore[arg-type, return-value]
    return [record for _, record in with_value] + [record for key, record in keyed if key is None]


def plain_style(job: Job, context: RowContext) -> str:
    settled = not job.status.is_live and job.status is not JobStatus.FAILED
    return "settled" if settled else ""


def text_cell(get: Callable[[Record], str | None]) -> Callable[[Record, object], str]:
    return lambda record, look: show(get(record) or "") or NONE


def text_order(get: Callable[[Record], str | None]) -> Callable[[Record], SortKey]:
    """Texts in the order of a dictionary; an empty text is no value."""
    return lambda record: (get(record) or "").casefold() or None


def short_host(host: str) -> str:
    """The first label of a DNS name; an address, or anything else, unchanged."""
    return host.partition(".")[0] if _DOMAIN_NAME.fullmatch(host) else host


def _glyphs(job: Job, context: RowContext, between: str = "") -> str:
    mark = NEEDS_PERSON_GLYPH if needs_person(job, context.now_of(job)) or context.is_disputed(job) else " "
    return f"{mark}{between}{GLYPHS[job.status]}"


def _care(job: Job, context: RowContext) -> str:
    return NEEDS_PERSON_STYLE if needs_person(job, context.now_of(job)) else ""


DISPUTED = "sources disagree"


def _reason_cell(job: Job, context: RowContext) -> str:
    """Why a live job waits, or why one that ended failed."""
    text = waits_for(job, context.now_of(job)) if job.status.is_live else None
    if text is None and job.status is not JobStatus.PENDING:
        text = context.cause_of(job) or (job.error or "").rstrip().rpartition("\n")[2] or job.alert
    if late := context.late_of(job):
        text = f"{late}; {text}" if text else late
    if context.is_disputed(job):
        text = f"{DISPUTED}, {text}" if text else DISPUTED
    return show(text) if text else ""


def _since_cell(job: Job, context: RowContext) -> str:
    """How long it has been in its state; for jobs that have ended to the minute, which is enough."""
    if context.relative:
        seconds = age_s(job, context.now_of(job))
        return age(seconds) if job.status.is_live else age(seconds, coarse_from_s=_MINUTE_S)
    return TimeLook(context.now, relative=False).since(status_since(job))


def _elapsed_cell(job: Job, context: RowContext) -> str:
    """How long it ran; coarser while it runs, to change less often."""
    words = age if job.status.is_live else duration
    return words(job.elapsed_s(context.now_of(job)))


def _elapsed_order(job: Job) -> SortKey:
    """How long a job ran; those still running come last, the earliest started at the end."""
    if job.started_at is None:
        return None
    return job.ended_at - job.started_at if job.ended_at is not None else _RUNNING_ORDER - job.started_at


def fixed(cells: int) -> Cells:
    return Cells(cells, cells, cells)


def at_least(cells: int) -> Cells:
    return Cells(cells, cells, 10_000)


Column = TableColumn[Job, RowContext]


def _time(key: str, about: str, get: Callable[[Job], Nanos | None], priority: int) -> Column:
    def cell(job: Job, context: RowContext) -> str:
        at = get(job)
        if at is None or context.relative:
            return TimeLook(context.now_of(job)).since(at)
        return date_time(at)

    return Column(
        key=key, header=key.upper(), about=about, cell=cell, sort=get, align="right", cells=Cells(8, 19, 19),
        priority=priority,
    )  # fmt: skip


_WIDE = 100
"""From this width on there are two blanks between columns, below it one."""
_WHOLE_HOSTS_FROM = 160
"""From this width in cells on hosts are shown with their domain."""

JOB_COLUMNS: tuple[Column, ...] = in_style(
    plain_style,
    Column("state", "  STATE", lambda job, context: f"{_glyphs(job, context, ' ')} {WORDS[job.status]}",
           fixed(12), 100, about="what it is doing; ! needs a person",
           style=lambda job, context: _care(job, context) or STATUS_STYLES[job.status],
           sort=lambda job: _STATUS_ORDER[job.status], narrow=(Narrow(80, fixed(2), _glyphs, ""),)),
    Column("age", "AGE", _since_cell, fixed(6), 80, about="time in its current state", times_header="SINCE",
           sort=lambda job: None if (since := status_since(job)) is None else -since, align="right"),
    text_column("user", "USER", lambda job: job.owner, Cells(8, 8, 12), 60, about="user who owns it"),
    text_column("name", "JOB", lambda job: job.name, Cells(20, 22, 40), 90, keeps_ends=True,
                about="name given by the user", narrow=(Narrow(_WIDE, Cells(14, 22, 40)),
                                                        Narrow(60, Cells(10, 10, 40)))),
    text_column("app", "APP", lambda job: job.app, Cells(5, 7, 24), 40, about="application"),
    text_column("model", "MODEL", lambda job: job.model, Cells(12, 21, 32), 50, keeps_ends=True,
                about="model that the application computes"),
    text_column("mode", "MODE", lambda job: MODES.get(job.mode, job.mode), fixed(6), 30,
                about="sequential, parallel or sbatch"),
    Column("host", "HOST", lambda job, context: show(context.with_agent(job).host or "") or NONE,
           Cells(4, 12, 40), 35, about="where it runs", sort=text_order(lambda job: job.host), narrow=(
               Narrow(_WHOLE_HOSTS_FROM, Cells(4, 6, 16),
                      lambda job, context: show(short_host(context.with_agent(job).host or "")) or NONE),)),
    Column("percent", "%", lambda job, context: NONE if job.percent is None else f"{job.percent:.0f}",
           fixed(3), 45, about="share that is done", sort=lambda job: job.percent, align="right"),
    Column("reason", "REASON", _reason_cell, Cells(30, 52, 10_000), 70,
           about="what it waits for, or why it failed",
           sort=text_order(lambda job: job.message if job.status.is_live else job.error or job.alert),
           style=_care, narrow=(Narrow(130, Cells(24, 52, 10_000)), Narrow(_WIDE, Cells(24, 40, 10_000)),
                                Narrow(60, Cells(12, 28, 10_000)))),
    text_column("id", "ID", lambda job: job.id, Cells(17, 38, 60), 65, keeps_ends=True,
                about="id of the job"),
    Column("runs", "RUNS", lambda job, context: str(job.runs), fixed(4), 28, about="how often it was run",
           sort=lambda job: job.runs, align="right"),
    Column("dur", "DUR", _elapsed_cell, fixed(6), 48, about="how long it runs or ran", sort=_elapsed_order,
           align="right"),
    _time("queued", "when it was submitted", lambda job: job.queued_at, 26),
    _time("started", "when it started", lambda job: job.started_at, 25),
    _time("ended", "when it ended", lambda job: job.ended_at, 24),
    text_column("plan", "PLAN", lambda job: job.plan, Cells(5, 8, 12), 20, about="the user's plan"),
    Column("driver", "DRIVER", lambda job, context: show(context.with_agent(job).driver or "") or NONE,
           Cells(6, 12, 20), 22, about="what starts its agent", sort=text_order(lambda job: job.driver)),
    text_column("system", "SYSTEM", lambda job: job.system, Cells(6, 8, 12), 15,
                about="the system it belongs to"),
    Column("profile", "PROFILE", lambda job, context: show(context.profile_of(job.source)) or NONE,
           Cells(7, 8, 16), 80, about="which of several profiles names its source",
           sort=text_order(lambda job: job.source)),
    text_column("source", "SOURCE", lambda job: job.source, Cells(6, 20, 40), 10,
                about="the source it was read from"),
)  # fmt: skip
DEFAULT_COLUMNS = JOB_COLUMNS[:10]
"""Those up to the reason; the others are shown if asked for."""

_ESSENTIAL = 80
"""Columns of this priority and above are squeezed before one of them is dropped."""
KEPT = 101
"""The priority of a column that always has its least width, even if the table is too narrow for it."""
_SQUEEZED = 6
NAME_CELLS = 12
"""A column whose longest text has no more cells holds names."""
NOT_KNOWN: Mapping[str, int] = {}


def gap_for(width: int) -> int:
    return 2 if width >= _WIDE else 1


def fit_columns(
    width: int, chosen: Sequence[AnyColumn], texts: Mapping[str, int] = NOT_KNOWN
) -> tuple[tuple[AnyColumn, int], ...]:
    """The columns that are shown in a table `width` cells wide, with the cells of each; at least one.

    With `gap_for(width)` blanks between them they fill no more than `width`. Columns are dropped by priority
    until the others have their least width; essential ones are squeezed before one of them is dropped. The
    rest goes to columns whose `texts` are longer, then to the last.
    A name is whole, or its column is dropped: a part names nothing; a sentence that is cut still says much.
    """
    gap = gap_for(width)
    kept = [_variant(column, width, texts.get(column.key, 0)) for column in chosen]
    while len(kept) > 1 and not _have_room([column.cells.least for column in kept], gap, width):
        last = min(kept, key=lambda column: column.priority)
        squeezed = list(map(_smallest, kept))
        if last.priority >= (_ESSENTIAL if _have_room(squeezed, gap, width) else KEPT):
            break
        kept.remove(last)
    room = max(1, width - gap * (len(kept) - 1))
    return tuple(zip(kept, _shared(kept, room, texts), strict=True))


def _variant(column: AnyColumn, width: int, longest: int = 0) -> AnyColumn:
    for below, cells, cell, header in column.narrow:
        if width < below:
            shown = column.header if header is None else header
            column = replace(column, cells=cells, cell=cell or column.cell, header=shown)
    if column.cells.least < longest <= min(NAME_CELLS, column.cells.most):
        column = replace(column, cells=column.cells._replace(least=longest))
    return column


def _smallest(column: TableColumn[Any, Any]) -> int:
    return column.cells.least if column.priority >= KEPT else min(column.cells.least, _SQUEEZED)


def _have_room(sizes: Sequence[int], gap: int, width: int) -> bool:
    return sum(sizes) + gap * (len(sizes) - 1) <= width


def _shared(columns: Sequence[TableColumn[Any, Any]], room: int, texts: Mapping[str, int]) -> list[int]:
    """How many of the cells in `room` each gets: first its least, then up to its usual, then up to its most.

    None gets more than its text takes; the rest goes to the last column, so that there are no gaps between.
    """
    sizes = [min(_smallest(column), room) for column in columns]
    whole = [
        column.cells.most if column.cells.least == column.cells.most or column.key not in texts
        else max(texts[column.key], width(column.header))
        for column in columns
    ]  # fmt: skip
    for step in range(len(Cells._fields)):
        goals = list(map(min, (column.cells[step] for column in columns), whole))
        spare = max(0, room - sum(sizes))
        # the smallest goals first: a few cells complete an id, and shorten a long text only a little
        short = (at for at in range(len(sizes)) if goals[at] > sizes[at])
        waiting = sorted(short, key=lambda at: goals[at] - sizes[at])
        for done, index in enumerate(waiting):
            given = min(goals[index] - sizes[index], -(-spare // (len(waiting) - done)))
            sizes[index] += given
            spare -= given
    sizes[-1] += max(0, min(room - sum(sizes), columns[-1].cells.most - sizes[-1]))
    return sizes


STEADY = frozenset({"state", "age", "name", "reason", "id"})
"""Columns that stay even if they are empty in every row."""


def text_widths(
    columns: Iterable[TableColumn[Record, Look]], records: Sequence[Record], look: Look, cells: int
) -> dict[str, int]:
    """The cells of the longest text of each column in a table of this width, 0 if all are empty."""
    return {
        column.key: max(
            (width(text) for text in _texts(column, records, look) if text not in BLANK), default=0
        )
        for column in (_variant(column, cells) for column in columns)
    }


def _texts(column: TableColumn[Record, Look], records: Sequence[Record], look: Look) -> Iterator[str]:
    return FAULTS.each("showing a cell", records, lambda record: column.cell(record, look))


PRINTED = ("state", "age", "id", "name", "app", "mode", "host", "percent", "reason")
"""Columns of the printed table: user and model are in the id, which people copy from it."""


def job_table(
    jobs: Iterable[Job], context: RowContext, cells: int | None, *, has_profiles: bool = False
) -> Iterator[str]:
    """The jobs as they are printed, with whole ids, so that these can be copied."""
    by_key = {column.key: column for column in JOB_COLUMNS}
    by_key["id"] = replace(by_key["id"], cells=fixed(10_000), priority=KEPT)
    for key, priority in (("reason", KEPT), ("name", 60)):  # the id is there: a reason says more than a name
        by_key[key] = replace(by_key[key], priority=priority)
    keys = (*(("profile",) if has_profiles else ()), *PRINTED)
    return printed([by_key[key] for key in keys], jobs, context, cells)


def printed(
    columns: Iterable[TableColumn[Record, Look]], records: Iterable[Record], look: Look, cells: int | None
) -> Iterator[str]:
    """The lines of a table of records, at most `cells` wide if that is given."""
    shown = [column if cells is None else _variant(column, cells) for column in columns]
    rows = FAULTS.each("printing a row", records, lambda record: cells_of(shown, record, look))
    return table_lines(shown, list(rows), cells)


def cells_of(columns: Iterable[TableColumn[Record, Look]], record: Record, look: Look) -> list[Piece]:
    return [Piece(column.cell(record, look), column.style(record, look)) for column in columns]


def head(header: str, least: int = 4, align: Align = "left") -> TableColumn[Any, Any]:
    """A column of a table whose rows are made by the caller."""
    return TableColumn(header, header, no_style, at_least(least), KEPT, align)


def table_lines(
    columns: Sequence[TableColumn[Any, Any]], rows: Sequence[Sequence[Piece]], cells: int | None
) -> Iterator[str]:
    return map(painted, table_rows(columns, rows, cells))


def table_rows(
    columns: Sequence[TableColumn[Any, Any]], rows: Sequence[Sequence[Piece]], cells: int | None
) -> Iterator[Line]:
    """Headings and rows, without columns that are empty in every row, except those that always stay."""
    texts = [
        max((width(row[at].text) for row in rows if row[at].text not in BLANK), default=0)
        for at in range(len(columns))
    ]
    whole = [max(width(column.header), size) for column, size in zip(columns, texts, strict=True)]
    used = [
        replace(one, key=str(at), narrow=(), cells=Cells(*(min(whole[at], cells) for cells in one.cells)))
        for at, one in enumerate(columns)
        if one.priority >= KEPT or texts[at] or not rows
    ]
    natural = tuple((one, whole[int(one.key)]) for one in used)
    placed = natural if cells is None else fit_columns(cells, used)
    blanks = Piece(" " * gap_for(_WIDE if cells is None else cells))
    for row in (None, *rows):
        line: list[Piece] = []
        for column, size in placed:
            at = int(column.key)
            piece = Piece(column.header, "heading") if row is None else row[at]
            line += [Piece(fitted(column, piece.text, size, texts[at]), piece.style, size), blanks]
        yield tuple(line[:-1])


LARGE = 60
"""From so many cells on errors are cut at their end; in fewer, equal errors look the same in all rows."""


def fitted(column: TableColumn[Any, Any], text: str, cells: int, longest: int) -> str:
    """A cell. In a small column too narrow for its longest text, no cell has the class of its error."""
    if column.keeps_ends or cells < min(longest, LARGE):
        text = gist(text, cells * column.keeps_ends, keeps_ends=column.keeps_ends)
    return fit(text, cells, align=column.align)


BLANK = frozenset({"", NONE})
MARGIN = 2
"""Cells before the first column, for the sign of a marked row."""
TIMED = frozenset({"age", "dur", "queued", "started", "ended", "state", "reason"})
"""Columns that time alone may change."""


class TableLines(Generic[Record, Look]):
    """Draws records into the columns that fit into a width, after a margin."""

    def __init__(
        self, columns: Sequence[TableColumn[Record, Look]], cells: int, margin: int, texts: Mapping[str, int]
    ) -> None:
        room = max(1, cells - margin - 1)
        self._margin = Piece(" " * margin, "", margin)
        shown = [one for one in columns if one.key in STEADY or texts.get(one.key) != 0]
        self._texts, self._placed = texts, fit_columns(room, shown, texts)
        self._blanks = " " * gap_for(room)

    def heading(self, sorted_by: str | None, look: Look, *, reverse: bool) -> Line:
        spans = [self._margin]
        for column, cells in self._placed:
            is_sorted = column.key == sorted_by
            arrow = ("▼" if reverse else "▲") if is_sorted else ""
            style = "sorted" if is_sorted else "heading"
            shows_times = column.times_header and not getattr(look, "relative", True)
            header = column.times_header if shows_times else column.header
            text = fit(header + arrow, cells, align=column.align)
            spans += [Piece(text, style, cells), Piece(self._blanks, "heading", len(self._blanks))]
        return tuple(spans[:-1])

    def row(self, record: Record, look: Look, *, is_marked: bool = False) -> Line:
        mark = Piece("▌".ljust(self._margin.width), "marked", self._margin.width)
        spans = [mark if is_marked else self._margin]
        for placed in self._placed:
            spans += self._cell(placed, record, look)
        return tuple(spans[:-1])

    def later(self, before: Line, record: Record, look: Look) -> Line:
        """The row of the same record at another time; only cells that time may change are made again."""
        spans = list(before)
        for at, placed in enumerate(self._placed):
            if placed[0].key in TIMED:
                spans[1 + 2 * at : 3 + 2 * at] = self._cell(placed, record, look)
        return tuple(spans[: len(before)])

    def _cell(
        self, placed: tuple[TableColumn[Record, Look], int], record: Record, look: Look
    ) -> tuple[Piece, Piece]:
        column, cells = placed
        style = column.style(record, look)
        text = fitted(column, column.cell(record, look), cells, self._texts.get(column.key, 0))
        return Piece(text, style, cells), Piece(self._blanks, style, len(self._blanks))
