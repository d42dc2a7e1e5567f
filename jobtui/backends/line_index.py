"""A sparse index of one file, built from its tail backwards in small steps: lines, errors and times by block.

One block of 64 KB takes 16 bytes here, so that the index of 10 GB is a few MB. Lines are numbered exactly as
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
STEP_BLOCKS = 8
"""Blocks looked through in one step; a step takes the time of a few painted lines."""
ERRORS_BYTES = 1 << 30
"""So far from the end errors are looked for: beyond it only lines are counted."""
TIMED_LINES = 20
"""Lines at the beginning of a block that are asked for their time."""


class LineIndex:
    """What is known of a file from byte `low` up to byte `high`. Methods that read raise OSError."""

    def __init__(self, source: ByteSource, size: int, time_of: TimeOf) -> None:
        self._source = source
        self._time_of = time_of
        self._first_size = size
        blocks = size // BLOCK + 1
        self._lines = array("I", bytes(4 * blocks))
        self._errors = array("I", bytes(4 * blocks))
        self._times = array("q", bytes(8 * blocks))
        self.low = self.high = size - size % BLOCK
        self.lines = 0
        self.errors = 0

    @property
    def complete(self) -> bool:
        """Whether the file was looked through from its first byte on."""
        return self.low == 0

    def step(self, size: int) -> bool:
        """Look through a little more of a file of `size` bytes; whether there is more."""
        if (stop := self._last_newline(size)) > self.high:
            self._read_on(stop)
        elif self.low > 0:
            begin = max(0, self.low - STEP_BLOCKS * BLOCK)
            self._count(begin, self.low)
            self.low = begin
        return self.low > 0 or self._last_newline(size) > self.high

    def _read_on(self, stop: int) -> None:
        stop = min(stop, self.high + STEP_BLOCKS * BLOCK)
        missing = stop // BLOCK + 1 - len(self._lines)
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
            start = max(begin, size - BLOCK)
            newline = self._source.read(start, size - start).rfind(b"\n")
            if newline >= 0:
                return start + newline + 1
            # A line without an end is not looked through again and again.
            return begin if size - begin < BLOCK else size
        return begin

    def _count(self, begin: int, stop: int) -> None:
        before = 1 if begin else 0
        data = self._source.read(begin - before, before + stop - begin + LEVEL_BYTES)
        origin = begin - before
        place = begin
        while place < stop:
            end = min(stop, place - place % BLOCK + BLOCK)
            block = place // BLOCK
            lines = data.count(b"\n", place - origin, end - origin)
            self._lines[block] += lines
            self.lines += lines
            if not self._times[block]:
                self._times[block] = self._first_time(data, place - origin, end - origin) or 0
            place = end
        if self._first_size - begin > ERRORS_BYTES:
            return
        for at in error_lines(data, before, stop - origin):
            self._errors[(origin + at) // BLOCK] += 1
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
        """What is known, block by block; `base` makes a place of an offset."""
        for block in range(self.low // BLOCK, len(self._lines)):
            at = self._times[block]
            yield Stretch(base + block * BLOCK, Nanos(at) or None, self._lines[block], self._errors[block])

    def number_of(self, offset: int) -> int | None:
        """The number of the line that begins at `offset`, None while lines before it are not counted."""
        if not self.complete or offset > self.high:
            return None
        block = offset // BLOCK
        rest = self._source.read(block * BLOCK, offset - block * BLOCK)
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
                return block * BLOCK + self._nth_newline(block, left) + 1
            left -= lines
        return self.high

    def _nth_newline(self, block: int, nth: int) -> int:
        data = self._source.read(block * BLOCK, BLOCK)
        at = -1
        for _ in range(nth):
            at = data.find(b"\n", at + 1)
        return at

    def has_errors(self, begin: int, end: int) -> bool:
        """Whether errors may begin in `begin` .. `end`: false only where all of it was looked through."""
        if begin < max(self.low, self._first_size - ERRORS_BYTES) or end > self.high:
            return True
        return any(self._errors[begin // BLOCK : end // BLOCK + 1])
