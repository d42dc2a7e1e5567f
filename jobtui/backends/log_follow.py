"""One log file under its name through growth, rotation, truncation and absence. Reads, and blocks.

A renamed file is read to its end before the new one of its name, and looked at for some time after, since
who writes it may not know yet. A file that is cut short or written anew begins again at its first byte. A new
file that goes on with what was read (a copy kept up to date by rename, a file system with passing inode
numbers) is read on, not again.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from jobtui.backends.base import Batch, SourceError, SourceMissing
from jobtui.backends.file_access import FileId, OpenFile, look, open_file, open_renamed, source_error
from jobtui.backends.file_blocks import Limits, Position, Within, place
from jobtui.backends.log_reading import Gathered, OpenLog
from jobtui.backends.log_start import Beginning, BlockParser, Start, begin
from jobtui.model.health import Skip

RETIRED_KEPT = 4
"""Rotated files that are still looked at."""
RESTLESS_S = 0.25
"""How often to poll while a file is being rotated."""


class Origin(NamedTuple):
    """Where the lines with provisional numbers are counted from, and how to tell that place again."""

    file: FileId
    offset: int
    mark: bytes


class _Retired(NamedTuple):
    log: OpenLog
    until: float


class Follower:
    """Gives what is written to the file at `path`, batch by batch. One call at a time.

    `beginning` tells where reading began, None before it did. `origin` is set while the lines before that
    are not counted.
    """

    def __init__(
        self,
        path: Path,
        make_parser: Callable[[], BlockParser],
        start: Start,
        limits: Limits,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        self.beginning: Beginning | None = None
        self.origin: Origin | None = None
        self._path = path
        self._make_parser = make_parser
        self._start = start
        self._limits = limits
        self._timer = timer
        self._current: OpenLog | None = None
        self._left: OpenLog | None = None
        self._retired: list[_Retired] = []
        self._problem_since: float | None = None
        self._event: str | None = None
        self._begun = False
        self._cursor: str | None = None
        self._polls = 0

    def poll(self, cursor: str | None) -> Batch:
        """What is new since `cursor`; None asks for the beginning. Raises SourceError.

        A cursor other than that of the last batch means that this batch was lost: reading goes back to it.
        """
        if cursor is None or cursor != self._cursor:
            self._go_to(cursor)
        gathered = Gathered(self._limits)
        more, problem = False, self._keep_up()
        try:
            more = self._read(gathered)
        except OSError as error:
            problem = source_error(error, self._path)
        if problem is not None and gathered.empty:
            raise problem
        self._polls += 1
        self._cursor = self._new_cursor()
        return self._batch(gathered, self._cursor, more=more or problem is not None)

    @property
    def measured(self) -> tuple[int, int]:
        """Bytes read since where reading began, and bytes from there to the end, as of the last poll."""
        if self._current is None or self.beginning is None:
            return 0, 0
        read = max(0, self._current.position.offset - self.beginning.offset)
        return read, read + self._current.unread

    @property
    def rest_s(self) -> float | None:
        """How soon to poll again although the file at the path stays as it is; None when that is no use."""
        if self._retired or (self._current is not None and self._problem_since is not None):
            return RESTLESS_S
        return self._limits.hold_s if self._current is not None and self._current.unread else None

    def close(self) -> None:
        """Release every file. May be called twice."""
        for retired in self._retired:
            retired.log.opened.close()
        if self._current is not None:
            self._current.opened.close()
        self._retired.clear()
        self._current = self._left = self._cursor = None

    def _keep_up(self) -> SourceError | None:
        """Have the file open that is at the path now; what keeps it from that, if something does."""
        try:
            seen = look(self._path)
            if self._current is None or self._current.opened.id != seen.id:
                self._take(open_file(self._path))
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

    def _take(self, opened: OpenFile) -> None:
        try:
            self._current, self._left = self._log_for(opened), None
        except OSError as error:
            opened.close()
            raise source_error(error, self._path) from error

    def _log_for(self, opened: OpenFile) -> OpenLog:
        known = self._current or self._left
        if known is not None and known.goes_on_in(opened):
            known.go_on_in(opened)
            return known
        if not self._begun:
            return self._first_log(opened)
        log = self._open_log(opened, Position())
        if self._current is not None:
            self._retired.append(_Retired(self._current, self._timer() + self._limits.retire_s))
        return log

    def _first_log(self, opened: OpenFile) -> OpenLog:
        position, self.beginning = begin(opened, self._start, self._make_parser(), self._limits)
        log = self._open_log(opened, position)
        self.origin = Origin(opened.id, position.offset, log.mark) if position.line < 0 else None
        self._begun = True
        return log

    def _open_log(self, opened: OpenFile, position: Position) -> OpenLog:
        return OpenLog(opened, position, self._make_parser(), str(self._path), self._limits)

    def _read(self, gathered: Gathered) -> bool:
        now = self._timer()
        if self._read_retired(gathered, now):
            return True
        if self._current is None:
            return False
        if self._current.was_rewritten():
            self._begin_again(self._current, gathered)
        elif lost := self._current.cut_off:
            self._tell_lost(self._current, lost, "truncated", gathered)
        return self._current.read(gathered, now)

    def _read_retired(self, gathered: Gathered, now: float) -> bool:
        for retired in tuple(self._retired):
            is_over = now >= retired.until and (self._current is None or self._current.has_text)
            try:
                if retired.log.read(gathered, now, release=is_over):
                    return True
            except OSError:
                # Renamed, then deleted on another host, it can no longer be read: the rest goes on.
                is_over = True
            if is_over:
                self._dismiss(retired, gathered)
        while len(self._retired) > RETIRED_KEPT:
            self._dismiss(self._retired[0], gathered)
        return False

    def _dismiss(self, retired: _Retired, gathered: Gathered) -> None:
        self._retired.remove(retired)
        self._tell_lost(retired.log, retired.log.unread, "rotated away", gathered)
        retired.log.opened.close()

    def _begin_again(self, log: OpenLog, gathered: Gathered) -> None:
        self._event = f"was truncated when {log.position.offset} bytes were read; read again from byte 0"
        self._tell_lost(log, log.unread, "truncated", gathered)
        self._current = self._open_log(log.opened, Position())

    def _tell_lost(self, log: OpenLog, size: int, how: str, gathered: Gathered) -> None:
        if size:
            skip = Skip(place(str(self._path), log.position), f"{how} before {size} bytes were read")
            gathered.skip((skip,), 1)

    def _batch(self, gathered: Gathered, cursor: str, *, more: bool) -> Batch:
        beginning = self.beginning
        began = beginning.note if beginning else None
        return Batch(
            cursor=cursor,
            records=tuple(gathered.records),
            skipped=tuple(gathered.skips),
            skip_count=gathered.skip_count,
            count=gathered.lines,
            more=more,
            note="; ".join(filter(None, (began, self._event))) or None,
            begins_at=beginning.at if beginning is not None and not beginning.whole else None,
        )

    def _new_cursor(self) -> str:
        if self._current is None:
            return f"{self._polls}"
        file, at = self._current.opened.id, self._current.position
        return f"{self._polls}:{file.device}:{file.inode}:{at.offset}:{at.line}:{at.within}"

    def _go_to(self, cursor: str | None) -> None:
        self.close()
        self._event = self._problem_since = None
        place = _parse_cursor(cursor)
        self._begun = place is not None
        if place is None:
            return
        file, position = place
        opened = open_renamed(self._path, file)
        if opened is None:
            self._event = "the file read before is gone; the present one is read from byte 0"
        else:
            self._current = self._open_log(opened, position)


def _parse_cursor(cursor: str | None) -> tuple[FileId, Position] | None:
    """The file and the place in it that a cursor stands for; None for one without, or not of ours."""
    try:
        _, device, inode, offset, line, within = (cursor or "").split(":")
        return FileId(int(device), int(inode)), Position(int(offset), int(line), Within(within))
    except ValueError:
        return None
