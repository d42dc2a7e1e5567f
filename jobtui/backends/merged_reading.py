"""One log among several that are merged: how far it was read, what of it is missing, where its lines belong.

A line without a time belongs to the one before it in its file, so each file keeps its own order also where
its clock goes back. A log without any times comes where its file was last written. A journal's lines come in
the order in which they were received. Only finished lines are taken.
"""

import time
from collections.abc import Callable, Sequence

import msgspec

from jobtui.backends.journal.pages import JournalPages
from jobtui.backends.listed_log import ListedLog
from jobtui.backends.log_pages import LogPages
from jobtui.model.clock import SECOND, Nanos, to_rfc3339
from jobtui.model.clocks import HERE, clock_of
from jobtui.model.journal import Gap, time_at
from jobtui.model.pages import Level, LogLine, LogUnreadable, Place

PLACE_BITS = 72
ORIGIN_BITS = 12
TAIL_LINES, TAIL_ENTRIES = 5_000, 1_000
"""Lines of a file, entries of a journal that are read at first."""
MORE_LINES = 1_000
"""Lines that are read when more of the past is wanted."""
PAGES_AT_ONCE = 4
"""How much more of one log is read in one look."""

Mergeable = LogPages | JournalPages | ListedLog


class MergedReading:
    """One log and how far it was read. `number` tells it from the others."""

    def __init__(self, name: str, log: Mergeable, number: int, now: Callable[[], Nanos]) -> None:
        self.name = name
        self.log = log
        self.problem = ""
        self.at_begin = False
        self.oldest: Nanos | None = None
        """Where in the order of time its first line is that was read; None without any."""
        self._number = number
        self._now = now
        self._read_from: Place = 0
        self._read_to: Place | None = None
        self._latest: Nanos | None = None
        self._read_at: Nanos | None = None
        self._gap: Gap | None = None
        self._gaps = 0

    @property
    def is_journal(self) -> bool:
        """Whether its lines come out of a journal."""
        return isinstance(self.log, JournalPages)

    @property
    def clock(self) -> str:
        """Whose clock its lines have."""
        return clock_of(self.name) if self.is_journal else HERE

    async def take(self) -> list[LogLine]:
        """What is new of it, keyed for the whole; a line that says since when it cannot be read."""
        try:
            lines = await self._take()
        except LogUnreadable as error:
            return self._failed(str(error))
        self._read_at = self._now()
        return [*self._recovered(), *lines]

    async def _take(self) -> list[LogLine]:
        extent = await self.log.look()
        if self._read_to is None:
            count = TAIL_ENTRIES if self.is_journal else TAIL_LINES
            page = await self.log.before(extent.end, count)
            self.at_begin = page.at_edge
            self._read_from = page.lines[0].place if page.lines else extent.begin
            self._read_to = page.lines[0].place if page.lines else extent.end
            return self._forward(page.lines)
        found: list[LogLine] = []
        for _ in range(PAGES_AT_ONCE):
            if self._read_to >= extent.end:
                break
            page = await self.log.after(self._read_to, TAIL_LINES)
            fresh = self._forward([line for line in page.lines if line.place >= self._read_to])
            if not fresh:
                break
            found += fresh
        return found

    def _forward(self, lines: Sequence[LogLine]) -> list[LogLine]:
        done = [line for line in lines if self._is_finished(line)]
        if self._latest is None:
            self._latest = next((line.at for line in done if line.at is not None), None)
        keyed = []
        for line in done:
            if isinstance(self.log, JournalPages):
                at = time_at(line.place)
            else:
                before = self._latest or self.log.changed_at
                at = max(before, line.at or before)
            self._latest = max(self._latest or at, at)
            keyed.append(self._keyed(line, at))
        if done:
            self._read_to = done[-1].end
        if keyed and self.oldest is None:
            self.oldest = _order(keyed[0])
        return keyed

    def _is_finished(self, line: LogLine) -> bool:
        return self.is_journal or line.end - line.place > line.size

    def begin_at(self, line: LogLine) -> None:
        """Have read nothing before this line of it, as it was keyed."""
        if line.is_gap or (first := line.place & (1 << PLACE_BITS) - 1) <= self._read_from:
            return
        self._read_from, self.oldest, self.at_begin = first, _order(line), False

    async def earlier(self) -> list[LogLine]:
        """Lines before those that were read."""
        try:
            page = await self.log.before(self._read_from, MORE_LINES)
        except LogUnreadable as error:
            return self._failed(str(error))
        self.at_begin = page.at_edge or not page.lines
        if page.lines:
            self._read_from = page.lines[0].place
        keyed = self._backward(page.lines)
        if keyed:
            self.oldest = _order(keyed[0])
        return keyed

    def _backward(self, lines: Sequence[LogLine]) -> list[LogLine]:
        """Keyed as `_forward` does, and none later than what was read before."""
        limit = self.oldest if self.oldest is not None else self._now()
        latest: Nanos | None = next((line.at for line in lines if line.at is not None), None)
        keyed = []
        for line in lines:
            if self.is_journal:
                latest = time_at(line.place)
            else:
                latest = max(latest or limit, line.at or latest or limit)
            latest = min(latest, limit)
            keyed.append(self._keyed(line, latest))
        return keyed

    def _keyed(self, line: LogLine, at: Nanos) -> LogLine:
        place = self._place(at, line.place)
        return msgspec.structs.replace(
            line,
            place=place,
            end=place + line.end - line.place,
            at=line.at if line.stamped or self.is_journal else at,
            origin=line.origin or self.name,
        )

    def _place(self, at: Nanos, within: Place) -> Place:
        return ((int(at) << ORIGIN_BITS) + self._number << PLACE_BITS) + within

    # What is missing.

    def _failed(self, problem: str) -> list[LogLine]:
        self.problem = problem
        if self._gap is None:
            since = self._read_at if self._read_at is not None else self._now()
            self._gap = Gap(since, None, problem.removeprefix(f"{self.name}: "))
            self._gaps += 1
            return [self._mark(self._gap)]
        return []

    def _recovered(self) -> list[LogLine]:
        gap, self._gap, self.problem = self._gap, None, ""
        if gap is None:
            return []
        return [self._mark(gap._replace(end=self._now(), recovered=True))]

    def _mark(self, gap: Gap) -> LogLine:
        """The line that says that this log could not be read; the same place when it can be again."""
        words = f"not reached from here on: {gap.why}"
        if gap.end is not None:
            until = to_rfc3339(Nanos(gap.end // SECOND * SECOND)).partition("T")[2]
            words = f"not reached until {until}, read since, nothing missing: {gap.why}"
        place = self._place(gap.start, (1 << PLACE_BITS - 1) + self._gaps)
        return LogLine(
            place=place,
            end=place + 1,
            text=words,
            size=len(words),
            level=Level.WARNING,
            at=gap.start,
            origin=self.name,
            stamped=True,
            is_gap=True,
        )


def _order(line: LogLine) -> Nanos:
    """The time by which a line was put in its place."""
    return Nanos(line.place >> ORIGIN_BITS + PLACE_BITS)


def reading_of(line: LogLine) -> int:
    """The number of the log that a line is of."""
    return line.place >> PLACE_BITS & (1 << ORIGIN_BITS) - 1


def first_place(at: Nanos) -> Place:
    """The place of the first line of this time, whichever log it is of."""
    return int(at) << ORIGIN_BITS + PLACE_BITS


def wall_clock() -> Nanos:
    """The present time of this machine."""
    return Nanos(time.time_ns() // SECOND * SECOND)
