"""Entries that continue a record: what its process wrote next, up to the next record."""

import asyncio
from collections.abc import Callable, Iterable, Mapping

from jobtui.backends.journal.contract import JournalReader
from jobtui.backends.journal.streams import StreamNames
from jobtui.model.journal import At, Beside, Cursor, Fields, JournalEntry, time_at
from jobtui.model.lines import RawLine
from jobtui.model.pages import Place

CONTINUING_ENTRIES = 100
"""Entries of one record at most."""
ENTRIES_READ = 100_000
"""Entries that are looked at for one question."""

READ_AT_ONCE = 1_000

_Process = tuple[str, int | None]


class Continuations:
    """Takes the entries of one stream in order; `found` has what follows the wanted ones, by cursor."""

    def __init__(self, wanted: Mapping[str, Place], ends: Callable[[str], bool]) -> None:
        self.found: dict[str, list[str]] = {}
        self._wanted = set(wanted)
        self._ends = ends
        self._open: dict[_Process, list[str]] = {}
        self._read = 0

    @property
    def is_done(self) -> bool:
        """Whether no more can come, or enough was looked at."""
        return (not self._wanted and not self._open) or self._read >= ENTRIES_READ

    def take(self, entries: Iterable[JournalEntry]) -> None:
        """Go on with these."""
        for entry in entries:
            self._read += 1
            self._take(entry, (entry.boot, entry.pid))

    def _take(self, entry: JournalEntry, process: _Process) -> None:
        if entry.cursor in self._wanted:
            self._wanted.remove(entry.cursor)
            self._open[process] = self.found[entry.cursor] = []
            return
        texts = self._open.get(process)
        if texts is None:
            return
        if self._ends(entry.message) or len(texts) >= CONTINUING_ENTRIES:
            del self._open[process]
        else:
            texts.append(entry.message)


class EntriesBehind:
    """Answers what stands behind records of one journal, with a reader of its own."""

    def __init__(self, make_reader: Callable[[], JournalReader], names: StreamNames) -> None:
        self._make_reader = make_reader
        self._names = names
        self._reader: JournalReader | None = None
        self._turn = asyncio.Lock()

    def _opened(self) -> JournalReader:
        if self._reader is None:
            self._reader = self._make_reader()
        return self._reader

    async def lines_at(self, source: str, cursor: str, most: int) -> tuple[RawLine, ...]:
        """The line of an entry of one stream, and up to `most` that its process wrote next.

        Nothing when it is there no more, or the stream is not one of this journal. Raises SourceError.
        """
        stream = self._names.stream_called(source)
        if stream is None:
            return ()
        async with self._turn:
            fields = await self._opened().fields(Cursor(cursor))
            if fields is None:
                return ()
            found = await self._opened().forward(Beside(Cursor(cursor)), (stream.matches,), most)
        process = _text(fields, "_BOOT_ID"), _text(fields, "_PID")
        own = (entry for entry in found.entries if (entry.boot, str(entry.pid or "")) == process)
        first = b"\n".join(fields.get("MESSAGE", ())).decode("utf-8", "replace")
        return (RawLine(None, 0, first), *(RawLine(None, 0, entry.message) for entry in own))

    async def continuations(
        self, source: str, wanted: Mapping[str, Place], ends: Callable[[str], bool]
    ) -> dict[str, list[str]]:
        """What follows some entries of a stream, in their process, up to where `ends` is true of a text.

        `wanted` are their cursors with their places. Read in one go. Raises SourceError.
        """
        stream = self._names.stream_called(source)
        if stream is None or not wanted:
            return {}
        search = Continuations(wanted, ends)
        start: At | Beside = At(time_at(min(wanted.values())))
        while True:
            async with self._turn:
                found = await self._opened().forward(start, (stream.matches,), READ_AT_ONCE)
            search.take(found.entries)
            if found.at_edge or found.cursor is None or search.is_done:
                return search.found
            start = Beside(found.cursor)

    async def aclose(self) -> None:
        """Release the reader. May be called twice."""
        reader, self._reader = self._reader, None
        if reader is not None:
            await reader.aclose()


def _text(fields: Fields, name: str) -> str:
    return b"".join(fields.get(name, ())[:1]).decode("ascii", "replace")
