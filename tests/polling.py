"""Polling a source as the poller does, until it has no more for now."""

import asyncio
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from jobtui.backends.base import Batch, Source
from jobtui.model.health import Skip
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job
from jobtui.model.logs import LogRecord
from tests.waiting import LONG_S


async def polled(source: Source, cursor: str | None = None) -> list[Batch]:
    """Every batch after a cursor; the cursor of the last is where that ends."""
    batches = [await source.poll(cursor)]
    while batches[-1].more:
        batches.append(await source.poll(batches[-1].cursor))
    return batches


async def read_on(source: Source, cursor: str | None = None) -> tuple[str, list[Batch]]:
    """Every batch after a cursor, and where that ends."""
    batches = await polled(source, cursor)
    return batches[-1].cursor, batches


S = TypeVar("S", bound=Source)


class Reading(Generic[S]):
    """Polls a source as the poller does, and keeps what it gave."""

    def __init__(self, source: S) -> None:
        self.source = source
        self.batches: list[Batch] = []
        self.jobs: dict[JobId, Job] = {}
        self.records: list[LogRecord] = []
        self.skips: list[Skip] = []
        self.skipped = 0

    @property
    def cursor(self) -> str | None:
        return self.batches[-1].cursor if self.batches else None

    @property
    def note(self) -> str | None:
        return self.batches[-1].note

    @property
    def texts(self) -> list[str]:
        return [record.text for record in self.records]

    async def poll(self) -> Batch:
        batch = await self.source.poll(self.cursor)
        self.batches.append(batch)
        self.jobs.update((job.id, job) for job in batch.jobs)
        for job_id in batch.gone:
            self.jobs.pop(job_id, None)
        self.records += batch.records
        self.skips += batch.skipped
        self.skipped += batch.skip_count - batch.recovered
        return batch

    async def drain(self) -> list[Batch]:
        """Poll until there is no more for now; the batches of this time."""
        batches = [await self.poll()]
        while batches[-1].more:
            batches.append(await self.poll())
        return batches

    async def until(self, condition: Callable[[], bool]) -> None:
        """Poll, waiting for changes between, until the condition holds."""
        end = time.monotonic() + LONG_S
        while not condition():
            assert time.monotonic() < end, f"still not so: {self.texts[-5:]} {self.skips[-5:]} {self.note}"
            if not (await self.poll()).more:
                await self.source.changed(0.05)
            await asyncio.sleep(0)
