"""A parser that keeps every block it is given, logs that are rotated, and reading them as a screen does."""

import itertools
import os
import random
import shutil
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

from jobtui.backends.log_start import Start
from jobtui.backends.logfile import LogFile
from jobtui.formats.parser import Parsed
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.logs import LogRecord
from jobtui.model.pages import Log, LogLine, LogSearch, Query, query_of
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

    def parse(self, block: bytes, offset: int, line: int, newest: Nanos) -> Parsed[LogRecord]:
        assert block.endswith(b"\n")
        self.blocks.append((offset, line, block))
        records = []
        for nth, text in enumerate(block.split(b"\n")[:-1]):
            shown = text[:100].decode("utf-8", "replace")
            records.append(LogRecord(self.source, line + nth, offset, None, None, "line", {}, shown))
            offset += len(text) + 1
        return Parsed(records, len(records), [])

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


Steps = Generator[None, None, Path | None]
"""A rotation, step by step; in the end the file that it made, if any."""


class RotatedLog:
    """A log that is rotated in each way that is in use: by names or numbers, renamed or cut, and packed.

    `packs` are the ways in which files are packed, by their endings, `date` and `first` make the names.
    """

    def __init__(
        self, path: Path, chance: random.Random, packs: Mapping[str, Callable[[bytes], bytes]], date: str,
        first: int,
    ) -> None:  # fmt: skip
        self.path, self.chance, self._packs = path, chance, packs
        self._dates = map(date.format, itertools.count(first))
        self._newest = self.naming()
        path.parent.mkdir(exist_ok=True)
        path.touch()

    def naming(self) -> Callable[[], Generator[None, None, Path]]:
        """What makes room for the newest of the rotated files, and names it."""
        return self.chance.choice((self.numbered, self.dated))

    def a_rotation(self) -> Steps:
        return self.chance.choice((self.rename, self.cut, self.pack_at_once, self.pack))()

    def numbered(self) -> Generator[None, None, Path]:
        for number in range(90, 0, -1):
            for ending in ("", *self._packs):
                old = self.path.with_name(f"{self.path.name}.{number}{ending}")
                if old.exists():
                    old.rename(old.with_name(f"{self.path.name}.{number + 1}{ending}"))
                    yield
        return self.path.with_name(f"{self.path.name}.1")

    def dated(self) -> Generator[None, None, Path]:
        yield
        return self.path.with_name(f"{self.path.name}{next(self._dates)}")

    def rename(self) -> Steps:
        newest = yield from self._newest()
        self.path.rename(newest)
        yield
        self.path.touch()
        return newest

    def cut(self) -> Steps:
        newest = yield from self._newest()
        shutil.copy2(self.path, newest)
        yield
        shutil.copy2(self.path, newest)  # what was written meanwhile; copytruncate would lose it
        os.truncate(self.path, 0)
        self.stamp()
        return newest

    def stamp(self) -> None:
        """Called when the log was cut."""

    def pack(self, path: Path | None = None) -> Steps:
        plain = (one for one in self.path.parent.glob(f"{self.path.name}?*") if one.suffix not in self._packs)
        path = path or max(plain, key=lambda one: one.stat().st_mtime_ns, default=None)
        if path is None:
            return None
        status = path.stat()
        endings = [*self._packs]
        ending = self.chance.choice(endings) if len(endings) > 1 else endings[0]
        packed, data = path.with_name(f"{path.name}{ending}"), self._packs[ending](path.read_bytes())
        for size in (len(data) // 2, len(data)):
            packed.write_bytes(data[:size])
            yield
        os.utime(packed, ns=(status.st_atime_ns, status.st_mtime_ns))
        yield
        path.unlink()
        return packed

    def pack_at_once(self) -> Steps:
        made = yield from self.chance.choice((self.rename, self.cut))()
        return (yield from self.pack(made))


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
"""A position after the last line of any log."""


async def all_before(log: Log, most: int) -> list[LogLine]:
    page = await log.before(END, most)
    found = [*page.lines]
    while not page.at_edge:
        page = await log.before(page.lines[0].position, most)
        found[:0] = page.lines
    return found


async def all_after(log: Log, position: int, most: int) -> list[LogLine]:
    page = await log.after(position, most)
    found = [*page.lines]
    while not page.at_edge:
        page = await log.after(page.lines[-1].end, most)
        found += page.lines
    return found


def asked(typed: str) -> Query:
    query = query_of(typed)
    assert query is not None
    return query


async def searched(log: Log, typed: str, around: int = 0) -> LogSearch:
    await log.look()
    search = log.search(asked(typed), around)
    await search.run()
    search.cancel()
    return search


async def all_found(log: Log, search: LogSearch) -> list[str]:
    """The lines found, walked through forwards; the same backwards."""
    found, position = [], -END
    while (hit := search.hits.next_after(position)) is not None:
        line = (await log.after(hit, 1)).lines[0]
        found.append(line.text)
        position = line.end
    back, position = [], END
    while (hit := search.hits.last_before(position)) is not None:
        line = (await log.after(hit, 1)).lines[0]
        back.append(line.text)
        position = line.position
    assert back == found[::-1]
    return found


async def all_errors(log: Log, position: int, *, forward: bool) -> list[str]:
    """The lines with errors from a position on, in the order in which they are gone through."""
    found = []
    while (at := await log.next_error(position, forward=forward)) is not None:
        found.append((await log.after(at, 1)).lines[0].text)
        position = at
    return found
