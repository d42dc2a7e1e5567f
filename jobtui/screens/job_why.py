"""Why a job stands as it does: the verdict, the lines it rests on, what is not known, what to type next."""

from functools import partial
from typing import TYPE_CHECKING

from textual.app import ComposeResult

from jobtui.model.job_desk import Unreadable
from jobtui.model.ops import Step
from jobtui.model.verdicts import Evidence, NextStep
from jobtui.render.lanes import CERTAINTY_WORDS
from jobtui.render.text import Zone, date_time, show
from jobtui.screens.base import Board
from jobtui.screens.job_tab import RECORD_LINES, JobTab, Subject, start
from jobtui.screens.reading import ReadingScreen
from jobtui.widgets.row_view import Move
from jobtui.widgets.step_detail import where
from jobtui.widgets.text_pane import Paragraph

if TYPE_CHECKING:
    from jobtui.analysis.explain.study import Study


class WhyTab(JobTab):
    """The verdict as a text. A line of a log in it opens, a command in it is copied."""

    NAME = "why"
    COMMAND = ("explain",)
    IS_WHOLE = True

    def __init__(self, board: Board) -> None:
        from jobtui.widgets.why_list import WhyList  # no first paint needs it

        super().__init__(board)
        self._subject: Subject | None = None
        self._shown: tuple[Study | None, str] | None = None
        self._list = WhyList()

    def compose(self) -> ComposeResult:
        """The text."""
        yield self._list

    def set_subject(self, subject: Subject) -> None:
        """Show the verdict that there is now."""
        from jobtui.render.why import why_parts

        self._subject = subject
        shown = (subject.study, Zone.mark())
        if shown != self._shown:
            self._shown = shown
            self._list.set_parts(why_parts(subject.study) if subject.study is not None else ())

    @property
    def words(self) -> str:
        """Whose run it is about, where another one is looked at."""
        subject = self._subject
        if subject is None or subject.run is None or subject.detail is None:
            return ""
        newest = subject.detail.runs[-1].number
        return "" if subject.run.number == newest else f"about run {newest}, the newest"

    def move(self, move: Move) -> None:
        """Move the cursor."""
        self._list.move(move)

    @property
    def copied(self) -> str | None:
        """The command, or the line."""
        match self._list.item:
            case NextStep(command=command):
                return show(command)
            case Evidence(text=text):
                return show(text)
            case _:
                return None

    @property
    def step_here(self) -> Step | None:
        """The line under the cursor."""
        item = self._list.item
        return self._step_of(item) if isinstance(item, Evidence) else None

    def _step_of(self, evidence: Evidence) -> Step | None:
        """The step that a line of evidence is; None for what is a fact of the record."""
        ops = self.board.store.correlation.ops_of(self._subject.job_id) if self._subject is not None else ()
        place = (evidence.source, evidence.line, evidence.cursor, evidence.text)
        return next(
            (s for op in ops for s in op.steps if (s.source, s.line, s.cursor, s.text) == place), None
        )

    def open(self) -> None:
        """Read the whole line; the record, or the command."""
        item = self._list.item
        if isinstance(item, Evidence) and (step := self._step_of(item)) is not None:
            start(self, partial(self._open_step, step), group="open", exclusive=True)
        elif isinstance(item, Evidence):
            self._read("record", [Paragraph(show(item.source), "accent"), *_below(item.text)])
        elif isinstance(item, NextStep):
            self._read("command", [Paragraph(show(item.why), "dim"), *_below(item.command)])

    async def _open_step(self, step: Step) -> None:
        try:
            lines = await self.board.desk.lines_behind(step, RECORD_LINES)
        except Unreadable as error:
            more = [f"(the log cannot be read: {show(str(error))})"]
        else:
            more = [show(line.text) for line in lines[1:]]
        text = [Paragraph(where(step, full=True), "accent")]
        if step.at is not None:
            text.append(Paragraph(f"{date_time(step.at)}{Zone.mark()}", "dim"))
        text += [Paragraph(), Paragraph(show(step.text)), *map(Paragraph, more)]
        self._read("log line", [*text, Paragraph(), Paragraph(CERTAINTY_WORDS[step.certainty], "dim")], step)

    def _read(self, title: str, text: list[Paragraph], step: Step | None = None) -> None:
        from jobtui.screens.taking import step_taken

        taken = step_taken(self.board, step) if step is not None else None
        self.app.push_screen(ReadingScreen(self.board, title, text, taken))


def _below(text: str) -> list[Paragraph]:
    return [Paragraph(), Paragraph(show(text))]
