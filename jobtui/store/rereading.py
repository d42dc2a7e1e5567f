"""Reading sources again into a store of their own, with a limit, in sight of whoever waits for it."""

import asyncio
from collections.abc import Callable, Sequence

from jobtui.backends.base import MeasuredSource, SourceError
from jobtui.model.job_desk import Reached
from jobtui.store.poller import Poller
from jobtui.store.store import Store

REACHED_BYTES = 2 << 30
"""So much of logs is read again at most: half a minute of reading as a rule."""
REACHED_RECORDS = 5_000_000
"""The same for a source that does not know its size."""
GB = 1 << 30


async def read_again(pollers: Sequence[Poller], store: Store, progress: Callable[[Reached], None]) -> None:
    """Let pollers read all there is, telling how far they are.

    Of a source that does not know its size REACHED_RECORDS are waited for. Raises SourceError when more than
    REACHED_BYTES would have to be read, before they are.
    """
    unfinished = [poller for poller in pollers if await poller.poll_once()]
    reached = _reached(pollers, store)
    if reached.size > REACHED_BYTES:
        size, most = (f"{count / GB:.1f} GB" for count in (reached.size, REACHED_BYTES))
        raise SourceError(f"{size} of logs would have to be read, and {most} are read at most")
    progress(reached)
    await asyncio.gather(*(_read_on(poller, pollers, store, progress) for poller in unfinished))
    progress(_reached(pollers, store))


async def _read_on(
    poller: Poller, pollers: Sequence[Poller], store: Store, progress: Callable[[Reached], None]
) -> None:
    is_measured = isinstance(poller.source, MeasuredSource)
    read = 0
    while read < REACHED_RECORDS and await poller.poll_once():
        if not is_measured:
            read = next(source.records for source in store.sources() if source.name == poller.source.name)
        progress(_reached(pollers, store))
        await asyncio.sleep(0)


def _reached(pollers: Sequence[Poller], store: Store) -> Reached:
    """How far these are."""
    measured = [poller.source.measured for poller in pollers if isinstance(poller.source, MeasuredSource)]
    return Reached(
        read=sum(read for read, _ in measured),
        size=sum(size for _, size in measured),
        records=sum(source.records for source in store.sources()),
    )
