"""Rows of the job table that were drawn, kept until their job changes, and which cells are marked."""

from collections.abc import Callable, Iterable, Sequence

from jobtui.model.ids import JobId
from jobtui.model.jobs import Job
from jobtui.render.columns import Column, RowContext
from jobtui.render.job_line import JobLines
from jobtui.render.spans import Line
from jobtui.widgets.change_marks import ChangeMarks

MOST_KEPT = 400
"""Rows kept drawn at most; a page or a few of them."""


class DrawnRows:
    """Rows by job, drawn for one width."""

    def __init__(self, chosen: Sequence[Column]) -> None:
        self.chosen = tuple(chosen)
        self._lines = JobLines(self.chosen, 0)
        self._drawn: dict[JobId, Line] = {}
        self._marks = ChangeMarks()

    def __len__(self) -> int:
        return len(self._drawn)

    def choose(self, columns: Sequence[Column], cells: int) -> None:
        """Draw these columns from now on."""
        self.chosen = tuple(columns)
        self.resize(cells)

    def resize(self, cells: int) -> None:
        """Draw for another width from now on."""
        self._lines = JobLines(self.chosen, cells)
        self.clear()

    def clear(self) -> None:
        """Draw all rows anew."""
        self._drawn.clear()

    def redraw(self, job_id: JobId) -> None:
        """Draw a row anew."""
        self._drawn.pop(job_id, None)

    def forget(self, job_id: JobId) -> None:
        """A job is no more."""
        self.redraw(job_id)
        self._marks.forget(job_id)

    def heading(self, sorted_by: str | None, *, reverse: bool) -> Line:
        """Names of the columns."""
        return self._lines.heading(sorted_by, reverse=reverse)

    def line(self, job: Job, context: Callable[[], RowContext], *, is_marked: bool) -> Line:
        """The row of a job; `context` is asked for when it must be drawn."""
        drawn = self._drawn.get(job.id)
        if drawn is None:
            if len(self._drawn) >= MOST_KEPT:
                self._drawn.clear()
            drawn = self._draw(job, context(), is_marked=is_marked)
            self._drawn[job.id] = drawn
        return drawn

    def change(self, jobs: Iterable[Job], context: RowContext) -> bool:
        """Jobs changed: mark for a moment what that changes in rows that are drawn; whether any is."""
        is_drawn = False
        for job in jobs:
            before = self._drawn.pop(job.id, None)
            if before is not None:
                is_drawn = True
                after = self._draw(job, context, is_marked=False)
                self._marks.add(job.id, self._lines.changed_columns(before, after))
        return is_drawn

    def age(self, job: Job, context: RowContext) -> bool:
        """Draw what time alone changes in a row; whether that is anything."""
        drawn = self._drawn.get(job.id)
        if drawn is None:
            return False
        line = self._lines.later(drawn, job, context, self._marks.of(job.id))
        self._drawn[job.id] = line
        return line != drawn

    def expire_marks(self) -> None:
        """Draw without marks what was marked long enough."""
        for row_id in self._marks.expire():
            self.redraw(JobId(row_id))

    def _draw(self, job: Job, context: RowContext, *, is_marked: bool) -> Line:
        return self._lines.line(job, context, self._marks.of(job.id), is_marked=is_marked)
