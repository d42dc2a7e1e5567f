"""Lines of a journal that are held: some stretches of lines next to each other, and where to read on."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from jobtui.backends.journal.page_lines import Kept
from jobtui.model.journal import Cursor
from jobtui.model.pages import LogLine, Place

RUN_LINES = 6_000
"""Lines held of one stretch; those farthest from what is read go first."""
RUNS = 3
"""Stretches held beside the end of the journal."""


class Run:
    """Lines next to each other. `first` and `last` are where to read on; None where there is nothing yet.

    `at_begin`: the journal has nothing before it. `at_end`: it is followed, so that all that comes is in it.
    """

    def __init__(self, kept: Sequence[Kept], first: Cursor | None, last: Cursor | None) -> None:
        self.lines = [line for _, line in kept]
        self.cursors = [cursor for cursor, _ in kept]
        self.first = first
        self.last = last
        self.at_begin = False
        self.at_end = False

    def __len__(self) -> int:
        return len(self.lines)

    @property
    def begin(self) -> Place:
        """The place of its first line."""
        return self.lines[0].place if self.lines else 0

    @property
    def end(self) -> Place:
        """The place behind its last line."""
        return self.lines[-1].end if self.lines else 0

    def holds(self, place: Place) -> bool:
        """Whether `place` is in it, or between its lines."""
        return bool(self.lines) and self.begin <= place < self.end

    def index(self, place: Place) -> int:
        """Which line holds `place`, or is the first one behind it."""
        return bisect_right(self.lines, place, key=_end_of)

    def append(self, kept: Sequence[Kept], last: Cursor | None) -> None:
        """Take in lines behind the last one."""
        self.lines += [line for _, line in kept]
        self.cursors += [cursor for cursor, _ in kept]
        self.last = last or self.last

    def prepend(self, kept: Sequence[Kept], first: Cursor | None) -> None:
        """Take in lines before the first one."""
        self.lines[:0] = [line for _, line in kept]
        self.cursors[:0] = [cursor for cursor, _ in kept]
        self.first = first or self.first

    def join(self, behind: "Run") -> None:
        """Take in another stretch that goes on from somewhere in this one."""
        at = bisect_left(behind.lines, self.end, key=_place_of)
        self.append(list(zip(behind.cursors[at:], behind.lines[at:], strict=True)), behind.last)
        self.at_end = behind.at_end

    def cut_begin(self, most: int = RUN_LINES) -> None:
        """Let go the first lines beyond `most`."""
        if (surplus := len(self.lines) - most) > 0:
            del self.lines[:surplus], self.cursors[:surplus]
            self.first, self.at_begin = self.cursors[0], False

    def cut_end(self, most: int = RUN_LINES) -> None:
        """Let go the last lines beyond `most`."""
        if len(self.lines) > most:
            del self.lines[most:], self.cursors[most:]
            self.last, self.at_end = self.cursors[-1], False


def _place_of(line: LogLine) -> Place:
    return line.place


def _end_of(line: LogLine) -> Place:
    return line.end
