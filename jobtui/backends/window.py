"""A log source that ends at a given time: what was written later is left out, and said to be."""

from jobtui.backends.base import Batch, Source
from jobtui.model.clock import Nanos, to_rfc3339


class Until:
    """Another source up to a time. Reading ends at the first record that is later."""

    def __init__(self, source: Source, until: Nanos) -> None:
        self.name = source.name
        self.kind = source.kind
        self.source = source
        self._until = until
        self._ended: Batch | None = None

    async def poll(self, cursor: str | None) -> Batch:
        if self._ended is not None:
            return self._ended
        batch = await self.source.poll(cursor)
        first_later = next(
            (
                i
                for i, record in enumerate(batch.records)
                if record.at is not None and record.at > self._until
            ),
            None,
        )
        if first_later is None:
            return batch
        said = f"nothing after {to_rfc3339(self._until)} was read"
        note = f"{batch.note}; {said}" if batch.note else said
        self._ended = Batch(cursor=batch.cursor, note=note)
        return Batch(
            cursor=batch.cursor,
            records=batch.records[:first_later],
            skipped=batch.skipped,
            skip_count=batch.skip_count,
            count=batch.count,
            note=note,
            begins_at=batch.begins_at,
        )

    async def changed(self, timeout_s: float) -> None:
        await self.source.changed(timeout_s)

    async def aclose(self) -> None:
        await self.source.aclose()


def unwrapped(source: Source) -> Source:
    return source.source if isinstance(source, Until) else source
