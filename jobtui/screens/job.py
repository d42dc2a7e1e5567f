"""One job: how it stands, and in tabs what happened to it, its lines, its runs, its files, its record."""

from functools import partial

from textual import on
from textual.app import ComposeResult

from jobtui.actions import Place, hints_at
from jobtui.model.ids import JobId
from jobtui.model.job_desk import Unreadable
from jobtui.model.jobs import Run
from jobtui.render.sources import judge_all
from jobtui.render.text import show
from jobtui.screens.base import Board, LiveScreen, Taken, bindings_at
from jobtui.screens.beside import BesideScreen
from jobtui.screens.error import ErrorScreen
from jobtui.screens.explaining import Explaining
from jobtui.screens.job_files import FilesTab
from jobtui.screens.job_history import HistoryTab
from jobtui.screens.job_logs import LogsTab
from jobtui.screens.job_raw import RawTab
from jobtui.screens.job_script import ScriptTab
from jobtui.screens.job_subject import Known, subject_of
from jobtui.screens.job_tab import JobTab, Subject, start
from jobtui.screens.job_timeline import TimelineTab
from jobtui.screens.job_trace import TraceTab
from jobtui.screens.job_tracing import JobTracing
from jobtui.screens.job_why import WhyTab
from jobtui.screens.on_cluster import concerns, show_cluster
from jobtui.screens.reaching import Reaching
from jobtui.store.store import Changes
from jobtui.widgets.job_facts import JobFacts, ends_of
from jobtui.widgets.key_line import KeyLine
from jobtui.widgets.row_view import Move
from jobtui.widgets.rule_line import RuleLine
from jobtui.widgets.source_strip import SourceStrip
from jobtui.widgets.tab_line import TabLine

TABS: tuple[type[JobTab], ...] = (
    TimelineTab,
    WhyTab,
    LogsTab,
    HistoryTab,
    TraceTab,
    ScriptTab,
    FilesTab,
    RawTab,
)


class JobScreen(BesideScreen):
    """A job in tabs, of which those are made that were looked at."""

    PLACE = Place.JOB
    BINDINGS = bindings_at(Place.JOB)

    DEFAULT_CSS = """
    JobScreen.-tall StepDetail { height: 6; }
    JobScreen.-low SourceStrip, JobScreen.-low StepDetail, JobScreen.-flat StepDetail { display: none; }
    JobScreen.-low TabLine, JobScreen.-flat TabLine { display: none; }
    JobScreen.-low JobFacts { height: 2; }
    JobScreen.-flat JobFacts { height: 1; }
    """
    VERTICAL_BREAKPOINTS = [*LiveScreen.VERTICAL_BREAKPOINTS, (34, "-tall")]

    def __init__(self, board: Board, job_id: JobId) -> None:
        super().__init__(board)
        self.job_id = job_id
        self._known = Known()
        self._number: int | None = None
        self._waits_to_reach = False
        self._reaching = Reaching(board, self._say)
        self._tracing = JobTracing(self, board, self._say)
        self._explaining = Explaining(self, board, job_id, self._say)
        self._facts = JobFacts(board.now, job_id)
        self._cluster = partial(show_cluster, self._facts, board, job_id, self._explaining.note_slurm)
        self._strip = SourceStrip(board.now)
        self._tab_line = TabLine([tab.NAME for tab in TABS])
        self._foot = RuleLine()
        self._tabs: dict[str, JobTab] = {}
        self._tab: JobTab = self._tab_of(TimelineTab.NAME)

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield self._facts
        yield self._strip
        yield self._tab_line
        yield self._tab
        yield self._foot
        yield KeyLine(hints_at(Place.JOB))

    def on_mount(self) -> None:
        """Show what is known already, and read more."""
        self.show_all()
        start(self, self._open_up, group="open")

    @property
    def crumb(self) -> str:
        """User and model of the job."""
        return show(ends_of(self.job_id))

    def show_trail(self) -> None:
        """Say where one is."""
        self._facts.set_trail(self.trail)

    async def _open_up(self) -> None:
        await self._read_record()
        start(self, self._trace, group="trace", exclusive=True)
        await self._reach()

    async def _trace(self) -> None:
        subject = self._subject()
        await self._tracing.find(subject.job, subject.ops, subject.unlinked)

    async def _read_record(self) -> None:
        start(self, self._cluster, group="cluster", exclusive=True)
        try:
            self._known = Known(await self.board.desk.detail(self.job_id))
        except Unreadable as error:
            self._known = Known(self._known.detail, show(str(error)))
        self._explaining.renew(self._known.detail)
        self._show()

    @on(JobTab.Wanted)
    def _read_back_to(self, message: JobTab.Wanted) -> None:
        reading = partial(self._reaching.reach, message.run.queued_at)
        start(self, reading, group="open", exclusive=True)

    async def _reach(self) -> None:
        """Read the logs back to the chosen run, if they were read from later only; after a pause."""
        self._waits_to_reach = self.board.paused_at is not None
        if self._waits_to_reach:
            return
        job, run = self.board.live.job(self.job_id), self._run
        queued_at = run.queued_at if run else job.queued_at if job else None
        await self._reaching.reach(queued_at)
        self._explaining.renew(self._known.detail)
        self._show()

    def pause_ended(self) -> None:
        """Go on, and do what waited for that."""
        super().pause_ended()
        if self._waits_to_reach:
            start(self, self._reach, group="open", exclusive=True)

    def _say(self) -> None:
        """The words about reading back changed, or the verdict."""
        if self.is_attached:
            self._show()

    def take(self, changes: Changes) -> None:
        """Show what changed about this job."""
        if self.job_id in changes.jobs or self.job_id in changes.gone:
            start(self, self._read_record, group="record", exclusive=True)
            self._show()
        elif concerns(self.board, self.job_id, changes.jobs):
            start(self, self._cluster, group="cluster", exclusive=True)
            self._explaining.renew(self._known.detail)
        elif changes.sources:
            self._explaining.renew(self._known.detail)
        self._tracing.changed(changes.traces)
        if self._tracing.is_to_be_found_again(self.job_id in changes.jobs, changes.traces):
            start(self, self._trace, group="trace", exclusive=True)
        self._show_sources()

    def show_all(self) -> None:
        """Show everything anew; what is the same is not painted again."""
        self._show_sources()
        self._show()

    def _show_sources(self) -> None:
        """How old the data is."""
        sources = self.board.store.sources()
        self._strip.set_sources(sources)
        self._facts.set_age(self._tab.age or judge_all(sources, self.board.now()))

    def _show(self) -> None:
        subject = self._subject()
        shown_run = subject.run.number if subject.run else None
        self._facts.set_verdict(subject.study.verdict if subject.study else None)
        self._facts.set_job(subject.job, absolute=self.board.absolute, run=shown_run)
        self._tab.set_subject(subject)
        self._show_words()

    @on(JobTab.Told)
    def _show_words(self) -> None:
        problem = self._known.problem if self._known.detail else ""
        not_read = f"the record could not be read again: {problem}" if problem else ""
        self._tab_line.set_words(self._reaching.words or not_read or self._tab.words)

    @property
    def _runs(self) -> tuple[Run, ...]:
        return self._known.detail.runs if self._known.detail else ()

    @property
    def _run(self) -> Run | None:
        """The run that was chosen, else the newest."""
        newest = self._runs[-1] if self._runs else None
        return next((run for run in self._runs if run.number == self._number), newest)

    def _subject(self) -> Subject:
        subject = subject_of(self.board.store, self.job_id, self._known, self._run, self._reaching)
        traced = self._tracing.ops(subject.ops, subject.unlinked)
        return subject._replace(
            ops=(*subject.ops, *traced),
            silence=() if traced else subject.silence,
            study=self._explaining.study,
            tracing=self._tracing,
        )

    def tick(self) -> None:
        """Let ages go on."""
        self._facts.tick()
        self._explaining.tick()
        self._tab.tick()
        self._show_sources()
        self._show_words()

    def move_list(self, move: Move) -> None:
        """Move in the pane that has the keys."""
        self._tab.move(move)

    async def action_tab(self, name: str) -> None:
        """Bring another tab to the front."""
        self._tab.display = False
        self._tab = self._tab_of(name)
        self._tab.display = True
        if not self._tab.is_attached:
            await self.mount(self._tab, before=self._foot)
        self._tab_line.set_current(name)
        self._show_sources()
        self._show()

    def _tab_of(self, name: str) -> JobTab:
        if name not in self._tabs:
            self._tabs[name] = next(tab for tab in TABS if name == tab.NAME)(self.board)
        return self._tabs[name]

    def action_run(self, step: int) -> None:
        """The run before or after."""
        numbers = [run.number for run in self._runs]
        if self._run is None:
            return
        at = numbers.index(self._run.number) + step
        if 0 <= at < len(numbers):
            self._choose(numbers[at])

    @on(HistoryTab.Chosen)
    def _run_chosen(self, message: HistoryTab.Chosen) -> None:
        self._choose(message.number)

    def _choose(self, number: int) -> None:
        if self._run is not None and self._run.number != number:
            newest = self._runs[-1].number
            self._number = None if number == newest else number
            self._show()
            start(self, self._reach, group="open", exclusive=True)

    def action_back(self) -> None:
        """Stop reading the logs back while that goes on; leave the screen otherwise."""
        if self._reaching.goes_on:
            self.workers.cancel_group(self, "open")
        else:
            super().action_back()

    def action_switch_pane(self) -> None:
        """From one pane to the other."""
        self._tab.switch_pane()

    def action_show_hidden(self) -> None:
        """Show or hide the ops that are only clutter."""
        if isinstance(self._tab, TimelineTab):
            self._tab.show_hidden()

    def action_open(self) -> None:
        """Open what is under the cursor."""
        self._tab.open()

    def action_copy(self) -> None:
        """Copy what is under the cursor, the job's id otherwise."""
        self.copy(self._tab.copied or self.job_id)

    async def taken(self) -> Taken | None:
        """The line or the file under the cursor, the job otherwise, and the command that shows the same."""
        # Imported here, as the first paint does not need it
        from jobtui.screens.taking import tab_taken

        return await tab_taken(self.board, self._tab, self.job_id)

    async def action_error(self) -> None:
        """Read the error as a whole."""
        job, run = self.board.store.job(self.job_id), self._run
        told = run or job
        text = (told.error or told.alert or told.message) if told else None
        if text or self._known.problem:
            title = f"run {run.number}" if run else "error"
            taken = await self.taken()
            self.app.push_screen(ErrorScreen(self.board, title, text or self._known.problem, taken))
        else:
            self.notify("no error is known of this run", timeout=2)
