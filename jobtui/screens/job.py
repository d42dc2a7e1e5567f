"""One job: how it stands, and in tabs what happened to it, its lines, its runs, its files, its record."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from functools import partial
from time import monotonic
from typing import NamedTuple

from textual import on
from textual.app import ComposeResult

from jobtui.actions import Place, hints_at
from jobtui.analysis.compare import last_good
from jobtui.analysis.paths import CLUSTER_MODE
from jobtui.analysis.timeline import RunWindow, ops_in, unlinked_in, window_of
from jobtui.backends.registry import Gives, kinds_that_give
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.health import SourceState
from jobtui.model.ids import JobId, numbered
from jobtui.model.job_reader import Noted, Reached, Unreadable
from jobtui.model.jobs import JobDetail, Run
from jobtui.model.ops import Op
from jobtui.model.slurm import SYSTEM as SLURM
from jobtui.render.columns import RowContext
from jobtui.render.facts import cluster_words, joined_words
from jobtui.render.sources import judge_all, labels
from jobtui.render.text import Zone, clock_time, date_time, show
from jobtui.screens.base import LiveScreen, bindings_at
from jobtui.screens.job_files import FilesTab
from jobtui.screens.job_history import HistoryTab
from jobtui.screens.job_script import ScriptTab
from jobtui.screens.job_tabs import JobTab, LogsTab, RawTab, Subject, TimelineTab, WhyTab
from jobtui.screens.job_trace import TraceTab
from jobtui.screens.job_verdict import JobVerdict
from jobtui.screens.shared import Shared, Taken, start
from jobtui.screens.text import ErrorScreen
from jobtui.screens.trace_reader import JobTracing
from jobtui.store.store import Changes, Store
from jobtui.widgets.frame import KeyLine, RuleLine, SourceStrip, TabLine
from jobtui.widgets.job_facts import JobFacts, ends_of
from jobtui.widgets.row_view import Move

SLACK_S = 600
"""How much is read before the submission of a run, seconds: its agent was started before it."""
PATIENCE_S = 10.0
"""How long is waited for logs that were not read at all yet."""
DAY = 86_400 * SECOND
MB = 1_000_000
TELL_S = 0.25
"""How often it is said how far reading is."""
STOPS = "· esc stops"


class Reaching:
    """Reads the logs back to a run where they were not read from early enough."""

    def __init__(self, shared: Shared, changed: Callable[[], None]) -> None:
        self._shared = shared
        self._changed = changed
        self._back_to: Nanos | None = None
        self._problem = ""
        self._told_at = 0.0
        self.words = ""
        """Its progress while it reads, else empty; safe to show."""

    async def reach(self, queued_at: Nanos | None) -> None:
        self._tell("")
        if queued_at is None:
            return
        await self._logs_begun()
        if not self._shared.job_reader.begins_after(queued_at):
            return
        at = Nanos(max(0, queued_at - SLACK_S * SECOND))
        self._problem = "They were not read further back, as that was stopped."
        begun = f"reading the logs back to {self._time(at)}"
        self._tell(f"{begun} … {STOPS}")
        try:
            if await self._shared.job_reader.reach_back(at, lambda reached: self._tell_share(begun, reached)):
                self._back_to = at if self._back_to is None else min(at, self._back_to)
            self._problem = ""
        except Unreadable as error:
            self._problem = f"They were not read back to {self._time(at)}: {show(str(error))}."
        finally:
            self._tell("")

    @property
    def goes_on(self) -> bool:
        return bool(self.words)

    def _tell_share(self, begun: str, reached: Reached) -> None:
        now = monotonic()
        if now - self._told_at < TELL_S:
            return
        self._told_at = now
        if reached.size:
            read, size = (f"{count / MB:,.0f}" for count in (reached.read, reached.size))
            self._tell(f"{begun}: {read} of {size} MB {STOPS}")
        else:
            self._tell(f"{begun}: {reached.records:,} records {STOPS}")

    async def _logs_begun(self) -> None:
        news = asyncio.Event()
        logs = kinds_that_give(Gives.LOGS)
        unsubscribe = self._shared.live.subscribe(lambda changes: news.set())
        try:
            async with asyncio.timeout(PATIENCE_S):
                while any(
                    source.kind in logs and source.state is SourceState.STARTING
                    for source in self._shared.live.sources()
                ):
                    await news.wait()
                    news.clear()
        except TimeoutError:
            return
        finally:
            unsubscribe()

    def _tell(self, words: str) -> None:
        if words != self.words:
            self.words = words
            self._changed()

    def _time(self, at: Nanos) -> str:
        now = self._shared.now()
        words = clock_time(at)[:-3] if now - at < DAY else date_time(at)[:-3]
        return f"{words}{Zone.mark()}"

    def silence(self, job_id: JobId, number: int | None) -> tuple[str, ...]:
        """What is said where no op is known: what was read, and what was not; safe to show.

        `number` is the run that was chosen. Other systems than Sirepo tell of states, without a log.
        """
        if (other := numbered(job_id)) is not None:
            return (f"{show(other.system)} has told of no change of its state.",)
        if self.words:
            return (f"No op of it yet: {self.words}",)
        sources = self._shared.store.sources()
        kinds = kinds_that_give(Gives.LOGS)
        logs = [
            (label, source)
            for source, label in zip(sources, labels(sources), strict=True)
            if source.kind in kinds
        ]
        if not logs:
            return ("No log is read, so that nothing is known of what happened to it.",)
        what = "this job" if number is None else f"run {number}"
        told = [f"No op of {what} in what was read of the logs:"]
        for label, source in logs:
            state = source.error if source.state is SourceState.DOWN else source.note
            told.append(f"{show(label)}: {show(state) if state else 'read as a whole'}")
        if self._problem:
            told.append(self._problem)
        elif self._back_to is not None:
            told.append(f"They were read back to {self._time(self._back_to)} for this.")
        return tuple(told)


def ops_of_states(store: Store, job_id: JobId, detail: JobDetail | None) -> tuple[Op, ...]:
    """The runs of a job by the changes of its state, those that were read with its record where more."""
    changes = store.changes_of(job_id)
    if detail is not None and len(detail.changes) > len(changes):
        changes = detail.changes
    if not changes:
        return ()
    from jobtui.analysis.timeline import ops_of_changes

    return ops_of_changes(store.job(job_id), changes)


class RecordRead(NamedTuple):
    """What was read of the record, and why not."""

    detail: JobDetail | None = None
    problem: str = ""


def subject_of(
    store: Store, job_id: JobId, known: RecordRead, run: Run | None, reaching: Reaching
) -> Subject:
    runs = known.detail.runs if known.detail else ()
    window = window_of(runs, run.number) if run else RunWindow()
    all_ops = store.correlation.ops_of(job_id) or ops_of_states(store, job_id, known.detail)
    ops = ops_in(window, all_ops)
    good = last_good(runs, run.number) if run else None
    return Subject(
        job_id=job_id,
        job=store.job(job_id),
        ops=ops,
        unlinked=unlinked_in(window, store.correlation.unlinked_of(job_id)),
        detail=known.detail,
        run=run,
        silence=() if ops else reaching.silence(job_id, run.number if run else None),
        problem=known.problem,
        good=good,
        good_ops=ops_in(window_of(runs, good.number), all_ops) if good else (),
    )


async def show_cluster(
    facts: JobFacts, shared: Shared, job_id: JobId, note: Callable[[str | None], None] = lambda slurm_id: None
) -> None:
    from jobtui.session.evidence import noted_of  # the first paint does not need it

    noted = await noted_of(shared.store, shared.job_reader, shared.store.job(job_id), shared.reach)
    note(noted.status.slurm_id if noted is not None else None)
    facts.cluster = words_of(shared, job_id, noted)


def words_of(shared: Shared, job_id: JobId, noted: Noted | None) -> str:
    """Which it is in Slurm and how it stands there, by Slurm's own word where there is one, else as noted.

    "" where neither tells.
    """
    from jobtui.analysis.keys import sirepo_of, slurm_of

    job = shared.store.job(job_id)
    if job is None:
        return ""
    if (submitter := sirepo_of(job)) is not None:
        return joined_words(submitter, shared.store.job(submitter))
    slurm = slurm_of(job, shared.store.jobs.values(), noted.status.slurm_id if noted is not None else None)
    return cluster_words(noted.status if noted is not None else None, slurm)


def concerns(shared: Shared, job_id: JobId, changed: Collection[JobId]) -> bool:
    from jobtui.analysis.keys import sirepo_of

    job = shared.store.job(job_id)
    if job is None:
        return False
    if job.mode == CLUSTER_MODE:
        return any(one.startswith(SLURM) for one in changed)
    return sirepo_of(job) in changed


TABS: tuple[type[JobTab], ...] = (
    TimelineTab, WhyTab, LogsTab, HistoryTab, TraceTab, ScriptTab, FilesTab, RawTab,
)  # fmt: skip


class JobScreen(LiveScreen):
    """A job in tabs, each made when it is first shown."""

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

    def __init__(self, shared: Shared, job_id: JobId) -> None:
        super().__init__(shared)
        self.job_id = job_id
        self._known = RecordRead()
        self._number: int | None = None
        self._waits_to_reach = False
        self._reaching = Reaching(shared, self._say)
        self._tracing = JobTracing(self, shared, self._say)
        self._judged = JobVerdict(self, shared, self._say, job_id)
        self._facts = JobFacts(shared.now_of, job_id)
        self._cluster = partial(show_cluster, self._facts, shared, job_id, self._judged.note_slurm)
        self._strip = SourceStrip(shared.now)
        self._tab_line = TabLine([tab.NAME for tab in TABS])
        self._foot = RuleLine()
        self._tabs: dict[str, JobTab] = {}
        self._tab: JobTab = self._tab_of(TimelineTab.NAME)

    def compose(self) -> ComposeResult:
        yield self._facts
        yield self._strip
        yield self._tab_line
        yield self._tab
        yield self._foot
        yield KeyLine(hints_at(Place.JOB))

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
        start(self, self._trace, group="trace", exclusive=True)
        await self._reach()

    async def _trace(self) -> None:
        subject = self._subject()
        await self._tracing.find(subject.job, subject.ops, subject.unlinked)

    async def _read_record(self) -> None:
        start(self, self._cluster, group="cluster", exclusive=True)
        try:
            self._known = RecordRead(await self.shared.job_reader.detail(self.job_id))
        except Unreadable as error:
            self._known = RecordRead(self._known.detail, show(str(error)))
        self._judged.renew(self._known.detail)
        self._show()

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
        self._judged.renew(self._known.detail)
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
        elif concerns(self.shared, self.job_id, changes.jobs):
            start(self, self._cluster, group="cluster", exclusive=True)
            self._judged.renew(self._known.detail)
        elif changes.sources:
            self._judged.renew(self._known.detail)
        self._tracing.changed(changes.traces)
        if self._tracing.is_to_be_found_again(self.job_id in changes.jobs, changes.traces):
            start(self, self._trace, group="trace", exclusive=True)
        self._show_sources()

    def show_all(self) -> None:
        self._show_sources()
        self._show()

    def _show_sources(self) -> None:
        sources = self.shared.store.sources()
        self._strip.sources = sources
        self._facts.age = self._tab.age or judge_all(sources, self.shared.now())

    def _show(self) -> None:
        subject = self._subject()
        shown_run = subject.run.number if subject.run else None
        self._facts.verdict = subject.verdict
        self._facts.set_job(subject.job, absolute=self.shared.absolute, run=shown_run)
        self._tab.set_subject(subject)
        self._show_words()

    @on(JobTab.Told)
    def _show_words(self) -> None:
        problem = self._known.problem if self._known.detail else ""
        not_read = f"the record could not be read again: {problem}" if problem else ""
        self._tab_line.words = self._reaching.words or not_read or self._tab.words

    @property
    def _runs(self) -> tuple[Run, ...]:
        return self._known.detail.runs if self._known.detail else ()

    @property
    def _run(self) -> Run | None:
        newest = self._runs[-1] if self._runs else None
        return next((run for run in self._runs if run.number == self._number), newest)

    def _subject(self) -> Subject:
        subject = subject_of(self.shared.store, self.job_id, self._known, self._run, self._reaching)
        traced = self._tracing.ops(subject.ops, subject.unlinked)
        return subject._replace(
            ops=(*subject.ops, *traced),
            silence=() if traced else subject.silence,
            verdict=self._judged.verdict,
            tracing=self._tracing,
        )

    def tick(self) -> None:
        self._facts.tick()
        self._judged.tick()
        self._tab.tick()
        self._show_sources()
        self._show_words()

    def move_list(self, move: Move) -> None:
        self._tab.move(move)

    async def action_tab(self, name: str) -> None:
        self._tab.display = False
        self._tab = self._tab_of(name)
        self._tab.display = True
        if not self._tab.is_attached:
            await self.mount(self._tab, before=self._foot)
        self._tab_line.current = name
        self._show_sources()
        self._show()

    def _tab_of(self, name: str) -> JobTab:
        if name not in self._tabs:
            self._tabs[name] = next(tab for tab in TABS if name == tab.NAME)(self.shared)
        return self._tabs[name]

    def action_run(self, step: int) -> None:
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
        if self._reaching.goes_on:
            self.workers.cancel_group(self, "open")
        else:
            super().action_back()

    def action_compare(self) -> None:
        from jobtui.screens.job_history import open_comparison  # few look so far

        comparing = partial(open_comparison, self, self.shared, self.job_id)
        start(self, comparing, group="compare", exclusive=True)

    def action_switch_pane(self) -> None:
        self._tab.switch_pane()

    def action_show_hidden(self) -> None:
        if isinstance(self._tab, TimelineTab):
            self._tab.show_hidden()

    def action_open(self) -> None:
        self._tab.open()

    def chosen_jobs(self) -> Sequence[JobId]:
        return (self.job_id,)

    def copied(self) -> str:
        return self._tab.copied or self.job_id

    async def taken(self) -> Taken | None:
        from jobtui.screens.export import file_taken, job_taken, step_taken

        shared, tab = self.shared, self._tab
        command = shared.command(*tab.COMMAND, about=[self.job_id])
        if tab.step_here is not None:
            taken = step_taken(shared, tab.step_here)
            return taken._replace(command=command) if tab.IS_WHOLE else taken
        if tab.file_here:
            return file_taken(tab.file_here)
        job = shared.store.job(self.job_id)
        if job is None:
            return Taken("", command)
        return (await job_taken(shared, job, RowContext(now=shared.now_of(job))))._replace(command=command)

    async def action_error(self) -> None:
        job, run = self.shared.store.job(self.job_id), self._run
        told = run or job
        text = (told.error or told.alert or told.message) if told else None
        if text or self._known.problem:
            title = f"run {run.number}" if run else "error"
            taken = await self.taken()
            self.app.push_screen(ErrorScreen(self.shared, title, text or self._known.problem, taken))
        else:
            self.notify("no error is known of this run", timeout=2)
