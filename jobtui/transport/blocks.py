"""Whole lines out of a file, block by block; a time or a line number found in it. Reads, and blocks.

Defines where a line begins and ends: unfinished last lines, lines without bound, runs of NUL bytes (left by a
process that goes on writing at its old place in a truncated file; see Sirepo issue 6809). Every byte is
given, is waiting for its newline, or is reported as skipped. Memory is bounded by one block or one line.
Reads at offsets only and keeps no bytes between calls, so what was waiting is read again with what followed.
"""

import re
from collections import deque
from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import NamedTuple

import msgspec

from jobtui.model.clock import Nanos
from jobtui.model.health import SKIPS_NAMED, Skip
from jobtui.model.numbers import counted
from jobtui.transport.files import ByteSource

HOLE_BYTES = 64
"""NUL bytes in a row that are no part of a line; at the beginning of a line one is enough."""
SETTLED_HOLE_BYTES = 1 << 20
"""A run of NULs at the end is waited for like an unfinished line (a network file system shows one before the
text arrives), unless it is as long as this: waiting means reading it again and again."""

MARK_BYTES = 256
"""How many bytes before the position are compared, to notice that a file was rewritten. All of them
must be there to believe that another file continues the same text.
"""

_NULS = re.compile(rb"\0+")
_ZEROS = bytes(1 << 20)
_AFTER_HOLE_BYTES = 4 << 10


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a file is held or done at once; sizes in bytes.

    `block` is given to the parser at a time, `line` the longest line given whole, `skip` how much is skipped
    in one call. `batch` and `batch_records` bound a poll. `count`: up to this size the lines before the
    position where reading begins are counted at once, beyond it when someone asks. `hold_s` is how long an
    unfinished last line waits for its newline, `retire_s` how long a rotated file is still looked at,
    `gone_s` how long a missing file counts as being rotated.
    """

    block: int = 256 << 10
    line: int = 1 << 20
    skip: int = 256 << 20
    batch: int = 4 << 20
    batch_records: int = 2_000
    count: int = 256 << 20
    hold_s: float = 1.0
    retire_s: float = 10.0
    gone_s: float = 1.0


class LinePart(StrEnum):
    """Which part of a line is at a position.

    `start`: its first byte. `rest`: what follows a beginning that was given as a line of its own.
    `drop`: the rest of a line that is too long, to be left out.
    """

    START = "start"
    REST = "rest"
    DROP = "drop"


class Position(msgspec.Struct, frozen=True):
    """A position in a file. `line` is the number of the line it is in."""

    offset: int = 0
    line: int = 1
    within: LinePart = LinePart.START


class Block(msgspec.Struct, frozen=True, gc=False):
    """Whole lines, contiguous in the file from byte `offset` and line number `line` on.

    Each ends in a newline; the last one's is added when the file has none there.
    """

    data: bytes
    offset: int
    line: int


class BlockReader:
    """Reads on from a position. `position` is where the next call begins, `skips` names what was left out.

    `mark` is what was read right before the position, at most MARK_BYTES: both move together.
    Nothing at or after `end` is given, unless it is None. `more` tells after a call that gave None whether
    only the limit on skipping ended it.
    """

    def __init__(self, source: ByteSource, name: str, position: Position, limits: Limits) -> None:
        self.source = source
        self.position = position
        self.mark = mark_before(source.read, position.offset)
        self.skips: deque[Skip] = deque(maxlen=SKIPS_NAMED)
        self.skip_count = 0
        self.more = False
        self.end: int | None = None
        self._name = name
        self._limits = limits
        self._dropped = 0
        self._size = limits.block

    def next(self, *, release: bool = False) -> Block | None:
        """The next whole lines; None at the end, or when only an unfinished line is left there.

        With `release` an unfinished line is given as it is. Raises OSError.
        """
        stop = self.position.offset + self._limits.skip
        while self.position.offset < stop:
            before = self.position
            block = self._step(release)
            if block is not None or self.position == before:
                self.more = False
                return block
        self.more = True
        return None

    def _step(self, release: bool) -> Block | None:
        # Where holes are many, most of a large block would be read again after each of them.
        size, self._size = self._size, min(self._size * 2, self._limits.block)
        data = self._read(size)
        if not data:
            return None
        if self.position.within is LinePart.DROP:
            self._drop(data)
            return None
        if self.position.within is LinePart.REST and data.startswith(b"\n"):
            self._move(b"\n", lines=1)
            return None
        if len(data) == size and b"\n" not in data and not data.startswith(b"\0"):
            data = self._read(self._limits.line + 1)
        for hole in _NULS.finditer(data) if b"\0" in data else ():
            size = hole.end() - hole.start()
            if size >= HOLE_BYTES or hole.start() == 0 or data[hole.start() - 1] == ord("\n"):
                return self._up_to_hole(data, hole, release)
        if end := data.rfind(b"\n") + 1:
            return self._give(data[:end])
        if len(data) > self._limits.line:
            self._skip(f"line longer than {self._limits.line} bytes, its rest is left out")
            return self._give(data[: self._limits.line], newline_missing=True, then=LinePart.DROP)
        return self._give(data, newline_missing=True, then=LinePart.REST) if release else None

    def _up_to_hole(self, data: bytes, hole: re.Match[bytes], release: bool) -> Block | None:
        if end := data.rfind(b"\n", 0, hole.start()) + 1:
            return self._give(data[:end])
        begin = self.position.offset + hole.start()
        end = self.position.offset + hole.end()
        if hole.end() == len(data):
            stop = end + self._limits.skip
            while end < stop:
                zeros = self.source.read(end, len(_ZEROS))
                if zeros != _ZEROS:
                    end += len(zeros) - len(zeros.lstrip(b"\0"))
                    break
                end = self.source.next_data(end + len(zeros))
            if not release and end - begin < SETTLED_HOLE_BYTES and not self.source.read(end, 1):
                return None
        if hole.start():
            return self._give(data[: hole.start()], newline_missing=True)
        self._skip(f"{end - begin} NUL bytes in a row")
        self._move(bytes(min(end - begin, MARK_BYTES)), size=end - begin)
        self._size = min(_AFTER_HOLE_BYTES, self._limits.block)
        return None

    def _drop(self, data: bytes) -> None:
        end = data.find(b"\n") + 1
        self._dropped += end - 1 if end else len(data)
        if not end:
            self._move(data, then=LinePart.DROP)
            return
        self._skip(f"{counted(self._dropped, 'byte')} left out of this line", counted=0)
        self._dropped = 0
        self._move(data[:end], lines=1)

    def _give(self, data: bytes, *, newline_missing: bool = False, then: LinePart = LinePart.START) -> Block:
        block = Block(data + b"\n" if newline_missing else data, self.position.offset, self.position.line)
        self._move(data, lines=data.count(b"\n"), then=then)
        return block

    def _move(
        self, data: bytes, *, size: int | None = None, lines: int = 0, then: LinePart = LinePart.START
    ) -> None:
        """Go on after `data`, or after `size` bytes of which it is the end."""
        passed = len(data) if size is None else size
        self.mark = (self.mark + data[-MARK_BYTES:])[-MARK_BYTES:]
        self.position = Position(self.position.offset + passed, self.position.line + lines, then)

    def _read(self, size: int) -> bytes:
        left = size if self.end is None else min(size, self.end - self.position.offset)
        return self.source.read(self.position.offset, left) if left > 0 else b""

    def _skip(self, why: str, *, counted: int = 1) -> None:
        self.skips.append(skip_at(self._name, self.position, why))
        self.skip_count += counted


def skip_at(name: str, position: Position, why: str) -> Skip:
    line = f":{position.line}" if position.line > 0 else ""
    return Skip(f"{name}{line} (byte {position.offset})", why)


def mark_before(read: Callable[[int, int], bytes], offset: int) -> bytes:
    """The bytes right before a position, to recognize the text later. Raises OSError."""
    begin = max(0, offset - MARK_BYTES)
    return read(begin, offset - begin) if offset else b""


def align(source: ByteSource, offset: int, line_limit: int) -> int | None:
    """The byte at or after `offset` where a line begins; None when none does within `line_limit` bytes.

    A run of NULs ends a line, too. Beyond the file's end no line begins yet, unless the last one is finished.
    """
    if offset <= 0:
        return 0
    data = source.read(offset - 1, line_limit + 1)
    if data.startswith(b"\0"):
        return offset
    newline = data.find(b"\n")
    hole = data.find(bytes(HOLE_BYTES))
    if hole >= 0 and (newline < 0 or hole < newline):
        return offset - 1 + hole
    return offset + newline if newline >= 0 else None


PROBE_BYTES = 1 << 20
"""How many bytes after a position are searched for a time."""
RAW_LINE_BYTES = 16 << 10
"""How much of a line is shown."""
_WINDOW_BYTES = 64 << 10
_COUNT_READ_BYTES = 1 << 20

TimeOf = Callable[[bytes], Nanos | None]


class Timed(NamedTuple):
    """A line with a time at its head, by the byte where it begins."""

    offset: int
    at: Nanos


def first_time(source: ByteSource, offset: int, end: int, time_of: TimeOf) -> Timed | None:
    """The first line with a time in `offset` .. `end`; None when PROBE_BYTES of text hold none."""
    return next(_timed_lines(source, offset, end, time_of), None)


def offset_of_time(source: ByteSource, size: int, at: Nanos, time_of: TimeOf) -> int | None:
    """The byte where the first line not older than `at` begins; `size` when all are older.

    None when neither the beginning nor the end holds a time. Takes the times to grow. Where a stretch holds
    none, the position found lies before it: too early costs time, too late would lose lines.
    """
    begins = (0, max(0, size - PROBE_BYTES))
    if all(first_time(source, begin, size, time_of) is None for begin in begins):
        return None
    low, high = 0, size
    while high - low > PROBE_BYTES:
        middle = (low + high) // 2
        found = first_time(source, middle, high, time_of)
        if found is None or found.at >= at:
            high = middle
        else:
            low = found.offset
    last = low
    for timed in _timed_lines(source, low, size, time_of):
        if timed.at >= at:
            return timed.offset
        last = timed.offset
    return size if size - low <= PROBE_BYTES else last


def _timed_lines(source: ByteSource, offset: int, end: int, time_of: TimeOf) -> Iterator[Timed]:
    begin = align(source, offset, PROBE_BYTES)
    if begin is None:
        return
    reader = BlockReader(source, "", Position(begin), Limits(block=_WINDOW_BYTES, line=PROBE_BYTES))
    seen = 0
    while seen < PROBE_BYTES:
        block = reader.next(release=True)
        if block is None:
            if reader.more:
                continue
            return
        seen += len(block.data)
        at = block.offset
        for line in block.data.split(b"\n"):
            if at >= end:
                return
            if (time := time_of(line)) is not None:
                yield Timed(at, time)
            at += len(line) + 1


def count_lines(source: ByteSource, start: int, end: int) -> int:
    lines = 0
    while start < end and (data := source.read(start, min(_COUNT_READ_BYTES, end - start))):
        lines += data.count(b"\n")
        start += len(data)
    return lines
