"""Lines of a file next to a byte, in both directions, without knowing any other line. Reads, and blocks.

What is read for one call is bounded by PAGE_BYTES; of a line that is longer a piece is given as a line.
Runs of NUL bytes at the beginning of a line are not shown, and named.
"""

from collections.abc import Callable, Iterator
from itertools import islice

from jobtui.backends.file_access import ByteSource
from jobtui.backends.file_search import RAW_LINE_BYTES
from jobtui.formats.levels import level_of
from jobtui.model.clock import Nanos
from jobtui.model.pages import LogLine

PAGE_BYTES = 4 << 20
"""How much is read for one page at most, and the longest line that is given as one."""
_FIRST_READ = 64 << 10
_ALIGN_READ = 4 << 10

TimeOf = Callable[[bytes], Nanos | None]


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
    """Pages of one file. `base` is added to its offsets to make places. Methods raise OSError."""

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
                # The file was cut off meanwhile.
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
            yield self._line(part, begin, end)
            begin = end

    def _line(self, part: bytes, begin: int, end: int) -> LogLine:
        text = part.removesuffix(b"\r")
        nuls = 0
        if text.startswith(b"\0"):
            nuls = len(text) - len(text.lstrip(b"\0"))
            text = text[nuls:]
        shown = text[:RAW_LINE_BYTES].decode("utf-8", "replace")
        return LogLine(
            place=self._base + begin,
            end=self._base + end,
            text=shown,
            size=len(part),
            level=level_of(shown),
            at=self._time_of(text),
            note=_note(nuls, len(text)),
        )


def _note(nuls: int, size: int) -> str:
    words = [f"{nuls:,} NUL bytes"] if nuls else []
    if size > RAW_LINE_BYTES:
        words.append(f"{size:,} bytes in this line")
    return ", ".join(words)
