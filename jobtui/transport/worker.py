"""One thread that does the blocking work of one source, call after call.

A daemon thread and not an executor: a call that hangs on a dead mount must not keep the program from ending.
"""

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar

from jobtui.model.health import SourceError

T = TypeVar("T")

FINISH_S = 1.0
"""How long to wait for the last call of a thread."""
NO_THREAD = (
    "no more threads can be started for this user: end other programs, or raise the limit (`ulimit -u`)"
)

_Item = tuple[Callable[[], Any], Future[Any]] | None


class Worker:
    """Runs calls in one thread, in the order they were asked for. The thread starts with the first."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._items: queue.SimpleQueue[_Item] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    async def run(self, call: Callable[[], T]) -> T:
        """What `call` returns or raises. A call that has begun continues when its caller is cancelled.

        Raises SourceError when no thread can be started.
        """
        if self._thread is None:
            thread = threading.Thread(target=_serve, args=(self._items,), name=self._name, daemon=True)
            start(thread)
            self._thread = thread
        future: Future[T] = Future()
        self._items.put((call, future))
        return await asyncio.wrap_future(future)

    def soon(self, call: Callable[[], object]) -> None:
        """Run a call after those asked for before, at once if nothing ever ran. Does not wait."""
        if self._thread is None:
            call()
        else:
            self._items.put((call, Future()))

    async def finish(self, call: Callable[[], object]) -> None:
        """Run a last call after those asked for before. Waits for it, but not long for one that hangs."""
        loop, done = asyncio.get_running_loop(), asyncio.Event()

        def last() -> None:
            try:
                call()
            finally:
                with suppress(RuntimeError):  # the loop was closed, nobody waits any more
                    loop.call_soon_threadsafe(done.set)

        self.soon(last)
        self.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(FINISH_S):
                await done.wait()

    def close(self) -> None:
        """Let the thread end after the calls asked for. Does not wait; may be called twice."""
        if self._thread is not None:
            self._items.put(None)
            self._thread = None

    async def aclose(self) -> None:
        self.close()


def start(thread: threading.Thread) -> None:
    """Start a thread. Raises SourceError where the system allows no more, which is no fault of jobtui."""
    try:
        thread.start()
    except RuntimeError as error:
        raise SourceError(NO_THREAD) from error


def _serve(items: "queue.SimpleQueue[_Item]") -> None:
    while (item := items.get()) is not None:
        call, future = item
        if not future.set_running_or_notify_cancel():
            continue
        try:
            future.set_result(call())
        except BaseException as error:  # noqa: BLE001 - whatever it is, it belongs to who awaits the call
            future.set_exception(error)
        del item, call, future
