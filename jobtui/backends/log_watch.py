"""Waiting in a thread until a log changes: the event loop is not woken in vain."""

import time
from collections.abc import Callable

from jobtui.backends.worker import Worker

WATCH_S = 0.2
"""How often the file is looked at."""


class Watch:
    """Waits for `is_changed` to be true, which is asked in a thread and may block. One wait at a time."""

    def __init__(self, name: str, is_changed: Callable[[], bool]) -> None:
        self._is_changed = is_changed
        self._worker = Worker(f"watch on {name}")
        self._closed = False
        self._waits = 0

    async def changed(self, timeout_s: float) -> None:
        """Return when it changed, at the latest after `timeout_s`, and not at once either."""
        self._waits += 1
        number = self._waits
        await self._worker.run(lambda: self._wait(timeout_s, number))

    def close(self) -> None:
        """End the thread. May be called twice."""
        self._closed = True
        self._worker.close()

    def _wait(self, timeout_s: float, number: int) -> None:
        until = time.monotonic() + timeout_s
        # A later wait ends this one, whose caller is gone
        while not self._closed and number == self._waits and time.monotonic() < until:
            time.sleep(WATCH_S)
            if self._is_changed():
                return
