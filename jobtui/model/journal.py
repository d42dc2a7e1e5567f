"""The terms in which a journal is read: entries, where reading begins, and what it gives.

Fields and their traps: systemd.journal-fields(7), systemd's JOURNAL_EXPORT_FORMATS document.
"""

from typing import NamedTuple, NewType

import msgspec

from jobtui.model.clock import MICROSECOND, Nanos

Cursor = NewType("Cursor", str)
"""The position of an entry. Opaque; two journals give one entry different cursors."""

Match = tuple[str, str]

Matches = tuple[tuple[Match, ...], ...]
"""Which entries are wanted: those that have every match of a group, for any group. Empty: every entry."""


class JournalEntry(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One entry. `at` is when the journal received it, `sent_at` the time by the sender's clock, if given.

    `message` is decoded with errors replaced and perhaps cut: not masked, not safe for a terminal. `size` is
    its length in bytes as stored. A missing field is "" or None. `monotonic_us` can be compared within one
    `boot` only. `is_begun`: Docker has split a long line, and the rest is in later entries.
    """

    cursor: Cursor
    at: Nanos
    message: str
    size: int
    sent_at: Nanos | None = None
    host: str = ""
    machine: str = ""
    unit: str = ""
    identifier: str = ""
    container: str = ""
    container_id: str = ""
    pid: int | None = None
    priority: int | None = None
    boot: str = ""
    monotonic_us: int | None = None
    is_begun: bool = False


def is_host(name: str, other: str) -> bool:
    """Whether two names mean one host; either may lack the domain. Addresses are not names."""
    one, two = name.lower(), other.lower()
    short = one.partition(".")[0]
    return bool(one) and (one == two or (two.partition(".")[0] == short and not short.isdecimal()))


class Begin(NamedTuple):
    """The beginning of the journal."""


class Tail(NamedTuple):
    """The present end of the journal."""


class At(NamedTuple):
    """A time: the first entry received then or later."""

    time: Nanos


class AtCursor(NamedTuple):
    """The position of an entry, which is itself not read."""

    cursor: Cursor


Start = Begin | Tail | At | AtCursor
FollowStart = Begin | At | AtCursor
"""Where following may begin, of one host's entries."""


def own_cursor(start: Start) -> Cursor | None:
    """The cursor of the entry at which reading begins; None for another start."""
    return start.cursor if isinstance(start, AtCursor) else None


class Slice(NamedTuple):
    """Entries next to each other in the journal's order, oldest first.

    `cursor` is the last entry that was examined in the direction of reading, wanted or not; None if the
    journal was empty. `at_edge`: there is no more on this side for now. `lost`: the entry at which reading
    was to begin no longer exists, so entries between it and these may be missing. `note`: what was left
    out, or following cannot guarantee; "" for nothing. `begins_at`: entries before it were left out as too
    many.
    """

    entries: tuple[JournalEntry, ...]
    cursor: Cursor | None
    at_edge: bool
    lost: bool = False
    note: str = ""
    begins_at: Nanos = Nanos(0)


ORDINAL_BITS = 12
"""Bits of a position that number the entries received in the same microsecond."""


def position_at(at: Nanos) -> int:
    """The position, as of a line of a log, of the first entry received at this time."""
    return at // MICROSECOND << ORDINAL_BITS


def time_at(position: int) -> Nanos:
    return Nanos((position >> ORDINAL_BITS) * MICROSECOND)


class Gap(NamedTuple):
    """A time whose entries are missing: from when to when, and why, in words. `what` names the stream, "" for
    all of them. `end` is None while it lasts. `recovered`: the entries were read later.
    """

    start: Nanos
    end: Nanos | None
    why: str
    what: str = ""
    recovered: bool = False


class JournalCondition(NamedTuple):
    """How many files of a journal could be read, how many could not, and why, in words."""

    files: int | None = None
    unreadable: int = 0
    note: str = ""
