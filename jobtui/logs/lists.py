"""Logs held in memory as a list of lines, for a screen; also the end of a log over ssh.

Only `tail` is run there. The environment in an agent's log is masked, as in its copies.
"""

import asyncio
import posixpath
import time
from abc import abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Protocol

from jobtui.backends.agent_copies import line_at
from jobtui.formats.agent_copies import CopiedLine, added_lines, without_environment
from jobtui.formats.parser import LogParser
from jobtui.logs.search import Search
from jobtui.model import pages
from jobtui.model.clock import Nanos
from jobtui.model.health import SourceError
from jobtui.transport.remote_dir import answer_of
from jobtui.transport.ssh import SshShell

position_of: Callable[[pages.LogLine], int] = attrgetter("position")
end_of: Callable[[pages.LogLine], int] = attrgetter("end")


class ListLog(pages.Log):
    """A log that has its `lines` in memory, in the order of their positions. They have no numbers."""

    @property
    @abstractmethod
    def lines(self) -> Sequence[pages.LogLine]:
        pass

    @property
    def _is_complete(self) -> bool:
        return True

    def overview(self) -> pages.Overview:
        until = next((line.at for line in reversed(self.lines) if line.at is not None), None)
        return pages.overview_of(pages.stretches_of(self.lines), until, complete=self._is_complete)

    async def before(self, position: int, count: int) -> pages.Page:
        lines = self.lines
        stop = bisect_right(lines, position, key=end_of)
        begin = max(0, stop - count)
        return pages.Page(tuple(lines[begin:stop]), begin == 0)

    async def after(self, position: int, count: int) -> pages.Page:
        lines = self.lines
        begin = bisect_right(lines, position, key=end_of)
        return pages.Page(tuple(lines[begin : begin + count]), begin + count >= len(lines))

    async def next_error(self, position: int, *, forward: bool) -> int | None:
        lines = self.lines
        at = (bisect_right if forward else bisect_left)(lines, position, key=position_of)
        wanted = lines[at:] if forward else lines[:at][::-1]
        return next((line.position for line in wanted if line.level is pages.Level.ERROR), None)

    async def position_of(self, offset: int, text: str) -> int | None:
        return next((line.position for line in self.lines if text and text in line.text), None)

    async def position_of_time(self, at: Nanos) -> int | None:
        return next((line.position for line in self.lines if line.at is not None and line.at >= at), None)

    def search(self, query: pages.Query, around: int) -> pages.LogSearch:
        return ListSearch(self, query)


class ListSearch(Search):
    """A search through all lines, repeated when there are new ones, as these may come between others."""

    def __init__(self, log: ListLog, query: pages.Query) -> None:
        super().__init__(query, pages.Hits(0, wide=True))
        self._log = log
        self._searched = (0, 0)

    async def _search_all(self) -> None:
        lines, program = self._log.lines, self._new_program()
        reaches = len(lines), lines[-1].end if lines else 0
        if reaches == self._searched:
            return
        found = await self._worker.run(lambda: program.positions(lines))
        if not self._stopping:
            hits = pages.Hits(0, wide=True)
            hits.add_above(found, reaches[1])
            self.hits, self._searched = hits, reaches


LINES_HELD = 50_000
"""How many lines are held; the oldest are dropped."""
WATCH_S = 1.0
"""How often new lines are checked for."""


class Lines(Protocol):
    async def load(self) -> Sequence[pages.LogLine]:
        """The lines that are new since the last call. Raises SourceError."""

    async def is_changed(self) -> bool: ...

    def close(self) -> None:
        """Release what is held. May be called twice."""
        return


class ListedLog(ListLog):
    """Lines in the order of their positions."""

    def __init__(self, name: str, source: Lines) -> None:
        self.name = name
        self._source = source
        self._lines: list[pages.LogLine] = []
        self._dropped = False
        self._revision = 0

    @property
    def lines(self) -> Sequence[pages.LogLine]:
        return self._lines

    async def look(self) -> pages.Extent:
        try:
            added = await self._source.load()
        except SourceError as error:
            raise pages.LogUnreadable(str(error)) from error
        if added:
            self._lines += added
            self._dropped |= len(self._lines) > LINES_HELD
            del self._lines[: max(0, len(self._lines) - LINES_HELD)]
        return self.extent

    def forget(self) -> None:
        self._lines.clear()
        self._dropped = False
        self._revision += 1

    @property
    def extent(self) -> pages.Extent:
        if not self._lines:
            return pages.Extent(0, 0, revision=self._revision)
        event = "its end only" if self._dropped else ""
        return pages.Extent(self._lines[0].position, self._lines[-1].end, event, self._revision)

    async def changed(self, timeout_s: float) -> None:
        end = time.monotonic() + timeout_s
        while (left := end - time.monotonic()) > 0:
            await asyncio.sleep(min(WATCH_S, left))
            if await self._source.is_changed():
                return

    @property
    def changed_at(self) -> Nanos:
        """The time of the first line with one, else the present: the place of lines without a time."""
        return next((line.at for line in self._lines if line.at is not None), Nanos(time.time_ns()))

    async def aclose(self) -> None:
        self._source.close()


TAIL_LINES = 2_000
MOST_BYTES = 8 << 20
LOOK_EVERY_S = 15.0
GAP = "── lines before these were not read ──"
_TAIL = 'tail -n "$2" -- "$1"'


class RemoteLines(Lines):
    """The `Lines` of a file whose path is an address, `ssh://[user@]host[:port]/path`."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._parser = LogParser(address)
        self._texts: tuple[str, ...] = ()
        self._position = 0
        self._looked_at: float | None = None

    async def load(self) -> Sequence[pages.LogLine]:
        if self._looked_at is not None and not await self.is_changed():
            return ()
        shell = SshShell(self._address)
        path = posixpath.normpath(shell.directory or "/")
        data = await answer_of(shell, _TAIL, path, str(TAIL_LINES), MOST_BYTES)
        self._looked_at = time.monotonic()
        texts = data.decode("utf-8", "replace").removesuffix("\n").split("\n") if data else []
        texts = list(without_environment(texts))
        copied = [CopiedLine(number, 0, text) for number, text in enumerate(texts, 1)]
        added, is_gap = added_lines(self._texts, copied)
        self._texts = tuple(texts) or self._texts
        newest = Nanos(time.time_ns())
        lines = [self._line(GAP, newest, pages.Level.WARNING)] if is_gap else []
        return [*lines, *(self._line(line.text, newest) for line in added)]

    async def is_changed(self) -> bool:
        return self._looked_at is None or time.monotonic() - self._looked_at >= LOOK_EVERY_S

    def _line(self, text: str, newest: Nanos, level: pages.Level | None = None) -> pages.LogLine:
        line = line_at(self._position, text, self._parser, newest, level)
        self._position = line.end
        return line
