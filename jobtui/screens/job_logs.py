"""The lines of all logs that belong to a job, merged by time."""

from functools import partial

from textual import on
from textual.app import ComposeResult

from jobtui.analysis.job_lines import JobLine, job_lines
from jobtui.model.ops import Step
from jobtui.render.job_log import tags
from jobtui.render.text import show
from jobtui.screens.base import Board
from jobtui.screens.job_tab import JobTab, Subject, read_record, start
from jobtui.widgets.job_log import JobLog
from jobtui.widgets.row_view import Move
from jobtui.widgets.rule_line import RuleLine
from jobtui.widgets.step_detail import StepDetail


class LogsTab(JobTab):
    """The lines, and the whole record behind the one under the cursor."""

    NAME = "logs"
    COMMAND = ("logs",)
    IS_WHOLE = True

    def __init__(self, board: Board) -> None:
        super().__init__(board)
        self._subject: Subject | None = None
        self._log = JobLog()
        self._detail = StepDetail()

    def compose(self) -> ComposeResult:
        """The lines, and one of them below."""
        yield self._log
        yield RuleLine()
        yield self._detail

    def set_subject(self, subject: Subject) -> None:
        """Show the lines of these ops, and those that could not be placed."""
        before, self._subject = self._subject, subject
        if before is None or (before.ops, before.unlinked) != (subject.ops, subject.unlinked):
            lines = job_lines(subject.job_id, subject.ops, subject.unlinked)
            self._log.set_lines(lines, tags(lines, self.board.store.sources()))
        self._log.set_empty(subject.silence)

    def move(self, move: Move) -> None:
        """Move the cursor."""
        self._log.move(move)

    def open(self) -> None:
        """Open the log at the line."""
        # Imported here, as the first paint does not need it
        from jobtui.screens.logs import LogsScreen

        if (line := self._log.current) is not None:
            self.app.push_screen(LogsScreen(self.board, line.source, line.offset))

    @property
    def copied(self) -> str | None:
        """The line under the cursor."""
        line = self._log.current
        return None if line is None else show(line.text)

    @property
    def step_here(self) -> Step | None:
        """The line under the cursor."""
        return None if self._log.current is None else _step_of(self._log.current)

    @on(JobLog.Highlighted)
    def _line_chosen(self, message: JobLog.Highlighted) -> None:
        step = None if message.line is None else _step_of(message.line)
        self._detail.set_step(step)
        reading = partial(read_record, self.board.desk, self._detail, step)
        start(self, reading, group="record", exclusive=True)


def _step_of(line: JobLine) -> Step:
    place = (line.source, line.line, line.offset)
    return Step("", line.at, line.component, line.text, *place, line.certainty, line.cursor)
