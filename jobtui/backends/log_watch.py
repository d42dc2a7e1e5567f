"""Waiting until log files change: told by the kernel where it tells, by looking at them where it does not.

Waiting for the kernel wakes nobody while nothing happens. Everything that may block is done in a thread.
"""

import asyncio
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum, auto
from pathlib import Path

from jobtui.backends import inotify
from jobtui.backends.mounts import silent_file_system
from jobtui.backends.worker import Worker

GAP_S = 0.1
"""The shortest time from one change that is told of to the next."""
LOOK_S = 0.25
"""How often the files are looked at where the kernel does not tell."""
RETRY_S = 5.0
"""How long after it could not be asked it is asked again."""

_FILE = inotify.MODIFY | inotify.ATTRIB | inotify.MOVE_SELF | inotify.DELETE_SELF
_DIRECTORY = inotify.CREATE | inotify.MOVED_TO | inotify.MOVE_SELF | inotify.DELETE_SELF
_SAME_FILE = inotify.MODIFY | inotify.ATTRIB


class FileNews:
    """Tells that files of these names may have changed. `arm` is for a thread, the rest for the loop."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self._paths = [str(path) for path in paths]
        self._names: frozenset[str] = frozenset()
        self._queue: inotify.Inotify | None = None
        self._armed: list[tuple[int, int]] | None = None
        self._spent: list[inotify.Inotify] = []
        self._retry_at = 0.0
        self._lock = threading.Lock()
        self._closed = False
        self._waiter: asyncio.Future[None] | None = None

    def arm(self) -> bool:
        """Watch what is behind the names now; False where that tells nothing, or not all."""
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

    def _watched(self) -> inotify.Inotify | None:
        """A queue for the files there are and the directories where they are or will be; None without."""
        links = {*self._paths, *map(os.path.realpath, self._paths)}
        directories = {os.path.dirname(os.path.abspath(path)) for path in links}
        if any(silent_file_system(directory) for directory in directories):
            return None
        self._names = frozenset(map(os.path.basename, links))
        try:
            queue = inotify.Inotify()
        except OSError:
            return None
        try:
            for directory in directories:
                queue.add(directory, _DIRECTORY | inotify.ONLY_DIRECTORY)
            for path in self._paths:
                with suppress(FileNotFoundError):
                    queue.add(path, _FILE)
        except OSError:
            queue.close()
            return None
        return queue

    def _take(self, queue: inotify.Inotify | None) -> None:
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

    def _matters(self, queue: inotify.Inotify) -> bool:
        try:
            events = queue.read()
        except OSError:
            events = []
            self._armed = None
        if any(not event.what & _SAME_FILE for event in events if self._is_ours(event)):
            self._armed = None
        return self._armed is None or any(map(self._is_ours, events))

    def _is_ours(self, event: inotify.Event) -> bool:
        return not event.name or event.name in self._names

    def close(self) -> None:
        """Let go, and end a wait. May be called twice."""
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


FileState = tuple[int, int, int] | None


def state_of(path: Path) -> FileState:
    """What tells that a file has changed: which it is, its size, its time; None where there is none."""
    try:
        status = path.stat()
    except (OSError, ValueError):
        return None
    return (status.st_ino, status.st_size, status.st_mtime_ns)


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
        """Return when it changed, at the latest after `timeout_s`, and not again at once."""
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
        """End a wait. May be called twice."""
        self._closed = True
        self._news.close()


def _identity(path: str) -> tuple[int, int]:
    """Which file is behind a name; none is a file, too."""
    try:
        status = os.stat(path)
    except OSError:
        return (0, 0)
    return (status.st_dev, status.st_ino)
