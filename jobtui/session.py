"""One session: the sources a configuration names, a store, and what keeps them together.

The dashboard and the one-shot commands are both thin users of it. Knows nothing of a terminal.
"""

import asyncio
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Self

from jobtui.analysis.correlate import Correlator
from jobtui.backends.base import DetailSource, Source
from jobtui.model.clock import Clock, SystemClock
from jobtui.model.ids import JobId
from jobtui.model.jobs import JobDetail
from jobtui.store.poller import Poller
from jobtui.store.store import Store


class Session:
    """Sources, their pollers and the store they fill. An async context manager that closes the sources."""

    def __init__(self, sources: Sequence[Source], clock: Clock | None = None, *, strict: bool = False) -> None:
        self.clock = clock or SystemClock()
        self.store = Store(Correlator(), self.clock)
        self._pollers = [Poller(source, self.store, strict=strict) for source in sources]

    @property
    def sources(self) -> tuple[Source, ...]:
        """The sources it reads."""
        return tuple(poller.source for poller in self._pollers)

    async def catch_up(self, kinds: Iterable[str] | None = None) -> None:
        """Read every source (of these kinds) until it has no more for now, side by side."""
        wanted = None if kinds is None else frozenset(kinds)
        chosen = [p for p in self._pollers if wanted is None or p.source.kind in wanted]
        await asyncio.gather(*(poller.catch_up() for poller in chosen))

    async def run(self) -> None:
        """Keep the store up to date until cancelled."""
        await asyncio.gather(*(poller.run() for poller in self._pollers))

    async def detail(self, job_id: JobId) -> JobDetail | None:
        """Everything stored about a job, from the first source that has it. Raises SourceError."""
        for source in self.sources:
            if isinstance(source, DetailSource) and (found := await source.detail(job_id)):
                return found
        return None

    async def aclose(self) -> None:
        """Release what the sources hold."""
        await asyncio.gather(*(source.aclose() for source in self.sources))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()
