"""Keeps the lines around the screen at hand, out of a source that may be slow. Knows nothing of a screen."""

from typing import NamedTuple

from jobtui.model.pages import LineSource, Place
from jobtui.widgets.log_window import LogWindow

AHEAD = 200
"""Lines that are held ready beyond the screen, and asked for at once."""
LAST = 1 << 200
"""A place behind every line."""


class Filled(NamedTuple):
    """What asking brought: how far down the lines on the screen moved, and whether any came at the end."""

    moved: int
    appended: bool


class LogFeed:
    """The window on one source. Both methods raise LogUnreadable."""

    def __init__(self, source: LineSource) -> None:
        self.source = source
        self.window = LogWindow()

    async def jump(self, place: Place | None) -> None:
        """Hold the lines around `place`, or the last ones."""
        before = await self.source.before(LAST if place is None else place, AHEAD)
        window = LogWindow(before.lines, at_begin=before.at_edge, at_end=place is None)
        if place is not None:
            window.append(await self.source.after(place, AHEAD))
            window.at_begin = before.at_edge
        self.window = window

    def wants(self, first: int, last: int) -> bool:
        """Whether lines are missing beyond `first` .. `last`, those on the screen."""
        return self._wants_after(last) or self._wants_before(first)

    def _wants_after(self, last: int) -> bool:
        window = self.window
        return len(window) > 0 and not window.at_end and last + AHEAD > len(window)

    def _wants_before(self, first: int) -> bool:
        return len(self.window) > 0 and not self.window.at_begin and first < AHEAD

    async def fill(self, first: int, last: int) -> Filled | None:
        """Ask for lines beyond `first` .. `last`; None when enough are held."""
        window = self.window
        if self._wants_after(last):
            page = await self.source.after(window.lines[-1].place, AHEAD)
            appended = window.append(page)
            if not appended:
                window.at_end = True
            return Filled(-window.trim(first, last), appended)
        if self._wants_before(first):
            page = await self.source.before(window.lines[0].place, AHEAD)
            moved = window.prepend(page)
            return Filled(moved - window.trim(first + moved, last + moved), False)
        return None
