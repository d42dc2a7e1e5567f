"""A journal in memory that does what the contract says, and fails when a test wants it to."""

import asyncio
from bisect import bisect_left
from collections.abc import Iterable, Sequence

import msgspec

from jobtui.formats.journal_export import ExportParser, entry_of_export, stored_fields
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.journal import (
    At,
    Beside,
    Cursor,
    Fields,
    Head,
    JournalCondition,
    JournalEntry,
    Match,
    Matches,
    Slice,
    Start,
    Tail,
)
from jobtui.model.source_errors import SourceError

Row = tuple[JournalEntry, Fields]
T0 = Nanos(1_795_207_000 * SECOND)
"""When entries that are made up begin."""


class MemoryJournal:
    """Entries in order. Readers of it see what is appended, and an error while `broken` says one."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self.rows: list[Row] = list(rows)
        self.broken = ""
        self.conditions = JournalCondition()
        self.calls = 0
        self._deleted = 0

    def append(self, *rows: Row) -> None:
        self.rows += rows

    def write(self, message: str, at_s: float | None = None, **fields: str | int) -> JournalEntry:
        before = self.rows[-1][0].at if self.rows else T0
        at = Nanos(before + SECOND) if at_s is None else Nanos(T0 + round(at_s * SECOND))
        row = row_of(len(self.rows) + self._deleted, at, message, **fields)
        self.rows.append(row)
        return row[0]

    def delete_oldest(self, count: int) -> None:
        del self.rows[:count]
        self._deleted += count

    def reader(self, name: str = "memory") -> "MemoryReader":
        return MemoryReader(self, name)


class MemoryReader:
    def __init__(self, journal: MemoryJournal, name: str) -> None:
        self.journal = journal
        self._name = name
        self._busy = False
        self.closed = 0

    @property
    def name(self) -> str:
        return self._name

    def _check(self) -> None:
        self.journal.calls += 1
        if self.closed:
            raise SourceError(f"{self._name}: is closed")
        if self.journal.broken:
            raise SourceError(f"{self._name}: {self.journal.broken}")

    async def _turn(self) -> None:
        assert not self._busy, "two calls at once"
        self._busy = True
        try:
            await asyncio.sleep(0)
        finally:
            self._busy = False
        self._check()

    def _index(self, start: Start) -> tuple[int, bool]:
        """Where to begin forward: the first entry; and whether the one to begin beside is gone."""
        rows = self.journal.rows
        match start:
            case Head():
                return 0, False
            case Tail():
                return len(rows), False
            case At(time):
                return next((n for n, (entry, _) in enumerate(rows) if entry.at >= time), len(rows)), False
            case Beside(cursor):
                numbers = [_number(entry.cursor) for entry, _ in rows]
                at = bisect_left(numbers, _number(cursor))
                found = at < len(rows) and rows[at][0].cursor == cursor
                return at + found, not found

    async def forward(self, start: Head | At | Beside, matches: Matches, most: int) -> Slice:
        await self._turn()
        return self.take(start, matches, most)

    def take(self, start: Start, matches: Matches, most: int) -> Slice:
        rows = self.journal.rows
        begin, lost = self._index(start)
        entries: list[JournalEntry] = []
        at = begin
        while at < len(rows) and len(entries) < most:
            if fits(rows[at][1], matches):
                entries.append(rows[at][0])
            at += 1
        cursor = rows[at - 1][0].cursor if at else None
        edge = not any(fits(fields, matches) for _, fields in rows[at:])
        return Slice(tuple(entries), cursor, edge, lost)

    async def backward(self, start: Tail | At | Beside, matches: Matches, most: int) -> Slice:
        await self._turn()
        rows = self.journal.rows
        begin, lost = self._index(start)
        if isinstance(start, Beside) and not lost:
            begin -= 1
        entries: list[JournalEntry] = []
        at = begin
        while at > 0 and len(entries) < most:
            at -= 1
            if fits(rows[at][1], matches):
                entries.append(rows[at][0])
        edge = not any(fits(fields, matches) for _, fields in rows[:at])
        return Slice(tuple(entries[::-1]), rows[at][0].cursor if rows else None, edge, lost)

    async def fields(self, cursor: Cursor) -> Fields | None:
        await self._turn()
        return next((fields for entry, fields in self.journal.rows if entry.cursor == cursor), None)

    async def values(self, field: str) -> tuple[str, ...]:
        await self._turn()
        found = {value.decode() for _, fields in self.journal.rows for value in fields.get(field, ())}
        return tuple(sorted(found))

    async def condition(self) -> JournalCondition:
        await self._turn()
        return self.journal.conditions

    def follow(self, start: Start, matches: Matches) -> "MemoryFollowing":
        return MemoryFollowing(self, start, matches)

    async def aclose(self) -> None:
        self.closed += 1


class MemoryFollowing:
    def __init__(self, reader: MemoryReader, start: Start, matches: Matches) -> None:
        self._reader = MemoryReader(reader.journal, reader.name)
        if isinstance(start, Tail):
            rows = reader.journal.rows
            start = Beside(rows[-1][0].cursor) if rows else Head()
        self._start: Start = start
        self._matches = matches
        self.closed = 0

    async def take(self, most: int) -> Slice:
        await self._reader._turn()
        found = self._reader.take(self._start, self._matches, most)
        if found.cursor is not None:
            self._start = Beside(found.cursor)
        return found

    async def changed(self, timeout_s: float) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout_s
        while loop.time() < until:
            rows = self._reader.journal.rows
            if rows and not (isinstance(self._start, Beside) and rows[-1][0].cursor == self._start.cursor):
                return
            await asyncio.sleep(min(0.01, timeout_s))

    async def aclose(self) -> None:
        self.closed += 1
        await self._reader.aclose()


def fits(fields: Fields, matches: Matches) -> bool:
    return not matches or any(all(_has(fields, match) for match in group) for group in matches)


def _has(fields: Fields, match: Match) -> bool:
    field, value = match
    return value.encode() in fields.get(field, ())


def _number(cursor: str) -> int:
    """Where an entry of a MemoryJournal stands; cursors of other forms stand at the beginning."""
    digits = cursor.partition("i=")[2].partition(";")[0]
    return int(digits, 16) if digits else -1


NAMES = {
    "host": "_HOSTNAME", "unit": "_SYSTEMD_UNIT", "identifier": "SYSLOG_IDENTIFIER", "pid": "_PID",
    "container": "CONTAINER_NAME", "container_id": "CONTAINER_ID_FULL", "boot": "_BOOT_ID",
    "machine": "_MACHINE_ID", "monotonic_us": "__MONOTONIC_TIMESTAMP", "priority": "PRIORITY",
}  # fmt: skip


def row_of(number: int, at: Nanos, message: str, **fields: str | int) -> Row:
    cursor = Cursor(f"s=0;i={number:x};t={at // 1000:x}")
    entry = JournalEntry(cursor=cursor, at=at, message=message, size=len(message), **fields)  # type: ignore[arg-type]
    named: Fields = {NAMES[name]: (str(value).encode(),) for name, value in fields.items() if name in NAMES}
    return entry, {**named, "MESSAGE": (message.encode(),)}


def rows_of_export(data: bytes, first: int = 0) -> list[Row]:
    fresh = data if data.startswith(b"\n") else b"\n\n" + data
    parts = fresh.split(b"\n\n__REALTIME_TIMESTAMP=")
    text = b"".join(
        b"__CURSOR=s=0;i=%x\n__REALTIME_TIMESTAMP=%s\n\n" % (first + n, part.rstrip(b"\n"))
        for n, part in enumerate(parts[1:])
    )
    found = []
    for fields in ExportParser().feed(text):
        entry = entry_of_export(fields)
        assert entry is not None
        found.append((entry, stored_fields(fields)))
    return found


def in_order(rows: Sequence[Row]) -> list[Row]:
    ordered = sorted(rows, key=lambda row: row[0].at)
    return [
        (msgspec.structs.replace(entry, cursor=Cursor(f"s=0;i={n:x}")), fields)
        for n, (entry, fields) in enumerate(ordered)
    ]
