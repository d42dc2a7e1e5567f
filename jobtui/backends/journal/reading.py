"""Slices of a journal through a handle of libsystemd, for one thread. Raises OSError and SourceError.

Each slice is sought anew, by a cursor or a time: a place kept in the handle while its matches fit no entry
yet loses most of what is written first. A step after a seek costs less than half a millisecond.
"""

import errno
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from jobtui.backends.base import SourceDenied, SourceError, SourceMissing
from jobtui.backends.journal import asking, journal_files, order
from jobtui.backends.journal.libsystemd import Handle
from jobtui.formats.journal_fields import stored_fields
from jobtui.model.journal import (
    At,
    Beside,
    Cursor,
    Fields,
    Head,
    JournalCondition,
    JournalEntry,
    Matches,
    Slice,
    Start,
    Tail,
    own_cursor,
)

DAMAGED_MOST = 1_000
"""Damaged entries that are passed over in one slice, and that are counted."""

SETTLE_S = 2.0
"""So long after files were made they are opened anew."""

OpenHandle = Callable[[str | None], Handle]


class Reading:
    """One open journal. `directory` None for the journal of this host. Opened when it is first asked."""

    def __init__(self, name: str, directory: str | None, open_handle: OpenHandle) -> None:
        self._name = name
        self._directory = directory
        self._open_handle = open_handle
        self._handle: Handle | None = None
        self._fd: int | None = None
        self._opened: tuple[int, int] | None = None
        self._files: frozenset[tuple[str, int]] = frozenset()
        self._settled_at = 0.0
        self._usage = 0
        self._had = 0
        self._let_go = 0
        self._damaged: set[str] = set()

    def forward(self, start: Head | At | Beside, matches: Matches, most: int, scope: Matches = ()) -> Slice:
        """Up to `most` wanted entries from `start` on; it stands at the last of `scope` when none is left."""
        handle = self._ready()
        last = _last(handle, scope)
        lost = _seek(handle, start, matches, back=False)
        found = self._take(handle, start, matches, most + 1, back=False)
        entries, at_edge = found[:most], len(found) <= most
        if entries:
            stand: Cursor | None = entries[-1].cursor
        else:
            stand = last if at_edge and last else own_cursor(start)
        return Slice(tuple(entries), stand, at_edge, lost)

    def backward(self, start: Tail | At | Beside, matches: Matches, most: int) -> Slice:
        """Up to `most` wanted entries before `start`, oldest first."""
        handle = self._ready()
        last = _last(handle)
        lost = _seek(handle, start, matches, back=True)
        found = self._take(handle, start, matches, most + 1, back=True)
        entries, at_edge = found[:most][::-1], len(found) <= most
        stand = entries[0].cursor if entries else own_cursor(start) or last
        return Slice(tuple(entries), stand, at_edge, lost)

    def one_of_each(self, groups: Sequence[Matches]) -> list[JournalEntry | None]:
        """Some entry of each of these, None where there is none."""
        found = [self.backward(Tail(), group, 1).entries for group in groups]
        return [entries[0] if entries else None for entries in found]

    def last(self) -> Cursor | None:
        """The last entry there is, wanted or not."""
        return _last(self._ready())

    def fields(self, cursor: Cursor) -> Fields | None:
        """Everything one entry holds; None when it is there no more."""
        handle = self._ready()
        if not _go_to(handle, cursor):
            return None
        entry = handle.entry()
        address = {"__CURSOR": entry.cursor.encode(), "__REALTIME_TIMESTAMP": b"%d" % (entry.at // 1_000)}
        if entry.monotonic_us is not None:
            address["__MONOTONIC_TIMESTAMP"] = b"%d" % entry.monotonic_us
        return stored_fields({**address, **handle.fields()})

    def values(self, field: str) -> tuple[str, ...]:
        """The values of a field, sorted."""
        return tuple(sorted(value.decode("utf-8", "replace") for value in self._ready().unique(field)))

    def condition(self) -> JournalCondition:
        """How the files stand that are or should be open."""
        self._ready()
        files = journal_files.checked(self._survey(), journal_files.opened_here())
        return journal_files.condition_of(files, len(self._damaged), self._let_go)

    @property
    def fd(self) -> int | None:
        """What becomes readable when the files change; None when they are not open, or not watched."""
        return self._fd if self._handle is not None else None

    def is_reliable(self) -> bool:
        """Whether every change is told of."""
        return self.fd is not None and self._handle is not None and self._handle.is_reliable()

    def close(self) -> None:
        """Let go of the files. May be called twice."""
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.close()

    def _ready(self) -> Handle:
        """The handle, aware of all changes so far; opened anew when the directory is another one."""
        identity = self._identity()
        if self._handle is not None and identity == self._opened and self._is_settled():
            self._handle.process()
            return self._handle
        self.close()
        if journal_files.is_denied(self._survey()):
            raise SourceDenied(f"{self._name}: no permission for its files; {journal_files.remedy()}")
        handle = self._open_handle(self._directory)
        self._handle, self._opened, self._fd = handle, identity, _watched(handle)
        if self._had:  # as much is there again: a file was let go of, not made shorter
            self._let_go += handle.usage() >= self._had
            self._had = 0
        return handle

    def _is_settled(self) -> bool:
        """False once some time after files came or were let go of.

        libsystemd lets go of a file for good where it cannot make it out: one that is just being made, or is
        damaged in one place.
        """
        files = frozenset(journal_files.listed(self._directories()))
        now = time.monotonic()
        before, self._usage = self._usage, self._handle.usage() if self._handle else 0
        is_same = files == self._files
        if is_same and self._usage < before:
            self._had = before
        if not is_same or self._usage < before:
            self._files, self._settled_at = files, now + SETTLE_S
        if not self._settled_at or now < self._settled_at:
            return True
        self._settled_at = 0.0
        return False

    def _directories(self) -> list[Path]:
        if self._directory is not None:
            return [Path(self._directory)]
        return [path for path in journal_files.local_directories() if path.is_dir()]

    def _identity(self) -> tuple[int, int] | None:
        if self._directory is None:
            return None
        try:
            found = os.stat(self._directory)
        except FileNotFoundError as error:
            self.close()
            raise SourceMissing(f"{self._name}: there is no such directory; check the path") from error
        if not os.path.isdir(self._directory):
            raise SourceError(f"{self._name}: is not a directory; give the directory that holds the journal")
        return found.st_dev, found.st_ino

    def _survey(self) -> tuple[journal_files.JournalFile, ...]:
        return journal_files.survey(self._directories())

    def _take(
        self, handle: Handle, start: Start, matches: Matches, most: int, *, back: bool
    ) -> list[JournalEntry]:
        own, exact = own_cursor(start), asking.is_exact(matches)
        beside = None if own is None else order.position(own)
        entries: list[JournalEntry] = []
        damaged = 0
        while len(entries) < most and handle.step(back):
            if beside is not None:
                if not order.is_beyond(order.position(Cursor(handle.cursor())), beside, back=back):
                    continue
                beside = None
            try:
                if exact or asking.fulfils({k.encode(): v for k, v in handle.fields().items()}, matches):
                    entries.append(handle.entry())
            except OSError as error:
                damaged += 1
                if error.errno != errno.EBADMSG or damaged > DAMAGED_MOST:
                    raise
                if len(self._damaged) < DAMAGED_MOST:
                    self._damaged.add(handle.cursor())
        return entries


def _watched(handle: Handle) -> int | None:
    """What becomes readable when files change from now on; None where the system watches no more of them.

    A user may have but so many watches (fs.inotify.max_user_instances). Without one, what is written is found
    by looking again, and new files as those that were not listed before.
    """
    try:
        return handle.fileno()
    except OSError as error:
        if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOSPC):
            return None
        raise


def _last(handle: Handle, scope: Matches = ()) -> Cursor | None:
    handle.match(scope)
    handle.seek_tail()
    return Cursor(handle.cursor()) if handle.step(back=True) else None


def _go_to(handle: Handle, cursor: Cursor) -> bool:
    """Stand at an entry; whether it is there.

    Without matches: with them another entry would be found rightly. What other hosts sent in the same
    microsecond may come first.
    """
    handle.match(())
    handle.seek_cursor(cursor)
    beside = order.position(cursor)
    while handle.step():
        if handle.is_at(cursor):
            return True
        if order.is_beyond(order.position(Cursor(handle.cursor())), beside):
            return False
    return False


def _seek(handle: Handle, start: Start, matches: Matches, *, back: bool) -> bool:
    """Stand at `start`, the matches set; whether its entry is there no more."""
    lost = False
    if isinstance(start, Beside):
        lost = not _go_to(handle, start.cursor)
    handle.match(matches)
    match start:
        case Head():
            handle.seek_head()
        case Tail():
            handle.seek_tail()
        case At(time):
            # A step back gives what was received at that very microsecond, too
            handle.seek_time(max(order.from_micros(time) - back, 0))
        case Beside(cursor):
            handle.seek_cursor(cursor)
    return lost
