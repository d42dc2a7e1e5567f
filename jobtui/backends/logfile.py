"""A log file as a source, and the questions about its raw lines. Follows it by name; never blocks the loop.

All reading is done in threads, one for following; a question about lines opens the file for itself, in a
thread of its own. A file system that hangs delays nobody else, nor the end of the program.

Line numbers are true ones, except that in a file so large that the lines before the tail are not counted at
once they are provisional (see `model.lines`) until `line_number` is asked.
"""

import time
from collections.abc import AsyncGenerator, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from jobtui.backends.base import Batch, SourceError
from jobtui.backends.file_access import Look, OpenFile, look, open_file, open_renamed, source_error
from jobtui.backends.file_blocks import Limits
from jobtui.backends.file_search import (
    COUNT_BYTES,
    BackwardSearch,
    ForwardSearch,
    Search,
    check_needles,
    count_lines,
    lines_around,
)
from jobtui.backends.log_follow import Follower, Origin
from jobtui.backends.log_reading import MARK_BYTES
from jobtui.backends.log_start import (
    Beginning,
    BlockParser,
    FromTime,
    ParserFactory,
    Start,
    TailBytes,
    find_time,
)
from jobtui.backends.log_watch import Watch
from jobtui.backends.worker import Worker, a_worker
from jobtui.formats.parser import LogParser
from jobtui.model.clock import Nanos
from jobtui.model.lines import RawLine, settled

PACKED_HITS_KEPT = 10_000
"""Lines found in a packed file that are kept; they are the last ones."""

T = TypeVar("T")
Progress = Callable[[int], None]


class LogFile:
    """A growing log file. `name` is the path as it was given, `role` who writes it, or `auto`.

    `start` says where to begin reading. `limits` bound what is held at once. The parser factory is called
    for every new file behind the name.
    """

    kind = "logfile"

    def __init__(
        self,
        path: Path,
        role: str = "auto",
        *,
        start: Start | None = None,
        parser_factory: ParserFactory = LogParser,
        limits: Limits | None = None,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = str(path)
        self.role = role
        self._path = path
        self._parser_factory = parser_factory
        self._limits = limits or Limits()
        self._timer = timer
        self._follower = Follower(path, self._make_parser, start or TailBytes(), self._limits, timer)
        self._worker = Worker(f"logfile {path}")
        self._watch = Watch(self._worker, [path], lambda: _look_quietly(path) != self._looked)
        self._looked: Look | None = None
        self._lines_before: int | None = None
        self._closed = False

    def _make_parser(self) -> BlockParser:
        return self._parser_factory(source=self.name, role=self.role)

    @property
    def beginning(self) -> Beginning | None:
        """Where reading began, None before the first poll that succeeded."""
        return self._follower.beginning

    @property
    def measured(self) -> tuple[int, int]:
        """Bytes read since where reading began, and bytes from there to the end, as of the last poll."""
        return self._follower.measured

    def begins_after(self, at: Nanos) -> bool:
        """Whether lines of this time may lie before where reading began, and could be found there."""
        beginning = self.beginning
        if beginning is None or beginning.whole or beginning.timeless:
            return False
        return beginning.at is None or beginning.at > at

    def starting_at(self, at: Nanos) -> "LogFile":
        """The same file, not yet read, from this time on."""
        return LogFile(
            self._path,
            self.role,
            start=FromTime(at),
            parser_factory=self._parser_factory,
            limits=self._limits,
            timer=self._timer,
        )

    async def poll(self, cursor: str | None) -> Batch:
        """What was written since `cursor`; None asks for the beginning. Raises SourceError."""
        if self._closed:
            raise SourceError(f"{self.name}: is closed")
        return await self._worker.run(lambda: self._poll(cursor))

    def _poll(self, cursor: str | None) -> Batch:
        self._looked = _look_quietly(self._path)
        return self._follower.poll(cursor)

    async def changed(self, timeout_s: float) -> None:
        """Return when the file is another or has another size than at the last poll, or after `timeout_s`."""
        rest_s = self._follower.rest_s
        await self._watch.changed(timeout_s if rest_s is None else min(timeout_s, rest_s))

    async def aclose(self) -> None:
        """Release the files held. May be called twice."""
        self._closed = True
        self._watch.close()
        await self._worker.finish(self._follower.close)

    async def offset_at(self, at: Nanos) -> int | None:
        """The byte where the first line not older than `at` begins, for a LogFile started `FromTime(at)`.

        The file's size when all lines are older, None when it has no times or is packed. Raises SourceError.
        """
        return await self._with_file(
            lambda opened: None if opened.gzip else find_time(opened, at, self._make_parser())
        )

    async def line_number(self, line: int) -> int | None:
        """The true number of a line, given the number a record of this source has.

        Counts the lines before the place where reading began, once: seconds for 10 GB, in steps, so that it
        can be cancelled. None when they cannot be counted any more. Raises SourceError.
        """
        if line > 0:
            return line
        if self._lines_before is None and (origin := self._follower.origin) is not None:
            self._lines_before = await self._count_before(origin)
        return None if self._lines_before is None else settled(line, self._lines_before)

    async def _count_before(self, origin: Origin) -> int | None:
        begin, lines = max(0, origin.offset - MARK_BYTES), 0
        with a_worker(f"lines of {self._path}") as worker:
            opened = await worker.run(lambda: open_renamed(self._path, origin.file))
            if opened is None:
                return None
            try:
                if await worker.run(lambda: opened.plain.read(begin, origin.offset - begin)) != origin.mark:
                    return None
                for start in range(0, origin.offset, COUNT_BYTES):
                    end = min(start + COUNT_BYTES, origin.offset)
                    lines += await worker.run(partial(count_lines, opened.source, start, end))
            except OSError as error:
                raise source_error(error, self._path) from error
            finally:
                await worker.finish(opened.close)
        return lines

    async def lines_around(
        self, offset: int, before: int, after: int, *, line: int | None = None, expect: str = ""
    ) -> tuple[RawLine, ...]:
        """The line at byte `offset` as it stands in the file, with lines before and after it.

        `line` is its number where that is known. `expect` is a text that must stand in it: when it does not,
        the file was rotated or written anew since, and nothing is given. Raises SourceError.
        """
        found = await self._with_file(lambda opened: lines_around(opened.source, offset, before, after, line))
        here = next((raw for raw in found if raw.offset == offset), None)
        return found if here is not None and expect in here.text else ()

    async def search_back(
        self, needles: Sequence[bytes], *, end: int | None = None, progress: Progress | None = None
    ) -> AsyncGenerator[RawLine, None]:
        """The lines that contain any of `needles`, the last one first; lines have no numbers here.

        Searches before byte `end` (the file's end by default), a few MB at a time: stop iterating to stop it.
        `progress` is told how many bytes are left. Raises SourceError, and ValueError for needles that are
        empty or hold a newline.
        """
        check_needles(needles)
        with a_worker(f"search in {self._path}") as worker:
            opened = await worker.run(lambda: open_file(self._path))
            try:
                search = await worker.run(lambda: _search(opened, needles, end))
                while search.left:
                    for raw in await worker.run(search.step):
                        yield raw
                    if progress is not None:
                        progress(search.left)
            except OSError as error:
                raise source_error(error, self._path) from error
            finally:
                await worker.finish(opened.close)

    async def _with_file(self, question: Callable[[OpenFile], T]) -> T:
        with a_worker(f"question to {self._path}") as worker:
            return await worker.run(lambda: self._ask(question))

    def _ask(self, question: Callable[[OpenFile], T]) -> T:
        opened = open_file(self._path)
        try:
            return question(opened)
        except OSError as error:
            raise source_error(error, self._path) from error
        finally:
            opened.close()


def _search(opened: OpenFile, needles: Sequence[bytes], end: int | None) -> Search:
    if opened.gzip is not None:
        return ForwardSearch(opened.source, needles, PACKED_HITS_KEPT)
    size = opened.look().size
    return BackwardSearch(opened.source, size if end is None else min(end, size), needles)


def _look_quietly(path: Path) -> Look | None:
    """What `stat` says of the file, None when there is none to read."""
    try:
        return look(path)
    except SourceError:
        return None
