"""Notification of changed files in one directory. Tells which names, not what happened to them.

Not every watcher reports that it lost events (an overflown queue of the kernel): who uses it looks at
everything now and then, and at once when it reports very many names.
"""

import errno
import os
import select
import threading
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from jobtui.backends.inotify import (
    ATTRIB,
    CREATE,
    DELETE,
    DELETE_SELF,
    IGNORED,
    MODIFY,
    MOVE_SELF,
    MOVED_FROM,
    MOVED_TO,
    ONLY_DIRECTORY,
    OVERFLOW,
    UNMOUNT,
    Inotify,
)

STEP_MS = 50
"""How long changes are gathered before more are told of."""
DEBOUNCE_MS = 150
"""How long changes are held back at most while more come, by the library."""
JOIN_S = 1.0
REMOVED = "the directory was removed"
"""The failure of a Watch after which another one can be had as soon as there is a directory again."""
OVERFLOWN = "changes came faster than they were told of"
"""Another such failure: then anything may have changed."""
PASSING = frozenset({REMOVED, OVERFLOWN})
"""Failures after which another watch can be had at once."""
_DELETED = 3
_WATCHED = MODIFY | ATTRIB | CREATE | DELETE | MOVED_FROM | MOVED_TO | DELETE_SELF | MOVE_SELF
_GONE = DELETE_SELF | MOVE_SELF | UNMOUNT | IGNORED


class DirectoryId(NamedTuple):
    """Which directory it is, under whatever name."""

    device: int
    inode: int


class Watch(Protocol):
    """A directory being watched."""

    directory: DirectoryId

    @property
    def failure(self) -> str | None:
        """Why it does not watch any more, None while it does."""
        ...

    def take(self) -> set[str]:
        """The names that were told of since the last call."""
        ...

    def close(self) -> None:
        """Stop. May be called twice."""
        ...


WatchMaker = Callable[[str, Callable[[str], bool], Callable[[], None]], Watch]
"""Makes a Watch of a path, from which names are wanted, and what to call after news. Raises OSError."""


class _Kept:
    """What all watches keep: names that were told of, and why there are no more."""

    def __init__(self, path: str, wanted: Callable[[str], bool], wake: Callable[[], None]) -> None:
        self._path = path
        self._wanted = wanted
        self._wake = wake
        self._lock = threading.Lock()
        self._names: set[str] = set()
        self._failure: str | None = None
        status = os.stat(path)
        self.directory = DirectoryId(status.st_dev, status.st_ino)

    @property
    def failure(self) -> str | None:
        """Why it does not watch any more, None while it does."""
        return self._failure

    def take(self) -> set[str]:
        """The names that were told of since the last call."""
        with self._lock:
            names, self._names = self._names, set()
        return names

    def _add(self, names: Iterable[str]) -> None:
        if wanted := set(filter(self._wanted, names)):
            with self._lock:
                self._names |= wanted
            self._wake()

    def _fail(self, why: str) -> None:
        self._failure = self._failure or why
        self._wake()


class KernelWatch(_Kept):
    """Watches the files of one directory, not those below, from a thread that sleeps until there is news.

    `wanted` says which names matter; others are not kept, so that no flood of names grows anything. `wake` is
    called from that thread after news, and when the watch fails. Raises OSError when it cannot watch.
    """

    def __init__(self, path: str, wanted: Callable[[str], bool], wake: Callable[[], None]) -> None:
        super().__init__(path, wanted, wake)
        self._queue = Inotify()
        try:
            self._queue.add(path, _WATCHED | ONLY_DIRECTORY)
        except OSError as error:
            self._queue.close()
            raise OSError(error.errno, error.strerror, path) from error
        self._stopped, self._stop = os.pipe()
        self._thread = threading.Thread(target=self._follow, name=f"watch {path}", daemon=True)
        self._thread.start()

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
        """Take what the kernel tells; whether there can be more."""
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
        return self._failure is None


class LibraryWatch(_Kept):
    """The same by the library `watchfiles`, on systems that tell of changes in another way."""

    def __init__(self, path: str, wanted: Callable[[str], bool], wake: Callable[[], None]) -> None:
        # Imported where it is needed: it takes as long as a whole one-shot command, which never watches.
        from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError

        super().__init__(path, wanted, wake)
        self._stop = threading.Event()
        self._broken = WatchfilesRustInternalError
        try:
            self._notify = RustNotify([path], False, False, 0, False, False)
        except WatchfilesRustInternalError as error:
            raise OSError(str(error)) from error
        self._thread = threading.Thread(target=self._follow, name=f"watch {path}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop, and wait for the thread, at most a second. May be called twice."""
        self._stop.set()
        self._thread.join(JOIN_S)

    def _follow(self) -> None:
        why = "the watcher ended"
        try:
            with self._notify as notify:
                while isinstance(changes := notify.watch(DEBOUNCE_MS, STEP_MS, 0, self._stop), set):
                    if any(change == _DELETED and path == self._path for change, path in changes):
                        # Another directory in its place can even have its inode, so only this event tells.
                        self._fail(REMOVED)
                        self._stop.set()
                    self._add(os.path.basename(path) for _, path in changes)
        except self._broken as error:
            why = str(error)
        if not self._stop.is_set():
            self._fail(why)


def watch_directory(path: str, wanted: Callable[[str], bool], wake: Callable[[], None]) -> Watch:
    """A watch of the kind that costs least here. Raises OSError when there is none to be had."""
    try:
        return KernelWatch(path, wanted, wake)
    except OSError as error:
        if error.errno != errno.ENOSYS:
            raise
        return LibraryWatch(path, wanted, wake)
