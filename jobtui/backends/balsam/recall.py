"""What was kept of a Balsam server's events, given back when the server says that it still holds.

Never before the server has answered, and never in place of asking it: it is asked on from where what is kept
ends, with overlap.
"""

from collections.abc import Awaitable, Callable, Sequence

from jobtui.backends.balsam.cache import CacheError, EventCache, Stretch
from jobtui.model.changes import StateChange
from jobtui.model.clock import SECOND, Nanos

CHECKED = 20
"""Oldest and newest events by which the server is recognized, so many of each."""
LATE_S = 3600
"""How much later than others events may come that were not there when the rest was kept."""

Ask = Callable[[Sequence[int]], Awaitable[dict[int, Nanos]]]
"""Asks the server for the times of some events by their ids."""


class Recall:
    """Gives what is kept from a time on, part by part, and keeps what comes. `fault` says why it does not."""

    def __init__(self, cache: EventCache | None) -> None:
        self._cache = cache
        self._after = (-1, -1)
        self._stretch: Stretch | None = None
        self._is_distrusted = False
        self.fault = ""

    def begin(self, *, distrusted: bool = False) -> None:
        """Let the next part be the first; what is distrusted is let go of then."""
        self._after, self._stretch, self._is_distrusted = (-1, -1), None, distrusted

    @property
    def is_used(self) -> bool:
        """Whether anything is kept."""
        return self._cache is not None

    def ask_from(self, since: Nanos) -> Nanos:
        """From when on the server is to be asked: from `since`, or later where what is kept is whole."""
        return since if self._stretch is None else max(since, Nanos(self._stretch.until - LATE_S * SECOND))

    async def part(self, since: Nanos, ask: Ask) -> list[StateChange]:
        """The next events that are kept; none when there are no more. Raises SourceError."""
        cache = self._cache
        if cache is None:
            return []
        try:
            if self._stretch is None and not await self._still_holds(cache, since, ask):
                return []
            found = await cache.between(since, self._after)
        except CacheError as error:
            self._give_up(error)
            return []
        if found:
            self._after = (found[-1].at, found[-1].id)
        return found

    async def _still_holds(self, cache: EventCache, since: Nanos, ask: Ask) -> bool:
        """Whether what is kept goes back far enough, and is what this server says; else it is let go of."""
        stretch = await cache.covered()
        if stretch is None or (stretch.since > since and not self._is_distrusted):
            return False
        known = await cache.ends(CHECKED)
        told = {} if self._is_distrusted else await ask([change.id for change in known])
        if not told or any(told.get(change.id, change.at) != change.at for change in known):
            await cache.forget()
            self._is_distrusted = False
            return False
        self._stretch = stretch
        return True

    async def keep(self, changes: Sequence[StateChange], whole: Stretch | None = None) -> None:
        """Keep events; `whole` is a stretch of which by now all are kept."""
        if self._cache is None:
            return
        try:
            await self._cache.add(changes)
            if whole is not None and whole.since <= whole.until:
                await self._cache.cover(whole)
        except CacheError as error:
            self._give_up(error)

    def _give_up(self, error: CacheError) -> None:
        self._cache, self._stretch, self.fault = None, None, str(error)

    async def aclose(self) -> None:
        """Close the file."""
        if self._cache is not None:
            await self._cache.aclose()
