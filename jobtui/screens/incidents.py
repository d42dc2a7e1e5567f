"""Recent failures: one cause or five, since when, what the jobs share, which to look at first; and the
failures in the memory: how often, since when, what they share.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from time import monotonic

from textual import work

from jobtui.actions import ScreenName, key_of
from jobtui.analysis.incidents import EarlierFailures, Grouping, Incident, Incidents, failed_before
from jobtui.analysis.times import parse_moment
from jobtui.model.clock import SECOND, Nanos, seconds_between
from jobtui.model.commands import Command
from jobtui.model.health import SourceError, SourceState, contained
from jobtui.model.ids import JobId
from jobtui.model.memory import MemoryOverview, Seen
from jobtui.model.numbers import counted
from jobtui.render import incidents as rendered
from jobtui.render.columns import Cells, Narrow, TableColumn, TimeLook, fixed, time_column
from jobtui.render.memory import SEEN_COLUMNS, host_words, seen_words, sites_words
from jobtui.render.spans import Paragraph
from jobtui.render.text import show
from jobtui.screens.base import HeadedScreen, TableScreen
from jobtui.screens.choices import ChoosingScreen, Goal, Guide
from jobtui.screens.shared import Shared, open_screen
from jobtui.store.store import Changes
from jobtui.widgets.record_list import RecordTable
from jobtui.widgets.text_pane import TextPane

WINDOWS_S = (3_600, 6 * 3_600, 24 * 3_600, 7 * 86_400)
"""The windows of time, in seconds; the third one is used at first."""
RENEW_S, SHARE = 5.0, 10
"""How often incidents are searched again at most, and in at most one part in so many of the time."""
EARLY_S = 1.0
"""The same while sources are not read to their end."""
JOBS_LISTED = 1_000
INCIDENT_COLUMNS: tuple[TableColumn[Incident, TimeLook], ...] = (
    TableColumn("jobs", "JOBS", lambda one, look: f"{len(one.jobs):,}", fixed(5), 100,
                style=lambda one, look: "error" if one.is_ongoing(look.now) else "warning", align="right"),
    TableColumn("what", "WHAT", lambda one, look: show(one.verdict.code), Cells(20, 20, 22), 75),
    time_column("first", "FIRST", lambda one: one.times[0] if one.times else None, fixed(8), 60,
                style=lambda one, look: "dim"),
    time_column("last", "LAST", lambda one: one.times[-1] if one.times else None, fixed(8), 80,
                style=lambda one, look: "" if one.is_ongoing(look.now) else "dim"),
    TableColumn("rate", "RATE", lambda one, look: rendered.rate_bars(one, look.now),
                fixed(rendered.RATE_CELLS), 50, style=lambda one, look: "dim"),
    TableColumn("common", "IN COMMON", lambda one, look: rendered.common_words(one),
                Cells(30, 40, 10_000), 99, narrow=(Narrow(60, Cells(20, 40, 10_000)),)),
)  # fmt: skip


class IncidentsScreen(HeadedScreen):
    """Groups of jobs that failed alike, and the details of the one under the cursor."""

    NAME = ScreenName.INCIDENTS

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._window_s: float = WINDOWS_S[2]
        flags = zip(shared.words, shared.words[1:], strict=False)
        self._since = next((value for name, value in flags if name == "--since"), None)
        self._is_chosen = self._since is not None
        self._found: Incidents | None = None
        self._earlier: EarlierFailures | None = None
        self._grouping = Grouping()
        self._is_due, self._is_early, self._ended_at, self._took_s = True, False, 0.0, 0.0
        self._main = self._list = RecordTable[Incident](
            INCIDENT_COLUMNS, self.look, lambda one: (one.verdict.code, one.first)
        )
        self._about = TextPane()

    def on_mount(self) -> None:
        self._surveying = self._survey()

    def take(self, changes: Changes) -> None:
        self._is_due = True

    def tick(self) -> None:
        super().tick()
        rested_s = monotonic() - self._ended_at
        least_s = EARLY_S if self._is_early else RENEW_S
        is_time = self._surveying.is_finished and rested_s >= max(least_s, SHARE * self._took_s)
        if is_time and (self._is_due or self._is_early):
            self._surveying = self._survey()

    def pause_ended(self) -> None:
        super().pause_ended()
        self._is_due = True

    def show_all(self) -> None:
        super().show_all()
        self._list.repaint()
        self._rule.words = self._words()
        if self._found is None:
            self._list.empty = (f"looking: {self._grouping.passed:,} of {len(self.shared.store.jobs):,}",)

    @work(group="survey", exclusive=True)
    async def _survey(self) -> None:
        self._is_due, began = False, monotonic()
        store, now = self.shared.store, self.shared.now()
        self._is_early = any(one.is_behind or one.state is SourceState.STARTING for one in store.sources())
        gatherer, self._grouping = self.shared.gatherer(), Grouping()
        begin, earlier = self._begin(now), None
        found = await gatherer.survey(begin, now, self._grouping)
        if not (found.groups or found.alone):
            earlier = failed_before(store.jobs.values(), begin, now)
        if earlier is not None and not self._is_chosen:
            self._earlier = earlier if self._found is None else self._earlier
            self._grouping, wide = Grouping(), earlier.window_s
            since = Nanos(0 if wide is None else now - wide * SECOND)
            found = await gatherer.survey(since, now, self._grouping)
        self._found, self._earlier = found, earlier
        self._list.set_records((*found.groups, *found.alone))
        nothing = rendered.none_words(found, f"in the last {rendered.period(self._span_s)}")
        words = nothing if earlier is None else rendered.earlier_words(self._span_s, earlier, ())
        self._list.empty = (words, f"{key_of('window', self.NAME)} chooses another period.")
        if not store.jobs:
            self._list.empty = self.shared.no_jobs()
        self.show_all()
        self._ended_at = monotonic()
        self._took_s = self._ended_at - began

    def _begin(self, now: Nanos) -> Nanos:
        if self._since is not None and (moment := parse_moment(self._since)) is not None:
            return moment.span(now).start
        return Nanos(now - round(self._window_s) * SECOND)

    @property
    def _span_s(self) -> float:
        now = self.shared.now()
        return float(round(seconds_between(self._begin(now), now)))

    def _words(self) -> str:
        span, found, wide = rendered.period(self._span_s), self._found, ""
        if self._earlier is not None and (wide_s := self._earlier.window_s) is not None:
            wide = rendered.period(wide_s)
        if found is None:
            first = "" if self._earlier is None else f"no failures in the last {span}; "
            return f"{first}looking at {'all before' if first and not wide else f'the last {wide or span}'}"
        counts = (found.groups, "group"), (found.alone, "single failure")
        groups = ", ".join(counted(len(those), name) for those, name in counts if those)
        if self._earlier is not None and self._list.count:
            return f"{groups} {f'in {wide}' if wide else 'before'}; no failures in the last {span}"
        of = f"{counted(found.looked_at, 'job')} of the last {span}{' · still reading' * self._is_early}"
        of += f" · not sure of {len(found.doubtful):,} more" if found.doubtful else ""
        return f"{groups} · {of}" if self._list.count else rendered.none_words(found, f"with {of}")

    def paragraphs(self) -> Iterable[Paragraph]:
        one = self._list.record
        return rendered.incident_facts(one, self.shared.now()) if one is not None else ()

    def action_open(self) -> None:
        if self._list.record is not None:
            open_screen(self.app, ScreenName.JOB, self.shared, self._list.record.first)

    def action_jobs(self) -> None:
        if (one := self._list.record) is None:
            return
        jobs = ((job_id, self.shared.store.job(job_id)) for job_id in one.jobs[:JOBS_LISTED])
        goals = [Goal(job_id, (job and (job.error or job.name)) or "", job=job_id) for job_id, job in jobs]
        title, go = f"{len(one.jobs):,} × {one.verdict.code}", Guide(self.app, self.shared).go
        self.app.push_screen(ChoosingScreen(self.shared, title, goals, go, title))

    def action_window(self) -> None:
        self._since, self._is_chosen = None, True
        self._window_s = next((one for one in WINDOWS_S if one > self._window_s), WINDOWS_S[0])
        self._found = self._earlier = None
        self._list.set_records(())
        self._surveying = self._survey()
        self.show_all()

    @work(group="report", exclusive=True)
    async def action_report(self) -> None:
        if self._list.record is not None:
            self.copy("\n".join(rendered.incident_report(self._list.record, self.shared.now())))

    def chosen_jobs(self) -> Sequence[JobId]:
        return (self._list.record.first,) if self._list.record is not None else ()

    def command(self) -> Command:
        window = () if self._since is not None else ("--since", f"{round(self._window_s)}s")
        return self.shared.command(*window, "incidents")


SEEN_EVERY_S = 60.0
"""How often the memory is read again."""
NOTHING = ("Nothing is remembered.", "Start `jobtui remember`: it keeps how runs end.")


class SeenScreen(TableScreen[Seen]):
    """Failures, the most frequent of the last days first."""

    NAME = ScreenName.SEEN
    WHAT = "failure"
    COLUMNS = SEEN_COLUMNS
    KEY = attrgetter("signature")
    PLACEHOLDER = "words of a failure"

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._found, self._problem = MemoryOverview(), ""
        self._due_at = 0.0

    def on_mount(self) -> None:
        self.tick()

    def tick(self) -> None:
        super().tick()
        if monotonic() >= self._due_at:
            self._due_at = monotonic() + SEEN_EVERY_S
            self._ask()

    @work(group="seen", exclusive=True)
    async def _ask(self) -> None:
        if self.shared.overview is not None:
            with contained("asking the memory"):
                try:
                    self._found = await asyncio.to_thread(self.shared.overview, self.shared.now())
                    self._problem = ""
                except SourceError as error:
                    self._problem = str(error)
        self.show_all()

    def parsed(self, text: str) -> Callable[[Seen], bool]:
        words = text.casefold()
        return lambda seen: words in seen.signature.casefold()

    def records(self) -> Sequence[Seen]:
        return self._found.signatures

    def silence(self) -> tuple[str, ...]:
        return (show(self._problem),) if self._problem else NOTHING

    def words(self) -> Iterator[str]:
        if self._found.sites:
            yield sites_words(self._found.sites)
        yield from map(host_words, self._found.shares)

    def copied(self) -> str:
        return show(self._table.record.signature) if self._table.record is not None else ""

    def paragraphs(self) -> Iterator[Paragraph]:
        if (seen := self._table.record) is not None:
            yield Paragraph(show(seen.signature))
            yield Paragraph(show(seen.example))
            yield Paragraph(seen_words(seen, self.shared.now()))

    def command(self) -> Command:
        seen = self._table.record
        return Command() if seen is None else self.shared.command("seen", about=[seen.signature])
