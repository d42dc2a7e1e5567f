"""A file as a source, watched for changes; each poll reads on in a thread. Only reads."""

from abc import abstractmethod
from pathlib import Path
from typing import Generic, TypeVar

from jobtui.backends.base import Batch, PolledSource
from jobtui.transport.files import FileStat, OpenFile, look_quietly, opened_file
from jobtui.transport.watch import Watch
from jobtui.transport.worker import Worker

Position = TypeVar("Position")


class PolledFile(PolledSource, Generic[Position]):
    """One file. `what` it holds names the thread that reads it, `begin` is where reading begins."""

    def __init__(self, path: Path, what: str, begin: Position) -> None:
        super().__init__(str(path))
        self._path = path
        self._begin = self._position = begin
        self._worker = Worker(f"{what} in {path}")
        self._looked: FileStat | None = None
        self._watch = Watch(self._worker, [path], lambda: look_quietly(path) != self._looked)

    async def read(self, *, begins: bool) -> Batch:
        def read_file() -> Batch:
            self._looked = look_quietly(self._path)
            with opened_file(self._path) as opened:
                position = self._begin if begins else self._position
                batch, self._position = self._read_since(position, opened, opened.look())
            return batch

        return await self._worker.run(read_file)

    async def changed(self, timeout_s: float) -> None:
        if not self.closing.is_set():
            await self._watch.changed(timeout_s)

    async def aclose(self) -> None:
        await super().aclose()
        self._watch.close()
        self._worker.close()

    @abstractmethod
    def _read_since(self, position: Position, opened: OpenFile, look: FileStat) -> tuple[Batch, Position]:
        """What an open file has since a position, and where that ends. In the thread; may raise OSError."""
