"""Waiting until files change: told by inotify(7) where it tells, by looking at them where it does not.

Waiting for the kernel wakes nobody while nothing happens. Everything that may block is done in a thread.
"""

import asyncio
import errno
import os
import re
import select
import struct
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from enum import Enum, auto
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from jobtui.model.numbers import of_base
from jobtui.model.source_errors import SourceError
from jobtui.transport.files import FileId, read_small
from jobtui.transport.worker import Worker, start

if TYPE_CHECKING:
    import ctypes


MOUNTINFO = Path("/proc/self/mountinfo")
MOST_BYTES = 4 << 20

SILENT = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ncpfs", "coda", "9p", "virtiofs", "vboxsf", "prl_fs",
     "lustre", "gpfs", "beegfs", "ceph", "glusterfs", "gfs2", "ocfs2", "orangefs", "pvfs2", "panfs",
     "wekafs", "fuse", "davfs", "sshfs", "ecryptfs"}
)  # fmt: skip
"""File systems another machine may write to without this kernel noticing; so may any named `fuse.*`."""


def silent_file_system(directory: str) -> str | None:
    """The kind of a file system that may change unnoticed by this kernel; None where changes are told of."""
    try:
        text = read_small(MOUNTINFO, MOST_BYTES).decode("utf-8", "surrogateescape")
    except OSError:
        return None
    kind = file_system_of(os.path.realpath(directory), text)
    return kind if kind is not None and (kind in SILENT or kind.startswith("fuse.")) else None


def file_system_of(path: str, mountinfo: str) -> str | None:
    """The file system kind of the mount that holds an absolute path, by proc_pid_mountinfo(5)."""
    best, kind = "", None
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, kinds = before.split(" "), after.split(" ")
        if len(fields) < 5 or not kinds[0]:
            continue
        point = re.sub(r"\\([0-7]{3})", lambda match: chr(of_base(match[1], 8) or 0), fields[4])
        # Mounted later on the same point hides what was there, so equal length wins.
        if len(point) >= len(best) and (path == point or path.startswith(point.rstrip("/") + "/")):
            best, kind = point, kinds[0]
    return kind


MODIFY, ATTRIB = 0x2, 0x4
MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x40, 0x80, 0x100, 0x200
DELETE_SELF, MOVE_SELF = 0x400, 0x800
UNMOUNT, OVERFLOW, IGNORED = 0x2000, 0x4000, 0x8000
ONLY_DIRECTORY = 0x1000000

_NONBLOCK, _CLOEXEC = os.O_NONBLOCK, os.O_CLOEXEC
_EVENT = struct.Struct("iIII")
_READ_BYTES = 1 << 16


class Event(NamedTuple):
    """Something that happened: to which watch, what, and to which name in a watched directory."""

    watch: int
    what: int
    name: str


@cache
def _kernel() -> "ctypes.CDLL":
    import ctypes  # a one-shot command never gets here, and a first paint need not wait for it

    library = ctypes.CDLL(None, use_errno=True)
    if not hasattr(library, "inotify_init1"):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    return library


class Inotify:
    """A queue of events. Raises OSError where the kernel gives none."""

    def __init__(self) -> None:
        self._fd = _checked(_kernel().inotify_init1(_NONBLOCK | _CLOEXEC))

    def fileno(self) -> int:
        return self._fd

    def add(self, path: str, what: int) -> int:
        """Watch a file or directory; the number of the watch. May block. Raises OSError."""
        return _checked(_kernel().inotify_add_watch(self._fd, os.fsencode(path), what))

    def read(self) -> list[Event]:
        """What happened since the last call; never blocks. Raises OSError."""
        try:
            data = os.read(self._fd, _READ_BYTES)
        except BlockingIOError:
            return []
        events, at = [], 0
        while at < len(data):
            watch, what, _, length = _EVENT.unpack_from(data, at)
            at += _EVENT.size + length
            events.append(Event(watch, what, os.fsdecode(data[at - length : at].rstrip(b"\0"))))
        return events

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _checked(result: int) -> int:
    if result < 0:
        import ctypes

        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


GAP_S = 0.1
"""The shortest time from one change that is told of to the next."""
LOOK_S = 0.25
"""How often the files are looked at where the kernel does not tell."""
RETRY_S = 5.0
"""How long after it could not be asked it is asked again."""

_FILE = MODIFY | ATTRIB | MOVE_SELF | DELETE_SELF
_DIRECTORY = CREATE | MOVED_TO | MOVE_SELF | DELETE_SELF
_SAME_FILE = MODIFY | ATTRIB


class FileNews:
    """Tells that files of these names may have changed. `arm` is for a thread, the rest for the loop."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = [str(path) for path in paths]
        self._names: frozenset[str] = frozenset()
        self._queue: Inotify | None = None
        self._armed: list[FileId] | None = None
        self._spent: list[Inotify] = []
        self._retry_at = 0.0
        self._lock = threading.Lock()
        self._closed = False
        self._waiter: asyncio.Future[None] | None = None

    def arm(self) -> bool:
        """Watch the files that the names lead to now; False where events do not tell of all changes."""
        found = [_identity(path) for path in self._paths]
        if self._queue is not None and found == self._armed:
            return True
        self._take(None)
        if time.monotonic() < self._retry_at:
            return False
        queue = self._watched()
        self._armed, self._retry_at = found, 0.0 if queue else time.monotonic() + RETRY_S
        self._take(queue)
        return queue is not None

    def _watched(self) -> Inotify | None:
        """A queue for the files there are and the directories where they are or will be; None without."""
        links = {*self._paths, *map(os.path.realpath, self._paths)}
        directories = {os.path.dirname(os.path.abspath(path)) for path in links}
        if any(silent_file_system(directory) for directory in directories):
            return None
        self._names = frozenset(map(os.path.basename, links))
        try:
            queue = Inotify()
        except OSError:
            return None
        try:
            for directory in directories:
                queue.add(directory, _DIRECTORY | ONLY_DIRECTORY)
            for path in self._paths:
                with suppress(FileNotFoundError):
                    queue.add(path, _FILE)
        except OSError:
            queue.close()
            return None
        return queue

    def _take(self, queue: Inotify | None) -> None:
        with self._lock:
            self._spent += filter(None, (self._queue, queue if self._closed else None))
            self._queue = None if self._closed else queue

    def _drop_spent(self) -> None:
        """Close what is used no more; in the thread of the loop, which may wait for it until then."""
        with self._lock:
            spent, self._spent = self._spent, []
        for queue in spent:
            queue.close()

    async def wait(self, timeout_s: float) -> bool:
        """Whether something happened within this time; not to be called before `arm` gave True."""
        self._drop_spent()
        if (queue := self._queue) is None:
            return False
        loop = asyncio.get_running_loop()
        waiter = self._waiter = loop.create_future()

        def ready() -> None:
            if self._matters(queue) and not waiter.done():
                waiter.set_result(None)

        loop.add_reader(queue.fileno(), ready)
        try:
            async with asyncio.timeout(timeout_s):
                await waiter
        except TimeoutError:
            return False
        except asyncio.CancelledError:
            self._take(None)  # who was waiting may never come back, and a user may have but so many queues
            raise
        finally:
            if queue.fileno() >= 0:
                loop.remove_reader(queue.fileno())
            self._drop_spent()
        return True

    def _matters(self, queue: Inotify) -> bool:
        try:
            events = queue.read()
        except OSError:
            events = []
            self._armed = None
        if any(not event.what & _SAME_FILE for event in events if self._is_ours(event)):
            self._armed = None
        return self._armed is None or any(map(self._is_ours, events))

    def _is_ours(self, event: Event) -> bool:
        return not event.name or event.name in self._names

    def close(self) -> None:
        self._closed = True
        if (waiter := self._waiter) is not None and not waiter.done():
            if self._queue is not None:
                waiter.get_loop().remove_reader(self._queue.fileno())
            waiter.set_result(None)
        self._take(None)
        self._drop_spent()


class _Seen(Enum):
    """What a look at the files gave."""

    CHANGED = auto()
    QUIET = auto()
    """Nothing changed, and the kernel will tell when something does."""
    SILENT = auto()
    """Nothing changed, and the kernel will not tell."""


class Watch:
    """Waits for `is_changed` to be true of these files. One wait at a time.

    It is asked in the thread of `worker`, and may block.
    """

    def __init__(self, worker: Worker, paths: Sequence[Path], is_changed: Callable[[], bool]) -> None:
        self._worker = worker
        self._is_changed = is_changed
        self._news = FileNews(paths)
        self._told_at = -GAP_S
        self._closed = False

    async def changed(self, timeout_s: float) -> None:
        until = time.monotonic() + timeout_s
        await asyncio.sleep(min(timeout_s, max(0.0, self._told_at + GAP_S - time.monotonic())))
        while not self._closed and (left := until - time.monotonic()) > 0:
            seen = await self._worker.run(self._look)
            if seen is _Seen.CHANGED:
                break
            if seen is _Seen.SILENT:
                await asyncio.sleep(min(left, LOOK_S))
            elif not await self._news.wait(left):
                break
        self._told_at = time.monotonic()

    def _look(self) -> _Seen:
        tells = self._news.arm()  # first, so that nothing happens between the look and the watch
        if self._is_changed():
            return _Seen.CHANGED
        return _Seen.QUIET if tells else _Seen.SILENT

    def close(self) -> None:
        self._closed = True
        self._news.close()


def _identity(path: str) -> FileId:
    """Which file is behind a name; none is a file, too."""
    try:
        status = os.stat(path)
    except OSError:
        return FileId(0, 0)
    return FileId(status.st_dev, status.st_ino)


STEP_MS = 50
"""How long changes are gathered before more are told of."""
JOIN_S = 1.0
REMOVED = "the directory was removed"
"""The failure after which another watch can be had as soon as there is a directory again."""
OVERFLOWN = "changes came faster than they were told of"
"""Another such failure: then anything may have changed."""
PASSING = frozenset({REMOVED, OVERFLOWN})
"""Failures after which another watch can be had at once."""
_WATCHED = MODIFY | ATTRIB | CREATE | DELETE | MOVED_FROM | MOVED_TO | DELETE_SELF | MOVE_SELF
_GONE = DELETE_SELF | MOVE_SELF | UNMOUNT | IGNORED


class DirectoryWatch:
    """Watches the files of one directory, not those below, from a thread that sleeps until there is news.

    `wanted` says which names matter; others are not kept, so that no flood of names grows anything. `wake` is
    called from that thread after news, and when the watch fails: then `failure` says why. Raises OSError when
    it cannot watch, as where there is no inotify.
    """

    def __init__(self, path: str, wanted: Callable[[str], bool], wake: Callable[[], None]) -> None:
        self._wanted = wanted
        self._wake = wake
        self._lock = threading.Lock()
        self._names: set[str] = set()
        self.failure: str | None = None
        status = os.stat(path)
        self.directory = FileId(status.st_dev, status.st_ino)
        self._queue = Inotify()
        try:
            self._queue.add(path, _WATCHED | ONLY_DIRECTORY)
        except OSError as error:
            self._queue.close()
            raise OSError(error.errno, error.strerror, path) from error
        self._stopped, self._stop = os.pipe()
        self._thread = threading.Thread(target=self._follow, name=f"watch {path}", daemon=True)
        try:
            start(self._thread)
        except SourceError as error:
            self._queue.close()
            os.close(self._stopped)
            os.close(self._stop)
            raise OSError(errno.EAGAIN, str(error), path) from error

    def close(self) -> None:
        """Stop, and wait for the thread, at most a second. May be called twice."""
        with self._lock:
            stop, self._stop = self._stop, -1
        if stop >= 0:
            os.close(stop)
            self._thread.join(JOIN_S)

    def _follow(self) -> None:
        poll = select.poll()
        poll.register(self._queue, select.POLLIN)
        poll.register(self._stopped, select.POLLIN)  # which is closed at the other end
        try:
            while not self._is_stopped(poll.poll()):
                # Changes come in swarms, and one look at many files is cheaper than many at one
                if self._is_stopped(poll.poll(0)) or not self._read():
                    return
                time.sleep(STEP_MS / 1_000)
        finally:
            os.close(self._stopped)
            self._queue.close()

    def _is_stopped(self, ready: list[tuple[int, int]]) -> bool:
        return any(descriptor == self._stopped for descriptor, _ in ready)

    def _read(self) -> bool:
        try:
            events = self._queue.read()
        except OSError as error:
            self._fail(error.strerror or str(error))
            return False
        self._add(event.name for event in events if event.name)
        if any(event.what & OVERFLOW for event in events):
            self._fail(OVERFLOWN)
        elif any(event.what & _GONE for event in events if not event.name):
            self._fail(REMOVED)
        return self.failure is None

    def take(self) -> set[str]:
        with self._lock:
            names, self._names = self._names, set()
        return names

    def _add(self, names: Iterable[str]) -> None:
        if wanted := set(filter(self._wanted, names)):
            with self._lock:
                self._names |= wanted
            self._wake()

    def _fail(self, why: str) -> None:
        self.failure = why
        self._wake()


WatchMaker = Callable[[str, Callable[[str], bool], Callable[[], None]], DirectoryWatch]
