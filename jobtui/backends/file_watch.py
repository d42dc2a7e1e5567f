"""Notification of changed files in one directory. Tells which names, not what happened to them.

The watcher does not report that it lost events (an overflown queue of the kernel): who uses it looks at
everything now and then, and at once when it reports very many names.
"""

import os
import threading
from collections.abc import Callable
from typing import NamedTuple, Protocol

STEP_MS = 50
"""How long the directory must be quiet before changes are told of; so often the watcher wakes up, too."""
DEBOUNCE_MS = 150
"""How long changes are held back at most while more come."""
JOIN_S = 1.0
REMOVED = "the directory was removed"
"""The failure of a Watch after which another one can be had as soon as there is a directory again."""
_DELETED = 3


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


class DirectoryWatch:
    """Watches the files of one directory, not those below, from a thread of its own.

    `wanted` says which names matter; others are not kept, so that no flood of names grows anything. `wake` is
    called from that thread after news, and when the watch fails. Raises OSError when it cannot watch.
    """

    def __init__(self, path: str, wanted: Callable[[str], bool], wake: Callable[[], None]) -> None:
        # Imported where it is needed: it takes as long as a whole one-shot command, which never watches.
        from watchfiles._rust_notify import RustNotify, WatchfilesRustInternalError

        self._path = path
        self._wanted = wanted
        self._wake = wake
        self._lock = threading.Lock()
        self._names: set[str] = set()
        self._stop = threading.Event()
        self._failure: str | None = None
        self._broken = WatchfilesRustInternalError
        status = os.stat(path)
        self.directory = DirectoryId(status.st_dev, status.st_ino)
        try:
            self._notify = RustNotify([path], False, False, 0, False, False)
        except WatchfilesRustInternalError as error:
            raise OSError(str(error)) from error
        self._thread = threading.Thread(target=self._follow, name=f"watch {path}", daemon=True)
        self._thread.start()

    @property
    def failure(self) -> str | None:
        """Why it does not watch any more, None while it does."""
        return self._failure

    def take(self) -> set[str]:
        """The names that were told of since the last call."""
        with self._lock:
            names, self._names = self._names, set()
        return names

    def close(self) -> None:
        """Stop, and wait for the thread, at most a second. May be called twice."""
        self._stop.set()
        self._thread.join(JOIN_S)

    def _follow(self) -> None:
        try:
            with self._notify as notify:
                while isinstance(changes := notify.watch(DEBOUNCE_MS, STEP_MS, 0, self._stop), set):
                    self._add(changes)
        except self._broken as error:
            self._failure = str(error)
        if not self._stop.is_set():
            self._failure = self._failure or "the watcher ended"
            self._wake()

    def _add(self, changes: set[tuple[int, str]]) -> None:
        if any(change == _DELETED and path == self._path for change, path in changes):
            # Another directory in its place can even have its inode, so only this event tells.
            self._failure = REMOVED
            self._stop.set()
            self._wake()
        names = {name for _, path in changes if self._wanted(name := os.path.basename(path))}
        if names:
            with self._lock:
                self._names |= names
            self._wake()
