"""Where reading a log file begins: its start, its tail, or a time; and what is said of what lies before."""

from typing import Protocol

import msgspec

from jobtui.backends.file_access import ByteSource, Look, OpenFile
from jobtui.backends.file_blocks import Limits, Position, Within, align
from jobtui.backends.file_search import Timed, count_lines, first_time, offset_of_time
from jobtui.formats.parser import Parsed
from jobtui.model.clock import Nanos, to_rfc3339
from jobtui.model.lines import provisional

TAIL_BYTES = 32 << 20


class BlockParser(Protocol):
    """What turns the blocks of one file, in order, into records. `formats.parser.LogParser` is one."""

    def parse(self, block: bytes, offset: int, line: int, newest: Nanos) -> Parsed:
        """The records of whole lines."""
        ...

    def time_of(self, line: bytes, newest: Nanos) -> Nanos | None:
        """The time at the head of a line."""
        ...


class ParserFactory(Protocol):
    """Makes the parser for a file."""

    def __call__(self, source: str, role: str) -> BlockParser:
        """A new parser."""
        ...


class FromStart(msgspec.Struct, frozen=True):
    """Read the whole file."""


class TailBytes(msgspec.Struct, frozen=True):
    """Read the last `size` bytes, from the first line that begins in them."""

    size: int = TAIL_BYTES


class FromTime(msgspec.Struct, frozen=True):
    """Read from the first line that is not older than `at`. Takes the tail when the file has no times."""

    at: Nanos


Start = FromStart | TailBytes | FromTime


class Beginning(msgspec.Struct, frozen=True):
    """Where reading of a file began: byte `offset`, the time `at` of the first line that has one near it.

    `size` is how large the file was then. `note` says in words what was not read, None when nothing was left.
    `timeless`: a time was to be searched for, and the file has none.
    """

    offset: int
    at: Nanos | None
    size: int
    note: str | None = None
    timeless: bool = False

    @property
    def whole(self) -> bool:
        """Whether the file was read from its first byte."""
        return self.offset == 0


def begin(opened: OpenFile, start: Start, parser: BlockParser, limits: Limits) -> tuple[Position, Beginning]:
    """The position at which to begin, and what to say of it. `parser` is asked for times only.

    Raises OSError.
    """
    seen = opened.look()
    offset, timeless = _offset(opened, start, parser, seen)
    position = _position(opened.source, offset, limits) if offset else Position()
    first = _first_time(opened.source, position.offset, seen, parser) if offset else None
    return position, _beginning(position, first, seen, timeless)


def _beginning(position: Position, first: Timed | None, seen: Look, timeless: bool) -> Beginning:
    at = first.at if first else None
    note = None
    if position.offset:
        since = f", {to_rfc3339(at)}" if at is not None else ""
        note = f"read from byte {position.offset} of {seen.size} on{since}; what is before was not read"
        if timeless:
            note += " (it has no times to search by)"
    return Beginning(position.offset, at, seen.size, note, timeless)


def _offset(opened: OpenFile, start: Start, parser: BlockParser, seen: Look) -> tuple[int, bool]:
    """Near which byte to begin, and whether a time was wanted and could not be found."""
    if opened.gzip is not None or isinstance(start, FromStart):
        return 0, False
    if isinstance(start, TailBytes):
        return max(0, seen.size - start.size), False
    found = find_time(opened, start.at, parser)
    return (max(0, seen.size - TAIL_BYTES), True) if found is None else (found, False)


def find_time(opened: OpenFile, at: Nanos, parser: BlockParser) -> int | None:
    """The byte where the first line not older than `at` begins; None in a file without times.

    Raises OSError.
    """
    seen = opened.look()
    newest = Nanos(seen.mtime_ns)
    return offset_of_time(opened.source, seen.size, at, lambda line: parser.time_of(line, newest))


def _first_time(source: ByteSource, offset: int, seen: Look, parser: BlockParser) -> Timed | None:
    newest = Nanos(seen.mtime_ns)
    return first_time(source, offset, seen.size, lambda line: parser.time_of(line, newest))


def _position(source: ByteSource, offset: int, limits: Limits) -> Position:
    aligned = align(source, offset, limits.line)
    place = offset if aligned is None else aligned
    line = count_lines(source, 0, place) + 1 if place <= limits.count else provisional(1)
    return Position(place, line, Within.DROP if aligned is None else Within.START)
