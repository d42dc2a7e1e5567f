"""The runs of a job, and the chosen one beside the last good one."""

from textual import on
from textual.app import ComposeResult
from textual.message import Message

from jobtui.analysis.last_good import last_good
from jobtui.render.run_table import result_text, side_by_side
from jobtui.screens.base import Board
from jobtui.screens.job_tab import JobTab, Subject
from jobtui.widgets.row_view import Move
from jobtui.widgets.rule_line import RuleLine
from jobtui.widgets.run_list import RunList
from jobtui.widgets.text_pane import Paragraph, TextPane

SIDE_BY_SIDE_CELLS = 90
"""Cells from which there is room for two runs."""


class HistoryTab(JobTab):
    """Every run that the record tells of. The one under the cursor is the one the other tabs show."""

    NAME = "history"
    SCOPED_CSS = False  # its rules name the screen, whose classes say how much room there is
    DEFAULT_CSS = """
    HistoryTab TextPane { height: 60%; }
    JobScreen.-low HistoryTab TextPane, JobScreen.-flat HistoryTab TextPane { display: none; }
    """

    class Chosen(Message):
        """Another run is to be shown."""

        def __init__(self, number: int) -> None:
            self.number = number
            super().__init__()

    def __init__(self, board: Board) -> None:
        super().__init__(board)
        self._subject: Subject | None = None
        self._runs = RunList(board.now)
        self._about = TextPane()

    def compose(self) -> ComposeResult:
        """The runs, and more about one below."""
        yield self._runs
        yield RuleLine()
        yield self._about

    def set_subject(self, subject: Subject) -> None:
        """Show these runs."""
        self._subject = subject
        runs = subject.detail.runs if subject.detail else ()
        self._runs.set_runs(runs, subject.run.number if subject.run else None)
        self._compare()

    def tick(self) -> None:
        """Let the times of a run that goes on go on."""
        self._runs.tick()

    def move(self, move: Move) -> None:
        """Choose another run."""
        self._runs.move(move)

    def on_resize(self) -> None:
        """Lay both out for the width."""
        self._compare()

    @property
    def copied(self) -> str | None:
        """What the run ended with."""
        run = self._runs.run_under_cursor
        return (result_text(run) or None) if run else None

    @on(RunList.Highlighted)
    def _chosen(self, message: RunList.Highlighted) -> None:
        self.post_message(self.Chosen(message.run.number))

    def _compare(self) -> None:
        if self._subject is None:
            return
        run, detail = self._runs.run_under_cursor, self._subject.detail
        if run is None or detail is None:
            self._about.set_text([Paragraph(self._nothing(), "dim")])
            return
        cells = max(1, self.size.width - 3)
        good = last_good(detail.runs, run.number) if cells >= SIDE_BY_SIDE_CELLS else None
        lines = side_by_side(run, good, self.board.now(), cells)
        self._about.set_text(Paragraph(span.text, span.style) for span in lines)

    def _nothing(self) -> str:
        subject = self._subject
        if subject is None or subject.detail is None:
            return (subject.problem if subject else "") or "no source has a record of this job"
        return "it never ran, as far as its record tells"
