"""Streams of a journal to be read on a screen: pages from any place, at the end at once, whatever its size.

Nothing is held but some stretches of lines and the counts of the histogram. Places come from the time of
receipt, so a place of another reading, or of a record, is found again. No method blocks the event loop.
"""

import asyncio
from contextlib import suppress

from jobtui.backends.base import SourceError
from jobtui.backends.journal.contract import Following
from jobtui.backends.journal.overview import JournalOverview
from jobtui.backends.journal.page_lines import Selection, placed_behind
from jobtui.backends.journal.page_reading import PieceReader
from jobtui.backends.journal.page_search import JournalSearch, error_in
from jobtui.backends.journal.runs import RUNS, Run
from jobtui.backends.journal.source import MakeReader
from jobtui.model.clock import Nanos
from jobtui.model.journal import At, Beside, Head, Tail, place_at, time_at
from jobtui.model.pages import Extent, LogLine, LogSearch, LogUnreadable, Overview, Page, Place, Query

FIRST_ENTRIES = 250
"""Entries at the end of the journal that are read at first."""
PIECE = 250
"""Entries read at once for a page."""
TAKEN = 2_000
"""Entries taken at once of what was written."""
BEHIND_ALL: Place = 1 << 200
TAKES = 5
"""How often more is taken in one look."""


class JournalPages:
    """The selected entries of the journal that `make_reader` opens."""

    def __init__(self, name: str, make_reader: MakeReader, selection: Selection) -> None:
        self.name = name
        self.selection = selection
        self._pages = PieceReader(make_reader, selection)
        self._slow = PieceReader(make_reader, selection)
        self._make_reader = make_reader
        self._tail: Run | None = None
        self._runs: list[Run] = []
        self._following: Following | None = None
        self._begin: Place | None = None
        self._overview = JournalOverview(self._slow)
        self._looking = asyncio.Lock()
        self._reading = asyncio.Lock()
        self._event = ""
        self._failed = False

    # How far it goes.

    async def look(self) -> Extent:
        """How far it goes now. Raises LogUnreadable; what was read before can be read on then."""
        async with self._looking:
            try:
                if self._tail is None:
                    self._tail = await self._end_of_it()
                await self._take()
                self._failed = False
            except LogUnreadable:
                self._failed = True
                raise
            return self.extent

    @property
    def extent(self) -> Extent:
        """How far it went at the last look."""
        if self._tail is None:
            return Extent(0, 0)
        begin = self._tail.begin if self._tail.at_begin else min(self._begin or 0, self._tail.begin)
        return Extent(begin, self._tail.end, self._event)

    async def _end_of_it(self) -> Run:
        piece = await self._pages.backward(Tail(), FIRST_ENTRIES, BEHIND_ALL)
        run = Run(piece.lines, piece.cursor, piece.lines[-1][0] if piece.lines else None)
        run.at_begin, run.at_end = piece.at_edge, True
        while not run.lines and not run.at_begin:
            await self._extend_back(run)
        self._overview.begin_before(run.end)
        return run

    async def _take(self) -> None:
        """Take in what was written."""
        tail = self._tail
        assert tail is not None
        if self._following is None:
            start = Beside(tail.cursors[-1]) if tail.cursors else Head()
            self._following = self._pages.reader.follow(start, self.selection.matches)
        for _ in range(TAKES):
            try:
                found = await self._following.take(TAKEN)
            except SourceError as error:
                raise LogUnreadable(str(error)) from error
            if found.lost:
                self._event = "entries were let go before they were read"
            lines = placed_behind(await self._pages.shown(found.entries), tail.end - 1)
            if lines:
                tail.append(lines, lines[-1][0])
                self._overview.grown([line for _, line in lines])
            tail.cut_begin()
            if found.at_edge:
                return

    async def changed(self, timeout_s: float) -> None:
        """Return when a look may find something new, at the latest after `timeout_s`."""
        if self._following is None:
            await asyncio.sleep(timeout_s)
            return
        with suppress(SourceError):
            await self._following.changed(timeout_s)

    # Pages.

    async def before(self, place: Place, count: int) -> Page:
        """Up to `count` lines before the one that holds `place`. Raises LogUnreadable."""
        async with self._reading:
            run = await self._run_at(place)
            while True:
                stop = run.index(place)
                if stop >= count or run.at_begin:
                    break
                await self._extend_back(run, max(PIECE, count - stop))
            begin = max(0, stop - count)
            page = Page(tuple(run.lines[begin:stop]), run.at_begin and begin == 0)
            self._bound(run, keeps_begin=True)
            return page

    async def after(self, place: Place, count: int) -> Page:
        """Up to `count` lines from the one that holds `place` on. Raises LogUnreadable."""
        async with self._reading:
            run = await self._run_at(place)
            while True:
                begin = run.index(place)
                if len(run) - begin >= count or run.at_end:
                    break
                await self._extend_on(run)
            if place >= run.end:
                return Page((), at_edge=True)
            page = Page(tuple(run.lines[begin : begin + count]), run.at_end and begin + count >= len(run))
            self._bound(run, keeps_begin=False)
            return page

    async def _run_at(self, place: Place) -> Run:
        """The stretch that holds `place`; a new one where none does."""
        if self._tail is None:
            await self.look()
        tail = self._tail
        assert tail is not None
        if place >= tail.begin or not tail.lines:
            return tail
        for run in self._runs:
            if run.holds(place):
                self._runs.remove(run)
                self._runs.append(run)
                return run
        return await self._new_run(place, tail)

    async def _new_run(self, place: Place, tail: Run) -> Run:
        start = Head() if place <= (self._begin or 0) else At(time_at(place))
        piece = await self._pages.forward(start, PIECE, -1)
        run = Run(piece.lines, piece.lines[0][0] if piece.lines else piece.cursor, piece.cursor)
        run.at_begin = isinstance(start, Head)
        while not run.lines or run.begin > place:
            if run.at_begin or run.first is None:
                break
            await self._extend_back(run)
        if run.end >= tail.begin:
            return self._joined(run, tail)
        self._runs = [*self._runs[-RUNS + 1 :], run]
        return run

    def _joined(self, run: Run, tail: Run) -> Run:
        """A stretch that has reached the end of the journal becomes a part of it."""
        run.join(tail)
        tail.lines, tail.cursors, tail.first, tail.at_begin = run.lines, run.cursors, run.first, run.at_begin
        self._runs = [other for other in self._runs if other is not run]
        return tail

    async def _extend_back(self, run: Run, count: int = PIECE) -> None:
        start: Tail | Beside = Beside(run.first) if run.first is not None else Tail()
        before = run.first
        piece = await self._pages.backward(start, min(count, TAKEN), run.begin if run.lines else BEHIND_ALL)
        if run.first == before:  # else lines were let go meanwhile, and it is asked again
            run.prepend(piece.lines, piece.cursor)
            run.at_begin = piece.at_edge

    async def _extend_on(self, run: Run) -> None:
        tail = self._tail
        assert tail is not None
        start: Head | Beside = Beside(run.last) if run.last is not None else Head()
        piece = await self._pages.forward(start, PIECE, run.end - 1)
        run.append(piece.lines, piece.cursor)
        if run.end >= tail.begin or piece.at_edge:
            run.join(tail)
            run.at_end = True

    def _bound(self, run: Run, *, keeps_begin: bool) -> None:
        """Let go what is farthest from what was asked for; the end of the journal stays."""
        if run is self._tail or not keeps_begin:
            run.cut_begin()
        else:
            run.cut_end()
        if run.at_end and run is not self._tail and self._tail is not None:
            self._joined(run, self._tail)

    # The log as a whole.

    async def work(self) -> bool:
        """Look through a little more of it; whether there is more to look through. Raises LogUnreadable."""
        if self._begin is None:
            first = await self._slow.forward(Head(), 1, -1)
            self._begin = first.lines[0][1].place if first.lines else place_at(Nanos(0))
            return True
        return await self._overview.work()

    def overview(self) -> Overview:
        """What is known of it as a whole by now."""
        return self._overview.overview()

    async def number_of(self, place: Place) -> int | None:
        """Entries of a journal have no numbers: None."""
        return None

    async def place_of_line(self, number: int) -> Place | None:
        """Entries of a journal have no numbers: None."""
        return None

    async def next_error(self, place: Place, *, forward: bool) -> Place | None:
        """The first error behind the line at `place`, or the last before it. Raises LogUnreadable."""
        return await error_in(self._slow, place, self.extent, forward=forward)

    def search(self, query: Query, around: Place) -> LogSearch:
        """A search, nearest lines first; not yet begun."""
        return JournalSearch(self._slow, query, around, lambda: self.extent)

    @property
    def held(self) -> list[LogLine]:
        """The lines at its end that are held."""
        return self._tail.lines if self._tail else []

    async def aclose(self) -> None:
        """Release what is held. May be called twice."""
        following, self._following = self._following, None
        if following is not None:
            await following.aclose()
        await self._pages.aclose()
        await self._slow.aclose()
