"""The ends of several logs as one, in the order of time. Holds a bounded number of lines, and nothing else.

Each log is read by itself, so that one that is slow or gone keeps no other waiting. Lines are shown from
where all logs have been read; reading on upwards reads more of the log that holds that up. Lines that come
late are sorted in where they belong.
"""

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise

import msgspec

from jobtui.backends.held_log import HeldLog, place_of
from jobtui.backends.log_pages import LogPages
from jobtui.backends.log_watch import Watch
from jobtui.backends.merged_reading import Mergeable, MergedReading, first_place, reading_of, wall_clock
from jobtui.backends.worker import Worker
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.clocks import Offsets, clock_of, spread_between
from jobtui.model.pages import (
    Extent,
    LogLine,
    LogUnreadable,
    Overview,
    Page,
    Place,
)

LINES_KEPT = 100_000
"""Lines held in all; the oldest are let go."""
LINES_AT_REST = 5_000
"""Lines held while nobody looks, besides the last one of each log and what says that lines are missing."""
LOOK_S = 0.3
"""How long a look waits for logs that are slow; their lines come with a later one."""


def no_offsets() -> Offsets:
    """Nothing is known of clocks."""
    return {}


class MergedLog(HeldLog):
    """The ends of these logs, by the names of their sources. `offsets` tells how far clocks are apart."""

    def __init__(
        self,
        logs: Mapping[str, Mergeable],
        *,
        offsets: Callable[[], Offsets] = no_offsets,
        now: Callable[[], Nanos] = wall_clock,
        lines_kept: int = LINES_KEPT,
    ) -> None:
        self.name = "all"
        self._readings = [MergedReading(name, log, nth, now) for nth, (name, log) in enumerate(logs.items())]
        self._offsets = offsets
        self._lines_kept = lines_kept
        self._lines: list[LogLine] = []
        self._first = 0
        self._revision = 0
        self._is_cut = False
        self._overview: Overview | None = None
        self._takes: dict[MergedReading, asyncio.Task[None]] = {}
        self._waits: dict[object, asyncio.Task[None]] = {}
        self._taken = asyncio.Event()
        self._looks = False
        files = [log for log in logs.values() if isinstance(log, LogPages)]
        self._worker = Worker("watch on the logs")
        self._watch = Watch(self._worker, [file.path for file in files], self._is_changed) if files else None

    # How far it goes.

    def _is_changed(self) -> bool:
        return any(r.log.is_changed() for r in self._readings if isinstance(r.log, LogPages))

    async def changed(self, timeout_s: float) -> None:
        """Return when a look may find something new, at the latest after `timeout_s`."""
        self._wait("taken", lambda _: self._news())
        if self._watch is not None:
            self._wait("files", self._watch.changed, timeout_s)
        for reading in self._readings:
            if not isinstance(reading.log, LogPages):
                self._wait(reading, reading.log.changed, timeout_s)
        done, _ = await asyncio.wait(
            self._waits.values(), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED
        )
        self._waits = {what: task for what, task in self._waits.items() if task not in done}
        for task in done:
            task.result()

    def _wait(
        self, what: object, call: Callable[[float], Coroutine[None, None, None]], timeout_s: float = 0.0
    ) -> None:
        if what not in self._waits:
            self._waits[what] = asyncio.create_task(call(timeout_s))

    async def _news(self) -> None:
        await self._taken.wait()

    @property
    def lines(self) -> tuple[LogLine, ...]:
        """All that it shows."""
        return tuple(self._lines[self._first :])

    async def look(self) -> Extent:
        """Take in what was written. Raises LogUnreadable when none of the logs can be read."""
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
        """From the first to the last line it shows."""
        if self._first >= len(self._lines):
            return Extent(0, 0, self._event, self._revision)
        begin, end = self._lines[self._first].place, self._lines[-1].end
        return Extent(begin, end, self._event, self._revision)

    @property
    def _event(self) -> str:
        ends = "tails only" if self._is_cut or not all(r.at_begin for r in self._readings) else ""
        return ", ".join(filter(None, (ends, *map(_offset_words, self._offsets().items()))))

    def _add(self, lines: Sequence[LogLine]) -> None:
        """Sort in lines."""
        if not lines:
            return
        places = [line.place for line in (*self._lines[-1:], *lines)]
        self._lines += lines
        if any(one >= next_one for one, next_one in pairwise(places)):
            self._sort()
        surplus = len(self._lines) - self._lines_kept
        if surplus > 0:
            del self._lines[:surplus]
            self._is_cut = True
        self._find_first()
        self._overview = None

    def _sort(self) -> None:
        """Put lines where they belong. A line at the place of another is that line, told anew."""
        self._lines.sort(key=place_of)
        unique = {line.place: line for line in self._lines}
        if len(unique) < len(self._lines):
            self._lines = list(unique.values())
        self._revision += 1

    def rest(self) -> None:
        """Hold only the newest lines, as nobody looks; who scrolls back later has earlier ones read again."""
        surplus = len(self._lines) - LINES_AT_REST
        if surplus <= 0 or self._takes:
            return
        last = {reading_of(line): line for line in self._lines}
        kept = self._lines[surplus:]
        begins = {**last, **{reading_of(line): line for line in reversed(kept) if not line.is_gap}}
        whole = [line for line in self._lines[:surplus] if line.is_gap or line is begins[reading_of(line)]]
        self._lines = [*whole, *kept]
        for nth, line in begins.items():
            self._readings[nth].begin_at(line)
        self._find_first()
        self._overview = None

    def _find_first(self) -> None:
        """The first line from which on all logs were read."""
        held_up = [r.oldest for r in self._readings if not r.at_begin and r.oldest is not None]
        floor = max(held_up, default=None)
        self._first = 0 if floor is None else bisect_left(self._lines, first_place(floor), key=place_of)

    # Pages.

    async def before(self, place: Place, count: int) -> Page:
        """Up to `count` lines before the one that holds `place`."""
        while (stop := self._index(place)) - self._first < count and await self._read_earlier():
            pass
        begin = max(self._first, stop - count)
        return self._page(begin, max(begin, stop), begin == self._first and not self._can_go_back)

    async def after(self, place: Place, count: int) -> Page:
        """Up to `count` lines from the one that holds `place` on."""
        begin = max(self._first, self._index(place))
        return self._page(begin, begin + count, begin + count >= len(self._lines))

    def _page(self, begin: int, end: int, at_edge: bool) -> Page:
        lines = self._lines[begin:end]
        if offsets := self._offsets():
            before = self._lines[begin - 1] if begin > self._first else None
            lines = list(_marked(lines, before, offsets))
        return Page(tuple(lines), at_edge)

    def _index(self, place: Place) -> int:
        """Which line holds `place`, or is the first one behind it."""
        return bisect_right(self._lines, place, key=_end_of)

    @property
    def _held_up_by(self) -> MergedReading | None:
        """The log of which more has to be read to show earlier lines; None when all were read whole."""
        readings = [r for r in self._readings if not r.at_begin and r.oldest is not None and not r.problem]
        return max(readings, key=lambda r: r.oldest or Nanos(0), default=None)

    @property
    def _can_go_back(self) -> bool:
        return self._held_up_by is not None and not self._is_cut

    async def _read_earlier(self) -> bool:
        """Read more of the past; whether there was any."""
        reading = self._held_up_by
        if reading is None or self._is_cut:
            return False
        revision = self._revision
        self._add(await reading.earlier())
        # What comes before all that is shown is no change for who reads there
        self._revision = revision
        return True

    # The log as a whole.

    def overview(self) -> Overview:
        """What it shows."""
        if self._overview is None:
            stretches = tuple(self.stretches())
            errors = sum(stretch.errors for stretch in stretches)
            shown = len(self._lines) - self._first
            self._overview = Overview(stretches, shown, errors, complete=not self._can_go_back)
        return self._overview

    async def aclose(self) -> None:
        """Release the logs. May be called twice."""
        tasks = [*self._takes.values(), *self._waits.values()]
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
    """Lines, those marked that may as well come before the line before them."""
    for line in lines:
        if before is not None and _is_unproven(before, line, offsets):
            yield msgspec.structs.replace(line, unproven=True)
        else:
            yield line
        before = line


def _is_unproven(before: LogLine, line: LogLine, offsets: Offsets) -> bool:
    if before.origin == line.origin or before.at is None or line.at is None:
        return False
    spread_s = spread_between(offsets, clock_of(before.origin), clock_of(line.origin))
    return line.at - before.at <= spread_s * SECOND


def _offset_words(item: tuple[tuple[str, str], object]) -> str:
    """How far the clock of a host is off, as short as it can be said."""
    (_, clock), offset = item
    low, high = getattr(offset, "low", None), getattr(offset, "high", None)
    if low is None or high is None:
        return ""
    name = clock or "here"
    if low <= 0 <= high:
        return f"{name} ±{max(-low, high):.1f} s"
    return f"{name} {low:+.1f}…{high:+.1f} s"


def _end_of(line: LogLine) -> Place:
    return line.end
