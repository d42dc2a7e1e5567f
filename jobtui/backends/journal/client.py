"""What every way to a journal can do, and what all of them share: matches, journalctl's words, cursors.

All methods raise SourceError and nothing else. None of them blocks the event loop. One call at a time is in
flight per reader; several readers may be open on one journal.

A start is given to journalctl as `--cursor`, and its entry dropped when it comes first: with `--after-
cursor`, systemd before 254 loses the first wanted entry when the cursor's is not among the wanted ones.
Slices are bounded with `--lines` only where every release counts from there on; with `--since` some count
from the end. Cursors are compared as libsystemd does when it merges files; to everybody else a cursor is
opaque.
"""

import re
from functools import cmp_to_key
from typing import NamedTuple, Protocol

from jobtui.formats.journal_export import Raw
from jobtui.model.clock import Nanos
from jobtui.model.journal import (
    At,
    Beside,
    Cursor,
    Fields,
    Head,
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
from jobtui.model.source_errors import SourceError


class Following(Protocol):
    """Entries as they are written, in order, none lost, none twice, also over a break of the connection."""

    async def take(self, most: int) -> Slice:
        """What has come since the last call, up to `most` entries; nothing is waited for.

        After a break it goes on behind the last entry that was given.
        """

    async def changed(self, timeout_s: float) -> None:
        """Return when `take` may find something, at the latest after `timeout_s`."""

    async def aclose(self) -> None:
        """Release what is held. May be called twice."""


class JournalReader(Protocol):
    """A journal that can be read both ways from any place, and followed."""

    @property
    def name(self) -> str:
        """As it was configured: `local`, a directory, `ssh://host`, `http://host:port`."""

    async def forward(self, start: Head | At | Beside, matches: Matches, most: int) -> Slice:
        """Up to `most` wanted entries from `start` on."""

    async def backward(self, start: Tail | At | Beside, matches: Matches, most: int) -> Slice:
        """Up to `most` wanted entries before `start`; the slice is still oldest first."""

    async def fields(self, cursor: Cursor) -> Fields | None:
        """Everything one entry holds; None when it is there no more."""

    async def values(self, field: str) -> tuple[str, ...]:
        """The values that occur in a field of few ones, such as `_SYSTEMD_UNIT`; never asked of MESSAGE."""

    async def condition(self) -> JournalCondition:
        """How the journal stands."""

    def follow(self, start: Start, matches: Matches) -> Following:
        """What is written from `start` on; sound also where nothing matches yet.

        A `Tail` is the end as it is when `take` gives an edge for the first time: what is written after that
        comes. The cursor of its slices is for following from there and for nothing else: it may be a place in
        each of several hosts' entries.
        """

    async def aclose(self) -> None:
        """Release what is held. May be called twice."""


NEAR_ENTRIES = 16
"""Where an entry is, this many may come before it: other hosts may have sent in the same microsecond."""

FIELD_NAME = re.compile(r"[A-Z_][A-Z0-9_]{0,63}", re.ASCII)

Words = list[str]


def without_surplus(matches: Matches) -> Matches:
    """The same question in its shortest form: a group without any match wants every entry."""
    return () if any(not group for group in matches) else tuple(dict.fromkeys(matches))


def checked(matches: Matches, name: str) -> Matches:
    """The same question in its shortest form. Raises SourceError for what no journal can be asked."""
    check(matches, name)
    return without_surplus(matches)


def check(matches: Matches, name: str) -> None:
    for field, value in (match for group in matches for match in group):
        check_field(field, name)
        if "\0" in value:
            raise SourceError(f"{name}: cannot be asked for a value of {field} with a NUL in it")


def check_field(field: str, name: str) -> None:
    if not FIELD_NAME.fullmatch(field):
        raise SourceError(f"{name}: no field of a journal is called {field!r:.80}")


def is_exact(matches: Matches) -> bool:
    """Whether a journal takes these groups for what they say: it takes one field given twice for either."""
    return all(len({field for field, _ in group}) == len(set(group)) for group in matches)


def fulfils(entry: Raw, matches: Matches) -> bool:
    return not matches or any(all(_has(entry, match) for match in group) for group in matches)


def _has(entry: Raw, match: Match) -> bool:
    value = entry.get(match[0].encode())
    wanted = match[1].encode("utf-8", "surrogateescape")
    return wanted in value if isinstance(value, list) else wanted == value


def match_words(matches: Matches) -> Words:
    words: Words = []
    for group in matches:
        words += ["+"] if words else []
        words += [f"{field}={value}" for field, value in group]
    return words


def forward_words(start: Start, count: int | None) -> Words:
    """Entries from a place on, oldest first; its own entry is among them. `count` None asks for all."""
    if isinstance(start, Beside):
        return [f"--cursor={start.cursor}", *_bound(count)]
    return [f"--since=@{_seconds(from_micros(start.time))}"] if isinstance(start, At) else []


def backward_words(start: Tail | At | Beside, count: int | None) -> Words:
    """Entries up to a place, newest first; its own entry is among them."""
    words = ["--reverse", *_bound(count)]
    if isinstance(start, Beside):
        return [*words, f"--cursor={start.cursor}"]
    return (
        [*words, f"--until=@{_seconds(max(from_micros(start.time) - 1, 0))}"]
        if isinstance(start, At)
        else words
    )


def near_words(cursor: Cursor) -> Words:
    return [f"--cursor={cursor}", f"--lines={NEAR_ENTRIES}"]


def follow_words(start: Start) -> Words:
    return ["--follow", "--no-tail", *forward_words(start, None)]


LAST_WORDS: Words = ["--lines=1"]
"""The last entry there is."""


def _bound(count: int | None) -> Words:
    return [] if count is None else [f"--lines={count}"]


def _seconds(micros: int) -> str:
    return f"{micros // 1_000_000}.{micros % 1_000_000:06d}"


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


def is_beyond(one: Position, other: Position, *, back: bool = False) -> bool:
    """Whether `one` comes behind `other`, in the direction that is read in. The same entry does not."""
    if one == other:
        return False
    found = compare(one, other)
    return found <= 0 if back else found >= 0


class Behind:
    """Lets entries pass from the first on that comes behind a place, in the direction they are read in."""

    def __init__(self, place: Cursor | None, *, back: bool = False) -> None:
        self._place = None if place is None else position(place)
        self._back = back

    def __call__(self, entries: list[JournalEntry]) -> list[JournalEntry]:
        for nth, entry in enumerate(entries):
            if self._place is None:
                return entries[nth:]
            if is_beyond(position(entry.cursor), self._place, back=self._back):
                self._place = None
                return entries[nth:]
        return []


def _compare(one: int | None, other: int | None) -> int:
    if one is None or other is None:
        return 0
    return (one > other) - (one < other)


def time_cursor(micros: int) -> Cursor:
    """A cursor that stands for a time of receipt and no entry, as libsystemd takes it too."""
    return Cursor(f"t={max(micros, 0):x}")


def from_micros(time: Nanos) -> int:
    """The first microsecond that is not before a time."""
    return max(-(-time // 1_000), 0)


def merged(entries: list[JournalEntry]) -> list[JournalEntry]:
    once = {entry.cursor: entry for entry in entries}
    places = {cursor: position(cursor) for cursor in once}
    key = cmp_to_key(compare)
    return [once[cursor] for cursor in sorted(once, key=lambda cursor: key(places[cursor]))]


def reached(start: Start, last: JournalEntry | None) -> Cursor | None:
    """Where reading stands that found nothing: at the end as it was, unless it begins later than that."""
    if last is None or (isinstance(start, At) and last.at < start.time):
        return own_cursor(start)
    return last.cursor


def slice_of(
    found: list[JournalEntry], most: int, stand: Cursor | None, lost: bool, *, back: bool = False
) -> Slice:
    """The first `most` of what was found, the last when it was read back; one more says that there is more.

    `stand` is where reading stands that found nothing.
    """
    entries = tuple(found[-most:] if back else found[:most])
    if entries:
        stand = entries[0 if back else -1].cursor
    return Slice(entries, stand, len(found) <= most, lost)
