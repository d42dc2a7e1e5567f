"""How far a journal has been followed, also one that is collected from several hosts.

libsystemd gives entries of all files by their time, and never one that belongs before where it stands: what
another host sends late is lost to who follows them together. So each machine has a place of its own once what
was there is read. Within one machine entries come in the order they were written. An entry that names no
machine is followed only where no other does, or one.
"""

from collections.abc import Iterable, Mapping
from heapq import merge
from typing import NamedTuple

from jobtui.backends.journal.reading import Reading
from jobtui.model.journal import At, Beside, Cursor, Head, JournalEntry, Matches, Slice, Start, Tail

MACHINE = "_MACHINE_ID"


class Trail(NamedTuple):
    """Where following stands: at `together`, as long as not more than one machine is known.

    Then `apart` has the place of each. Up to `ends` they are still read together from `together` on, in order
    of time.
    """

    start: Start
    together: Start
    known: frozenset[str] = frozenset()
    ends: Mapping[str, Cursor] = {}
    apart: Mapping[str, Start] = {}


def trail_from(start: Start) -> Trail:
    """Nothing followed yet."""
    return Trail(start, start)


def follow(reading: Reading, trail: Trail, matches: Matches, most: int) -> tuple[Slice, Trail]:
    """Up to `most` entries that have come, and how far that is. Raises as the reading does."""
    machines = frozenset(reading.values(MACHINE))
    if not trail.apart:
        if len(machines) < 2:
            return _together(reading, trail._replace(known=machines), matches, most)
        trail = _divided(reading, trail, matches, machines)
    fresh: Start = trail.start if isinstance(trail.start, At) else Head()
    trail = trail._replace(apart={**dict.fromkeys(machines, fresh), **trail.apart})
    return (_catch_up if trail.ends else _apart)(reading, trail, matches, most)


def _together(reading: Reading, trail: Trail, matches: Matches, most: int) -> tuple[Slice, Trail]:
    found, place = _step(reading, trail.together, matches, most)
    return found, trail._replace(together=place)


def _step(reading: Reading, place: Start, matches: Matches, most: int) -> tuple[Slice, Start]:
    """What is behind a place, and the next place."""
    if isinstance(place, Tail):
        found = Slice((), reading.last(), True)
    else:
        found = reading.forward(place, matches, most)
    if not found.entries and isinstance(place, At):
        return found, place
    return found, Head() if found.cursor is None else Beside(found.cursor)


def _divided(reading: Reading, trail: Trail, matches: Matches, machines: Iterable[str]) -> Trail:
    """A place for each machine: behind all that is there now, which is to be read together before."""
    if trail.known:
        return trail._replace(apart=dict.fromkeys(trail.known, trail.together))
    place = trail.together
    ends: dict[str, Cursor] = {}
    apart: dict[str, Start] = {}
    for machine in machines:
        last = reading.backward(Tail(), _of(machine, ()), 1).cursor
        apart[machine] = place if isinstance(place, At) or last is None else Beside(last)
        if isinstance(place, Tail):
            continue
        wanted = _of(machine, matches)
        if reading.forward(place, wanted, 1).entries:
            ends[machine] = reading.backward(Tail(), wanted, 1).entries[-1].cursor
            apart[machine] = Beside(ends[machine])
    return trail._replace(ends=ends, apart=apart)


def _catch_up(reading: Reading, trail: Trail, matches: Matches, most: int) -> tuple[Slice, Trail]:
    """What was there when following began, of all machines in order of time."""
    found, place = _step(reading, trail.together, matches, most)
    ends = dict(trail.ends)
    entries: list[JournalEntry] = []
    for entry in found.entries:
        if entry.machine in ends or not entry.machine:
            entries.append(entry)
        if ends.get(entry.machine) == entry.cursor:
            del ends[entry.machine]
    if found.at_edge:
        ends.clear()
    return Slice(tuple(entries), found.cursor, False, found.lost), trail._replace(together=place, ends=ends)


def _apart(reading: Reading, trail: Trail, matches: Matches, most: int) -> tuple[Slice, Trail]:
    """What has come of each machine; first of those that had no turn the last time."""
    waiting, places = dict(trail.apart), dict[str, Start]()
    parts: list[Slice] = []
    left = most
    while waiting and left > 0:
        machine = next(iter(waiting))
        part, place = _step_of(reading, waiting[machine], _of(machine, ()), _of(machine, matches), left)
        del waiting[machine]
        places[machine] = place
        parts.append(part)
        left -= len(part.entries)
    entries = tuple(merge(*(part.entries for part in parts), key=lambda entry: entry.at))
    cursor = entries[-1].cursor if entries else next((part.cursor for part in parts if part.cursor), None)
    at_edge = not waiting and all(part.at_edge for part in parts)
    lost = any(part.lost for part in parts)
    return Slice(entries, cursor, at_edge, lost), trail._replace(apart={**waiting, **places})


def _step_of(
    reading: Reading, place: Start, all_of_it: Matches, wanted: Matches, most: int
) -> tuple[Slice, Start]:
    """What is behind the place of one machine, and its next place; the same as long as nothing comes."""
    found = reading.forward(place, wanted, most)  # type: ignore[arg-type]  # apart, no place is a tail
    if found.lost and not found.entries:
        last = reading.backward(Tail(), all_of_it, 1).cursor
        found = reading.forward(place, wanted, most)  # type: ignore[arg-type]
        if not found.entries:
            return found, Head() if last is None else Beside(last)
    return found, Beside(found.entries[-1].cursor) if found.entries else place


def _of(machine: str, matches: Matches) -> Matches:
    return tuple((*group, (MACHINE, machine)) for group in matches or ((),))
