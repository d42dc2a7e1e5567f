"""Polling: one task for each source, one poll in flight, back-off on errors, nothing raised."""

import asyncio
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from jobtui.backends.base import Source, SourceError, next_delay
from jobtui.store.parts import apply_in_parts
from jobtui.store.store import Store

if TYPE_CHECKING:
    from jobtui.backends.staging import Witness

PERIOD_S = 2.0
"""How long a source may wait for a sign of change; a poll is due at the latest then."""
PERIODS_S: Mapping[str, float] = {"jaeger": 10.0, "tempo": 10.0}
"""The same by kind: those that are asked when somebody wants to know are only looked for."""
PAUSES_S: Mapping[str, float] = {"logfile": 0.25}
"""How long a source that failed is left alone whatever it may tell, by kind; the others for a period."""

log = logging.getLogger(__name__)


class Poller:
    """Keeps the store up to date with one source."""

    def __init__(
        self, source: Source, store: Store, *, strict: bool = False, witness: "Witness | None" = None
    ) -> None:
        self._source = source
        self._store = store
        self._witness = witness
        self._strict = strict
        self._cursor: str | None = None
        self._failures = 0
        self._period_s = PERIODS_S.get(source.kind, PERIOD_S)
        self._pause_s = PAUSES_S.get(source.kind, PERIOD_S)
        store.add_source(source.name, source.kind)

    @property
    def source(self) -> Source:
        """The source it polls."""
        return self._source

    def feed_into(self, store: Store) -> None:
        """Let what it reads from now on go into another store."""
        self._store = store

    async def run(self) -> None:
        """Poll until cancelled."""
        while True:
            if await self.poll_once():
                await asyncio.sleep(0)
            elif self._failures:
                await asyncio.sleep(self._pause_s)
                await self._source.changed(next_delay(self._period_s, self._failures) - self._pause_s)
            else:
                await self._source.changed(self._period_s)

    async def catch_up(self) -> None:
        """Poll until the source has no more for now."""
        while await self.poll_once():  # noqa: ASYNC110 - there is more at once, others get their turn
            await asyncio.sleep(0)

    async def poll_once(self) -> bool:
        """One poll into the store; whether there is more at once."""
        try:
            batch = await self._source.poll(self._cursor)
        except SourceError as error:
            self._fail(str(error))
            return False
        except Exception as error:
            log.exception("internal error in source %s", self._source.name)
            if self._strict:
                raise
            self._fail(f"internal error: {type(error).__name__}: {error}")
            return False
        self._failures = 0
        if self._witness is not None:
            self._witness.delivered(self._source, batch)
        await apply_in_parts(self._store, self._source.name, batch)
        self._cursor = batch.cursor
        return batch.more

    def _fail(self, error: str) -> None:
        self._failures += 1
        if self._witness is not None:
            self._witness.failed(self._source, error)
        self._store.fail(self._source.name, error)
