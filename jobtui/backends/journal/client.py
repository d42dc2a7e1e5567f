"""Reads a journal: pages in both directions from any cursor, all from a cursor on, and following.

journalctl and gatewayd both give the export format. They answer questions (`Ask`); the rest is here.

Matches mean what they mean to journalctl: a group wants every field it names, and of a field that it names
twice either value. Cursors are compared as libsystemd does when it merges files; to all other code a cursor
is opaque. An answer begins with the entry of its cursor, or with others of that microsecond, which are
dropped here: systemd before 254 loses the first wanted entry after a cursor whose own entry is not wanted.

Following gives entries in order, none lost, none twice, also over a connection that breaks. libsystemd gives
entries of all files by their time, and never one that belongs before its position: what one host sends late
is lost if all hosts are followed together. Within one host entries come in the order they were written. So
each host has a lane of its own once there is a second one, and what waits in the lanes is given in order of
time. Following then continues from a cursor for each host.
"""

import asyncio
import contextlib
import re
import time
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, Callable, Sequence
from contextlib import aclosing
from functools import cmp_to_key
from typing import NamedTuple, Protocol

from jobtui.backends.base import next_delay
from jobtui.formats.journal_export import ExportParser, Raw, entry_of_export
from jobtui.model.clock import Nanos
from jobtui.model.health import SourceDenied, SourceError, SourceUnreachable
from jobtui.model.journal import (
    At,
    AtCursor,
    Begin,
    Cursor,
    FollowStart,
    JournalCondition,
    JournalEntry,
    Match,
    Matches,
    Slice,
    Start,
    Tail,
    own_cursor,
)
from jobtui.model.numbers import of_base

NEAR_ENTRIES = 16
"""How many entries may come before a wanted one: other hosts may have sent in the same microsecond."""
PAGE_ENTRIES = 1_000
ASKED_AT_ONCE = 50
"""Questions in one line for a shell."""

FIELD_NAME = re.compile(r"[A-Z_][A-Z0-9_]{0,63}", re.ASCII)

Entries = AsyncGenerator[list[JournalEntry], None]
"""Some at a time."""
Slices = AsyncGenerator[Slice, None]


class CursorParts(NamedTuple):
    """The parts of a cursor (sd_journal_get_cursor in systemd's sd-journal.c); None for a missing one."""

    seqnum_id: str | None
    seqnum: int | None
    boot: str | None
    monotonic: int | None
    realtime: int | None
    hash: int | None


def position(cursor: Cursor) -> CursorParts:
    """The parts of a cursor; a part that cannot be read is None."""
    parts = dict(part.split("=", 1) for part in cursor.split(";") if "=" in part)
    numbers = [of_base(parts.get(key), 16) for key in ("i", "m", "t", "x")]
    return CursorParts(parts.get("s"), numbers[0], parts.get("b"), *numbers[1:])


def compare(one: CursorParts, other: CursorParts) -> int:
    """Below 0 when `one` comes first, above 0 when `other` does, 0 when that is unknown."""
    if one.seqnum_id is not None and one.seqnum_id == other.seqnum_id and one.seqnum != other.seqnum:
        return _compare(one.seqnum, other.seqnum)
    if one.boot is not None and one.boot == other.boot and one.monotonic != other.monotonic:
        return _compare(one.monotonic, other.monotonic)
    return _compare(one.realtime, other.realtime) or _compare(one.hash, other.hash)


def _compare(one: int | None, other: int | None) -> int:
    if one is None or other is None:
        return 0
    return (one > other) - (one < other)


class CursorFilter:
    """Passes entries from the first one beyond a cursor on, in the direction of reading."""

    def __init__(self, cursor: Cursor | None, *, back: bool = False) -> None:
        self._position = None if cursor is None else position(cursor)
        self._back = back

    def __call__(self, entries: list[JournalEntry]) -> list[JournalEntry]:
        if self._position is None:
            return entries
        for nth, entry in enumerate(entries):
            at = position(entry.cursor)
            order = compare(at, self._position)
            if at != self._position and (order <= 0 if self._back else order >= 0):
                self._position = None
                return entries[nth:]
        return []


def merged(entries: list[JournalEntry]) -> list[JournalEntry]:
    """The entries of several answers in the journal's order, each once."""
    once = {entry.cursor: entry for entry in entries}
    positions = {cursor: position(cursor) for cursor in once}
    key = cmp_to_key(compare)
    return [once[cursor] for cursor in sorted(once, key=lambda cursor: key(positions[cursor]))]


def from_micros(time: Nanos) -> int:
    return max(-(-time // 1_000), 0)


def time_cursor(micros: int) -> Cursor:
    """A cursor that means a time of receipt and not an entry; libsystemd accepts it, too."""
    return Cursor(f"t={max(micros, 0):x}")


class Ask(NamedTuple):
    """A question for entries from `start` on, or with `back` for those before it, newest first.

    `most` is how many are wanted beyond `start`, 0 for what is at a cursor itself, None for all. With
    `follows` also those that are written from now on.
    """

    start: Start = Begin()
    matches: Matches = ()
    most: int | None = None
    back: bool = False
    follows: bool = False


HELD_ENTRIES = 4_096
HELD_BYTES = 16 << 20
"""How many bytes may wait in a lane, messages included; one piece may exceed it."""

RETRY_S = 1.0
RETRY_MOST_S = 30.0
DENIED_S = 60.0
DENIED_MOST_S = 600.0
"""The pause after a refusal: hosts lock out a client that tries often."""
STEADY_S = 10.0
"""A connection that lasted so long was good; the next try after it counts as the first."""
TAKE_S = 0.2
FIXED_BYTES = 500
"""An entry counts as its message plus this."""
TOGETHER_S = 0.05
"""How long entries of several hosts are collected, to be given in order of time."""
LOOK_EVERY_S = 10.0
"""How often the journal is asked which hosts there are."""
QUIET_S = 10.0
"""So long after wanted entries they are asked for once more: libsystemd counts an entry before it links its
fields, and passes over one that it meets in between until another is written to that file."""
LANES_MOST = 32
"""How many hosts have a connection of their own. The others, those known last, share one."""

MACHINE, BOOT = "_MACHINE_ID", "_BOOT_ID"


class HostStarts(NamedTuple):
    """How far each host was followed, and where a new one begins."""

    for_new: FollowStart
    of: dict[Match, FollowStart]


def host_of(entry: JournalEntry) -> Match:
    return (MACHINE, entry.machine) if entry.machine else (BOOT, entry.boot)


def within(matches: Matches, hosts: Sequence[Match]) -> Matches:
    """The matches for these hosts; a group that names another host matches nothing of them."""
    return tuple(
        tuple(dict.fromkeys((*group, host)))
        for host in hosts
        for group in matches or ((),)
        if all(field != host[0] or value == host[1] for field, value in group)
    )


class Lane:
    """The entries of one connection, in order, until they are taken. After a break it continues after the
    last entry. It stops reading while no entries are taken, so that memory is bounded and the sender waits.
    """

    def __init__(
        self,
        listen: Callable[[FollowStart], Slices],
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
        self._next_start: FollowStart = start
        self._given: FollowStart = start
        self._beside = beside
        self._only_nameless = bool(hosts) and all(field == BOOT for field, _ in hosts)
        self._held_bytes = 0
        self._news = news
        self._room = asyncio.Event()
        self.task = asyncio.create_task(self._keep_listening(), name="follow a journal")

    @property
    def next_start(self) -> FollowStart:
        """How far its entries were taken."""
        return self._given if self.held else self._next_start

    @property
    def is_awaited(self) -> bool:
        return not self.held and not self.at_edge and self.fault is None

    def next_at(self) -> int:
        return self.held[0].at if self.held and self.held[0] is not None else 0

    def give(self) -> JournalEntry | None:
        entry = self.held.popleft()
        if entry is not None:
            self._given = AtCursor(entry.cursor)
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
                    async with contextlib.aclosing(self._listen(self._next_start)) as slices:
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
            self._given = self._next_start
        self.held.extend((None, *fresh) if found.lost else fresh)
        self._held_bytes += sum(map(_bytes_of, fresh))
        if found.cursor is not None:
            self._next_start = AtCursor(found.cursor)
        self.fault, self.at_edge = None, found.at_edge
        if is_news or fresh:
            self._news.set()

    def _has_room(self, part: float) -> bool:
        return len(self.held) <= HELD_ENTRIES * part and self._held_bytes <= HELD_BYTES * part


def _bytes_of(entry: JournalEntry) -> int:
    return len(entry.message) + FIXED_BYTES


def retry_delay(error: SourceError, failures: int) -> float:
    """Seconds to wait after a break before the next try, after `failures` earlier ones."""
    if isinstance(error, SourceDenied):
        return next_delay(DENIED_S, failures, DENIED_MOST_S)
    return next_delay(RETRY_S, failures, RETRY_MOST_S)


class Following(Protocol):
    """Entries as they are written, in order, none lost, none twice, even if the connection breaks."""

    async def take(self, most: int) -> Slice:
        """The entries since the last call, up to `most`, even after a break. Raises SourceError."""

    @property
    def next_start(self) -> FollowStart | HostStarts | None:
        """The cursor from which the next entries can be followed; None while that is not known."""

    async def changed(self, timeout_s: float) -> None:
        """Return when `take` may find something, at the latest after `timeout_s`."""

    async def aclose(self) -> None: ...


class LaneFollowing:
    """A `Following` of each host's entries. While there is no connection, `take` raises what broke it."""

    def __init__(self, reader: "ExportReader", start: FollowStart | HostStarts, matches: Matches) -> None:
        self._reader = reader
        self._start: FollowStart = start.for_new if isinstance(start, HostStarts) else start
        self._begin_at = start if isinstance(start, HostStarts) else None
        self._matches = matches
        self._boots: dict[str, bool] = {}
        """Boots that were checked, each once: whether the machine is named."""
        self._known: list[Match] = []
        self._for_new: FollowStart = self._start if isinstance(self._start, At) else Begin()
        self._lanes: list[Lane] = []
        self._looked_at = 0.0
        self._lost = False
        self._news = asyncio.Event()
        self._opening = asyncio.Lock()
        self._is_closed = False

    async def take(self, most: int) -> Slice:
        """Wait a moment for what was there before, so that repeated calls make progress."""
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

    async def _come(self) -> None:
        """Let the lanes run, and wait a moment for entries that were there before."""
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
        """The waiting entries in order of time, up to where a lane may still have an earlier one."""
        entries: list[JournalEntry] = []
        while len(entries) < most and not any(lane.is_awaited for lane in self._lanes):
            waiting = [lane for lane in self._lanes if lane.held]
            if not waiting or any(lane.held[0] is None for lane in waiting):
                break
            if (entry := min(waiting, key=Lane.next_at).give()) is not None:
                entries.append(entry)
        return entries

    @property
    def next_start(self) -> FollowStart | HostStarts | None:
        """How far entries were given, for each host if there may be several."""
        if not self._lanes:
            return None
        starts = self._starts()
        return HostStarts(self._for_new, starts) if starts else self._lanes[0].next_start

    @property
    def _note(self) -> str:
        together = sum(len(lane.hosts) for lane in self._lanes if len(lane.hosts) > 1)
        of_all = f"{together} of {len(self._known)} hosts are followed together"
        return f"{of_all}: entries that one of these sends late may be missed" if together else ""

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
            elif len(hosts) > 1 and isinstance(self._start, AtCursor):
                starts: dict[Match, FollowStart] = {}
                for host in hosts:
                    # After its last entry before the start; the one at the start is repeated, and left out
                    last = (await self._reader.backward(self._start, ((host,),), 1)).entries
                    starts[host] = AtCursor(last[0].cursor) if last else Begin()
                self._open(starts)
                self._lost = await self._reader.entry(self._start.cursor) is None
            else:
                self._open(dict.fromkeys(hosts, self._start))

    async def _found_hosts(self) -> Sequence[Match]:
        """The fields that the entries of each host share. Raises SourceError."""
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

    def _open(self, starts: dict[Match, FollowStart]) -> None:
        """Open a lane for each host from its start on; one for all while there is only one host."""
        self._check_open()
        self._known = hosts = list(starts)
        apart = len(hosts) if len(hosts) <= LANES_MOST else LANES_MOST - 1
        groups: list[tuple[Match, ...]] = [(host,) for host in hosts[:apart]]
        groups += [tuple(hosts[apart:])] if hosts[apart:] else []
        if len(hosts) > 1:
            lanes = ((group, within(self._matches, group)) for group in groups)
            self._lanes = [self._lane(starts[group[0]], group, wanted) for group, wanted in lanes if wanted]
        if not self._lanes:
            self._lanes = [self._lane(next(iter(starts.values()), self._start), (), self._matches)]

    def _lane(self, start: FollowStart, hosts: tuple[Match, ...], wanted: Matches) -> Lane:
        scope = tuple((host,) for host in hosts)
        beside = own_cursor(self._start)
        return Lane(lambda at: self._reader.listen(at, wanted, scope), start, hosts, beside, self._news)

    async def _has_new_hosts(self) -> bool:
        """Look for other hosts, when idle or when one of them was heard.

        If there are any, all lanes are opened again, with theirs.
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
            return False  # the lanes report it, if it lasts
        fresh = [host for host in dict.fromkeys((*hosts, foreign)) if host and host not in self._known]
        if not self._known:
            self._known = [fresh.pop(0)] if fresh else []
        if fresh:
            async with self._opening:
                starts = self._starts()
                await self._close_lanes()
                self._open({**dict.fromkeys((*self._known, *fresh), self._for_new), **starts})
        return bool(fresh)

    def _foreign(self, lane_for_all: Lane) -> Match | None:
        """A host other than the followed one that has entries in the lane for all."""
        for entry in lane_for_all.held:
            if entry is not None and (host := host_of(entry)) not in self._known:
                if self._known:
                    return host
                self._known = [host]
        return None

    def _starts(self) -> dict[Match, FollowStart]:
        return {host: lane.next_start for lane in self._lanes for host in lane.hosts or self._known[:1]}

    async def _close_lanes(self) -> None:
        lanes, self._lanes = self._lanes, []
        for lane in lanes:
            lane.task.cancel()
        await asyncio.gather(*(lane.task for lane in lanes), return_exceptions=True)


class JournalReader(ABC):
    """A journal that can be read in both directions from any cursor, and followed.

    All of it raises SourceError and nothing else, and never blocks. Several calls may be in flight.
    """

    name: str
    """As it was configured: `local`, a directory, `ssh://host`, `http://host:port`."""
    newest: int | None = None  # how many of its last entries are read at first; None: all

    @abstractmethod
    async def forward(self, start: Begin | At | AtCursor, matches: Matches, most: int) -> Slice:
        """Up to `most` wanted entries from `start` on."""

    @abstractmethod
    async def backward(self, start: Tail | At | AtCursor, matches: Matches, most: int) -> Slice:
        """Up to `most` wanted entries before `start`; the slice is still oldest first."""

    async def stream(
        self, start: Start, matches: Matches, *, back: bool = False, page: int = PAGE_ENTRIES
    ) -> Entries:
        """All wanted entries from `start` on, or before it, newest first. Close it to stop.

        `page` is how many are asked for at a time if answers come as a whole.
        """
        while True:
            if back and not isinstance(start, Begin):
                found = await self.backward(start, matches, page)
            elif not back and not isinstance(start, Tail):
                found = await self.forward(start, matches, page)
            else:
                return
            if found.entries:
                yield [*found.entries[:: -1 if back else 1]]
            if found.at_edge or found.cursor is None:
                return
            start = AtCursor(found.cursor)

    @abstractmethod
    async def values(self, *fields: str) -> dict[str, tuple[str, ...]]:
        """The values in fields that have few of them, such as `_SYSTEMD_UNIT`; not for MESSAGE."""

    async def condition(self) -> JournalCondition:
        """Which of its files are read."""
        return JournalCondition()

    @abstractmethod
    def follow(self, start: FollowStart | HostStarts, matches: Matches) -> Following:
        """What is written from `start` on; works even if nothing matches yet."""

    @abstractmethod
    async def aclose(self) -> None: ...


class ExportReader(JournalReader):
    """A journal that gives the export format: journalctl's and gatewayd's.

    `is_one_host` if it holds no other host's entries. `skipped` counts entries that could not be read.
    """

    is_one_host = False
    skipped = 0

    @abstractmethod
    def _ask(self, asks: Sequence[Ask]) -> Entries:
        """The answers in order: one list for each question, several for the last one as they come.

        Only the last one may be for many entries. If it follows, it ends after a long silence.
        """

    async def forward(self, start: Begin | At | AtCursor, matches: Matches, most: int) -> Slice:
        return await self._slice(Ask(start, matches, most + 1), most)

    async def backward(self, start: Tail | At | AtCursor, matches: Matches, most: int) -> Slice:
        return await self._slice(Ask(start, matches, most + 1, back=True), most)

    def stream(
        self, start: Start, matches: Matches, *, back: bool = False, page: int = PAGE_ENTRIES
    ) -> Entries:
        return self._beyond(Ask(start, matches, back=back))

    async def entry(self, cursor: Cursor) -> JournalEntry | None:
        """The entry of a cursor; None if it no longer exists."""
        return _entry_with(cursor, (await self._all([Ask(AtCursor(cursor), most=0)]))[0])

    async def last_of_each(self, groups: Sequence[Matches]) -> list[JournalEntry | None]:
        """The last entry that each of these matches, None if there is none."""
        found: list[JournalEntry | None] = []
        asks = [Ask(Tail(), group, 1, back=True) for group in groups]
        for at in range(0, len(asks), ASKED_AT_ONCE):
            answers = await self._all(asks[at : at + ASKED_AT_ONCE])
            found += [entries[0] if entries else None for entries in answers]
        return found

    def follow(self, start: FollowStart | HostStarts, matches: Matches) -> Following:
        return LaneFollowing(self, start, checked(matches, self.name))

    async def _beyond(self, ask: Ask) -> Entries:
        """The answer to one question, without entries before its start."""
        beyond = CursorFilter(own_cursor(ask.start), back=ask.back)
        asked = ask._replace(matches=checked(ask.matches, self.name))
        async with aclosing(self._ask([asked])) as answer:
            async for some in answer:
                if kept := beyond(some):
                    yield kept

    async def _slice(self, ask: Ask, most: int) -> Slice:
        found: list[JournalEntry] = []
        async with aclosing(self._beyond(ask)) as answer:
            async for some in answer:
                found += some
                if len(found) > most:
                    break
        entries = found[:most]
        cursor = entries[-1].cursor if entries else own_cursor(ask.start)
        return Slice(tuple(entries[::-1] if ask.back else entries), cursor, len(found) <= most)

    async def _all(self, asks: Sequence[Ask]) -> list[list[JournalEntry]]:
        async with aclosing(self._ask(asks)) as answers:
            came = [some async for some in answers]
        before = len(asks) - 1
        return [*came[:before], [entry for some in came[before:] for entry in some]]

    async def _entries(self, pieces: AsyncIterable[bytes], matches: Matches = ()) -> Entries:
        """The wanted entries of export text as it comes. Raises SourceError if it ends inside one."""
        parser = ExportParser()
        skipped = 0
        async for piece in pieces:
            raws = parser.feed(piece)
            self.skipped, skipped = self.skipped + parser.skipped - skipped, parser.skipped
            made = [entry_of_export(raw) for raw in raws if fulfils(raw, matches)]
            if entries := [entry for entry in made if entry is not None]:
                yield entries
        if parser.pending:
            raise SourceUnreachable(f"{self.name}: it ended in the middle of an entry; it is read again")

    async def _whole(self, text: bytes) -> list[JournalEntry]:
        async def pieces() -> AsyncGenerator[bytes, None]:
            yield text

        return [entry async for some in self._entries(pieces()) for entry in some]

    async def listen(self, start: FollowStart, matches: Matches, scope: Matches) -> Slices:
        """What is there from `start` on, then what is written, until the connection breaks with SourceError.

        Each slice is new and comes after the one before. The first one says that it is connected; `at_edge`
        says that all there was has been given, from then on entries come as they are written. `scope` are the
        hosts whose entries these are, () for all. After a silence all is asked again.
        """
        while True:
            async with aclosing(self._catch_up(start, matches, scope)) as slices:
                async for found in slices:
                    start = start if found.cursor is None else AtCursor(found.cursor)
                    yield found
            limit_s = None
            async with aclosing(self._beyond(Ask(start, matches, follows=True))) as written:
                with contextlib.suppress(TimeoutError, StopAsyncIteration):
                    while True:
                        async with asyncio.timeout(limit_s):
                            some = await anext(written)
                        start, limit_s = AtCursor(some[-1].cursor), QUIET_S if matches else None
                        yield Slice(tuple(some), some[-1].cursor, True)

    async def _catch_up(self, start: FollowStart, matches: Matches, scope: Matches) -> Slices:
        """What there is up to the edge, the last entry of `scope` when it was asked for."""
        own = own_cursor(start)
        asks = [] if own is None else [Ask(AtCursor(own), most=0)]
        asks += [Ask(Tail(), scope, 1, back=True), Ask(start, matches)]
        beyond = CursorFilter(own)
        async with aclosing(self._ask(asks)) as answers:
            lost = own is not None and _entry_with(own, await anext(answers)) is None
            last = await anext(answers)
            # If nothing was found, this is the end as it was, unless reading began after it
            is_before = not last or (isinstance(start, At) and last[0].at < start.time)
            edge = own if is_before else last[0].cursor
            yield Slice((), None, False, lost)
            async for some in answers:
                if kept := beyond(some):
                    edge = kept[-1].cursor
                    yield Slice(tuple(kept), edge, False)
        yield Slice((), edge, True)


def _entry_with(cursor: Cursor, near: Sequence[JournalEntry]) -> JournalEntry | None:
    return next((entry for entry in near if entry.cursor == cursor), None)


def checked(matches: Matches, name: str) -> Matches:
    """The same question in its shortest form. Raises SourceError for one that no journal can answer.

    A group without any match matches every entry.
    """
    for field, value in (match for group in matches for match in group):
        check_field(field, name)
        if "\0" in value:
            raise SourceError(f"{name}: cannot be searched for a value of {field} with a NUL in it")
    return () if any(not group for group in matches) else tuple(dict.fromkeys(matches))


def check_field(field: str, name: str) -> None:
    if not FIELD_NAME.fullmatch(field):
        raise SourceError(f"{name}: no field of a journal is called {field!r:.80}")


def fulfils(entry: Raw, matches: Matches) -> bool:
    return not matches or any(
        all(any(_has(entry, *match) for match in group if match[0] == field) for field, _ in group)
        for group in matches
    )


def _has(entry: Raw, field: str, text: str) -> bool:
    value, wanted = entry.get(field.encode()), text.encode("utf-8", "surrogateescape")
    return wanted in value if isinstance(value, list) else wanted == value
