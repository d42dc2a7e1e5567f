"""Journals in memory that do what the contract says, also with what a captured Sirepo would have in them."""

import asyncio
from bisect import bisect_left
from collections.abc import AsyncGenerator, Iterable, Sequence

import msgspec

from jobtui.backends.journal.client import Ask, ExportReader, Following, HostStarts
from jobtui.formats.journal_export import ExportParser, entry_of_export
from jobtui.model import journal as model
from jobtui.model.clock import SECOND, TIME_LENGTH, Nanos, latest
from jobtui.model.health import SourceError
from jobtui.model.journal import JournalEntry
from tests.rows import CAPTURES

Fields = dict[str, tuple[bytes, ...]]
"""All fields of one entry as stored; a field may occur several times."""
Row = tuple[model.JournalEntry, Fields]
T0 = Nanos(1_795_207_000 * SECOND)
"""When entries that are made up begin."""
UNIT = "sirepo_job_supervisor.service"


class MemoryJournal:
    """Entries in order. Readers of it see what is appended, and an error while `broken` says one."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self.rows: list[Row] = list(rows)
        self.broken = ""
        self.conditions = model.JournalCondition()
        self.calls = 0
        self._deleted = 0

    def append(self, *rows: Row) -> None:
        self.rows += rows

    def write(self, message: str, at_s: float | None = None, **fields: str | int) -> model.JournalEntry:
        before = self.rows[-1][0].at if self.rows else T0
        at = Nanos(before + SECOND) if at_s is None else Nanos(T0 + round(at_s * SECOND))
        row = row_of(len(self.rows) + self._deleted, at, message, **fields)
        self.rows.append(row)
        return row[0]

    def log(self, message: str, at_s: float | None = None, host: str = "v3") -> model.JournalEntry:
        """Write a line of the supervisor on this host."""
        return self.write(message, at_s, unit=UNIT, host=host, pid=7)

    def delete_oldest(self, count: int) -> None:
        del self.rows[:count]
        self._deleted += count

    def index(self, start: model.Start) -> tuple[int, bool]:
        """Where the first entry from `start` on is, and whether that is the one of its cursor."""
        if isinstance(start, model.Begin):
            return 0, False
        if isinstance(start, model.Tail):
            return len(self.rows), False
        if isinstance(start, model.At):
            later = (nth for nth, (entry, _) in enumerate(self.rows) if entry.at >= start.time)
            return next(later, len(self.rows)), False
        at = bisect_left(self.rows, _number(start.cursor), key=lambda row: _number(row[0].cursor))
        return at, at < len(self.rows) and self.rows[at][0].cursor == start.cursor

    def reader(self, name: str = "memory") -> "MemoryReader":
        return MemoryReader(self, name)


PART = 500
"""So many entries are looked at before some are given, as a reader may have enough."""


class MemoryReader(ExportReader):
    def __init__(self, journal: MemoryJournal, name: str) -> None:
        self.journal = journal
        self.name = name
        self._is_closed = False

    async def turn(self) -> None:
        await asyncio.sleep(0)
        self.journal.calls += 1
        if self._is_closed:
            raise SourceError(f"{self.name}: is closed")
        if self.journal.broken:
            raise SourceError(f"{self.name}: {self.journal.broken}")

    async def _ask(self, asks: Sequence[Ask]) -> AsyncGenerator[list[model.JournalEntry], None]:
        for ask in asks:
            await self.turn()
            begin, is_there = self.journal.index(ask.start)
            rows = self.journal.rows[begin:]
            if ask.back:
                rows = self.journal.rows[: begin + is_there][::-1]
            for at in range(0, len(rows), PART):
                yield [entry for entry, fields in rows[at : at + PART] if fits(fields, ask.matches)]

    async def values(self, *fields: str) -> dict[str, tuple[str, ...]]:
        await self.turn()
        rows = [row for _, row in self.journal.rows]
        found = {field: {value.decode() for row in rows for value in row.get(field, ())} for field in fields}
        return {field: tuple(sorted(values)) for field, values in found.items()}

    async def condition(self) -> model.JournalCondition:
        await self.turn()
        return self.journal.conditions

    def follow(self, start: model.FollowStart | HostStarts, matches: model.Matches) -> Following:
        assert not isinstance(start, HostStarts)
        return MemoryFollowing(MemoryReader(self.journal, self.name), start, matches)

    async def aclose(self) -> None:
        self._is_closed = True


class MemoryFollowing:
    """Gives at once what was written, without a lane."""

    def __init__(self, reader: MemoryReader, start: model.FollowStart, matches: model.Matches) -> None:
        self._memory = reader
        self._matches = matches
        self._at: model.FollowStart = start

    @property
    def next_start(self) -> model.FollowStart:
        return self._at

    async def take(self, most: int) -> model.Slice:
        await self._memory.turn()
        journal = self._memory.journal
        at, is_there = journal.index(self._at)
        at += is_there
        entries: list[model.JournalEntry] = []
        while at < len(journal.rows) and len(entries) < most:
            if fits(journal.rows[at][1], self._matches):
                entries.append(journal.rows[at][0])
            at += 1
        lost = isinstance(self._at, model.AtCursor) and not is_there
        edge = not any(fits(fields, self._matches) for _, fields in journal.rows[at:])
        self._at = model.AtCursor(journal.rows[at - 1][0].cursor) if at else self._at
        return model.Slice(tuple(entries), None, edge, lost)

    async def changed(self, timeout_s: float) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + timeout_s
        while loop.time() < until:
            rows = self._memory.journal.rows
            if rows and rows[-1][0].cursor != model.own_cursor(self._at):
                return
            await asyncio.sleep(min(0.01, timeout_s))

    async def aclose(self) -> None:
        await self._memory.aclose()


def fits(fields: Fields, matches: model.Matches) -> bool:
    return not matches or any(all(_has(fields, match) for match in group) for group in matches)


def _has(fields: Fields, match: model.Match) -> bool:
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
    cursor = model.Cursor(f"s=0;i={number:x};t={at // 1000:x}")
    entry = model.JournalEntry(cursor=cursor, at=at, message=message, size=len(message), **fields)  # type: ignore[arg-type]
    named: Fields = {NAMES[name]: (str(value).encode(),) for name, value in fields.items() if name in NAMES}
    return entry, {**named, "MESSAGE": (message.encode(),)}


def rows_of_export(data: bytes) -> list[Row]:
    fresh = data if data.startswith(b"\n") else b"\n\n" + data
    parts = fresh.split(b"\n\n__REALTIME_TIMESTAMP=")
    text = b"".join(
        b"__CURSOR=s=0;i=%x\n__REALTIME_TIMESTAMP=%s\n\n" % (n, part.rstrip(b"\n"))
        for n, part in enumerate(parts[1:])
    )
    found = []
    for fields in ExportParser().feed(text):
        entry = entry_of_export(fields)
        assert entry is not None
        stored = {
            name.decode(): tuple(value) if isinstance(value, list) else (value,)
            for name, value in fields.items()
        }
        found.append((entry, stored))
    return found


def in_order(rows: Sequence[Row]) -> list[Row]:
    ordered = sorted(rows, key=lambda row: row[0].at)
    return [
        (msgspec.structs.replace(entry, cursor=model.Cursor(f"s=0;i={n:x}")), fields)
        for n, (entry, fields) in enumerate(ordered)
    ]


NEWEST = Nanos(1_795_300_000 * SECOND)
BOOTED_US = 1_795_000_000_000_000
DELAY = Nanos(SECOND // 3)
"""How long after the second that a line names it is received."""


def supervisor_rows(capture: str) -> list[Row]:
    return rows_of_export((CAPTURES / capture / "journal.export").read_bytes())


def container_rows(capture: str) -> list[Row]:
    rows: list[Row] = []
    for path in sorted((CAPTURES / capture).glob("container-*.log")):
        name = path.stem.removeprefix("container-")
        at, instance = Nanos(0), 0
        for line in path.read_text().splitlines():
            at = latest(line[:TIME_LENGTH], NEWEST) or at
            instance += ":start {'agent_id'" in line
            received = Nanos(at + DELAY)
            rows.append(
                row_of(
                    len(rows),
                    received,
                    line,
                    host="docker7.sirepo.example",
                    unit="docker.service",
                    container=name,
                    container_id=f"{instance}{abs(hash(name)) % 10**9:09d}".ljust(64, "0"),
                    pid=812,
                    boot="b" * 32,
                    machine="d" * 32,
                    priority=3,
                )
            )
    rows.sort(key=lambda row: row[0].at)
    return [
        (msgspec.structs.replace(entry, monotonic_us=entry.at // 1_000 - BOOTED_US), fields)
        for entry, fields in rows
    ]


def one_journal(capture: str) -> MemoryJournal:
    return MemoryJournal(in_order([*supervisor_rows(capture), *container_rows(capture)]))


def exported(rows: Iterable[Row]) -> bytes:
    return b"".join(_exported(entry, fields) for entry, fields in rows)


def _exported(entry: JournalEntry, fields: Fields) -> bytes:
    head = f"__REALTIME_TIMESTAMP={entry.at // 1_000}\n__MONOTONIC_TIMESTAMP={entry.monotonic_us or 1}\n"
    named = (name.encode() + b"=" + value for name, values in fields.items() for value in values)
    return head.encode() + b"\n".join(line for line in named if not line.startswith(b"__")) + b"\n\n"
