"""A log for a screen: pages from any position, its end at once, whatever its size.

It only holds what is asked for and a sparse index. Positions continue over a rotation: files stay open, so
that their lines can still be read. A file that was rotated before is opened when its lines are wanted, and
has negative positions. One that was truncated or rewritten gets positions after those it had. Pages are read
in one thread, everything slow in another, so that paging never waits for a search. No method blocks the event
loop.
"""

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

from jobtui.logs.segments import PACKED_BYTES, SCAN_BYTES, Segment
from jobtui.model import pages
from jobtui.model.clock import LogClock, Nanos
from jobtui.model.health import SourceError, SourceMissing
from jobtui.transport import files
from jobtui.transport.blocks import BlockReader, Limits, Position, align
from jobtui.transport.log_files import find_log_files, goes_on, rotated
from jobtui.transport.watch import Watch
from jobtui.transport.worker import Worker

FILES_HELD = 32
STEP_S, PAUSE_S = 0.02, 0.0002
"""How long a step of the index takes, and how long it pauses after it so that others may ask."""
SLICE_S = 0.05
"""How long one piece of slow work takes at most, after which it can be stopped."""

T = TypeVar("T")


class LogPages(pages.Log):
    def __init__(self, path: Path, clock: LogClock | None = None) -> None:
        self.name = str(path)
        self.path, self._clock = path, clock or LogClock()
        self.segments: tuple[Segment, ...] = ()
        self._event = ""
        self._reads = Worker(f"pages of {path.name}")
        self._works = Worker(f"index of {path.name}")
        self._watch = Watch(self._reads, [path], self.is_changed)
        self._looked: files.FileStat | None = None
        self._closed = self._has_earlier = False

    async def look(self) -> pages.Extent:
        return await self._in(self._reads, self._look)

    def is_changed(self) -> bool:
        return files.look_quietly(self.path) != self._looked

    async def changed(self, timeout_s: float) -> None:
        await self._watch.changed(timeout_s)

    @property
    def extent(self) -> pages.Extent:
        segments = self.segments
        if not segments:
            return pages.Extent(0, 0)
        return pages.Extent(segments[0].base, segments[-1].end, self._event)

    @property
    def changed_at(self) -> Nanos:
        return self.segments[-1].changed_at if self.segments else Nanos(0)

    def _look(self) -> pages.Extent:
        if self._closed:
            raise SourceMissing(f"{self.name}: is closed")
        if not self.segments:
            older = rotated(self.path)
            self._has_earlier = bool(older)
            path = older[-1] if older and files.look_quietly(self.path) is None else self.path
            self.segments = (Segment(files.open_file(path), 0, self._clock),)
            self._event = self.segments[-1].event
        self._looked = None
        self._looked = seen = files.look(self.path)
        segments = self.segments
        current = segments[-1]
        if seen.id == current.opened.id:
            if not current.grow():
                self._replace((*segments[:-1], Segment(files.open_file(self.path), current.end, self._clock)))
                self._event = "was truncated or rewritten"
            return self.extent
        current.grow()
        if not seen.size:  # the writer does not have the new file yet, and writes to the old one
            return self.extent
        opened = files.open_file(self.path)
        try:
            is_copy = goes_on(current.opened, current.mark, current.size, opened)
            fresh = Segment(opened, current.base if is_copy else current.end, self._clock)
        except (OSError, SourceError):
            opened.close()
            raise
        if not is_copy:
            self._event = "rotated"
        self._replace((*(segments[:-1] if is_copy else segments), fresh))
        return self.extent

    def _replace(self, segments: tuple[Segment, ...]) -> None:
        # A deleted file takes room on its disk as long as it is open; it may be there packed
        links = [segment.opened.plain.status().st_nlink for segment in segments[:-2]]
        gone = (nth for nth in range(len(links), 0, -1) if not links[nth - 1])
        before, self.segments = self.segments, segments[max(next(gone, 0), len(segments) - FILES_HELD) :]
        for segment in before:
            if segment not in self.segments:
                segment.opened.close()

    def _backward(self) -> Iterator[Segment]:
        """Its files, the newest first. Those that are not open are opened when they are wanted."""
        yield from reversed(self.segments)
        while self._open_earlier():
            yield self.segments[0]

    def _open_earlier(self) -> bool:
        """Open the rotated file before the first one that is open. False if there is none to read."""
        if not self.segments or len(self.segments) >= FILES_HELD:
            return False
        if sum(segment.size for segment in self.segments if segment.is_packed) >= PACKED_BYTES:
            self._event = "older packed files are not shown"
            return False
        kept, found = list[files.OpenFile](), None
        try:
            found, first = find_log_files(self.path), self.segments[0]
            earlier = found.before(first.opened)
            self._has_earlier = earlier is not None
            if earlier is None or earlier.opened is None:
                self._event = str(earlier.problem) if earlier is not None else self._event
                return False
            segment = Segment(earlier.opened, first.base, self._clock, ends=True)
            self.segments, self._event = (segment, *self.segments), segment.event or self._event
            kept.append(earlier.opened)
        except SourceError:  # the log is being rotated, or gone
            return False
        except OSError as error:  # it costs the lines of that file, and those before it
            self._event = str(files.source_error(error, f"a rotated file of {self.name}"))
            return False
        finally:
            if found is not None:
                found.close(kept)
        return True

    async def segment_before(self, position: int) -> Segment | None:
        """The last of its files that ends at `position` or before, None without any. Raises LogUnreadable."""
        ending = (segment for segment in self._backward() if segment.end <= position)
        return await self._in(self._reads, lambda: next(ending, None))

    async def before(self, position: int, count: int) -> pages.Page:
        return await self._in(self._reads, lambda: self._before(position, count))

    def _before(self, position: int, count: int) -> pages.Page:
        lines: list[pages.LogLine] = []
        for segment in self._backward():
            if position > segment.base:
                offset = min(position - segment.base, segment.size)
                lines[:0] = segment.pages.before(offset, segment.size, count - len(lines))
                if len(lines) >= count or (lines and lines[0].position > segment.base):
                    return pages.Page(tuple(lines), at_edge=False)
                position = segment.base
        return pages.Page(tuple(lines), at_edge=True)

    async def after(self, position: int, count: int) -> pages.Page:
        return await self._in(self._reads, lambda: self._after(position, count))

    def _after(self, position: int, count: int) -> pages.Page:
        lines: list[pages.LogLine] = []
        while position < self.extent.begin and self._open_earlier():
            pass
        for segment in self.segments:
            if position < segment.end and len(lines) < count:
                offset = max(0, position - segment.base)
                lines += segment.pages.after(offset, segment.size, count - len(lines))
                if lines and lines[-1].end < segment.end:
                    break
        return pages.Page(tuple(lines), not lines or lines[-1].end >= self.extent.end)

    async def file_position(self, position: int) -> pages.FilePosition | None:
        segment = next((part for part in self.segments if part.base <= position < part.end), None)
        if segment is None:
            return None
        offset, is_last = position - segment.base, segment is self.segments[-1]

        def find() -> pages.FilePosition | None:
            for path in (self.path,) if is_last else rotated(self.path):
                seen = files.look_quietly(path)
                if seen is not None and seen.id == segment.opened.id:
                    return pages.FilePosition(str(path), offset, segment.number_of(offset))
            return None

        return await self._in(self._reads, find)

    async def position_of(self, offset: int, text: str) -> int | None:
        def find() -> int | None:
            if not self.segments:
                self._look()
            holding = (segment for segment in self._backward() if segment.holds(offset, text))
            return next((segment.base + offset for segment in holding), None)

        return await self._in(self._reads, find)

    async def work(self) -> bool:
        def step() -> bool:
            until = time.monotonic() + STEP_S
            while any(segment.index.step(segment.size) for segment in reversed(self.segments)):
                if time.monotonic() > until:
                    return True
                # Lets the thread of the screen run at once
                time.sleep(PAUSE_S)
            return False

        return await self._in(self._works, step)

    def overview(self) -> pages.Overview:
        segments = self.segments
        parts = (part for segment in segments for part in segment.index.stretches(segment.base))
        until = next((at for segment in reversed(segments) if (at := segment.index.until)), None)
        complete = not self._has_earlier and all(segment.index.complete for segment in segments)
        return pages.overview_of(parts, until, complete=complete)

    async def position_of_line(self, number: int) -> int | None:
        if not self.segments:
            return None
        segment = self.segments[-1]
        while (offset := await self._in(self._works, lambda: segment.index.offset_of(number))) is None:
            await self.work()
        return segment.base + min(offset, max(0, segment.size - 1))

    async def position_of_time(self, at: Nanos) -> int | None:
        while bool(self.segments) and await self._in(self._works, lambda: self.segments[0].is_all_since(at)):
            if not await self._in(self._reads, self._open_earlier):
                break
        for segment in self.segments:
            if (offset := await self._in(self._works, partial(segment.offset_of_time, at))) is not None:
                return segment.base + offset
        return None

    async def next_error(self, position: int, *, forward: bool) -> int | None:
        at: int | None = position + 1 if forward else position
        while at is not None:
            found, at = await self._in(self._works, partial(self._error_at, at, forward))
            if found is not None:
                return found
            if at is None and not forward and await self._in(self._reads, self._open_earlier):
                at = self.segments[0].end
        return None

    def _error_at(self, position: int, forward: bool) -> tuple[int | None, int | None]:
        """The next error found in a slice of time, or where to go on."""
        until = time.monotonic() + SLICE_S
        for segment in self.segments if forward else reversed(self.segments):
            while position < segment.end if forward else position > segment.base:
                begin = max(0, position - segment.base if forward else position - segment.base - SCAN_BYTES)
                end = min(segment.size, begin + SCAN_BYTES if forward else position - segment.base)
                errors = segment.index.errors_in(begin, end)
                at = next(errors, None) if forward else max(errors, default=None)
                if at is not None:
                    return segment.base + at, None
                position = segment.base + (end if forward else begin)
                if time.monotonic() > until:
                    return None, position
        return None, None

    def search(self, query: pages.Query, around: int) -> pages.LogSearch:
        # Imported here, as paging does not need it
        from jobtui.logs.search import FileSearch

        return FileSearch(lambda: self.segments, self.segment_before, query)

    async def aclose(self) -> None:
        self._closed = True
        self._watch.close()
        self._works.close()
        self._reads.soon(self._close_files)  # after what is being opened
        self._reads.close()

    def _close_files(self) -> None:
        segments, self.segments = self.segments, ()
        for segment in segments:
            segment.opened.close()

    async def _in(self, worker: Worker, call: Callable[[], T]) -> T:
        try:
            return await worker.run(call)
        except OSError as error:
            raise pages.LogUnreadable(str(files.source_error(error, self.path))) from error
        except SourceError as error:
            raise pages.LogUnreadable(str(error)) from error


SAMPLE_BYTES = 16 << 20


def tail_lines(path: Path, size: int = SAMPLE_BYTES) -> Iterator[bytes]:
    """The lines in the last `size` bytes of a log, or in the first of a packed one. Raises SourceError."""
    limits = Limits()
    with files.opened_file(path) as opened:
        end = size if opened.packed else opened.look().size
        begin = align(opened.source, max(0, end - size), limits.line)
        if begin is None:
            return
        reader = BlockReader(opened.source, "", Position(begin), limits)
        reader.end = end
        while (block := reader.next(release=True)) is not None or reader.more:
            yield from block.data.split(b"\n")[:-1] if block is not None else ()
