"""A sparse index of one file, built from its tail backwards in small steps: lines, errors and times by block.

A block takes 16 bytes here, so that the index of 10 GB is a few MB. Lines are numbered exactly as
soon as all blocks before them are counted. Reads, and blocks.
"""

from array import array
from collections.abc import Iterator

from jobtui.backends.file_access import ByteSource
from jobtui.backends.page_reader import TimeOf
from jobtui.formats.levels import LEVEL_BYTES, error_lines
from jobtui.model.clock import Nanos
from jobtui.model.pages import Stretch

BLOCK = 64 << 10
FINE_BLOCK = 4 << 10
"""Size of a block in a small file, so that also its lines spread over the histogram."""
SMALL_BYTES, OUTGROWN_BYTES = 8 << 20, 64 << 20
"""A file up to this size has fine blocks, until it has grown to that one."""
STEP_BYTES = 2 * BLOCK
"""How much is looked through in one step; a step takes the time of a few painted lines."""
ERRORS_BYTES = 1 << 30
"""So far from the end errors are looked for: beyond it only lines are counted."""
STRETCHES = 1_000
"""Parts the file is told in at most, for the histogram."""
TIMED_LINES = 20
"""Lines at the beginning of a block that are asked for their time."""


class LineIndex:
    """What is known of a file from byte `low` up to byte `high`. Methods that read raise OSError."""

    def __init__(self, source: ByteSource, size: int, time_of: TimeOf) -> None:
        self._source = source
        self._time_of = time_of
        self._first_size = size
        self._block = FINE_BLOCK if size <= SMALL_BYTES else BLOCK
        blocks = size // self._block + 1
        self._lines = array("I", bytes(4 * blocks))
        self._errors = array("I", bytes(4 * blocks))
        self._times = array("q", bytes(8 * blocks))
        self.low = self.high = size - size % self._block
        self.lines = 0
        self.errors = 0

    @property
    def complete(self) -> bool:
        """Whether the file was looked through from its first byte on."""
        return self.low == 0

    def is_outgrown(self, size: int) -> bool:
        """Whether a new index of a file of this size would take much less room."""
        return self._block == FINE_BLOCK and size >= OUTGROWN_BYTES

    def step(self, size: int) -> bool:
        """Look through a little more of a file of `size` bytes; whether there is more."""
        if (stop := self._last_newline(size)) > self.high:
            self._read_on(stop)
        elif self.low > 0:
            begin = max(0, self.low - STEP_BYTES)
            self._count(begin, self.low)
            self.low = begin
        return self.low > 0 or self._last_newline(size) > self.high

    def _read_on(self, stop: int) -> None:
        stop = min(stop, self.high + STEP_BYTES)
        missing = stop // self._block + 1 - len(self._lines)
        if missing > 0:
            self._lines.extend([0] * missing)
            self._errors.extend([0] * missing)
            self._times.extend([0] * missing)
        self._count(self.high, stop)
        self.high = stop

    def _last_newline(self, size: int) -> int:
        """Behind the last newline in the file, not before `high`: an unfinished line is not counted."""
        begin = self.high
        while begin < size:
            start = max(begin, size - self._block)
            newline = self._source.read(start, size - start).rfind(b"\n")
            if newline >= 0:
                return start + newline + 1
            # A line without an end is not looked through again and again.
            return begin if size - begin < self._block else size
        return begin

    def _count(self, begin: int, stop: int) -> None:
        before = 1 if begin else 0
        data = self._source.read(begin - before, before + stop - begin + LEVEL_BYTES)
        origin = begin - before
        place = begin
        while place < stop:
            end = min(stop, place - place % self._block + self._block)
            block = place // self._block
            lines = data.count(b"\n", place - origin, end - origin)
            self._lines[block] += lines
            self.lines += lines
            if not self._times[block]:
                self._times[block] = self._first_time(data, place - origin, end - origin) or 0
            place = end
        if self._first_size - begin > ERRORS_BYTES:
            return
        for at in error_lines(data, before, stop - origin):
            self._errors[(origin + at) // self._block] += 1
            self.errors += 1

    def _first_time(self, data: bytes, start: int, stop: int) -> Nanos | None:
        at = data.find(b"\n", start - 1, stop) + 1 if start else 0
        for _ in range(TIMED_LINES):
            if at <= 0 and start:
                return None
            end = data.find(b"\n", at, stop)
            if (time := self._time_of(data[at : end if end >= 0 else stop])) is not None:
                return time
            if end < 0:
                return None
            at = end + 1
        return None

    def stretches(self, base: int) -> Iterator[Stretch]:
        """What is known, some blocks together; `base` makes a place of an offset."""
        first, count = self.low // self._block, len(self._lines)
        together = (count - first) // STRETCHES + 1
        for block in range(first, count, together):
            stop = block + together
            at = next(filter(None, self._times[block:stop]), 0)
            lines, errors = sum(self._lines[block:stop]), sum(self._errors[block:stop])
            yield Stretch(base + block * self._block, Nanos(at) if at else None, lines, errors)

    def number_of(self, offset: int) -> int | None:
        """The number of the line that begins at `offset`, None while lines before it are not counted."""
        if not self.complete or offset > self.high:
            return None
        block = offset // self._block
        rest = self._source.read(block * self._block, offset - block * self._block)
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
                return block * self._block + self._nth_newline(block, left) + 1
            left -= lines
        return self.high

    def _nth_newline(self, block: int, nth: int) -> int:
        data = self._source.read(block * self._block, self._block)
        at = -1
        for _ in range(nth):
            at = data.find(b"\n", at + 1)
        return at

    def has_errors(self, begin: int, end: int) -> bool:
        """Whether errors may begin in `begin` .. `end`: false only where all of it was looked through."""
        if begin < max(self.low, self._first_size - ERRORS_BYTES) or end > self.high:
            return True
        return any(self._errors[begin // self._block : end // self._block + 1])
