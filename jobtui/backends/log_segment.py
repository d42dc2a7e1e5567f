"""One file of a log that is read on a screen: its pages, its index, and whether it is still the same file."""

import gzip
import zlib
from collections import deque
from collections.abc import Iterator

from jobtui.backends.base import SourceUnreachable
from jobtui.backends.file_access import CHUNK_BYTES, ByteSource, Look, OpenFile
from jobtui.backends.line_index import BLOCK, LineIndex
from jobtui.backends.page_reader import PageReader, TimeOf
from jobtui.formats.levels import LEVEL_BYTES, error_lines
from jobtui.formats.times import TIME_LENGTH, TimeReader
from jobtui.model.clock import Nanos

MARK_BYTES = 256
"""How much of what stands before the end is compared, to notice that a file was written anew."""
PACKED_BYTES = 64 << 20
"""How much text of a packed file is held, from its end on: it can be read in one direction only."""
SCAN_BYTES = 8 * BLOCK
"""How much is looked through for errors at once."""


class TextBytes:
    """The end of a packed file's text, in memory."""

    def __init__(self, opened: OpenFile) -> None:
        kept: deque[bytes] = deque()
        held = offset = 0
        while data := opened.source.read(offset, CHUNK_BYTES):
            offset += len(data)
            held += len(data)
            kept.append(data)
            while held - len(kept[0]) >= PACKED_BYTES:
                held -= len(kept.popleft())
        self._text = b"".join(kept)
        self.is_whole = offset == len(self._text)

    @property
    def size(self) -> int:
        """Bytes of text."""
        return len(self._text)

    def read(self, offset: int, size: int) -> bytes:
        """Up to `size` bytes from `offset` on."""
        return self._text[offset : offset + size]

    def next_data(self, offset: int) -> int:
        """Not known: `offset`."""
        return offset


class Segment:
    """A file whose first byte is the place `base`, as far as it was when it was last looked at.

    Methods that read raise OSError; the constructor of a packed one raises SourceError, too.
    """

    def __init__(self, opened: OpenFile, base: int, name: str) -> None:
        self.opened = opened
        self.base = base
        self.event = ""
        self._seen = opened.look()
        self._source: ByteSource = opened.source
        self.size = self._seen.size
        if opened.gzip is not None:
            text = _unpacked(opened, name)
            self._source, self.size = text, text.size
            self.event = "" if text.is_whole else f"packed: only the last {PACKED_BYTES >> 20} MB of its text"
        self._mark = self._mark_in(self._source)
        self.pages = PageReader(self._source, base, self._timer())
        self.index = LineIndex(self._source, self.size, self._timer())

    @property
    def source(self) -> ByteSource:
        """Its bytes."""
        return self._source

    @property
    def end(self) -> int:
        """The place behind its last byte."""
        return self.base + self.size

    @property
    def changed_at(self) -> Nanos:
        """When it was last written."""
        return Nanos(self._seen.mtime_ns)

    @property
    def is_packed(self) -> bool:
        """Whether its text is not the file itself."""
        return self.opened.gzip is not None

    def grow(self) -> bool:
        """Take in what was written since; False when the file was cut off or written anew instead."""
        seen = self.opened.look()
        if seen == self._seen:
            return True
        self._seen = seen
        if self.is_packed:
            return False
        if seen.size < self.size or self._mark_in(self._source) != self._mark:
            return False
        if seen.size > self.size:
            self.size = seen.size
            self._mark = self._mark_in(self._source)
        return True

    def goes_on_in(self, other: OpenFile, seen: Look) -> bool:
        """Whether another file holds the same text, as a copy kept up to date by renaming does."""
        if self.is_packed or other.gzip is not None or len(self._mark) < MARK_BYTES:
            return False
        return seen.size >= self.size and self._mark_in(other.source) == self._mark

    def look_through(self) -> bool:
        """Go on with the index; whether there is more to look through."""
        if self.index.is_outgrown(self.size):
            self.index = LineIndex(self._source, self.size, self._timer())
        return self.index.step(self.size)

    def _mark_in(self, source: ByteSource) -> bytes:
        begin = max(0, self.size - MARK_BYTES)
        return source.read(begin, self.size - begin)

    def _timer(self) -> TimeOf:
        """What reads the time at the head of a line. It remembers the last one: each thread has its own."""
        times = TimeReader()
        return lambda line: times.read(line[:TIME_LENGTH].decode("ascii", "replace"), self.changed_at)

    def first_error(self, begin: int, end: int) -> int | None:
        """The first byte in `begin` .. `end` at which a line with an error begins."""
        return next(self._errors(begin, end), None)

    def last_error(self, begin: int, end: int) -> int | None:
        """The last one."""
        return max(self._errors(begin, end), default=None)

    def _errors(self, begin: int, end: int) -> Iterator[int]:
        before = 1 if begin else 0
        if begin >= end or not self.index.has_errors(begin, end):
            return iter(())
        data = self._source.read(begin - before, before + end - begin + LEVEL_BYTES)
        return (begin - before + at for at in error_lines(data, before, before + end - begin))

    def count_to(self, number: int, begin: int, counted: int) -> tuple[int, int]:
        """Go on counting lines at byte `begin`, where `counted` lines end: the next byte and count.

        Stops at the beginning of line `number`.
        """
        data = self._source.read(begin, 4 << 20)
        lines = data.count(b"\n")
        if counted + lines < number - 1:
            return begin + len(data), counted + lines
        at = 0
        for _ in range(number - 1 - counted):
            at = data.find(b"\n", at) + 1
        return begin + at, number - 1


def _unpacked(opened: OpenFile, name: str) -> TextBytes:
    try:
        return TextBytes(opened)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise SourceUnreachable(f"{name}: cannot be unpacked: {error}") from error
