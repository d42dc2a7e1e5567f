"""One job: how it stands, its ops, the steps of the chosen op, and the log line behind the chosen step."""

from collections.abc import Iterable

from textual import on
from textual.app import ComposeResult
from textual.containers import Container

from jobtui.actions import Place, hints_at
from jobtui.model.ids import JobId
from jobtui.model.ops import Op
from jobtui.render.lanes import CERTAINTY_WORDS
from jobtui.render.text import Zone, date_time, show
from jobtui.screens.base import Board, LiveScreen, bindings_at
from jobtui.screens.reading import ReadingScreen
from jobtui.store.store import Changes
from jobtui.widgets.job_facts import JobFacts
from jobtui.widgets.key_line import KeyLine
from jobtui.widgets.op_list import OpList
from jobtui.widgets.row_view import Move
from jobtui.widgets.rule_line import RuleLine
from jobtui.widgets.source_strip import SourceStrip
from jobtui.widgets.step_detail import StepDetail, where
from jobtui.widgets.text_pane import Paragraph
from jobtui.widgets.timeline import Timeline

CLUTTER = frozenset({"run_status", "begin_session"})
"""Ops that only ask how things are or wake an agent; hidden until asked for, unless they went wrong."""


class JobScreen(LiveScreen):
    """The ops and messages of one job."""

    PLACE = Place.JOB
    BINDINGS = bindings_at(Place.JOB)

    DEFAULT_CSS = """
    JobScreen #panes { layout: horizontal; height: 1fr; }
    JobScreen OpList { width: 28; height: 100%; }
    JobScreen Timeline { width: 1fr; height: 100%; }
    JobScreen.-narrow #panes { layout: vertical; }
    JobScreen.-narrow OpList { width: 100%; height: 30%; }
    JobScreen.-narrow Timeline { width: 100%; height: 1fr; }
    JobScreen.-narrow.-low OpList, JobScreen.-narrow.-flat OpList { height: 1; }
    JobScreen.-low SourceStrip, JobScreen.-low StepDetail, JobScreen.-flat StepDetail { display: none; }
    JobScreen.-low JobFacts { height: 2; }
    JobScreen.-flat JobFacts { height: 1; }
    """

    def __init__(self, board: Board, job_id: JobId) -> None:
        super().__init__(board)
        self.job_id = job_id
        self._shows_hidden = False
        self._facts = JobFacts(board.now, job_id)
        self._strip = SourceStrip(board.now)
        self._ops = OpList(board.now)
        self._timeline = Timeline(board.now)
        self._detail = StepDetail()
        self._rule = RuleLine()

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield self._facts
        yield self._strip
        yield self._rule
        with Container(id="panes"):
            yield self._ops
            yield self._timeline
        yield RuleLine()
        yield self._detail
        yield RuleLine()
        yield KeyLine(hints_at(Place.JOB))

    def on_mount(self) -> None:
        """Show what is known already."""
        self.show_all()

    def take(self, changes: Changes) -> None:
        """Show what changed about this job."""
        if self.job_id in changes.jobs or self.job_id in changes.gone:
            self.show_all()
        self._strip.set_sources(self.board.store.sources())

    def show_all(self) -> None:
        """Show everything anew; what is the same is not painted again."""
        store = self.board.store
        self._facts.set_job(store.job(self.job_id), absolute=self.board.absolute)
        self._strip.set_sources(store.sources())
        ops = store.correlation.ops_of(self.job_id)
        shown = [op for op in ops if self._shows_hidden or op.name not in CLUTTER or op.error]
        self._ops.set_ops(shown, hidden=len(ops) - len(shown))
        self._timeline.set_op(self._ops.op, absolute=self.board.absolute)
        self._detail.set_step(self._timeline.step)
        self._rule.set_words(self._left_out())

    def _left_out(self) -> str:
        """What is known to be missing from the ops."""
        correlation = self.board.store.correlation
        unlinked, dropped = len(correlation.unlinked_of(self.job_id)), correlation.dropped_ops
        words = f"{unlinked:,} lines name this job and could not be placed" if unlinked else ""
        return words + (f"{' · ' if words else ''}{dropped:,} old ops were let go" if dropped else "")

    def tick(self) -> None:
        """Let ages go on."""
        self._facts.tick()
        self._ops.tick()
        self._timeline.tick()
        self._strip.set_sources(self.board.store.sources())

    def move_list(self, move: Move) -> None:
        """Move in the pane that has the keys."""
        (self._timeline if self._timeline.is_active else self._ops).move(move)

    def action_switch_pane(self) -> None:
        """From one pane to the other."""
        to_steps = not self._timeline.is_active
        self._timeline.set_active(to_steps)
        self._ops.set_active(not to_steps)

    def action_show_hidden(self) -> None:
        """Show or hide the ops that are only clutter."""
        self._shows_hidden = not self._shows_hidden
        self.show_all()

    def action_open(self) -> None:
        """Read the whole line behind the step."""
        if self._timeline.step is not None:
            self.app.push_screen(ReadingScreen(self.board, "log line", self._line_text()))

    def action_copy(self) -> None:
        """Copy the line behind the step where steps are chosen, the job's id otherwise."""
        step = self._timeline.step
        if self._timeline.is_active and step is not None:
            self.copy(show(step.text))
        else:
            self.copy(self.job_id)

    @on(OpList.Highlighted)
    def _op_chosen(self, message: OpList.Highlighted) -> None:
        self._timeline.set_op(message.op, absolute=self.board.absolute)

    @on(Timeline.Highlighted)
    def _step_chosen(self, message: Timeline.Highlighted) -> None:
        self._detail.set_step(message.step)

    def _line_text(self) -> Iterable[Paragraph]:
        step, op = self._timeline.step, self._ops.op
        if step is None:
            return
        yield Paragraph(where(step, full=True), "accent")
        if step.at is not None:
            yield Paragraph(f"{date_time(step.at)}{Zone.mark()}", "dim")
        yield Paragraph("")
        yield Paragraph(show(step.text))
        yield Paragraph("")
        yield Paragraph(CERTAINTY_WORDS[step.certainty], "dim")
        if op is not None:
            yield from _op_text(op)


def _op_text(op: Op) -> Iterable[Paragraph]:
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
