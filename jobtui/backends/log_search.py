"""A search through a whole log file, off the event loop, bounded in time and in what it keeps.

A plain text is looked for here, the lines nearest to the reader's place first. In a large file ripgrep does
it where it is installed. Regular expressions are always left to another process (see `search_program`).
"""

import asyncio
import os
from array import array
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol

from jobtui.backends.file_access import ByteSource
from jobtui.backends.log_segment import Segment
from jobtui.backends.page_reader import line_start
from jobtui.backends.search_program import SearchFailed, SearchProgram, ripgrep
from jobtui.backends.worker import Worker
from jobtui.model.pages import Extent, Hits, Place, Query, SearchState

LIMIT_S = 20.0
"""How long a search may take."""
HITS_KEPT = 1_000_000
"""Lines that are kept; more are not looked for."""
CHUNK_BYTES = 1 << 20
PROGRAM_FROM_BYTES = 16 << 20
"""Logs of this size and more are searched by ripgrep also for a plain text."""


class Searched(Protocol):
    """The log that is searched."""

    @property
    def extent(self) -> Extent:
        """How far it goes."""
        ...

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The files it consists of, the oldest first."""
        ...


class Chunk(NamedTuple):
    """Bytes `begin` .. `end` of a file."""

    segment: Segment
    begin: int
    end: int


class FileSearch:
    """One search. `hits` may be read while it runs."""

    def __init__(self, log: Searched, query: Query, around: Place, *, limit_s: float = LIMIT_S) -> None:
        self.query = query
        self.state = SearchState.RUNNING
        self.problem = ""
        extent = log.extent
        self._log = log
        self._limit_s = limit_s
        self._stopping = False
        self._program: SearchProgram | None = None
        self._searched_to = extent.begin
        self._by_program = self._is_for_program(extent)
        place = extent.begin if self._by_program else max(extent.begin, min(around, extent.end))
        self.hits = Hits(place)
        self._worker = Worker("search")

    def _is_for_program(self, extent: Extent) -> bool:
        is_large = extent.end - extent.begin >= PROGRAM_FROM_BYTES and ripgrep() is not None
        return not _is_plain(self.query) or is_large

    async def run(self) -> None:
        """Search until done, cancelled or out of time."""
        await self._within_limit(self._search_all)

    async def extend(self) -> None:
        """Search what was written since."""
        end = self._log.extent.end
        if self.state is SearchState.DONE and end > self._searched_to:
            await self._within_limit(self._search_new)

    def cancel(self) -> None:
        """Stop it; what was found stays."""
        if self.state is SearchState.RUNNING:
            self.state = SearchState.CANCELED
        self._stop()
        self._worker.close()

    def _stop(self) -> None:
        self._stopping = True
        if self._program is not None:
            self._program.stop()

    async def _within_limit(self, search: Callable[[], None]) -> None:
        working = asyncio.ensure_future(self._worker.run(search))
        try:
            async with asyncio.timeout(self._limit_s):
                await asyncio.shield(working)
            if self.state is SearchState.RUNNING:
                self.state = SearchState.DONE
        except TimeoutError:
            self.state = SearchState.TIMED_OUT
        except (SearchFailed, OSError) as error:
            if not self._stopping:
                self.state, self.problem = SearchState.FAILED, str(error)
        finally:
            if self.state is not SearchState.DONE:
                self._stop()
                working.add_done_callback(_look_at)

    # What follows runs in the search's own thread.

    def _search_all(self) -> None:
        end = self._log.extent.end
        if self._by_program:
            self._search_by_program()
        else:
            self._search_outwards()
        self._settle(end)

    def _search_new(self) -> None:
        end = self._log.extent.end
        self.hits.forget_from(self.hits.high)
        if _is_plain(self.query):
            for chunk in self._upwards(self.hits.high):
                self._search_up(chunk)
        else:
            self._search_pieces(self.hits.high)
        self._settle(end)

    def _settle(self, end: Place) -> None:
        """Note how far all is searched; a last line that is not finished is searched again."""
        self._searched_to = end
        segment = self._log.segments[-1] if self._log.segments else None
        if segment is not None and not self._stopping:
            offset = min(end - segment.base, segment.size)
            self.hits.high = segment.base + line_start(segment.source, max(0, offset))

    def _search_outwards(self) -> None:
        self.hits.low = self.hits.high = place = self._line_start(self.hits.high)
        up, down = self._upwards(place), self._downwards(place)
        while not self._stopping:
            above, below = next(up, None), next(down, None)
            if above is None and below is None:
                return
            if below is not None:
                self._search_down(below)
            if above is not None:
                self._search_up(above)

    def _line_start(self, place: Place) -> Place:
        """Where the line begins that holds `place`."""
        for segment in self._log.segments:
            if segment.base <= place < segment.end:
                return segment.base + line_start(segment.source, place - segment.base)
        return place

    def _upwards(self, place: Place) -> Iterator[Chunk]:
        for segment in self._log.segments:
            while place < segment.end and not self._stopping:
                begin = max(0, place - segment.base)
                end = _line_end(segment.source, min(segment.size, begin + CHUNK_BYTES), segment.size)
                yield Chunk(segment, begin, end)
                place = segment.base + end

    def _downwards(self, place: Place) -> Iterator[Chunk]:
        for segment in reversed(self._log.segments):
            while place > segment.base and not self._stopping:
                end = min(segment.size, place - segment.base)
                begin = line_start(segment.source, max(0, end - CHUNK_BYTES))
                yield Chunk(segment, begin, end)
                place = segment.base + begin

    def _search_up(self, chunk: Chunk) -> None:
        self.hits.add_above(self._found(chunk), chunk.segment.base + chunk.end)
        self._stop_when_full()

    def _search_down(self, chunk: Chunk) -> None:
        found = self._found(chunk)
        found.reverse()
        self.hits.add_below(found, chunk.segment.base + chunk.begin)
        self._stop_when_full()

    def _found(self, chunk: Chunk) -> "array[int]":
        data = chunk.segment.source.read(chunk.begin, chunk.end - chunk.begin)
        needle = self.query.text.encode("utf-8", "surrogateescape")
        if self.query.ignores_case:
            data = data.lower()
        found = array("q")
        origin = chunk.segment.base + chunk.begin
        at = data.find(needle)
        while at >= 0:
            found.append(origin + at)
            end = data.find(b"\n", at)
            at = data.find(needle, end) if end >= 0 else -1
        return found

    def _search_by_program(self) -> None:
        segments = self._log.segments
        if ripgrep() is None or any(segment.is_packed for segment in segments):
            self._search_pieces(self.hits.low)
            return
        for segment in segments:
            descriptor = segment.opened.plain.duplicate()
            try:
                self._take(self._new_program().found_in_file(descriptor), segment.base)
            finally:
                os.close(descriptor)
            self.hits.high = segment.end

    def _search_pieces(self, place: Place) -> None:
        for segment in self._log.segments:
            if place < segment.end and not self._stopping:
                begin = max(0, place - segment.base)
                found = self._new_program().found_in_text(self._pieces(segment, begin))
                self._take(found, segment.base + begin)
                self.hits.high = place = segment.end

    def _pieces(self, segment: Segment, begin: int) -> Iterator[bytes]:
        end = segment.size
        while begin < end and not self._stopping:
            piece = segment.source.read(begin, min(CHUNK_BYTES, end - begin))
            if not piece:
                return
            yield piece
            begin += len(piece)

    def _new_program(self) -> SearchProgram:
        self._program = SearchProgram(self.query)
        if self._stopping:
            self._program.stop()
        return self._program

    def _take(self, found: Iterator["array[int]"], base: Place) -> None:
        for offsets in found:
            places = array("q", [base + offset for offset in offsets])
            self.hits.add_above(places, places[-1] if places else self.hits.high)
            self._stop_when_full()

    def _stop_when_full(self) -> None:
        if len(self.hits) >= HITS_KEPT and self.state is SearchState.RUNNING:
            self.state = SearchState.FULL
            self._stop()


def _is_plain(query: Query) -> bool:
    """Whether bytes can be compared: ignoring case is easy for ASCII only."""
    return not query.is_regex and (not query.ignores_case or query.text.isascii())


def _line_end(source: ByteSource, offset: int, size: int) -> int:
    """Behind the newline at which the line that holds byte `offset - 1` ends, not too far away."""
    newline = source.read(offset - 1, min(CHUNK_BYTES, size - offset + 1)).find(b"\n")
    return offset + newline if newline >= 0 else min(size, offset + CHUNK_BYTES)


def _look_at(working: "asyncio.Future[None]") -> None:
    """Take note of how a search ended that nobody waits for any more."""
    if not working.cancelled():
        working.exception()
