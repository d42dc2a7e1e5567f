"""Reading one open log file: how far it was read, when its last line is let go, if it was written anew."""

import time
from collections import deque
from collections.abc import Iterable

from jobtui.backends.file_access import Look, OpenFile
from jobtui.backends.file_blocks import SKIPS_NAMED, BlockReader, Limits, Position, place
from jobtui.backends.log_start import BlockParser
from jobtui.formats.parser import Parsed
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.health import Skip
from jobtui.model.logs import LogRecord

MARK_BYTES = 256
"""How much of what stands before the place of reading is compared, to notice that a file was written anew.
All of it must be there to believe that another file goes on with the same text."""
BLOCKS_IN_BATCH = 1_000
"""Blocks given in one poll at most; they are small where holes are many."""


class Gathered:
    """What one poll has found so far."""

    def __init__(self, limits: Limits) -> None:
        self.records: list[LogRecord] = []
        self.skips: deque[Skip] = deque(maxlen=SKIPS_NAMED)
        self.skip_count = 0
        self.lines = 0
        self.bytes = 0
        self.blocks = 0
        self._limits = limits

    @property
    def full(self) -> bool:
        """Whether the rest is for the next poll."""
        return (
            self.bytes >= self._limits.batch
            or len(self.records) >= self._limits.batch_records
            or self.blocks >= BLOCKS_IN_BATCH
        )

    @property
    def empty(self) -> bool:
        """Whether there is nothing to tell."""
        return not (self.blocks or self.skip_count)

    def add(self, parsed: Parsed, size: int) -> None:
        """Take in what a block of `size` bytes gave."""
        self.records += parsed.records
        self.lines += parsed.lines
        self.bytes += size
        self.blocks += 1
        self.skip(parsed.skips, parsed.skip_count)

    def skip(self, skips: Iterable[Skip], count: int) -> None:
        """Take in what was left out."""
        self.skips.extend(skips)
        self.skip_count += count


class OpenLog:
    """One open file, how far it was read, and its parser. Methods that read raise OSError."""

    def __init__(
        self, opened: OpenFile, position: Position, parser: BlockParser, name: str, limits: Limits
    ) -> None:
        self.opened = opened
        self._reader = BlockReader(opened.source, name, position, limits)
        self._parser = parser
        self._name = name
        self._limits = limits
        self._mark = self._mark_in(opened)
        self._seen: Look | None = None
        self._changed_at = 0.0
        self._at_end = False
        self._broken_told = False

    @property
    def position(self) -> Position:
        """How far it was read."""
        return self._reader.position

    @property
    def mark(self) -> bytes:
        """What stands right before the position."""
        return self._mark

    @property
    def unread(self) -> int:
        """How many bytes were there at the last look and are not given yet."""
        if self._seen is None or self.opened.gzip is not None:
            return 0
        return max(0, self._seen.size - self.position.offset)

    @property
    def has_text(self) -> bool:
        """Whether there was anything in it at the last look."""
        return self._seen is not None and self._seen.size > 0

    def was_rewritten(self) -> bool:
        """Whether what was read last no longer stands where it was."""
        if self.opened.gzip is not None or self.opened.look() == self._seen:
            return False
        return self._mark_in(self.opened) != self._mark

    @property
    def cut_off(self) -> int:
        """How many bytes were there at the last look, are not given yet, and are not there any more."""
        if self._seen is None or self.opened.gzip is not None:
            return 0
        return max(0, self._seen.size - max(self.opened.look().size, self.position.offset))

    def goes_on_in(self, other: OpenFile) -> bool:
        """Whether another file holds the same text up to here."""
        if self.opened.gzip is not None or other.gzip is not None or len(self._mark) < MARK_BYTES:
            return False
        return self._mark_in(other) == self._mark

    def go_on_in(self, other: OpenFile) -> None:
        """Read on in another file."""
        self.opened.close()
        self.opened = other
        self._reader.source = other.source
        self._seen = None

    def read(self, gathered: Gathered, now: float, *, release: bool = False) -> bool:
        """Read on until the end or until enough is gathered; whether there is more at once.

        An unfinished last line is given when the file has not changed for long enough, or with `release`.
        `now` is in seconds of any steady clock. What was gathered is good also when this raises.
        """
        changed = self._look(now)
        settled = release or now - self._changed_at >= self._limits.hold_s
        if self._at_end and not changed and not (settled and self.unread):
            return False
        start = self.position.offset
        try:
            more = self._read(gathered, release=settled or self.opened.gzip is not None)
        finally:
            gathered.skip(self._reader.skips, self._reader.skip_count)
            self._reader.skips.clear()
            self._reader.skip_count = 0
        if self.position.offset != start:
            self._mark = self._mark_in(self.opened)
        self._at_end = not more
        return more

    def _look(self, now: float) -> bool:
        seen = self.opened.look()
        changed = seen != self._seen
        if self._seen is None and time.time() - seen.mtime_ns / SECOND >= self._limits.hold_s:
            self._changed_at = now - self._limits.hold_s
        elif changed:
            self._changed_at = now
        self._seen = seen
        # Not beyond what was seen: what is let go unfinished must have stood there for its time.
        self._reader.end = None if self.opened.gzip is not None else seen.size
        return changed

    def _read(self, gathered: Gathered, *, release: bool) -> bool:
        stop = self.position.offset + self._limits.skip
        while not gathered.full and self.position.offset < stop:
            block = self._reader.next(release=release)
            if block is None:
                self._tell_broken()
                return self._reader.more
            # Looked at after reading: no line of the block can be newer than this.
            newest = Nanos(self.opened.look().mtime_ns)
            gathered.add(self._parser.parse(block.data, block.offset, block.line, newest), len(block.data))
        return True

    def _tell_broken(self) -> None:
        gzip = self.opened.gzip
        if gzip is None or gzip.broken is None or self._broken_told:
            return
        self._broken_told = True
        self._reader.skips.append(Skip(place(self._name, self.position), f"gzip breaks off: {gzip.broken}"))
        self._reader.skip_count += 1

    def _mark_in(self, opened: OpenFile) -> bytes:
        if opened.gzip is not None:
            return b""
        begin = max(0, self.position.offset - MARK_BYTES)
        return opened.plain.read(begin, self.position.offset - begin)
