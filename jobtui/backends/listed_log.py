"""A log that is held in memory as a list of lines, to be read on a screen: what is too small for an index."""

import asyncio
import time
from bisect import bisect_right
from collections.abc import Sequence
from typing import Protocol

from jobtui.backends.base import SourceError
from jobtui.backends.held_log import HeldLog, place_of
from jobtui.model.clock import Nanos
from jobtui.model.pages import Extent, LogLine, LogUnreadable, Overview, Page, Place

LINES_HELD = 50_000
"""Lines held; the oldest are let go."""
WATCH_S = 1.0
"""How often is looked whether something has come."""


class Lines(Protocol):
    """Where the lines come from."""

    async def load(self) -> Sequence[LogLine]:
        """The lines that have come since this was called last. Raises SourceError."""
        ...

    async def is_changed(self) -> bool:
        """Whether loading may give more."""
        ...

    def close(self) -> None:
        """Release what is held. May be called twice."""
        ...


class ListedLog(HeldLog):
    """Lines in the order of their places."""

    def __init__(self, name: str, source: Lines) -> None:
        self.name = name
        self._source = source
        self._lines: list[LogLine] = []
        self._dropped = False
        self._revision = 0
        self._overview: Overview | None = None

    @property
    def lines(self) -> tuple[LogLine, ...]:
        """All that it holds."""
        return tuple(self._lines)

    async def look(self) -> Extent:
        """Take in what has come. Raises LogUnreadable."""
        try:
            added = await self._source.load()
        except SourceError as error:
            raise LogUnreadable(str(error)) from error
        if added:
            self._lines += added
            self._dropped |= len(self._lines) > LINES_HELD
            del self._lines[: max(0, len(self._lines) - LINES_HELD)]
            self._overview = None
        return self.extent

    def forget(self) -> None:
        """Hold nothing: what is loaded next is something else."""
        self._lines.clear()
        self._dropped = False
        self._revision += 1
        self._overview = None

    @property
    def extent(self) -> Extent:
        """From the first to the last line it holds."""
        if not self._lines:
            return Extent(0, 0, revision=self._revision)
        event = "its end only" if self._dropped else ""
        return Extent(self._lines[0].place, self._lines[-1].end, event, self._revision)

    async def changed(self, timeout_s: float) -> None:
        """Return when a look may find something new, at the latest after `timeout_s`."""
        end = time.monotonic() + timeout_s
        while (left := end - time.monotonic()) > 0:
            await asyncio.sleep(min(WATCH_S, left))
            if await self._source.is_changed():
                return

    @property
    def changed_at(self) -> Nanos:
        """The time of the first line that has one, else of now: where lines without a time belong."""
        return next((line.at for line in self._lines if line.at is not None), Nanos(time.time_ns()))

    async def before(self, place: Place, count: int) -> Page:
        """Up to `count` lines before the one that holds `place`."""
        stop = self._index(place) if self._lines and place < self._lines[-1].end else len(self._lines)
        begin = max(0, stop - count)
        return Page(tuple(self._lines[begin:stop]), begin == 0)

    async def after(self, place: Place, count: int) -> Page:
        """Up to `count` lines from the one that holds `place` on."""
        begin = self._index(place)
        if not self._lines or place >= self._lines[-1].end:
            return Page((), at_edge=True)
        return Page(tuple(self._lines[begin : begin + count]), begin + count >= len(self._lines))

    def _index(self, place: Place) -> int:
        return max(0, bisect_right(self._lines, place, key=place_of) - 1)

    def overview(self) -> Overview:
        """What it holds."""
        if self._overview is None:
            stretches = tuple(self.stretches())
            errors = sum(stretch.errors for stretch in stretches)
            self._overview = Overview(stretches, len(self._lines), errors, complete=True)
        return self._overview

    async def aclose(self) -> None:
        """Release what is held. May be called twice."""
        self._source.close()
