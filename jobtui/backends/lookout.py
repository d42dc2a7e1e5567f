"""When to look at which record files: at those the kernel told of, or at all. Decides, and reads none.

The kernel is asked for notification only once somebody waits for changes, which a one-shot command never
does. Every file is looked at beside that, in a period that grows with what it costs: notifications get lost
when a queue overflows, and there are none for a file written on another machine.
"""

import asyncio
import os
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Protocol

from jobtui.backends.file_watch import PASSING, REMOVED, DirectoryId, Watch, WatchMaker
from jobtui.backends.sirepo_files import SUFFIX, is_record_name
from jobtui.model.ids import JobId

SWEEP_S = 30.0
"""How often every file is looked at although the kernel tells of changes."""
WATCHED_SHARE, UNWATCHED_SHARE = 1 / 300, 1 / 10
"""The share of the time that looking at every file may take, with and without notification."""
MANY_NAMES = 2_000
"""From so many names on every file is looked at: that is cheaper, and some names may have been lost."""


class Files(Protocol):
    """What can be looked at. Both raise OSError when the open directory as a whole cannot be read."""

    def sweep(self, directory: int) -> None:
        """Look at every file."""
        ...

    def check(self, directory: int, jids: Iterable[JobId]) -> None:
        """Look at the files of these jobs."""
        ...


class Lookout:
    """Keeps the watch over one directory. `begin` and `look` are for the worker thread, `wait` for the loop.

    `note` says in words when there is no notification and why; empty when there is again, None when there
    was never another state.
    """

    def __init__(
        self,
        path: str,
        files: Files,
        make_watch: WatchMaker,
        silent: Callable[[str], str | None],
        timer: Callable[[], float],
        sweep_s: float,
    ) -> None:
        self._path = path
        self._files = files
        self._make_watch = make_watch
        self._silent = silent
        self._timer = timer
        self._sweep_s = sweep_s
        self._watch: Watch | None = None
        self._begin_at = timer()
        self._sweep_at = timer()
        self._cost_s = 0.0
        self._closed = False
        self._lock = threading.Lock()
        self.news = asyncio.Event()
        self.note: str | None = None

    @property
    def is_due(self) -> bool:
        """Whether notification should be set up now."""
        return self._watch is None and self._timer() >= self._begin_at

    def begin(self, wake: Callable[[], None]) -> bool:
        """Set up notification, if there can be one. `wake` is called from another thread after news."""
        try:
            if kind := self._silent(self._path):
                self._do_without(f"{kind} does not tell of changes")
                return False
            watch = self._make_watch(self._path, is_record_name, wake)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            self._do_without(f"no notification of changes: {reason}")
            return False
        with self._lock:
            self._watch = None if self._closed else watch
        if self._watch is None:
            watch.close()
        self.note = None if self.note is None else ""
        self.sweep_now()  # for what changed before the watch began
        return True

    def _do_without(self, why: str) -> None:
        self.note = f"{why}; every file is looked at with each poll"
        self._begin_at = self._timer() + self._sweep_s

    def sweep_now(self) -> None:
        """Let the next look be one at every file."""
        self._sweep_at = self._timer()

    def look(self, directory: int) -> None:
        """Look at what may have changed in the open directory. Raises OSError."""
        self._drop_stale(directory)
        names = self._watch.take() if self._watch else set()
        if self._watch is None or self._timer() >= self._sweep_at or len(names) >= MANY_NAMES:
            self._sweep(directory)
        elif names:
            sweep_at = self._sweep_at
            self.sweep_now()
            self._files.check(directory, [JobId(name.removesuffix(SUFFIX)) for name in names])
            self._sweep_at = sweep_at

    def _sweep(self, directory: int) -> None:
        self.sweep_now()  # it stays due when it fails
        begun = self._timer()
        self._files.sweep(directory)
        self._cost_s = self._timer() - begun
        self._sweep_at = self._timer() + max(self._sweep_s, self._cost_s / WATCHED_SHARE)

    def _drop_stale(self, directory: int) -> None:
        """Let go a watch that failed, or watches a directory that is not in this place any more."""
        if (watch := self._watch) is None:
            return
        status = os.fstat(directory)
        replaced = watch.directory != DirectoryId(status.st_dev, status.st_ino)
        failure = REMOVED if replaced else watch.failure
        if failure is None:
            return
        self._watch = None
        watch.close()
        if failure in PASSING:
            self._begin_at = self._timer()
        else:
            self._do_without(f"notification of changes failed: {failure}")

    async def wait(self, timeout_s: float) -> None:
        """Return after news, or after `timeout_s`; later when nothing tells and looking takes long."""
        if self._watch is None:
            await asyncio.sleep(max(timeout_s, self._cost_s / UNWATCHED_SHARE))
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self.news.wait()

    def close(self) -> None:
        """Stop watching. May be called twice."""
        with self._lock:
            self._closed = True
            watch, self._watch = self._watch, None
        if watch is not None:
            watch.close()
