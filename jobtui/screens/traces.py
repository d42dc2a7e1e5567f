"""Recent traces of all sources, with their state; one opens as a waterfall."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import aclosing
from time import monotonic

from textual import on
from textual.dom import DOMNode

from jobtui.actions import Place
from jobtui.analysis.traces.filters import (
    TRACE_FIELDS,
    ListedTrace,
    Standing,
    TraceTest,
    parse_trace_filter,
    standing_of,
)
from jobtui.model.clock import Nanos
from jobtui.model.ids import TraceId
from jobtui.model.numbers import counted
from jobtui.model.traces import TraceList, TraceSearch, with_awaited
from jobtui.render.text import show
from jobtui.render.traces import TRACE_COLUMNS, TraceLook, sort_traces
from jobtui.screens.base import TableScreen, bindings_at
from jobtui.screens.command_table import complete_fields
from jobtui.screens.export import jobtui_command
from jobtui.screens.shared import Shared, Taken, open_screen, start
from jobtui.store.store import Changes
from jobtui.widgets.filter_bar import Completion
from jobtui.widgets.record_list import RecordTable

LISTED = 200
"""Traces that are listed."""
PERIOD_S, SHARE = 10.0, 10
"""Servers are asked so often, and all for no more than one part in so many of the time."""
LONGEST_S = 30.0
"""The longest rest when a source gave no answer: what was waited for costs nobody anything."""
SETTLED = frozenset({Standing.COMPLETE, Standing.FAILED})
NEWS_S = 1.0
"""What came by itself is listed so soon."""


class TraceLister:
    """Lists the newest traces of all sources. `told` is called when the list changes."""

    def __init__(self, node: DOMNode, shared: Shared, told: Callable[[], None]) -> None:
        self.traces: tuple[ListedTrace, ...] = ()
        self.notes: tuple[str, ...] = ()
        """Which sources could not be asked, and why; outside text."""
        self.left_out = 0
        """How many traces that were told of are not listed."""
        self.may_be_more = False
        """Whether a source told of as many as were asked for, so that it may have more."""
        self.is_read = False
        """Whether it was asked once."""
        self._node, self._shared, self._told = node, shared, told
        self._due_at, self._works, self._has_news = 0.0, False, False
        self._known: dict[TraceId, tuple[int, Standing]] = {}

    def news(self) -> None:
        self._has_news = True
        self._due_at = min(self._due_at, monotonic() + NEWS_S)

    def look(self) -> None:
        if not self._works and monotonic() >= self._due_at and self._shared.paused_at is None:
            self._works, self._has_news = True, False
            start(self._node, self._ask, group="list traces")

    async def _ask(self) -> None:
        began, is_whole = monotonic(), True
        try:
            if self._shared.trace_client is not None:
                search = TraceSearch(names=self._shared.job_attributes(), most=LISTED)
                async with aclosing(self._shared.trace_client().searching(search)) as lists:
                    async for found in lists:
                        await self._take(found)
                        is_whole = not found.notes
            self.is_read = True
            self._told()
        finally:
            self._works = False
            took_s = monotonic() - began
            self._due_at = monotonic() + rest_s(took_s, has_news=self._has_news, is_whole=is_whole)

    async def _take(self, found: TraceList) -> None:
        now, before = self._shared.now(), self.traces
        known = with_awaited(found, (one.told for one in before), LISTED)
        standings = [await self._standing(one.trace_id, now) for one in known]
        jobs = (self._shared.live.traces.jobs_of(one.trace_id) or one.jobs for one in known)
        self.traces = tuple(map(ListedTrace, known, standings, jobs))
        self.left_out, self.may_be_more = found.left_out, found.may_be_more
        if not found.awaited:
            self.notes = found.notes
        elif self.traces != before:
            self._told()

    async def _standing(self, trace_id: TraceId, now: Nanos) -> Standing:
        book = self._shared.live.traces
        size, before = book.size(trace_id), self._known.get(trace_id)
        if before is not None and before[0] == size and before[1] in SETTLED:
            return before[1]
        standing = await asyncio.to_thread(standing_of, book.trace(trace_id), now)
        if len(self._known) > 2 * LISTED:
            self._known.clear()
        self._known[trace_id] = (size, standing)
        return standing


def rest_s(took_s: float, *, has_news: bool, is_whole: bool) -> float:
    """How long not to ask again; `is_whole` says that every source answered."""
    share_s = SHARE * took_s
    return max(NEWS_S if has_news else PERIOD_S, share_s if is_whole else min(share_s, LONGEST_S))


NOTHING_CONFIGURED = (
    "No trace is known.",
    "Name where traces are: --trace-file FILE (OTLP as JSON, JSONL or protobuf, Jaeger's JSON), "
    "or a server; `jobtui --help` and the README list the settings, `jobtui doctor` says what each is worth.",
    "Any trace id, TRACEPARENT or log line that holds one can be pasted behind `:`.",
)
"""What is said where there is nothing to see."""


class TracesScreen(TableScreen):
    """The newest traces."""

    PLACE = Place.TRACES
    BINDINGS = bindings_at(Place.TRACES)
    COLUMNS = TRACE_COLUMNS
    PLACEHOLDER = "words, or: service:fife dur>10m error:yes state:growing name:submit"

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._passes: TraceTest = parse_trace_filter("")
        self._lister = TraceLister(self, shared, self.show_all)
        self._main = self._table = RecordTable[ListedTrace](
            TRACE_COLUMNS, self.look, lambda listed: listed.told.trace_id
        )

    def on_mount(self) -> None:
        self._lister.look()

    def take(self, changes: Changes) -> None:
        if changes.traces:
            self._lister.news()
        self._strip.sources = self.shared.store.sources()

    def tick(self) -> None:
        self._lister.look()
        self._header.repaint()
        self._table.repaint()
        self._strip.sources = self.shared.store.sources()

    def show_all(self) -> None:
        passing = [listed for listed in self._lister.traces if self._passes(listed)]
        self._table.set_empty(self._silence())
        self.show_records(self._table, sort_traces(passing, self._sorted_by, reverse=self._reverse))

    def look(self) -> TraceLook:
        return TraceLook(self.shared.now(), relative=not self.shared.absolute)

    def _silence(self) -> tuple[str, ...]:
        if not self._lister.is_read:
            return ("asking …",)
        if self._lister.traces:
            return ("no trace passes the filter",)
        return (*NOTHING_CONFIGURED, *map(show, self._lister.notes))

    def words(self) -> Iterator[str]:
        traces = self._lister.traces
        failed = sum(listed.standing is Standing.FAILED for listed in traces)
        errors = sum(bool(one.told.errors) and one.standing is not Standing.FAILED for one in traces)
        grow = sum(listed.standing is Standing.GROWING for listed in traces)
        total = counted(len(traces), "trace")
        if self._lister.left_out or self._lister.may_be_more:
            known, more = len(traces) + self._lister.left_out, " or more" * self._lister.may_be_more
            total = f"the newest {len(traces):,} of {known:,}{more} traces"
        yield f"{self._table.count:,} of {total}" if self._filter_text else total
        yield f"{failed:,} failed" if failed else ""
        yield f"{errors:,} with errors" if errors else ""
        yield f"{grow:,} growing" if grow else ""
        yield from map(show, self._lister.notes)

    @on(RecordTable.Opened)
    def action_open(self) -> None:
        if (listed := self._table.record) is not None:
            open_screen(self.app, Place.TRACE, self.shared, listed.told.trace_id)

    def action_copy(self) -> None:
        if (listed := self._table.record) is not None:
            self.copy(listed.told.trace_id)

    async def taken(self) -> Taken | None:
        listed = self._table.record
        if listed is None:
            return None
        look = self.look()
        facts = (f"{column.key:<10}{column.cell(listed, look)}" for column in TRACE_COLUMNS)
        block = "\n".join((f"{'trace':<10}{listed.told.trace_id}", *facts))
        return Taken(block, jobtui_command(self.shared, "trace", about=[listed.told.trace_id]))

    def complete(self, text: str, cursor: int) -> Completion:
        return complete_fields(text, cursor, TRACE_FIELDS)

    def let_pass(self, text: str) -> None:
        self._passes = parse_trace_filter(text)
