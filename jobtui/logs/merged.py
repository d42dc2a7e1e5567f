"""Several logs as one, in the order of time. Holds a bounded number of lines, and nothing else.

A line without a time belongs to the one before it in its file, so each file keeps its own order even if its
clock goes back. A log without times is placed at its file's last change. A journal's lines are in the order
in which they were received. Only finished lines count.

Each log is read separately, so a slow or missing one delays no other. Lines are shown from the time on from
which all logs were read; scrolling up reads more of the log that limits this. Late lines are sorted in.
"""

import asyncio
import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress

import msgspec

from jobtui.logs.journal import JournalPages
from jobtui.logs.lists import ListedLog, ListLog, end_of, position_of
from jobtui.logs.pages import LogPages
from jobtui.model.clock import SECOND, Nanos, Offset, Offsets, clock_of, spread_between, to_rfc3339
from jobtui.model.journal import Gap, time_at
from jobtui.model.pages import Extent, Level, LogLine, LogUnreadable, MaskedLines, Page
from jobtui.transport.watch import Watch
from jobtui.transport.worker import Worker

POSITION_BITS = 72
ORIGIN_BITS = 12
TAIL_LINES, TAIL_ENTRIES = 5_000, 1_000
"""Lines of a file, entries of a journal that are read at first."""
MORE_LINES = 1_000
"""Lines that are read when more of the past is wanted."""
PAGES_AT_ONCE = 4
"""How many pages of one log are read in one look."""

Mergeable = LogPages | JournalPages | ListedLog


class MergedReading:
    """One log and how far it was read. `number` distinguishes it from the others."""

    def __init__(self, name: str, log: Mergeable, number: int, now: Callable[[], Nanos]) -> None:
        self.name = name
        self.log, self._lines = log, MaskedLines(log)
        self.is_journal = isinstance(log, JournalPages)
        self.problem = ""
        self.at_begin = False
        self.oldest: Nanos | None = None
        """The time of its first line that was read; None without any."""
        self._number = number
        self._now = now
        self._read_from: int = 0
        self._read_to: int | None = None
        self._latest: Nanos | None = None
        self._read_at: Nanos | None = None
        self._gap: Gap | None = None
        self._gaps = 0

    async def take(self) -> list[LogLine]:
        try:
            lines = await self._take()
        except LogUnreadable as error:
            return self._failed(str(error))
        self._read_at = self._now()
        gap, self._gap, self.problem = self._gap, None, ""
        if gap is None:
            return lines
        return [self._mark(gap._replace(end=self._now(), recovered=True)), *lines]

    async def _take(self) -> list[LogLine]:
        extent = await self.log.look()
        if self._read_to is None:
            count = TAIL_ENTRIES if self.is_journal else TAIL_LINES
            page = await self._lines.before(extent.end, count)
            self.at_begin = page.at_edge
            self._read_from = page.lines[0].position if page.lines else extent.begin
            self._read_to = page.lines[0].position if page.lines else extent.end
            return self._forward(page.lines)
        found: list[LogLine] = []
        for _ in range(PAGES_AT_ONCE):
            if self._read_to >= extent.end:
                break
            page = await self._lines.after(self._read_to, TAIL_LINES)
            fresh = self._forward([line for line in page.lines if line.position >= self._read_to])
            if not fresh:
                break
            found += fresh
        return found

    def _forward(self, lines: Sequence[LogLine]) -> list[LogLine]:
        done = [line for line in lines if self.is_journal or line.end - line.position > line.size]
        latest = self._latest
        if latest is None and not isinstance(self.log, JournalPages):
            latest = next((line.at for line in done if line.at is not None), self.log.changed_at)
        keyed = self._keyed(done, latest or Nanos(0))
        if done:
            self._read_to, self._latest = done[-1].end, _order(keyed[-1])
        if keyed and self.oldest is None:
            self.oldest = _order(keyed[0])
        return keyed

    async def earlier(self) -> list[LogLine]:
        try:
            page = await self._lines.before(self._read_from, MORE_LINES)
        except LogUnreadable as error:
            return self._failed(str(error))
        self.at_begin = page.at_edge or not page.lines
        if page.lines:
            self._read_from = page.lines[0].position
        limit = self.oldest if self.oldest is not None else self._now()
        first = next((line.at for line in page.lines if line.at is not None), limit)
        keyed = self._keyed(page.lines, first, limit)
        if keyed:
            self.oldest = _order(keyed[0])
        return keyed

    def _keyed(self, lines: Sequence[LogLine], at: Nanos, limit: Nanos | None = None) -> list[LogLine]:
        """Lines at positions in the order of time: in a file none is before the one before it, or `at`."""
        keyed = []
        for line in lines:
            at = time_at(line.position) if self.is_journal else max(at, line.at or at)
            at = at if limit is None else min(at, limit)
            position = self._position(at, line.position)
            keyed.append(
                msgspec.structs.replace(
                    line,
                    position=position,
                    end=position + line.end - line.position,
                    at=line.at if line.stamped or self.is_journal else at,
                    origin=line.origin or self.name,
                )
            )
        return keyed

    def _position(self, at: Nanos, within: int) -> int:
        return ((int(at) << ORIGIN_BITS) + self._number << POSITION_BITS) + within

    def _failed(self, problem: str) -> list[LogLine]:
        self.problem = problem
        if self._gap is None:
            since = self._read_at if self._read_at is not None else self._now()
            self._gap = Gap(since, None, problem.removeprefix(f"{self.name}: "))
            self._gaps += 1
            return [self._mark(self._gap)]
        return []

    def _mark(self, gap: Gap) -> LogLine:
        """The line that says that this log cannot be read; it keeps its position when it can be again."""
        words = f"not reached after this: {gap.why}"
        if gap.end is not None:
            until = to_rfc3339(Nanos(gap.end // SECOND * SECOND)).partition("T")[2]
            words = f"not reached until {until}, read later, nothing missing: {gap.why}"
        begin = self._position(gap.start, (1 << POSITION_BITS - 1) + self._gaps)
        return LogLine(
            position=begin, end=begin + 1, text=words, size=len(words), level=Level.WARNING, at=gap.start,
            origin=self.name, stamped=True, is_gap=True,
        )  # fmt: skip


def _order(line: LogLine) -> Nanos:
    return Nanos(line.position >> ORIGIN_BITS + POSITION_BITS)


def first_place(at: Nanos) -> int:
    return int(at) << ORIGIN_BITS + POSITION_BITS


LINES_KEPT = 100_000
"""Lines held in all; the oldest are dropped."""
LOOK_S = 0.3
"""How long a look waits for logs that are slow; their lines come with a later one."""


class MergedLog(ListLog):
    """The ends of these logs, by the names of their sources. `offsets` gives how far clocks are apart."""

    def __init__(
        self,
        logs: Mapping[str, Mergeable],
        *,
        offsets: Callable[[], Offsets] = dict,
        now: Callable[[], Nanos] = lambda: Nanos(time.time_ns() // SECOND * SECOND),
    ) -> None:
        self.name = "all"
        self._readings = [MergedReading(name, log, nth, now) for nth, (name, log) in enumerate(logs.items())]
        self._offsets = offsets
        self._lines: list[LogLine] = []
        self._first = 0
        self._revision = 0
        self._is_cut = False
        self._takes: dict[MergedReading, asyncio.Task[None]] = {}
        self._waits: dict[object, asyncio.Task[object]] = {}
        self._taken = asyncio.Event()
        self._looks = False
        files = [log for log in logs.values() if isinstance(log, LogPages)]
        self._worker = Worker("watch on the logs")
        self._watch = Watch(self._worker, [file.path for file in files], self._is_changed) if files else None

    def _is_changed(self) -> bool:
        return any(r.log.is_changed() for r in self._readings if isinstance(r.log, LogPages))

    async def changed(self, timeout_s: float) -> None:
        waits: dict[object, Callable[[float], Coroutine[None, None, object]]] = {
            reading: reading.log.changed
            for reading in self._readings
            if not isinstance(reading.log, LogPages)
        }
        waits["taken"] = lambda _: self._taken.wait()
        if self._watch is not None:
            waits["files"] = self._watch.changed
        for what in waits.keys() - self._waits.keys():
            self._waits[what] = asyncio.create_task(waits[what](timeout_s))
        done, _ = await asyncio.wait(
            self._waits.values(), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
        )
        self._waits = {what: task for what, task in self._waits.items() if task not in done}
        for task in done:
            if not task.cancelled():  # else it was closed in between
                task.result()

    @property
    def lines(self) -> tuple[LogLine, ...]:
        return tuple(self._lines[self._first :])

    async def look(self) -> Extent:
        self._taken.clear()
        for reading in self._readings:
            if reading not in self._takes:
                self._takes[reading] = asyncio.create_task(self._take_in(reading))
        if self._takes:
            self._looks = True
            await asyncio.wait(set(self._takes.values()), timeout=LOOK_S)
            self._looks = False
        problems = [reading.problem for reading in self._readings if reading.problem]
        if problems and len(problems) == len(self._readings):
            raise LogUnreadable(problems[0])
        return self.extent

    async def _take_in(self, reading: MergedReading) -> None:
        try:
            self._add(await reading.take())
        finally:
            del self._takes[reading]
            if not self._looks:
                self._taken.set()

    @property
    def extent(self) -> Extent:
        if self._first >= len(self._lines):
            return Extent(0, 0, self._event, self._revision)
        begin, end = self._lines[self._first].position, self._lines[-1].end
        return Extent(begin, end, self._event, self._revision)

    @property
    def _event(self) -> str:
        ends = "newest lines only" if self._is_cut or not all(r.at_begin for r in self._readings) else ""
        words = (_offset_words(clock, offset) for (_, clock), offset in self._offsets().items())
        return ", ".join(filter(None, (ends, *words)))

    def _add(self, lines: Sequence[LogLine]) -> None:
        """Insert lines in order. A line at the position of another is the same line again."""
        if not lines:
            return
        at = bisect_left(self._lines, min(map(position_of, lines)), key=position_of)
        self._revision += at < len(self._lines)
        # Sort only from there on: late lines usually belong near the end
        behind = sorted((*self._lines[at:], *lines), key=position_of)
        self._lines[at:] = {line.position: line for line in behind}.values()
        surplus = len(self._lines) - LINES_KEPT
        if surplus > 0:
            del self._lines[:surplus]
            self._is_cut = True
        held_up = [r.oldest for r in self._readings if not r.at_begin and r.oldest is not None]
        floor = first_place(max(held_up, default=Nanos(0)))
        self._first = bisect_left(self._lines, floor, key=position_of)

    async def before(self, position: int, count: int) -> Page:
        while (stop := self._index(position)) - self._first < count and await self._read_earlier():
            pass
        begin = max(self._first, stop - count)
        return self._page(begin, max(begin, stop), begin == self._first and self._is_complete)

    async def after(self, position: int, count: int) -> Page:
        begin = max(self._first, self._index(position))
        return self._page(begin, begin + count, begin + count >= len(self._lines))

    def _page(self, begin: int, end: int, at_edge: bool) -> Page:
        lines = self._lines[begin:end]
        if offsets := self._offsets():
            before = self._lines[begin - 1] if begin > self._first else None
            lines = list(_marked(lines, before, offsets))
        return Page(tuple(lines), at_edge)

    def _index(self, position: int) -> int:
        """Which line holds `position`, or is the first one after it."""
        return bisect_right(self._lines, position, key=end_of)

    @property
    def _held_up_by(self) -> MergedReading | None:
        """The log that must be read further to show earlier lines; None if all were read whole."""
        readings = [r for r in self._readings if not r.at_begin and r.oldest is not None and not r.problem]
        return max(readings, key=lambda r: r.oldest or Nanos(0), default=None)

    @property
    def _is_complete(self) -> bool:
        return self._held_up_by is None or self._is_cut

    async def _read_earlier(self) -> bool:
        reading = self._held_up_by
        if reading is None or self._is_cut:
            return False
        revision = self._revision
        self._add(await reading.earlier())
        # Lines before all that is shown are no change for a reader
        self._revision = revision
        return True

    async def position_of_time(self, at: Nanos) -> int | None:
        while self.extent.begin > first_place(at) and await self._read_earlier():
            pass
        return await super().position_of_time(at)

    async def aclose(self) -> None:
        tasks: list[asyncio.Task[object]] = [*self._takes.values(), *self._waits.values()]
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
        if self._watch is not None:
            self._watch.close()
        self._worker.close()
        for reading in self._readings:
            await reading.log.aclose()


def _marked(lines: Sequence[LogLine], before: LogLine | None, offsets: Offsets) -> Iterator[LogLine]:
    """Lines, with marks on those that may belong before the line above them."""
    for line in lines:
        is_unproven = False
        if before and before.origin != line.origin and before.at is not None and line.at is not None:
            spread_s = spread_between(offsets, clock_of(before.origin), clock_of(line.origin))
            is_unproven = line.at - before.at <= spread_s * SECOND
        yield msgspec.structs.replace(line, unproven=True) if is_unproven else line
        before = line


def _offset_words(clock: str, offset: Offset) -> str:
    """How far the clock of a host is off, in few words."""
    low, high = offset
    if low is None or high is None:
        return ""
    off = f"±{max(-low, high):.1f}" if low <= 0 <= high else f"{low:+.1f}…{high:+.1f}"
    return f"{clock or 'here'} {off} s"
