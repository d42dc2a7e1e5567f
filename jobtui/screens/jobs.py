"""All jobs: the table, what it is filtered and sorted by, and whether it can be believed."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace
from textual import on, work
from textual.timer import Timer
from textual.widget import Widget

from jobtui.actions import ScreenName, key_of
from jobtui.analysis.counts import profile_states
from jobtui.analysis.flags import differing
from jobtui.model.clock import Nanos
from jobtui.model.health import contained
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job
from jobtui.model.numbers import counted
from jobtui.render.columns import JOB_COLUMNS, RowContext
from jobtui.render.text import Zone, safe
from jobtui.screens.base import FilteringScreen
from jobtui.screens.job_verdict import JobVerdict, keys_for
from jobtui.screens.shared import CopyTarget, Shared, open_screen, start
from jobtui.store.store import Changes
from jobtui.views import View
from jobtui.widgets.filter_bar import FilterBar
from jobtui.widgets.frame import OneLine, ProfileLines
from jobtui.widgets.job_table import JobTable
from jobtui.widgets.text_pane import WhyList

if TYPE_CHECKING:
    from jobtui.analysis.explain.verdict import Disputes
    from jobtui.analysis.filter import Filter
    from jobtui.analysis.late_jobs import LateJobs


class JobLookup:
    """Facts of a job besides its record: host and driver from the logs, whether disputed, how late."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._disputes: Disputes | None = None
        self._lateness: LateJobs | None = None

    def note(self, changed: Iterable[JobId]) -> None:
        if self._disputes is not None and self._lateness is not None:
            self._disputes.note(changed, self._shared.now())
            self._lateness.note(changed)

    def turned(self) -> set[JobId]:
        """Look at some of the jobs that changed; those of which it is no longer as it was."""
        store, now = self._shared.store, self._shared.now()
        if not store.jobs:
            return set()
        from jobtui.analysis.explain.verdict import Disputes  # the first paint does not need them
        from jobtui.analysis.late_jobs import LateJobs

        if self._disputes is None or self._lateness is None:
            self._disputes, self._lateness = Disputes(), LateJobs(lambda *at: self._shared.store.now_at(*at))
            self.note(store.jobs)
        disputed = self._disputes.look(store.jobs, now, self._shared.gatherer().is_disputed)
        return disputed | self._lateness.look(store.jobs, now)

    def is_disputed(self, job: Job) -> bool:
        return bool(differing(job)) or (self._disputes is not None and job.id in self._disputes)

    def context(self) -> RowContext:
        store, now, reads = self._shared.store, self._shared.now(), self._shared.reads
        return RowContext(
            now=now,
            offset_s=Zone.offset_s(now),
            relative=not self._shared.absolute,
            with_agent=store.with_agent,
            is_disputed=self.is_disputed,
            late_of=self.late_of,
            cause_of=lambda job: reads.failing_line(job) if reads is not None else None,
            now_at=store.now_at,
            profile_of=store.profile_of,
        )

    def late_of(self, job: Job) -> str | None:
        """How much longer than usual a job takes, None where it does not."""
        return self._lateness.late(job, self._shared.now()) if self._lateness is not None else None


REST_S = 0.3
"""How long after a key the job under the cursor is explained."""
JUDGE_EVERY_S = 1.0
"""The same where jobs come first and go again by themselves."""
FAILED = "failed or stuck"
"""The filter of the jobs that somebody should look at."""


class JobsFilteringScreen(FilteringScreen):
    _passes: "Filter | None"

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._lookup = JobLookup(shared)
        self.shows_hidden = False

    def parsed(self, text: str) -> "Filter":
        from jobtui.analysis.filter import parse  # the first paint has no filter

        return parse(text)

    def job_test(self, time_of: Callable[[str], Nanos]) -> Callable[[Job], bool] | None:
        """The test of the jobs shown by the times of their sources, None if all are."""
        if self._passes is None:
            return None if self.shows_hidden else lambda job: not job.is_quasi
        return self._passes.test(replace(self._lookup.context(), time_of=time_of), hidden=self.shows_hidden)

    def filter_bar(self) -> FilterBar:
        from jobtui.screens.command_table import complete_filter_at

        completer = partial(complete_filter_at, known=self.known_values())
        return FilterBar(self.filter_text, history=self.filters, completer=completer)


class JobsScreen(JobsFilteringScreen):
    NAME = ScreenName.JOBS

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._more = ""
        self._before: Filter | None = None  # in effect until now, and hid the same jobs
        self._one_line = OneLine(shared.now_of)
        store = shared.store
        self._profiles = ProfileLines(
            lambda: profile_states(
                store.profiles.values(), store.jobs.values(), store.sources(), store.profile_of, shared.now_of
            )
        )
        self._main = self._table = JobTable(self._lookup.context, shared.usual_columns())
        self._about = self._why = WhyList()
        self._why.shows_cursor = False
        self._judged = JobVerdict(self, shared, self._show_why)
        self._judge_timer: Timer | None = None
        self.action_mark = self._table.toggle_mark

    def body(self) -> Iterator[Widget]:
        yield self._one_line
        if self.shared.store.profiles:
            yield self._profiles
        yield from super().body()

    def show_trail(self) -> None:
        """Every trail begins here."""

    def on_mount(self) -> None:
        looks = self.shared.looks
        if looks.sort or looks.reverse:
            self.sort_by(looks.sort, reverse=looks.reverse)
        self.apply_filter()
        self._table.apply(self.shared.store.jobs.values())

    def take(self, changes: Changes) -> None:
        find = self.shared.store.jobs.get
        jobs = [job for job_id in changes.jobs if (job := find(job_id)) is not None]
        self._table.apply(jobs, changes.gone)
        self._lookup.note(changes.jobs)
        if changes.sources or self._judged.job_id in changes.jobs:
            self.show_about()
        self._show_surroundings()

    def tick(self) -> None:
        self._judged.tick()
        if self._judged.job_id != self._table.cursor_id:
            self.show_about()  # there was no room for it until now
        if turned := self._lookup.turned():
            self._table.apply(job for job_id in turned if (job := self.shared.store.job(job_id)))
        is_reading = any(worker.group == "causes" for worker in self.workers)
        if not is_reading and self.shared.gatherer().without_cause(self._table.visible_jobs):
            start(self, self._read_causes, group="causes")
        self._table.tick()
        self._profiles.tick()
        self._show_surroundings()

    async def _read_causes(self) -> None:
        """Look for the failing lines of the jobs in sight, one job after another, for their rows."""
        for job in self.shared.gatherer().without_cause(self._table.visible_jobs):
            with contained("reading what its program wrote"):
                await self.shared.gatherer().at_hand(job.id)
            self._table.apply(filter(None, (self.shared.store.job(job.id),)))

    def show_all(self) -> None:
        self._table.redraw()
        self._show_surroundings()

    def show_about(self) -> None:
        """Explain the job under the cursor, where there is room, once the cursor rests."""
        self.set_class(self._table.cursor_id is None, "-none")
        if self._table.cursor_id != self._judged.job_id:
            self._show_why()
        if self._judge_timer is None and self._why.display:
            is_chosen = self._table.is_held or self._judged.job_id is None
            wait_s = REST_S if is_chosen else JUDGE_EVERY_S
            self._judge_timer = self.set_timer(wait_s, self._judge)

    def _judge(self) -> None:
        self._judge_timer = None
        self._judged.choose(self._table.cursor_id)

    def _show_why(self) -> None:
        job_id, judged = self._table.cursor_id, self._judged
        if judged.job_id is None:
            return  # the first paint does not need it
        from jobtui.render.verdicts import summary_parts

        verdict = judged.verdict if judged.job_id == job_id else None
        keys, cells = partial(keys_for, self.shared.words, self.NAME), self._why.cells - 2
        now, rows = self.shared.now(), self._why.rows_high
        self._why.set_text(summary_parts(job_id, verdict, now, keys, cells, rows) if job_id else ())

    def action_detail(self) -> None:
        self.toggle_class("-brief")
        self.show_about()

    def action_failed(self) -> None:
        self.set_filter("" if self.filter_text == FAILED else FAILED)

    def chosen_jobs(self) -> Sequence[JobId]:
        marked = sorted(JobId(str(job_id)) for job_id in self._table.marked)
        return marked or [job_id for job_id in (self._table.cursor_id,) if job_id]

    @work(group="compare", exclusive=True)
    async def action_compare(self) -> None:
        from jobtui.screens.job_history import open_comparison

        chosen = self.chosen_jobs()
        if len(chosen) > 2:
            self.notify(f"{len(chosen):,} jobs are marked: mark two to compare them", timeout=4)
        elif chosen:
            await open_comparison(self, *chosen)

    async def taken(self) -> CopyTarget | None:
        from jobtui.screens.export import job_target

        job = self._table.record
        taken = await job_target(self.shared, job, self._lookup.context()) if job else CopyTarget("")
        words = [self.filter_text] * bool(self.filter_text)
        return taken._replace(command=self.shared.command("jobs", about=words))

    def action_columns(self) -> None:
        open_screen(self.app, ScreenName.COLUMNS, self.shared, self.view(), self.show_view)

    def action_show_hidden(self) -> None:
        self.shows_hidden, self._before = not self.shows_hidden, None
        self.apply_filter()

    async def close_filter(self, bar: FilterBar, text: str) -> None:
        from jobtui.screens.choices import NOWHERE, jump_to, names_a_job

        before = bar.before
        named = names_a_job(text) or bool(self.shared.store.traces.naming(text))
        asked = text != before and (bar.was_pasted or named)
        jump = jump_to(text, self.shared.store, self.shared.logs.names()) if asked else NOWHERE
        if jump.goals and (named or not jump.goals[0].filter):
            self.set_filter(before)
            await bar.remove()
            self.post_message(self.Pasted(text))
            return
        await super().close_filter(bar, text)
        if bar.mistake is None and text != before and not self._table.count:
            self._seek_trace(text, before)

    @work(group="seek trace", exclusive=True, description="")
    async def _seek_trace(self, text: str, before: str) -> None:
        from jobtui.screens.choices import Guide

        guide = Guide(self.app, self.shared)
        if guide.asks_servers(text) and await guide.seek(text) and self.filter_text == text.strip():
            self.set_filter(before)

    def action_open(self) -> None:
        if (job_id := self._table.cursor_id) is not None:
            open_screen(self.app, ScreenName.JOB, self.shared, job_id)

    @on(JobTable.Recounted)
    def _show_words(self) -> None:
        table, text, total = self._table, self.filter_text, len(self._table.rows.jobs)
        more = "+" if table.rows.has_more else self._more
        order = "urgent first" if table.sorted_by is None else f"by {table.sorted_by}"
        filtered = (f"no job passes the filter; {key_of('back')} ends it",) if text else ()
        if (empty := filtered if total else self.shared.no_jobs()) != table.empty:
            table.empty = empty  # which paints the table again
        hidden = total - table.count
        count = counted(table.count, "job").replace(" ", f"{more} ")
        if text:
            count = f"{table.count:,}{more} of {counted(total, 'job').replace(' ', f'{self._more} ')}"
        elif hidden and not table.rows.has_more:
            count += f", {hidden:,}{more} internal hidden ({key_of('show_hidden')})"
        parts = [
            f"{len(table.marked):,} marked" if table.marked else "",
            f"/{safe(text)}" if text else "",
            count,
            order + (", reversed" if table.reverse else "") + (" …" if table.rows.is_sorting else ""),
        ]
        self._rule.words = " · ".join(filter(None, parts))
        self._rule.set_class(bool(text or table.marked), "-needed")

    def _show_surroundings(self) -> None:
        rows, new = self._table.rows, self.shared.new_failures
        self._strip.sources = self.shared.store.sources()
        self._more = "+" if any(source.is_first_read for source in self._strip.sources) else ""
        self._header.set_counts(rows.tally.counts(self.shared.now()), len(rows.needy), new, self._more)
        self._show_words()
        self._show_one_line()

    def _show_one_line(self) -> None:
        if self.has_class("-tiny"):
            line = self._one_line
            line.counts, line.worst = self._header.glyphs(), self._table.rows.worst
            line.is_paused = self.shared.paused_at is not None

    def show_pause(self) -> None:
        super().show_pause()
        self._show_one_line()
        self.call_after_refresh(self._show_why)

    def show_view(self, view: View) -> None:
        by_key = {column.key: column for column in JOB_COLUMNS}
        columns = tuple(by_key[key] for key in view.columns if key in by_key)
        self._table.set_columns(columns or self.shared.usual_columns())
        self.set_filter(view.filter)
        self.sort_by(view.sort if view.sort in by_key else None, reverse=view.reverse)

    def view(self) -> View:
        table, columns = self._table, tuple(column.key for column in self._table.columns)
        return View(self.filter_text, table.sorted_by, table.reverse, columns)

    def apply_filter(self) -> None:
        chosen, before, self._before = self._passes, self._before, self._passes
        ages = chosen is not None and (chosen.asks_time or chosen.asks_logs)
        narrows = chosen is not None and before is not None and chosen.narrows(before)
        self._table.set_filter(self.job_test(self._table.rows.time_of), ages=ages, narrows=narrows)
