"""One job: its state, and in tabs what happened to it, its lines, its runs, its files, its record."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from functools import partial
from time import monotonic

from textual import on, work
from textual.app import ComposeResult

from jobtui.actions import ScreenName, hints_at, key_of
from jobtui.analysis.compare import last_good
from jobtui.analysis.keys import CLUSTER_MODE
from jobtui.analysis.timeline import ops_in, unlinked_in, window_of
from jobtui.backends.registry import Gives, kinds_that_give
from jobtui.model.clock import SECOND, Nanos, Window
from jobtui.model.health import SourceState
from jobtui.model.ids import JobId, numbered
from jobtui.model.job_reader import Unreadable
from jobtui.model.jobs import SLURM, JobDetail, Run
from jobtui.model.logs import Reached
from jobtui.model.numbers import counted
from jobtui.model.ops import Op
from jobtui.render.columns import RowContext
from jobtui.render.facts import cluster_words, joined_words
from jobtui.render.sources import extents, judge_all
from jobtui.render.text import Zone, clock_time, ends_of, show
from jobtui.screens.base import LiveScreen
from jobtui.screens.job_files import FilesTab, ScriptTab
from jobtui.screens.job_history import HistoryTab
from jobtui.screens.job_tabs import JobTab, LogsTab, RawTab, Subject, TimelineTab, WhyTab
from jobtui.screens.job_verdict import JobVerdict
from jobtui.screens.shared import CopyTarget, Shared, start
from jobtui.screens.text import ErrorScreen
from jobtui.screens.trace import TraceTab
from jobtui.screens.trace_reader import JobTracing
from jobtui.store.store import Changes
from jobtui.widgets.frame import KeyLine, RuleLine, SourceStrip, TabLine
from jobtui.widgets.job_facts import JobFacts

SLACK_S = 600
"""How much is read before the submission of a run, seconds: its agent was started before it."""
PATIENCE_S = 10.0
"""How long to wait for logs that were not read at all yet."""
MB = 1_000_000
TELL_S = 0.25
"""How often progress of reading is reported."""
STOPS = "· esc stops"


class LogBackReader:
    """Reads the logs back to a run if they were not read from early enough."""

    def __init__(self, shared: Shared, changed: Callable[[], None]) -> None:
        self._shared = shared
        self._changed = changed
        self._back_to: Nanos | None = None
        self._problem = ""
        self._posted_at = 0.0
        self.words = ""
        """Its progress while it reads, else ""; safe to show."""

    async def reach(self, queued_at: Nanos | None) -> None:
        self._announce("")
        if queued_at is None:
            return
        await self._logs_begun()
        if not self._shared.job_reader.begins_after(queued_at):
            return
        at = Nanos(max(0, queued_at - SLACK_S * SECOND))
        self._problem = "Stopped: the logs were not read further back."
        begun = f"reading the logs back to {self._time(at)}"
        self._announce(f"{begun} … {STOPS}")
        try:
            if await self._shared.job_reader.reach_back(at, partial(self._show_share, begun)):
                self._back_to = at if self._back_to is None else min(at, self._back_to)
            self._problem = ""
        except Unreadable as error:
            self._problem = f"The logs could not be read back to {self._time(at)}: {show(str(error))}."
        finally:
            self._announce("")

    def _show_share(self, begun: str, reached: Reached) -> None:
        now = monotonic()
        if now - self._posted_at < TELL_S:
            return
        self._posted_at = now
        share = f": {counted(reached.records, 'record')}"
        if reached.size:
            share = f": {reached.read / MB:,.0f} of {reached.size / MB:,.0f} MB"
        self._announce(f"{begun}{share} {STOPS}")

    async def _logs_begun(self) -> None:
        news = asyncio.Event()
        logs, live = kinds_that_give(Gives.LOGS), self._shared.live
        unsubscribe = live.subscribe(lambda changes: news.set())
        try:
            async with asyncio.timeout(PATIENCE_S):
                while any(one.kind in logs and one.state is SourceState.STARTING for one in live.sources()):
                    await news.wait()
                    news.clear()
        except TimeoutError:
            return
        finally:
            unsubscribe()

    def _announce(self, words: str) -> None:
        if words != self.words:
            self.words = words
            self._changed()

    def _time(self, at: Nanos) -> str:
        return f"{clock_time(at, self._shared.now())[:-3]}{Zone.mark()}"

    def silence(self, job_id: JobId, number: int | None) -> tuple[str, ...]:
        """The text if no op is known: what was read, and what was not; safe to show.

        `number` is the run that was chosen. Other systems than Sirepo report states without a log.
        """
        if (other := numbered(job_id)) is not None:
            return (f"{show(other.system)} has reported no change of its state.",)
        if self.words:
            return (f"No op of it yet: {self.words}",)
        logs = [*extents(self._shared.store.sources(), kinds_that_give(Gives.LOGS))]
        if not logs:
            return "No log is read.", key_of("app.go('logs')") + " shows how to name one."
        what = "this job" if number is None else f"run {number}"
        words = [f"No op of {what} in the logs that were read:", *logs]
        if self._problem:
            words.append(self._problem)
        elif self._back_to is not None:
            words.append(f"The logs were read back to {self._time(self._back_to)} for this.")
        return tuple(words)


TABS: tuple[type[JobTab], ...] = (
    TimelineTab, WhyTab, LogsTab, HistoryTab, TraceTab, ScriptTab, FilesTab, RawTab,
)  # fmt: skip


class JobScreen(LiveScreen):
    """A job in tabs, each made when it is first shown."""

    NAME = ScreenName.JOB

    def __init__(self, shared: Shared, job_id: JobId) -> None:
        super().__init__(shared)
        self.job_id = job_id
        self._detail: JobDetail | None = None
        self._problem = ""
        """Why the record could not be read last."""
        self._number: int | None = None
        self._waits_to_reach = False
        self._reaching = LogBackReader(shared, self._say)
        self._tracing = JobTracing(self, shared, self._say)
        self._judged = JobVerdict(self, shared, self._say, job_id)
        self._facts = JobFacts(shared.now_of, job_id)
        self._strip = SourceStrip(shared.now)
        self._tab_line = TabLine([tab.NAME for tab in TABS])
        self._foot = RuleLine()
        self._tabs: dict[str, JobTab] = {}
        self._main: JobTab = self._tab_of(TimelineTab.NAME)

    def compose(self) -> ComposeResult:
        yield self._facts
        yield self._strip
        yield self._tab_line
        yield self._main
        yield self._foot
        yield KeyLine(hints_at(ScreenName.JOB))

    def on_mount(self) -> None:
        self.show_all()
        start(self, self._open_up, group="open")

    @property
    def crumb(self) -> str:
        return show(ends_of(self.job_id))

    def show_trail(self) -> None:
        self._facts.trail = self.trail

    async def _open_up(self) -> None:
        await self._read_record()
        self._find_trace()
        await self._reach()

    @work(group="trace", exclusive=True)
    async def _find_trace(self) -> None:
        subject = self._subject()
        await self._tracing.find(subject.job, subject.ops, subject.unlinked)

    async def _read_record(self) -> None:
        self._show_cluster()
        try:
            self._detail, self._problem = await self.shared.job_reader.detail(self.job_id), ""
        except Unreadable as error:
            self._problem = show(str(error))
        self._judged.renew(self._detail)
        self._show()

    @work(group="cluster", exclusive=True)
    async def _show_cluster(self) -> None:
        """Its number and state in Slurm: Slurm's own word if there is one, else as the agent noted it."""
        from jobtui.analysis.keys import sirepo_of, slurm_of  # the first paint does not need it

        noted = await self.shared.gatherer().noted(self.shared.store.job(self.job_id))
        status = noted.status if noted is not None else None
        number = status.slurm_id if status is not None else None
        self._judged.note_slurm(number)
        words, job = "", self.shared.store.job(self.job_id)
        if job is not None and (submitter := sirepo_of(job)) is not None:
            words = joined_words(submitter, self.shared.store.job(submitter))
        elif job is not None:
            words = cluster_words(status, slurm_of(job, self.shared.store.jobs.values(), number))
        self._facts.cluster = words

    @on(JobTab.LogsWanted)
    def _read_back_to(self, message: JobTab.LogsWanted) -> None:
        reading = partial(self._reaching.reach, message.run.queued_at)
        start(self, reading, group="open", exclusive=True)

    async def _reach(self) -> None:
        self._waits_to_reach = self.shared.paused_at is not None
        if self._waits_to_reach:
            return
        job, run = self.shared.live.job(self.job_id), self._run
        queued_at = run.queued_at if run else job.queued_at if job else None
        await self._reaching.reach(queued_at)
        self._judged.renew(self._detail)
        self._show()

    def pause_ended(self) -> None:
        super().pause_ended()
        if self._waits_to_reach:
            start(self, self._reach, group="open", exclusive=True)

    def _say(self) -> None:
        if self.is_attached:
            self._show()

    def take(self, changes: Changes) -> None:
        if self.job_id in changes.jobs or self.job_id in changes.gone:
            start(self, self._read_record, group="record", exclusive=True)
            self._show()
        elif self._concerns(changes.jobs):
            self._show_cluster()
            self._judged.renew(self._detail)
        elif changes.sources:
            self._judged.renew(self._detail)
        self._tracing.changed(changes.traces)
        if self._tracing.is_to_be_found_again(self.job_id in changes.jobs, changes.traces):
            self._find_trace()
        self._show_sources()

    def _concerns(self, changed: Collection[JobId]) -> bool:
        from jobtui.analysis.keys import sirepo_of

        job = self.shared.store.job(self.job_id)
        if job is None:
            return False
        if job.mode == CLUSTER_MODE:
            return any(one.startswith(SLURM) for one in changed)
        return sirepo_of(job) in changed

    def show_all(self) -> None:
        self._show_sources()
        self._show()

    def _show_sources(self) -> None:
        sources = self.shared.store.sources()
        self._strip.sources = sources
        self._facts.age = self._main.age or judge_all(sources, self.shared.now())

    def _show(self) -> None:
        subject = self._subject()
        shown_run = subject.run.number if subject.run else None
        self._facts.verdict = subject.verdict
        self._facts.job, self._facts.run, self._facts.absolute = subject.job, shown_run, self.shared.absolute
        self._main.subject = subject
        self._main.show_subject()
        self._show_words()

    @on(JobTab.TextChanged)
    def _show_words(self) -> None:
        problem = self._problem if self._detail else ""
        not_read = f"the record could not be read again: {problem}" if problem else ""
        self._tab_line.words = self._reaching.words or not_read or self._main.words

    @property
    def _runs(self) -> tuple[Run, ...]:
        return self._detail.runs if self._detail else ()

    @property
    def _run(self) -> Run | None:
        newest = self._runs[-1] if self._runs else None
        return next((run for run in self._runs if run.number == self._number), newest)

    def _subject(self) -> Subject:
        store, job_id, runs, run = self.shared.store, self.job_id, self._runs, self._run
        window = window_of(runs, run.number) if run else Window()
        all_ops = store.correlation.ops_of(job_id) or self._ops_of_states()
        ops, unlinked = ops_in(window, all_ops), unlinked_in(window, store.correlation.unlinked_of(job_id))
        traced = self._tracing.ops(ops, unlinked)
        good = last_good(runs, run.number) if run else None
        return Subject(
            job_id=job_id,
            job=store.job(job_id),
            ops=(*ops, *traced),
            unlinked=unlinked,
            detail=self._detail,
            run=run,
            silence=() if ops or traced else self._reaching.silence(job_id, run.number if run else None),
            problem=self._problem,
            good=good,
            good_ops=ops_in(window_of(runs, good.number), all_ops) if good else (),
            verdict=self._judged.verdict,
            tracing=self._tracing,
        )

    def _ops_of_states(self) -> tuple[Op, ...]:
        """The runs of the job by its changes of state: those read with its record if these are more."""
        changes = self.shared.store.changes_of(self.job_id)
        if self._detail is not None and len(self._detail.changes) > len(changes):
            changes = self._detail.changes
        if not changes:
            return ()
        from jobtui.analysis.timeline import ops_of_changes

        return ops_of_changes(self.shared.store.job(self.job_id), changes)

    def tick(self) -> None:
        self._facts.repaint()
        self._judged.tick()
        self._main.tick()
        self._show_sources()
        self._show_words()

    async def action_tab(self, name: str) -> None:
        self._main.display = False
        self._main = self._tab_of(name)
        self._main.display = True
        if not self._main.is_attached:
            await self.mount(self._main, before=self._foot)
        self._tab_line.current = name
        self._show_sources()
        self._show()

    def _tab_of(self, name: str) -> JobTab:
        if name not in self._tabs:
            self._tabs[name] = next(tab for tab in TABS if name == tab.NAME)(self.shared)
        return self._tabs[name]

    def action_run(self, step: int) -> None:
        numbers = [run.number for run in self._runs]
        if self._run is not None and 0 <= (at := numbers.index(self._run.number) + step) < len(numbers):
            self._choose(numbers[at])

    @on(HistoryTab.Chosen)
    def _run_chosen(self, message: HistoryTab.Chosen) -> None:
        self._choose(message.number)

    def _choose(self, number: int) -> None:
        if self._run is not None and self._run.number != number:
            self._number = None if number == self._runs[-1].number else number
            self._show()
            start(self, self._reach, group="open", exclusive=True)

    def action_back(self) -> None:
        if self._reaching.words:
            self.workers.cancel_group(self, "open")
        else:
            super().action_back()

    @work(group="compare", exclusive=True)
    async def action_compare(self) -> None:
        from jobtui.screens.job_history import open_comparison  # few look so far

        await open_comparison(self, self.job_id)

    def action_switch_pane(self) -> None:
        self._main.switch_pane()

    def action_show_hidden(self) -> None:
        if isinstance(self._main, TimelineTab):
            self._main.show_hidden()

    def action_open(self) -> None:
        self._main.open()

    def chosen_jobs(self) -> Sequence[JobId]:
        return (self.job_id,)

    def copied(self) -> str:
        return self._main.copied or self.job_id

    async def taken(self) -> CopyTarget | None:
        from jobtui.screens.export import file_target, job_target, step_taken

        shared, tab = self.shared, self._main
        command = shared.command(*tab.COMMAND, about=[self.job_id])
        if tab.step_here is not None:
            taken = step_taken(shared, tab.step_here)
            return taken._replace(command=command) if tab.IS_WHOLE else taken
        if tab.file_here:
            return file_target(tab.file_here)
        job = shared.store.job(self.job_id)
        if job is None:
            return CopyTarget("", command)
        return (await job_target(shared, job, RowContext(now=shared.now_of(job))))._replace(command=command)

    async def action_error(self) -> None:
        job, run = self.shared.store.job(self.job_id), self._run
        ended = run or job
        text = (ended.error or ended.alert or ended.message) if ended else None
        if text or self._problem:
            title = f"error of run {run.number}" if run else "error"
            taken = await self.taken()
            self.app.push_screen(ErrorScreen(self.shared, title, text or self._problem, taken))
        else:
            self.notify("no error of this run is known", timeout=2)
