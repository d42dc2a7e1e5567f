"""When things happened to a job of HTCondor: files that write no zone beside those that do.

A log without zones means the zone in which the same moments are as written elsewhere: the end of a job,
which the starter notes in UTC, or its submission, which its job ad has in seconds; or either of them in a
log with a zone. Logs that have the same event at the same time mean the same zone. Until one is known it is
this machine's.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from operator import attrgetter, itemgetter
from typing import NamedTuple

import msgspec

from jobtui.model.clock import SECOND, Nanos
from jobtui.model.condor_facts import CondorFact, Teller
from jobtui.model.condor_life import time_of

QUARTER_S = 900
"""Zones differ by quarters of an hour."""
SLACK_S = 120
"""How far two notes of one moment may be apart."""
ONCE = ("submit", "terminated")
"""Events that a job has once: logs that tell of the same one tell of one moment."""
MOST_ZONE_S = 14 * 3600
"""No zone is farther from UTC."""


class Place(NamedTuple):
    """Where a fact stands among all of its job."""

    order: Nanos
    rank: int
    source: str
    rotation: int
    offset: int


class Placed(NamedTuple):
    """A fact with its time settled, and its place."""

    place: Place
    fact: CondorFact


_IN_FILE = attrgetter("source", "rotation", "offset")
_ORDER = itemgetter(0)


class Ordering:
    """Gives the facts of one job their places; those of each file in the order of the file."""

    def __init__(self, shifts: Mapping[str, int]) -> None:
        self._shifts = shifts
        self._last: dict[str, Nanos] = {}
        self._offsets: dict[str, tuple[int, int]] = {}
        self.is_bent = False
        """Whether one has the place of the one before it, for want of a time or because clocks went back."""

    def goes_on(self, fact: CondorFact) -> bool:
        """Whether a fact stands behind all of its file that have a place."""
        return (fact.rotation, fact.offset) > self._offsets.get(fact.source, (0, -1))

    def place(self, fact: CondorFact) -> Placed:
        """The place of a fact; one without a time stays behind the one before it in its file."""
        at, source = time_of(fact), fact.source
        if at is not None and fact.is_local:
            at = _settled(at, self._shifts.get(source))
        last = self._last.get(source)
        order = (last or Nanos(0)) if at is None else at if last is None or at > last else last
        self.is_bent = self.is_bent or order != at
        self._last[source], self._offsets[source] = order, (fact.rotation, fact.offset)
        if at != fact.at:
            fact = msgspec.structs.replace(fact, at=at, is_local=False)
        return Placed(Place(order, -fact.teller.rank, source, fact.rotation, fact.offset), fact)

    def placed(self, facts: Iterable[CondorFact]) -> list[Placed]:
        """Facts in the order of their places."""
        return sorted(map(self.place, sorted(facts, key=_IN_FILE)), key=_ORDER)


def in_order(facts: Iterable[CondorFact], shifts: Mapping[str, int]) -> list[CondorFact]:
    """Facts by time, that of each of them settled; one without a time stays behind the one before it."""
    return [placed.fact for placed in Ordering(shifts).placed(facts)]


class Zones:
    """The zones that files without any mean, as shifts from UTC: of each what its latest moment tells."""

    def __init__(self) -> None:
        self.shifts: dict[str, int] = {}
        self._told: dict[str, tuple[Nanos, int]] = {}
        self._alike: dict[str, set[str]] = {}

    def learn(self, facts: Sequence[CondorFact]) -> set[str]:
        """Take in what the facts of a job tell; the files whose zone is another than it was taken for."""
        if not any(fact.is_local for fact in facts):
            return set()
        touched: set[str] = set()
        for one, other in alike_in(facts):
            if other not in self._like(one):
                joined = self._like(one) | self._like(other)
                self._alike.update(dict.fromkeys(joined, joined))
                touched.add(one)
        for source, at, shift in zones_in(facts):
            if (at, shift) > self._told.get(source, (at, shift - 1)):
                self._told[source] = at, shift
                touched.add(source)
        return set().union(*map(self._settle, touched))

    def _like(self, source: str) -> set[str]:
        """The files that mean the same zone as this one."""
        return self._alike.get(source, {source})

    def _settle(self, source: str) -> set[str]:
        """Let what is told of any of the files that mean one zone hold for all; those that had another."""
        alike = self._like(source)
        told = [self._told[one] for one in alike if one in self._told]
        if not told:
            return set()
        _, shift = max(told)
        changed = {one for one in alike if self.shifts.get(one) != shift}
        self.shifts.update(dict.fromkeys(changed, shift))
        return changed


def may_tell_zone(fact: CondorFact) -> bool:
    """Whether a fact may tell which zone a file means."""
    return fact.teller is Teller.AD or fact.what in ONCE


def _settled(at: Nanos, shift: int | None) -> Nanos:
    """A time without a zone: in the one that is known for its file, else in that of this machine."""
    if shift is not None:
        return Nanos(at + shift)
    whole, part = divmod(at, SECOND)
    try:
        here = datetime.fromtimestamp(whole, UTC).replace(tzinfo=None).timestamp()
    except (ValueError, OverflowError, OSError):
        return at
    return Nanos(int(here) * SECOND + part)


def zones_in(facts: Iterable[CondorFact]) -> Iterator[tuple[str, Nanos, int]]:
    """How far files' times without a zone are from UTC, by moments that are also written with one.

    Gives the file, the moment without its zone, and the shift.
    """
    known = [fact for fact in facts if fact.at is not None or fact.teller is Teller.AD]
    ads = (fact.values for fact in known if fact.teller is Teller.AD)
    queued = next((at for ad in ads if (at := _seconds(ad.get("QDate")))), None)
    elsewhere = _told_with_zone(known)
    for fact in known:
        if not fact.is_local or fact.at is None or fact.teller is not Teller.EVENT:
            continue
        true = None
        if fact.what == "submit" and queued is not None:
            true = Nanos(queued * SECOND)
        elif fact.what == "terminated" and (when := fact.values.get("When", "")).endswith("Z"):
            true = _instant(when)
        shift = _whole(fact.at, elsewhere.get(fact.what)) if true is None else _rounded(true - fact.at)
        if shift is not None:
            yield fact.source, fact.at, shift


def alike_in(facts: Iterable[CondorFact]) -> Iterator[tuple[str, str]]:
    """Two files each that tell of the same event at the same time, both without a zone."""
    first: dict[tuple[str, int], str] = {}
    for fact in facts:
        if fact.is_local and fact.at is not None and fact.what in ONCE:
            one = first.setdefault((fact.what, fact.at // SECOND), fact.source)
            if one != fact.source:
                yield one, fact.source


def _told_with_zone(facts: Iterable[CondorFact]) -> dict[str, Nanos]:
    """When what a job has once happened, by logs that have zones."""
    told: dict[str, Nanos] = {}
    for fact in facts:
        if fact.what in ONCE and not fact.is_local and fact.at is not None:
            told[fact.what] = min(fact.at, told.get(fact.what, fact.at))
    return told


def _whole(at: Nanos, true: Nanos | None) -> int | None:
    """How far the time of an event is from UTC, where a log with a zone has the same one to the second."""
    if true is None:
        return None
    apart = (true // SECOND - at // SECOND) * SECOND
    return apart if _rounded(apart) == apart and abs(apart) <= MOST_ZONE_S * SECOND else None


def _seconds(text: str | None) -> int | None:
    return int(text) if text and len(text) < 11 and text.isascii() and text.isdigit() else None


def _instant(text: str) -> Nanos | None:
    try:
        return Nanos(int(datetime.fromisoformat(text).timestamp()) * SECOND)
    except (ValueError, OverflowError):
        return None


def _rounded(difference: int) -> int | None:
    """A difference of clocks in whole quarters of an hour; None when it is none."""
    whole = round(difference / SECOND / QUARTER_S) * QUARTER_S * SECOND
    return whole if abs(difference - whole) <= SLACK_S * SECOND else None
