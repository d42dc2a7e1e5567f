"""A log file as a source, and the questions about its raw lines. Follows it by name; never blocks the loop.

All reading is done in threads, one for following; a question about lines opens the file for itself, in a
thread of its own. A file system that hangs delays nobody else, nor the end of the program.

Line numbers are true ones, except that in a file so large that the lines before the tail are not counted
they are provisional (see `model.logs`).
"""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from msgspec import structs

from jobtui.backends.base import Batch
from jobtui.backends.log_follow import Follower
from jobtui.backends.log_start import (
    Beginning,
    BlockParser,
    FromTime,
    ParserFactory,
    Start,
    TailBytes,
    find_time,
)
from jobtui.formats.parser import LogParser
from jobtui.model.clock import Nanos
from jobtui.model.logs import RawLine
from jobtui.model.source_errors import SourceError
from jobtui.transport.blocks import Limits, lines_around
from jobtui.transport.files import FileId, Look, OpenFile, look, open_file, rotated, source_error
from jobtui.transport.watch import Watch
from jobtui.transport.worker import Worker, a_worker

COMPARED_BYTES = 4_096
"""How much of a file is compared at its beginning, middle and end, to tell that it is a copy."""

FROM_START = ""
"""The cursor of a log of which nothing was read or passed over."""

T = TypeVar("T")


class LogFile:
    """A growing log file. `name` is the path as it was given, `role` who writes it, or `auto`.

    `start` says where to begin reading. `limits` bound what is held at once. The parser factory is called
    whenever reading begins.
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
        self.others: Callable[[], Iterable[LogFile]] = tuple
        """The logs that are read beside it; it is not read where one before it reads the same file."""
        self._passed_over: tuple[Look | None, int | None] | None = None
        """What was looked at last, and up to where another log had given it, None if that has not begun; None
        where none does."""
        self._leader: tuple[LogFile, float] | None = None
        """The log that was the same file at the last look, and when it was last."""
        self._compared: tuple[tuple[str, Look, Look] | None, bool] = None, False
        self._closed = False

    def _make_parser(self) -> BlockParser:
        return self._parser_factory(source=self.name, role=self.role)

    @property
    def beginning(self) -> Beginning | None:
        return self._follower.beginning

    @property
    def measured(self) -> tuple[int, int]:
        return self._follower.measured

    def begins_after(self, at: Nanos) -> bool:
        beginning = self.beginning
        if beginning is None or beginning.whole or beginning.timeless:
            return False
        return beginning.at is None or beginning.at > at

    def starting_at(self, at: Nanos) -> "LogFile":
        fresh = LogFile(
            self._path,
            self.role,
            start=FromTime(at),
            parser_factory=self._parser_factory,
            limits=self._limits,
            timer=self._timer,
        )
        fresh.others = self.others
        return fresh

    async def poll(self, cursor: str | None) -> Batch:
        if self._closed:
            raise SourceError(f"{self.name}: is closed")
        return await self._worker.run(lambda: self._poll(cursor))

    def _poll(self, cursor: str | None) -> Batch:
        self._looked = _look_quietly(self._path)
        if (elsewhere := self._read_elsewhere()) is not None:
            note, offset = elsewhere
            if offset is None:
                cursor = cursor or FROM_START
            elif cursor is None or self._passed_over != (self._looked, offset):
                cursor = self._follower.pass_over(offset)
            self._passed_over = self._looked, offset
            return Batch(cursor=cursor, note=note)
        batch = self._follower.poll(cursor)
        if self._passed_over is not None:
            batch = structs.replace(batch, note=batch.note or "")  # what was said of it holds no longer
        self._passed_over = None
        return batch

    def _read_elsewhere(self) -> tuple[str, int | None] | None:
        """What is said when another log is the same file, or holds all that this one does.

        A path given twice, a link, a copy, a log and a file that was rotated away from it. And up to which
        byte that one has given it: from there on this one is read when they are no longer the same, and from
        the start when that one has not begun (None). A copy that is read goes on so: what it has in common
        with others is known line by line.
        """
        mine, is_before = self._looked, True
        if mine is None:
            return None
        others = tuple(self.others())
        is_read = self._follower.files and self._passed_over is None
        for other in others:
            if self._path.parent == other._path.parent and self._path in rotated(other._path):
                return f"rotated file of {other.name}, read with it: its lines count once", mine.size
        for other in others:
            is_before = is_before and other.name != self.name
            theirs = _look_quietly(other._path)
            is_same = mine.id in {theirs and theirs.id, *other._follower.files}
            if is_same:
                self._leader = other, self._timer()
            if (is_same or self._is_just_parted(other, theirs)) and self._is_led_by(other, is_before):
                read = other._read_of(mine.id, mine.size)
                return f"same file as {other.name}, read there: its lines count once", read
            if is_read or other._passed_over is not None or theirs is None or theirs.id == mine.id:
                continue
            if not self._is_copy_of(other, mine, theirs, is_before):
                continue
            read = other._read_of(theirs.id, mine.size)
            return f"same lines as {other.name}, read there: they count once", read
        return None

    def _is_led_by(self, other: "LogFile", is_before: bool) -> bool:
        """Whether another log of the same file is to be read: the one beside which its rotated files lie."""
        mine, theirs = bool(rotated(self._path)), bool(rotated(other._path))
        return theirs if mine != theirs else is_before

    def _is_just_parted(self, other: "LogFile", theirs: Look | None) -> bool:
        """Whether another log was the same file a moment ago, and may not have read all before this one.

        It is being rotated, and read before or after that is done.
        """
        if self._leader is None or self._leader[0] is not other:
            return False
        is_read = theirs is not None and other._follower.read_of(theirs.id) is not None
        return not is_read or self._timer() - self._leader[1] < self._limits.gone_s

    def _read_of(self, file: FileId, size: int) -> int | None:
        """How much of the first `size` bytes of a file was given; None when not all before it was."""
        read = self._follower.read_of(file)
        return None if read is None else min(size, read)

    def _is_copy_of(self, other: "LogFile", mine: Look, theirs: Look, is_before: bool) -> bool:
        """Whether another file begins with all that is in this one; of two that are the same, the later."""
        if not 0 < mine.size <= theirs.size or (mine.size == theirs.size and not is_before):
            return False
        key = (other.name, mine, theirs)
        if self._compared[0] != key:
            self._compared = key, _begins_with(other._path, self._path, mine.size)
        return self._compared[1]

    async def changed(self, timeout_s: float) -> None:
        rest_s = self._follower.rest_s
        await self._watch.changed(timeout_s if rest_s is None else min(timeout_s, rest_s))

    async def aclose(self) -> None:
        self._closed = True
        self._watch.close()
        await self._worker.finish(self._follower.close)

    async def offset_at(self, at: Nanos) -> int | None:
        """The byte where the first line not older than `at` begins, for a LogFile started `FromTime(at)`.

        The file's size when all lines are older, None when it has no times or is packed. Raises SourceError.
        """
        find = lambda opened: None if opened.packed else find_time(opened, at, self._make_parser())  # noqa: E731
        return await self._worker_for_question(lambda: self._ask(self._path, find))

    async def lines_around(
        self, offset: int, before: int, after: int, *, line: int | None = None, expect: str = ""
    ) -> tuple[RawLine, ...]:
        """The line at byte `offset` as it stands in the file, with lines before and after it.

        `line` is its number where that is known. `expect` is a text that must stand in it: when it does not,
        the file was rotated or written anew since, and it is looked for in the rotated files; nothing is
        given when it is in none. Raises SourceError.
        """
        return await self._worker_for_question(
            partial(self._lines_around, offset, before, after, line, expect)
        )

    def _lines_around(
        self, offset: int, before: int, after: int, line: int | None, expect: str
    ) -> tuple[RawLine, ...]:
        found = self._ask(self._path, lambda opened: lines_around(opened.source, offset, before, after, line))
        if _stands(found, offset, expect):
            return found
        for path in reversed(rotated(self._path)):
            with suppress(SourceError):
                found = self._ask(path, lambda one: lines_around(one.source, offset, before, after, line))
                if expect and _stands(found, offset, expect):
                    return found
        return ()

    async def _worker_for_question(self, question: Callable[[], T]) -> T:
        with a_worker(f"question to {self._path}") as worker:
            return await worker.run(question)

    def _ask(self, path: Path, question: Callable[[OpenFile], T]) -> T:
        with closing(open_file(path)) as opened:
            try:
                return question(opened)
            except OSError as error:
                raise source_error(error, path) from error


def _begins_with(path: Path, other: Path, size: int) -> bool:
    """Whether a file begins with the `size` bytes of another, by pieces of both; False for packed ones."""
    with suppress(SourceError, OSError), closing(open_file(path)) as whole, closing(open_file(other)) as part:
        places = {0, size // 2, max(0, size - COMPARED_BYTES)}
        return not (whole.packed or part.packed) and all(
            whole.plain.read(at, min(COMPARED_BYTES, size - at))
            == part.plain.read(at, min(COMPARED_BYTES, size - at))
            for at in places
        )
    return False


def _stands(lines: Sequence[RawLine], offset: int, expect: str) -> bool:
    """Whether one of these begins at a byte and holds what is expected there."""
    return any(raw.offset == offset and expect in raw.text for raw in lines)


def _look_quietly(path: Path) -> Look | None:
    """What `stat` says of the file, None when there is none to read."""
    try:
        return look(path)
    except SourceError:
        return None
