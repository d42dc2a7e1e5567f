"""The job table: up to a hundred thousand jobs live, of which only the visible ones are ever drawn.

A screen tells it what changed and how to filter and sort; it never sees the store. The cursor stays with its
job while rows move. On the first row it stays there until somebody moves it, so that what comes first shows.
"""

from collections.abc import Callable, Iterable, Sequence

from textual import events
from textual.message import Message

from jobtui.model.ids import JobId
from jobtui.model.jobs import Job
from jobtui.render.columns import DEFAULT_COLUMNS, JOB_COLUMNS, Column, RowContext
from jobtui.render.spans import Line
from jobtui.widgets.drawn_rows import DrawnRows
from jobtui.widgets.job_rows import JobRows, Keep
from jobtui.widgets.row_view import Move, RowView

TICKED = 4
"""Rows that may be painted in a second because of time alone; with more the ages go on by turns."""
WORK_EVERY_S = 0.004
"""Pause between two slices of work on a new order."""


class JobTable(RowView):
    """Jobs, one a row."""

    class Opened(Message):
        """Somebody wants to see a job."""

        def __init__(self, job_id: JobId) -> None:
            self.job_id = job_id
            super().__init__()

    class Highlighted(Message):
        """The cursor is on another job, or on none."""

        def __init__(self, job_id: JobId | None) -> None:
            self.job_id = job_id
            super().__init__()

    class Recounted(Message):
        """Other rows are shown, or an order was worked out."""

    def __init__(
        self,
        context: Callable[[], RowContext],
        columns: Sequence[Column] = DEFAULT_COLUMNS,
        *,
        id: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self._row_context = context
        self.rows = JobRows(lambda: context().now)
        """All its jobs, their counts, and which of them need a person."""
        self._sorted_by: str | None = None
        self._reverse = False
        self._keep: Keep | None = None
        self._ages = False
        self._held: JobId | None = None
        self._told: JobId | None = None
        self._visible: list[JobId] = []
        self._drawn = DrawnRows(columns)
        self._next_tick = 0
        self._is_working = False
        self.selected: set[JobId] = set()
        """The jobs that are marked, shown or not."""

    @property
    def count(self) -> int:
        """How many jobs pass the filter."""
        return len(self.rows)

    @property
    def total(self) -> int:
        """How many jobs there are."""
        return len(self.rows.jobs)

    @property
    def cursor_id(self) -> JobId | None:
        """The job under the cursor."""
        return next(iter(self.rows.window(self.cursor, self.cursor + 1)), None)

    @property
    def visible_jobs(self) -> list[Job]:
        """The jobs on the screen, from top to bottom."""
        return [self.rows.jobs[job_id] for job_id in self._visible]

    @property
    def sorted_by(self) -> tuple[str | None, bool]:
        """Key of the column it is sorted by (None: what needs a person first) and whether in reverse."""
        return self._sorted_by, self._reverse

    @property
    def is_sorting(self) -> bool:
        """Whether a new order is still being worked out."""
        return self.rows.is_sorting

    def job(self, job_id: JobId) -> Job | None:
        """A job it was told of."""
        return self.rows.jobs.get(job_id)

    def apply(self, changed: Iterable[Job], gone: Iterable[JobId] = ()) -> None:
        """Take in new and changed jobs, forget others."""
        jobs = list(changed)
        gone = list(gone)
        was_empty = not self.rows.jobs
        before = len(self.rows)
        seen = (self._visible, self.cursor - self.top)
        moved = self.rows.apply(jobs, gone)
        for job_id in gone:
            self._drawn.forget(job_id)
            self.selected.discard(job_id)
        is_drawn = not was_empty and self._drawn.change(jobs, self._row_context())
        self._work_on()
        if moved:
            self._follow()
            self._look()
        if is_drawn or (self._visible, self.cursor - self.top) != seen:
            self.repaint()
        if len(self.rows) != before:
            self.post_message(self.Recounted())

    def sort_by(self, key: str | None, *, reverse: bool = False) -> None:
        """Sort by a column; None puts first what needs a person."""
        self._sorted_by, self._reverse = key, reverse
        self._reorder()

    def set_columns(self, columns: Sequence[Column]) -> None:
        """Show these columns in this order."""
        self._drawn.choose(columns, self.cells)
        self._reorder()
        self.start_over()

    def set_filter(self, keep: Keep | None, *, ages: bool = False) -> None:
        """Show only jobs that pass; `ages` says that time alone may change which do."""
        self._keep, self._ages = keep, ages
        self._reorder()

    def tick(self) -> None:
        """Let ages go on, and what follows from them. To be called once a second."""
        self._drawn.expire_marks()
        if self.rows.sweep():
            self._follow()
            self.post_message(self.Recounted())
        context = self._row_context()
        visible = self.visible_jobs
        painted = 0
        for offset in range(len(visible)):
            at = (self._next_tick + offset) % len(visible)
            painted += self._drawn.age(visible[at], context)
            if painted >= TICKED:
                self._next_tick = at + 1
                break
        self.repaint()

    def redraw(self) -> None:
        """Draw all rows anew: how cells are shown has changed."""
        self._drawn.clear()
        self.repaint()

    def open(self) -> None:
        """Ask to see the job under the cursor."""
        if self.cursor_id is not None:
            self.post_message(self.Opened(self.cursor_id))

    def toggle(self) -> None:
        """Mark the job under the cursor or take the mark away, and go to the next one."""
        job_id = self.cursor_id
        if job_id is None:
            return
        self.selected ^= {job_id}
        self._drawn.redraw(job_id)
        self.post_message(self.Recounted())
        self.move(Move.DOWN)

    def clear_selection(self) -> None:
        """Take all marks away."""
        self.selected.clear()
        self.redraw()
        self.post_message(self.Recounted())

    def move(self, move: Move) -> None:
        """Move the cursor; on top it stays with whatever comes first."""
        super().move(move)
        if move is Move.TOP:
            self._held = None

    def go(self, index: int) -> None:
        """Put the cursor on a row, and keep it with that job."""
        super().go(index)
        self._held = self.cursor_id
        self._tell()

    def go_to(self, job_id: JobId) -> bool:
        """Put the cursor on a job; False when it is not shown."""
        at = self.rows.position(job_id)
        if at is not None:
            self.go(at)
        return at is not None

    def on_click(self, event: events.Click) -> None:
        """A second click on a row opens it."""
        if event.chain == 2:
            self.open()

    def repaint(self) -> None:
        """Mark for painting whatever differs from what is on the screen."""
        self._look()
        super().repaint()

    def heading(self, y: int) -> Line:
        """Names of the columns."""
        return self._drawn.heading(self._sorted_by, reverse=self._reverse)

    def row(self, index: int) -> Line:
        """A job; drawn once, until it changes."""
        at = index - self.top
        if at >= len(self._visible):
            return ()
        job = self.rows.jobs[self._visible[at]]
        return self._drawn.line(job, self._row_context, is_marked=job.id in self.selected)

    def on_resize(self) -> None:
        """Choose the columns anew."""
        self._drawn.resize(self.cells)
        self.keep_in_view()
        self._look()

    def _look(self) -> None:
        """Note which jobs are on the screen."""
        self._visible = self.rows.window(self.top, self.top + self.page)

    def _reorder(self) -> None:
        column = next((column for column in JOB_COLUMNS if column.key == self._sorted_by), None)
        self.rows.set_order(
            column.sort if column else None, reverse=self._reverse, keep=self._keep, ages=self._ages
        )
        self._work_on()
        self.repaint()
        self.post_message(self.Recounted())

    def _work_on(self) -> None:
        """Go on working out an order, in slices between which keys are answered."""
        if self.rows.is_sorting and not self._is_working:
            self._is_working = True
            self._work()

    def _work(self) -> None:
        if self.rows.work():
            self._follow()
            self.repaint()
            self.post_message(self.Recounted())
        self._is_working = self.rows.is_sorting
        if self._is_working:
            self.set_timer(WORK_EVERY_S, self._work)

    def _follow(self) -> None:
        """Keep the cursor with its job, at the same height on the screen; it comes back when the job does."""
        at = self.rows.position(self._held) if self._held is not None else 0
        if at is not None:
            self.top += at - self.cursor
            self.cursor = at
        self.keep_in_view()
        self._tell()

    def _tell(self) -> None:
        """Say so when the cursor is on another job than before."""
        if (job_id := self.cursor_id) != self._told:
            self._told = job_id
            self.post_message(self.Highlighted(job_id))
