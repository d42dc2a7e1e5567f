"""Searching the lines of a journal: a piece behind, a piece before, until both ends are reached.

A journal cannot be searched by text where it is, so all of it has to be read. A text is looked for here; a
regular expression in a process of its own, which can be stopped.
"""

import asyncio
import time
from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate

from jobtui.backends.journal.page_reading import PieceReader
from jobtui.backends.search_program import SearchFailed, SearchProgram
from jobtui.backends.worker import Worker
from jobtui.model.journal import At, Beside, Cursor, Head, time_at
from jobtui.model.pages import Extent, Hits, Level, LogLine, LogUnreadable, Place, Query, SearchState

LIMIT_S = 30.0
PIECE = 1_000
HITS_KEPT = 200_000


class _Side:
    """How far was searched in one direction: `place` is the limit, `cursor` the entry to read on from."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.cursor: Cursor | None = None
        self.is_done = False


class JournalSearch:
    """One search. `extent` tells how far the log goes now."""

    def __init__(
        self,
        pieces: PieceReader,
        query: Query,
        around: Place,
        extent: Callable[[], Extent],
        *,
        limit_s: float = LIMIT_S,
    ) -> None:
        self.query = query
        self.hits = Hits(around, wide=True)
        self.state = SearchState.RUNNING
        self.problem = ""
        self._pieces = pieces
        self._extent = extent
        self._limit_s = limit_s
        self._up, self._down = _Side(around), _Side(around)
        self._program: SearchProgram | None = None
        self._worker = Worker("search in a journal")

    async def run(self) -> None:
        """Search until done, cancelled or out of time."""
        until = time.monotonic() + self._limit_s
        try:
            while self.state is SearchState.RUNNING:
                await self._search_down()
                await self._search_up()
                self._settle(until)
        except SearchFailed as error:
            self._fail(str(error))
        except LogUnreadable as error:
            self._fail(str(error))

    def _fail(self, problem: str) -> None:
        if self.state is SearchState.RUNNING:
            self.state, self.problem = SearchState.FAILED, problem

    def _settle(self, until: float) -> None:
        if self.state is not SearchState.RUNNING:
            return
        if self._up.is_done and self._down.is_done:
            self.state = SearchState.DONE
        elif len(self.hits) >= HITS_KEPT:
            self.state = SearchState.FULL
        elif time.monotonic() > until:
            self.state = SearchState.TIMED_OUT

    async def _search_down(self) -> None:
        side = self._down
        if side.is_done:
            return
        start = At(time_at(side.place)) if side.cursor is None else Beside(side.cursor)
        behind = -1 if side.cursor is None else side.place - 1
        piece = await self._pieces.forward(start, PIECE, behind)
        lines = [line for _, line in piece.lines if line.place >= side.place]
        found = await self._found(lines)
        side.cursor = piece.cursor or side.cursor
        side.place = lines[-1].end if lines else side.place
        side.is_done = piece.at_edge
        self.hits.add_above(found, max(side.place, self._extent().end) if piece.at_edge else side.place)

    async def _search_up(self) -> None:
        side = self._up
        if side.is_done:
            return
        # The microsecond that holds the place is read too, as the place may be in the midst of it
        start = At(time_at(side.place + (1 << 12))) if side.cursor is None else Beside(side.cursor)
        piece = await self._pieces.backward(
            start, PIECE, side.place if side.cursor else side.place + (1 << 12)
        )
        lines = [line for _, line in piece.lines if line.place < side.place]
        found = await self._found(lines)
        side.cursor = piece.cursor or side.cursor
        side.place = lines[0].place if lines else side.place
        side.is_done = piece.at_edge or piece.cursor is None
        self.hits.add_below(
            found[::-1], min(side.place, self._extent().begin) if side.is_done else side.place
        )

    async def extend(self) -> None:
        """Search what was written since."""
        if self.state is SearchState.DONE and self._extent().end > self._down.place:
            self._down.is_done = False
            try:
                while not self._down.is_done and self.state is SearchState.DONE:
                    await self._search_down()
            except (SearchFailed, LogUnreadable) as error:
                self.state, self.problem = SearchState.FAILED, str(error)

    def cancel(self) -> None:
        """Stop it; what was found stays."""
        if self.state is SearchState.RUNNING:
            self.state = SearchState.CANCELED
        if self._program is not None:
            self._program.stop()
        self._worker.close()

    async def _found(self, lines: Sequence[LogLine]) -> list[Place]:
        """The places of lines that have what is looked for."""
        if not lines:
            return []
        if self.query.is_regex:
            return await self._worker.run(lambda: self._found_by_program(lines))
        await asyncio.sleep(0)
        return found_text(self.query, lines)

    def _found_by_program(self, lines: Sequence[LogLine]) -> list[Place]:
        texts = [line.text.replace("\n", " ").encode("utf-8", "replace") + b"\n" for line in lines]
        begins = array("q", [0, *accumulate(map(len, texts))])
        if self.state is SearchState.CANCELED:
            return []
        self._program = program = SearchProgram(self.query)
        offsets = [offset for some in program.found_in_text(iter(texts)) for offset in some]
        return [lines[bisect_right(begins, offset) - 1].place for offset in offsets]


def found_text(query: Query, lines: Sequence[LogLine]) -> list[Place]:
    """The places of lines that hold a text."""
    if query.ignores_case:
        wanted = query.text.casefold()
        return [line.place for line in lines if wanted in line.text.casefold()]
    return [line.place for line in lines if query.text in line.text]


async def error_in(pieces: PieceReader, place: Place, extent: Extent, *, forward: bool) -> Place | None:
    """The first error behind the line at `place`, or the last before it. Raises LogUnreadable."""
    return await (_error_behind(pieces, place) if forward else _error_before(pieces, place, extent))


async def _error_behind(pieces: PieceReader, place: Place) -> Place | None:
    start: Head | At | Beside = At(time_at(place))
    behind = -1
    while True:
        piece = await pieces.forward(start, PIECE, behind)
        for _, line in piece.lines:
            if line.place > place and line.level is Level.ERROR:
                return line.place
        if piece.at_edge or piece.cursor is None:
            return None
        start = Beside(piece.cursor)
        behind = piece.lines[-1][1].place if piece.lines else behind


async def _error_before(pieces: PieceReader, place: Place, extent: Extent) -> Place | None:
    limit = min(place, extent.end) + (1 << 12)
    start: At | Beside = At(time_at(limit))
    while True:
        piece = await pieces.backward(start, PIECE, limit)
        for _, line in reversed(piece.lines):
            if line.place < place and line.level is Level.ERROR:
                return line.place
        if piece.at_edge or piece.cursor is None:
            return None
        start = Beside(piece.cursor)
        limit = piece.lines[0][1].place if piece.lines else limit
