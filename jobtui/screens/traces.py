"""Recent traces of all sources, with their state; one opens as a waterfall."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from operator import attrgetter
from time import monotonic

from textual import work

from jobtui.actions import ScreenName, key_of
from jobtui.analysis.traces.compare import StepChange, step_changes, those_that_differ
from jobtui.analysis.traces.failures import Findings, study_trace
from jobtui.analysis.traces.filters import TRACE_FIELDS, ListedTrace, TraceJudgement, TraceState, judged
from jobtui.model.clock import Nanos
from jobtui.model.commands import Command
from jobtui.model.ids import JobId, TraceId
from jobtui.model.tables import tables_of
from jobtui.model.traces import TraceList, TraceSearch, TraceSummary, with_awaited
from jobtui.render.spans import Paragraph
from jobtui.render.text import Zone, date_time, show
from jobtui.render.traces import CHANGE_COLUMNS, TRACE_COLUMNS, change_words, newest_first
from jobtui.render.waterfall import short_id
from jobtui.screens.base import HeadedScreen, TableScreen
from jobtui.screens.shared import Shared, open_screen
from jobtui.session.traces import SessionTraces, last_good
from jobtui.store.store import Changes
from jobtui.widgets.record_list import RecordTable

LISTED = 200
PERIOD_S, SHARE = 10.0, 10
"""How often servers are asked at most, and in at most one part in so many of the time."""
LONGEST_S = 30.0
"""The longest rest if a source gave no answer: waiting for it costs no server anything."""
SETTLED = frozenset({TraceState.COMPLETE, TraceState.FAILED})
NEWS_S = 1.0
"""How soon traces that were sent to us are listed."""


def rest_s(took_s: float, *, has_news: bool, is_whole: bool) -> float:
    """How long not to ask again; `is_whole` says that every source answered."""
    share_s = SHARE * took_s
    return max(NEWS_S if has_news else PERIOD_S, share_s if is_whole else min(share_s, LONGEST_S))


class TracesScreen(TableScreen[ListedTrace]):
    NAME = ScreenName.TRACES
    WHAT = "trace"
    COLUMNS = TRACE_COLUMNS
    KEY = attrgetter("summary.trace_id")
    FIELDS = TRACE_FIELDS
    PLACEHOLDER = "words, or: service:fife dur>10m error:yes state:growing name:submit"

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._traces: tuple[ListedTrace, ...] = ()
        self._found = TraceList()
        """The last answers of the sources."""
        self._notes: tuple[str, ...] = ()
        """Which sources could not be asked, and why; outside text."""
        self._is_read = False
        """Whether they were asked once."""
        self._due_at, self._works, self._has_news = 0.0, False, False
        self._known: dict[TraceId, tuple[int, TraceJudgement]] = {}
        self.action_mark = self._table.toggle_mark

    def records(self) -> list[ListedTrace]:
        return newest_first(self._traces)

    def on_mount(self) -> None:
        self._look()

    def take(self, changes: Changes) -> None:
        if changes.traces:
            self._has_news = True
            self._due_at = min(self._due_at, monotonic() + NEWS_S)
        super().take(changes)

    def tick(self) -> None:
        self._look()
        super().tick()

    def _look(self) -> None:
        if not self._works and monotonic() >= self._due_at and self.shared.paused_at is None:
            self._works, self._has_news = True, False
            self._ask()

    @work(group="list traces")
    async def _ask(self) -> None:
        began, is_whole = monotonic(), True
        try:
            if self.shared.trace_client is not None:
                search = TraceSearch(names=self.shared.store.traces.job_attributes, most=LISTED)
                async with aclosing(self.shared.trace_client().searching(search)) as lists:
                    async for found in lists:
                        await self._list(found)
                        is_whole = not found.notes
            self._is_read = True
            self.show_all()
        finally:
            self._works = False
            took_s = monotonic() - began
            self._due_at = monotonic() + rest_s(took_s, has_news=self._has_news, is_whole=is_whole)

    async def _list(self, found: TraceList) -> None:
        now, before = self.shared.now(), self._traces
        known = with_awaited(found, (one.summary for one in before), LISTED)
        jobs = [self.shared.live.traces.jobs_of(one.trace_id) or one.jobs for one in known]
        judged = [await self._judge(*one, now) for one in zip(known, jobs, strict=True)]
        self._traces = tuple(map(ListedTrace, known, judged, jobs))
        self._found = found
        if not found.awaited:
            self._notes = found.notes
        elif self._traces != before:
            self.show_all()

    async def _judge(self, summary: TraceSummary, jobs: Sequence[str], now: Nanos) -> TraceJudgement:
        book = self.shared.live.traces
        size, before = book.size(summary.trace_id), self._known.get(summary.trace_id)
        if before is not None and before[0] == size and before[1].standing in SETTLED:
            return before[1]
        found = await asyncio.to_thread(judged, book.trace(summary.trace_id), now)
        records = (self.shared.live.job(JobId(job)) for job in jobs)
        owner = next((job.owner for job in records if job is not None and job.owner), found.user)
        if len(self._known) > 2 * LISTED:
            self._known.clear()
        self._known[summary.trace_id] = size, found._replace(user=owner)
        return self._known[summary.trace_id][1]

    def silence(self) -> tuple[str, ...]:
        if not self._is_read:
            return ("asking …",)
        return (*tables_of("jobtui.screens", "empty")["traces"], *map(show, self._notes))

    def total(self) -> str:
        listed, left_out = len(self._traces), self._found.left_out
        if left_out or self._found.may_be_more:
            more = " or more" * self._found.may_be_more
            return f"the newest {listed:,} of {listed + left_out:,}{more} traces"
        return super().total()

    def words(self) -> Iterator[str]:
        standings = [one.standing for one in self._traces]
        failed, growing = standings.count(TraceState.FAILED), standings.count(TraceState.GROWING)
        errors = sum(one.standing is not TraceState.FAILED for one in self._traces if one.summary.errors)
        yield f"{failed:,} failed" if failed else ""
        yield f"{errors:,} with errors" if errors else ""
        yield f"{growing:,} growing" if growing else ""
        yield from map(show, self._notes)

    def action_open(self) -> None:
        if (listed := self._table.record) is not None:
            open_screen(self.app, ScreenName.TRACE, self.shared, listed.summary.trace_id)

    def copied(self) -> str:
        return self._table.record.summary.trace_id if self._table.record is not None else ""

    def action_compare(self) -> None:
        marked = [one for one in self._table.records if one.summary.trace_id in self._table.marked]
        marked.sort(key=lambda listed: listed.standing is not TraceState.FAILED)
        chosen = marked or [listed for listed in (self._table.record,) if listed is not None]
        if len(chosen) > 2:
            self.notify(f"{len(chosen):,} traces are marked: mark two to compare them", timeout=4)
        elif chosen:
            ids = [one.summary.trace_id for one in chosen]
            open_screen(self.app, ScreenName.TRACE_CHANGES, self.shared, *ids)

    def paragraphs(self) -> Iterator[Paragraph]:
        if (listed := self._table.record) is not None:
            look = self.look()
            yield Paragraph(f"{'trace':<10}{listed.summary.trace_id}")
            for column in TRACE_COLUMNS:
                yield Paragraph(f"{column.key:<10}{column.cell(listed, look)}")

    def command(self) -> Command:
        listed = self._table.record
        return Command() if listed is None else self.shared.command("trace", about=[listed.summary.trace_id])


class TraceChangesScreen(HeadedScreen):
    """Spans that are missing, new, failed or slower in a trace than in another, or in the last good one."""

    NAME = ScreenName.TRACE_CHANGES

    def __init__(self, shared: Shared, this: TraceId, other: TraceId | None = None) -> None:
        super().__init__(shared)
        self._ids, self._shows_same = (this, other), False
        self._steps: tuple[StepChange, ...] = ()
        self._beside = ""
        self._main = self._table = RecordTable[StepChange](
            CHANGE_COLUMNS, lambda: None, lambda step: step.span.span_id
        )
        self._table.empty = ("reading …",)

    def on_mount(self) -> None:
        self._compare()

    @work(group="compare", exclusive=True)
    async def _compare(self) -> None:
        this_id, other_id = self._ids
        client = self.shared.trace_client() if self.shared.trace_client is not None else None
        this = await self._study(client, this_id)
        if this is None or client is None:
            other = None
        elif other_id is None:
            other = await last_good(client, this.tree)
        else:
            other = await self._study(client, other_id)
        if this is not None and other is not None:
            self._steps = tuple(await asyncio.to_thread(step_changes, this.tree, other.tree))
            at = other.tree.started_at
            began = "" if at is None else f" of {date_time(at)}{Zone.mark()}"
            self._beside = f"beside {short_id(other.tree.trace_id)}{began}"
        silence = f"Nothing differs. {key_of('show_hidden', self.NAME)} shows the steps that are the same."
        if this is None:
            silence = f"no source that was asked has trace {this_id}"
        elif other is None:
            silence = "No earlier trace with the same root is complete and good. Mark two to compare them."
        self._table.empty = (silence,)
        self._show_steps()

    async def _study(self, client: SessionTraces | None, trace_id: TraceId) -> Findings | None:
        trace = self.shared.live.traces.trace(trace_id)
        if trace is None and client is not None:
            trace = (await client.fetch(trace_id)).trace
        return None if trace is None else await asyncio.to_thread(study_trace, trace)

    def _show_steps(self) -> None:
        self._table.set_records(self._steps if self._shows_same else those_that_differ(self._steps))
        words = change_words(self._steps) if self._steps else ""
        self._rule.words = " · ".join(filter(None, (words, self._beside)))

    @property
    def crumb(self) -> str:
        return f"{short_id(self._ids[0])} compared"

    def action_show_hidden(self) -> None:
        self._shows_same = not self._shows_same
        self._show_steps()

    def action_open(self) -> None:
        if (step := self._table.record) is not None:
            open_screen(self.app, ScreenName.TRACE, self.shared, step.span.trace_id, step.span.span_id)

    def paragraphs(self) -> Iterator[Paragraph]:
        yield from map(Paragraph, (self._rule.words, *self._table.texts()))
