"""What a soak watches: the simulated site, or a live one that is named; and what is true there."""

import asyncio
import json
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from jobtui.backends import registry
from jobtui.demo.live import TICK_S, LiveDemo
from jobtui.model.specs import SourceSpec, parse_log, parse_srdb
from jobtui.session import Session

KEPT_S = 60.0
"""How long a status is remembered after it was replaced."""

TrueOp = tuple[object, ...]
"""Prefix, name, job, agent, sends, replies, updates."""


class Site(Protocol):
    """A job system that goes on by itself."""

    name: str

    @property
    def specs(self) -> Sequence[SourceSpec]:
        """What to point the dashboard at."""
        ...

    def stop(self) -> None:
        """Let nothing happen any more, where that can be done."""
        ...

    def ops(self) -> list[TrueOp]:
        """Every op as it was."""
        ...


class DemoSite:
    """The simulated site, which knows what really happened."""

    name = "demo"

    def __init__(self, directory: Path, seed: int) -> None:
        self._demo = LiveDemo(directory, seed=seed)
        self._stopped = threading.Event()
        self._demo.prepare()
        self._thread = threading.Thread(target=self._live)
        self._thread.start()

    @property
    def specs(self) -> Sequence[SourceSpec]:
        """Its database and its logs."""
        logs = [parse_log(f"{role}={path}") for role, path in self._demo.sources.logs]
        return [parse_srdb(str(self._demo.sources.srdb)), *logs]

    def stop(self) -> None:
        """End it."""
        self._stopped.set()
        self._thread.join()

    def ops(self) -> list[TrueOp]:
        """What the simulator noted inside its supervisor."""
        return [
            (op.op, op.name, op.jid, op.agent, op.sends, op.replies, op.updates)
            for op in self._demo.world.truth().ops
        ]

    def _live(self) -> None:
        while not self._stopped.wait(TICK_S):
            self._demo.step()


class LiveSite:
    """A real system that somebody else keeps busy. Its ops are what a reading from the start tells."""

    name = "live"

    def __init__(self, specs: Sequence[SourceSpec]) -> None:
        self.specs = specs

    def stop(self) -> None:
        """It goes on as it does."""

    def ops(self) -> list[TrueOp]:
        """What is known after all was read anew."""
        return asyncio.run(self._read())

    async def _read(self) -> list[TrueOp]:
        async with Session([registry.build(spec) for spec in self.specs], strict=True) as session:
            await session.catch_up()
            return [
                (op.op, op.name, op.jid, op.agent, op.sends, op.replies, op.updates)
                for op in session.store.correlation.ops()
            ]


def flags_of(specs: Iterable[SourceSpec]) -> list[str]:
    """The command line that names these sources."""
    flags = []
    for spec in specs:
        role = f"{spec.role}=" if spec.setting == "log" else ""
        flags += [f"--{spec.setting}", f"{role}{spec.target}"]
    return flags


@contextmanager
def opened(site: Site) -> Iterator[Site]:
    """A site that is stopped in the end."""
    try:
        yield site
    finally:
        site.stop()


@dataclass(slots=True)
class Records:
    """The status of every job as its record says it, with what it was before, read without jobtui."""

    srdb: Path
    _stamps: dict[str, tuple[int, int, int]] = field(default_factory=dict)
    _seen: dict[str, list[tuple[float, str]]] = field(default_factory=lambda: defaultdict(list))

    def read(self) -> None:
        """Look at what has changed."""
        paths = list((self.srdb / "supervisor-job").glob("*.json"))
        for gone in self._seen.keys() - {path.stem for path in paths}:
            self._forget(gone)
        for path in paths:
            try:
                self._look(path)
            except FileNotFoundError:
                self._forget(path.stem)  # removed since: what it said last was never read

    def _look(self, path: Path) -> None:
        stat = path.stat()
        stamp = (stat.st_mtime_ns, stat.st_ino, stat.st_size)
        if self._stamps.get(path.stem) == stamp:
            return
        status = read_record(path)
        if status is not None:
            self._stamps[path.stem] = stamp
            self._note(path.stem, status)

    def _forget(self, job: str) -> None:
        self._seen.pop(job, None)
        self._stamps.pop(job, None)

    def _note(self, job: str, status: str) -> None:
        now = time.time()
        seen = self._seen[job]
        seen.append((now, status))
        self._seen[job] = [entry for entry in seen[:-1] if entry[0] > now - KEPT_S][-20:] + seen[-1:]

    def now(self) -> Mapping[str, str]:
        """The status of every job."""
        return {job: seen[-1][1] for job, seen in self._seen.items()}

    def settled(self, for_s: float) -> Mapping[str, str]:
        """The same of the jobs whose record has not changed for so long."""
        before = time.time() - for_s
        return {job: seen[-1][1] for job, seen in self._seen.items() if seen[-1][0] <= before}


def read_record(path: Path) -> str | None:
    """The status in a record; None where it cannot be read. Raises FileNotFoundError."""
    try:
        return str(json.loads(path.read_bytes())["status"])
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError):
        return None
