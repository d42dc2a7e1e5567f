"""Finding a place in a big file: by time, by text from the end, by line number; and the lines around it.

Everything here reads, blocks, and is bounded in memory; callers run it in a thread, a step at a time.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, Protocol

from jobtui.backends.file_access import ByteSource
from jobtui.backends.file_blocks import BlockReader, Limits, Position, align
from jobtui.model.clock import Nanos
from jobtui.model.lines import RawLine

PROBE_BYTES = 1 << 20
"""How far a time is looked for from one place on."""
RAW_LINE_BYTES = 16 << 10
"""How much of a line is shown."""
AROUND_BYTES = 4 << 20
"""How far from its place the lines around it are looked for, each way."""
SEARCH_BYTES = 4 << 20
"""How much is searched in one step."""
COUNT_BYTES = 64 << 20
"""How much is counted in one step."""

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
    none, the place found lies before it: too early costs time, too late would lose lines.
    """
    if not _has_times(source, size, time_of):
        return None
    low, high = 0, size
    while high - low > PROBE_BYTES:
        middle = (low + high) // 2
        found = first_time(source, middle, high, time_of)
        if found is None or found.at >= at:
            high = middle
        else:
            low = found.offset
    return _first_not_older(source, low, size, at, time_of)


def _first_not_older(source: ByteSource, low: int, size: int, at: Nanos, time_of: TimeOf) -> int:
    last = low
    for timed in _timed_lines(source, low, size, time_of):
        if timed.at >= at:
            return timed.offset
        last = timed.offset
    return size if size - low <= PROBE_BYTES else last


def _has_times(source: ByteSource, size: int, time_of: TimeOf) -> bool:
    if first_time(source, 0, size, time_of) is not None:
        return True
    return first_time(source, max(0, size - PROBE_BYTES), size, time_of) is not None


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
    """How many newlines are in `start` .. `end`."""
    lines = 0
    while start < end and (data := source.read(start, min(_COUNT_READ_BYTES, end - start))):
        lines += data.count(b"\n")
        start += len(data)
    return lines


def lines_around(
    source: ByteSource, offset: int, before: int, after: int, line: int | None = None
) -> tuple[RawLine, ...]:
    """The line at byte `offset` with as many lines before and after it as asked and found in AROUND_BYTES.

    `line` is the number of the line at `offset`, if that is known. The line at `offset` begins there even if
    something else stands before it (see `BlockReader`).
    """
    data = _text_before(source, offset, before)
    begin = offset - len(data)
    text = data.rstrip(b"\0")
    earlier = _split(text, begin)
    if earlier and begin:
        earlier[0] = _with(earlier[0], cut=True)
    # What stands before a hole belongs to the same line as what stands behind it.
    numbered = [*enumerate(earlier, -text.count(b"\n")), *enumerate(_lines_after(source, offset, after + 1))]
    numbered = numbered[max(0, len(earlier) - before) :]
    return tuple(raw if line is None else _with(raw, line=line + nth) for nth, raw in numbered)


def _with(raw: RawLine, *, line: int | None = None, cut: bool = False) -> RawLine:
    return RawLine(line, raw.offset, raw.text, cut or raw.cut)


def _text_before(source: ByteSource, offset: int, count: int) -> bytes:
    """Enough of what stands before `offset` to hold `count` lines, or as much as is looked at."""
    data = b""
    while count and len(data) < min(offset, AROUND_BYTES) and data.count(b"\n") <= count:
        size = min(max(_WINDOW_BYTES, len(data)), offset - len(data))
        piece = source.read(offset - len(data) - size, size)
        if len(piece) < size:
            # The file ends before the place asked for.
            return b""
        data = piece + data
    return data


def _lines_after(source: ByteSource, offset: int, count: int) -> list[RawLine]:
    data = b""
    while len(data) < AROUND_BYTES and data.count(b"\n") < count:
        more = source.read(offset + len(data), max(_WINDOW_BYTES, len(data)))
        if not more:
            break
        data += more
    lines = _split(data, offset)
    if lines and len(lines) <= count and len(data) >= AROUND_BYTES and not data.endswith(b"\n"):
        lines[-1] = RawLine(None, lines[-1].offset, lines[-1].text, cut=True)
    return lines[:count]


def _split(data: bytes, offset: int) -> list[RawLine]:
    lines = []
    for line in data.split(b"\n"):
        lines.append(raw_line(line, offset))
        offset += len(line) + 1
    return lines if data and not data.endswith(b"\n") else lines[:-1]


def raw_line(line: bytes, offset: int, *, cut: bool = False) -> RawLine:
    """A line to be shown, without NULs at its beginning, cut at RAW_LINE_BYTES."""
    text = line.removesuffix(b"\r").lstrip(b"\0")
    offset += len(line) - len(line.lstrip(b"\0"))
    shown = text[:RAW_LINE_BYTES].decode("utf-8", "replace")
    return RawLine(None, offset, shown, cut or len(text) > RAW_LINE_BYTES)


class Search(Protocol):
    """A search that goes on step by step."""

    @property
    def left(self) -> int:
        """How many bytes are still to be searched."""
        ...

    def step(self) -> list[RawLine]:
        """The next lines found, the last one of the file first. Raises OSError."""
        ...


class BackwardSearch:
    """The lines that contain one of some byte strings, from the end of a file backwards, a step at a time.

    `left` is how many bytes are still to be searched. A line longer than SEARCH_BYTES is searched in pieces
    and given as the piece in which something was found.
    """

    def __init__(self, source: ByteSource, end: int, needles: Sequence[bytes]) -> None:
        self._source = source
        self._needles = tuple(needles)
        self._overlap = max(map(len, needles)) - 1
        self.left = end

    def step(self) -> list[RawLine]:
        """The lines found in the next SEARCH_BYTES towards the beginning, the last one first."""
        start = max(0, self.left - SEARCH_BYTES)
        data = self._source.read(start, self.left - start)
        whole = data.find(b"\n", 0, len(data) - 1) + 1 if start else 0
        in_pieces = start > 0 and not whole
        hits = _matching_lines(data, whole, self._needles)
        self.left = start + self._overlap if in_pieces and self._overlap < len(data) else start + whole
        return [raw_line(data[a:b], start + a, cut=in_pieces) for a, b in reversed(hits)]


class ForwardSearch:
    """The same for what can only be read forwards: finds all, keeps the last `keep`, gives them when done."""

    def __init__(self, source: ByteSource, needles: Sequence[bytes], keep: int) -> None:
        self._source = source
        self._needles = tuple(needles)
        self._kept: deque[RawLine] = deque(maxlen=keep)
        self._offset = 0
        self.left = 1

    def step(self) -> list[RawLine]:
        """Nothing until all is searched, then the lines found, the last one first."""
        data = self._source.read(self._offset, SEARCH_BYTES)
        whole = data.rfind(b"\n") + 1 or len(data)
        hits = _matching_lines(data[:whole], 0, self._needles)
        self._kept.extend(raw_line(data[a:b], self._offset + a) for a, b in hits)
        self._offset += whole
        if data:
            return []
        self.left = 0
        return list(reversed(self._kept))


def check_needles(needles: Sequence[bytes]) -> None:
    """Raise ValueError unless a search for these can find lines."""
    if not needles or any(not needle or b"\n" in needle for needle in needles):
        raise ValueError("a search needs texts that are not empty and lie within one line")


def _matching_lines(data: bytes, begin: int, needles: Sequence[bytes]) -> list[tuple[int, int]]:
    found: dict[int, int] = {}
    for needle in needles:
        # Backwards, because `rfind` is twice as quick as `find`.
        at = data.rfind(needle, begin)
        while at >= 0:
            start = data.rfind(b"\n", begin, at) + 1 or begin
            end = data.find(b"\n", at)
            found[start] = len(data) if end < 0 else end
            at = data.rfind(needle, begin, start)
    return sorted(found.items())
