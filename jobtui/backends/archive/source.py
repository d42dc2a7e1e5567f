"""A directory of archived job scripts as a source: the script of one job, and a walk through all.

Files are never listed for a job of Slurm, so that ten million of them cost nothing. A number that came back
is distinguished by the date of submission, where that is known. What is not there is distinguished by why.
"""

import os
import re
from abc import abstractmethod
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec

from jobtui.backends.archive.files import (
    DAY,
    EVERYTHING,
    NotRead,
    Period,
    Spot,
    likely,
    listed,
    parse_period,
    read_spot,
    recent,
    root_of,
    spots,
    written_at,
)
from jobtui.backends.base import Batch, Closable, PolledSource
from jobtui.model.clock import Nanos, SystemClock, to_rfc3339
from jobtui.model.health import SourceDenied
from jobtui.model.numbers import whole
from jobtui.model.scripts import Answer, ArchivedScript, Outcome, ScriptPeriod, Tried, Walked, Wanted
from jobtui.model.specs import SourceSpec, Window
from jobtui.transport.worker import Worker

LOOK_EVERY_S = 10.0
AT_ONCE = 32
"""Scripts that are read before others have their turn."""


class Keeper(PolledSource):
    """A place with its kind and the label of its cluster, "" where each script names its own."""

    kind = ""

    def __init__(self, name: str, cluster: str = "", held: Closable | None = None) -> None:
        super().__init__(name, held)
        self.cluster = cluster

    @abstractmethod
    def walk(self, span: ScriptPeriod, told: Callable[[str], None]) -> AsyncGenerator[Walked, None]:
        """Every script in reach of a span of time; `told` hears where it is."""

    async def _walked(
        self, worker: Worker, walking: Generator[Walked, None, None]
    ) -> AsyncGenerator[Walked, None]:
        """What is found step by step in the thread of `worker`, some at a time."""
        try:
            while some := await worker.run(lambda: list(islice(walking, AT_ONCE))):
                for walked in some:
                    yield walked
        finally:
            with suppress(ValueError):  # it runs, and the worker was closed meanwhile: it ends by itself
                worker.soon(walking.close)

    async def changed(self, timeout_s: float) -> None:
        await super().changed(max(timeout_s, LOOK_EVERY_S))


MOST_ENTRIES = 20_000
"""Entries of a directory that are looked at for the dates, or for the names of Torque's servers."""
SAMPLED = 2_000
SAMPLES = 3
"""Directories of which so many entries are looked at for the names of Torque's servers."""
OTHER_JOB_DAYS = 2.0
"""What was archived so many days from a submission is another job's, whose number it was before or after."""
ROUND = 10
"""Slurm spreads jobs over ten directories; SArchive misses those of one that was not there when it began."""


class Found(NamedTuple):
    """A place where something of that number is, and when it was written."""

    spot: Spot
    at: Nanos


def dated(root: str) -> list[Period]:
    """The directories of dates, the newest first. Raises NotRead where they may not be listed."""
    with listed(root, "") as entries:
        names = [entry.name for entry in islice(entries, MOST_ENTRIES)]
    return sorted(filter(None, map(parse_period, names)), key=lambda period: period.name, reverse=True)


class Search:
    """One search in the directory at `place`. Blocks. Raises SourceError."""

    def __init__(self, place: str, cluster: str, wanted: Wanted, now: Nanos) -> None:
        self._root = root_of(place)
        self._place = place
        self._cluster = cluster
        self._wanted = wanted
        self._now = now
        self._barred: list[NotRead] = []
        self._servers: dict[str, None] = {}
        self._sampled: set[str] = set()

    def answer(self) -> Answer:
        wanted, periods = self._wanted, None
        found = self._in(likely(wanted.submitted_at)) if wanted.submitted_at is not None else []
        if not found:
            periods = self._periods()
            found = self._in(periods if periods is not None else recent(self._now))
        chosen, others = choose(found, wanted)
        if chosen is None:
            return Answer(None, (self._absent(found, periods),))
        try:
            script = read_spot(self._root, self._place, chosen.spot, self._cluster, wanted.task)
        except NotRead as error:
            return Answer(None, (Tried(self._place, error.outcome, error.note),))
        notes = (*script.notes, *doubts(chosen, others, wanted))
        return Answer(msgspec.structs.replace(script, notes=notes), (Tried(self._place, Outcome.FOUND),))

    def _in(self, periods: Iterable[Period]) -> list[Found]:
        found = []
        for period in periods:
            for spot in spots(self._wanted, period, self._servers_of(period)):
                try:
                    found.append(Found(spot, written_at(self._root, spot.script)))
                except NotRead as error:
                    if error.outcome is not Outcome.NOT_THERE:
                        self._barred.append(error)
        return found

    def _periods(self) -> list[Period] | None:
        with suppress(NotRead):
            return [EVERYTHING, *dated(self._root)]
        return None

    def _servers_of(self, period: Period) -> tuple[str, ...]:
        """How ids of Torque end, by some files of the first directories; none where those are unlisted."""
        if not self._wanted.server and period.name not in self._sampled and len(self._sampled) < SAMPLES:
            with suppress(NotRead), listed(self._root, period.name) as entries:
                names = [entry.name for entry in islice(entries, SAMPLED)]
                scripts = [name.removesuffix(".SC") for name in names if name.endswith(".SC")]
                self._sampled.add(period.name)
                self._servers |= {"." + name.partition(".")[2]: None for name in scripts if "." in name}
        return tuple(self._servers)

    def _absent(self, found: list[Found], periods: list[Period] | None) -> Tried:
        if found:
            times = ", ".join(sorted({spot.period.name or "the archive" for spot, _ in found}))
            note = f"{times} has another job of this number, archived at another time; --at TIME shows it"
            return Tried(self._place, Outcome.NOT_THERE, note)
        if self._barred:
            error = self._barred[0]
            hint = "; run as a user who may read it" if error.outcome is Outcome.DENIED else ""
            return Tried(self._place, error.outcome, f"{error.note}{hint}")
        at = self._wanted.submitted_at
        dated = [(period.name, period.begin) for period in periods or () if period.begin is not None]
        if at is not None and dated and at < dated[-1][1] - DAY:
            return Tried(self._place, Outcome.BEGAN_LATER, f"its first directory is {dated[-1][0]}")
        return Tried(self._place, Outcome.NOT_THERE, self._near())

    def _near(self) -> str:
        """What of the jobs around it is there: that tells what kind of absence it is."""
        at = self._wanted.submitted_at
        number = whole(self._wanted.number)
        if at is None or number is None:
            return ""
        beside = [n for n in (number - 1, number + 1) if self._is_kept(n, at)]
        if not beside:
            return "nor is the job before or after it"
        alike = [n for n in (number - ROUND, number + ROUND) if self._is_kept(n, at)]
        words = f"job {beside[0]} beside it is"
        if alike:
            return words
        digit = number % ROUND
        return (
            f"{words}; all jobs ending in {digit} may be missed: SArchive began before hash.{digit} was there"
        )

    def _is_kept(self, number: int, at: Nanos) -> bool:
        for period in likely(at):
            for spot in spots(Wanted(str(number)), period, self._servers_of(period)):
                with suppress(NotRead):
                    written_at(self._root, spot.script)
                    return True
        return False


def choose(found: Iterable[Found], wanted: Wanted) -> tuple[Found | None, list[Found]]:
    at, until = wanted.submitted_at, wanted.until
    if at is not None:
        near = [one for one in found if one.spot.period.days_from(at) <= OTHER_JOB_DAYS]
        ordered = sorted(near, key=lambda one: (one.spot.period.days_from(at), abs(one.at - at)))
    else:
        begun = [one for one in found if until is None or _time(one) <= until]
        ordered = sorted(begun, key=_time, reverse=True)
    return (ordered[0], ordered[1:]) if ordered else (None, [])


def doubts(chosen: Found, others: list[Found], wanted: Wanted) -> Iterator[str]:
    """What may make it another job's script after all."""
    at, period = wanted.submitted_at, chosen.spot.period
    if at is not None and period.begin is None and abs(chosen.at - at) > OTHER_JOB_DAYS * DAY:
        days = abs(chosen.at - at) // DAY
        yield f"its file was written {days} days from the job's submission: copied, or of another job"
    if others and at is None:
        names = ", ".join(one.spot.period.name or "without a date" for one in others[:3])
        yield f"the newest of {len(others) + 1} jobs of this number; also in {names}: --at TIME chooses"


def _time(found: Found) -> int:
    begin = found.spot.period.begin
    return begin if begin is not None and found.spot.period.days_from(found.at) > 1 else found.at


def fits(script: ArchivedScript, wanted: Wanted) -> bool:
    at = script.archived_at
    if not _is_named(script, wanted) or not _is_of_cluster(script, wanted):
        return False
    if at is not None and wanted.submitted_at is not None:
        return abs(at - wanted.submitted_at) <= OTHER_JOB_DAYS * DAY
    return at is None or wanted.until is None or at <= wanted.until


def best(scripts: Sequence[ArchivedScript], wanted: Wanted) -> ArchivedScript | None:
    at = wanted.submitted_at
    good = [script for script in scripts if fits(script, wanted)]
    if at is None:
        return max(good, key=lambda script: script.archived_at or 0, default=None)
    return min(good, key=lambda script: abs((script.archived_at or 0) - at), default=None)


def missed(where: str, found: Sequence[ArchivedScript], wanted: Wanted) -> Tried:
    named = [script for script in found if _is_named(script, wanted)]
    here = [script for script in named if _is_of_cluster(script, wanted)]
    if here:
        times = ", ".join(to_rfc3339(script.archived_at) for script in here[:2] if script.archived_at)
        note = f"it has another job of this number, archived {times}; --at TIME shows it"
        return Tried(where, Outcome.NOT_THERE, note)
    if named:
        names = ", ".join(sorted({script.cluster for script in named}))
        return Tried(where, Outcome.OTHER_CLUSTER, f"the job of this number is one of {names}")
    return Tried(where, Outcome.NOT_THERE)


def _is_named(script: ArchivedScript, wanted: Wanted) -> bool:
    if wanted.server:
        return script.number == wanted.number + wanted.server
    return script.number.partition(".")[0] == wanted.number


def _is_of_cluster(script: ArchivedScript, wanted: Wanted) -> bool:
    return not wanted.cluster or not script.cluster or script.cluster == wanted.cluster


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
                for entry in islice(entries, MOST_NAMES):
                    spot = _spot(period, entry.name)
                    if spot is not None and _is_within(entry, period, span):
                        yield _read(root, place, spot, cluster)
        except NotRead as error:
            if error.outcome is not Outcome.NOT_THERE:
                yield Walked(unreadable=f"{place}/{period.name}: {error.outcome}")


def _periods(root: str, place: str, span: ScriptPeriod) -> list[Period]:
    try:
        return [EVERYTHING, *(period for period in dated(root) if _overlaps(period, span))]
    except NotRead as error:
        raise SourceDenied(f"{place}: may not be listed; only single jobs can be asked for") from error


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
        self._worker = Worker(f"archive {path}")
        super().__init__(str(Path(path)), cluster, self._worker)

    async def read(self, *, begins: bool) -> Batch:
        await self._worker.run(partial(root_of, self.name))
        return Batch()

    async def find(self, wanted: Wanted) -> Answer:
        now = SystemClock().now()
        return await self._worker.run(lambda: Search(self.name, self.cluster, wanted, now).answer())

    def walk(self, span: ScriptPeriod, told: Callable[[str], None]) -> AsyncGenerator[Walked, None]:
        return self._walked(self._worker, walk(self.name, self.cluster, span, told))


def open_source(spec: SourceSpec, window: Window) -> ArchiveDirectory:
    return ArchiveDirectory(spec.target, spec.label)
