"""A search through the lines a merged log holds, off the event loop and bounded in time."""

import asyncio
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Protocol

from jobtui.backends.search_program import SearchFailed, SearchProgram
from jobtui.backends.worker import Worker
from jobtui.model.pages import Hits, LogLine, Place, Query, SearchState

LIMIT_S = 20.0


class Held(Protocol):
    """What is searched."""

    @property
    def lines(self) -> Sequence[LogLine]:
        """All lines, in order."""
        ...


class MergedSearch:
    """One search. Lines may come between others, so that all are searched again when there are more."""

    def __init__(self, log: Held, query: Query, *, limit_s: float = LIMIT_S) -> None:
        self.query = query
        self.state = SearchState.RUNNING
        self.problem = ""
        self.hits = Hits(0, wide=True)
        self._log = log
        self._limit_s = limit_s
        self._program: SearchProgram | None = None
        self._searched = (0, 0)
        self._worker = Worker("search")

    async def run(self) -> None:
        """Search until done, cancelled or out of time."""
        lines = self._log.lines
        working = asyncio.ensure_future(self._worker.run(lambda: self._found(lines)))
        try:
            async with asyncio.timeout(self._limit_s):
                found = await asyncio.shield(working)
        except TimeoutError:
            self.state = SearchState.TIMED_OUT
            self._stop()
        except SearchFailed as error:
            if self.state is SearchState.RUNNING:
                self.state, self.problem = SearchState.FAILED, str(error)
        else:
            self._settle(lines, found)
        finally:
            working.add_done_callback(_look_at)

    def _settle(self, lines: Sequence[LogLine], found: list[Place]) -> None:
        hits = Hits(0, wide=True)
        end = lines[-1].end if lines else 0
        hits.add_above(found, end)
        self.hits, self._searched = hits, (len(lines), end)
        if self.state is SearchState.RUNNING:
            self.state = SearchState.DONE

    async def extend(self) -> None:
        """Search what was written since."""
        lines = self._log.lines
        if self.state is SearchState.DONE and (len(lines), lines[-1].end if lines else 0) != self._searched:
            await self.run()

    def cancel(self) -> None:
        """Stop it; what was found stays."""
        if self.state is SearchState.RUNNING:
            self.state = SearchState.CANCELED
        self._stop()
        self._worker.close()

    def _stop(self) -> None:
        if self._program is not None:
            self._program.stop()

    # What follows runs in the search's own thread.

    def _found(self, lines: Sequence[LogLine]) -> list[Place]:
        query = self.query
        if query.is_regex:
            return self._found_by_program(lines)
        if query.ignores_case:
            wanted = query.text.casefold()
            return [line.place for line in lines if wanted in line.text.casefold()]
        return [line.place for line in lines if query.text in line.text]

    def _found_by_program(self, lines: Sequence[LogLine]) -> list[Place]:
        texts = [_encoded(line) for line in lines]
        begins = array("q", [0, *accumulate(map(len, texts))])
        self._program = SearchProgram(self.query)
        offsets: Iterator[array[int]] = self._program.found_in_text(iter(texts))
        return [lines[bisect_right(begins, offset) - 1].place for some in offsets for offset in some]


def _encoded(line: LogLine) -> bytes:
    return line.text.replace("\n", " ").encode("utf-8", "replace") + b"\n"


def _look_at(working: "asyncio.Future[list[Place]]") -> None:
    """Take note of how a search ended that nobody waits for any more."""
    if not working.cancelled():
        working.exception()
