"""Reading a journal: pages both ways from any place, all from a place on, and following.

journalctl and gatewayd both give the export format. They answer questions (`Ask`) with entries; everything
else is done here, for both.

Matches mean what they mean to journalctl: a group wants every field it names, and of a field that it names
twice either value. Cursors are compared as libsystemd does when it merges files; to everybody else a cursor
is opaque. An answer begins with the entry of its cursor, or with others of that microsecond, which are
dropped here: systemd before 254 loses the first wanted entry after a cursor whose own entry is not wanted.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from contextlib import aclosing
from functools import cmp_to_key
from typing import NamedTuple

from jobtui.backends.journal.following import Following, HostPlaces, LaneFollowing
from jobtui.formats.journal_export import ExportParser, Raw, entry_of_export
from jobtui.model.clock import Nanos
from jobtui.model.journal import (
    At,
    Beside,
    Cursor,
    FollowStart,
    Head,
    JournalCondition,
    JournalEntry,
    Matches,
    Slice,
    Start,
    Tail,
    own_cursor,
)
from jobtui.model.numbers import of_base
from jobtui.model.source_errors import SourceError, SourceUnreachable

NEAR_ENTRIES = 16
"""Where an entry is, this many may come before it: other hosts may have sent in the same microsecond."""
PAGE_ENTRIES = 1_000
ASKED_AT_ONCE = 50
"""Questions in one line for a shell."""

FIELD_NAME = re.compile(r"[A-Z_][A-Z0-9_]{0,63}", re.ASCII)


class Position(NamedTuple):
    """What a cursor is made of (sd_journal_get_cursor in systemd's sd-journal.c). None where it lacks it."""

    seqnum_id: str | None
    seqnum: int | None
    boot: str | None
    monotonic: int | None
    realtime: int | None
    hash: int | None


def position(cursor: Cursor) -> Position:
    """The parts of a cursor; what makes no sense in it is None."""
    parts = dict(part.split("=", 1) for part in cursor.split(";") if "=" in part)
    numbers = [of_base(parts.get(key), 16) for key in ("i", "m", "t", "x")]
    return Position(parts.get("s"), numbers[0], parts.get("b"), *numbers[1:])


def compare(one: Position, other: Position) -> int:
    """Below 0 when `one` comes first, above 0 when `other` does; 0 when that cannot be told."""
    if one.seqnum_id is not None and one.seqnum_id == other.seqnum_id and one.seqnum != other.seqnum:
        return _compare(one.seqnum, other.seqnum)
    if one.boot is not None and one.boot == other.boot and one.monotonic != other.monotonic:
        return _compare(one.monotonic, other.monotonic)
    return _compare(one.realtime, other.realtime) or _compare(one.hash, other.hash)


def _compare(one: int | None, other: int | None) -> int:
    if one is None or other is None:
        return 0
    return (one > other) - (one < other)


class Beyond:
    """Lets entries pass from the first on that lies beyond a cursor, in the direction they are read in."""

    def __init__(self, cursor: Cursor | None, *, back: bool = False) -> None:
        self._place = None if cursor is None else position(cursor)
        self._back = back

    def __call__(self, entries: list[JournalEntry]) -> list[JournalEntry]:
        if self._place is None:
            return entries
        for nth, entry in enumerate(entries):
            place = position(entry.cursor)
            order = compare(place, self._place)
            if place != self._place and (order <= 0 if self._back else order >= 0):
                self._place = None
                return entries[nth:]
        return []


def merged(entries: list[JournalEntry]) -> list[JournalEntry]:
    """Entries of several answers in the journal's order, each once."""
    once = {entry.cursor: entry for entry in entries}
    places = {cursor: position(cursor) for cursor in once}
    key = cmp_to_key(compare)
    return [once[cursor] for cursor in sorted(once, key=lambda cursor: key(places[cursor]))]


def from_micros(time: Nanos) -> int:
    return max(-(-time // 1_000), 0)


def time_cursor(micros: int) -> Cursor:
    """A cursor that means a time of receipt and no entry, as libsystemd takes it too."""
    return Cursor(f"t={max(micros, 0):x}")


class Ask(NamedTuple):
    """A question for entries from `start` on, or with `back` for those before it, newest first.

    `most` is how many are wanted beyond `start`, 0 for what is at a cursor itself, None for all. With
    `follows` those come, too, that are written from now on.
    """

    start: Start = Head()
    matches: Matches = ()
    most: int | None = None
    back: bool = False
    follows: bool = False


class JournalReader(ABC):
    """A journal that can be read both ways from any place, and followed.

    All of it raises SourceError and nothing else, and never blocks. Several calls may be in flight.
    """

    name: str
    """As it was configured: `local`, a directory, `ssh://host`, `http://host:port`."""

    @abstractmethod
    async def forward(self, start: Head | At | Beside, matches: Matches, most: int) -> Slice:
        """Up to `most` wanted entries from `start` on."""

    @abstractmethod
    async def backward(self, start: Tail | At | Beside, matches: Matches, most: int) -> Slice:
        """Up to `most` wanted entries before `start`; the slice is still oldest first."""

    async def stream(
        self, start: Start, matches: Matches, *, back: bool = False
    ) -> AsyncGenerator[list[JournalEntry], None]:
        """All wanted entries from `start` on, or before it, newest first. Close it to read no further."""
        while True:
            if back and not isinstance(start, Head):
                found = await self.backward(start, matches, PAGE_ENTRIES)
            elif not back and not isinstance(start, Tail):
                found = await self.forward(start, matches, PAGE_ENTRIES)
            else:
                return
            if found.entries:
                yield [*found.entries[:: -1 if back else 1]]
            if found.at_edge or found.cursor is None:
                return
            start = Beside(found.cursor)

    @abstractmethod
    async def values(self, *fields: str) -> dict[str, tuple[str, ...]]:
        """The values that occur in fields of few ones, such as `_SYSTEMD_UNIT`; never asked of MESSAGE."""

    @abstractmethod
    async def condition(self) -> JournalCondition:
        """Which of its files are read."""

    @abstractmethod
    def follow(self, start: FollowStart | HostPlaces, matches: Matches) -> Following:
        """What is written from `start` on; sound also where nothing matches yet."""

    @abstractmethod
    async def aclose(self) -> None:
        """Release what is held. May be called twice."""


class ExportReader(JournalReader):
    """A journal that gives the export format: journalctl's and gatewayd's.

    `is_one_host` where it holds no other host's entries. `skipped` counts what came and made no sense.
    """

    is_one_host = False
    skipped = 0

    @abstractmethod
    def _ask(self, asks: Sequence[Ask]) -> AsyncGenerator[list[JournalEntry], None]:
        """The answers one after the other: one list for each question, for the last one lists as they come.

        Only the last one may be for many entries. When it follows, it ends where nothing was heard for long.
        """

    async def forward(self, start: Head | At | Beside, matches: Matches, most: int) -> Slice:
        return await self._slice(Ask(start, matches, most + 1), most)

    async def backward(self, start: Tail | At | Beside, matches: Matches, most: int) -> Slice:
        return await self._slice(Ask(start, matches, most + 1, back=True), most)

    def stream(
        self, start: Start, matches: Matches, *, back: bool = False
    ) -> AsyncGenerator[list[JournalEntry], None]:
        return self._beyond(Ask(start, matches, back=back))

    async def entry(self, cursor: Cursor) -> JournalEntry | None:
        """The entry that a cursor is of; None when it is there no more."""
        return _found(cursor, (await self._all([_near(cursor)]))[0])

    async def last_of_each(self, groups: Sequence[Matches]) -> list[JournalEntry | None]:
        """The last entry that each of these wants, None where there is none."""
        found: list[JournalEntry | None] = []
        for at in range(0, len(groups), ASKED_AT_ONCE):
            answers = await self._all([_last(group) for group in groups[at : at + ASKED_AT_ONCE]])
            found += [entries[0] if entries else None for entries in answers]
        return found

    def follow(self, start: FollowStart | HostPlaces, matches: Matches) -> Following:
        return LaneFollowing(self, start, checked(matches, self.name))

    # Slices.

    async def _beyond(self, ask: Ask) -> AsyncGenerator[list[JournalEntry], None]:
        """The answer to one question, without what precedes its start."""
        beyond = Beyond(own_cursor(ask.start), back=ask.back)
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
        """The answers to some questions for few entries."""
        async with aclosing(self._ask(asks)) as answers:
            came = [some async for some in answers]
        before = len(asks) - 1
        return [*came[:before], [entry for some in came[before:] for entry in some]]

    async def _entries(
        self, pieces: AsyncIterable[bytes], matches: Matches = ()
    ) -> AsyncGenerator[list[JournalEntry], None]:
        """The wanted entries of export text as it comes. Raises SourceError when it ends inside one."""
        parser = ExportParser()
        skipped = 0
        async for piece in pieces:
            raws = parser.feed(piece)
            self.skipped, skipped = self.skipped + parser.skipped - skipped, parser.skipped
            made = [entry_of_export(raw) for raw in raws if fulfils(raw, matches)]
            if entries := [entry for entry in made if entry is not None]:
                yield entries
        if parser.pending:
            raise SourceUnreachable(f"{self.name}: it broke off in the middle of an entry; it is read again")

    async def _whole(self, text: bytes) -> list[JournalEntry]:
        async def pieces() -> AsyncGenerator[bytes, None]:
            yield text

        return [entry async for some in self._entries(pieces()) for entry in some]

    # Following.

    async def listen(
        self, start: FollowStart, matches: Matches, scope: Matches
    ) -> AsyncGenerator[Slice, None]:
        """What is there from `start` on, then what is written, until the connection breaks with SourceError.

        Each slice is new and comes after the one before. The first one says that it is connected; `at_edge`
        says that all there was has been given, from then on entries come as they are written. `scope` are the
        hosts whose entries these are, () for all. Where nothing was heard for long it is all asked again.
        """
        while True:
            async with aclosing(self._catch_up(start, matches, scope)) as slices:
                async for found in slices:
                    start = start if found.cursor is None else Beside(found.cursor)
                    yield found
            async with aclosing(self._beyond(Ask(start, matches, follows=True))) as written:
                async for some in written:
                    start = Beside(some[-1].cursor)
                    yield Slice(tuple(some), some[-1].cursor, True)

    async def _catch_up(
        self, start: FollowStart, matches: Matches, scope: Matches
    ) -> AsyncGenerator[Slice, None]:
        """What is there up to the edge, which is the last entry of `scope` as it was before."""
        own = own_cursor(start)
        near = [] if own is None else [_near(own)]
        beyond = Beyond(own)
        async with aclosing(self._ask([*near, _last(scope), Ask(start, matches)])) as answers:
            lost = own is not None and _found(own, await anext(answers)) is None
            last = await anext(answers)
            # Reading that finds nothing is at the end as it was, unless it begins later than that
            is_before = not last or (isinstance(start, At) and last[0].at < start.time)
            edge = own if is_before else last[0].cursor
            yield Slice((), None, False, lost)
            async for some in answers:
                if kept := beyond(some):
                    edge = kept[-1].cursor
                    yield Slice(tuple(kept), edge, False)
        yield Slice((), edge, True)


def _near(cursor: Cursor) -> Ask:
    return Ask(Beside(cursor), most=0)


def _last(scope: Matches) -> Ask:
    return Ask(Tail(), scope, 1, back=True)


def _found(cursor: Cursor, near: Sequence[JournalEntry]) -> JournalEntry | None:
    return next((entry for entry in near if entry.cursor == cursor), None)


def checked(matches: Matches, name: str) -> Matches:
    """The same question in its shortest form. Raises SourceError for what no journal can be asked.

    A group without any match wants every entry.
    """
    for field, value in (match for group in matches for match in group):
        check_field(field, name)
        if "\0" in value:
            raise SourceError(f"{name}: cannot be asked for a value of {field} with a NUL in it")
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
