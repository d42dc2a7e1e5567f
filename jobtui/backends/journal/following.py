"""Following a journal: entries in order, none lost, none twice, also over a connection that breaks.

One task listens and goes on after the last entry it was given. It stops listening while nobody takes what has
come, so that memory stays bounded and the sender waits.

libsystemd gives entries of all files by their time, and never one that belongs before its position: what one
host sends late is lost to who follows all hosts together. Within one host entries come in the order they were
written. So each host has a lane of its own as soon as there is a second one; what waits in the lanes is given
in order of time. A cursor then holds one for each host, in one text that only following understands.
"""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from heapq import heapify, heappop, heapreplace
from typing import NamedTuple

from jobtui.backends.base import next_delay
from jobtui.backends.journal.client import Following, JournalReader, from_micros, position, time_cursor
from jobtui.model.clock import Nanos
from jobtui.model.journal import (
    At,
    Beside,
    Cursor,
    Head,
    JournalEntry,
    Match,
    Matches,
    Slice,
    Start,
    Tail,
    own_cursor,
)
from jobtui.model.source_errors import SourceDenied, SourceError

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
    def held(self) -> int:
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
        if self._begin() and not self._held:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), max(timeout_s, 0.0))

    async def aclose(self) -> None:
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
                async with contextlib.aclosing(self._listen(self._place)) as slices:
                    async for found in slices:
                        self._hold(found)
                        if not self._has_room(1.0):
                            self._room.clear()
                            await self._room.wait()
                raise SourceError(f"{self._name}: following ended without a reason")
            except SourceError as error:
                if loop.time() - began >= STEADY_S:
                    failures = 0
                delay_s = retry_delay(error, failures)
                self._fault, self._is_at_edge = error, False
                self._news.set()
            failures += 1
            await asyncio.sleep(delay_s)

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


LANE_ENTRIES = 50
"""Entries that are read ahead in a lane at least, where more are wanted than that."""

TOGETHER_S = 0.05
"""So long what hosts write is let come together before it is looked for: a look costs a step in each lane."""

_Hosts = tuple[Match, ...]


class Lanes(NamedTuple):
    """What a transport has to give so that hosts can be followed apart. All of it raises SourceError.

    `lane` follows what is wanted among the entries of some hosts. There are `most` lanes: hosts beyond that
    share one, those that were known last. Every `look_every_s` it is asked which hosts there are.
    """

    name: str
    hosts: "Hosts"
    last_before: Callable[[Tail | Beside, Matches], Awaitable[Slice]]
    lane: Callable[[Start, Matches, Matches], Following]
    close: Callable[[], None]
    most: int
    look_every_s: float


class _Lane:
    """Entries of some hosts that wait to be given, and the place up to which they were given."""

    def __init__(
        self, following: Following, place: Start, hosts: _Hosts, beside: Cursor | None = None
    ) -> None:
        self._beside = beside
        self.following = following
        self.place = place
        self.hosts = hosts
        self.held: deque[JournalEntry] = deque()
        self.at_edge = False
        self.lost = False
        self.fault: SourceError | None = None
        self._only_nameless = bool(hosts) and all(field == BOOT for field, _ in hosts)

    async def fill(self, most: int) -> None:
        if self.held:
            return
        try:
            found = await self.following.take(most)
        except SourceError as error:
            self.fault, self.at_edge = error, False
            return
        self.fault, self.at_edge = None, found.at_edge
        self.lost |= found.lost
        self.held.extend(filter(self._is_new, found.entries))
        if not self.held and found.cursor is not None:
            self.place = Beside(found.cursor)
        elif found.at_edge and isinstance(self.place, Tail):
            self.place = Head()

    def _is_new(self, entry: JournalEntry) -> bool:
        return entry.cursor != self._beside and not (self._only_nameless and entry.machine)

    @property
    def is_awaited(self) -> bool:
        return not self.held and not self.at_edge and self.fault is None

    def give(self) -> JournalEntry:
        entry = self.held.popleft()
        self.place = Beside(entry.cursor)
        return entry


class ApartFollowing:
    """A `Following` in lanes: one for all as long as there is one host only."""

    def __init__(self, lanes_of: Lanes, start: Start, matches: Matches) -> None:
        self._lanes_of = lanes_of
        self._start = start
        self._matches = matches
        self._places = places_of(start)
        self._known: set[Match] = set()
        self._own: Match | None = None
        self._lanes: list[_Lane] = []
        self._looked_at = float("-inf")
        self._lost = False
        self._is_closed = False
        self._closing = asyncio.Event()

    async def take(self, most: int) -> Slice:
        if self._is_closed:
            raise SourceError(f"{self._lanes_of.name}: is closed")
        if not self._lanes:
            await self._begin()
        await self._fill(most)
        if await self._has_new_lanes():
            await self._fill(most)
        entries = self._given(most)
        if not entries and (fault := next((lane.fault for lane in self._lanes if lane.fault), None)):
            raise type(fault)(*fault.args)
        at_edge = all(lane.at_edge and not lane.held for lane in self._lanes)
        lost = self._lost or any(lane.lost for lane in self._lanes)
        self._lost = False
        for lane in self._lanes:
            lane.lost = False
        return Slice(tuple(entries), self._cursor, at_edge, lost, self._note)

    @property
    def _note(self) -> str:
        together = sum(len(lane.hosts) for lane in self._lanes if len(lane.hosts) > 1)
        of_all = f"{together} of {sum(len(lane.hosts) for lane in self._lanes)} hosts are followed together"
        return f"{of_all}: what one of these sends late may be missed" if together else ""

    async def changed(self, timeout_s: float) -> None:
        if self._is_closed or any(lane.held for lane in self._lanes):
            return
        if len(self._lanes) > 1:
            await asyncio.sleep(min(timeout_s, TOGETHER_S))
        if self._lanes and self._lanes_of.look_every_s:
            timeout_s = min(timeout_s, self._lanes_of.look_every_s)
        waiting: list[asyncio.Future[object]] = [
            asyncio.ensure_future(lane.following.changed(timeout_s)) for lane in self._lanes
        ]
        waiting = waiting or [asyncio.ensure_future(self._closing.wait())]
        try:
            done, _ = await asyncio.wait(waiting, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                each.result()
        finally:
            for each in waiting:
                each.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    async def aclose(self) -> None:
        self._is_closed = True
        self._closing.set()
        await asyncio.gather(*(lane.following.aclose() for lane in self._lanes))
        self._lanes_of.close()

    # Giving.

    async def _fill(self, most: int) -> None:
        each = most if len(self._lanes) == 1 else max(most // len(self._lanes), min(most, LANE_ENTRIES))
        await asyncio.gather(*(lane.fill(each) for lane in self._lanes))

    def _given(self, most: int) -> list[JournalEntry]:
        """What waits, in order of time, as long as no lane may have something earlier."""
        entries: list[JournalEntry] = []
        if any(lane.is_awaited for lane in self._lanes):
            return entries
        first = [(lane.held[0].at, nth) for nth, lane in enumerate(self._lanes) if lane.held]
        heapify(first)
        while first and len(entries) < most:
            nth = first[0][1]
            lane = self._lanes[nth]
            entries.append(lane.give())
            if lane.held:
                heapreplace(first, (lane.held[0].at, nth))
            else:
                heappop(first)
                if lane.is_awaited:
                    break
        return entries

    @property
    def _cursor(self) -> Cursor | None:
        hosts = () if self._is_apart or self._own is None else (self._own,)
        places = {host: lane.place for lane in self._lanes for host in lane.hosts or hosts}
        if not places or any(isinstance(place, Tail) for place in places.values()):
            return None
        return cursor_of(Places(self._for_new, places))

    # Lanes.

    @property
    def _is_apart(self) -> bool:
        return bool(self._lanes and self._lanes[0].hosts)

    @property
    def _for_new(self) -> Start:
        begin = self._places.for_new if self._places else self._start
        return begin if isinstance(begin, At) else Head()

    async def _begin(self) -> None:
        hosts = await self._hosts()
        places = self._places or Places(self._start, {})
        everyone = dict.fromkeys((*hosts, *places.of), self._start)
        if len(everyone) > 1:
            await self._divide(everyone)
        else:
            self._own = next(iter(everyone), None)
            place = places.of.get(self._own, places.for_new) if self._own else places.for_new
            self._lanes = [_Lane(self._lanes_of.lane(place, self._matches, ()), place, ())]
        self._known = set(everyone)

    async def _has_new_lanes(self) -> bool:
        """Look for other hosts, when there is nothing else to do or one of them has been heard."""
        foreign = self._foreign()
        if foreign is None and not self._is_time_to_look:
            return False
        try:
            hosts = await self._hosts()
        except SourceError:
            if foreign is not None:
                raise
            return False  # the lanes tell of it, if it lasts
        fresh = [host for host in dict.fromkeys((*hosts, foreign)) if host and host not in self._known]
        if fresh and self._own is None and not self._is_apart:
            self._own = fresh.pop(0)
            self._known.add(self._own)
        if fresh:
            await self._go_apart(fresh)
            self._known.update(fresh)
        return bool(fresh)

    async def _go_apart(self, fresh: Sequence[Match]) -> None:
        """Lanes for hosts that were not there before; the one followed for itself now, too."""
        places = dict.fromkeys(fresh, self._for_new)
        if self._is_apart or self._own is None:
            await self._divide(places)
            return
        together = self._lanes[0]
        await self._divide({self._own: together.place, **places})
        self._lost |= together.lost
        await together.following.aclose()

    @property
    def _is_time_to_look(self) -> bool:
        is_due = time.monotonic() - self._looked_at >= self._lanes_of.look_every_s
        return is_due and all(lane.at_edge and not lane.held for lane in self._lanes)

    async def _hosts(self) -> _Hosts:
        found = await self._lanes_of.hosts.known()
        self._looked_at = time.monotonic()
        return found

    def _foreign(self) -> Match | None:
        """Another host than the one followed, of which something waits in the lane for all."""
        if self._is_apart:
            return None
        for entry in self._lanes[0].held:
            host = host_of(entry)
            if self._own is None:
                self._own = host
                self._known.add(host)
            if host != self._own:
                return host
        return None

    async def _divide(self, places: dict[Match, Start]) -> None:
        """A lane for each of these hosts, from its place on, besides those there are."""
        lanes = list(self._lanes) if self._is_apart else []
        hosts, room = list(places), self._lanes_of.most - len(lanes)
        if room < 1 and lanes:
            await self._join(tuple(hosts))
            return
        own = len(hosts) if len(hosts) <= room else max(room - 1, 0)
        groups: list[_Hosts] = [(host,) for host in hosts[:own]]
        groups += [tuple(hosts[own:])] if hosts[own:] else []
        for group in groups:
            place = await self._place_of(group, places[group[0]])
            lanes.append(self._lane(place, group))
        self._lanes = lanes

    async def _join(self, hosts: _Hosts) -> None:
        """Let the last lane be for these hosts too, from where it stands: there may be no more."""
        last = self._lanes[-1]
        together = (*last.hosts, *hosts)
        self._lanes[-1] = self._lane(last.place, together)
        self._lost |= last.lost
        await last.following.aclose()

    def _lane(self, place: Start, hosts: _Hosts) -> _Lane:
        scope = of_hosts(hosts)
        following = self._lanes_of.lane(place, within(self._matches, scope), scope)
        return _Lane(following, place, hosts, own_cursor(self._start))

    async def _place_of(self, hosts: _Hosts, place: Start) -> Start:
        """Where a lane begins: behind the last entry of these hosts before a place, wherever that is.

        What is at the place itself comes again, and is left out.
        """
        if self._places is not None and place == self._start:
            return self._places.of.get(hosts[0], self._places.for_new)
        if not isinstance(place, Tail | Beside) or place != self._start:
            return place
        found = await self._lanes_of.last_before(place, of_hosts(hosts))
        self._lost |= found.lost
        return Beside(found.entries[-1].cursor) if found.entries else Head()


MACHINE, BOOT = "_MACHINE_ID", "_BOOT_ID"

Values = Callable[[str], Awaitable[tuple[str, ...]]]
"""The values of a field in the journal."""

OneOfEach = Callable[[Sequence[Matches]], Awaitable[list[JournalEntry | None]]]
"""Some entry of each of these, None where there is none."""


class Hosts:
    """The hosts of one journal. Each boot is looked at once."""

    def __init__(self, values: Values, one_of_each: OneOfEach) -> None:
        self._values = values
        self._one_of_each = one_of_each
        self._named: dict[str, bool] = {}

    async def known(self) -> tuple[Match, ...]:
        """What the entries of each host have in common. Raises SourceError."""
        machines, boots = await self._values(MACHINE), await self._values(BOOT)
        if not machines or len(boots) > 1:
            await self._look_at(boots)
        nameless = [boot for boot in boots if not self._named.get(boot, True)]
        return (*((MACHINE, machine) for machine in machines), *((BOOT, boot) for boot in nameless))

    async def _look_at(self, boots: Sequence[str]) -> None:
        self._named = {boot: self._named[boot] for boot in boots if boot in self._named}
        fresh = [boot for boot in boots if boot not in self._named]
        found = await self._one_of_each([(((BOOT, boot),),) for boot in fresh]) if fresh else ()
        for boot, entry in zip(fresh, found, strict=True):
            if entry is not None:
                self._named[boot] = bool(entry.machine)


def host_of(entry: JournalEntry) -> Match:
    return (MACHINE, entry.machine) if entry.machine else (BOOT, entry.boot)


def of_hosts(hosts: Iterable[Match]) -> Matches:
    return tuple((host,) for host in hosts)


def within(matches: Matches, scope: Matches) -> Matches:
    if not scope or not matches:
        return scope or matches
    return tuple((*group, *more) for more in scope for group in matches)


LOOK_EVERY_S = 10.0
"""What a host that is new sends late is found within this time."""

LANES_MOST = 32
"""Hosts that are followed apart; each costs a connection."""

ListenTo = Callable[[Start, Matches, Matches], AsyncGenerator[Slice, None]]
"""One connection: from where on, what is wanted, and the hosts whose entries these are; () for all."""


ReadOn = Callable[[Start], AsyncGenerator[Slice, None]]


async def listening(start: Start, catch_up: ReadOn, written: ReadOn) -> AsyncGenerator[Slice, None]:
    """All that is there, then what is written; from there both again when `written` ends without an error."""
    place = start
    while True:
        for read in (catch_up, written):
            async with contextlib.aclosing(read(place)) as slices:
                async for found in slices:
                    place = place if found.cursor is None else Beside(found.cursor)
                    yield found
            place = Head() if isinstance(place, Tail) else place


def follow_apart(
    reader: JournalReader, one_of_each: OneOfEach, listen: ListenTo, start: Start, wanted: Matches
) -> ApartFollowing:
    def lane(place: Start, wanted: Matches, scope: Matches) -> Following:
        return ConnectedFollowing(reader.name, lambda at: listen(at, wanted, scope), place)

    lanes = Lanes(
        name=reader.name,
        hosts=Hosts(reader.values, one_of_each),
        last_before=lambda place, scope: reader.backward(place, scope, 1),
        lane=lane,
        close=lambda: None,
        most=LANES_MOST,
        look_every_s=LOOK_EVERY_S,
    )
    return ApartFollowing(lanes, start, wanted)


_EACH = "each"


class Places(NamedTuple):
    """Where following stands, apart: the place of each host, and where one begins that is new."""

    for_new: Start
    of: dict[Match, Start]


def cursor_of(places: Places) -> Cursor:
    each = [f"{field}={value}|{_text(place)}" for (field, value), place in places.of.items()]
    return Cursor(" ".join((_EACH, _text(places.for_new), *each)))


def places_of(start: Start) -> Places | None:
    """The places that a cursor stands for; None for a place that is the same for all."""
    words = start.cursor.split(" ") if isinstance(start, Beside) else ()
    if len(words) < 2 or words[0] != _EACH:
        return None
    places: dict[Match, Start] = {}
    for word in words[2:]:
        host, _, place = word.partition("|")
        field, _, value = host.partition("=")
        places[field, value] = _place(place)
    return Places(_place(words[1]), places)


def _text(place: Start) -> str:
    if isinstance(place, At):
        return time_cursor(from_micros(place.time))
    return place.cursor if isinstance(place, Beside) else ""


def _place(text: str) -> Start:
    if text.startswith("t="):
        return At(Nanos((position(Cursor(text)).realtime or 0) * 1_000))
    return Beside(Cursor(text)) if text else Head()
