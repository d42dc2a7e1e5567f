"""The site under a rush in a process of its own, so that it has a core beside whoever reads the terminal.

It is asked over a pipe by the thread that made it: one question, one answer.
"""

import multiprocessing
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from benchmarks.rush import RushSite, TrueOp
from jobtui.model.specs import SourceSpec

HOLD, RELEASE = "hold", "release"
END_WITHIN_S = 30.0


class RushApart:
    """What `RushSite` is, elsewhere. Raises EOFError where that process has ended."""

    name = RushSite.name

    def __init__(self, directory: Path, rate: float, seed: int = 1) -> None:
        spawning = multiprocessing.get_context("spawn")
        self._pipe, theirs = spawning.Pipe()
        self._process = spawning.Process(target=_serve, args=(theirs, directory, rate, seed), daemon=True)
        self._process.start()
        theirs.close()
        self.rate = rate
        self.directory: Path = self._ask("directory")
        self.logs: dict[str, Path] = self._ask("logs")
        self.records: Path = self._ask("records")
        self.specs: Sequence[SourceSpec] = self._ask("specs")

    @property
    def begun(self) -> int:
        """Jobs begun in all."""
        return int(self._ask("begun"))

    @property
    def lived_s(self) -> float:
        """How long it lived in all, without the times at which it was held at rest."""
        return float(self._ask("lived_s"))

    @property
    @contextmanager
    def lock(self) -> Iterator[None]:
        """Its files do not move as long as this lasts."""
        with self._held("lock"):
            yield

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """Nothing happens, and nothing is under way, as long as this lasts."""
        with self._held("at_rest"):
            yield

    def start(self) -> None:
        """Let it live."""
        self._ask("start")

    def stop(self) -> None:
        """Let all end that is under way, and nothing begin. May be called twice."""
        self._ask("stop")

    def step(self, seconds: float) -> None:
        """Let so much time pass."""
        self._ask("step", seconds)

    def count(self) -> int:
        """How many ops there were in all."""
        return int(self._ask("count"))

    def ops(self) -> list[TrueOp]:
        """The newest ops as they were."""
        return list(self._ask("ops"))

    def idle_records(self, count: int) -> list[Path]:
        """Records of jobs of which nothing runs; to be asked for while it is at rest."""
        return list(self._ask("idle_records", count))

    def thin_out(self, left: int) -> None:
        """Remove all records but so many."""
        self._ask("thin_out", left)

    def close(self) -> None:
        """End it, whatever goes on there. May be called twice."""
        self._pipe.close()
        self._process.join(END_WITHIN_S)
        if self._process.is_alive():
            self._process.kill()

    @contextmanager
    def _held(self, how: str) -> Iterator[None]:
        self._ask(HOLD, how)
        try:
            yield
        finally:
            self._ask(RELEASE)

    def _ask(self, what: str, *values: object) -> Any:
        self._pipe.send((what, values))
        return self._pipe.recv()


AnyRush = RushSite | RushApart


def _serve(pipe: Connection, directory: Path, rate: float, seed: int) -> None:
    """Answer until nobody asks any more."""
    site = RushSite(directory, rate, seed)
    held: list[ExitStack] = []
    try:
        while True:
            what, values = pipe.recv()
            pipe.send(_answer(site, held, what, values))
    except (EOFError, OSError):
        while held:
            held.pop().close()
        site.stop()


def _answer(site: RushSite, held: list[ExitStack], what: str, values: Sequence[Any]) -> object:
    if what == HOLD:
        held.append(ExitStack())
        found = getattr(site, values[0])
        return held[-1].enter_context(found() if callable(found) else found)
    if what == RELEASE:
        held.pop().close()
        return None
    found = getattr(site, what)
    return found(*values) if callable(found) else found
