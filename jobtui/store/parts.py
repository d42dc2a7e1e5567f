"""Taking in a batch of many spans or facts a part at a time, so that others have their turn in between."""

import asyncio
from collections.abc import Iterable, Iterator

from msgspec import structs

from jobtui.backends.base import Batch
from jobtui.model.trace_ids import SpanId
from jobtui.model.traces import Span
from jobtui.store.store import Store

SPANS_AT_ONCE = 2_000


async def apply_in_parts(store: Store, source: str, batch: Batch) -> None:
    """Let a store take in a batch; cut short, all of it can be taken in again."""
    if len(batch.spans) > SPANS_AT_ONCE:
        for part in _parts(batch.spans):
            store.apply(source, Batch(cursor="", spans=part))
            await asyncio.sleep(0)
        batch = structs.replace(batch, spans=())
    if batch.condor:
        for _ in store.take_in(batch.condor):
            await asyncio.sleep(0)
        batch = structs.replace(batch, condor=())
    store.apply(source, batch)


def _parts(spans: Iterable[Span]) -> Iterator[tuple[Span, ...]]:
    """Spans in parts of about so many, those of one id together: they tell that one was sent twice."""
    by_id: dict[SpanId, list[Span]] = {}
    for span in spans:
        by_id.setdefault(span.span_id, []).append(span)
    part: list[Span] = []
    for same in by_id.values():
        part += same
        if len(part) >= SPANS_AT_ONCE:
            yield tuple(part)
            part = []
    yield tuple(part)
