"""Following a journal: entries in order, none lost, none twice, also over a connection that breaks.

libsystemd gives entries of all files by their time, and never one that belongs before its position: what one
host sends late is lost to who follows all hosts together. Within one host entries come in the order they were
written. So each host has a lane of its own as soon as there is a second one; what waits in the lanes is given
in order of time. Where following may be taken up again is then a place for each host.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import NamedTuple, Protocol

from jobtui.backends.base import next_delay
from jobtui.model.journal import (
    At,
    Beside,
    Cursor,
    FollowStart,
    Head,
    JournalEntry,
    Match,
    Matches,
    Slice,
    own_cursor,
)
from jobtui.model.source_errors import SourceDenied, SourceError

HELD_ENTRIES = 4_096
HELD_BYTES = 16 << 20
"""What may wait in a lane, messages counted; what comes in one piece may go beyond."""

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
TOGETHER_S = 0.05
"""So long what several hosts write is let come together, as it is given in order of time."""
LOOK_EVERY_S = 10.0
"""How often is asked which hosts there are."""
LANES_MOST = 32
"""Hosts that are followed apart; each costs a connection. Those beyond share one, the last known ones."""

MACHINE, BOOT = "_MACHINE_ID", "_BOOT_ID"


class Followed(Protocol):
    """What following needs of a `client.ExportReader`."""

    name: str
    is_one_host: bool

    def listen(self, start: FollowStart, matches: Matches, scope: Matches) -> AsyncGenerator[Slice, None]: ...

    async def backward(self, start: Beside, matches: Matches, most: int) -> Slice: ...

    async def entry(self, cursor: Cursor) -> JournalEntry | None: ...

    async def values(self, *fields: str) -> dict[str, tuple[str, ...]]: ...

    async def last_of_each(self, groups: Sequence[Matches]) -> list[JournalEntry | None]: ...


class HostPlaces(NamedTuple):
    """How far each host was followed, and where one begins that is new."""

    for_new: FollowStart
    of: dict[Match, FollowStart]


def host_of(entry: JournalEntry) -> Match:
    return (MACHINE, entry.machine) if entry.machine else (BOOT, entry.boot)


def within(matches: Matches, hosts: Sequence[Match]) -> Matches:
    """What is wanted of these hosts; a group that names another host wants nothing of them."""
    return tuple(
        tuple(dict.fromkeys((*group, host)))
        for host in hosts
        for group in matches or ((),)
        if all(field != host[0] or value == host[1] for field, value in group)
    )


class Lane:
    """What one connection has given, in order, until it is taken.

    It goes on after the last entry it was given when the connection breaks. It stops listening while nobody
    takes what has come, so that memory is bounded and the sender waits.
    """

    def __init__(
        self,
        listen: Callable[[FollowStart], AsyncGenerator[Slice, None]],
        start: FollowStart,
        hosts: tuple[Match, ...],
        beside: Cursor | None,
        news: asyncio.Event,
    ) -> None:
        self.hosts = hosts
        self.at_edge = False
        self.fault: SourceError | None = None
        self.held: deque[JournalEntry | None] = deque()
        """None where entries were lost."""
        self._listen = listen
        self._place: FollowStart = start
        self._given: FollowStart = start
        self._beside = beside
        self._only_nameless = bool(hosts) and all(field == BOOT for field, _ in hosts)
        self._held_bytes = 0
        self._news = news
        self._room = asyncio.Event()
        self.task = asyncio.create_task(self._keep_listening(), name="follow a journal")

    @property
    def place(self) -> FollowStart:
        """How far its entries were taken."""
        return self._given if self.held else self._place

    @property
    def is_awaited(self) -> bool:
        """Whether it may still give something that was there before."""
        return not self.held and not self.at_edge and self.fault is None

    def next_at(self) -> int:
        return self.held[0].at if self.held and self.held[0] is not None else 0

    def give(self) -> JournalEntry | None:
        entry = self.held.popleft()
        if entry is not None:
            self._given = Beside(entry.cursor)
            self._held_bytes -= _bytes_of(entry)
            if self._has_room(0.5):
                self._room.set()
        return entry

    async def _keep_listening(self) -> None:
        failures = 0
        loop = asyncio.get_running_loop()
        try:
            while True:
                began = loop.time()
                try:
                    async with contextlib.aclosing(self._listen(self._place)) as slices:
                        async for found in slices:
                            self._hold(found)
                            if not self._has_room(1.0):
                                self._room.clear()
                                await self._room.wait()
                    raise RuntimeError("a connection ended without an error")
                except SourceError as error:
                    failures = 0 if loop.time() - began >= STEADY_S else failures
                    delay_s = retry_delay(error, failures)
                    self.fault, self.at_edge = error, False
                    self._news.set()
                failures += 1
                await asyncio.sleep(delay_s)
        finally:
            self._news.set()

    def _hold(self, found: Slice) -> None:
        is_news = found.lost or self.fault is not None or found.at_edge != self.at_edge
        fresh = [
            entry
            for entry in found.entries
            if entry.cursor != self._beside and not (self._only_nameless and entry.machine)
        ]
        if not self.held:
            self._given = self._place
        self.held.extend((None, *fresh) if found.lost else fresh)
        self._held_bytes += sum(map(_bytes_of, fresh))
        if found.cursor is not None:
            self._place = Beside(found.cursor)
        self.fault, self.at_edge = None, found.at_edge
        if is_news or fresh:
            self._news.set()

    def _has_room(self, part: float) -> bool:
        return len(self.held) <= HELD_ENTRIES * part and self._held_bytes <= HELD_BYTES * part


def _bytes_of(entry: JournalEntry) -> int:
    return len(entry.message) + FIXED_BYTES


def retry_delay(error: SourceError, failures: int) -> float:
    """Seconds to wait after a break before the next try, after `failures` of them before this one."""
    if isinstance(error, SourceDenied):
        return next_delay(DENIED_S, failures, DENIED_MOST_S)
    return next_delay(RETRY_S, failures, RETRY_MOST_S)


class Following(Protocol):
    """Entries as they are written, in order, none lost, none twice, also over a break of the connection."""

    async def take(self, most: int) -> Slice:
        """What has come since the last call, up to `most` entries. Raises SourceError.

        After a break it goes on after the last entry that was given.
        """

    @property
    def place(self) -> FollowStart | HostPlaces | None:
        """Where somebody may follow from who wants what comes next; None while that is not known."""

    async def changed(self, timeout_s: float) -> None:
        """Return when `take` may find something, at the latest after `timeout_s`."""

    async def aclose(self) -> None:
        """Release what is held. May be called twice."""


class LaneFollowing:
    """A `Following` of each host's entries. While there is no connection, `take` raises what broke it."""

    def __init__(self, reader: Followed, start: FollowStart | HostPlaces, matches: Matches) -> None:
        self._reader = reader
        self._start: FollowStart = start.for_new if isinstance(start, HostPlaces) else start
        self._begin_at = start if isinstance(start, HostPlaces) else None
        self._matches = matches
        self._boots: dict[str, bool] = {}
        """Boots that were looked at, each once: whether the machine is named."""
        self._known: list[Match] = []
        self._for_new: FollowStart = self._start if isinstance(self._start, At) else Head()
        self._lanes: list[Lane] = []
        self._looked_at = 0.0
        self._lost = False
        self._news = asyncio.Event()
        self._opening = asyncio.Lock()
        self._is_closed = False

    async def take(self, most: int) -> Slice:
        """What was there before is waited for, for a moment: who asks in a row is not to do so in vain."""
        await self._begin()
        await self._come()
        if await self._has_new_hosts():
            await self._come()
        self._news.clear()
        self._lost |= any([lane.give() is None for lane in self._lanes if lane.held and lane.held[0] is None])
        entries = self._given(most)
        fault = next((lane.fault for lane in self._lanes if lane.fault is not None), None)
        if fault is not None and not entries and not self._lost:
            raise type(fault)(*fault.args)
        at_edge = all(lane.at_edge and not lane.held for lane in self._lanes)
        lost, self._lost = self._lost, False
        return Slice(tuple(entries), None, at_edge, lost, self._note)

    async def changed(self, timeout_s: float) -> None:
        self._check_open()
        if self._reader.is_one_host:
            await self._begin()
        if any(lane.held for lane in self._lanes) and not any(lane.is_awaited for lane in self._lanes):
            return
        if not self._reader.is_one_host:
            timeout_s = min(timeout_s, LOOK_EVERY_S)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(timeout_s, 0.0)):
                await self._news.wait()
        if len(self._lanes) > 1:
            await asyncio.sleep(min(timeout_s, TOGETHER_S))

    async def aclose(self) -> None:
        self._is_closed = True
        self._news.set()
        await self._close_lanes()

    # Giving.

    async def _come(self) -> None:
        """Let the lanes have their turn, and wait a moment for what they may have that was there before."""
        await asyncio.sleep(0)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(TAKE_S):
                while any(lane.is_awaited for lane in self._lanes):
                    self._news.clear()
                    await self._news.wait()
        self._check_open()
        for lane in self._lanes:
            if lane.task.done() and not lane.task.cancelled():
                lane.task.result()

    def _given(self, most: int) -> list[JournalEntry]:
        """What waits, in order of time, as long as no lane may have something earlier."""
        entries: list[JournalEntry] = []
        while len(entries) < most and not any(lane.is_awaited for lane in self._lanes):
            waiting = [lane for lane in self._lanes if lane.held]
            if not waiting or any(lane.held[0] is None for lane in waiting):
                break
            if (entry := min(waiting, key=Lane.next_at).give()) is not None:
                entries.append(entry)
        return entries

    @property
    def place(self) -> FollowStart | HostPlaces | None:
        """How far was given, of each host where there may be several."""
        if not self._lanes:
            return None
        places = self._places()
        return HostPlaces(self._for_new, places) if places else self._lanes[0].place

    @property
    def _note(self) -> str:
        together = sum(len(lane.hosts) for lane in self._lanes if len(lane.hosts) > 1)
        of_all = f"{together} of {len(self._known)} hosts are followed together"
        return f"{of_all}: what one of these sends late may be missed" if together else ""

    # Lanes.

    def _check_open(self) -> None:
        if self._is_closed:
            raise SourceError(f"{self._reader.name}: is closed")

    async def _begin(self) -> None:
        self._check_open()
        if self._lanes:
            return
        async with self._opening:
            if self._lanes:
                return
            hosts = await self._found_hosts()
            if (known := self._begin_at) is not None:
                self._open({**known.of, **{host: known.for_new for host in hosts if host not in known.of}})
            elif len(hosts) > 1 and isinstance(self._start, Beside):
                places: dict[Match, FollowStart] = {}
                for host in hosts:
                    # After its last entry before the start; the one at the start comes again, and is left out
                    last = (await self._reader.backward(self._start, ((host,),), 1)).entries
                    places[host] = Beside(last[0].cursor) if last else Head()
                self._open(places)
                self._lost = await self._reader.entry(self._start.cursor) is None
            else:
                self._open(dict.fromkeys(hosts, self._start))

    async def _found_hosts(self) -> Sequence[Match]:
        """What the entries of each host have in common. Raises SourceError."""
        found: list[Match] = []
        if not self._reader.is_one_host:
            values = await self._reader.values(MACHINE, BOOT)
            machines, boots = values[MACHINE], values[BOOT]
            if not machines or len(boots) > 1:
                self._boots = {boot: self._boots[boot] for boot in boots if boot in self._boots}
                fresh = [boot for boot in boots if boot not in self._boots]
                entries = await self._reader.last_of_each([(((BOOT, boot),),) for boot in fresh])
                looked_at = zip(fresh, entries, strict=True)
                self._boots |= {boot: bool(entry.machine) for boot, entry in looked_at if entry is not None}
            found += [(MACHINE, machine) for machine in machines]
            found += [(BOOT, boot) for boot in boots if not self._boots.get(boot, True)]
        self._looked_at = time.monotonic()
        return found

    def _open(self, places: dict[Match, FollowStart]) -> None:
        """Open a lane for each host from its place on; one for all there are as long as that is one host."""
        self._check_open()
        self._known = hosts = list(places)
        apart = len(hosts) if len(hosts) <= LANES_MOST else LANES_MOST - 1
        groups: list[tuple[Match, ...]] = [(host,) for host in hosts[:apart]]
        groups += [tuple(hosts[apart:])] if hosts[apart:] else []
        if len(hosts) > 1:
            lanes = ((group, within(self._matches, group)) for group in groups)
            self._lanes = [self._lane(places[group[0]], group, wanted) for group, wanted in lanes if wanted]
        if not self._lanes:
            self._lanes = [self._lane(next(iter(places.values()), self._start), (), self._matches)]

    def _lane(self, place: FollowStart, hosts: tuple[Match, ...], wanted: Matches) -> Lane:
        scope = tuple((host,) for host in hosts)
        beside = own_cursor(self._start)
        return Lane(lambda at: self._reader.listen(at, wanted, scope), place, hosts, beside, self._news)

    async def _has_new_hosts(self) -> bool:
        """Look for other hosts, when there is nothing else to do or one of them was heard.

        When there are, all lanes are opened again, with theirs.
        """
        if self._reader.is_one_host:
            return False
        foreign = None if self._lanes[0].hosts else self._foreign(self._lanes[0])
        is_quiet = all(lane.at_edge and not lane.held for lane in self._lanes)
        is_due = is_quiet and time.monotonic() - self._looked_at >= LOOK_EVERY_S
        if foreign is None and not is_due:
            return False
        try:
            hosts = await self._found_hosts()
        except SourceError:
            if foreign is not None:
                raise
            return False  # the lanes tell of it, if it lasts
        fresh = [host for host in dict.fromkeys((*hosts, foreign)) if host and host not in self._known]
        if not self._known:
            self._known = [fresh.pop(0)] if fresh else []
        if fresh:
            async with self._opening:
                places = self._places()
                await self._close_lanes()
                self._open({**dict.fromkeys((*self._known, *fresh), self._for_new), **places})
        return bool(fresh)

    def _foreign(self, lane_for_all: Lane) -> Match | None:
        """Another host than the one followed, of which something waits in the lane for all."""
        for entry in lane_for_all.held:
            if entry is not None and (host := host_of(entry)) not in self._known:
                if self._known:
                    return host
                self._known = [host]
        return None

    def _places(self) -> dict[Match, FollowStart]:
        return {host: lane.place for lane in self._lanes for host in lane.hosts or self._known[:1]}

    async def _close_lanes(self) -> None:
        lanes, self._lanes = self._lanes, []
        for lane in lanes:
            lane.task.cancel()
        await asyncio.gather(*(lane.task for lane in lanes), return_exceptions=True)
