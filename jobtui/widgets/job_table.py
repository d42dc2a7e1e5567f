"""The job table: up to a hundred thousand jobs live, of which only the visible ones are ever drawn.

A screen tells it what changed and how to filter and sort; it never sees the store. The cursor stays with its
job while rows move. On the first row it stays there until somebody moves it, so that what comes first shows.
"""

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from time import monotonic

from textual.message import Message

from jobtui.model.ids import JobId
from jobtui.model.jobs import Job
from jobtui.render.columns import DEFAULT_COLUMNS, JOB_COLUMNS, MARGIN, TIMED, Column, RowContext, text_widths
from jobtui.render.spans import Line
from jobtui.widgets.job_rows import JobRows, Keep, Order
from jobtui.widgets.record_list import RecordTable
from jobtui.widgets.row_view import Move

MOST_KEPT = 400
"""Rows kept drawn at most; a page or a few of them."""
TICKED = 4
"""Rows that may be painted in a second because of time alone; with more the ages go on by turns."""
ROOM_S = 60.0
"""How long columns keep the room that they needed: rows come and go, and nothing should jump."""
SPARE = 3
"""Rows below the last that are known, too: the table shows them at once when a line below it closes."""
WORK_EVERY_S, PAINT_S = 0.002, 0.05
"""Pause between two slices of work on a new order, and before the first while its first rows are painted."""


class JobTable(RecordTable[Job]):
    MARGIN = MARGIN

    class Recounted(Message):
        """The shown rows or their order changed."""

    def __init__(
        self, context: Callable[[], RowContext], columns: Sequence[Column] = DEFAULT_COLUMNS
    ) -> None:
        super().__init__(columns, context, attrgetter("id"))
        self.rows = JobRows(lambda: context().now, lambda *at: context().now_at(*at))
        """All its jobs, their counts, and which of them need a person."""
        self._filter: tuple[Keep | None, bool] = (None, False)
        self._is_rearranged = True
        self._highlighted: JobId | None = None
        self._visible: list[JobId] = []
        self._drawn: dict[JobId, Line] = {}
        self._measured: list[Job] = []
        """The jobs whose texts were measured, and have not changed since then."""
        self._measured_at = 0.0
        self._next_tick = 0
        self._is_working = False

    @property
    def count(self) -> int:
        return len(self.rows.index)

    @property
    def record(self) -> Job | None:
        return self.rows.jobs.get(self.cursor_id) if self.cursor_id is not None else None

    @property
    def cursor_id(self) -> JobId | None:
        return next(iter(self.rows.index.window(self.cursor, self.cursor + 1)), None)

    @property
    def is_held(self) -> bool:
        """Whether somebody chose the row of the cursor, which else is that of whatever comes first."""
        return self._held is not None

    @property
    def visible_jobs(self) -> list[Job]:
        return [self.rows.jobs[job_id] for job_id in self._visible[: self.page]]

    def apply(self, changed: Iterable[Job], gone: Iterable[JobId] = ()) -> None:
        jobs, gone = list(changed), list(gone)
        before = len(self.rows.index)
        seen = (self._visible, self.cursor - self.top)
        moved = self.rows.apply(jobs, gone)
        self.marked.difference_update(gone)
        changed_ids = (*gone, *(job.id for job in jobs))
        is_drawn = any([self._drawn.pop(job_id, None) is not None for job_id in changed_ids])
        self._work_on()
        if moved:
            self._follow()
            self._renew_visible()
        if is_drawn or (self._visible, self.cursor - self.top) != seen:
            self._measured = []
            self.repaint()
        if len(self.rows.index) != before:
            self.post_message(self.Recounted())

    def sort_by(self, key: str | None, *, reverse: bool = False) -> None:
        """Sort by a column; None puts first what needs a person."""
        super().sort_by(key, reverse=reverse)
        self._reorder()

    def set_columns(self, columns: Sequence[Column]) -> None:
        self.columns = tuple(columns)
        self._drawn.clear()
        self._reorder()
        self.start_over()

    def set_filter(self, keep: Keep | None, *, ages: bool = False, narrows: bool = False) -> None:
        """Show only jobs that pass: time alone may change which (`ages`), all are shown now (`narrows`)."""
        self._filter = (keep, ages)
        self._reorder(narrows=narrows)

    def tick(self) -> None:
        """Update ages, and all that depends on them. To be called once a second."""
        if self.rows.sweep():
            self._follow()
            self.post_message(self.Recounted())
        context = self._look()
        visible = self.visible_jobs
        self._measure(only_more=not visible or monotonic() - self._measured_at < ROOM_S)
        painted = 0
        for offset in range(len(visible)):
            at = (self._next_tick + offset) % len(visible)
            if (drawn := self._drawn.get(visible[at].id)) is not None:
                later = self._drawn[visible[at].id] = self._lines.later(drawn, visible[at], context)
                painted += later != drawn
            if painted >= TICKED:
                self._next_tick = at + 1
                break
        self.repaint()

    def redraw(self) -> None:
        self._drawn.clear()
        self.repaint()

    def move(self, move: Move) -> None:
        super().move(move)
        if move is Move.BOTTOM and self.rows.is_sorting:
            self._held = move  # whichever row it is, once all are known

    def toggle_mark(self) -> None:
        self._drawn.pop(self.cursor_id or JobId(""), None)
        super().toggle_mark()
        self.post_message(self.Recounted())

    def forget_marks(self) -> None:
        self._drawn.clear()
        super().forget_marks()
        self.post_message(self.Recounted())

    def repaint(self) -> None:
        self._renew_visible()
        super().repaint()

    def row(self, index: int) -> Line:
        at = index - self.top
        if at >= len(self._visible):
            return ()
        job = self.rows.jobs[self._visible[at]]
        drawn = self._drawn.get(job.id)
        if drawn is None:
            if len(self._drawn) >= MOST_KEPT:
                self._drawn.clear()
            drawn = self._lines.row(job, self._look(), is_marked=job.id in self.marked)
            self._drawn[job.id] = drawn
        return drawn

    def on_resize(self) -> None:
        self._drawn.clear()
        self._is_rearranged = True
        self.keep_in_view()
        self._renew_visible()

    def _measure(self, *, only_more: bool) -> None:
        """Give columns the room that the visible jobs need; with `only_more` none leaves or needs less.

        Of jobs that were measured before, then only the columns that time changes.
        """
        jobs, columns = self.visible_jobs, self.columns
        if not only_more:
            self._measured_at = monotonic()
        if only_more and jobs == self._measured:
            columns = tuple(column for column in columns if column.key in TIMED)
        self._measured = jobs
        texts = text_widths(columns, jobs, self._look(), self.cells)
        if only_more:
            texts = self._texts | {key: max(size, self._texts.get(key, 0)) for key, size in texts.items()}
        if texts != self._texts:
            self._texts = texts
            self._drawn.clear()

    def _renew_visible(self) -> None:
        self._visible = self.rows.index.window(self.top, self.top + self.page + SPARE)
        if self._is_rearranged and self._visible and (self.rows.has_more or not self.rows.is_sorting):
            self._is_rearranged = False
            self._measure(only_more=False)
        if (under := self.cursor_id) != self._highlighted:
            self._highlighted = under
            self.post_message(self.Highlighted(self.record))

    def _reorder(self, *, narrows: bool = False) -> None:
        self._is_rearranged = True
        column = next((column for column in JOB_COLUMNS if column.key == self.sorted_by), None)
        self.rows.held = JobId(self._held) if isinstance(self._held, str) else None
        sort = column.sort if column else self.rows.urgency
        self.rows.set_order(Order(sort, self.reverse, *self._filter), narrows=narrows)
        self._work_on(PAINT_S if self.rows.has_more else WORK_EVERY_S)
        self._follow()
        self.repaint()
        self.post_message(self.Recounted())

    def _work_on(self, pause_s: float = WORK_EVERY_S) -> None:
        if self.rows.is_sorting and not self._is_working:
            self._is_working = True
            self.set_timer(pause_s, self._work)

    def _work(self) -> None:
        self._is_working = False
        if self.rows.work():
            self._follow()
            if self._held is Move.BOTTOM:
                self.move(Move.BOTTOM)
            self.repaint()
            self.post_message(self.Recounted())
        self._work_on()

    def _follow(self) -> None:
        at = self.rows.index.position(JobId(self._held)) if isinstance(self._held, str) else 0
        if at is not None:
            self.follow(at)
        self.keep_in_view()
