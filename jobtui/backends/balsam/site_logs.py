"""The logs of Balsam sites whose file systems can be reached from here, as one source that follows them.

Below a site, in `log`: `service*.log` of its agent, `mpi_mode*.log` and `serial_mode*.log` of its launchers
(these with `.master` or a host's name after it). Each allocation makes new ones: the newest are followed.
"""

import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from jobtui.backends.base import Batch, PolledSource, merged
from jobtui.backends.log_follow import Follower
from jobtui.backends.log_start import TailBytes
from jobtui.formats.parser import SiteLogParser
from jobtui.model.health import Skip, SourceError
from jobtui.model.logs import LogRecord
from jobtui.transport.blocks import Limits
from jobtui.transport.worker import Worker

LOGS = "log"
FILES_FOLLOWED = 20
"""The most logs read of each site, the newest."""
ENTRIES_LOOKED_AT = 10_000
TAIL_BYTES = 4 << 20
"""How much of each file is read at first, from its end."""
LOOK_EVERY_S = 10.0
NAME = re.compile(r"(?:service|mpi_mode|serial_mode)[\w.-]*\.log(?:\.[\w.-]+)?", re.ASCII)


class SiteDirectories(NamedTuple):
    """A site: what the ids of its jobs begin with, and where it may be reached, likeliest first."""

    system: str
    directories: tuple[str, ...]


class SiteLogs(PolledSource):
    """The logs of the sites that `sites` names; more sites may be added."""

    kind = "site_logs"

    every_s = LOOK_EVERY_S

    def __init__(self, sites: Callable[[], tuple[SiteDirectories, ...]]) -> None:
        super().__init__("site logs")
        self._sites = sites
        self._logs: dict[str, Follower[LogRecord]] = {}
        self._worker = Worker(self.name)
        self._next_look = 0.0
        self._looked_for: tuple[SiteDirectories, ...] | None = None
        self._left_out = 0

    @property
    def directories(self) -> tuple[str, ...]:
        return tuple(self._logs)

    async def is_reachable(self) -> bool:
        sites = self._sites()
        return await self._worker.run(lambda: any(map(_newest, sites)))

    async def read(self, *, begins: bool) -> Batch:
        sites = self._sites()
        return await self._worker.run(lambda: self._poll(sites, begins=begins))

    def _poll(self, sites: tuple[SiteDirectories, ...], *, begins: bool) -> Batch:
        if begins:
            self._close_logs()
        if begins or sites != self._looked_for or time.monotonic() >= self._next_look:
            self._look(sites)
        batches, skips = [], []
        for path, follower in self._logs.items():
            try:
                batches.append(follower.poll())
            except SourceError as error:
                skips.append(Skip(path, str(error)))
        note = f"{self._left_out:,} older files were not read" if self._left_out else ""
        rest = Batch(skipped=tuple(skips), skip_count=len(skips), note=note)
        return merged((*batches, rest))

    def _look(self, sites: tuple[SiteDirectories, ...]) -> None:
        found: dict[str, str] = {}
        self._left_out = 0
        for site in sites:
            newest = _newest(site)
            self._left_out += max(0, len(newest) - FILES_FOLLOWED)
            found.update(dict.fromkeys(newest[:FILES_FOLLOWED], site.system))
        for path in self._logs.keys() - found.keys():
            self._logs.pop(path).close()
        for path in found.keys() - self._logs.keys():
            make_parser = partial(SiteLogParser, path, found[path])
            self._logs[path] = Follower(Path(path), make_parser, TailBytes(TAIL_BYTES), Limits())
        self._looked_for, self._next_look = sites, time.monotonic() + self.every_s

    def _close_logs(self) -> None:
        for follower in self._logs.values():
            follower.close()
        self._logs.clear()

    async def aclose(self) -> None:
        await super().aclose()
        await self._worker.finish(self._close_logs)


def _newest(site: SiteDirectories) -> list[str]:
    """The logs of a site, the newest first; none if it cannot be reached."""
    for directory in site.directories:
        with suppress(OSError), os.scandir(os.path.join(directory, LOGS)) as entries:
            logs = [  # regular files only, and no links: others may write there
                (entry.stat(follow_symlinks=False).st_mtime_ns, entry.path)
                for entry in islice(entries, ENTRIES_LOOKED_AT)
                if NAME.fullmatch(entry.name) and entry.is_file(follow_symlinks=False)
            ]
            return [path for _, path in sorted(logs, reverse=True)]
    return []
