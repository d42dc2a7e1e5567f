"""The ends of several logs as one, in the order of time. Holds a bounded number of lines, and nothing else.

A line without a time belongs to the one before it in its file, so each file keeps its own order also where
its clock goes back. A log without any times comes where its file was last written.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Mapping

import msgspec

from jobtui.backends.log_pages import LogPages
from jobtui.backends.log_watch import Watch
from jobtui.backends.merged_search import MergedSearch
from jobtui.backends.worker import Worker
from jobtui.model.clock import Nanos
from jobtui.model.pages import (
    Extent,
    Level,
    LogLine,
    LogSearch,
    LogUnreadable,
    Overview,
    Page,
    Place,
    Query,
    Stretch,
)

TAIL_LINES = 5_000
"""Lines of each log that are read at first."""
LINES_KEPT = 100_000
"""Lines held in all; the oldest are let go."""
PAGES_AT_ONCE = 4
"""How much more of one log is read in one look."""
STRETCH_LINES = 50
_PLACE_BITS = 50
_ORIGIN_BITS = 12


class _Reading(msgspec.Struct):
    """How far one log was read."""

    name: str
    pages: LogPages
    number: int
    read_to: Place | None = None
    latest: Nanos | None = None


class MergedLog:
    """The ends of these logs, by the names of their sources."""

    def __init__(self, logs: Mapping[str, LogPages]) -> None:
        self.name = "all"
        self._readings = [_Reading(name, pages, number) for number, (name, pages) in enumerate(logs.items())]
        self._lines: list[LogLine] = []
        self._dropped = False
        self._overview: Overview | None = None
        self._worker = Worker("watch on the logs")
        paths = [pages.path for pages in logs.values()]
        self._watch = Watch(self._worker, paths, self._is_changed)

    def _is_changed(self) -> bool:
        return any(reading.pages.is_changed() for reading in self._readings)

    async def changed(self, timeout_s: float) -> None:
        """Return when a look may find something new, at the latest after `timeout_s`."""
        await self._watch.changed(timeout_s)

    @property
    def lines(self) -> tuple[LogLine, ...]:
        """All that it holds."""
        return tuple(self._lines)

    async def look(self) -> Extent:
        """Take in what was written. Raises LogUnreadable when none of the logs can be read."""
        problems: list[LogUnreadable] = []
        for reading in self._readings:
            try:
                await self._take_in(reading)
            except LogUnreadable as error:
                problems.append(error)
        if problems and len(problems) == len(self._readings):
            raise problems[0]
        return self.extent

    @property
    def extent(self) -> Extent:
        """From the first to the last line it holds."""
        if not self._lines:
            return Extent(0, 0)
        return Extent(self._lines[0].place, self._lines[-1].end, "tails only" if self._dropped else "")

    async def _take_in(self, reading: _Reading) -> None:
        extent = await reading.pages.look()
        if reading.read_to is None:
            page = await reading.pages.before(extent.end, TAIL_LINES)
            self._dropped |= not page.at_edge
            self._add(reading, page.lines)
            return
        for _ in range(PAGES_AT_ONCE):
            if reading.read_to >= extent.end:
                return
            page = await reading.pages.after(reading.read_to, TAIL_LINES)
            if not self._add(reading, page.lines):
                return

    def _add(self, reading: _Reading, lines: tuple[LogLine, ...]) -> bool:
        """Sort in the lines that are finished; whether there were any."""
        done = [line for line in lines if line.end - line.place > line.size]
        if reading.latest is None:
            reading.latest = next((line.at for line in done if line.at is not None), None)
        for line in done:
            fresh = self._keyed(reading, line)
            if not self._lines or fresh.place > self._lines[-1].place:
                self._lines.append(fresh)
            else:
                insort(self._lines, fresh, key=_place_of)
        if done:
            reading.read_to = done[-1].end
        elif reading.read_to is None:
            reading.read_to = lines[0].place if lines else 0
        del self._lines[: max(0, len(self._lines) - LINES_KEPT)]
        self._overview = None
        return bool(done)

    def _keyed(self, reading: _Reading, line: LogLine) -> LogLine:
        now = reading.pages.changed_at
        reading.latest = max(reading.latest or now, line.at or reading.latest or now)
        place = ((int(reading.latest) << _ORIGIN_BITS) + reading.number << _PLACE_BITS) + line.place
        end = place + line.end - line.place
        return msgspec.structs.replace(line, place=place, end=end, at=reading.latest, origin=reading.name)

    async def before(self, place: Place, count: int) -> Page:
        """Up to `count` lines before the one that holds `place`."""
        stop = self._index(place) if self._lines and place < self._lines[-1].end else len(self._lines)
        begin = max(0, stop - count)
        return Page(tuple(self._lines[begin:stop]), begin == 0)

    async def after(self, place: Place, count: int) -> Page:
        """Up to `count` lines from the one that holds `place` on."""
        begin = self._index(place)
        if self._lines and place >= self._lines[-1].end:
            return Page((), at_edge=True)
        lines = tuple(self._lines[begin : begin + count])
        return Page(lines, begin + count >= len(self._lines))

    def _index(self, place: Place) -> int:
        return max(0, bisect_right(self._lines, place, key=_place_of) - 1)

    async def work(self) -> bool:
        """There is nothing more to look through: False."""
        return False

    def overview(self) -> Overview:
        """What it holds."""
        if self._overview is None:
            stretches = tuple(self._stretches())
            errors = sum(stretch.errors for stretch in stretches)
            self._overview = Overview(stretches, len(self._lines), errors, complete=True)
        return self._overview

    def _stretches(self) -> Iterator[Stretch]:
        for at in range(0, len(self._lines), STRETCH_LINES):
            lines = self._lines[at : at + STRETCH_LINES]
            errors = sum(line.level is Level.ERROR for line in lines)
            yield Stretch(lines[0].place, lines[0].at, len(lines), errors)

    async def next_error(self, place: Place, *, forward: bool) -> Place | None:
        """The first error behind the line at `place`, or the last before it."""
        if forward:
            wanted = self._lines[bisect_right(self._lines, place, key=_place_of) :]
        else:
            wanted = self._lines[: bisect_left(self._lines, place, key=_place_of)][::-1]
        return next((line.place for line in wanted if line.level is Level.ERROR), None)

    async def number_of(self, place: Place) -> int | None:
        """Lines of several files have no numbers: None."""
        return None

    async def place_of_line(self, number: int) -> Place | None:
        """Lines of several files have no numbers: None."""
        return None

    def search(self, query: Query, around: Place) -> LogSearch:
        """A search through all that it holds; not yet begun."""
        return MergedSearch(self, query)

    async def aclose(self) -> None:
        """Release the logs."""
        self._watch.close()
        self._worker.close()
        for reading in self._readings:
            await reading.pages.aclose()


def _place_of(line: LogLine) -> Place:
    return line.place
