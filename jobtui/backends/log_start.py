"""Where to begin to read a log and its rotated files: at the start, near the end, or at a time."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from jobtui.formats.parser import Parsed, R
from jobtui.model.clock import Nanos, to_rfc3339
from jobtui.model.logs import provisional
from jobtui.transport import blocks
from jobtui.transport.files import ByteSource, FileStat, OpenFile, written_at
from jobtui.transport.log_files import LogFiles, RotatedFile

TAIL_BYTES = 32 << 20


class BlockParser(Protocol[R]):
    """Makes records of the blocks of one log, in order. `formats.parser.LogParser` is one."""

    def parse(self, block: bytes, offset: int, line: int, newest: Nanos) -> Parsed[R]: ...

    def time_of(self, line: bytes, newest: Nanos) -> Nanos | None: ...


class FromStart(msgspec.Struct, frozen=True):
    """Read the whole file, and rotated ones before it that are small, or were written since `at`."""

    at: Nanos | None = None


class TailBytes(msgspec.Struct, frozen=True):
    """Read the last `size` bytes, from the first line that begins in them, also of rotated files."""

    size: int = TAIL_BYTES


class FromTime(msgspec.Struct, frozen=True):
    """Read from the first line that is not older than `at`, also in rotated files.

    If the file has no times, its tail is read.
    """

    at: Nanos


Start = FromStart | TailBytes | FromTime


class Beginning(msgspec.Struct, frozen=True):
    """Where reading of a log began: `at` is the time of the first line near it.

    `note` says in words what was not read, None if nothing was left out. `whole`: there was nothing before
    it. `timeless`: a time was asked for, and the file has none.
    """

    at: Nanos | None
    note: str | None = None
    whole: bool = True
    timeless: bool = False


Begun = tuple[list[RotatedFile], blocks.Position, Beginning]
"""Where to begin: the rotated files to read, oldest first, and the position in the first file to read, which
is the present one if there are none."""


def begin(name: str, files: LogFiles, start: Start, parser: BlockParser[R], limits: blocks.Limits) -> Begun:
    """Where to begin in the log of this name. `parser` is asked for times only. Raises OSError."""
    seen = files.present.look()
    older = [each for each in files.older if each.look.id != seen.id]
    offset, timeless = _offset(files.present, start, parser)
    wanted = [] if offset or files.present.packed else _files_to_read(older, start, files.present, parser)
    first, is_whole = files.present, len(wanted) == len(older)
    if wanted:
        if (oldest := wanted[0].opened) is None:
            unread = Beginning(None, f"{wanted[0].path} cannot be read", is_whole)
            return wanted, blocks.Position(), unread
        name, first, timeless = wanted[0].path.name, oldest, False
        if isinstance(start, TailBytes):
            start = TailBytes(max(0, start.size - seen.size - sum(each.size for each in wanted[1:])))
        offset, _ = _offset(first, start, parser)
    position = _position(first.source, offset, limits) if offset else blocks.Position()
    beginning = _note_of_beginning(first, name, position, parser, start, is_whole=is_whole, timeless=timeless)
    return wanted, position, beginning


def _files_to_read(
    files: Sequence[RotatedFile], start: Start, present: OpenFile, parser: BlockParser[R]
) -> list[RotatedFile]:
    """The rotated files that reading begins in, the oldest first.

    By time those that may hold a line since then; else the newest that fit. Of the oldest of these only a
    part is read if the end is wanted and it is not packed.
    """
    wanted: list[RotatedFile] = []
    room = (start.size if isinstance(start, TailBytes) else TAIL_BYTES) - present.look().size
    since = None if isinstance(start, TailBytes) else start.at
    after: OpenFile | None = present
    for each in reversed(files):
        is_new = since is not None and _begins_since(after, since, parser, each.look)
        is_cut = isinstance(start, TailBytes) and not each.is_packed and room > 0
        if not (is_new or (not isinstance(start, FromTime) and (each.size <= room or is_cut))):
            break
        room -= each.size
        wanted.insert(0, each)
        after = each.opened
    return wanted


def _begins_since(opened: OpenFile | None, since: Nanos, parser: BlockParser[R], before: FileStat) -> bool:
    """Whether a file begins at `since` or later, so that lines since then may be in the one before it.

    Judged by its lines, as files may be of another clock; without times by when the one before was written.
    """
    if opened is not None and not opened.look().size:
        return True
    first = _first_time(opened, 0, parser) if opened is not None else None
    return (before.mtime_ns if first is None else first.at) >= since


def _note_of_beginning(
    opened: OpenFile,
    name: str,
    position: blocks.Position,
    parser: BlockParser[R],
    start: Start,
    *,
    is_whole: bool,
    timeless: bool,
) -> Beginning:
    """The note about a beginning in the file of this name; `is_whole` if all files before it are read."""
    first = _first_time(opened, position.offset, parser)
    at = first.at if first else None
    since = f", {to_rfc3339(at)}" if at is not None else ""
    note = None
    if position.offset:
        where = f"byte {position.offset} of {opened.look().size}" + ("" if is_whole else f" of {name}")
        note = f"read from {where} on{since}; anything earlier was not read"
        if timeless:
            note += " (it has no times to search by)"
    elif not is_whole:
        note = f"read from {name} on{since}; older rotated files were not read"
    elif isinstance(start, FromTime) and at is not None and start.at < at:
        note = f"starts at {to_rfc3339(at)}: nothing is older"
    return Beginning(at, note, not position.offset and is_whole, timeless)


def _offset(opened: OpenFile, start: Start, parser: BlockParser[R]) -> tuple[int, bool]:
    """The byte near which to begin, and whether a time was asked for and not found."""
    size = opened.look().size
    if opened.packed is not None or isinstance(start, FromStart) or not size:
        return 0, False
    if isinstance(start, TailBytes):
        return max(0, size - start.size), False
    first = _first_time(opened, 0, parser)
    if first is not None and first.at >= start.at:
        return 0, False  # lines without a time before it are the rest of what is in a rotated file
    found = blocks.offset_of_time(opened.source, size, start.at, _times(opened, parser))
    return (max(0, size - TAIL_BYTES), True) if found is None else (found, False)


def _first_time(opened: OpenFile, offset: int, parser: BlockParser[R]) -> blocks.Timed | None:
    return blocks.first_time(opened.source, offset, opened.look().size, _times(opened, parser))


def _times(opened: OpenFile, parser: BlockParser[R]) -> blocks.TimeOf:
    newest = written_at(opened, opened.look())
    return lambda line: parser.time_of(line, newest)


def _position(source: ByteSource, offset: int, limits: blocks.Limits) -> blocks.Position:
    aligned = blocks.align(source, offset, limits.line)
    begin = offset if aligned is None else aligned
    line = blocks.count_lines(source, 0, begin) + 1 if begin <= limits.count else provisional(1)
    return blocks.Position(begin, line, blocks.LinePart.DROP if aligned is None else blocks.LinePart.START)
