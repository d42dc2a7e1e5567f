"""Waits until files change: by inotify(7) where it works, else by looking at them.

While nothing happens no processor time is used. Everything that may block is done in a thread.
"""

import asyncio
import errno
import os
import re
import struct
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from jobtui.model.numbers import of_base
from jobtui.transport.files import FileId, read_small
from jobtui.transport.worker import Worker

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
    """The kind of a file system that may change unnoticed by this kernel; None if it reports changes."""
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
ONLY_DIRECTORY, IS_DIRECTORY = 0x1000000, 0x40000000

_EVENT = struct.Struct("iIII")
_READ_BYTES = 1 << 16


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
        self._fd = _raise_if_failed(_kernel().inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))
        self._waiter: asyncio.Future[None] | None = None

    def add(self, path: str, what: int) -> None:
        """Watch a file or directory. May block. Raises OSError."""
        _raise_if_failed(_kernel().inotify_add_watch(self._fd, os.fsencode(path), what))

    def read(self) -> dict[str, int]:
        """All that happened to each name in what is watched, "" for that itself, since the last call.

        Nothing when it is closed; never blocks. Raises OSError.
        """
        if self._fd < 0:
            return {}
        try:
            data = os.read(self._fd, _READ_BYTES)
        except BlockingIOError:
            return {}
        happened: dict[bytes, int] = {}
        at = 0
        while at < len(data):
            _, what, _, length = _EVENT.unpack_from(data, at)
            at += _EVENT.size + length
            name = data[at - length : at]
            happened[name] = happened.get(name, 0) | what
        return {os.fsdecode(name.rstrip(b"\0")): what for name, what in happened.items()}

    async def wait(self, timeout_s: float, is_news: Callable[[], bool]) -> bool:
        """Whether there was news within this time; `is_news` is asked, and reads, when something happened.

        Closing ends it.
        """
        if self._fd < 0:
            return False
        loop = asyncio.get_running_loop()
        waiter = self._waiter = loop.create_future()

        def ready() -> None:
            if not waiter.done() and is_news():
                waiter.set_result(None)

        loop.add_reader(self._fd, ready)
        try:
            async with asyncio.timeout(timeout_s):
                await waiter
        except TimeoutError:
            return False
        finally:
            self._waiter = None
            if self._fd >= 0:
                loop.remove_reader(self._fd)
        return True

    def close(self) -> None:
        """May be called twice; in the thread of who waits, if somebody does."""
        if self._fd < 0:
            return
        if (waiter := self._waiter) is not None:
            waiter.get_loop().remove_reader(self._fd)  # else a later file with this number is never reported
            if not waiter.done():
                waiter.set_result(None)
        os.close(self._fd)
        self._fd = -1


def _raise_if_failed(result: int) -> int:
    if result < 0:
        import ctypes

        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


GAP_S = 0.1
"""The shortest time from one report of changes to the next."""
LOOK_S = 0.25
"""How often files are looked at if the kernel reports no changes."""
RETRY_S = 5.0
"""How long after it could not be asked it is asked again."""

_FILE = MODIFY | ATTRIB | MOVE_SELF | DELETE_SELF
_DIRECTORY = CREATE | MOVED_TO | MOVE_SELF | DELETE_SELF
_SAME_FILE = MODIFY | ATTRIB | IS_DIRECTORY


class Watch:
    """Waits for `is_changed` to be true of these files. One wait at a time.

    It is asked in the thread of `worker`, and may block.
    """

    def __init__(self, worker: Worker, paths: Sequence[Path], is_changed: Callable[[], bool]) -> None:
        self._worker = worker
        self._is_changed = is_changed
        self._paths = [str(path) for path in paths]
        self._names: frozenset[str] = frozenset()
        self._queue: Inotify | None = None
        self._armed: list[FileId] | None = None
        """The files that are watched; None when others may be in their places by now."""
        self._retry_at = 0.0
        self._noticed_at = -GAP_S
        self._lock = threading.Lock()
        self._closed = False

    async def changed(self, timeout_s: float) -> None:
        until = time.monotonic() + timeout_s
        await asyncio.sleep(min(timeout_s, max(0.0, self._noticed_at + GAP_S - time.monotonic())))
        while not self._closed and (left := until - time.monotonic()) > 0:
            if await self._worker.run(self._look):
                break
            if (queue := self._queue) is None:
                await asyncio.sleep(min(left, LOOK_S))
                continue
            try:
                if not await queue.wait(left, partial(self._matters, queue)):
                    break
            except asyncio.CancelledError:
                self._take(None)  # a waiter may never come back, and the queues of a user are limited
                raise
        self._noticed_at = time.monotonic()

    def close(self) -> None:
        self._closed = True
        self._take(None)

    def _look(self) -> bool:
        """Watch the files that the names lead to now, if the kernel reports all changes, and look."""
        found = [_identity(path) for path in self._paths]
        if self._queue is None or found != self._armed:
            self._take(None)
            if time.monotonic() >= self._retry_at:
                queue = self._queue_for_paths()
                self._armed, self._retry_at = found, 0.0 if queue else time.monotonic() + RETRY_S
                self._take(queue)
        return self._is_changed()

    def _queue_for_paths(self) -> Inotify | None:
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
        """Use a queue in place of the one before. Only while nobody waits, or in the thread of who does."""
        with self._lock:
            spent = [self._queue, queue if self._closed else None]
            self._queue = None if self._closed else queue
        for one in filter(None, spent):
            one.close()

    def _matters(self, queue: Inotify) -> bool:
        try:
            ours = [what for name, what in queue.read().items() if not name or name in self._names]
        except OSError:
            ours = []
            self._armed = None
        if any(what & ~_SAME_FILE for what in ours):
            self._armed = None
        return self._armed is None or bool(ours)


def _identity(path: str) -> FileId:
    """Which file a name leads to; none is a file, too."""
    try:
        status = os.stat(path)
    except OSError:
        return FileId(0, 0)
    return FileId(status.st_dev, status.st_ino)


STEP_S = 0.25
"""How long changes are collected before they are reported: a screen shows no more in between."""
REMOVED = "the directory was removed"
"""The failure after which another watch is possible once the directory exists again."""
OVERFLOWN = "changes came faster than they were reported"
"""Another such failure: then anything may have changed."""
PASSING = frozenset({REMOVED, OVERFLOWN})
"""Failures after which another watch is possible at once."""
_WATCHED = MODIFY | ATTRIB | CREATE | DELETE | MOVED_FROM | MOVED_TO | DELETE_SELF | MOVE_SELF
_GONE = DELETE_SELF | MOVE_SELF | UNMOUNT | IGNORED


class DirectoryWatch:
    """Watches the files of one directory, not those below.

    `wanted` says which names matter; others are not kept, so that no flood of names grows anything. When the
    watch fails, `failure` says why. Raises OSError when it cannot watch, as where there is no inotify.
    """

    def __init__(self, path: str, wanted: Callable[[str], bool]) -> None:
        self._wanted = wanted
        self._lock = threading.Lock()
        self._names: set[str] = set()
        self._noticed_at = -STEP_S
        self.failure: str | None = None
        status = os.stat(path)
        self.directory = FileId(status.st_dev, status.st_ino)
        self._queue = Inotify()
        try:
            self._queue.add(path, _WATCHED | ONLY_DIRECTORY)
        except OSError as error:
            self._queue.close()
            raise OSError(error.errno, error.strerror, path) from error

    async def wait(self, timeout_s: float) -> None:
        """Return after news, or when it failed, at the latest after `timeout_s`."""
        until = time.monotonic() + timeout_s
        # Changes come in bursts, and one look at many files is cheaper than many at one
        await asyncio.sleep(min(timeout_s, max(0.0, self._noticed_at + STEP_S - time.monotonic())))
        if not self._hear():
            await self._queue.wait(until - time.monotonic(), self._hear)
        self._noticed_at = time.monotonic()

    def take(self) -> set[str]:
        """The names with a reported change since the last call. From any thread."""
        self._hear()
        with self._lock:
            names, self._names = self._names, set()
        return names

    def close(self) -> None:
        """May be called twice; in the thread of who waits, if somebody does."""
        with self._lock:
            self._queue.close()

    def _hear(self) -> bool:
        """Take in what the kernel reports. True if there is something to report."""
        with self._lock:
            try:
                while self.failure is None and (happened := self._queue.read()):
                    self._names.update(filter(self._wanted, happened))
                    if what := happened.get("", 0) & (OVERFLOW | _GONE):
                        self.failure = OVERFLOWN if what & OVERFLOW else REMOVED
            except OSError as error:
                self.failure = error.strerror or str(error)
            return bool(self._names) or self.failure is not None
