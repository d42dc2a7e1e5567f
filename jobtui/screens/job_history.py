"""The runs of a job, and the chosen one beside the last good one."""

from collections.abc import Iterator
from dataclasses import dataclass

from textual import on
from textual.app import ComposeResult
from textual.message import Message

from jobtui.analysis.compare import Comparison, Partner, choose, step_pairs
from jobtui.model.clock import Nanos
from jobtui.model.ids import JobId
from jobtui.model.jobs import Run
from jobtui.render import runs as rendered
from jobtui.render.columns import TimeLook
from jobtui.render.spans import Paragraph, words_of
from jobtui.screens.base import LiveScreen
from jobtui.screens.export import record_of
from jobtui.screens.job_tabs import JobTab
from jobtui.screens.shared import CopyTarget, Shared
from jobtui.screens.text import ReadingScreen
from jobtui.widgets.frame import RuleLine
from jobtui.widgets.record_list import RecordTable
from jobtui.widgets.text_pane import TextPane

MARGIN = 3


async def open_comparison(screen: LiveScreen, job_id: JobId, other: JobId | None = None) -> None:
    """Show a job beside another one, None: beside its last good run."""
    shared = screen.shared
    found = await _compared(shared, job_id, other)
    if isinstance(found, str):
        screen.notify(found, timeout=4, markup=False)
        return
    command = shared.command("compare", about=[job_id, *({found.right.job.id} - {job_id})])
    text: list[Paragraph] = []
    cells = max(20, screen.size.width - MARGIN)
    for line in map(words_of, rendered.comparison_lines(found, cells)):
        style = "warning" if line.endswith((rendered.PARTS, rendered.SLOWER)) else ""
        text.append(Paragraph(line, style if text else "title"))
    title = "compared with the last good run" if other is None else "side by side"
    screen.open_late(ReadingScreen(shared, title, text, CopyTarget("", command)))


async def _compared(shared: Shared, job_id: JobId, named: JobId | None) -> Comparison | str:
    from jobtui.analysis.explain.verdict import explain  # the first paint does not need them
    from jobtui.session.comparison import compared

    store = shared.store
    detail = await record_of(shared, job_id)
    if detail is None:
        return "no source has a record of this job"
    if named is not None:
        choice: Partner | None = Partner(named, None, "as it was submitted")
    else:
        choice = choose(store.job(job_id) or detail.job, detail.runs, tuple(store.jobs.values()))
    if choice is None:
        return "no good run is known to compare it with"
    other = detail if choice.job_id == job_id else await record_of(shared, choice.job_id)
    if other is None or (choice.number is not None and not other.runs):
        return "the record of the other run could not be read"
    gatherer = shared.gatherer()
    verdicts = [explain(await gatherer.whole(one)) for one in dict.fromkeys((job_id, choice.job_id))]
    return await compared(gatherer, detail, other, choice, verdicts)


SIDE_BY_SIDE_CELLS = 70
"""Cells from which there is room for two runs."""
LEAST_ROWS = 3
"""With fewer a list has no heading."""
NEVER = Nanos(1 << 62)
"""A time after every log."""


class HistoryTab(JobTab):
    """Every run of the record. The one under the cursor is the one the other tabs show."""

    NAME = "history"

    @dataclass
    class Chosen(Message):
        number: int

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._runs = RecordTable[Run](
            rendered.RUN_COLUMNS, lambda: TimeLook(shared.now(), relative=False), lambda run: run.number
        )
        self._about = TextPane()
        self._about.is_active = False
        self.panes = self._runs, self._about

    def compose(self) -> ComposeResult:
        yield self._runs
        yield RuleLine()
        yield self._about

    def show_subject(self) -> None:
        runs = self.subject.detail.runs if self.subject.detail else ()
        number = self.subject.run.number if self.subject.run else None
        at = next((at for at, run in enumerate(runs) if run.number == number), len(runs) - 1)
        self._runs.set_records(runs, at)
        self._runs.styles.height = max(LEAST_ROWS, len(runs) + self._runs.HEADINGS)
        self._compare()

    def tick(self) -> None:
        self._runs.repaint()

    def on_resize(self) -> None:
        self._compare()

    @property
    def copied(self) -> str | None:
        run = self._runs.record
        return (rendered.result_text(run) or None) if run else None

    @on(RecordTable.Highlighted)
    def _chosen(self, message: RecordTable.Highlighted) -> None:
        self.post_message(self.Chosen(message.record.number))

    def _compare(self) -> None:
        subject, run = self.subject, self._runs.record
        if run is None or subject.detail is None:
            nothing = "it never ran, by its record"
            if subject.detail is None:
                nothing = subject.problem or "no source has a record of this job"
            self._about.set_text([Paragraph(nothing, "dim")])
            return
        cells = max(1, self.size.width - 3)
        good = subject.good if cells >= SIDE_BY_SIDE_CELLS else None
        facts = rendered.side_by_side(run, good, self.shared.now(), cells)
        self._about.set_text((*facts, Paragraph(), *self._steps(run, good, cells)))

    def _steps(self, run: Run, good: Run | None, cells: int) -> Iterator[Paragraph]:
        subject = self.subject
        if good is None or subject.run is None or subject.run.number != run.number:
            return
        if not subject.ops or not subject.good_ops:
            unknown = run if not subject.ops else good
            yield Paragraph(f"No op of run {unknown.number} in the logs that were read.", "dim")
            if subject.ops and self.shared.job_reader.begins_after(good.queued_at or NEVER):
                yield Paragraph(f"↵ reads them back to run {good.number}, to compare what happened.", "dim")
            return
        pairs = step_pairs(subject.ops, subject.good_ops, self.shared.now())
        yield from rendered.step_lines(pairs, (run.number, good.number), cells)

    def open(self) -> None:
        if self.subject.good is not None and not self.subject.good_ops:
            self.post_message(self.LogsWanted(self.subject.good))
