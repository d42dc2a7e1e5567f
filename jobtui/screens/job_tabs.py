"""The common part of the tabs of the job screen: their subject, and what keys do to them."""

import asyncio
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from math import inf
from operator import attrgetter
from time import monotonic
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual import on, work
from textual.app import ComposeResult
from textual.containers import Container
from textual.message import Message

from jobtui.actions import ScreenName
from jobtui.analysis.compare import CLUTTER
from jobtui.analysis.correlation.job_events import EVENTS_KEPT
from jobtui.analysis.timeline import JobLine, job_lines, masked
from jobtui.model.health import contained
from jobtui.model.ids import JobId
from jobtui.model.job_reader import LINES_BEHIND, Unreadable
from jobtui.model.jobs import Job, JobDetail, Run
from jobtui.model.ops import Component, Op, Step, Unlinked
from jobtui.model.secret_blocks import SecretBlocks
from jobtui.model.verdicts import Fact, NextStep, Verdict
from jobtui.render.job_files import document_lines
from jobtui.render.lanes import certainty_words
from jobtui.render.log_lines import tags
from jobtui.render.spans import Paragraph, Piece
from jobtui.render.text import Zone, date_of, date_time, show
from jobtui.screens.shared import Shared, open_screen
from jobtui.screens.text import ReadingScreen
from jobtui.widgets.frame import RuleLine
from jobtui.widgets.row_view import PaneGroup
from jobtui.widgets.text_pane import TextPane
from jobtui.widgets.timeline import JobLog, OpList, StepDetail, Timeline, where

if TYPE_CHECKING:
    from jobtui.screens.trace_reader import JobTracing
    from jobtui.session.outputs import OutputLines

OUTPUT_EVERY_S, FAR_EVERY_S = 2.0, 15.0
"""How often output is looked at while it is shown, here and on another machine."""
MOST_WRITTEN = 5_000
"""Lines of output that are kept."""


class Subject(NamedTuple):
    """A job as its screen knows it. `ops` and `unlinked` are those of the chosen `run`, all without one.

    `silence` says, where there are no ops, what was read and what not; safe to show. `good` is the run that
    the chosen one is compared with, and `good_ops` are its ops. `verdict` is that on the newest run,
    `tracing` what finds its trace.
    """

    job_id: JobId
    job: Job | None = None
    ops: tuple[Op, ...] = ()
    unlinked: tuple[Unlinked, ...] = ()
    detail: JobDetail | None = None
    run: Run | None = None
    silence: tuple[str, ...] = ()
    problem: str = ""
    good: Run | None = None
    good_ops: tuple[Op, ...] = ()
    verdict: Verdict | None = None
    tracing: "JobTracing | None" = None

    @property
    def is_newest(self) -> bool:
        return self.run is None or self.detail is None or self.run.number == self.detail.runs[-1].number


class JobTab(PaneGroup):
    """One tab of the job screen: shows its `subject`; moves, opens and copies."""

    NAME: ClassVar[str]
    COMMAND: ClassVar[tuple[str, ...]] = ("show",)
    """The command of jobtui that shows the same, but for the id."""
    IS_WHOLE: ClassVar[bool] = False
    """Whether that command shows the same even if the cursor is on a line."""
    IS_SPLIT: ClassVar[bool] = False
    """Whether its panes are side by side if there is room."""

    class TextChanged(Message):
        """Its words have changed."""

    @dataclass
    class LogsWanted(Message):
        """The logs must be read back to this run."""

        run: Run

    def __init__(self, shared: Shared) -> None:
        super().__init__()
        self.shared = shared
        self.subject = Subject(JobId(""))

    def compose(self) -> ComposeResult:
        yield from (Container(*self.panes, id="panes"),) if self.IS_SPLIT else self.panes

    def show_subject(self) -> None:
        """Show its subject as it is now; what did not change is not painted again."""
        raise NotImplementedError

    def tick(self) -> None:
        """Let ages go on."""

    def open(self) -> None:
        """Open what is under the cursor."""

    @property
    def copied(self) -> str | None:
        return None

    @property
    def step_here(self) -> Step | None:
        return None

    @property
    def file_here(self) -> str:
        """The path of the file under the cursor, "" where there is none."""
        return ""

    @property
    def age(self) -> Piece | None:
        """The age of what it shows, None if that is the age of the sources."""
        return None

    @property
    def words(self) -> str:
        return ""

    async def lines_after(self, step: Step) -> list[str]:
        """The lines that continue the record of a step, or why they cannot be read; safe to show."""
        try:
            lines = await self.shared.job_reader.lines_behind(step, LINES_BEHIND)
        except Unreadable as error:
            return [f"(the log cannot be read: {show(str(error))})"]
        return [*map(show, map(SecretBlocks().hide, (line.text for line in lines)))][1:]


class StepTab(JobTab):
    """A tab with the log line under the cursor in a pane below."""

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._detail = StepDetail()

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield RuleLine()
        yield self._detail

    def show_step(self, step: Step | None) -> None:
        if step != self._detail.step:
            self._detail.step, self._detail.more = step, ()
            self._read_record(step)

    @work(group="record", exclusive=True, description="")
    async def _read_record(self, step: Step | None) -> None:
        if step is None:
            return
        found = await self.lines_after(step)
        if self._detail.step is step and (found or self._detail.more):
            self._detail.more = tuple(found)


class TimelineTab(StepTab):
    """What happened between the server, the supervisor and the agents."""

    NAME = "timeline"
    COMMAND = ("timeline",)
    IS_SPLIT = True

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._shows_hidden = False
        self._ops = OpList(shared.now)
        self._timeline = Timeline(shared.now)
        self.panes = self._ops, self._timeline

    def show_subject(self) -> None:
        ops = self.subject.ops
        shown = [op for op in ops if self._shows_hidden or op.name not in CLUTTER or op.error]
        self._ops.set_ops(shown, hidden=len(ops) - len(shown))
        self._timeline.empty = self.subject.silence if not ops else ()
        self._timeline.set_op(self._ops.record, absolute=self.shared.absolute)
        self.show_step(self._timeline.step)

    @property
    def words(self) -> str:
        unlinked = len(self.subject.unlinked)
        dropped = self.shared.store.correlation.dropped_ops
        words = [f"lines of this job that could not be placed: {unlinked:,}"] if unlinked else []
        return " · ".join((*words, *[f"{dropped:,} old ops were dropped"] * bool(dropped)))

    def tick(self) -> None:
        self._ops.tick()
        self._timeline.tick()

    def show_hidden(self) -> None:
        self._shows_hidden = not self._shows_hidden
        self.show_subject()

    def open(self) -> None:
        step, op = self._timeline.step, self._ops.record
        if step is None or (self._timeline.is_active and self._timeline.toggle_fold()):
            return
        from jobtui.analysis.traces.job_traces import span_of  # most jobs have no trace
        from jobtui.screens.export import step_taken

        if step.component is Component.SPAN and (span := span_of(step)) is not None:
            open_screen(self.app, ScreenName.TRACE, self.shared, *span)
            return
        text = [*line_text(step, self._detail.more if self._detail.step == step else ())]
        text += _op_text(op) if op is not None else ()
        self.app.push_screen(ReadingScreen(self.shared, "log line", text, step_taken(self.shared, step)))

    @property
    def copied(self) -> str | None:
        step = self._timeline.step
        return show(step.text) if self._timeline.is_active and step is not None else None

    @property
    def step_here(self) -> Step | None:
        return self._timeline.step if self._timeline.is_active else None

    @on(OpList.Highlighted)
    def _op_chosen(self, message: OpList.Highlighted) -> None:
        self._timeline.set_op(message.record, absolute=self.shared.absolute)

    @on(Timeline.StepHighlighted)
    def _step_chosen(self, message: Timeline.StepHighlighted) -> None:
        self.show_step(message.step)


def line_text(step: Step, more: Iterable[str]) -> Iterator[Paragraph]:
    """The whole record of a step, and how sure it is that it belongs there."""
    yield Paragraph(where(step, full=True), "accent")
    if step.at is not None:
        yield Paragraph(f"{date_time(step.at)}{Zone.mark()}", "dim")
    yield from (Paragraph(), Paragraph(show(step.text)), *map(Paragraph, more), Paragraph())
    yield Paragraph(certainty_words(step.component, step.certainty), "dim")


def _op_text(op: Op) -> Iterator[Paragraph]:
    messages = f"{op.sends} sent, {op.replies} replies, {op.updates} updates"
    yield Paragraph(show(f"op {op.op}, {op.name}: {messages}"), "dim")
    if op.error:
        yield Paragraph(show(op.error), "error")
    if op.candidates:
        yield Paragraph(show(f"may belong to {', '.join(op.candidates)}"), "warning")
    if op.dropped_steps:
        yield Paragraph(f"{op.dropped_steps:,} of its steps were dropped", "warning")


class LogsTab(StepTab):
    """The lines of a job, its program's output last, and the whole record of the chosen one."""

    NAME = "logs"
    COMMAND = ("logs",)
    IS_WHOLE = True

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._log = JobLog()
        self.panes = (self._log,)
        self._shown: tuple[object, ...] = ()
        self._lines: list[JobLine] = []
        self._written: list[JobLine] = []
        self._words, self._look_at = "", 0.0
        self._output: tuple[Job, JobDetail | None, OutputLines] | None = None

    def show_subject(self) -> None:
        subject = self.subject
        shown = subject.ops, subject.unlinked, subject.is_newest
        if shown != self._shown:
            self._shown = shown
            self._lines = masked(job_lines(subject.job_id, subject.ops, subject.unlinked))
            self._show_lines()
        self._log.empty = subject.silence
        self.tick()

    def _show_lines(self) -> None:
        subject = self.subject
        lines = [*self._lines, *(self._written if subject.is_newest else ())]
        self._log.is_cut = len(subject.unlinked) >= EVENTS_KEPT or any(op.dropped_steps for op in subject.ops)
        self._log.set_lines(lines, tags(lines, self.shared.store.sources()))
        self.show_step(self.step_here)

    @property
    def words(self) -> str:
        return self._words if self.subject.is_newest else "only the output of the newest run is shown"

    def tick(self) -> None:
        """Look at what its program wrote."""
        detail = self.subject.detail
        job = self.subject.job or (detail.job if detail is not None else None)
        if job is not None and monotonic() >= self._look_at:
            self._look_at = inf
            self._read_output(job, detail)

    @work(group="output", description="")
    async def _read_output(self, job: Job, detail: JobDetail | None) -> None:
        from jobtui.session.outputs import OutputLines  # most do not look so far

        if self._output is None or self._output[:2] != (job, detail):
            self._output = job, detail, OutputLines(job, detail, follows=True)
        output = self._output[2]
        with contained("reading what its program wrote"):
            shared = self.shared
            lines = await output.fresh(shared.store, shared.job_reader, shared.reach, again=True)
            if lines[-MOST_WRITTEN:] != self._written:
                self._written = lines[-MOST_WRITTEN:]
                self._show_lines()
            is_cut = output.skipped or len(lines) > MOST_WRITTEN
            words = ["only the newest lines of its output"] * bool(is_cut)
            if output.files or (detail is not None and detail.outputs):
                words += [f"its output {problem}" for problem in output.problems[:1]]
            self._words = show(" · ".join(words))
            self.post_message(self.TextChanged())
        is_far = any("://" in directory for directory, _ in output.files)
        self._look_at = monotonic() + (FAR_EVERY_S if is_far else OUTPUT_EVERY_S)

    def open(self) -> None:
        if (line := self._log.record) is not None:
            offset = None if "://" in line.source else line.offset
            open_screen(self.app, ScreenName.LOGS, self.shared, line.source, offset, line.at, line.text)

    @property
    def copied(self) -> str | None:
        line = self._log.record
        return None if line is None else show(line.text)

    @property
    def step_here(self) -> Step | None:
        return self._log.record

    @on(JobLog.Highlighted)
    def _line_chosen(self) -> None:
        self.show_step(self.step_here)


class WhyTab(JobTab):
    """The verdict as a text. A line of a log in it opens, a command in it is copied."""

    NAME = "why"
    COMMAND = ("explain",)
    IS_WHOLE = True

    def __init__(self, shared: Shared) -> None:
        from jobtui.widgets.text_pane import WhyList  # no first paint needs it

        super().__init__(shared)
        self._shown: tuple[Verdict | None, str, str] | None = None
        self._list = WhyList()
        self.panes = (self._list,)

    def show_subject(self) -> None:
        from jobtui.render.verdicts import why_parts
        from jobtui.screens.job_verdict import keys_for

        verdict, now = self.subject.verdict, self.shared.now()
        shown = (verdict, date_of(now), Zone.mark())
        if shown != self._shown:
            self._shown = shown
            keys = partial(keys_for, self.shared.words, ScreenName.JOB)
            self._list.set_text(why_parts(verdict, now, keys=keys) if verdict is not None else ())

    @property
    def words(self) -> str:
        detail, is_newest = self.subject.detail, self.subject.is_newest
        return "" if detail is None or is_newest else f"about run {detail.runs[-1].number}, the newest"

    @property
    def copied(self) -> str | None:
        match self._list.item:
            case NextStep(command=command):
                return show(command)
            case Fact(text=text):
                return show(text)
            case _:
                return None

    @property
    def step_here(self) -> Step | None:
        item = self._list.item
        return self._step_of(item) if isinstance(item, Fact) else None

    def _step_of(self, fact: Fact) -> Step | None:
        """The step that a line of evidence is; None if it is a fact of the record."""
        ops = self.shared.store.correlation.ops_of(self.subject.job_id)
        written = attrgetter("source", "line", "cursor", "text")
        return next((step for op in ops for step in op.steps if written(step) == written(fact)), None)

    def open(self) -> None:
        item = self._list.item
        if isinstance(item, Fact) and (step := self._step_of(item)) is not None:
            self._open_step(step)
        elif isinstance(item, Fact):
            self._read("record", Paragraph(show(item.source), "accent"), item.text)
        elif isinstance(item, NextStep):
            self._read("command", Paragraph(show(item.why), "dim"), item.command)

    @work(group="open", exclusive=True, description="")
    async def _open_step(self, step: Step) -> None:
        from jobtui.screens.export import step_taken

        text = line_text(step, await self.lines_after(step))
        self.app.push_screen(ReadingScreen(self.shared, "log line", text, step_taken(self.shared, step)))

    def _read(self, title: str, head: Paragraph, text: str) -> None:
        paragraphs = (head, Paragraph(), Paragraph(show(text)))
        self.app.push_screen(ReadingScreen(self.shared, title, paragraphs))


class RawTab(JobTab):
    """The record: where it is, when it was written, and its fields."""

    NAME = "raw"
    COMMAND = ("show", "--json")

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._shown: tuple[JobDetail, str] | None = None
        self._text = TextPane()
        self.panes = (self._text,)

    def show_subject(self) -> None:
        detail = self.subject.detail
        if detail is None:
            words = self.subject.problem or "no source has a record of this job"
            self._text.set_text([Paragraph(words, "warning")])
            self._shown = None
        elif (detail, Zone.mark()) != self._shown:
            self._shown = (detail, Zone.mark())
            self._format(detail)

    @property
    def copied(self) -> str | None:
        return self._text.text or None

    @work(group="format", exclusive=True, description="")
    async def _format(self, detail: JobDetail) -> None:
        head = [Paragraph(show(detail.path or detail.job.source), "accent")]
        if detail.job.written_at is not None:
            head.append(Paragraph(f"written {date_time(detail.job.written_at)}{Zone.mark()}", "dim"))
        head += (Paragraph(show(f"{name} {text}"), "dim") for name, text in detail.facts)
        # a record can be large, and keys must not wait for it
        lines = await asyncio.to_thread(list, document_lines(detail.native))
        self._text.set_text((*head, Paragraph(), *map(Paragraph, lines)))
