"""The few lines of a log that are held: those on the screen and some around them. Plain data, no widget."""

from bisect import bisect_right

from jobtui.model.pages import LogLine, Page, Place

KEPT = 1_200
"""Lines held at most; those farthest from the screen are let go first."""


class LogWindow:
    """Lines next to each other. `at_begin`, `at_end`: the log has nothing before them, behind them."""

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
        """Which line holds `place`, or is the last one before it; the first one when all are behind it."""
        return max(0, bisect_right(self._places, place) - 1)

    def holds(self, place: Place) -> bool:
        """Whether `place` is in or between its lines."""
        return bool(self.lines) and self.lines[0].place <= place < self.lines[-1].end

    def prepend(self, page: Page) -> int:
        """Take in the lines before the first one; how far the others moved down."""
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
