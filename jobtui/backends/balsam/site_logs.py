"""The logs of Balsam sites whose file systems can be reached from here, as one source that follows them.

Below a site, in `log`: `service*.log` of its agent, `mpi_mode*.log` and `serial_mode*.log` of its launchers
(these with `.master` or a host's name behind it). Each allocation makes new ones: the newest are followed.
"""

import asyncio
import os
import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec

from jobtui.backends.base import Batch, SourceError
from jobtui.backends.file_blocks import Limits
from jobtui.backends.log_follow import Follower
from jobtui.backends.log_start import TailBytes
from jobtui.backends.worker import Worker
from jobtui.formats.site_log import SiteLogParser
from jobtui.model.health import Skip

KIND = "site_logs"
LOGS = "log"
FILES_FOLLOWED = 20
"""Of each site the newest so many."""
ENTRIES_LOOKED_AT = 10_000
TAIL_BYTES = 4 << 20
"""How much of each file is read at first, from its end."""
LOOK_EVERY_S = 10.0
"""How often is looked for new files."""
NAME = re.compile(r"(?:service|mpi_mode|serial_mode)[\w.-]*\.log(?:\.[\w.-]+)?", re.ASCII)


class Place(NamedTuple):
    """A site: what the ids of its jobs begin with, and where it may be reached, likeliest first."""

    system: str
    directories: tuple[str, ...]


class _Log(NamedTuple):
    follower: Follower
    cursor: str | None = None


class SiteLogs:
    """The logs of the sites that `places` names, which may become more."""

    kind = KIND

    def __init__(
        self,
        places: Callable[[], tuple[Place, ...]],
        *,
        every_s: float = LOOK_EVERY_S,
        name: str = "site logs",
    ) -> None:
        self.name = name
        self._places = places
        self._every_s = every_s
        self._logs: dict[str, _Log] = {}
        self._worker = Worker(name)
        self._next_look = 0.0
        self._looked_for: tuple[Place, ...] | None = None
        self._issued = 0
        self._last: Batch | None = None
        self._left_out = 0
        self._closed = False

    @property
    def directories(self) -> tuple[str, ...]:
        """The files that are followed: each is a log that can be read."""
        return tuple(self._logs)

    async def is_reachable(self) -> bool:
        """Whether the logs of any site are there."""
        places = self._places()
        return await self._worker.run(lambda: any(map(_newest, places)))

    async def poll(self, cursor: str | None) -> Batch:
        """What was written since the last poll; with None everything again. Raises SourceError."""
        if self._closed:
            raise SourceError(f"{self.name}: is closed")
        if cursor != str(self._issued) and self._last is not None and cursor == str(self._issued - 1):
            return self._last
        places, begins = self._places(), cursor != str(self._issued)
        batch = await self._worker.run(lambda: self._poll(places, begins=begins))
        self._issued += 1
        self._last = msgspec.structs.replace(batch, cursor=str(self._issued))
        return self._last

    def _poll(self, places: tuple[Place, ...], *, begins: bool) -> Batch:
        if begins:
            self._close_logs()
        if begins or places != self._looked_for or time.monotonic() >= self._next_look:
            self._look(places)
        batches, skips = [], []
        for path, log in self._logs.items():
            try:
                batch = log.follower.poll(log.cursor)
            except SourceError as error:
                skips.append(Skip(path, str(error)))
                continue
            self._logs[path] = log._replace(cursor=batch.cursor)
            batches.append(batch)
        return _merged(batches, skips, self._note())

    def _note(self) -> str:
        return f"{self._left_out:,} older files were not read" if self._left_out else ""

    def _look(self, places: tuple[Place, ...]) -> None:
        """Follow the files that there are now."""
        found: dict[str, str] = {}
        self._left_out = 0
        for place in places:
            newest = _newest(place)
            self._left_out += max(0, len(newest) - FILES_FOLLOWED)
            found.update(dict.fromkeys(newest[:FILES_FOLLOWED], place.system))
        for path in self._logs.keys() - found.keys():
            self._logs.pop(path).follower.close()
        for path in found.keys() - self._logs.keys():
            make_parser = partial(SiteLogParser, path, found[path])
            self._logs[path] = _Log(Follower(Path(path), make_parser, TailBytes(TAIL_BYTES), Limits()))
        self._looked_for, self._next_look = places, time.monotonic() + self._every_s

    async def changed(self, timeout_s: float) -> None:
        """Nothing tells of a change on a file system that is mounted from elsewhere."""
        await asyncio.sleep(timeout_s)

    def _close_logs(self) -> None:
        for log in self._logs.values():
            log.follower.close()
        self._logs.clear()

    async def aclose(self) -> None:
        """Let go of every file."""
        self._closed = True
        await self._worker.finish(self._close_logs)


def _newest(place: Place) -> list[str]:
    """The logs of a site, the newest first; none where it cannot be reached."""
    for directory in place.directories:
        try:
            with os.scandir(os.path.join(directory, LOGS)) as entries:
                return [path for _, path in sorted(_logs_among(entries), reverse=True)]
        except OSError:
            continue
    return []


def _logs_among(entries: Iterator["os.DirEntry[str]"]) -> Iterator[tuple[int, str]]:
    """Regular files only, and no links: others may write there."""
    for number, entry in enumerate(entries):
        if number >= ENTRIES_LOOKED_AT:
            return
        if NAME.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
            yield entry.stat(follow_symlinks=False).st_mtime_ns, entry.path


def _merged(batches: list[Batch], skips: list[Skip], note: str) -> Batch:
    return Batch(
        cursor="",
        records=tuple(record for batch in batches for record in batch.records),
        skipped=(*(skip for batch in batches for skip in batch.skipped), *skips),
        skip_count=sum(batch.skip_count for batch in batches) + len(skips),
        count=sum(batch.count for batch in batches),
        more=any(batch.more for batch in batches),
        note=note,
    )
