"""A log file to be read on a screen: pages from any place, at its tail at once, whatever its size.

Nothing of the file is held but what is asked for and a sparse index. Places go on over a rotation: the file
before is kept open, so that one can read back into it. A file that was cut off or written anew begins again
behind the places it had. Pages are read in one thread, everything slow in another, so that reading on never
waits for a search. No method blocks the event loop.
"""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from jobtui.backends.base import SourceError, SourceMissing
from jobtui.backends.file_access import Look, look, open_file, source_error
from jobtui.backends.log_segment import SCAN_BYTES, Segment
from jobtui.backends.log_watch import Watch
from jobtui.backends.worker import Worker
from jobtui.model.clock import Nanos
from jobtui.model.pages import Extent, LogLine, LogSearch, LogUnreadable, Overview, Page, Place, Query

FILES_HELD = 2
"""The file and the one before it."""
STEPS_S, BREATH_S = 0.02, 0.0002
"""How long the index goes on before others may ask, and how long it pauses between two steps."""
SLICE_S = 0.05
"""How long one piece of slow work takes at most, after which it can be stopped."""

T = TypeVar("T")


class LogPages:
    """The log at `path`."""

    def __init__(self, path: Path) -> None:
        self.name = str(path)
        self.path = self._path = path
        self._segments: tuple[Segment, ...] = ()
        self._event = ""
        self._reads = Worker(f"pages of {path.name}")
        self._works = Worker(f"index of {path.name}")
        self._watch = Watch(self._reads, [path], self.is_changed)
        self._looked: Look | None = None
        self._closed = False

    # How far it goes.

    async def look(self) -> Extent:
        """How far it goes now. Raises LogUnreadable; what was read before can be read on then."""
        return await self._read(self._look)

    def is_changed(self) -> bool:
        """Whether the file is another or was written since the last look. Blocks."""
        try:
            return look(self._path) != self._looked
        except SourceError:
            return self._looked is not None

    async def changed(self, timeout_s: float) -> None:
        """Return when a look may find something new, at the latest after `timeout_s`."""
        await self._watch.changed(timeout_s)

    @property
    def extent(self) -> Extent:
        """How far it went at the last look."""
        segments = self._segments
        if not segments:
            return Extent(0, 0)
        return Extent(segments[0].base, segments[-1].end, self._event)

    @property
    def changed_at(self) -> Nanos:
        """When the file was last written, as of the last look."""
        return self._segments[-1].changed_at if self._segments else Nanos(0)

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The files it consists of, the oldest first."""
        return self._segments

    def _look(self) -> Extent:
        if self._closed:
            raise SourceMissing(f"{self.name}: is closed")
        self._looked = None
        self._looked = seen = look(self._path)
        segments = self._segments
        if not segments:
            self._segments = (Segment(open_file(self._path), 0, self.name),)
            self._event = self._segments[-1].event
            return self.extent
        current = segments[-1]
        if seen.id == current.opened.id:
            if not current.grow():
                self._begin_anew("cut off and written anew", kept=segments[:-1], closed=current)
            return self.extent
        current.grow()
        # Whoever writes has not taken the new file yet: what comes goes into the old one.
        if seen.size > 0:
            self._go_on(current)
        return self.extent

    def _go_on(self, current: Segment) -> None:
        opened = open_file(self._path)
        try:
            goes_on = current.goes_on_in(opened, opened.look())
            base = current.base if goes_on else current.end
            fresh = Segment(opened, base, self.name)
        except (OSError, SourceError):
            opened.close()
            raise
        kept = self._segments[:-1] if goes_on else self._segments
        self._event = self._event if goes_on else "rotated"
        self._replace((*kept, fresh))

    def _begin_anew(self, event: str, *, kept: tuple[Segment, ...], closed: Segment) -> None:
        base = closed.end
        fresh = Segment(open_file(self._path), base, self.name)
        self._event = event
        self._replace((*kept, fresh))

    def _replace(self, segments: tuple[Segment, ...]) -> None:
        before, self._segments = self._segments, segments[-FILES_HELD:]
        for segment in before:
            if segment not in self._segments:
                segment.opened.close()

    # Pages.

    async def before(self, place: Place, count: int) -> Page:
        """Up to `count` lines before the one that holds `place`. Raises LogUnreadable."""
        return await self._read(lambda: self._before(place, count))

    def _before(self, place: Place, count: int) -> Page:
        lines: list[LogLine] = []
        for segment in reversed(self._segments):
            if place > segment.base:
                offset = min(place - segment.base, segment.size)
                lines[:0] = segment.pages.before(offset, segment.size, count - len(lines))
                if len(lines) >= count or (lines and lines[0].place > segment.base):
                    break
                place = segment.base
        return Page(tuple(lines), not lines or lines[0].place <= self.extent.begin)

    async def after(self, place: Place, count: int) -> Page:
        """Up to `count` lines from the one that holds `place` on. Raises LogUnreadable."""
        return await self._read(lambda: self._after(place, count))

    def _after(self, place: Place, count: int) -> Page:
        lines: list[LogLine] = []
        for segment in self._segments:
            if place < segment.end and len(lines) < count:
                offset = max(0, place - segment.base)
                lines += segment.pages.after(offset, segment.size, count - len(lines))
                if lines and lines[-1].end < segment.end:
                    break
        return Page(tuple(lines), not lines or lines[-1].end >= self.extent.end)

    # The log as a whole.

    async def work(self) -> bool:
        """Look through a little more of it; whether there is more to look through. Raises LogUnreadable."""
        return await self._work(self._step)

    def _step(self) -> bool:
        until = time.monotonic() + STEPS_S
        while any(segment.look_through() for segment in reversed(self._segments)):
            if time.monotonic() > until:
                return True
            # Lets the thread of the screen have its turn at once
            time.sleep(BREATH_S)
        return False

    def overview(self) -> Overview:
        """What is known of it as a whole by now."""
        segments = self._segments
        return Overview(
            stretches=tuple(part for segment in segments for part in segment.index.stretches(segment.base)),
            lines=sum(segment.index.lines for segment in segments),
            errors=sum(segment.index.errors for segment in segments),
            complete=all(segment.index.complete for segment in segments),
        )

    async def number_of(self, place: Place) -> int | None:
        """The number of the line at `place` in its file, None while the lines before it are not counted."""
        return await self._read(lambda: self._number_of(place))

    def _number_of(self, place: Place) -> int | None:
        segment = self._holding(place)
        return segment.index.number_of(place - segment.base) if segment else None

    async def place_of_line(self, number: int) -> Place | None:
        """Where a line of the newest file begins; the last line for a larger number. Raises LogUnreadable."""
        if not self._segments:
            return None
        segment = self._segments[-1]
        offset = await self._work(lambda: segment.index.offset_of(number))
        counted = at = 0
        while offset is None:
            before = at
            at, counted = await self._work(partial(segment.count_to, number, at, counted))
            if counted == number - 1 or at == before or at >= segment.size:
                offset = at
        return segment.base + min(offset, max(0, segment.size - 1))

    async def next_error(self, place: Place, *, forward: bool) -> Place | None:
        """The first error behind the line at `place`, or the last before it. Raises LogUnreadable."""
        extent = self.extent
        at: Place | None = place + 1 if forward else place
        while at is not None and extent.begin <= at <= extent.end:
            step = self._error_from if forward else self._error_before
            found, at = await self._work(partial(step, at))
            if found is not None:
                return found
        return None

    def _error_from(self, place: Place) -> tuple[Place | None, Place | None]:
        """The first error from `place` on as far as was looked in a slice of time, or where to go on."""
        until = time.monotonic() + SLICE_S
        for segment in self._segments:
            while place < segment.end:
                begin = max(0, place - segment.base)
                end = min(segment.size, begin + SCAN_BYTES)
                if (at := segment.first_error(begin, end)) is not None:
                    return segment.base + at, None
                place = segment.base + end
                if time.monotonic() > until:
                    return None, place
        return None, None

    def _error_before(self, place: Place) -> tuple[Place | None, Place | None]:
        until = time.monotonic() + SLICE_S
        for segment in reversed(self._segments):
            while place > segment.base:
                end = min(segment.size, place - segment.base)
                begin = max(0, end - SCAN_BYTES)
                if (at := segment.last_error(begin, end)) is not None:
                    return segment.base + at, None
                place = segment.base + begin
                if time.monotonic() > until:
                    return None, place
        return None, None

    def search(self, query: Query, around: Place) -> LogSearch:
        """A search, nearest lines first; not yet begun."""
        # Imported here, as reading on does not need it
        from jobtui.backends.log_search import FileSearch

        return FileSearch(self, query, around)

    async def aclose(self) -> None:
        """Release the files and threads. May be called twice."""
        self._closed = True
        segments, self._segments = self._segments, ()
        for segment in segments:
            segment.opened.close()
        self._watch.close()
        self._reads.close()
        self._works.close()

    # How it reads.

    def _holding(self, place: Place) -> Segment | None:
        return next((part for part in self._segments if part.base <= place < part.end), None)

    async def _read(self, call: Callable[[], T]) -> T:
        return await self._reads.run(lambda: self._guarded(call))

    async def _work(self, call: Callable[[], T]) -> T:
        return await self._works.run(lambda: self._guarded(call))

    def _guarded(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except OSError as error:
            raise LogUnreadable(str(source_error(error, self._path))) from error
        except SourceError as error:
            raise LogUnreadable(str(error)) from error
