"""A journal on this machine through libsystemd: its own, or a directory of files."""

import asyncio
import errno
import os
import time
from collections.abc import Callable
from typing import TypeVar

from jobtui.backends.base import SourceDenied, SourceError
from jobtui.backends.journal import asking, journal_files
from jobtui.backends.journal.apart import ApartFollowing
from jobtui.backends.journal.contract import Following
from jobtui.backends.journal.hosts import Hosts, within
from jobtui.backends.journal.libsystemd import open_handle
from jobtui.backends.journal.reading import OpenHandle, Reading
from jobtui.backends.worker import Worker
from jobtui.model.journal import (
    At,
    Beside,
    Cursor,
    Fields,
    Head,
    JournalCondition,
    Match,
    Matches,
    Slice,
    Start,
    Tail,
    own_cursor,
)

T = TypeVar("T")

RECHECK_S = 2.0
"""It is looked again at the latest after this: a file not written by journald may change untold."""
END_SETTLES_S = 10.0
"""So long an entry is looked at again that was the last one: all that is written of it has been by then."""
UNRELIABLE_RECHECK_S = 0.5
"""The same where the file system tells of no changes made by other hosts."""
LANES_MOST = 250
"""Hosts that are followed apart; each costs a step in the journal when it is looked at."""


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
        wanted = asking.checked(matches, self.name)
        return await self._desk.run(lambda reading: reading.forward(start, wanted, most))

    async def backward(self, start: Tail | At | Beside, matches: Matches, most: int) -> Slice:
        """Up to `most` wanted entries before `start`, oldest first."""
        wanted = asking.checked(matches, self.name)
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

    def follow(self, start: Start, matches: Matches) -> Following:
        """What is written from `start` on, through a handle of its own."""
        lanes = NativeLanes(_Desk(self._name, self._directory, self._make_handle))
        wanted = asking.checked(matches, self.name)
        if self._directory is None:  # one host's alone
            return lanes.alone(start, wanted)
        return ApartFollowing(lanes, start, wanted)

    async def aclose(self) -> None:
        """Let go of the files."""
        self._desk.close()


class NativeLanes:
    """`Lanes` through one handle and one thread."""

    most = LANES_MOST
    look_every_s = 0.0

    def __init__(self, desk: "_Desk") -> None:
        self._desk = desk
        self._hosts = Hosts(
            lambda field: desk.run(lambda reading: reading.values(field)),
            lambda groups: desk.run(lambda reading: reading.one_of_each(groups)),
        )

    @property
    def name(self) -> str:
        """The journal, as it was configured."""
        return self._desk.name

    async def hosts(self) -> tuple[Match, ...]:
        """What the entries of each host have in common."""
        return await self._hosts.known()

    async def last_before(self, start: Tail | Beside, scope: Matches) -> Slice:
        """The last entry of `scope` before a place."""
        return await self._desk.run(lambda reading: reading.backward(start, scope, 1))

    def lane(self, start: Start, matches: Matches, scope: Matches) -> Following:
        """Following `matches` among the entries of `scope`."""
        return NativeFollowing(self._desk, start, within(matches, scope), scope)

    def alone(self, start: Start, matches: Matches) -> Following:
        """Following that closes all with it."""
        return NativeFollowing(self._desk, start, matches, (), owns_desk=True)

    async def aclose(self) -> None:
        """Let go of the files."""
        self._desk.close()


class NativeFollowing:
    """A `Following`: goes on behind the last entry it gave, or the last of `scope` when none was wanted."""

    def __init__(
        self, desk: "_Desk", start: Start, matches: Matches, scope: Matches, *, owns_desk: bool = False
    ) -> None:
        self._desk = desk
        self._place = start
        self._matches = matches
        self._scope = scope
        self._owns_desk = owns_desk
        self._end: tuple[Cursor, float] | None = None

    async def take(self, most: int) -> Slice:
        """What has come since the last call."""
        place = self._place
        found = await self._desk.look(
            lambda reading: _behind(reading, place, self._matches, most, self._scope)
        )
        self._place = self._next_place(place, found)
        return found._replace(cursor=own_cursor(self._place))

    def _next_place(self, place: Start, found: Slice) -> Start:
        """Where to go on: behind what was given; where nothing was, slowly at the end as it was.

        An entry can be the last one before it is among the wanted ones: journald does not write it in one go.
        """
        if found.entries or (found.cursor is not None and isinstance(place, Tail)):
            self._end = None
            return Beside(found.entries[-1].cursor if found.entries else Cursor(found.cursor or ""))
        if found.cursor is None:
            return place if isinstance(place, At) else Head()
        now = time.monotonic()
        if self._end is None:
            self._end = found.cursor, now
        if now - self._end[1] < END_SETTLES_S and not found.lost:
            return place
        (cursor, _), self._end = self._end, None
        return Beside(cursor)

    async def changed(self, timeout_s: float) -> None:
        """Return when a file of the journal has changed, or it is time to look again."""
        await self._desk.changed(timeout_s)

    async def aclose(self) -> None:
        """Let go of the files, where they are its own."""
        if self._owns_desk:
            self._desk.close()


def _behind(reading: Reading, place: Start, matches: Matches, most: int, scope: Matches) -> Slice:
    if isinstance(place, Tail):
        return Slice((), reading.last(), True)
    found = reading.forward(place, matches, most, scope)
    # A time may lie behind the last entry there is: what comes next may still be earlier than the time
    return found if found.entries or not isinstance(place, At) else found._replace(cursor=None)


class _Desk:
    """A reading and the thread it belongs to."""

    def __init__(self, name: str, directory: str | None, open_handle: OpenHandle) -> None:
        self.name = name
        self._reading = Reading(name, directory, open_handle)
        self._worker = Worker(f"journal {name}")
        self._process = os.getpid()
        self._fd: int | None = None
        self._watched: int | None = None
        self._recheck_s = 0.0
        self._waiting: set[asyncio.Event] = set()
        self.is_closed = False

    async def run(self, call: Callable[[Reading], T]) -> T:
        """What `call` gives. Raises SourceError."""
        if self.is_closed:
            raise SourceError(f"{self.name}: is closed")
        if os.getpid() != self._process:
            raise SourceError(f"{self.name}: was opened by another process; open it anew in this one")
        try:
            return await self._worker.run(lambda: call(self._reading))
        except OSError as error:
            raise self._fault(error) from error

    async def look(self, call: Callable[[Reading], T]) -> T:
        """The same; what becomes readable when there is more is watched from then on by who waits."""
        try:
            found, self._fd, reliable = await self.run(lambda reading: _watchable(reading, call))
        except SourceError:
            self._fd, self._recheck_s = None, RECHECK_S
            raise
        self._recheck_s = RECHECK_S if reliable else UNRELIABLE_RECHECK_S
        return found

    async def changed(self, timeout_s: float) -> None:
        """Return when a file of the journal has changed, or it is time to look again."""
        if self.is_closed:
            return
        news = asyncio.Event()
        self._waiting.add(news)
        self._watch(self._fd)
        try:
            await asyncio.wait_for(news.wait(), max(min(timeout_s, self._recheck_s), 0.0))
        except TimeoutError:
            pass
        finally:
            self._waiting.discard(news)
            if not self._waiting:
                self._watch(None)

    def _watch(self, fd: int | None) -> None:
        if fd == self._watched:
            return
        loop = asyncio.get_running_loop()
        if self._watched is not None:
            loop.remove_reader(self._watched)
        if fd is not None:
            loop.add_reader(fd, self._tell)
        self._watched = fd

    def _tell(self) -> None:
        for news in self._waiting:
            news.set()

    def close(self) -> None:
        """Let go, in its thread and behind what it does. May be called twice."""
        if not self.is_closed and os.getpid() == self._process:
            self._watch(None)
            self._worker.close(self._reading.close)
        self.is_closed = True
        self._tell()

    def _fault(self, error: OSError) -> SourceError:
        if error.errno in (errno.EACCES, errno.EPERM):
            return SourceDenied(f"{self.name}: may not be read; {journal_files.remedy()}")
        if error.errno == errno.EMFILE:
            return SourceError(f"{self.name}: too many files are open; raise the limit: ulimit -n 4096")
        return SourceError(f"{self.name}: could not be read: {error.strerror or error}")


def _watchable(reading: Reading, call: Callable[[Reading], T]) -> tuple[T, int | None, bool]:
    found = call(reading)
    return found, reading.fd, reading.is_reliable()
