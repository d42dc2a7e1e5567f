"""Caches the lines around the screen of a source that may be slow. No widgets."""

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter

import msgspec

from jobtui.analysis.log_shapes import continues, goes_on
from jobtui.model.clock import Nanos
from jobtui.model.pages import Hits, Level, LineSource, LogLine, Page

KEPT = 1_200
"""Lines held at most; those farthest from the screen are dropped first."""


class LogWindow:
    """Adjacent lines. `at_begin`, `at_end`: the log has nothing before, after them."""

    def __init__(
        self, lines: tuple[LogLine, ...] = (), *, at_begin: bool = False, at_end: bool = False
    ) -> None:
        self.lines = list(lines)
        self.at_begin = at_begin
        self.at_end = at_end

    def __len__(self) -> int:
        return len(self.lines)

    def index_of(self, position: int) -> int:
        """The index of the line that holds `position`, else of the last one before it, else 0."""
        return max(0, bisect_right(self.lines, position, key=attrgetter("position")) - 1)

    def holds(self, position: int) -> bool:
        return bool(self.lines) and self.lines[0].position <= position < self.lines[-1].end

    def time_at(self, index: int) -> Nanos | None:
        """The time of a line. If it has none, that of the nearest line before it, else after it."""
        times = (line.at for line in (*reversed(self.lines[: index + 1]), *self.lines[index + 1 :]))
        return next((at for at in times if at is not None), None)

    def prepend(self, page: Page) -> int:
        fresh = [line for line in page.lines if not self.lines or line.position < self.lines[0].position]
        self.lines[:0] = fresh
        self.at_begin = page.at_edge
        return len(fresh)

    def append(self, page: Page) -> bool:
        """Add lines from the last one on, which may have grown. True if anything is new."""
        last = self.lines[-1] if self.lines else None
        fresh = [line for line in page.lines if last is None or line.position >= last.position]
        self.at_end = page.at_edge
        if not fresh or fresh == [last]:
            return False
        if last is not None and fresh[0].position == last.position:
            self.lines.pop()
        self.lines += fresh
        return True

    def trim(self, first: int, last: int) -> int:
        """Drop lines that are far from `first` .. `last`. Returns how many were dropped at the beginning."""
        surplus = len(self.lines) - KEPT
        if surplus <= 0:
            return 0
        at_end = min(surplus, max(0, len(self.lines) - last - KEPT // 3))
        if at_end:
            del self.lines[-at_end:]
            self.at_end = False
        at_begin = min(surplus - at_end, max(0, first - KEPT // 3))
        if at_begin:
            del self.lines[:at_begin]
            self.at_begin = False
        return at_begin


TOGETHER = 16
"""Lines asked for at once where hits may be near each other."""


class FilteredLines(LineSource):
    """The lines with hits. While the search runs, more may be found."""

    def __init__(self, source: LineSource, hits: Callable[[], Hits]) -> None:
        self._source = source
        self._hits = hits

    async def before(self, position: int, count: int) -> Page:
        lines: list[LogLine] = []
        own = (await self._source.after(position, 1)).lines
        before = own[0].position if own else position
        while len(lines) < count and (hit := self._hits().last_before(before)) is not None:
            page = (await self._source.after(hit, 1)).lines
            if not page or page[0].position >= before:
                break
            near = (*(await self._source.before(page[0].position, TOGETHER)).lines, page[0])
            found = [line for line in near if self._is_hit(line)]
            lines[:0] = found
            before = near[0].position
        kept = lines[-count:]
        first = kept[0].position if kept else before
        return Page(tuple(kept), self._hits().last_before(first) is None)

    async def after(self, position: int, count: int) -> Page:
        lines: list[LogLine] = []
        own = (await self._source.after(position, 1)).lines
        at = own[0].position if own else position
        while len(lines) < count and (hit := self._hits().next_after(at)) is not None:
            page = (await self._source.after(hit, TOGETHER)).lines
            if not page or page[-1].end <= at:
                break
            lines += [line for line in page if self._is_hit(line)]
            at = page[-1].end
        kept = lines[:count]
        last = kept[-1].end if kept else at
        return Page(tuple(kept), self._hits().next_after(last) is None)

    def _is_hit(self, line: LogLine) -> bool:
        hit = self._hits().next_after(line.position)
        return hit is not None and hit < line.end


RAW = 500
"""Lines asked for at once where only some of them are shown."""
LOOKED_AT = 2_000
"""The most lines folded at once."""
FOLDED = 500
"""The most lines that are folded into one."""


class KeptLines(LineSource):
    """The lines of the records whose first line passes a test."""

    def __init__(self, source: LineSource, keeps: Callable[[LogLine], bool]) -> None:
        self._source = source
        self._keeps = keeps
        self._done: tuple[int, int, LogLine | None] = (-1, -1, None)
        """The last line that was given, up to where lines after it were read, and the record there."""

    async def before(self, position: int, count: int) -> Page:
        kept: list[LogLine] = []
        while True:
            page = await self._source.before(position, RAW)
            kept[:0] = self._passed(page.lines, None)[0]
            if page.at_edge or not page.lines or len(kept) >= count:
                return Page(tuple(kept[-count:]), page.at_edge and len(kept) <= count)
            position = page.lines[0].position

    async def after(self, position: int, count: int) -> Page:
        own = (await self._source.after(position, 1)).lines
        kept: list[LogLine] = []
        at, head = own[0].position if own else position, None
        if own and self._done[0] == at:
            kept, (_, at, head) = list(own), self._done
        else:
            head = self._passed((await self._source.before(at, RAW)).lines, None)[1]
        while True:
            page = await self._source.after(at, RAW)
            passing, head = self._passed((line for line in page.lines if line.position >= at), head)
            kept += passing
            if page.at_edge or not page.lines or len(kept) > count:
                break
            at = page.lines[-1].end
        if kept and len(kept) <= count:
            seen = page.lines[-1].position if page.lines else at
            self._done = kept[-1].position, max(kept[-1].end, seen), head
        return Page(tuple(kept[:count]), page.at_edge and len(kept) <= count)

    def _passed(self, lines: Iterable[LogLine], head: LogLine | None) -> tuple[list[LogLine], LogLine | None]:
        """The kept lines, and the first line of the record they end in; `head` is that before."""
        kept: list[LogLine] = []
        is_kept = head is not None and self._keeps(head)
        for line in lines:
            if head is None or not continues(head, line):
                head, is_kept = line, self._keeps(line)
            if is_kept:
                kept.append(line)
        return kept, head


class Folds:
    """Which runs of lines are folded: none or all, except those in some ranges of positions."""

    def __init__(self) -> None:
        self.are_all = False
        self._others: set[tuple[int, int]] = set()

    def __bool__(self) -> bool:
        return self.are_all or bool(self._others)

    def holds(self, position: int) -> bool:
        return self.are_all != any(begin <= position < end for begin, end in self._others)

    def toggle(self, begin: int, end: int) -> None:
        found = {one for one in self._others if one[0] <= begin < one[1]}
        self._others = self._others - found if found else {*self._others, (begin, end)}

    def toggle_all(self) -> None:
        self.are_all = not self.are_all
        self._others.clear()


def runs_of(lines: Iterable[LogLine]) -> Iterator[list[LogLine]]:
    """Runs of lines that may be folded into one, of FOLDED lines at most; most are single lines."""
    run: list[LogLine] = []
    for line in lines:
        if run and (len(run) >= FOLDED or not goes_on(run[0], run[-1], line)):
            yield run
            run = []
        run.append(line)
    if run:
        yield run


def folded(run: Sequence[LogLine]) -> LogLine:
    """One line for a run: its first, with the level of the worst; and the last error that it would hide."""
    head = run[0]
    level = min((line.level for line in run), key=SEVERITY.index)
    worst = next((line.text.strip() for line in reversed(run[1:]) if line.level is Level.ERROR), "")
    return msgspec.structs.replace(
        head,
        end=run[-1].end,
        size=sum(line.size for line in run),
        level=level,
        text=f"{head.text} … {worst}" if worst else head.text,
        folded=len(run) - 1,
    )


SEVERITY = (Level.ERROR, Level.WARNING, Level.PLAIN)


class FoldedLines(LineSource):
    """The lines of a source, runs of them folded. A new run begins at any position that is asked for."""

    def __init__(self, source: LineSource, folds: Folds) -> None:
        self._source = source
        self._folds = folds

    async def before(self, position: int, count: int) -> Page:
        lines: list[LogLine] = []
        while True:
            page = await self._source.before(lines[0].position if lines else position, RAW)
            lines[:0] = page.lines
            shown = self._folded(lines)
            if page.at_edge or not page.lines or len(shown) > count or len(lines) >= LOOKED_AT:
                break
        # The first run may have begun earlier
        whole = shown if page.at_edge or len(shown) < 2 else shown[1:]
        return Page(tuple(whole[-count:]), page.at_edge and len(whole) <= count)

    async def after(self, position: int, count: int) -> Page:
        lines: list[LogLine] = []
        while True:
            start = lines[-1].end if lines else position
            page = await self._source.after(start, RAW)
            lines += page.lines if not lines else [line for line in page.lines if line.position >= start]
            shown = self._folded(lines)
            if page.at_edge or not page.lines or len(shown) > count or len(lines) >= LOOKED_AT:
                return Page(tuple(shown[:count]), page.at_edge and len(shown) <= count)

    def _folded(self, lines: Iterable[LogLine]) -> list[LogLine]:
        shown: list[LogLine] = []
        for run in runs_of(lines):
            is_folded = len(run) > 1 and self._folds.holds(run[0].position)
            shown += [folded(run)] if is_folded else run
        return shown


AHEAD = 200
"""Lines that are kept ready beyond the screen, and asked for at once."""
LAST: int = 1 << 200
FIRST = -LAST
"""Positions after and before every line."""


class LogFeed:
    """A window of lines on one source. `jump` and `fill` raise LogUnreadable."""

    def __init__(self, source: LineSource) -> None:
        self.source = source
        self.window = LogWindow()

    async def jump(self, position: int | None) -> None:
        before = await self.source.before(LAST if position is None else position, AHEAD)
        window = LogWindow(before.lines, at_begin=before.at_edge, at_end=position is None)
        if position is not None:
            window.append(await self.source.after(position, AHEAD))
        self.window = window

    def wants(self, first: int, last: int) -> int:
        """Where lines beyond those on the screen, `first` .. `last`, are missing: 1 after, -1 before."""
        window = self.window
        if len(window) and not window.at_end and last + AHEAD > len(window):
            return 1
        return -1 if len(window) and not window.at_begin and first < AHEAD else 0

    async def fill(self, first: int, last: int) -> int | None:
        """Ask for lines beyond `first` .. `last`. Gives how far down these moved; None if none was asked."""
        window, wanted = self.window, self.wants(first, last)
        if wanted > 0:
            page = await self.source.after(window.lines[-1].position, AHEAD)
            if not window.append(page):
                window.at_end = True
            return -window.trim(first, last)
        if wanted < 0:
            page = await self.source.before(window.lines[0].position, AHEAD)
            moved = window.prepend(page)
            return moved - window.trim(first + moved, last + moved)
        return None
