"""Requests that go on to their end when who asked is gone, so many at once.

A request that is cut short while others wait may cost the pool of httpcore a connection for good; when all
are lost nothing is answered any more (https://github.com/encode/httpcore/issues/1093). Waiting for a turn can
be cut short.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Finishing:
    """Lets `most` requests run at once, each to its end."""

    def __init__(self, most: int) -> None:
        self._turns = asyncio.Semaphore(most)
        self._running: set[asyncio.Task[Any]] = set()

    async def run(self, ask: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What comes of a request. Raises what it raises."""
        await self._turns.acquire()
        task = asyncio.get_running_loop().create_task(ask())
        self._running.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    async def aclose(self) -> None:
        """End all that run. May be called twice."""
        running = tuple(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._running.discard(task)
        self._turns.release()
        if not task.cancelled():
            task.exception()  # who asked has it, or wants to hear nothing of it
