"""One file of a log: pages of it from any position, its index of lines, times and errors.

One call reads at most PAGE_BYTES; a longer line is given in pieces, each as a line. Runs of NUL bytes at the
beginning of a line are not shown, but reported.

A block takes 16 bytes in the index, so that the index of 10 GB is a few MB. Line numbers are exact once all
blocks before them are counted. Nothing here uses threads.
"""

from array import array
from collections import deque
from collections.abc import Iterator
from itertools import islice

from jobtui.formats.levels import LEVEL_BYTES, error_lines, level_of
from jobtui.model.clock import TIME_LENGTH, LogClock, Nanos, latest
from jobtui.model.pages import LogLine, Stretch
from jobtui.transport.blocks import RAW_LINE_BYTES, TimeOf, first_time, mark_before, offset_of_time
from jobtui.transport.files import CHUNK_BYTES, ByteSource, OpenFile, written_at

PAGE_BYTES = 4 << 20
"""How much is read for one page at most, and the longest line that is given as one."""
_FIRST_READ = 64 << 10
_ALIGN_READ = 4 << 10


def line_start(source: ByteSource, offset: int) -> int:
    """The byte at which the line that holds byte `offset` begins, or as far back as a line may reach."""
    size = _ALIGN_READ
    stop = max(0, offset - PAGE_BYTES)
    while True:
        begin = max(stop, offset - size)
        newline = source.read(begin, offset - begin).rfind(b"\n")
        if newline >= 0:
            return begin + newline + 1
        if begin == stop:
            return stop
        size *= 8


class PageReader:
    """Pages of one file. `base` is added to its offsets to make positions. Methods raise OSError."""

    def __init__(self, source: ByteSource, base: int, time_of: TimeOf) -> None:
        self._source = source
        self._base = base
        self._time_of = time_of

    def before(self, offset: int, end: int, count: int) -> list[LogLine]:
        """Up to `count` lines before the one that holds byte `offset`, all at byte `end`, the file's."""
        end = line_start(self._source, offset) if offset < end else end
        size = min(_FIRST_READ, end)
        while True:
            begin = end - size
            data = self._source.read(begin, size)
            if len(data) < size:
                # The file was truncated in between.
                return []
            if begin == 0 or size >= PAGE_BYTES or data.count(b"\n", 0, -1) > count:
                break
            size = min(size * 4, PAGE_BYTES, end)
        if begin > 0 and (whole := data.find(b"\n", 0, len(data) - 1) + 1):
            data, begin = data[whole:], begin + whole
        missing = max(0, data.count(b"\n", 0, -1) + 1 - count)
        cut = 0
        for _ in range(missing):
            cut = data.find(b"\n", cut) + 1
        return list(self._lines(data[cut:], begin + cut)) if data else []

    def after(self, offset: int, end: int, count: int) -> list[LogLine]:
        """Up to `count` lines from the one that holds byte `offset` on, before byte `end`."""
        if offset >= end:
            return []
        begin = line_start(self._source, offset)
        size = min(_FIRST_READ, end - begin)
        while True:
            data = self._source.read(begin, size)
            at_end = begin + len(data) >= end or len(data) < size
            if at_end or size >= PAGE_BYTES or data.count(b"\n") >= count:
                break
            size = min(size * 4, PAGE_BYTES, end - begin)
        if not at_end and (whole := data.rfind(b"\n") + 1):
            data = data[:whole]
        return list(islice(self._lines(data, begin), count))

    def _lines(self, data: bytes, begin: int) -> Iterator[LogLine]:
        stop = begin + len(data)
        parts = data.split(b"\n")
        if not parts[-1]:
            parts.pop()
        for part in parts:
            end = min(begin + len(part) + 1, stop)
            whole = part.removesuffix(b"\r")
            text = whole.lstrip(b"\0")
            nuls = len(whole) - len(text)
            notes = [f"{nuls:,} NUL bytes"] if nuls else []
            if len(text) > RAW_LINE_BYTES:
                notes.append(f"{len(text):,} bytes in this line")
            shown = text[:RAW_LINE_BYTES].decode("utf-8", "replace")
            yield LogLine(
                position=self._base + begin,
                end=self._base + end,
                text=shown,
                size=len(part),
                level=level_of(shown),
                at=self._time_of(text),
                note=", ".join(notes),
            )
            begin = end


BLOCK = 64 << 10
FINE_BLOCK = 4 << 10
"""The size of a block in a small file, so that its lines spread over the histogram, too."""
SMALL_BYTES = 8 << 20
"""A file that is not larger when it is opened has fine blocks."""
STEP_BYTES = 2 * BLOCK
"""How much is read in one step; a step takes the time of a few painted lines."""
ERRORS_BYTES = 1 << 30
"""How far from the end errors are searched for: beyond it only lines are counted."""
STRETCHES = 1_000
"""The most parts into which a file is divided for the histogram."""
KNOWN_CHARACTERS = 200
"""How much of a line's text must still be where it was."""
TIMED_LINES = 20
"""How many lines at the beginning of a block are searched for a time."""


class LineIndex:
    """The lines counted in a file from byte `low` up to byte `high`. Methods that read raise OSError."""

    def __init__(self, source: ByteSource, size: int, time_of: TimeOf) -> None:
        self._source = source
        self._time_of = time_of
        self._first_size = size
        self.block = FINE_BLOCK if size <= SMALL_BYTES else BLOCK
        blocks = size // self.block + 1
        self._lines = array("I", bytes(4 * blocks))
        self._errors = array("I", bytes(4 * blocks))
        self._times = array("q", bytes(8 * blocks))
        self.low = self.high = size - size % self.block
        self.lines = 0
        self.until: Nanos | None = None
        """The time of the newest line that has one, among those counted last."""

    @property
    def complete(self) -> bool:
        return self.low == 0

    def step(self, size: int) -> bool:
        """Read a little more of a file of `size` bytes. True if there is more."""
        if (stop := self._last_newline(size)) > self.high:
            stop = min(stop, self.high + STEP_BYTES)
            for counts in (self._lines, self._errors, self._times):
                counts.extend([0] * (stop // self.block + 1 - len(counts)))
            self._count(self.high, stop)
            self.high = stop
        elif self.low > 0:
            begin = max(0, self.low - STEP_BYTES)
            self._count(begin, self.low)
            self.low = begin
        return self.low > 0 or self._last_newline(size) > self.high

    def _last_newline(self, size: int) -> int:
        """After the last newline in the file, not before `high`: an unfinished line is not counted."""
        begin = self.high
        while begin < size:
            start = max(begin, size - self.block)
            newline = self._source.read(start, size - start).rfind(b"\n")
            if newline >= 0:
                return start + newline + 1
            # A line without an end is not read again and again.
            return begin if size - begin < self.block else size
        return begin

    def _count(self, begin: int, stop: int) -> None:
        before = 1 if begin else 0
        data = self._source.read(begin - before, before + stop - begin + LEVEL_BYTES)
        origin = begin - before
        position = begin
        while position < stop:
            end = min(stop, position - position % self.block + self.block)
            block = position // self.block
            lines = data.count(b"\n", position - origin, end - origin)
            self._lines[block] += lines
            self.lines += lines
            if not self._times[block]:
                self._times[block] = self._first_time(data, position - origin, end - origin) or 0
            position = end
        if stop > self.high or self.until is None:
            newest = reversed(data[: stop - origin].rsplit(b"\n", TIMED_LINES)[1:])
            times = filter(None, map(self._time_of, newest))
            self.until = next(times, self.until)
        if self._first_size - begin > ERRORS_BYTES:
            return
        for at in error_lines(data, before, stop - origin):
            self._errors[(origin + at) // self.block] += 1

    def _first_time(self, data: bytes, start: int, stop: int) -> Nanos | None:
        lines = data[max(0, start - 1) : stop].split(b"\n", TIMED_LINES)
        whole = lines[1:] if start else lines
        return next((at for line in whole if (at := self._time_of(line)) is not None), None)

    def stretches(self, base: int) -> Iterator[Stretch]:
        """The counts, some blocks together; `base` makes a position of an offset."""
        first, count = self.low // self.block, len(self._lines)
        together = (count - first) // STRETCHES + 1
        for block in range(first, count, together):
            stop = block + together
            at = next(filter(None, self._times[block:stop]), 0)
            lines, errors = sum(self._lines[block:stop]), sum(self._errors[block:stop])
            yield Stretch(base + block * self.block, Nanos(at) if at else None, lines, errors)

    def number_of(self, offset: int) -> int | None:
        """The number of the line that begins at `offset`, None while lines before it are not counted."""
        if not self.complete or offset > self.high:
            return None
        block = offset // self.block
        rest = self._source.read(block * self.block, offset - block * self.block)
        return sum(self._lines[:block]) + rest.count(b"\n") + 1

    def offset_of(self, number: int) -> int | None:
        """Where the line with this number begins, the last one's beginning for a larger number.

        None while the lines before it are not counted.
        """
        if not self.complete:
            return None
        left = max(0, min(number, self.lines + 1) - 1)
        if left == 0:
            return 0
        for block, lines in enumerate(self._lines):
            if left <= lines:
                data = self._source.read(block * self.block, self.block)
                at = 0
                for _ in range(left):
                    at = data.find(b"\n", at) + 1
                return block * self.block + at
            left -= lines
        return self.high

    def errors_in(self, begin: int, end: int) -> Iterator[int]:
        """The bytes in `begin` .. `end` at which lines with errors begin, in order."""
        is_looked_through = begin >= max(self.low, self._first_size - ERRORS_BYTES) and end <= self.high
        known = self._errors[begin // self.block : end // self.block + 1]
        if begin >= end or (is_looked_through and not any(known)):
            return iter(())
        before = 1 if begin else 0
        data = self._source.read(begin - before, before + end - begin + LEVEL_BYTES)
        return (begin - before + at for at in error_lines(data, before, before + end - begin))


PACKED_BYTES = 64 << 20
"""How much text from the end of a packed file is held: it can be read in one direction only."""
SCAN_BYTES = 8 * BLOCK
"""How much is searched for errors at once."""


class TextBytes(ByteSource):
    """The end of a packed file's text, in memory."""

    def __init__(self, packed: ByteSource) -> None:
        kept: deque[bytes] = deque()
        self.size = offset = 0
        while data := packed.read(offset, CHUNK_BYTES):
            offset += len(data)
            self.size += len(data)
            kept.append(data)
            while self.size - len(kept[0]) >= PACKED_BYTES:
                self.size -= len(kept.popleft())
        self._text = b"".join(kept)
        self.is_whole = offset == self.size

    def read(self, offset: int, size: int) -> bytes:
        return self._text[offset : offset + size]


class Segment:
    """A file whose first byte is the position `base`, with the size that it had at the last look.

    It begins at the position `at`, or `ends` there.
    Methods that read raise OSError.
    """

    def __init__(self, opened: OpenFile, at: int, clock: LogClock, *, ends: bool = False) -> None:
        self.opened, self._clock = opened, clock
        self.event = ""
        self._seen = opened.look()
        self.changed_at = written_at(opened, self._seen)
        self.source: ByteSource = opened.source
        self.size = self._seen.size
        if opened.packed is not None:
            text = TextBytes(opened.packed)
            self.source, self.size = text, text.size
            if opened.packed.broken is not None:
                self.event = f"packed text ends: {opened.packed.broken}"
            elif not text.is_whole:
                self.event = f"packed: only the last {PACKED_BYTES >> 20} MB of its text"
        self.base = at - self.size if ends else at
        self.mark = self._mark_in(self.source)
        self.pages = PageReader(self.source, self.base, self._time_of)
        self.index = LineIndex(self.source, self.size, self._time_of)

    @property
    def end(self) -> int:
        return self.base + self.size

    @property
    def is_packed(self) -> bool:
        return self.opened.packed is not None

    def grow(self) -> bool:
        """Add what was written since; False if the file was truncated or rewritten instead."""
        seen = self.opened.look()
        if seen == self._seen:
            return True
        self._seen, self.changed_at = seen, written_at(self.opened, seen)
        if self.is_packed or seen.size < self.size or self._mark_in(self.source) != self.mark:
            return False
        if seen.size > self.size:
            self.size = seen.size
            self.mark = self._mark_in(self.source)
        return True

    def _mark_in(self, source: ByteSource) -> bytes:
        return mark_before(source.read, self.size)

    def _time_of(self, line: bytes) -> Nanos | None:
        at = latest(line[:TIME_LENGTH].decode("ascii", "replace"), self.changed_at)
        return None if at is None else self._clock.utc(at)

    def number_of(self, offset: int) -> int | None:
        """The number of the line at a byte, None while the lines before it are not counted."""
        is_cut = isinstance(self.source, TextBytes) and not self.source.is_whole
        return None if is_cut else self.index.number_of(offset)

    def is_all_since(self, at: Nanos) -> bool:
        """Whether its first line with a time is not older, so that more of this time may be before it."""
        first = first_time(self.source, 0, self.size, self._time_of)
        return first is None or first.at >= at

    def holds(self, offset: int, text: str) -> bool:
        """Whether a line begins at byte `offset` that holds a text."""
        lines = self.pages.after(offset, self.size, 1)
        is_there = bool(lines) and lines[0].position == self.base + offset
        return is_there and text[:KNOWN_CHARACTERS] in lines[0].text

    def offset_of_time(self, at: Nanos) -> int | None:
        """The offset of the first line of this time or later; None if no line has such a time."""
        offset = offset_of_time(self.source, self.size, at, self._time_of)
        return offset if offset is not None and offset < self.size else None
