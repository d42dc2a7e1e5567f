"""Caches the lines around the screen of a source that may be slow. No widgets."""

from bisect import bisect_right
from typing import NamedTuple

from jobtui.model.clock import Nanos
from jobtui.model.pages import Hits, LineSource, LogLine, LogSearch, Page, Place

KEPT = 1_200
"""Lines held at most; those farthest from the screen are let go first."""


class LogWindow:
    """Adjacent lines. `at_begin`, `at_end`: the log has nothing before, after them."""

    def __init__(
        self, lines: tuple[LogLine, ...] = (), *, at_begin: bool = False, at_end: bool = False
    ) -> None:
        self.lines = list(lines)
        self.at_begin = at_begin
        self.at_end = at_end
        self._places = [line.place for line in lines]

    def __len__(self) -> int:
        return len(self.lines)

    def index_of(self, place: Place) -> int:
        """The index of the line that holds `place`, else of the last one before it, else 0."""
        return max(0, bisect_right(self._places, place) - 1)

    def holds(self, place: Place) -> bool:
        return bool(self.lines) and self.lines[0].place <= place < self.lines[-1].end

    def time_at(self, index: int) -> Nanos | None:
        """The time of a line; of the nearest one before it, else behind it, where it has none itself."""
        times = (line.at for line in (*reversed(self.lines[: index + 1]), *self.lines[index + 1 :]))
        return next((at for at in times if at is not None), None)

    def prepend(self, page: Page) -> int:
        fresh = [line for line in page.lines if not self.lines or line.place < self.lines[0].place]
        self.lines[:0] = fresh
        self._places[:0] = [line.place for line in fresh]
        self.at_begin = page.at_edge
        return len(fresh)

    def append(self, page: Page) -> bool:
        """Take in lines from the last one on, which may have grown; whether anything is new."""
        last = self.lines[-1] if self.lines else None
        fresh = [line for line in page.lines if last is None or line.place >= last.place]
        self.at_end = page.at_edge
        if not fresh or fresh == [last]:
            return False
        if last is not None and fresh[0].place == last.place:
            self.lines.pop()
            self._places.pop()
        self.lines += fresh
        self._places += [line.place for line in fresh]
        return True

    def trim(self, first: int, last: int) -> int:
        """Let lines go that are far from `first` .. `last`; how many went at the beginning."""
        surplus = len(self.lines) - KEPT
        if surplus <= 0:
            return 0
        at_end = min(surplus, max(0, len(self.lines) - last - KEPT // 3))
        if at_end:
            del self.lines[-at_end:], self._places[-at_end:]
            self.at_end = False
        at_begin = min(surplus - at_end, max(0, first - KEPT // 3))
        if at_begin:
            del self.lines[:at_begin], self._places[:at_begin]
            self.at_begin = False
        return at_begin


TOGETHER = 16
"""Lines asked for at once where hits may be near each other."""


class FilteredLines:
    """The lines with hits. While the search goes on there may be more of them the next time."""

    def __init__(self, source: LineSource, search: LogSearch) -> None:
        self._source = source
        self._search = search

    @property
    def _hits(self) -> Hits:
        return self._search.hits

    async def before(self, place: Place, count: int) -> Page:
        """Up to `count` lines with hits before the line that holds `place`. Raises LogUnreadable."""
        lines: list[LogLine] = []
        own = (await self._source.after(place, 1)).lines
        before = own[0].place if own else place
        while len(lines) < count and (hit := self._hits.last_before(before)) is not None:
            page = (await self._source.after(hit, 1)).lines
            if not page or page[0].place >= before:
                break
            near = (*(await self._source.before(page[0].place, TOGETHER)).lines, page[0])
            found = [line for line in near if self._is_hit(line)]
            lines[:0] = found
            before = near[0].place
        kept = lines[-count:]
        first = kept[0].place if kept else before
        return Page(tuple(kept), self._hits.last_before(first) is None)

    async def after(self, place: Place, count: int) -> Page:
        """Up to `count` lines with hits from the one that holds `place` on. Raises LogUnreadable."""
        lines: list[LogLine] = []
        own = (await self._source.after(place, 1)).lines
        at = own[0].place if own else place
        while len(lines) < count and (hit := self._hits.next_after(at)) is not None:
            page = (await self._source.after(hit, TOGETHER)).lines
            if not page or page[-1].end <= at:
                break
            lines += [line for line in page if self._is_hit(line)]
            at = page[-1].end
        kept = lines[:count]
        last = kept[-1].end if kept else at
        return Page(tuple(kept), self._hits.next_after(last) is None)

    def _is_hit(self, line: LogLine) -> bool:
        hit = self._hits.next_after(line.place)
        return hit is not None and hit < line.end


AHEAD = 200
"""Lines that are held ready beyond the screen, and asked for at once."""
LAST = 1 << 200
"""A place after every line."""


class Filled(NamedTuple):
    """How far down the lines on the screen moved, and whether any were appended."""

    moved: int
    appended: bool


class LogFeed:
    """A window of lines on one source. `jump` and `fill` raise LogUnreadable."""

    def __init__(self, source: LineSource) -> None:
        self.source = source
        self.window = LogWindow()

    async def jump(self, place: Place | None) -> None:
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
