"""Following a journal in which several hosts are collected: each of them apart, so that none is lost.

libsystemd gives entries of all files by their time, and never one that belongs before where it stands: what
one host sends late is lost to who follows all hosts together. Within one host entries come in the order they
were written. So each has a lane of its own as soon as there is a second one; what waits in the lanes is given
in order of time. A place is then one for each host, in one text that only following understands.
"""

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from heapq import heapify, heappop, heapreplace
from typing import Protocol

from jobtui.backends.base import SourceError
from jobtui.backends.journal.contract import Following
from jobtui.backends.journal.host_places import Places, cursor_of, places_of
from jobtui.backends.journal.hosts import BOOT, host_of, of_hosts
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

LANE_ENTRIES = 50
"""Entries that are read ahead in a lane at least, where more are wanted than that."""

TOGETHER_S = 0.05
"""So long what hosts write is let come together before it is looked for: a look costs a step in each lane."""

_Hosts = tuple[Match, ...]


class Lanes(Protocol):
    """What a transport has to give so that hosts can be followed apart. Raises SourceError."""

    @property
    def name(self) -> str:
        """The journal, as it was configured."""
        ...

    @property
    def most(self) -> int:
        """How many there may be; hosts beyond that share one, those that were known last."""
        ...

    @property
    def look_every_s(self) -> float:
        """How often it is asked which hosts there are, in seconds."""
        ...

    async def hosts(self) -> _Hosts:
        """What the entries of each host have in common."""
        ...

    async def last_before(self, start: Tail | Beside, scope: Matches) -> Slice:
        """The last entry of `scope` before a place."""
        ...

    def lane(self, start: Start, matches: Matches, scope: Matches) -> Following:
        """Following `matches` among the entries of `scope`."""
        ...

    async def aclose(self) -> None:
        """Release what is held. May be called twice."""
        ...


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
        """Read ahead when nothing waits."""
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
        """Whether something may yet come that belongs before what waits in other lanes."""
        return not self.held and not self.at_edge and self.fault is None

    def give(self) -> JournalEntry:
        """The first that waits."""
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
        """What has come since the last call."""
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
        """Return when something may have come in one of the lanes, or it is time to look for other hosts."""
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
        """Release all lanes."""
        self._is_closed = True
        self._closing.set()
        await asyncio.gather(*(lane.following.aclose() for lane in self._lanes))
        await self._lanes_of.aclose()

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
        """Where a host begins that was not there before."""
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
        found = await self._lanes_of.hosts()
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
            lane = self._lanes_of.lane(place, self._matches, of_hosts(group))
            lanes.append(_Lane(lane, place, group, own_cursor(self._start)))
        self._lanes = lanes

    async def _join(self, hosts: _Hosts) -> None:
        """Let the last lane be for these hosts too, from where it stands: there may be no more."""
        last = self._lanes[-1]
        together = (*last.hosts, *hosts)
        following = self._lanes_of.lane(last.place, self._matches, of_hosts(together))
        self._lanes[-1] = _Lane(following, last.place, together, own_cursor(self._start))
        self._lost |= last.lost
        await last.following.aclose()

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
