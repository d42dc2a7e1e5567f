"""The runs of a job, and the chosen one beside the last good one."""

from collections.abc import Iterator

from textual import on
from textual.app import ComposeResult
from textual.message import Message

from jobtui.analysis.run_steps import step_pairs
from jobtui.model.clock import Nanos
from jobtui.model.jobs import Run
from jobtui.render.run_steps import step_lines
from jobtui.render.run_table import result_text, side_by_side
from jobtui.render.spans import Span
from jobtui.screens.base import Board
from jobtui.screens.job_tab import JobTab, Subject
from jobtui.widgets.row_view import Move
from jobtui.widgets.rule_line import RuleLine
from jobtui.widgets.run_list import RunList
from jobtui.widgets.text_pane import Paragraph, TextPane

SIDE_BY_SIDE_CELLS = 70
"""Cells from which there is room for two runs."""


LEAST_ROWS = 3
"""With fewer a list has no heading."""
NEVER = Nanos(1 << 62)
"""A time after every log."""


class HistoryTab(JobTab):
    """Every run that the record tells of. The one under the cursor is the one the other tabs show."""

    NAME = "history"
    SCOPED_CSS = False  # its rules name the screen, whose classes say how much room there is
    DEFAULT_CSS = """
    HistoryTab RunList { max-height: 40%; }
    JobScreen.-low RunList, JobScreen.-flat RunList { max-height: 100%; }
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
        self._about.is_active = False

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
        self._runs.styles.height = max(LEAST_ROWS, len(runs) + self._runs.HEADINGS)
        self._compare()

    def tick(self) -> None:
        """Let the times of a run that goes on go on."""
        self._runs.tick()

    def move(self, move: Move) -> None:
        """Choose another run, or scroll what is said of it."""
        (self._about if self._about.is_active else self._runs).move(move)

    def switch_pane(self) -> None:
        """From the runs to what is said of one, or back."""
        to_text = not self._about.is_active and self._about.display
        self._about.set_active(to_text)
        self._runs.set_active(not to_text)

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
        good = self._subject.good if cells >= SIDE_BY_SIDE_CELLS else None
        facts = side_by_side(run, good, self.board.now(), cells)
        lines = (*facts, Span(""), *self._steps(run, good, cells))
        self._about.set_text(Paragraph(span.text, span.style) for span in lines)

    def _steps(self, run: Run, good: Run | None, cells: int) -> Iterator[Span]:
        """What happened in the run, and in the good one."""
        subject = self._subject
        if subject is None or good is None or subject.run is None or subject.run.number != run.number:
            return
        if not subject.ops or not subject.good_ops:
            unknown = run if not subject.ops else good
            yield Span(f"No op of run {unknown.number} in what was read of the logs.", "dim")
            if subject.ops and self.board.desk.begins_after(good.queued_at or NEVER):
                yield Span(f"↵ reads them back to run {good.number}, to compare what happened.", "dim")
            return
        pairs = step_pairs(subject.ops, subject.good_ops, self.board.now())
        yield from step_lines(pairs, (run.number, good.number), cells)

    def open(self) -> None:
        """Have the logs read back to the good run."""
        if self._subject is not None and self._subject.good is not None and not self._subject.good_ops:
            self.post_message(self.Wanted(self._subject.good))

    def _nothing(self) -> str:
        subject = self._subject
        if subject is None or subject.detail is None:
            return (subject.problem if subject else "") or "no source has a record of this job"
        return "it never ran, as far as its record tells"
