"""The copies of cluster agents' logs below a database root, as a source of log records, and each to be read.

They are `<root>/user/<uid>/agent-sbatch/<host>/*.log`. Only the directories of users who have jobs on a
cluster are read: few of a site's many users do, and a walk through all would load it. The newest copies of
each are read, up to a limit. All of one directory make one log, see `formats.agent_copies`: what several of
them hold is given once. Positions are those of the copies, the same for every reader of the directory.
Blocks, but for the source itself.
"""

import math
import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from jobtui.backends.base import Batch, PolledSource, merged
from jobtui.formats.agent_copies import AgentCopy, CopiedLine, CopyName, added_lines, read_copy, read_name
from jobtui.formats.levels import level_of
from jobtui.formats.parser import LogParser, Parsed
from jobtui.model.clock import Nanos
from jobtui.model.health import Skip, SourceError, SourceMissing
from jobtui.model.logs import LogRecord
from jobtui.model.numbers import read_json
from jobtui.model.pages import Level, LogLine
from jobtui.transport.files import FileStat, explained, look, opened_file
from jobtui.transport.worker import Worker

COPIES_READ = 100
"""How many copies are read in a directory, the newest."""
COPIES_SAMPLED = 20
COPY_BYTES = 4 << 20
"""A larger file is not a copy: the supervisor writes 200 lines."""
TEXT_SHOWN = 8_192
SETTLED_NS = 3_000_000_000
"""Two changes of a directory within this time may get the same time stamp."""


class NewLines(NamedTuple):
    """The lines of a copy that those before it lack, with a gap if some lines may be in neither."""

    copy: AgentCopy
    written_at: Nanos
    lines: Sequence[CopiedLine]
    is_gap: bool


class CopiesLook(NamedTuple):
    """The result of reading the directory; `recovered` copies could not be read before, and can be now."""

    news: Sequence[NewLines] = ()
    skips: tuple[Skip, ...] = ()
    recovered: int = 0


class CopiedLog:
    """The log of one agent directory, `.../agent-sbatch/<host>`, as far as its copies tell.

    It makes records of new lines, or gives lines. Only the newest copies are read; `left_out` counts others.
    """

    def __init__(self, directory: Path, *, most: int | None = None) -> None:
        self.directory = directory
        self.left_out = 0
        self._most = COPIES_READ if most is None else most
        self._parser = LogParser(str(directory))
        self._seen: dict[str, FileStat] = {}
        self._texts: tuple[str, ...] = ()
        self._bad: set[Path] = set()
        self._newest = -1
        self._changed_ns: int | None = None

    def is_changed(self) -> bool:
        try:
            names = self._entries()
        except SourceError:
            return bool(self._seen)
        return any(name not in self._seen for name in names if read_name(name) is not None)

    def look(self) -> CopiesLook:
        """Read the copies that have come since the last look. Raises SourceError without a directory."""
        news: list[NewLines] = []
        skips: list[Skip] = []
        recovered = 0
        for name, path, seen in self._fresh():
            recovered += path in self._bad
            try:
                copy = _read(path, name)
            except (SourceError, ValueError) as error:
                self._bad.add(path)
                skips.append(Skip(str(path), str(error)))
                continue
            self._bad.discard(path)
            if name.base <= self._newest:
                continue  # a name that comes late, or twice: the others have its lines
            self._newest = name.base
            added, is_gap = added_lines(self._texts, copy.lines)
            self._texts = tuple(line.text for line in copy.lines) or self._texts
            if added or copy.stderr:
                news.append(NewLines(copy, Nanos(seen.mtime_ns), added, is_gap))
        return CopiesLook(news, tuple(skips), recovered)

    def records(self, news: Iterable[NewLines]) -> Iterator[Parsed[LogRecord]]:
        for new in news:
            if new.lines:
                block = "".join(f"{line.text}\n" for line in new.lines).encode("utf-8", "replace")
                found = self._parser.parse(block, new.lines[0].position, new.lines[0].number, new.written_at)
                # a number would be one of that copy, and not one of the log
                yield found._replace(records=[msgspec.structs.replace(one, line=0) for one in found.records])

    def lines(self, news: Iterable[NewLines]) -> Iterator[LogLine]:
        for new in news:
            yield from _about(new.copy, is_gap=new.is_gap)
            for line in new.lines:
                yield line_at(line.position, line.text, self._parser, new.written_at)

    def _fresh(self) -> list[tuple[CopyName, Path, FileStat]]:
        """The copies that were not read yet, or are other ones now, in the order of time.

        The time of a directory shows what came or went, but not within the last seconds, and not a copy that
        was unreadable and is now mended in place.
        """
        with explained(self.directory):
            changed_ns = os.stat(self.directory).st_mtime_ns
        is_same = changed_ns == self._changed_ns
        self._changed_ns = changed_ns if time.time_ns() - changed_ns > SETTLED_NS else None
        if is_same and not self._bad:
            return []
        named = sorted(
            ((name, entry) for entry in self._entries() if (name := read_name(entry)) is not None),
            key=lambda pair: pair[0].base,
        )
        self.left_out = max(0, len(named) - self._most)
        fresh = []
        for name, entry in named[-self._most :]:
            path = self.directory / entry
            try:
                seen = look(path)
            except SourceError:
                continue  # it was removed after it was listed
            if self._seen.get(entry) != seen:
                self._seen[entry] = seen
                fresh.append((name, path, seen))
        return fresh

    def _entries(self) -> list[str]:
        with explained(self.directory):
            return os.listdir(self.directory)


class CopiedLines:
    """A `Lines` of such a log. All reading is done in a thread of its own."""

    def __init__(self, directory: Path) -> None:
        self._log = CopiedLog(directory)
        self._worker = Worker(f"copies in {directory.name}")

    async def load(self) -> tuple[LogLine, ...]:
        return await self._worker.run(lambda: tuple(self._log.lines(self._log.look().news)))

    async def is_changed(self) -> bool:
        return await self._worker.run(self._log.is_changed)

    def close(self) -> None:
        self._worker.close()


def line_at(begin: int, text: str, parser: LogParser, newest: Nanos, level: Level | None = None) -> LogLine:
    data = text.encode("utf-8", "replace")
    return LogLine(
        position=begin,
        end=begin + len(data) + 1,
        text=text[:TEXT_SHOWN],
        size=len(data),
        level=level_of(text) if level is None else level,
        at=parser.time_of(data, newest),
        note="cut" if len(text) > TEXT_SHOWN else "",
    )


def sample_lines(directories: Iterable[Path]) -> Iterator[bytes]:
    """The lines of the newest copies in each of these, for judging how much of them is understood."""
    for directory in directories:
        with suppress(SourceError):  # its reader reports that
            for new in CopiedLog(directory, most=COPIES_SAMPLED).look().news:
                yield from (line.text.encode("utf-8", "replace") for line in new.lines if line.text)


def _about(copy: AgentCopy, *, is_gap: bool) -> Iterator[LogLine]:
    """Words about a copy, in the two positions before its first line."""
    gap = "lines before these may be missing; " if is_gap else ""
    text = f"── {gap}copy {copy.name.kind} ──"
    level = Level.WARNING if is_gap else Level.PLAIN
    begin = copy.name.base
    yield LogLine(position=begin, end=begin + 1, text=text, size=0, level=level, at=copy.name.at)
    if copy.stderr:
        said = " ".join(copy.stderr.split())[:TEXT_SHOWN]
        text = f"stderr: {said}"
        yield LogLine(position=begin + 1, end=begin + 2, text=text, size=0, level=Level.ERROR)


def _read(path: Path, name: CopyName) -> AgentCopy:
    """A copy from the disk. Raises SourceError, and ValueError for what is none."""
    with opened_file(path) as opened:
        data = opened.source.read(0, COPY_BYTES + 1)
    if len(data) > COPY_BYTES:
        raise ValueError(f"larger than {COPY_BYTES:,} bytes, no copy of a log")
    return read_copy(name, read_json(data))


DIRECTORY = "agent-sbatch"
USERS_LOOKED_AT = 500
"""The most users whose directories are read; the last named ones are kept."""
FEW_USERS, COPIES_OF_MANY = 20, 20
"""With more users fewer copies of each are read: a copy costs half a millisecond."""
HOSTS_LOOKED_AT = 20
"""Clusters of one user."""
UID_LENGTH = 8
LOOK_EVERY_S = 10.0
"""How often directories are read. A login makes two copies, and these are about the past."""
SLICE_S = 0.05
"""How long directories are read before other tasks run."""
IDLE_TO_BUSY = 100
"""The pause after a look takes this many times as long as the look: file systems may be slow."""

Users = Callable[[], Iterable[str]]


class AgentCopies(PolledSource):
    """The copies below one database root, of the users that `users` names; new users come last."""

    kind = "agent_copies"

    def __init__(self, root: Path, users: Users, *, every_s: float = LOOK_EVERY_S) -> None:
        self._worker = Worker(f"agent copies {root}")
        super().__init__(str(root / "user" / "*" / DIRECTORY), self._worker)
        self.root = root
        self._users = users
        self._logs: dict[Path, CopiedLog] = {}
        self._every_s = every_s
        self._looked_for: Sequence[str] = ()
        self._next_at = -math.inf
        self._round: Iterator[CopiedLog] | None = None
        self._spent_s = 0.0

    @property
    def directories(self) -> tuple[str, ...]:
        return tuple(str(path) for path in self._logs)

    def begins_after(self, at: Nanos) -> bool:
        return False

    def starting_at(self, at: Nanos) -> "AgentCopies":
        return AgentCopies(self.root, self._users, every_s=self._every_s)

    async def read(self, *, begins: bool) -> Batch:
        users = tuple(dict.fromkeys(self._users()))
        return await self._worker.run(lambda: self._poll(users, begins=begins))

    def _poll(self, users: Sequence[str], *, begins: bool) -> Batch:
        if not self.root.is_dir():
            raise SourceMissing(f"{self.name}: no directory {self.root}; check the path")
        if begins:
            self._logs.clear()
        is_due = users != self._looked_for or time.monotonic() >= self._next_at
        if begins or (self._round is None and is_due):
            self._spent_s, self._looked_for = 0.0, users
            self._round = self._copies_of(users)
        found = self._look()
        notes = []
        if left_out := sum(log.left_out for log in self._logs.values()):
            notes.append(f"{left_out:,} older copies were not read")
        if len(users) > USERS_LOOKED_AT:
            shown = f"{USERS_LOOKED_AT:,} of {len(users):,}"
            notes.append(f"only {shown} users with jobs on a cluster are looked at")
        note = "; ".join(notes) or None
        return merged((*found, Batch(more=self._round is not None, note=note)))

    def _look(self) -> list[Batch]:
        """News in the next few directories. A round waits for its turn, so that reading takes little time."""
        found: list[Batch] = []
        begun = time.monotonic()
        while self._round is not None:
            log = next(self._round, None)
            if log is None:
                self._round = None
                break
            found.append(self._batch_of(log))
            if time.monotonic() >= begun + SLICE_S:
                break
        ended = time.monotonic()
        self._spent_s += ended - begun
        if self._round is None and self._next_at <= begun:
            self._next_at = ended + max(self._every_s, IDLE_TO_BUSY * self._spent_s if self._every_s else 0)
        return found

    def _copies_of(self, users: Sequence[str]) -> Iterator[CopiedLog]:
        for uid in users[-USERS_LOOKED_AT:]:
            if len(uid) != UID_LENGTH or not uid.isalnum():
                continue  # it comes from a record, and becomes part of a path
            try:
                with os.scandir(self.root / "user" / uid / DIRECTORY) as entries:
                    hosts = sorted(Path(e.path) for e in entries if e.is_dir(follow_symlinks=False))
            except OSError:
                continue  # a user without copies has none
            for path in hosts[:HOSTS_LOOKED_AT]:
                log = self._logs.get(path)
                if log is None:
                    most = None if len(users) <= FEW_USERS else COPIES_OF_MANY
                    log = self._logs[path] = CopiedLog(path, most=most)
                yield log

    def _batch_of(self, log: CopiedLog) -> Batch:
        try:
            looked = log.look()
        except SourceError as error:
            looked = CopiesLook(skips=(Skip(str(log.directory), str(error)),))
        parsed = [*log.records(looked.news)]
        skips = [*looked.skips, *(skip for part in parsed for skip in part.skips)]
        above = f"{self.root / 'user'}/"
        return Batch(
            records=tuple(record for part in parsed for record in part.records),
            skipped=tuple(Skip(f"{self.name}: {skip.where.removeprefix(above)}", skip.why) for skip in skips),
            skip_count=len(skips),
            recovered=looked.recovered,
            count=sum(len(new.lines) for new in looked.news),
        )
