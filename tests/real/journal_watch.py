"""Journals watched as the dashboard does it: which numbers came when, and what was told of each journal."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from jobtui.analysis.correlation.correlator import Correlator
from jobtui.backends.base import Batch
from jobtui.backends.journal.records import Wanted
from jobtui.backends.journal.source import Journal, maker_of
from jobtui.model.clock import SECOND, Nanos, SystemClock
from jobtui.model.health import SourceState
from jobtui.model.journal import Gap
from jobtui.store.poller import Poller
from jobtui.store.store import Changes, Store
from tests.real.journal_hosts import SERVICE, Sender

SEND_EVERY_S = 0.02


@dataclass(slots=True)
class Seen:
    """What came of one journal: numbers in order, when each came, and what was told."""

    numbers: list[int] = field(default_factory=list)
    at: list[float] = field(default_factory=list)
    states: list[tuple[float, SourceState, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    gaps: tuple[Gap, ...] = ()

    def lags(self, sent: "Sent", start: float, end: float) -> list[float]:
        """Seconds from written to seen, of what was written between two times."""
        pairs = zip(self.numbers, self.at, strict=True)
        return [at - sent.at[number] for number, at in pairs if start <= sent.at[number] < end]


class Watching(Store):
    """A store that remembers what it was given."""

    def __init__(self) -> None:
        super().__init__(Correlator(), SystemClock())
        self.seen: dict[str, Seen] = {}

    def apply(self, source: str, batch: Batch) -> Changes:
        seen = self.seen.setdefault(source, Seen())
        now = time.time()
        for record in batch.records:
            if record.fields.get("run_dir", "") and "/real/" in record.text:
                seen.numbers.append(int(record.text.rpartition("/")[2]))
                seen.at.append(now)
        if batch.note and batch.note not in seen.notes[-1:]:
            seen.notes.append(batch.note)
        changes = super().apply(source, batch)
        self._note_state(source)
        return changes

    def fail(self, source: str, error: str) -> Changes:
        changes = super().fail(source, error)
        self._note_state(source)
        return changes

    def state(self, source: str) -> SourceState:
        return next(health.state for health in self.sources() if health.name == source)

    def _note_state(self, source: str) -> None:
        health = next(health for health in self.sources() if health.name == source)
        told = self.seen.setdefault(source, Seen()).states
        state = (health.state, health.error or "")
        if not told or told[-1][1:] != state:
            told.append((time.time(), *state))


class Watch:
    """One poller for each journal, as a session has them. An async context manager."""

    def __init__(self, targets: Mapping[str, str], since: float) -> None:
        self.store = Watching()
        wanted = Wanted(units=(), identifiers=(SERVICE,), containers=())
        self._journals = {
            name: Journal(name, maker_of(target), wanted=wanted, since=Nanos(int(since * SECOND)))
            for name, target in targets.items()
        }
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Watching:
        pollers = [Poller(journal, self.store) for journal in self._journals.values()]
        self._tasks = [asyncio.create_task(poller.run()) for poller in pollers]
        return self.store

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for name, journal in self._journals.items():
            self.store.seen.setdefault(name, Seen()).gaps = tuple(journal.gaps)
            await journal.aclose()


@dataclass(slots=True)
class Sent:
    """When each number was written to one journal."""

    sender: Sender
    at: list[float] = field(default_factory=list)
    pauses: bool = False


class Sending:
    """Writes to all journals all the time. An async context manager."""

    def __init__(self, senders: Mapping[str, Sender]) -> None:
        self.sent = {name: Sent(sender) for name, sender in senders.items()}
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> dict[str, Sent]:
        self._task = asyncio.create_task(self._run())
        return self.sent

    async def __aexit__(self, *_: object) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            for sent in self.sent.values():
                if not sent.pauses:
                    sent.at.append(time.time())
                    sent.sender.send()
            await asyncio.sleep(SEND_EVERY_S)
