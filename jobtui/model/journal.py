"""What a journal holds and how it is asked, whoever reads it: entries, where to begin, what came back.

Fields and their traps: systemd.journal-fields(7), systemd's JOURNAL_EXPORT_FORMATS document.
"""

from typing import NamedTuple, NewType

import msgspec

from jobtui.model.clock import Nanos
from jobtui.model.pages import Place

Cursor = NewType("Cursor", str)
"""Where an entry is, in the journal's own words. Opaque; another journal has another one for it."""

Fields = dict[str, tuple[bytes, ...]]
"""All fields of one entry as stored; a field may occur several times."""

Match = tuple[str, str]
"""A field and the value it must have."""

Matches = tuple[tuple[Match, ...], ...]
"""Which entries are wanted: any of these groups, of a group every match. None at all: every entry."""


class JournalEntry(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One entry. `at` is when the journal received it, `sent_at` the sender's own clock where it gave one.

    `message` is decoded with errors replaced and perhaps cut, `size` its length in bytes as stored: not
    masked, not safe for a terminal. What an entry does not have is "" or None. `monotonic_us` is comparable
    within one `boot` only. `is_begun`: docker has split a long line, and the rest comes with later entries.
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
    """Whether two names are of one host; either may lack the domain. Addresses are not names."""
    one, two = name.lower(), other.lower()
    short = one.partition(".")[0]
    return bool(one) and (one == two or (two.partition(".")[0] == short and not short.isdecimal()))


class Head(NamedTuple):
    """The beginning of the journal."""


class Tail(NamedTuple):
    """The end of the journal as it is now."""


class At(NamedTuple):
    """A time: the first entry received then or later."""

    time: Nanos


class Beside(NamedTuple):
    """An entry; it is not among what is read."""

    cursor: Cursor


Start = Head | Tail | At | Beside


def own_cursor(start: Start) -> Cursor | None:
    """The entry that a place is beside; None for a place that is beside none."""
    return start.cursor if isinstance(start, Beside) else None


class Slice(NamedTuple):
    """Entries next to each other in the journal's order, oldest first.

    `cursor` is where reading stands: at the last entry looked at in the direction asked for, wanted or not;
    None when the journal was empty. `at_edge`: there is no more on that side for now. `lost`: the entry to
    begin beside is there no more, so what was between it and these is unknown. `note`: what following cannot
    vouch for, "" for nothing.
    """

    entries: tuple[JournalEntry, ...]
    cursor: Cursor | None
    at_edge: bool
    lost: bool = False
    note: str = ""


ORDINAL_BITS = 12
"""Bits of a place that tell entries received in the same microsecond apart."""
_MICROSECOND = 1_000


def place_at(at: Nanos) -> Place:
    """The place, as of a line of a log, of the first entry received at this time."""
    return at // _MICROSECOND << ORDINAL_BITS


def time_at(place: Place) -> Nanos:
    return Nanos((place >> ORDINAL_BITS) * _MICROSECOND)


class Gap(NamedTuple):
    """What is known to be missing: from when to when, and why, in words. `what` names whose, "" for all.

    `end` is None while it lasts. `recovered`: it was read later on, so that nothing is missing any more.
    """

    start: Nanos
    end: Nanos | None
    why: str
    what: str = ""
    recovered: bool = False


class JournalCondition(NamedTuple):
    """How a journal stands: how many of its files could be read, how many not, and why not, in words."""

    files: int | None = None
    unreadable: int = 0
    note: str = ""
