"""An archive that SArchive keeps in a directory, or Slurm's own spool. Reads only, in a thread of its own."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path

from jobtui.backends.archive.kept_files import opened_root
from jobtui.backends.archive.lookup import search
from jobtui.backends.archive.walking import walk
from jobtui.backends.base import Batch, SourceError
from jobtui.backends.worker import Worker
from jobtui.model.clock import Clock, SystemClock
from jobtui.model.scripts import Answer, Span, Walked, Wanted

PERIOD_S = 10.0
"""How often it is looked whether the directory is still there."""
AT_ONCE = 32
"""Scripts that are read before the others have their turn."""


class ArchiveDirectory:
    """One directory with the label of its cluster, as both a source and a place of scripts."""

    def __init__(self, path: str, cluster: str = "", clock: Clock | None = None) -> None:
        self._path = str(Path(path))
        self._cluster = cluster
        self._clock = clock or SystemClock()
        self._worker = Worker(f"archive {path}")
        self._closing = asyncio.Event()

    @property
    def name(self) -> str:
        """Its path."""
        return self._path

    @property
    def kind(self) -> str:
        """`archive`."""
        return "archive"

    @property
    def cluster(self) -> str:
        """The label of its cluster."""
        return self._cluster

    async def poll(self, cursor: str | None) -> Batch:
        """Nothing: scripts are read one by one when they are asked for. Raises SourceError."""
        if self._closing.is_set():
            raise SourceError(f"{self.name}: is closed")
        await self._worker.run(self._look)
        return Batch(cursor="there")

    def _look(self) -> None:
        with opened_root(self._path):
            pass

    async def changed(self, timeout_s: float) -> None:
        """Return when it may be looked again, or it is closed."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(timeout_s, PERIOD_S)):
                await self._closing.wait()

    async def find(self, wanted: Wanted) -> Answer:
        """The script of a job. Raises SourceError."""
        return await self._worker.run(partial(search, self._path, self._cluster, wanted, self._clock.now()))

    async def walk(self, span: Span, told: Callable[[str], None]) -> AsyncIterator[Walked]:
        """Every script in reach. Raises SourceError."""
        walking = walk(self._path, self._cluster, span, told)
        try:
            while some := await self._worker.run(partial(_some, walking)):
                for walked in some:
                    yield walked
        finally:
            self._worker.soon(walking.close)

    async def aclose(self) -> None:
        """Let the thread go. May be called twice."""
        self._closing.set()
        self._worker.close()


def _some(walking: Iterator[Walked]) -> list[Walked]:
    return list(islice(walking, AT_ONCE))
