"""An archive that SArchive keeps in a directory, or Slurm's own spool. Reads only, in a thread of its own."""

from collections.abc import AsyncIterator, Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path

from jobtui.backends.archive.keeper import Keeper
from jobtui.backends.archive.kept_files import opened_root
from jobtui.backends.archive.lookup import search
from jobtui.backends.archive.walking import walk
from jobtui.backends.base import Batch
from jobtui.backends.worker import Worker
from jobtui.model.clock import Clock, SystemClock
from jobtui.model.scripts import Answer, Span, Walked, Wanted

PERIOD_S = 10.0
"""How often it is looked whether the directory is still there."""
AT_ONCE = 32
"""Scripts that are read before the others have their turn."""


class ArchiveDirectory(Keeper):
    """One directory with the label of its cluster, as both a source and a place of scripts."""

    kind = "archive"
    EVERY_S = PERIOD_S

    def __init__(self, path: str, cluster: str = "", clock: Clock | None = None) -> None:
        super().__init__(str(Path(path)), cluster)
        self._clock = clock or SystemClock()
        self._worker = Worker(f"archive {path}")

    async def poll(self, cursor: str | None) -> Batch:
        """Nothing: scripts are read one by one when they are asked for. Raises SourceError."""
        self._check_open()
        await self._worker.run(self._look)
        return Batch(cursor="there")

    def _look(self) -> None:
        with opened_root(self.name):
            pass

    async def find(self, wanted: Wanted) -> Answer:
        """The script of a job. Raises SourceError."""
        return await self._worker.run(partial(search, self.name, self.cluster, wanted, self._clock.now()))

    async def walk(self, span: Span, told: Callable[[str], None]) -> AsyncIterator[Walked]:
        """Every script in reach. Raises SourceError."""
        walking = walk(self.name, self.cluster, span, told)
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
