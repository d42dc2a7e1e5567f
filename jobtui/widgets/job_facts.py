"""What a job's screen shows of it: its state and record at the top, and the files of a run directory."""

from collections.abc import Callable, Sequence

from jobtui.model.clock import Nanos
from jobtui.model.ids import JobId
from jobtui.model.job_reader import RunFile
from jobtui.model.jobs import Job
from jobtui.model.numbers import counted
from jobtui.model.verdicts import Code, Verdict
from jobtui.render.columns import TimeLook
from jobtui.render.facts import matter, record_line, status_words
from jobtui.render.job_files import FILE_COLUMNS
from jobtui.render.spans import Line, Piece, spread, width_of
from jobtui.render.styles import CONCERN_STYLES
from jobtui.render.text import ends_of, fit, gist, show, width
from jobtui.render.verdicts import brief_sentence, sureness
from jobtui.widgets.lines import LineView, ShownAttribute
from jobtui.widgets.record_list import RecordTable

ROOT = "jobs"
NO_RECORD = "no source has a record of this job; its ops come from logs"
LEAST_ID_CELLS = 9
"""How many cells of the id are shown before anything about it."""
SURE_CELLS = 70
"""From this width in cells on the confidence of a verdict is shown, though its sentence be cut."""
FULL_ROWS = 3
"""From this number of lines on one is for the sources elsewhere."""


class JobFacts(LineView):
    """The three lines at the top of a job, most important first."""

    job = ShownAttribute[Job | None](None)
    run = ShownAttribute[int | None](None)
    """The number of the run that is shown."""
    absolute = ShownAttribute(False)
    verdict = ShownAttribute[Verdict | None](None)
    """None as long as nobody has looked."""
    cluster = ShownAttribute("")
    """Its state on its cluster."""
    age = ShownAttribute(Piece("", "dim"))
    """Shown where the sources have no line of their own."""
    trail = ShownAttribute[tuple[str, ...]](())
    """The screens between the jobs and this one."""

    def __init__(self, now_of: Callable[[Job], Nanos], job_id: JobId) -> None:
        super().__init__()
        self._now_of = now_of
        self._job_id = job_id

    def line(self, y: int) -> Line:
        if y == 0:
            return self._name_line()
        if y == 1:
            return self._matter_line()
        if self.job is None:
            words = fit(NO_RECORD, max(0, self.cells - 1))
            return (Piece(f" {words}", "warning"),) if self.verdict else ()
        return record_line(self.job, self._now_of(self.job), self.cells, self.cluster)

    def _matter_line(self) -> Line:
        cells, age, verdict = self.cells, self._age_spans(), self.verdict
        if verdict is not None and verdict.code is not Code.UNKNOWN:
            sure, style = Piece(f"  {sureness(verdict)}", "dim"), CONCERN_STYLES[verdict.concern]
            room = cells - 1 - width_of((sure, *age))
            words = gist(brief_sentence(verdict, room), room)
            age = (sure, *age) if cells >= SURE_CELLS or width(words) <= room else age
        elif self.job is None:
            words, style = NO_RECORD, "warning"
        else:
            words, style, _ = matter(self.job, self._now_of(self.job))
        room = max(0, cells - 1 - width_of(age))
        if width(words) > room and cells < SURE_CELLS and self.age.style == "dim":
            room, age = max(0, cells - 2), (Piece(" "),)
        return (Piece(" " + fit(gist(words, room), room), style), *age)

    def _age_spans(self) -> Line:
        has_room = self.rows_high >= FULL_ROWS or not self.age.text
        return (Piece(" "),) if has_room else (Piece(f"  {self.age.text} ", self.age.style),)

    def _name_line(self) -> Line:
        right = self._right()
        room = self.cells - width_of(right)
        name = show(self._job_id)
        trails = (f" {' › '.join((ROOT, *self.trail))} › ", f" {ROOT} › ")
        trail = next((trail for trail in trails if width(trail + name) <= room), " ")
        if width(trail + name) > room:
            left = max(0, room - len(trail))
            name = name if width(name) <= left else fit(ends_of(name), left)
        return spread((Piece(trail, "dim"), Piece(name, "title")), right, self.cells)

    def _right(self) -> Line:
        if self.job is None:
            return ()
        cells, now = self.cells, self._now_of(self.job)
        least = min(width(self._job_id), width(ends_of(self._job_id)), max(LEAST_ID_CELLS, cells // 3)) + 1
        since = status_words(self.job, now, absolute=self.absolute)
        status = (Piece("  "), *since, Piece(" "))
        bare = (Piece("  "), *status_words(self.job, now, absolute=None), Piece(" "))
        count = self.job.runs
        switch = "  ‹ ›" if self.run is not None and count > 1 else ""
        runs = f"   run {self.run or count} of {count}{switch}" if count else ""
        full = (Piece(runs, "dim"), *status)
        if self.rows_high == 1:
            age = self._age_spans()
            full, status, bare = ((*part[:-1], *age) for part in (full, status, bare))
        return next((right for right in (full, status, bare) if width_of(right) + least <= cells), ())


class FileList(RecordTable[RunFile]):
    """The files of a run directory, below how many they are. The cursor stays with its file."""

    _left_out = 0

    def __init__(self, look: Callable[[], TimeLook]) -> None:
        super().__init__(FILE_COLUMNS, look, lambda file: file.name)

    def set_files(self, files: Sequence[RunFile], left_out: int = 0) -> None:
        name = self.record.name if self.record is not None else None
        self._left_out = left_out
        self.set_records(files, next((at for at, file in enumerate(files) if file.name == name), 0))

    def heading(self, y: int) -> Line:
        more = f", {self._left_out:,} more not listed" if self._left_out else ""
        words = f" {counted(self.count, 'file')}{more}" if self.records else ""
        return (Piece(fit(words, self.cells), "heading", self.cells),)
