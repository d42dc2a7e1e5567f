"""Only those lines of a log in which a search found something, at the places they have in the log."""

from jobtui.model.pages import Hits, LineSource, LogLine, LogSearch, Page, Place

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
