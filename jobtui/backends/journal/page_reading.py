"""Reading a journal in pieces of lines, in both directions. One call in flight; errors as LogUnreadable."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple, TypeVar

from jobtui.backends.base import SourceError
from jobtui.backends.journal.contract import JournalReader
from jobtui.backends.journal.page_lines import Kept, Selection, Shown, placed_before, placed_behind
from jobtui.model.journal import At, Beside, Cursor, Head, JournalEntry, Tail
from jobtui.model.pages import LogUnreadable, Place

SLICE_ENTRIES = 200
"""Entries made into lines before others have their turn."""

T = TypeVar("T")


class Piece(NamedTuple):
    """Lines next to each other; `cursor` is where to read on, None in an empty journal."""

    lines: list[Kept]
    cursor: Cursor | None
    at_edge: bool


class PieceReader:
    """Reads a selection of one journal's entries. The reader is made when it is first needed."""

    def __init__(self, make_reader: Callable[[], JournalReader], selection: Selection) -> None:
        self._make_reader = make_reader
        self._selection = selection
        self._reader: JournalReader | None = None
        self._turn = asyncio.Lock()
        self._closed = False

    @property
    def reader(self) -> JournalReader:
        """The reader it uses. Raises LogUnreadable when it is closed."""
        if self._closed:
            raise LogUnreadable("the log is closed")
        if self._reader is None:
            self._reader = self._make_reader()
        return self._reader

    async def forward(self, start: Head | At | Beside, count: int, behind: Place) -> Piece:
        """Up to `count` entries from `start` on, their lines at places behind `behind`."""
        matches = self._selection.matches
        found = await self._ask(lambda: self.reader.forward(start, matches, count))
        lines = placed_behind(await self.shown(found.entries), behind)
        cursor = found.entries[-1].cursor if found.entries else found.cursor
        return Piece(lines, cursor, found.at_edge)

    async def backward(self, start: Tail | At | Beside, count: int, limit: Place) -> Piece:
        """Up to `count` entries before `start`, their lines at places before `limit`."""
        matches = self._selection.matches
        found = await self._ask(lambda: self.reader.backward(start, matches, count))
        entries = found.entries if found.at_edge else whole_microseconds(found.entries)
        cursor = entries[0].cursor if entries else found.cursor
        return Piece(placed_before(await self.shown(entries), limit), cursor, found.at_edge)

    async def shown(self, entries: Sequence[JournalEntry]) -> list[Shown]:
        """The entries that are shown with their lines; others have their turn meanwhile."""
        found: list[Shown] = []
        for at in range(0, len(entries), SLICE_ENTRIES):
            found += self._selection.shown(entries[at : at + SLICE_ENTRIES])
            await asyncio.sleep(0)
        return found

    async def _ask(self, call: Callable[[], Awaitable[T]]) -> T:
        async with self._turn:
            try:
                return await call()
            except SourceError as error:
                raise LogUnreadable(str(error)) from error

    async def aclose(self) -> None:
        """Release the reader. May be called twice."""
        self._closed = True
        reader, self._reader = self._reader, None
        if reader is not None:
            await reader.aclose()


def whole_microseconds(entries: tuple[JournalEntry, ...]) -> tuple[JournalEntry, ...]:
    """Entries without the first ones, of whose microsecond there may be more before them.

    Their places count from the beginning of a microsecond. All of them where there is but one.
    """
    for index, entry in enumerate(entries):
        if entry.at != entries[0].at:
            return entries[index:]
    return entries
