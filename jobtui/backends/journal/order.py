"""The order of a journal's entries, out of their cursors: as libsystemd compares them when it merges files.

Only for who has to put together what several questions gave; to everybody else a cursor is opaque.
"""

from functools import cmp_to_key
from typing import NamedTuple

from jobtui.model.clock import Nanos
from jobtui.model.journal import Cursor, JournalEntry


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
    numbers = [_number(parts.get(key)) for key in ("i", "m", "t", "x")]
    return Position(parts.get("s"), numbers[0], parts.get("b"), *numbers[1:])


def _number(text: str | None) -> int | None:
    try:
        return None if text is None else int(text, 16)
    except ValueError:
        return None


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
        """Those of the next entries that pass."""
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
    """Entries of one journal in its order, none twice."""
    once = {entry.cursor: entry for entry in entries}
    places = {cursor: position(cursor) for cursor in once}
    key = cmp_to_key(compare)
    return [once[cursor] for cursor in sorted(once, key=lambda cursor: key(places[cursor]))]
