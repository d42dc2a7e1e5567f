"""Asks for recent traces, now and again, and says how each stands."""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from time import monotonic

from textual.dom import DOMNode

from jobtui.analysis.traces.standing import ListedTrace, Standing, standing_of
from jobtui.model.clock import Nanos
from jobtui.model.trace_desk import TraceList, TraceSearch, with_awaited
from jobtui.model.trace_ids import TraceId
from jobtui.screens.board import Board
from jobtui.screens.job_tab import start

MOST = 200
"""Traces that are listed."""
PERIOD_S, SHARE = 10.0, 10
"""Servers are asked so often, and all for no more than one part in so many of the time."""
LONGEST_S = 30.0
"""The longest rest when a source gave no answer: what was waited for costs nobody anything."""
NEWS_S = 1.0
"""What came by itself is listed so soon."""


class TraceLister:
    """The newest traces of all sources. `told` is called when the list is another."""

    def __init__(self, node: DOMNode, board: Board, told: Callable[[], None]) -> None:
        self.traces: tuple[ListedTrace, ...] = ()
        self.notes: tuple[str, ...] = ()
        """Which sources could not be asked, and why; outside text."""
        self.is_read = False
        """Whether it was asked once."""
        self._node, self._board, self._told = node, board, told
        self._due_at, self._works, self._has_news = 0.0, False, False
        self._known: dict[TraceId, tuple[int, Standing]] = {}

    def news(self) -> None:
        """Something came."""
        self._has_news = True
        self._due_at = min(self._due_at, monotonic() + NEWS_S)

    def look(self) -> None:
        """Ask when it is time, unless all is to stay as it is."""
        if not self._works and monotonic() >= self._due_at and self._board.paused_at is None:
            self._works, self._has_news = True, False
            start(self._node, self._ask, group="list traces")

    async def _ask(self) -> None:
        began, is_whole = monotonic(), True
        try:
            if self._board.trace_desk is not None:
                async with aclosing(self._board.trace_desk().searching(TraceSearch(most=MOST))) as lists:
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
        """List what was found by now; what is awaited still stands as it was told before."""
        now, before = self._board.now(), self.traces
        known = with_awaited(found, (one.told for one in before), MOST)
        standings = [await self._standing(one.trace_id, now) for one in known]
        self.traces = tuple(map(ListedTrace, known, standings))
        if not found.awaited:
            self.notes = found.notes
        elif self.traces != before:
            self._told()

    async def _standing(self, trace_id: TraceId, now: Nanos) -> Standing:
        """How a trace stands; one that is complete is not looked at again until it has grown."""
        book = self._board.live.traces
        size, before = book.size(trace_id), self._known.get(trace_id)
        if before is not None and before == (size, Standing.COMPLETE):
            return Standing.COMPLETE
        standing = await asyncio.to_thread(standing_of, book.trace(trace_id), now)
        if len(self._known) > 2 * MOST:
            self._known.clear()
        self._known[trace_id] = (size, standing)
        return standing


def rest_s(took_s: float, *, has_news: bool, is_whole: bool) -> float:
    """How long not to ask again; `is_whole` says that every source answered."""
    share_s = SHARE * took_s
    return max(NEWS_S if has_news else PERIOD_S, share_s if is_whole else min(share_s, LONGEST_S))
