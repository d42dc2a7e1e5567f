"""A parser that keeps every block it is given, files of logs, and reading them as a screen does."""

import os
from pathlib import Path
from typing import Any, ClassVar, Self

from jobtui.backends.log_start import Start
from jobtui.backends.logfile import LogFile
from jobtui.formats.parser import Parsed
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.logs import LogRecord
from jobtui.model.pages import Log, LogLine, LogSearch, Place, Query, query_of
from jobtui.transport.blocks import Limits
from tests.polling import Reading

QUICK = Limits(hold_s=0.05, retire_s=0.2, gone_s=0.05)


def log_file(path: Path, *, start: Start | None = None, **by: Any) -> LogFile:
    """One that goes by other `limits`, another `parser_factory` or `timer`."""
    given = {name: staticmethod(value) if callable(value) else value for name, value in by.items()}
    made: type[LogFile] = type("TriedLog", (LogFile,), given)
    return made(path, start=start)


class MemoryBytes:
    def __init__(self, data: bytes) -> None:
        self.data = data

    def read(self, offset: int, size: int) -> bytes:
        return self.data[offset : offset + size]

    def next_data(self, offset: int) -> int:
        return offset


class KeepingParser:
    def __init__(self, source: str) -> None:
        self.source = source
        self.blocks: list[tuple[int, int, bytes]] = []

    @property
    def text(self) -> bytes:
        return b"".join(data for _, _, data in self.blocks)

    def parse(self, block: bytes, offset: int, line: int, newest: Nanos) -> Parsed:
        assert block.endswith(b"\n")
        self.blocks.append((offset, line, block))
        records = []
        for nth, text in enumerate(block.split(b"\n")[:-1]):
            shown = text[:100].decode("utf-8", "replace")
            records.append(LogRecord(self.source, line + nth, offset, None, None, "line", {}, shown))
            offset += len(text) + 1
        return Parsed(records, len(records), [], 0)

    def time_of(self, line: bytes, newest: Nanos) -> Nanos | None:
        head, _, _ = line[:30].partition(b" ")
        return Nanos(int(head[1:]) * SECOND) if head[:1] == b"@" and head[1:].isdigit() else None


class Parsers:
    """Makes parsers and keeps them, in the order of the files they were made for."""

    def __init__(self) -> None:
        self.made: list[KeepingParser] = []

    def __call__(self, source: str) -> KeepingParser:
        self.made.append(KeepingParser(source))
        return self.made[-1]

    @property
    def text(self) -> bytes:
        return b"".join(parser.text for parser in self.made)


class Opened:
    """A LogFile on a path with a keeping parser, and its reading. `close_all` closes all there are."""

    open: ClassVar[list["Opened"]] = []

    def __init__(self, path: Path, limits: Limits = QUICK, start: Start | None = None) -> None:
        self.path = path
        self.parsers = Parsers()
        self.log = log_file(path, parser_factory=self.parsers, limits=limits, start=start)
        self.reading = Reading(self.log)
        self.open.append(self)

    @classmethod
    async def on(cls, path: Path, data: bytes, limits: Limits = QUICK, start: Start | None = None) -> Self:
        """A file with this in it, read as far as it goes."""
        write(path, data)
        opened = cls(path, limits, start)
        await opened.reading.drain()
        return opened

    async def append(self, data: bytes) -> None:
        append(self.path, data)
        await self.reading.drain()

    @classmethod
    async def close_all(cls) -> None:
        while cls.open:
            await cls.open.pop().log.aclose()


def write(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def append(path: Path, data: bytes | str) -> None:
    with path.open("ab") as file:
        file.write(data.encode() if isinstance(data, str) else data)


def rename(path: Path, name: str) -> None:
    path.rename(path.with_name(name))


def inode(path: Path) -> int:
    return path.stat().st_ino


def open_inodes() -> set[int]:
    inodes = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            inodes.add(os.fstat(int(name)).st_ino)
        except OSError:
            continue
    return inodes


END = 1 << 300
"""A place after the last line of any log."""


async def all_before(log: Log, most: int) -> list[LogLine]:
    page = await log.before(END, most)
    found = [*page.lines]
    while not page.at_edge:
        page = await log.before(page.lines[0].place, most)
        found[:0] = page.lines
    return found


async def all_after(log: Log, place: Place, most: int) -> list[LogLine]:
    page = await log.after(place, most)
    found = [*page.lines]
    while not page.at_edge:
        page = await log.after(page.lines[-1].end, most)
        found += page.lines
    return found


def asked(typed: str) -> Query:
    query = query_of(typed)
    assert query is not None
    return query


async def searched(log: Log, typed: str, around: Place = 0) -> LogSearch:
    await log.look()
    search = log.search(asked(typed), around)
    await search.run()
    search.cancel()
    return search


async def all_found(log: Log, search: LogSearch) -> list[str]:
    """The lines found, walked through forwards; the same backwards."""
    found, place = [], 0
    while (hit := search.hits.next_after(place)) is not None:
        line = (await log.after(hit, 1)).lines[0]
        found.append(line.text)
        place = line.end
    back, place = [], END
    while (hit := search.hits.last_before(place)) is not None:
        line = (await log.after(hit, 1)).lines[0]
        back.append(line.text)
        place = line.place
    assert back == found[::-1]
    return found


async def all_errors(log: Log, place: Place, *, forward: bool) -> list[str]:
    """The lines with errors from a place on, in the order in which they are gone through."""
    found = []
    while (at := await log.next_error(place, forward=forward)) is not None:
        found.append((await log.after(at, 1)).lines[0].text)
        place = at
    return found
