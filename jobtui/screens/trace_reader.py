"""Reads one trace for a screen, and again as it grows. What takes long is done beside the event loop."""

import asyncio
from collections.abc import Callable
from time import monotonic

from textual.dom import DOMNode

from jobtui.analysis.traces.findings import study_trace
from jobtui.model.trace_growth import growing
from jobtui.model.trace_ids import TraceId
from jobtui.model.traces import Trace
from jobtui.screens.board import Board
from jobtui.screens.job_tab import start
from jobtui.screens.turns import without_collecting
from jobtui.widgets.trace_lines import Picture, picture_of

SHARE = 10
"""A trace that grows is studied again for no more than one part in so many of the time."""


class TraceReader:
    """One trace. `told` is called when there is news of it; `expects_more` says that more must come.

    `part_of` gives what of it is shown, when that is not all.
    """

    def __init__(
        self,
        node: DOMNode,
        board: Board,
        trace_id: TraceId,
        told: Callable[[], None],
        expects_more: Callable[[], bool] = lambda: False,
        part_of: Callable[[Trace], Trace] = lambda trace: trace,
    ) -> None:
        self.trace_id = trace_id
        self.picture: Picture | None = None
        """The trace as it was studied last, None while it is read, or when nobody has it."""
        self.growing = ""
        """Why more of it may come, "" when it is complete; outside text."""
        self.notes: tuple[str, ...] = ()
        """Which sources could not be asked, and why; outside text."""
        self.is_read = False
        """Whether all that could be asked was asked once."""
        self._node, self._board, self._told, self._expects_more = node, board, told, expects_more
        self._part_of = part_of
        self._size = -1
        self._rests_until = 0.0
        self._is_due = False

    def begin(self) -> None:
        """Read it, and follow it."""
        start(self._node, self._follow, group="follow trace", exclusive=True)

    def changed(self) -> None:
        """More of it may be known now."""
        self._is_due = True
        self.look()

    def look(self) -> None:
        """Study it when it is due, there is no pause, and it was not done a moment ago."""
        if self._is_due and self._board.paused_at is None and monotonic() >= self._rests_until:
            start(self._node, self._study_known, group="study trace", exclusive=True)

    async def _follow(self) -> None:
        if self._board.trace_desk is None:
            await self._study_known()
            self.is_read = True
            self._told()
            return
        async for answer in self._board.trace_desk().follow(self.trace_id, self._expects_more):
            self.growing, self.notes = answer.growing, answer.notes
            self._is_due = True
            if self.picture is None or self._board.paused_at is None:
                await self._study_known()
            self.is_read = True
            self._told()

    async def _study_known(self) -> None:
        """Study what the store knows of it, if that is more than before."""
        self._is_due = False
        book = self._board.live.traces
        size, trace = book.size(self.trace_id), book.trace(self.trace_id)
        if trace is None or size == self._size:
            return
        self._size = size
        began = monotonic()
        with without_collecting():
            self.picture = await asyncio.to_thread(lambda: picture_of(study_trace(self._part_of(trace))))
            if self.growing:  # why is known better than when it was asked for
                self.growing = await asyncio.to_thread(growing, trace, self._board.now(), self._board.now())
        self._rests_until = monotonic() + SHARE * (monotonic() - began)
        self._told()
