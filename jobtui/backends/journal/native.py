"""A journal on this machine through libsystemd: its own, or a directory of files."""

import asyncio
import errno
import os
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from jobtui.backends.base import SourceDenied, SourceError
from jobtui.backends.journal import asking, journal_files
from jobtui.backends.journal.libsystemd import open_handle
from jobtui.backends.journal.reading import OpenHandle, Reading
from jobtui.backends.journal.trail import Trail, follow, trail_from
from jobtui.backends.worker import Worker
from jobtui.model.journal import (
    At,
    Beside,
    Cursor,
    Fields,
    Head,
    JournalCondition,
    Matches,
    Slice,
    Start,
    Tail,
)

T = TypeVar("T")

RECHECK_S = 2.0
"""It is looked again at the latest after this: a file not written by journald may change untold."""
UNRELIABLE_RECHECK_S = 0.5
"""The same where the file system tells of no changes made by other hosts."""


class NativeJournal:
    """A `JournalReader` with one handle and one thread. `directory` None for the journal of this host."""

    def __init__(self, name: str, directory: str | None, make_handle: OpenHandle = open_handle) -> None:
        self._name = name
        self._directory = directory
        self._make_handle = make_handle
        self._desk = _Desk(name, directory, make_handle)

    @property
    def name(self) -> str:
        """As it was configured."""
        return self._name

    async def forward(self, start: Head | At | Beside, matches: Matches, most: int) -> Slice:
        """Up to `most` wanted entries from `start` on."""
        wanted = self._checked(matches)
        return await self._desk.run(lambda reading: reading.forward(start, wanted, most))

    async def backward(self, start: Tail | At | Beside, matches: Matches, most: int) -> Slice:
        """Up to `most` wanted entries before `start`, oldest first."""
        wanted = self._checked(matches)
        return await self._desk.run(lambda reading: reading.backward(start, wanted, most))

    async def fields(self, cursor: Cursor) -> Fields | None:
        """Everything one entry holds; None when it is there no more."""
        return await self._desk.run(lambda reading: reading.fields(cursor))

    async def values(self, field: str) -> tuple[str, ...]:
        """The values that occur in a field."""
        asking.check_field(field, self._name)
        return await self._desk.run(lambda reading: reading.values(field))

    async def condition(self) -> JournalCondition:
        """How many files are read, and why others are not."""
        return await self._desk.run(Reading.condition)

    def follow(self, start: Start, matches: Matches) -> "NativeFollowing":
        """What is written from `start` on, through a handle of its own."""
        desk = _Desk(self._name, self._directory, self._make_handle)
        return NativeFollowing(desk, start, self._checked(matches))

    async def aclose(self) -> None:
        """Let go of the files."""
        self._desk.close()

    def _checked(self, matches: Matches) -> Matches:
        asking.check(matches, self._name)
        return asking.without_surplus(matches)


class _Taken(NamedTuple):
    """What was taken, how far that is, what becomes readable then, and when to look again in any case."""

    found: Slice
    trail: Trail
    fd: int | None
    recheck_s: float


class NativeFollowing:
    """A `Following`: goes on behind the last entry it gave, or the last there was when none was wanted."""

    def __init__(self, desk: "_Desk", start: Start, matches: Matches) -> None:
        self._desk = desk
        self._matches = matches
        self._trail = trail_from(start)
        self._fd: int | None = None
        self._watched: int | None = None
        self._recheck_s = 0.0
        self._news = asyncio.Event()

    async def take(self, most: int) -> Slice:
        """What has come since the last call."""
        trail = self._trail
        try:
            taken = await self._desk.run(lambda reading: _taken(reading, trail, self._matches, most))
        except SourceError:
            self._fd, self._recheck_s = None, RECHECK_S
            raise
        found, self._trail, self._fd, self._recheck_s = taken
        return found

    async def changed(self, timeout_s: float) -> None:
        """Return when a file of the journal has changed, or it is time to look again."""
        if self._desk.is_closed:
            return
        self._news.clear()
        if self._fd is not None:
            self._watched = self._fd
            asyncio.get_running_loop().add_reader(self._fd, self._news.set)
        try:
            await asyncio.wait_for(self._news.wait(), max(min(timeout_s, self._recheck_s), 0.0))
        except TimeoutError:
            pass
        finally:
            self._unwatch()

    async def aclose(self) -> None:
        """Let go of the files."""
        self._unwatch()
        self._desk.close()
        self._news.set()

    def _unwatch(self) -> None:
        fd, self._watched = self._watched, None
        if fd is not None:
            asyncio.get_running_loop().remove_reader(fd)


def _taken(reading: Reading, trail: Trail, matches: Matches, most: int) -> _Taken:
    found, trail = follow(reading, trail, matches, most)
    return _Taken(found, trail, reading.fd, RECHECK_S if reading.is_reliable() else UNRELIABLE_RECHECK_S)


class _Desk:
    """A reading and the thread it belongs to."""

    def __init__(self, name: str, directory: str | None, open_handle: OpenHandle) -> None:
        self._name = name
        self._reading = Reading(name, directory, open_handle)
        self._worker = Worker(f"journal {name}")
        self._process = os.getpid()
        self.is_closed = False

    async def run(self, call: Callable[[Reading], T]) -> T:
        """What `call` gives. Raises SourceError."""
        if self.is_closed:
            raise SourceError(f"{self._name}: is closed")
        if os.getpid() != self._process:
            raise SourceError(f"{self._name}: was opened by another process; open it anew in this one")
        try:
            return await self._worker.run(lambda: call(self._reading))
        except OSError as error:
            raise self._fault(error) from error

    def close(self) -> None:
        """Let go, in its thread and behind what it does. May be called twice."""
        if not self.is_closed and os.getpid() == self._process:
            self._worker.close(self._reading.close)
        self.is_closed = True

    def _fault(self, error: OSError) -> SourceError:
        if error.errno in (errno.EACCES, errno.EPERM):
            return SourceDenied(f"{self._name}: may not be read; {journal_files.remedy()}")
        if error.errno == errno.EMFILE:
            return SourceError(f"{self._name}: too many files are open; raise the limit: ulimit -n 4096")
        return SourceError(f"{self._name}: could not be read: {error.strerror or error}")
