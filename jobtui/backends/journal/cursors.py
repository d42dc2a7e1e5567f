"""Cursors of a journal: which comes first, and times as cursors.

They are compared as libsystemd does when it merges files.
"""

from functools import cmp_to_key
from typing import NamedTuple

from jobtui.model.clock import Nanos
from jobtui.model.journal import Cursor, JournalEntry
from jobtui.model.numbers import of_base


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
    """The first microsecond that is not before a time."""
    return max(-(-time // 1_000), 0)


def time_cursor(micros: int) -> Cursor:
    """A cursor that means a time of receipt and no entry, as libsystemd takes it too."""
    return Cursor(f"t={max(micros, 0):x}")
