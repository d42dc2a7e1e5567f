"""One log under its name through growth, rotation, truncation and absence. Reads, and blocks.

A renamed file is read to its end before the new file of its name, and watched for some time after that, as
its writer may not know yet. A file that is truncated or rewritten is read again from its first byte; the
unread rest is read from its copy. Files that came and were rotated away between two polls are read, too, in
their order, packed or not. A new file that continues what was read (a copy kept up to date by rename, a file
system without stable inode numbers) is read on, not again.

Position, mark and records move together: a poll that raised is repeated; lines that fail are counted.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Generic, NamedTuple

from jobtui.backends.base import Batch
from jobtui.backends.log_start import Beginning, BlockParser, Start, begin
from jobtui.formats.parser import Parsed, R
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.health import SKIPS_NAMED, Skip, SourceError, SourceMissing, contained
from jobtui.transport import blocks
from jobtui.transport.files import FileId, FileStat, OpenFile, explained, look, source_error, written_at
from jobtui.transport.log_files import PACKED_RATIO, LogFiles, RotatedFile, find_log_files, goes_on

HEAD_BYTES = 1_024
"""How much of a file's beginning identifies it once it was copied or packed."""
BLOCKS_IN_BATCH = 1_000
"""The most blocks given in one poll; they are small if there are many holes."""
GIVEN_KEPT = 1_000
"""How many rotated files are remembered."""
RETIRED_KEPT = 4
"""How many rotated files are still watched."""
RESTLESS_S = 0.25
"""How often to poll while a file is being rotated."""

Read = Callable[[int, int], bytes]
"""Gives bytes of a text, from an offset on."""


class PollResult(Generic[R]):
    def __init__(self, limits: blocks.Limits) -> None:
        self.records: list[R] = []
        self.skips: deque[Skip] = deque(maxlen=SKIPS_NAMED)
        self.skip_count = 0
        self.lines = 0
        self.bytes = 0
        self.blocks = 0
        self._limits = limits

    @property
    def full(self) -> bool:
        return (
            self.bytes >= self._limits.batch
            or len(self.records) >= self._limits.batch_records
            or self.blocks >= BLOCKS_IN_BATCH
        )

    @property
    def empty(self) -> bool:
        return not (self.blocks or self.skip_count)

    def add(self, parsed: Parsed[R], size: int) -> None:
        self.records += parsed.records
        self.lines += parsed.lines
        self.bytes += size
        self.blocks += 1
        self.skip(parsed.skips)

    def skip(self, skips: Sequence[Skip], count: int | None = None) -> None:
        self.skips.extend(skips)
        self.skip_count += len(skips) if count is None else count


class OpenLog(Generic[R]):
    """One open file, how far it was read, and its parser. Methods that read raise OSError."""

    def __init__(
        self,
        opened: OpenFile,
        position: blocks.Position,
        parser: BlockParser[R],
        name: str,
        limits: blocks.Limits,
        begin_of: Callable[[Read], int],
    ) -> None:
        self.opened = opened
        self._reader = blocks.BlockReader(opened.source, name, position, limits)
        self._start = position.offset
        self._begin_of = begin_of
        self.begin, self.head = 0, b""
        self.learn_head()
        self.parser = parser
        self._name = name
        self._limits = limits
        self.looked = opened.look()
        self._was_read = False
        self._changed_at = 0.0
        self._at_end = False
        self._is_cut = False
        self._broken_noted = False
        self.is_renamed = False
        self.until: float | None = None
        """Until when a file read to its end is watched: its writer may not have the new file yet."""

    @property
    def position(self) -> blocks.Position:
        return self._reader.position

    @property
    def done(self) -> int:
        return self.position.offset - self._start

    @property
    def unread(self) -> int:
        """How many bytes there were at the last look that are not given yet."""
        return 0 if self.opened.packed is not None else max(0, self.looked.size - self.position.offset)

    @property
    def text_left(self) -> int:
        """How many bytes of text are not given yet, about."""
        packed = self.opened.packed
        return self.unread if packed is None else max(0, packed.size * PACKED_RATIO - self.done)

    def is_other_text(self) -> bool:
        """Whether its beginning, or what was read last, has changed.

        Also true if it was empty at the last look, and is not now: what came in between left no trace.
        """
        return self.is_changed() and (
            not (self.head or self.begin)
            or self._mark_in(self.opened.source.read) != self.mark
            or self.opened.source.read(self.begin, len(self.head)) != self.head
        )

    def is_changed(self) -> bool:
        return self.opened.packed is None and self.opened.look() != self.looked

    @property
    def cut_off(self) -> int:
        """How many bytes there were at the last look that are not given yet, and are gone now."""
        if self.opened.packed is not None:
            return 0
        size = self.opened.look().size
        is_all = size < self.position.offset or not size  # now: at the next look it is another text
        return 0 if is_all else max(0, self.looked.size - size)

    def is_in(self, other: RotatedFile) -> bool:
        """Whether another file is this one renamed, or holds its text or a part of it, copied or packed."""
        if not self.head or other.read(self.begin, len(self.head)) != self.head:
            return False
        mark = self._mark_in(other.read)
        return mark == self.mark or (len(mark) < len(self.mark) and other.look.id != self.opened.id)

    def learn_head(self) -> bool:
        """Remember how the file begins, as far as it is written. True if it begins as before."""
        if len(self.head) < HEAD_BYTES:
            begin = self._begin_of(self.opened.source.read)
            head = self.opened.source.read(begin, HEAD_BYTES)
            if not head.startswith(self.head):
                return False
            self.begin, self.head = begin, head
        return True

    def go_on_in(self, other: OpenFile) -> None:
        self.opened.close()
        self.opened = other
        self._reader.source = other.source
        self.looked, self._was_read = other.look(), False

    def read(self, gathered: PollResult[R], now: float, *, release: bool = False) -> bool:
        """Read on to the end, or until there is enough. True if there is more at once.

        An unfinished last line is given when the file has not changed for long enough, or with `release`.
        `now` is in seconds of any steady clock. What was gathered is good even if this raises.
        """
        changed = self._look(now)
        if self._is_cut:
            return False
        settled = release or now - self._changed_at >= self._limits.hold_s
        if self._at_end and not changed and not (settled and self.unread):
            return False
        try:
            more = self._read(gathered, release=settled or self.opened.packed is not None)
        finally:
            gathered.skip(self._reader.skips, self._reader.skip_count)  # not all of them are named
            self._reader.skips.clear()
            self._reader.skip_count = 0
        self._at_end = not more
        return more

    def _look(self, now: float) -> bool:
        seen = self.opened.look()
        changed = not self._was_read or seen != self.looked
        is_short = self.opened.packed is None and seen.size < self.position.offset
        self._is_cut = changed and (is_short or not self.learn_head())
        if self._is_cut:
            return False  # it just changed: the next look sees that
        if not self._was_read and time.time() - seen.mtime_ns / SECOND >= self._limits.hold_s:
            self._changed_at = now - self._limits.hold_s
        elif changed:
            self._changed_at = now
        self.looked, self._was_read = seen, True
        # Not beyond what was seen: an unfinished line is dropped only after it was there for its time.
        self._reader.end = None if self.opened.packed is not None else seen.size
        return changed

    def _read(self, gathered: PollResult[R], *, release: bool) -> bool:
        stop = self.position.offset + self._limits.skip
        # The present time, not that of a look, which may fail: no line of the blocks is newer.
        newest = written_at(self.opened, self.looked)
        while not gathered.full and self.position.offset < stop:
            block = self._reader.next(release=release)
            if block is None:
                self._report_broken()
                return self._reader.more
            gathered.add(self._parsed(block, newest), len(block.data))
        return True

    def _parsed(self, block: blocks.Block, newest: Nanos) -> Parsed[R]:
        """The records of a block. A fault costs the line in which it happens."""
        try:
            return self.parser.parse(block.data, block.offset, block.line, newest)
        except Exception:  # noqa: BLE001 - reported with the line where it was raised
            found: Parsed[R] = Parsed([], block.data.count(b"\n"), [])
        offset = block.offset
        for line, data in enumerate(block.data.split(b"\n")[:-1], block.line):
            text = data + b"\n"
            one: Parsed[R] = Parsed([], 1, [])
            with contained("reading a log") as reading:
                one = self.parser.parse(text, offset, line, newest)
            if reading.fault:
                one.skips.append(blocks.skip_at(self._name, blocks.Position(offset, line), reading.words))
            found.records.extend(one.records)
            found.skips.extend(one.skips)
            offset += len(text)
        return found

    def _report_broken(self) -> None:
        packed = self.opened.packed
        if packed is None or packed.broken is None or self._broken_noted:
            return
        self._broken_noted = True
        self._reader.skips.append(
            blocks.skip_at(self._name, self.position, f"packed text ends: {packed.broken}")
        )
        self._reader.skip_count += 1

    def _mark_in(self, read: Read) -> bytes:
        """The text right before the position of reading, as far as it is never rewritten."""
        return blocks.mark_before(read, self.position.offset)[-self._marked :] if self._marked else b""

    @property
    def mark(self) -> bytes:
        return self._reader.mark[-self._marked :] if self._marked else b""

    @property
    def _marked(self) -> int:
        return min(blocks.MARK_BYTES, max(0, self.position.offset - self.begin))


class _KnownFile(NamedTuple):
    """What identifies a file that was read, or existed before reading began, even once it is packed.

    `tail` is its end, empty for a packed one; `head` is the text at `begin`.
    """

    look: FileStat
    head: bytes
    tail: bytes = b""
    begin: int = 0

    def is_in(self, other: RotatedFile, *, is_open: bool) -> bool:
        """Whether another file is this one, renamed, extended, or packed with its time kept.

        `is_open`: the other is one that is open here. Else its inode may be reused after this one was
        deleted: the beginnings and this one's end decide, if they are more than a few lines.
        """
        if not self.head:
            return False
        head = other.read(self.begin, HEAD_BYTES)
        if self.look.mtime_ns == other.look.mtime_ns and head == self.head:
            return True
        if self.look.id != other.look.id or not head.startswith(self.head):
            return False
        if not is_open and len(self.head) < HEAD_BYTES:
            return False
        return other.read(self.look.size - len(self.tail), len(self.tail)) == self.tail


def _given_here(log: OpenLog[R]) -> _KnownFile:
    log.learn_head()
    seen = log.opened.look()
    return _KnownFile(seen, log.head, blocks.mark_before(log.opened.plain.read, seen.size), log.begin)


class Follower(Generic[R]):
    """Gives what is written to the log at `path`, batch by batch. One call at a time.

    `start` says where reading begins, `beginning` tells where it began, None before it did. `gives` is what
    the records of its parser are in a batch.
    """

    gives = "records"

    def __init__(
        self,
        path: Path,
        make_parser: Callable[[], BlockParser[R]],
        start: Start,
        limits: blocks.Limits,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        self.beginning: Beginning | None = None
        self.gaps = 0
        """How often text was gone before it was read, or may have been."""
        self._path = path
        self._make_parser = make_parser
        self.start = start
        self._limits = limits
        self._timer = timer
        self._current: OpenLog[R] | None = None
        self._left: OpenLog[R] | None = None
        self._older: list[OpenLog[R]] = []
        """The files to read before the present one, oldest first, and those that were just read."""
        self._given: deque[_KnownFile] = deque(maxlen=GIVEN_KEPT)
        self.restart()

    def restart(self) -> None:
        """Let the next poll begin where reading begins."""
        self.close()
        # One for all files: a record may continue in the next one, as in an agent's log written again.
        self._parser = self._make_parser()
        self._gathered: PollResult[R] = PollResult(self._limits)
        self._read_before = 0
        self._problem_since: float | None = None
        self.event: str | None = None
        self._begun = False
        self.gaps = 0

    def parser_of(self, opened: OpenFile) -> BlockParser[R]:
        """What makes records of a file: one parser for all, unless a subclass says otherwise."""
        return self._parser

    def begin_of(self, read: Read) -> int:
        """The offset in a file from which on it is never rewritten."""
        return 0

    def poll(self) -> Batch:
        """What is new since the last batch. Raises SourceError.

        If anything else was raised, what was gathered comes with the next batch.
        """
        more = False
        problem = self._keep_up()
        try:
            more = self._read()
        except OSError as error:
            problem = source_error(error, self._path)
        except SourceError as error:
            problem = self._note_problem(error)
        if problem is not None and self._gathered.empty:
            raise problem
        batch = self._batch(more=more or problem is not None)
        self._gathered = PollResult(self._limits)
        return batch

    def _logs(self) -> tuple[OpenLog[R], ...]:
        return (*self._older, *filter(None, (self._current,)))

    @property
    def measured(self) -> tuple[int, int]:
        """Bytes read since reading began, and bytes from there to the end, as of the last poll."""
        if self._current is None or self.beginning is None:
            return 0, 0
        read = self._read_before + sum(log.done for log in self._logs())
        return read, read + sum(log.text_left for log in self._logs())

    @property
    def rest_s(self) -> float | None:
        """How soon to poll again although the file at the path does not change; None if that is no use."""
        if self._older or (self._current is not None and self._problem_since is not None):
            return RESTLESS_S
        return self._limits.hold_s if self._current is not None and self._current.unread else None

    @property
    def is_missing(self) -> bool:
        """Whether polls found nothing at the path for longer than a rotation takes."""
        since = self._problem_since
        return since is not None and self._timer() - since >= self._limits.gone_s

    @property
    def files(self) -> frozenset[FileId]:
        return frozenset(log.opened.id for log in self._logs())

    def close(self) -> None:
        for log in self._logs():
            log.opened.close()
        self._older.clear()
        self._given.clear()
        self._current = self._left = None

    def _keep_up(self) -> SourceError | None:
        """Open the file that is at the path now. Returns what prevents that, if something does."""
        try:
            seen = look(self._path)
            if self._current is None or self._current.opened.id != seen.id:
                self._take()
        except SourceError as error:
            return self._note_problem(error)
        self._problem_since = None
        return None

    def _note_problem(self, error: SourceError) -> SourceError | None:
        now = self._timer()
        since = self._problem_since = now if self._problem_since is None else self._problem_since
        if self._current is None:
            return error
        if now - since >= self._limits.retire_s:
            # A deleted file takes room on its disk as long as someone has it open.
            self._left, self._current = self._current, None
            self._left.opened.close()
        being_rotated = isinstance(error, SourceMissing) and now - since < self._limits.gone_s
        return None if being_rotated else error

    def _take(self) -> None:
        """Open the file that is at the path now, and what was rotated away since. Raises SourceError."""
        with explained(self._path):
            known = self._current or self._left
            # Before they are looked for: a later truncation is seen at the next look.
            is_whole = known is not None and known is self._current and not known.is_other_text()
            files = find_log_files(self._path)
            try:
                self._current, self._left = self._log_for(known, files, is_whole=is_whole), None
            finally:
                files.close(log.opened for log in self._logs())

    def _log_for(self, known: OpenLog[R] | None, files: LogFiles, *, is_whole: bool) -> OpenLog[R]:
        if known is None and not self._begun:
            return self._first_log(files)
        if known is not None:
            if goes_on(known.opened, known.mark, known.position.offset, files.present):
                known.go_on_in(files.present)
                return known
            if is_whole and known.opened.id == files.present.id:
                return known  # it is back at its path
            self._turn_from(known, files, is_whole=is_whole)
        return self._open_log(files.present, blocks.Position())

    def _first_log(self, files: LogFiles) -> OpenLog[R]:
        older, position, self.beginning = begin(
            self._path.name, files, self.start, self._make_parser(), self._limits
        )
        self._note_all(files.older)
        for each in older:
            self._read_next(each, position)
            position = blocks.Position()
        log = self._open_log(files.present, position)
        self._begun = True
        return log

    def _open_log(self, opened: OpenFile, position: blocks.Position) -> OpenLog[R]:
        parser = self.parser_of(opened)
        return OpenLog(opened, position, parser, str(self._path), self._limits, self.begin_of)

    def _note_all(self, files: Iterable[RotatedFile]) -> None:
        """Note that these are not to be read. Packed files never change, and need no head."""
        for file in files:
            self._given.append(_KnownFile(file.look, b"") if file.is_packed else self._given_of(file))

    def _given_of(self, file: RotatedFile) -> _KnownFile:
        tail = b"" if file.is_packed else blocks.mark_before(file.read, file.look.size)
        begin = self.begin_of(file.read)
        return _KnownFile(file.look, file.read(begin, HEAD_BYTES), tail, begin)

    def _is_given(self, file: RotatedFile) -> bool:
        if any(given.look == file.look for given in self._given):
            return True
        is_open = file.look.id in self.files
        is_given = any(given.is_in(file, is_open=is_open) for given in self._given)
        if is_given:
            self._given.append(self._given_of(file))
        return is_given

    def _turn_from(self, known: OpenLog[R], files: LogFiles, *, is_whole: bool) -> None:
        """Read what comes after a file that was moved or rewritten: its unread rest first.

        The rest is in the file itself while it is open, else in the rotated file that holds its text, copied
        or packed. Then come the rotated files after that one; if none holds it, those after all that were
        given.
        """
        self._given += [_given_here(log) for log in self._older if log.is_changed()]
        if is_whole:
            self._given.append(_given_here(known))
            self._read_before_present(known, is_renamed=True)
        older = files.older
        holds = self._holder_of(known, older, is_whole=is_whole)
        last = holds or next((file for file in reversed(older) if self._is_given(file)), None)
        if holds is not None:
            self._given.append(self._given_of(holds))
            if not is_whole:
                self._read_next(holds, known.position)
        elif is_whole:
            self.event = "its last rotation left no file: lines rotated before they are read would be lost"
        else:
            self._report_lost(known, "truncated")
        self.gaps += holds is None and known.position.offset > 0
        begin = older.index(last) + 1 if last else 0
        self._report_late(older[:begin])
        here = {log.opened.id for log in self._logs() if is_whole or log is not known} | {files.present.id}
        after = [file for file in older[begin:] if file.look.id not in here and not self._is_given(file)]
        is_rewritten = known is self._current and not is_whole
        again = self._rewritten(known, after, files.present) if is_rewritten else None
        for file in after:
            if again is not None and again.looked.mtime_ns < file.look.mtime_ns:
                self._read_before_present(again, is_renamed=True)
                again = None
            self._given.append(self._given_of(file))
            self._read_next(file, blocks.Position(), is_renamed=file.look.id == known.opened.id)
        if again is not None:
            self._read_before_present(again, is_renamed=True)

    def _rewritten(self, known: OpenLog[R], after: Sequence[RotatedFile], new: OpenFile) -> OpenLog[R] | None:
        """What was written to a file after it was truncated, if no name leads to it any more."""
        again = self._open_log(known.opened, blocks.Position())
        if known.opened.id in {new.id, *(file.look.id for file in after)} or any(map(again.is_in, after)):
            known.opened.close()
            return None
        return again

    def _holder_of(
        self, known: OpenLog[R], older: Sequence[RotatedFile], *, is_whole: bool
    ) -> RotatedFile | None:
        """The rotated file that a file became, or was copied or packed to. Others may begin alike.

        Its copy is the first of the new files: those after it came later.
        """
        same = (file for file in older if is_whole and file.look.id == known.opened.id)
        new = reversed(older) if is_whole else (file for file in older if not self._is_given(file))
        alike = (file for file in new if known.is_in(file))
        return next(chain(same, alike), None)

    def _read_next(self, file: RotatedFile, position: blocks.Position, *, is_renamed: bool = False) -> None:
        if file.opened is None:
            self.gaps += 1
            self._gathered.skip((Skip(str(file.path), f"rotated file not read: {file.problem}"),))
        else:
            self._read_before_present(self._open_log(file.opened, position), is_renamed=is_renamed)

    def _read_before_present(self, log: OpenLog[R], *, is_renamed: bool) -> None:
        log.is_renamed = is_renamed
        self._older.append(log)

    def _read(self) -> bool:
        now = self._timer()
        if self._read_older(now):
            return True
        if (current := self._current) is None:
            return False
        if current.is_other_text():
            self._take()
            read = current.position.offset
            if read and not any(log.position == current.position for log in self._older if not log.until):
                self.event = f"was truncated after {read} bytes were read; read again from byte 0"
        elif current.cut_off:
            self._report_lost(current, "truncated", size=current.cut_off)
        return self._read_older(now) or (self._current or current).read(self._gathered, now)

    def _read_older(self, now: float) -> bool:
        """Read the files that come before the present one. True if there is more in them."""
        for log in tuple(self._older):
            has_present = self._current is None or self._current.looked.size > 0
            is_over = log.until is not None and now >= log.until and has_present
            try:
                if log.is_changed():
                    self._given.append(_given_here(log))
                if log.read(self._gathered, now, release=is_over or not log.is_renamed):
                    return True
            except OSError as error:  # as of one renamed, then deleted on another host
                self._leave(log, f"not read, {error.strerror},")
                continue
            if is_over or not log.is_renamed:
                self._leave(log, "rotated away")
            elif log.until is None:
                log.until = now + self._limits.retire_s
        ended = [log for log in self._older if log.until is not None]
        for log in ended[:-RETIRED_KEPT]:
            self._leave(log, "rotated away")
        return False

    def _leave(self, log: OpenLog[R], how: str) -> None:
        self._older.remove(log)
        self._read_before += log.done
        self._report_lost(log, how)
        log.opened.close()

    def _report_late(self, older: Iterable[RotatedFile]) -> None:
        late = [file for file in older if not self._is_given(file)]
        self._note_all(late)
        for file in late:
            why = "rotated file not read: it appeared after newer lines were read"
            self._gathered.skip((Skip(str(file.path), why),))

    def _report_lost(self, log: OpenLog[R], how: str, *, size: int | None = None) -> None:
        if lost := log.unread if size is None else size:
            self.gaps += 1
            skip = blocks.skip_at(str(self._path), log.position, f"{how} before {lost} bytes were read")
            self._gathered.skip((skip,))

    def _batch(self, *, more: bool) -> Batch:
        beginning = self.beginning
        began = beginning.note if beginning else None
        given: dict[str, Any] = {self.gives: tuple(self._gathered.records)}
        return Batch(
            **given,
            skipped=tuple(self._gathered.skips),
            skip_count=self._gathered.skip_count,
            count=self._gathered.lines,
            more=more,
            note="; ".join(filter(None, (began, self.event))) or None,
            begins_at=beginning.at if beginning is not None and not beginning.whole else None,
        )
