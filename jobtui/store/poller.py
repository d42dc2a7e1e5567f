"""Polling: one task for each source, one poll in flight, back-off on errors, nothing raised.

A fault of jobtui while it reads a source or applies a batch costs one poll of this source only.
"""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from time import monotonic

from msgspec import structs

from jobtui.backends.base import LISTS, Batch, MeasuredSource, Observer, Source, next_delay
from jobtui.backends.registry import of_kind
from jobtui.model.clock import SECOND
from jobtui.model.health import Skip, SourceError, contained
from jobtui.model.ids import SpanId
from jobtui.model.logs import Reached
from jobtui.model.traces import Span
from jobtui.store.store import Store

SPANS_AT_ONCE = 2_000
AT_ONCE = {"condor": 500, "records": 100}  # so that who follows an op hears of all lines before some go
EMPTY = Batch(more=True)
RECORDS = tuple(name for name in LISTS if name != "skipped")
SINGLY_AT_ONCE = 100
"""Records applied one by one before other tasks get their turn."""


class Poller:
    """Keeps the store up to date with one source."""

    def __init__(self, source: Source, store: Store, *, observer: Observer | None = None) -> None:
        self.source = source
        self.store = store
        self._observer = observer
        self._cursor: str | None = None
        self._failures = 0
        self._type = of_kind(source.kind)
        store.add_source(source.name, source.kind)

    async def run(self) -> None:
        while True:
            if await self.poll_once():
                await asyncio.sleep(0)
            elif self._failures:
                await asyncio.sleep(self._type.pause_s)
                await self._wait(next_delay(self._type.period_s, self._failures) - self._type.pause_s)
            else:
                await self._wait(self._type.period_s)

    async def _wait(self, longest_s: float) -> None:
        """Wait for a sign of change, or for a time if the source cannot wait for one."""
        with contained(f"waiting for {self.source.kind}") as waiting:
            try:
                await self.source.changed(longest_s)
            except SourceError:  # the next poll says what is wrong
                await asyncio.sleep(longest_s)
        if waiting.fault is not None:
            await asyncio.sleep(longest_s)

    async def catch_up(self, most: int | None = None) -> None:
        """Poll until the source has no more for now, or gave `most` records or more."""
        count = 0
        while (batch := await self.fetch()) is not None and await self.take(batch):
            count += batch.count
            if most is not None and count >= most:
                return
            await asyncio.sleep(0)  # other tasks can run

    async def poll_once(self) -> bool:
        """Poll once and apply the batch. True if there is more to read at once."""
        batch = await self.fetch()
        return batch is not None and await self.take(batch)

    async def fetch(self) -> Batch | None:
        """The batch of one poll, for `take`; None if it failed."""
        problem = ""
        with contained(f"reading {self.source.kind}") as reading:
            try:
                batch = await self.source.poll(self._cursor)
                self._failures = 0
                with contained("recording"):
                    if self._observer is not None:
                        self._observer.delivered(self.source, batch)
                return batch
            except SourceError as error:
                problem = str(error)
        self._fail(reading.words or problem)
        return None

    async def take(self, batch: Batch) -> bool:
        """Apply a batch to the store. True if there is more to read at once."""
        with contained(f"reading {self.source.kind}") as taking:
            await apply_in_parts(self.store, self.source.name, batch)
            self._cursor = batch.cursor
            return batch.more
        self._fail(taking.words)
        return False

    def _fail(self, problem: str) -> None:
        self._failures += 1
        with contained("recording"):
            if self._observer is not None:
                self._observer.failed(self.source, problem)
        self.store.fail(self.source.name, problem)


async def apply_in_parts(store: Store, source: str, batch: Batch) -> None:
    """Apply a batch to a store. After a cancellation the whole batch can be applied again.

    If it raises, each record is applied alone: the bad one costs only itself.
    """
    left = batch
    try:
        if len(left.spans) > SPANS_AT_ONCE:
            for part in _parts(left.spans):
                store.apply(source, Batch(spans=part))
                await asyncio.sleep(0)
            left = structs.replace(left, spans=())
        for name, most in AT_ONCE.items():
            while len(items := getattr(left, name)) > most:
                store.apply(source, structs.replace(EMPTY, **{name: items[:most]}))
                left = structs.replace(left, **{name: items[most:]})
                await asyncio.sleep(0)
        store.apply(source, left)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is found again below, where it is counted
        await _apply_singly(store, source, batch, error)
    while store.is_behind:
        await asyncio.sleep(0)
        store.put_together()


async def _apply_singly(store: Store, source: str, batch: Batch, error: Exception) -> None:
    """Apply record by record, and then what the batch says about itself; `error` is the reason."""
    lost = []
    records = [(name, record) for name in RECORDS for record in getattr(batch, name)]
    for number, (name, record) in enumerate(records, 1):
        with contained(f"taking in {name}") as taking:
            store.apply(source, structs.replace(EMPTY, **{name: (record,)}))
        if taking.fault is not None:
            lost.append(Skip(f"{source}: one of {name}", taking.words))
        if number % SINGLY_AT_ONCE == 0:
            await asyncio.sleep(0)
    with contained("taking in a batch"):
        if not lost:
            raise error
    skips = {"skipped": (*batch.skipped, *lost), "skip_count": batch.skip_count + len(lost)}
    store.apply(source, structs.replace(batch, **dict.fromkeys(RECORDS, ()), **skips))


def _parts(spans: Iterable[Span]) -> Iterator[tuple[Span, ...]]:
    """Spans in parts of about this size. Those of one id stay together: they show that it was sent twice."""
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


REACHED_BYTES = 2 << 30
"""The most bytes of logs that are read again: usually half a minute of reading."""
REACHED_RECORDS = 5_000_000
"""The same for a source that does not know its size."""
GB = 1 << 30
RESTS_S = 1.0
"""How long a log without new lines is not read while others are read again. It may grow in this time."""


async def read_again(pollers: Sequence[Poller], store: Store, progress: Callable[[Reached], None]) -> None:
    """Read all sources in the order of time until each had no more, and report progress.

    So equal lines of a log and its copies count once and in order, wherever each begins. A log that grows all
    the time always has more, so no log is read to its end twice. Raises SourceError before it has read more
    than REACHED_BYTES, and if a source that does not know its size has more than REACHED_RECORDS.
    """
    waiting: dict[Poller, Batch] = {}
    begun: set[Poller] = set()
    resting: dict[Poller, float] = {}
    asked = list(pollers)
    unfinished = set(pollers)
    while asked:
        fetched = await asyncio.gather(*(one.fetch() for one in asked))
        waiting |= {one: batch for one, batch in zip(asked, fetched, strict=True) if batch is not None}
        unfinished -= {*asked} - waiting.keys()
        if not begun and (size := _reached(pollers, store).size) > REACHED_BYTES:
            shown, most = (f"{count / GB:.1f} GB" for count in (size, REACHED_BYTES))
            raise SourceError(f"{shown} of logs would have to be read; the limit is {most}")
        asked = []
        while waiting and not asked:
            poller = min(waiting, key=lambda one: _turn(waiting[one], has_begun=one in begun))
            begun.add(poller)
            if await poller.take(waiting.pop(poller)):
                records = next(one.records for one in store.sources() if one.name == poller.source.name)
                if records >= REACHED_RECORDS and not isinstance(poller.source, MeasuredSource):
                    why = f"more than {REACHED_RECORDS:,} records would have to be read"
                    raise SourceError(f"{poller.source.name}: {why}")
                if unfinished:
                    asked = [poller, *(one for one, until in resting.items() if until <= monotonic())]
            else:
                unfinished.discard(poller)
                resting[poller] = monotonic() + RESTS_S
            progress(_reached(pollers, store))
            await asyncio.sleep(0)
        for poller in asked:
            resting.pop(poller, None)


def _turn(batch: Batch, *, has_begun: bool) -> tuple[int, bool, int]:
    """The sort key of batches: the second in which they begin, which is all that a file gives.

    Within one second a log that began before comes before a log that begins now, as its lines may be older.
    Then a batch with more lines of this second comes before one with fewer.
    """
    seconds = [record.at // SECOND for record in batch.records if record.at is not None]
    return (seconds[0], not has_begun, -seconds.count(seconds[0])) if seconds else (0, False, 0)


def _reached(pollers: Sequence[Poller], store: Store) -> Reached:
    measured = [poller.source.measured for poller in pollers if isinstance(poller.source, MeasuredSource)]
    return Reached(
        read=sum(read for read, _ in measured),
        size=sum(size for _, size in measured),
        records=sum(source.records for source in store.sources()),
    )
