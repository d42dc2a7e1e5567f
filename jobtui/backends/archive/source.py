"""A directory of archived job scripts as a source."""

import os
import re
from collections.abc import AsyncGenerator, Callable, Generator
from functools import partial
from pathlib import Path

from jobtui.backends.archive.files import (
    EVERYTHING,
    NotRead,
    Period,
    Spot,
    listed,
    parse_period,
    read_spot,
    root_of,
)
from jobtui.backends.archive.records import MOST_ENTRIES, Keeper, Search
from jobtui.backends.base import Batch
from jobtui.model.clock import Nanos, SystemClock
from jobtui.model.scripts import Answer, Outcome, ScriptPeriod, Walked, Wanted
from jobtui.model.source_errors import SourceDenied
from jobtui.model.specs import SourceSpec, Window
from jobtui.transport.worker import Worker

_SLURM_NAME = re.compile(r"job\.(\d+)_script")
_TORQUE_NAME = re.compile(r"(\d+)((?:\..*)?)\.SC", re.DOTALL)
MOST_NAMES = 2_000_000
"""Names of one directory that are looked at; the script itself is only opened where it may count."""


def walk(
    place: str, cluster: str, span: ScriptPeriod, told: Callable[[str], None]
) -> Generator[Walked, None, None]:
    """Every script in reach. Raises SourceError where nothing may be listed."""
    root = root_of(place)
    for period in _periods(root, place, span):
        told(f"{place}/{period.name}")
        try:
            with listed(root, period.name) as entries:
                for entry, _ in zip(entries, range(MOST_NAMES), strict=False):
                    spot = _spot(period, entry.name)
                    if spot is not None and _is_within(entry, period, span):
                        yield _read(root, place, spot, cluster)
        except NotRead as error:
            if error.outcome is not Outcome.NOT_THERE:
                yield Walked(unreadable=f"{place}/{period.name}: {error.outcome}")


def _periods(root: str, place: str, span: ScriptPeriod) -> list[Period]:
    try:
        with listed(root, "") as entries:
            names = [entry.name for entry, _ in zip(entries, range(MOST_ENTRIES), strict=False)]
    except NotRead as error:
        raise SourceDenied(f"{place}: may not be listed; only single jobs can be asked for") from error
    dated = sorted(filter(None, map(parse_period, names)), key=lambda period: period.name, reverse=True)
    return [EVERYTHING, *(period for period in dated if _overlaps(period, span))]


def _overlaps(period: Period, span: ScriptPeriod) -> bool:
    """Whether it may hold something of this span; a day is allowed for the zone."""
    since = span.since is None or period.days_from(span.since) <= 1 or (period.begin or 0) > span.since
    until = span.until is None or period.days_from(span.until) <= 1 or (period.end or 0) < span.until
    return since and until


def _read(root: str, place: str, spot: Spot, cluster: str) -> Walked:
    try:
        return Walked(script=read_spot(root, place, spot, cluster))
    except NotRead as error:
        return Walked(unreadable=f"{place}/{spot.script}: {error.note or error.outcome}")


def _spot(period: Period, name: str) -> Spot | None:
    """What a name says of a script, None for any other file."""
    base = f"{period.name}/" if period.name else ""
    if found := _SLURM_NAME.fullmatch(name):
        return Spot(period, base + name, f"{base}job.{found[1]}_environment", found[1])
    if found := _TORQUE_NAME.fullmatch(name):
        return Spot(period, base + name, "", found[1], found[2])
    return None


def _is_within(entry: "os.DirEntry[str]", period: Period, span: ScriptPeriod) -> bool:
    """Whether a file was written within the span; a copy, whose time tells nothing, counts as such."""
    if span.since is None and span.until is None:
        return True
    try:
        at = Nanos(entry.stat(follow_symlinks=False).st_mtime_ns)
    except OSError:
        return True  # reading it will say what is wrong
    if period.days_from(at) > 1:
        return True
    return (span.since is None or at >= span.since) and (span.until is None or at <= span.until)


class ArchiveDirectory(Keeper):
    """One directory with the label of its cluster, as both a source and a place of scripts."""

    kind = "archive"

    def __init__(self, path: str, cluster: str = "") -> None:
        super().__init__(str(Path(path)), cluster)
        self._worker = Worker(f"archive {path}")

    async def read(self, *, begins: bool) -> Batch:
        await self._worker.run(partial(root_of, self.name))
        return Batch(cursor="")

    async def find(self, wanted: Wanted) -> Answer:
        now = SystemClock().now()
        return await self._worker.run(lambda: Search(self.name, self.cluster, wanted, now).answer())

    def walk(self, span: ScriptPeriod, told: Callable[[str], None]) -> AsyncGenerator[Walked, None]:
        return self._walked(self._worker, walk(self.name, self.cluster, span, told))

    async def aclose(self) -> None:
        await super().aclose()
        self._worker.close()


def open_source(spec: SourceSpec, window: Window) -> ArchiveDirectory:
    return ArchiveDirectory(spec.target, spec.label)
