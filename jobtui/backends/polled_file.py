"""A file as a source: read on in a thread from where reading ended, and watched for changes. Reads only."""

import asyncio
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Generic, TypeVar

from jobtui.backends.base import Batch, Issued
from jobtui.model.source_errors import SourceError
from jobtui.transport.files import Look, OpenFile, open_file, source_error
from jobtui.transport.watch import FileState, Watch, state_of
from jobtui.transport.worker import Worker

Place = TypeVar("Place")


class PolledFile(ABC, Generic[Place]):
    """One file. `what` it holds names the thread that reads it, `begin` is where reading begins."""

    def __init__(self, path: Path, what: str, begin: Place) -> None:
        self.name = str(path)
        self._path = path
        self._begin = self._place = begin
        self._issued = Issued()
        self._worker = Worker(f"{what} in {path}")
        self._read_state: FileState = None
        self._watch = Watch(self._worker, [path], self._is_changed)
        self._closing = asyncio.Event()

    async def poll(self, cursor: str | None) -> Batch:
        """What the file says since `cursor`. Raises SourceError and nothing else."""
        if self._closing.is_set():
            raise SourceError(f"{self.name}: is closed")
        return await self._worker.run(lambda: self._read(cursor))

    async def changed(self, timeout_s: float) -> None:
        if not self._closing.is_set():
            await self._watch.changed(timeout_s)

    def _is_changed(self) -> bool:
        return state_of(self._path) != self._read_state

    async def aclose(self) -> None:
        self._closing.set()
        self._watch.close()
        self._worker.close()

    def _read(self, cursor: str | None) -> Batch:
        if (lost := self._issued.again(cursor)) is not None:
            return lost
        place = self._place if self._issued.is_next(cursor) else self._begin
        self._read_state = state_of(self._path)
        opened = open_file(self._path)
        try:
            batch, self._place = self._read_since(place, opened, opened.look())
        except OSError as error:
            raise source_error(error, self._path) from error
        finally:
            opened.close()
        return self._issued.give(batch)

    @abstractmethod
    def _read_since(self, place: Place, opened: OpenFile, look: Look) -> tuple[Batch, Place]:
        """What an open file says since a place, and where that ends. In the thread; may raise OSError."""
