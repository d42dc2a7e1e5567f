"""Reading a SirepoDb in tests: to the end, and as somebody who is no superuser."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from jobtui.backends.base import Batch
from jobtui.backends.sirepo_db import SirepoDb
from jobtui.model.health import Skip
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job

NOBODY = 65534


class Reader:
    """Reads a source on and on, and keeps what it told."""

    def __init__(self, source: SirepoDb) -> None:
        self.source = source
        self.cursor: str | None = None
        self.jobs: dict[JobId, Job] = {}
        self.skipped = 0
        self.skips: list[Skip] = []
        self.batches: list[Batch] = []

    async def catch_up(self) -> list[Batch]:
        """Read until there is no more for now; the batches of this time."""
        batches = [await self.step()]
        while batches[-1].more:
            batches.append(await self.step())
        return batches

    async def step(self) -> Batch:
        """One poll."""
        batch = await self.source.poll(self.cursor)
        self.cursor = batch.cursor
        self.jobs.update((job.id, job) for job in batch.jobs)
        for job_id in batch.gone:
            self.jobs.pop(job_id, None)
        self.skipped += batch.skip_count - batch.recovered
        self.skips += batch.skipped
        self.batches.append(batch)
        return batch

    async def news(self) -> list[JobId]:
        """Read on; the ids of the jobs that came, in the order they came."""
        return [job.id for batch in await self.catch_up() for job in batch.jobs]


@contextmanager
def unprivileged() -> Iterator[None]:
    """Be a user whom permissions bind, for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)
