"""Following a journal over a connection that may break: entries in order, none lost, none twice.

One task listens and goes on behind the last entry it was given, whatever happened in between. It stops
listening while nobody takes what has come, so that memory stays bounded and the sender waits.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncGenerator, Callable

from jobtui.backends.base import SourceDenied, SourceError, next_delay
from jobtui.model.journal import Beside, Cursor, Head, JournalEntry, Slice, Start, Tail, own_cursor

HELD_ENTRIES = 4_096
HELD_BYTES = 16 << 20
"""What may wait to be taken, messages counted; what comes in one piece may go beyond."""

RETRY_S = 1.0
RETRY_MOST_S = 30.0
DENIED_S = 60.0
DENIED_MOST_S = 600.0
"""Who was refused does not knock often: hosts lock out who does."""
STEADY_S = 10.0
"""A connection that held this long was a good one; the next try after it is a first one."""
TAKE_S = 0.2
FIXED_BYTES = 500
"""An entry counts as its message and this."""


Listen = Callable[[Start], AsyncGenerator[Slice, None]]
"""One connection, from a place on, until it breaks with SourceError.

Each slice is new and comes behind the one before. The first one says that the connection stands; `at_edge`
says that all there was has been given, from then on entries come as they are written.
"""


class ConnectedFollowing:
    """A `Following` over connections: while there is none, `take` raises what broke the last one."""

    def __init__(self, name: str, listen: Listen, start: Start) -> None:
        self._name = name
        self._listen = listen
        self._place = start
        self._held: deque[JournalEntry | None] = deque()  # None where entries are lost
        self._held_bytes = 0
        self._is_at_edge = False
        self._fault: SourceError | None = None
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False

    @property
    def is_at_edge(self) -> bool:
        """Whether all there was has come; it may be yet to be taken."""
        return self._is_at_edge

    @property
    def held(self) -> int:
        """How many entries wait to be taken."""
        return len(self._held)

    async def take(self, most: int) -> Slice:
        """What has come since the last call. Raises SourceError while there is no connection.

        What was there before is waited for, for a moment: whoever asks in a row is not to do so in vain.
        """
        if self._begin() and not self._held and not self._is_at_edge and self._fault is None:
            await self.changed(TAKE_S)
        self._news.clear()
        if not self._held and self._fault is not None:
            raise type(self._fault)(*self._fault.args)
        lost = bool(self._held) and self._held[0] is None
        if lost:
            self._held.popleft()
        entries: list[JournalEntry] = []
        while self._held and len(entries) < most and (entry := self._held[0]) is not None:
            self._held.popleft()
            self._held_bytes -= _bytes_of(entry)
            entries.append(entry)
        if self._has_room(0.5):
            self._room.set()
        if self._held and entries:
            cursor: Cursor | None = entries[-1].cursor
        else:
            cursor = own_cursor(self._place)
        return Slice(tuple(entries), cursor, self._is_at_edge and not self._held, lost)

    async def changed(self, timeout_s: float) -> None:
        """Return when something has come, or the connection broke or stands again."""
        if self._begin() and not self._held:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), max(timeout_s, 0.0))

    async def aclose(self) -> None:
        """End the connection."""
        self._is_closed = True
        self._held.clear()
        self._news.set()
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    def _begin(self) -> bool:
        """Whether it listens, now if not before. Raises SourceError when it is closed."""
        if self._is_closed:
            raise SourceError(f"{self._name}: is closed")
        if self._task is None:
            self._task = asyncio.create_task(self._keep_listening(), name=f"follow {self._name}")
        elif self._task.done():
            self._task.result()
        return True

    async def _keep_listening(self) -> None:
        failures = 0
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            try:
                await self._listen_once()
            except SourceError as error:
                if loop.time() - began >= STEADY_S:
                    failures = 0
                delay_s = retry_delay(error, failures)
                self._fault, self._is_at_edge = error, False
                self._news.set()
            failures += 1
            await asyncio.sleep(delay_s)

    async def _listen_once(self) -> None:
        async with contextlib.aclosing(self._listen(self._place)) as slices:
            async for found in slices:
                self._hold(found)
                if not self._has_room(1.0):
                    self._room.clear()
                    await self._room.wait()
        raise SourceError(f"{self._name}: following ended without a reason")

    def _hold(self, found: Slice) -> None:
        if found.lost:
            self._held.append(None)
        for entry in found.entries:
            self._held.append(entry)
            self._held_bytes += _bytes_of(entry)
        if found.cursor is not None:
            self._place = Beside(found.cursor)
        elif isinstance(self._place, Tail):
            self._place = Head()
        if found.entries or found.lost or self._fault is not None or found.at_edge != self._is_at_edge:
            self._news.set()
        self._fault, self._is_at_edge = None, found.at_edge

    def _has_room(self, part: float) -> bool:
        return len(self._held) <= HELD_ENTRIES * part and self._held_bytes <= HELD_BYTES * part


def retry_delay(error: SourceError, failures: int) -> float:
    """Seconds to wait after a break before the next try, after `failures` of them before this one."""
    if isinstance(error, SourceDenied):
        return next_delay(DENIED_S, failures, DENIED_MOST_S)
    return next_delay(RETRY_S, failures, RETRY_MOST_S)


def _bytes_of(entry: JournalEntry) -> int:
    return len(entry.message) + FIXED_BYTES
