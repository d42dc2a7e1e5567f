"""Polling a source as the poller does, until it has no more for now."""

from jobtui.backends.base import Batch, Source


async def polled(source: Source, cursor: str | None = None) -> list[Batch]:
    """Every batch after a cursor; the cursor of the last is where that ends."""
    batches = [await source.poll(cursor)]
    while batches[-1].more:
        batches.append(await source.poll(batches[-1].cursor))
    return batches
