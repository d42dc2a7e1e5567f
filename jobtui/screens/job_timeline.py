"""The ops of a job, the steps of the chosen op, and the lines behind the chosen step."""

from collections.abc import Iterator
from functools import partial

from textual import on
from textual.app import ComposeResult
from textual.containers import Container

from jobtui.analysis.run_steps import CLUTTER
from jobtui.model.ops import Component, Op, Step
from jobtui.render.lanes import certainty_words
from jobtui.render.text import Zone, date_time, show
from jobtui.screens.base import Board
from jobtui.screens.job_tab import JobTab, Subject, read_record, start
from jobtui.screens.reading import ReadingScreen
from jobtui.widgets.op_list import OpList
from jobtui.widgets.row_view import Move
from jobtui.widgets.rule_line import RuleLine
from jobtui.widgets.step_detail import StepDetail, where
from jobtui.widgets.text_pane import Paragraph
from jobtui.widgets.timeline import Timeline


class TimelineTab(JobTab):
    """What happened between the server, the supervisor and the agents."""

    NAME = "timeline"
    COMMAND = ("timeline",)
    SCOPED_CSS = False  # its rules name the screen, whose classes say how much room there is
    DEFAULT_CSS = """
    TimelineTab #panes { layout: horizontal; height: 1fr; }
    TimelineTab OpList { width: 28; height: 100%; }
    TimelineTab Timeline { width: 1fr; height: 100%; }
    JobScreen.-narrow TimelineTab #panes { layout: vertical; }
    JobScreen.-narrow TimelineTab OpList { width: 100%; height: 30%; }
    JobScreen.-narrow TimelineTab Timeline { width: 100%; height: 1fr; }
    JobScreen.-narrow.-low TimelineTab OpList, JobScreen.-narrow.-flat TimelineTab OpList { height: 1; }
    """

    def __init__(self, board: Board) -> None:
        super().__init__(board)
        self._shows_hidden = False
        self._subject: Subject | None = None
        self._ops = OpList(board.now)
        self._timeline = Timeline(board.now)
        self._detail = StepDetail()

    def compose(self) -> ComposeResult:
        """Ops and steps beside each other, the line below."""
        with Container(id="panes"):
            yield self._ops
            yield self._timeline
        yield RuleLine()
        yield self._detail

    def set_subject(self, subject: Subject) -> None:
        """Show these ops."""
        self._subject = subject
        ops = subject.ops
        shown = [op for op in ops if self._shows_hidden or op.name not in CLUTTER or op.error]
        self._ops.set_ops(shown, hidden=len(ops) - len(shown))
        self._timeline.set_empty(subject.silence if not ops else ())
        self._timeline.set_op(self._ops.op, absolute=self.board.absolute)
        self._show_step(self._timeline.step)

    @property
    def words(self) -> str:
        """What is known to be missing from the ops."""
        unlinked = len(self._subject.unlinked) if self._subject else 0
        dropped = self.board.store.correlation.dropped_ops
        words = f"{unlinked:,} lines name this job and could not be placed" if unlinked else ""
        return words + (f"{' · ' if words else ''}{dropped:,} old ops were let go" if dropped else "")

    def tick(self) -> None:
        """Let ages go on."""
        self._ops.tick()
        self._timeline.tick()

    def move(self, move: Move) -> None:
        """Move in the pane that has the keys."""
        (self._timeline if self._timeline.is_active else self._ops).move(move)

    def switch_pane(self) -> None:
        """From the ops to the steps, or back."""
        to_steps = not self._timeline.is_active
        self._timeline.set_active(to_steps)
        self._ops.set_active(not to_steps)

    def show_hidden(self) -> None:
        """Show or hide the ops that are only clutter."""
        self._shows_hidden = not self._shows_hidden
        if self._subject is not None:
            self.set_subject(self._subject)

    def open(self) -> None:
        """Read the whole line behind the step; unfold what repeats, or fold it again."""
        if self._timeline.is_active and self._timeline.toggle_fold():
            return
        if self._timeline.step is not None and not self._open_span(self._timeline.step):
            from jobtui.screens.taking import step_taken

            taken = step_taken(self.board, self._timeline.step)
            self.app.push_screen(ReadingScreen(self.board, "log line", self._line_text(), taken))

    def _open_span(self, step: Step) -> bool:
        """Open the trace at the span that a step stands for; whether it stands for one."""
        from jobtui.analysis.traces.join import span_of  # most jobs have no trace
        from jobtui.screens.trace import TraceScreen

        if step.component is not Component.SPAN or (span := span_of(step)) is None:
            return False
        self.app.push_screen(TraceScreen(self.board, *span))
        return True

    @property
    def copied(self) -> str | None:
        """The line behind the step where steps are chosen."""
        step = self._timeline.step
        return show(step.text) if self._timeline.is_active and step is not None else None

    @property
    def step_here(self) -> Step | None:
        """The step, where steps are chosen."""
        return self._timeline.step if self._timeline.is_active else None

    @on(OpList.Highlighted)
    def _op_chosen(self, message: OpList.Highlighted) -> None:
        self._timeline.set_op(message.op, absolute=self.board.absolute)

    @on(Timeline.Highlighted)
    def _step_chosen(self, message: Timeline.Highlighted) -> None:
        self._show_step(message.step)

    def _show_step(self, step: Step | None) -> None:
        if step == self._detail.step:
            return
        self._detail.set_step(step)
        reading = partial(read_record, self.board.desk, self._detail, step)
        start(self, reading, group="record", exclusive=True)

    def _line_text(self) -> Iterator[Paragraph]:
        step, op = self._timeline.step, self._ops.op
        if step is None:
            return
        yield Paragraph(where(step, full=True), "accent")
        if step.at is not None:
            yield Paragraph(f"{date_time(step.at)}{Zone.mark()}", "dim")
        yield Paragraph("")
        yield Paragraph(show(step.text))
        yield from map(Paragraph, self._detail.more if self._detail.step == step else ())
        yield Paragraph("")
        yield Paragraph(certainty_words(step.component, step.certainty), "dim")
        if op is not None:
            yield from _op_text(op)


def _op_text(op: Op) -> Iterator[Paragraph]:
    """What is known of the op as a whole, and could not be decided."""
    yield Paragraph(
        show(f"op {op.op}, {op.name}: {op.sends} sent, {op.replies} replies, {op.updates} updates"), "dim"
    )
    if op.error:
        yield Paragraph(show(op.error), "error")
    if op.candidates:
        yield Paragraph(show(f"may belong to {', '.join(op.candidates)}"), "warning")
    if op.dropped_steps:
        yield Paragraph(f"{op.dropped_steps:,} of its steps were dropped", "warning")
