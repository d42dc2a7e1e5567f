"""A journal on this machine through libsystemd: its own, or a directory of files.

The low-level reader of systemd-python gives fields raw, about three times as fast as the public one with its
converters. A handle belongs to one thread of the process that opened it.
Each slice is sought anew, by a cursor or a time: a position kept while its matches fit no entry yet loses
most of what is written first. A step after a seek costs less than half a millisecond.

libsystemd says nothing of files it cannot read, so they are looked at here: `system.journal`,
`system@...journal` (archived), `user-1000.journal`, `remote-host.journal`, with a `~` after it when not
closed in order, in the directory or one below it named by a machine id (systemd's JOURNAL_FILE_FORMAT
document).
"""

import asyncio
import contextlib
import errno
import getpass
import os
import re
import struct
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from jobtui.backends.journal import client
from jobtui.backends.journal.client import Following, JournalReader
from jobtui.backends.journal.following import ApartFollowing, Hosts, Lanes
from jobtui.formats.journal_export import FieldValue, record_of, stored_fields
from jobtui.model.commands import Command
from jobtui.model.journal import (
    At,
    Beside,
    Cursor,
    Fields,
    Head,
    JournalCondition,
    JournalEntry,
    Match,
    Matches,
    Slice,
    Start,
    Tail,
    own_cursor,
)
from jobtui.model.source_errors import SourceDenied, SourceError, SourceMissing
from jobtui.model.specs import LOCAL_JOURNAL
from jobtui.transport.files import odd_kind, read_small
from jobtui.transport.worker import Worker

LOCAL_DIRECTORIES = ("/var/log/journal", "/run/log/journal")
NOTED_FILES = 3
"""Files named in a note; of the others their number."""

_NAME = re.compile(r".+\.journal~?")
_MACHINE_ID = re.compile(r"[0-9a-f]{32}")
_MAGIC = b"LPKSHHRH"
_HEADER = struct.Struct("<8s II 8s 16s 16s 16s 16s QQ")
"""Signature, flags, state and reserved bytes, four ids, the sizes of header and arena."""


class FileState(StrEnum):
    """How a journal file stands, in words for whoever has to look after it."""

    GOOD = "good"
    DENIED = "not readable for you"
    EMPTY = "empty"
    TRUNCATED = "cut off"
    FOREIGN = "no journal file"
    NOT_OPENED = "not accepted by libsystemd; see: journalctl --verify"


class JournalFile(NamedTuple):
    """One file and its state."""

    path: Path
    state: FileState


def local_directories(machine: str | None = None) -> tuple[Path, ...]:
    machine = machine or _machine_id()
    return tuple(Path(each, machine) for each in LOCAL_DIRECTORIES)


def survey(directories: Iterable[Path]) -> tuple[JournalFile, ...]:
    """Every journal file of these directories. What vanishes meanwhile is left out. Raises OSError."""
    return tuple(
        JournalFile(path, state)
        for directory in directories
        for path in _files_of(directory)
        if (state := _state_of(path)) is not None
    )


def listed(directories: Iterable[Path]) -> Iterator[tuple[str, int]]:
    """The names of what lies in these directories and below, with inodes. What cannot be read is left out."""
    for directory in directories:
        with contextlib.suppress(OSError), os.scandir(directory) as found:
            for entry in found:
                yield entry.path, entry.inode()
                if _MACHINE_ID.fullmatch(entry.name):
                    yield from listed([Path(entry.path)])


def _files_of(directory: Path) -> Iterator[Path]:
    with os.scandir(directory) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        if _NAME.fullmatch(entry.name):
            yield Path(entry.path)
    for entry in entries:
        if _MACHINE_ID.fullmatch(entry.name) and entry.is_dir():
            try:
                below = sorted(os.listdir(entry.path))
            except OSError:
                continue
            yield from (Path(entry.path, name) for name in below if _NAME.fullmatch(name))


def _state_of(path: Path) -> FileState | None:
    """None for what is there no more, or is no file at all."""
    try:
        found = path.stat()
        if odd_kind(found.st_mode):
            return None
        head = read_small(path, _HEADER.size)
    except FileNotFoundError:
        return None
    except OSError:
        return FileState.DENIED
    if not found.st_size:
        return FileState.EMPTY
    if not head.startswith(_MAGIC):
        return FileState.FOREIGN
    if len(head) < _HEADER.size:
        return FileState.TRUNCATED
    header_size, arena_size = _HEADER.unpack(head)[-2:]
    return FileState.TRUNCATED if header_size + arena_size > found.st_size else FileState.GOOD


def opened_here() -> frozenset[Path] | None:
    """The journal files that this process has open; None where the system does not tell."""
    opened = set()
    try:
        numbers = os.listdir("/proc/self/fd")
    except OSError:
        return None
    for number in numbers:
        try:
            target = os.readlink(f"/proc/self/fd/{number}")
        except OSError:
            continue
        if _NAME.fullmatch(target):
            opened.add(Path(target))
    return frozenset(opened)


def checked(files: Sequence[JournalFile], opened: frozenset[Path] | None) -> tuple[JournalFile, ...]:
    """The files again, those that look good and were not opened marked as such."""
    if opened is None:
        return tuple(files)
    return tuple(
        JournalFile(path, FileState.NOT_OPENED)
        if state is FileState.GOOD and Path(os.path.realpath(path)) not in opened
        else JournalFile(path, state)
        for path, state in files
    )


def condition_of(files: Sequence[JournalFile], damaged_entries: int = 0, let_go: int = 0) -> JournalCondition:
    bad = [each for each in files if each.state is not FileState.GOOD]
    notes = []
    if bad:
        notes.append(f"{len(files) - len(bad)} of {len(files)} journal files read: {_told(bad)}")
    if any(each.state is FileState.DENIED for each in bad):
        notes.append(remedy())
    if damaged_entries:
        notes.append(f"{damaged_entries} damaged entries left out; see: journalctl --verify")
    if let_go:
        notes.append("a file is damaged inside, what is behind that may be missing; see: journalctl --verify")
    if not files:
        notes.append("there are no journal files in it yet")
    return JournalCondition(len(files) - len(bad), len(bad), "; ".join(notes))


def _told(bad: Sequence[JournalFile]) -> str:
    told = [f"{path.name} {state}" for path, state in bad[:NOTED_FILES]]
    rest = Counter(state for _, state in bad[NOTED_FILES:])
    return ", ".join([*told, *(f"{count} more {state}" for state, count in rest.items())])


def remedy() -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = "USER"
    command = Command("sudo", "usermod", "-aG", "systemd-journal", about=[user])
    return f"to read all: {command or 'join the group systemd-journal'}, then log in anew"


def _machine_id() -> str:
    try:
        return read_small("/etc/machine-id", 100).decode("ascii").strip()
    except (OSError, ValueError):
        return "uninitialized"


LOCAL_ONLY = 1
"""sd_journal_open(3): not what other hosts sent here."""

StoredFields = dict[str, FieldValue]


class Handle:
    """An open journal: a position in it, and the matches that say which entries are stepped on.

    `directory` None for the journal of this host.
    """

    def __init__(self, directory: str | None) -> None:
        from systemd import _reader  # as heavy as libsystemd: only who reads a journal pays for it

        self._reader: Any = _reader._Reader(LOCAL_ONLY if directory is None else 0, directory)

    def step(self, back: bool = False) -> bool:
        return bool(self._reader._previous() if back else self._reader._next())

    def entry(self) -> JournalEntry:
        reader = self._reader
        return record_of(
            reader._get_all(), reader._get_cursor(), reader._get_realtime(), reader._get_monotonic()[0]
        )

    def fields(self) -> StoredFields:
        found: StoredFields = self._reader._get_all()
        return found

    def cursor(self) -> str:
        return str(self._reader._get_cursor())

    def is_at(self, cursor: str) -> bool:
        return bool(self._reader.test_cursor(cursor))

    def seek_head(self) -> None:
        self._reader.seek_head()

    def seek_tail(self) -> None:
        self._reader.seek_tail()

    def seek_time(self, time_us: int) -> None:
        self._reader.seek_realtime(time_us)

    def seek_cursor(self, cursor: str) -> None:
        try:
            self._reader.seek_cursor(cursor)
        except ValueError as error:
            raise OSError(errno.EINVAL, f"no place in a journal: {cursor!r:.80}") from error

    def match(self, groups: Iterable[Iterable[Match]]) -> None:
        reader = self._reader
        reader.flush_matches()
        for number, group in enumerate(groups):
            if number:
                reader.add_disjunction()
            for field, value in group:
                reader.add_match(os.fsencode(f"{field}={value}"))

    def unique(self, field: str) -> list[bytes]:
        return list(self._reader.query_unique(field))

    def fileno(self) -> int:
        return int(self._reader.fileno())

    def process(self) -> None:
        self._reader.process()

    def usage(self) -> int:
        """The bytes of all files that are open."""
        return int(self._reader.get_usage())

    def is_reliable(self) -> bool:
        return bool(self._reader.reliable_fd())

    def close(self) -> None:
        self._reader.close()


def is_installed() -> bool:
    try:
        from systemd import _reader
    except ImportError:
        return False
    return hasattr(_reader, "_Reader")


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
        return client.slice_of(found, most, last or own_cursor(start), lost)

    def backward(self, start: Tail | At | Beside, matches: Matches, most: int) -> Slice:
        """Up to `most` wanted entries before `start`, oldest first."""
        handle = self._ready()
        last = _last(handle)
        lost = _seek(handle, start, matches, back=True)
        found = self._take(handle, start, matches, most + 1, back=True)
        return client.slice_of(found[::-1], most, own_cursor(start) or last, lost, back=True)

    def one_of_each(self, groups: Sequence[Matches]) -> list[JournalEntry | None]:
        found = [self.backward(Tail(), group, 1).entries for group in groups]
        return [entries[0] if entries else None for entries in found]

    def last(self) -> Cursor | None:
        return _last(self._ready())

    def fields(self, cursor: Cursor) -> Fields | None:
        handle = self._ready()
        if not _go_to(handle, cursor):
            return None
        entry = handle.entry()
        address = {"__CURSOR": entry.cursor.encode(), "__REALTIME_TIMESTAMP": b"%d" % (entry.at // 1_000)}
        if entry.monotonic_us is not None:
            address["__MONOTONIC_TIMESTAMP"] = b"%d" % entry.monotonic_us
        return stored_fields({**address, **handle.fields()})

    def values(self, field: str) -> tuple[str, ...]:
        return tuple(sorted(value.decode("utf-8", "replace") for value in self._ready().unique(field)))

    def condition(self) -> JournalCondition:
        self._ready()
        files = checked(self._survey(), opened_here())
        return condition_of(files, len(self._damaged), self._let_go)

    @property
    def fd(self) -> int | None:
        """What becomes readable when the files change; None when they are not open, or not watched."""
        return self._fd if self._handle is not None else None

    def is_reliable(self) -> bool:
        return self.fd is not None and self._handle is not None and self._handle.is_reliable()

    def close(self) -> None:
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
        states = {each.state for each in self._survey()}
        if FileState.DENIED in states and FileState.GOOD not in states:
            raise SourceDenied(f"{self._name}: no permission for its files; {remedy()}")
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
        files = frozenset(listed(self._directories()))
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
        return [path for path in local_directories() if path.is_dir()]

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

    def _survey(self) -> tuple[JournalFile, ...]:
        return survey(self._directories())

    def _take(
        self, handle: Handle, start: Start, matches: Matches, most: int, *, back: bool
    ) -> list[JournalEntry]:
        own, exact = own_cursor(start), client.is_exact(matches)
        beside = None if own is None else client.position(own)
        entries: list[JournalEntry] = []
        damaged = 0
        while len(entries) < most and handle.step(back):
            if beside is not None:
                if not client.is_beyond(client.position(Cursor(handle.cursor())), beside, back=back):
                    continue
                beside = None
            try:
                if exact or client.fulfils({k.encode(): v for k, v in handle.fields().items()}, matches):
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
    beside = client.position(cursor)
    while handle.step():
        if handle.is_at(cursor):
            return True
        if client.is_beyond(client.position(Cursor(handle.cursor())), beside):
            return False
    return False


def _seek(handle: Handle, start: Start, matches: Matches, *, back: bool) -> bool:
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
            handle.seek_time(max(client.from_micros(time) - back, 0))
        case Beside(cursor):
            handle.seek_cursor(cursor)
    return lost


T = TypeVar("T")

RECHECK_S = 2.0
"""It is looked again at the latest after this: a file not written by journald may change untold."""
END_SETTLES_S = 10.0
"""So long an entry is looked at again that was the last one: all that is written of it has been by then."""
UNRELIABLE_RECHECK_S = 0.5
"""The same where the file system tells of no changes made by other hosts."""
LANES_MOST = 250
"""Hosts that are followed apart; each costs a step in the journal when it is looked at."""


class NativeJournal:
    """A `JournalReader` with one handle and one thread. `directory` None for the journal of this host."""

    def __init__(self, name: str, directory: str | None, make_handle: OpenHandle = Handle) -> None:
        self.name = name
        self._directory = directory
        self._make_handle = make_handle
        self._thread = _JournalThread(name, directory, make_handle)

    async def forward(self, start: Head | At | Beside, matches: Matches, most: int) -> Slice:
        """Up to `most` wanted entries from `start` on."""
        wanted = client.checked(matches, self.name)
        return await self._thread.run(lambda reading: reading.forward(start, wanted, most))

    async def backward(self, start: Tail | At | Beside, matches: Matches, most: int) -> Slice:
        """Up to `most` wanted entries before `start`, oldest first."""
        wanted = client.checked(matches, self.name)
        return await self._thread.run(lambda reading: reading.backward(start, wanted, most))

    async def fields(self, cursor: Cursor) -> Fields | None:
        return await self._thread.run(lambda reading: reading.fields(cursor))

    async def values(self, field: str) -> tuple[str, ...]:
        client.check_field(field, self.name)
        return await self._thread.run(lambda reading: reading.values(field))

    async def condition(self) -> JournalCondition:
        return await self._thread.run(Reading.condition)

    def follow(self, start: Start, matches: Matches) -> Following:
        """What is written from `start` on, through a handle of its own."""
        wanted = client.checked(matches, self.name)
        thread = _JournalThread(self.name, self._directory, self._make_handle)
        if self._directory is None:  # one host's alone
            return NativeFollowing(thread, start, wanted, (), is_alone=True)
        return ApartFollowing(_lanes(thread), start, wanted)

    async def aclose(self) -> None:
        self._thread.close()


def _lanes(thread: "_JournalThread") -> Lanes:
    """Hosts apart through one handle and one thread."""
    return Lanes(
        name=thread.name,
        hosts=Hosts(
            lambda field: thread.run(lambda reading: reading.values(field)),
            lambda groups: thread.run(lambda reading: reading.one_of_each(groups)),
        ),
        last_before=lambda start, scope: thread.run(lambda reading: reading.backward(start, scope, 1)),
        lane=lambda start, wanted, scope: NativeFollowing(thread, start, wanted, scope),
        close=thread.close,
        most=LANES_MOST,
        look_every_s=0.0,
    )


class NativeFollowing:
    """A `Following`: goes on behind the last entry it gave, or the last of `scope` when none was wanted."""

    def __init__(
        self,
        thread: "_JournalThread",
        start: Start,
        matches: Matches,
        scope: Matches,
        *,
        is_alone: bool = False,
    ) -> None:
        self._thread = thread
        self._place = start
        self._matches = matches
        self._scope = scope
        self._is_alone = is_alone
        self._end: tuple[Cursor, float] | None = None

    async def take(self, most: int) -> Slice:
        place = self._place
        found = await self._thread.run(
            lambda reading: _behind(reading, place, self._matches, most, self._scope)
        )
        self._place = self._next_place(place, found)
        return found._replace(cursor=own_cursor(self._place))

    def _next_place(self, place: Start, found: Slice) -> Start:
        """Where to go on: behind what was given; where nothing was, slowly at the end as it was.

        An entry can be the last one before it is among the wanted ones: journald does not write it in one go.
        """
        if found.entries or (found.cursor is not None and isinstance(place, Tail)):
            self._end = None
            return Beside(found.entries[-1].cursor if found.entries else Cursor(found.cursor or ""))
        if found.cursor is None:
            return place if isinstance(place, At) else Head()
        now = time.monotonic()
        if self._end is None:
            self._end = found.cursor, now
        if now - self._end[1] < END_SETTLES_S and not found.lost:
            return place
        (cursor, _), self._end = self._end, None
        return Beside(cursor)

    async def changed(self, timeout_s: float) -> None:
        await self._thread.changed(timeout_s)

    async def aclose(self) -> None:
        if self._is_alone:
            self._thread.close()


def _behind(reading: Reading, place: Start, matches: Matches, most: int, scope: Matches) -> Slice:
    if isinstance(place, Tail):
        return Slice((), reading.last(), True)
    found = reading.forward(place, matches, most, scope)
    # A time may lie behind the last entry there is: what comes next may still be earlier than the time
    return found if found.entries or not isinstance(place, At) else found._replace(cursor=None)


class _JournalThread:
    """A reading and the thread it belongs to."""

    def __init__(self, name: str, directory: str | None, open_handle: OpenHandle) -> None:
        self.name = name
        self._reading = Reading(name, directory, open_handle)
        self._worker = Worker(f"journal {name}")
        self._process = os.getpid()
        self._fd: int | None = None
        self._watched: int | None = None
        self._recheck_s = 0.0
        self._waiting: set[asyncio.Event] = set()
        self.is_closed = False

    async def run(self, call: Callable[[Reading], T]) -> T:
        """What `call` gives. Raises SourceError.

        Any call may open the files anew: what becomes readable when there is more is known again after each.
        """
        self._fd, self._recheck_s = None, RECHECK_S
        if self.is_closed:
            raise SourceError(f"{self.name}: is closed")
        if os.getpid() != self._process:
            raise SourceError(f"{self.name}: was opened by another process; open it anew in this one")
        try:
            found, fd, reliable = await self._worker.run(
                lambda: (call(self._reading), self._reading.fd, self._reading.is_reliable())
            )
        except OSError as error:
            raise self._fault(error) from error
        self._fd, self._recheck_s = fd, RECHECK_S if reliable else UNRELIABLE_RECHECK_S
        return found

    async def changed(self, timeout_s: float) -> None:
        if self.is_closed:
            return
        news = asyncio.Event()
        self._waiting.add(news)
        self._watch(self._fd)
        try:
            await asyncio.wait_for(news.wait(), max(min(timeout_s, self._recheck_s), 0.0))
        except TimeoutError:
            pass
        finally:
            self._waiting.discard(news)
            if not self._waiting:
                self._watch(None)

    def _watch(self, fd: int | None) -> None:
        if fd == self._watched:
            return
        loop = asyncio.get_running_loop()
        if self._watched is not None:
            loop.remove_reader(self._watched)
        if fd is not None:
            loop.add_reader(fd, self._tell)
        self._watched = fd

    def _tell(self) -> None:
        for news in self._waiting:
            news.set()

    def close(self) -> None:
        """Let go, in its thread and behind what it does. May be called twice."""
        if not self.is_closed and os.getpid() == self._process:
            self._watch(None)
            self._worker.close(self._reading.close)
        self.is_closed = True
        self._tell()

    def _fault(self, error: OSError) -> SourceError:
        if error.errno in (errno.EACCES, errno.EPERM):
            return SourceDenied(f"{self.name}: may not be read; {remedy()}")
        if error.errno == errno.EMFILE:
            return SourceError(f"{self.name}: too many files are open; raise the limit: ulimit -n 4096")
        return SourceError(f"{self.name}: could not be read: {error.strerror or error}")


def local_journal(target: str) -> JournalReader:
    """A reader of `local`, or of a directory of journal files. Opens nothing yet."""
    from jobtui.backends.journal.journalctl import LocalJournalctl

    directory = None if target == LOCAL_JOURNAL else os.path.expanduser(target)
    if is_installed():
        return NativeJournal(target, directory)
    return LocalJournalctl(target, directory)
