"""What all places that keep scripts have in common as sources: they have a name, and no news to tell."""

import asyncio
from contextlib import suppress

from jobtui.backends.base import SourceError


class Keeper:
    """A place with its kind and the label of its cluster, "" where each script names its own."""

    kind = ""
    EVERY_S = 0.0
    """How often it is looked at least whether it is there."""

    def __init__(self, name: str, cluster: str = "") -> None:
        self.name = name
        self.cluster = cluster
        self._closing = asyncio.Event()

    def _check_open(self) -> None:
        """Raises SourceError once it is closed."""
        if self._closing.is_set():
            raise SourceError(f"{self.name}: is closed")

    async def changed(self, timeout_s: float) -> None:
        """Return when it may be looked again, or it is closed."""
        with suppress(TimeoutError):
            async with asyncio.timeout(max(timeout_s, self.EVERY_S)):
                await self._closing.wait()
