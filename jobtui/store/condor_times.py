"""When things happened to a job of HTCondor: files that write no zone beside those that do.

A log without zones means the zone in which the same moments are as written elsewhere: the end of a job,
which the starter notes in UTC, or its submission, which its job ad has in seconds. Until one is known it is
this machine's.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from operator import attrgetter, itemgetter

import msgspec

from jobtui.model.clock import SECOND, Nanos
from jobtui.model.condor_facts import CondorFact, Teller
from jobtui.model.condor_life import time_of

QUARTER_S = 900
"""Zones differ by quarters of an hour."""
SLACK_S = 120
"""How far two notes of one moment may be apart."""


_PLACE = attrgetter("source", "offset")
_ORDER = itemgetter(0, 1, 2, 3)


def in_order(facts: Iterable[CondorFact], shifts: Mapping[str, int]) -> list[CondorFact]:
    """Facts by time, that of each of them settled; one without a time stays behind the one before it."""
    last: dict[str, Nanos] = {}
    placed: list[tuple[Nanos, int, str, int, CondorFact]] = []
    for fact in sorted(facts, key=_PLACE):
        at = time_of(fact)
        if at is not None and fact.is_local:
            at = _settled(at, shifts.get(fact.source))
        order = max(at, last.get(fact.source, at)) if at is not None else last.get(fact.source, Nanos(0))
        last[fact.source] = order
        if at != fact.at:
            fact = msgspec.structs.replace(fact, at=at, is_local=False)
        placed.append((order, -fact.teller.rank, fact.source, fact.offset, fact))
    return [fact for *_, fact in sorted(placed, key=_ORDER)]


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


def zones_in(facts: Iterable[CondorFact]) -> Iterator[tuple[str, int]]:
    """How far files' times without a zone are from UTC, by moments that are also written with one."""
    known = [fact for fact in facts if fact.at is not None or fact.teller is Teller.AD]
    ads = (fact.values for fact in known if fact.teller is Teller.AD)
    queued = next((at for ad in ads if (at := _seconds(ad.get("QDate")))), None)
    for fact in known:
        if not fact.is_local or fact.at is None or fact.teller is not Teller.EVENT:
            continue
        true = None
        if fact.what == "submit" and queued is not None:
            true = Nanos(queued * SECOND)
        elif fact.what == "terminated" and (when := fact.values.get("When", "")).endswith("Z"):
            true = _instant(when)
        if true is not None and (shift := _rounded(true - fact.at)) is not None:
            yield fact.source, shift


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
