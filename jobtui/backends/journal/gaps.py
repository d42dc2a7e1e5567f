"""What is missing of a journal: what journald dropped, what was deleted, when it could not be reached."""

import re
from collections import deque
from collections.abc import Iterator

from jobtui.backends.journal.streams import JOURNALD
from jobtui.model.clock import SECOND, Nanos, to_rfc3339
from jobtui.model.journal import Gap, JournalEntry

RATE_LIMIT_S = 30
"""journald's own RateLimitIntervalSec: what it says of dropped messages is about so long before."""
GAPS_KEPT = 50
GAPS_TOLD = 3

_SUPPRESSED = re.compile(r"Suppressed (\d+) messages? from (\S+)", re.ASCII)


def suppressed(entry: JournalEntry) -> Gap | None:
    """The gap that an entry of journald itself speaks of; None for any other."""
    found = _SUPPRESSED.match(entry.message) if entry.identifier == JOURNALD else None
    if found is None:
        return None
    start = Nanos(entry.at - RATE_LIMIT_S * SECOND)
    unit = found[2].rsplit("/", 1)[-1]
    return Gap(start, entry.at, f"journald dropped {found[1]} messages of {unit}: its rate limit", unit)


class Gaps:
    """The gaps of one journal, the newest few of them."""

    def __init__(self) -> None:
        self._gaps: deque[Gap] = deque(maxlen=GAPS_KEPT)
        self._outage: Gap | None = None
        self._reached_at: Nanos | None = None

    def __iter__(self) -> Iterator[Gap]:
        yield from self._gaps
        if self._outage is not None:
            yield self._outage

    def add(self, gap: Gap) -> None:
        """One more."""
        self._gaps.append(gap)

    def failed(self, now: Nanos, why: str) -> None:
        """It could not be reached now."""
        if self._outage is None:
            start = now if self._reached_at is None else self._reached_at
            self._outage = Gap(start, None, why)

    def reached(self, now: Nanos) -> None:
        """It could be read now; what was written during an outage has come with that."""
        if self._outage is not None:
            if self._reached_at is not None:
                self._gaps.append(self._outage._replace(end=now, recovered=True))
            self._outage = None
        self._reached_at = now

    @property
    def is_out(self) -> bool:
        """Whether it cannot be reached now."""
        return self._outage is not None

    @property
    def words(self) -> str:
        """The newest of them, in words; "" when there is none."""
        told = list(self)[-GAPS_TOLD:]
        more = len(self._gaps) - GAPS_TOLD
        return "; ".join([*(map(gap_words, told)), *([f"{more} earlier gaps"] if more > 0 else [])])


def gap_words(gap: Gap) -> str:
    """A gap in words, with its times."""
    start = to_rfc3339(_whole(gap.start))
    if gap.end is None:
        return f"not reached since {start}: {gap.why}"
    end = to_rfc3339(_whole(gap.end))
    day, _, clock = end.partition("T")
    span = f"{start} to {clock if start.startswith(day) else end}"
    return (
        f"not reached {span}, read since, nothing missing: {gap.why}"
        if gap.recovered
        else f"{gap.why}, {span}"
    )


def _whole(at: Nanos) -> Nanos:
    return Nanos(at // SECOND * SECOND)
