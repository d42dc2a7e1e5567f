"""What logs have in common whose lines are all held in memory: counting them, and finding some of them."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Protocol

from jobtui.backends.merged_search import MergedSearch
from jobtui.model.pages import Level, LogLine, LogSearch, Place, Query, Stretch

STRETCH_LINES = 50


class HeldLog(Protocol):
    """A log that has its `lines`, in the order of their places."""

    @property
    def lines(self) -> Sequence[LogLine]:
        """All that it shows."""
        ...

    async def work(self) -> bool:
        """There is nothing more to look through: False."""
        return False

    def stretches(self) -> Iterator[Stretch]:
        """Lines next to each other, counted."""
        held = self.lines
        for at in range(0, len(held), STRETCH_LINES):
            lines = held[at : at + STRETCH_LINES]
            errors = sum(line.level is Level.ERROR for line in lines)
            time = next((line.at for line in lines if line.at is not None), None)
            yield Stretch(lines[0].place, time, len(lines), errors)

    async def next_error(self, place: Place, *, forward: bool) -> Place | None:
        """The first error behind the line at `place`, or the last before it."""
        lines = self.lines
        if forward:
            wanted = lines[bisect_right(lines, place, key=place_of) :]
        else:
            wanted = lines[: bisect_left(lines, place, key=place_of)][::-1]
        return next((line.place for line in wanted if line.level is Level.ERROR), None)

    async def number_of(self, place: Place) -> int | None:
        """Its lines have no numbers that mean anything elsewhere: None."""
        return None

    async def place_of_line(self, number: int) -> Place | None:
        """Its lines have no numbers: None."""
        return None

    def search(self, query: Query, around: Place) -> LogSearch:
        """A search through all that it shows; not yet begun."""
        return MergedSearch(self, query)


def place_of(line: LogLine) -> Place:
    """Where a line begins."""
    return line.place
