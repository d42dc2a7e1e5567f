"""A directory of archived job scripts as a source: the script of one job, and a walk through all.

Files are never listed for a job of Slurm, so that ten million of them cost nothing. Jobs with the same number
are distinguished by the date of submission, if that is known. A missing script comes with the reason.

The date is the local one of the machine that archived, two seconds after submission. Its zone is not known
here, so a day on either side is searched, too.

Only files below the directory are read, whatever links there are: a path is resolved before it is opened, and
again afterwards, so that nobody can exchange it in between.

SArchive writes the script first and both files in place: of a new job only a part may be there.
"""

import errno
import os
import re
import stat
from abc import abstractmethod
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import date, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec

from jobtui.backends.base import Batch, Closable, PolledSource
from jobtui.formats.sarchive import parse_environment, slurm_names, torque_tasks
from jobtui.model.clock import DAY, Nanos, SystemClock, time_of_iso, to_rfc3339, utc_of
from jobtui.model.health import SourceDenied, SourceMissing
from jobtui.model.numbers import whole
from jobtui.model.scripts import (
    Answer,
    ArchivedScript,
    Environment,
    Outcome,
    Scheduler,
    ScriptPeriod,
    Tried,
    Variable,
    Walked,
    Wanted,
    text_of,
)
from jobtui.model.specs import ReadWindow, SourceSpec
from jobtui.transport.files import FILE_FLAGS, odd_kind, source_error
from jobtui.transport.worker import Worker

FORMS = ("%Y%m%d", "%Y%m", "%Y")
WHOLE = ""
"""The name of the period for files without directories of dates."""
_NAME = re.compile(r"(?:19|20|21)\d\d(?:\d\d(?:\d\d)?)?", re.ASCII)


class Period(NamedTuple):
    """One of the directories: from the beginning of its first day up to the end of its last, as if in UTC.

    Both are None for files without directories of dates.
    """

    name: str
    begin: Nanos | None = None
    end: Nanos | None = None

    def days_from(self, at: Nanos) -> float:
        """How many days a time is outside of it; 0 if it is inside, or there are no bounds."""
        if self.begin is None or self.end is None:
            return 0.0
        return max(0, self.begin - at, at - self.end) / DAY


EVERYTHING = Period(WHOLE)


def parse_period(name: str) -> Period | None:
    """The period of a directory by its name, None for any other name."""
    begin = time_of_iso(f"{name}0101"[:8]) if _NAME.fullmatch(name) else None
    if begin is None:
        return None
    first = utc_of(begin).date()
    next_month = (first.replace(day=28) + timedelta(days=4)).replace(day=1)
    following = {4: date(first.year + 1, 1, 1), 6: next_month, 8: first + timedelta(days=1)}[len(name)]
    return Period(name, begin, Nanos(begin + (following - first).days * DAY))


def likely(at: Nanos) -> tuple[Period, ...]:
    """The periods in which a job submitted then may be, likeliest first, and the one without dates."""
    days = [utc_of(Nanos(at + offset * DAY)) for offset in (0, 1, -1)]
    names = dict.fromkeys(day.strftime(form) for form in FORMS for day in days)
    return (EVERYTHING, *(period for period in map(parse_period, names) if period is not None))


RECENT_DAYS, RECENT_MONTHS, RECENT_YEARS = 400, 24, 10
"""How far back directories are searched by their names."""


def recent(now: Nanos) -> Iterator[Period]:
    """Periods back from now, for a directory that may not be listed."""
    today = utc_of(now).date()
    back = [today - timedelta(days=count) for count in range(-1, RECENT_DAYS)]
    months = [date(today.year - count // 12, count % 12 + 1, 1) for count in range(RECENT_MONTHS)]
    names = [day.strftime("%Y%m%d") for day in back]
    names += dict.fromkeys(day.strftime("%Y%m") for day in (*back, *months))
    names += [f"{today.year - count:04d}" for count in range(RECENT_YEARS)]
    yield EVERYTHING
    yield from (period for period in map(parse_period, names) if period is not None)


MOST_BYTES = 64 << 20
"""A larger file is refused. Slurm takes scripts of 4 MB unless configured otherwise."""
PIECE_BYTES = 1 << 20
_LINKS = {
    errno.EXDEV: "is a link out of the archive, and is not followed",
    errno.ELOOP: "is a loop of links, or was replaced by a link meanwhile",
}


class NotRead(Exception):
    """A file of an archive cannot be read; `outcome` is the kind of reason."""

    def __init__(self, outcome: Outcome, note: str = "") -> None:
        super().__init__(note)
        self.outcome = outcome
        self.note = note


class ScriptFile(NamedTuple):
    data: bytes
    written_at: Nanos


def root_of(path: str) -> str:
    """The resolved directory of an archive. Raises SourceError."""
    try:
        root = os.path.realpath(path, strict=True)
        if not stat.S_ISDIR(os.stat(root).st_mode):
            raise NotADirectoryError
    except FileNotFoundError as error:
        raise SourceMissing(f"{path}: no such directory") from error
    except NotADirectoryError as error:
        raise SourceMissing(f"{path}: is not a directory; name the one that SArchive writes into") from error
    except (OSError, ValueError) as error:
        raise source_error(error, path) from error
    return root


def read_kept(root: str, path: str) -> ScriptFile:
    """The file at a path below the root. Raises NotRead."""
    with _open_below(root, path, is_file=True) as file:
        status, parts, size = os.fstat(file), list[bytes](), 0
        while size <= MOST_BYTES and (part := os.read(file, PIECE_BYTES)):
            parts.append(part)
            size += len(part)
        if size > MOST_BYTES:
            raise _too_large(path)
        return ScriptFile(b"".join(parts), Nanos(status.st_mtime_ns))


def written_at(root: str, path: str) -> Nanos:
    """When something at a path below the root was last written, whatever it is. Raises NotRead."""
    with _errors_as_not_read(path):
        return Nanos(os.stat(_below(root, path), follow_symlinks=False).st_mtime_ns)


@contextmanager
def listed(root: str, path: str) -> "Iterator[Iterator[os.DirEntry[str]]]":
    """The entries of a directory below the root, "" for itself, in no order. Raises NotRead."""
    with _open_below(root, path, is_file=False) as directory, os.scandir(directory) as entries:
        yield entries


@contextmanager
def _open_below(root: str, path: str, *, is_file: bool) -> Iterator[int]:
    """A regular file below the root, or a directory. Raises NotRead."""
    with _errors_as_not_read(path):
        target = _below(root, path)
        if is_file:
            _check_file(os.stat(target, follow_symlinks=False), path)
        opened = os.open(target, FILE_FLAGS | (0 if is_file else os.O_DIRECTORY))
        try:
            if is_file:
                _check_file(os.fstat(opened), path)
            # it may have been exchanged in between
            _check_within(root, os.readlink(f"/proc/self/fd/{opened}"))
            yield opened
        finally:
            os.close(opened)


def _below(root: str, path: str) -> str:
    """The resolved path. Raises OSError: EXDEV if a link leads out, ELOOP for a loop of links."""
    target = os.path.realpath(f"{root}/{path}", strict=True)
    _check_within(root, target)
    return target


def _check_within(root: str, target: str) -> None:
    if target != root and not target.startswith(f"{root.rstrip('/')}/"):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))


@contextmanager
def _errors_as_not_read(path: str) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        raise NotRead(Outcome.NOT_THERE) from error
    except PermissionError as error:
        raise NotRead(Outcome.DENIED, path or ".") from error
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno in _LINKS:
            raise NotRead(Outcome.REFUSED, f"{path} {_LINKS[error.errno]}") from error
        why = getattr(error, "strerror", None) or error
        raise NotRead(Outcome.NO_ANSWER, f"{path or '.'}: {why}") from error


def _check_file(status: os.stat_result, path: str) -> None:
    if kind := odd_kind(status.st_mode):
        raise NotRead(Outcome.REFUSED, f"{path} is {kind}, and is not opened")
    if status.st_size > MOST_BYTES:
        raise _too_large(path)


def _too_large(path: str) -> NotRead:
    return NotRead(Outcome.REFUSED, f"{path} is larger than {MOST_BYTES >> 20} MiB")


class ScriptPaths(NamedTuple):
    """Where a job may be kept: the paths of its script and its environment, and their period.

    Without `environment` the job is one of Torque; `is_spool` marks Slurm's own copy.
    """

    period: Period
    script: str
    environment: str = ""
    number: str = ""
    server: str = ""
    is_spool: bool = False


def spots(wanted: Wanted, period: Period, servers: tuple[str, ...]) -> Iterator[ScriptPaths]:
    """Where in a period a job may be kept. `servers` are the known ends of Torque's ids there."""
    base = f"{period.name}/" if period.name else ""
    if not wanted.server:
        script, environment = slurm_names(wanted.number)
        yield ScriptPaths(period, base + script, base + environment, wanted.number)
    for server in (wanted.server,) if wanted.server else servers:
        yield ScriptPaths(period, f"{base}{wanted.number}{server}.SC", "", wanted.number, server)
    if not base and not wanted.server:
        # in Slurm's own StateSaveLocation each job has a directory in one of ten
        spool = f"hash.{wanted.number[-1:]}/job.{wanted.number}"
        yield ScriptPaths(period, f"{spool}/script", f"{spool}/environment", wanted.number, is_spool=True)


def read_spot(root: str, archive: str, spot: ScriptPaths, cluster: str, task: str = "") -> ArchivedScript:
    """The script that is kept there. Raises NotRead."""
    kept = read_kept(root, spot.script)
    if spot.environment:
        environment, note = _environment(root, spot.environment)
    else:
        environment, note = _files_of_torque(root, spot, text_of(kept.data), task), ""
    is_copy = spot.period.days_from(kept.written_at) > 1  # its directory has another date
    archived_at = None if is_copy else kept.written_at
    kept_in = f"kept in {spot.period.name}" if is_copy else ""
    return ArchivedScript(
        number=spot.number + spot.server,
        script=kept.data.removesuffix(b"\0") if spot.is_spool else kept.data,
        source=f"{archive}/{spot.script}",
        cluster=cluster,
        scheduler=Scheduler.SLURM if spot.environment else Scheduler.TORQUE,
        environment=environment,
        archived_at=archived_at,
        notes=tuple(filter(None, (note, "Slurm's own copy" if spot.is_spool else "", kept_in))),
    )


def _environment(root: str, path: str) -> tuple[Environment | None, str]:
    try:
        return parse_environment(read_kept(root, path).data), ""
    except NotRead as error:
        if error.outcome is Outcome.NOT_THERE:
            return None, "no environment is kept beside it"
        return None, f"its environment: {error.outcome}{f': {error.note}' if error.note else ''}"


def _files_of_torque(root: str, spot: ScriptPaths, script: str, task: str) -> Environment:
    base = spot.script[: spot.script.rfind("/") + 1]
    tasks = [whole(task, 0)] if task else torque_tasks(script)
    number, server = spot.number, spot.server
    of_tasks = (f"{number}-{task_number}{server}.JB" for task_number in tasks)
    variables = []
    for name in (f"{number}{server}.JB", f"{number}{server}.TA", *of_tasks):
        try:
            variables.append(Variable(name.encode(), read_kept(root, base + name).data))
        except NotRead as error:
            if error.outcome is not Outcome.NOT_THERE:
                variables.append(Variable(name.encode(), f"({error.outcome})".encode()))
    return Environment(tuple(variables), is_files=True)


LOOK_EVERY_S = 10.0
AT_ONCE = 32
"""How many scripts are read before other tasks run."""


class Archive(PolledSource):
    """An archive with its kind and the label of its cluster, "" where each script names its own."""

    kind = ""

    def __init__(self, name: str, cluster: str = "", held: Closable | None = None) -> None:
        super().__init__(name, held)
        self.cluster = cluster

    @abstractmethod
    def walk(self, span: ScriptPeriod, progress: Callable[[str], None]) -> AsyncGenerator[Walked, None]:
        """All scripts of a period; `progress` gets the position."""

    async def _steps_of_walk(
        self, worker: Worker, walking: Generator[Walked, None, None]
    ) -> AsyncGenerator[Walked, None]:
        """The results of a walk in the thread of `worker`, some at a time."""
        try:
            while some := await worker.run(lambda: list(islice(walking, AT_ONCE))):
                for walked in some:
                    yield walked
        finally:
            with suppress(ValueError):  # it runs, and the worker was closed in between: it ends by itself
                worker.soon(walking.close)

    async def changed(self, timeout_s: float) -> None:
        await super().changed(max(timeout_s, LOOK_EVERY_S))


MOST_ENTRIES = 20_000
"""How many entries of a directory are read to learn the dates, or the names of Torque's servers."""
SAMPLED = 2_000
SAMPLES = 3
"""Directories in which that many entries are read to learn the names of Torque's servers."""
OTHER_JOB_DAYS = 2.0
"""A script archived more days than this from a submission is of another job with the same number."""
ROUND = 10
"""Slurm spreads jobs over ten directories; SArchive misses a directory that did not exist when it started."""


class ScriptFound(NamedTuple):
    """Where a script of that number is kept, and when it was written."""

    spot: ScriptPaths
    at: Nanos


def dated(root: str) -> list[Period]:
    """The directories of dates, newest first. Raises NotRead if they may not be listed."""
    with listed(root, "") as entries:
        names = [entry.name for entry in islice(entries, MOST_ENTRIES)]
    return sorted(filter(None, map(parse_period, names)), key=lambda period: period.name, reverse=True)


class DirectorySearch:
    """One search in the directory at `archive`. Blocks. Raises SourceError."""

    def __init__(self, archive: str, cluster: str, wanted: Wanted, now: Nanos) -> None:
        self._root = root_of(archive)
        self._archive = archive
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
            script = read_spot(self._root, self._archive, chosen.spot, self._cluster, wanted.task)
        except NotRead as error:
            return Answer(None, (Tried(self._archive, error.outcome, error.note),))
        notes = (*script.notes, *doubts(chosen, others, wanted))
        return Answer(msgspec.structs.replace(script, notes=notes), (Tried(self._archive, Outcome.FOUND),))

    def _in(self, periods: Iterable[Period]) -> list[ScriptFound]:
        found = []
        for period in periods:
            for spot in spots(self._wanted, period, self._servers_of(period)):
                try:
                    found.append(ScriptFound(spot, written_at(self._root, spot.script)))
                except NotRead as error:
                    if error.outcome is not Outcome.NOT_THERE:
                        self._barred.append(error)
        return found

    def _periods(self) -> list[Period] | None:
        with suppress(NotRead):
            return [EVERYTHING, *dated(self._root)]
        return None

    def _servers_of(self, period: Period) -> tuple[str, ...]:
        """The ends of Torque's ids, by some files of the first directories; none if these are not listed."""
        if not self._wanted.server and period.name not in self._sampled and len(self._sampled) < SAMPLES:
            with suppress(NotRead), listed(self._root, period.name) as entries:
                names = [entry.name for entry in islice(entries, SAMPLED)]
                scripts = [name.removesuffix(".SC") for name in names if name.endswith(".SC")]
                self._sampled.add(period.name)
                self._servers |= {"." + name.partition(".")[2]: None for name in scripts if "." in name}
        return tuple(self._servers)

    def _absent(self, found: list[ScriptFound], periods: list[Period] | None) -> Tried:
        if found:
            times = ", ".join(sorted({spot.period.name or "the archive" for spot, _ in found}))
            note = f"{times} has another job of this number, archived at another time; --at TIME shows it"
            return Tried(self._archive, Outcome.NOT_THERE, note)
        if self._barred:
            error = self._barred[0]
            hint = "; run as a user who may read it" if error.outcome is Outcome.DENIED else ""
            return Tried(self._archive, error.outcome, f"{error.note}{hint}")
        at = self._wanted.submitted_at
        dated = [(period.name, period.begin) for period in periods or () if period.begin is not None]
        if at is not None and dated and at < dated[-1][1] - DAY:
            return Tried(self._archive, Outcome.BEGAN_LATER, f"its first directory is {dated[-1][0]}")
        return Tried(self._archive, Outcome.NOT_THERE, self._words_on_neighbours())

    def _words_on_neighbours(self) -> str:
        """Whether jobs with near numbers are kept: that shows why this one is missing."""
        at = self._wanted.submitted_at
        number = whole(self._wanted.number)
        if at is None or number is None:
            return ""
        beside = [near for near in (number - 1, number + 1) if self._is_kept(near, at)]
        if not beside:
            return "nor is the job before or after it"
        alike = [near for near in (number - ROUND, number + ROUND) if self._is_kept(near, at)]
        words = f"job {beside[0]} beside it is"
        if alike:
            return words
        digit = number % ROUND
        why = f"SArchive began before hash.{digit} was there"
        return f"{words}; all jobs ending in {digit} may be missed: {why}"

    def _is_kept(self, number: int, at: Nanos) -> bool:
        for period in likely(at):
            for spot in spots(Wanted(str(number)), period, self._servers_of(period)):
                with suppress(NotRead):
                    written_at(self._root, spot.script)
                    return True
        return False


def choose(found: Iterable[ScriptFound], wanted: Wanted) -> tuple[ScriptFound | None, list[ScriptFound]]:
    at, until = wanted.submitted_at, wanted.until
    if at is not None:
        near = [one for one in found if one.spot.period.days_from(at) <= OTHER_JOB_DAYS]
        ordered = sorted(near, key=lambda one: (one.spot.period.days_from(at), abs(one.at - at)))
    else:
        begun = [one for one in found if until is None or _time(one) <= until]
        ordered = sorted(begun, key=_time, reverse=True)
    return (ordered[0], ordered[1:]) if ordered else (None, [])


def doubts(chosen: ScriptFound, others: list[ScriptFound], wanted: Wanted) -> Iterator[str]:
    """Reasons why it may be another job's script."""
    at, period = wanted.submitted_at, chosen.spot.period
    if at is not None and period.begin is None and abs(chosen.at - at) > OTHER_JOB_DAYS * DAY:
        days = abs(chosen.at - at) // DAY
        yield f"its file was written {days} days from the job's submission: copied, or of another job"
    if others and at is None:
        names = ", ".join(one.spot.period.name or "without a date" for one in others[:3])
        yield f"the newest of {len(others) + 1} jobs of this number; also in {names}: --at TIME chooses"


def _time(found: ScriptFound) -> int:
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
"""The most names read of one directory; a script is opened only if it may match."""


def walk(
    archive: str, cluster: str, span: ScriptPeriod, progress: Callable[[str], None]
) -> Generator[Walked, None, None]:
    """Every script. Raises SourceError if nothing may be listed."""
    root = root_of(archive)
    for period in _periods(root, archive, span):
        progress(f"{archive}/{period.name}")
        try:
            with listed(root, period.name) as entries:
                for entry in islice(entries, MOST_NAMES):
                    spot = _spot(period, entry.name)
                    if spot is not None and _is_within(entry, period, span):
                        yield _read(root, archive, spot, cluster)
        except NotRead as error:
            if error.outcome is not Outcome.NOT_THERE:
                yield Walked(unreadable=f"{archive}/{period.name}: {error.outcome}")


def _periods(root: str, archive: str, span: ScriptPeriod) -> list[Period]:
    try:
        return [EVERYTHING, *(period for period in dated(root) if _overlaps(period, span))]
    except NotRead as error:
        raise SourceDenied(f"{archive}: may not be listed; only single jobs can be asked for") from error


def _overlaps(period: Period, span: ScriptPeriod) -> bool:
    """Whether it may hold scripts of this span; a day is allowed for the zone."""
    since = span.since is None or period.days_from(span.since) <= 1 or (period.begin or 0) > span.since
    until = span.until is None or period.days_from(span.until) <= 1 or (period.end or 0) < span.until
    return since and until


def _read(root: str, archive: str, spot: ScriptPaths, cluster: str) -> Walked:
    try:
        return Walked(script=read_spot(root, archive, spot, cluster))
    except NotRead as error:
        return Walked(unreadable=f"{archive}/{spot.script}: {error.note or error.outcome}")


def _spot(period: Period, name: str) -> ScriptPaths | None:
    """The script that a name means, None for any other file."""
    base = f"{period.name}/" if period.name else ""
    if found := _SLURM_NAME.fullmatch(name):
        return ScriptPaths(period, base + name, f"{base}job.{found[1]}_environment", found[1])
    if found := _TORQUE_NAME.fullmatch(name):
        return ScriptPaths(period, base + name, "", found[1], found[2])
    return None


def _is_within(entry: "os.DirEntry[str]", period: Period, span: ScriptPeriod) -> bool:
    """Whether a file was written within the span; a copy, whose time means nothing, counts as such."""
    if span.since is None and span.until is None:
        return True
    try:
        at = Nanos(entry.stat(follow_symlinks=False).st_mtime_ns)
    except OSError:
        return True  # reading it reports what is wrong
    if period.days_from(at) > 1:
        return True
    return (span.since is None or at >= span.since) and (span.until is None or at <= span.until)


class ArchiveDirectory(Archive):
    """One directory with the label of its cluster, as a source of records and of scripts."""

    kind = "archive"

    def __init__(self, path: str, cluster: str = "") -> None:
        self._worker = Worker(f"archive {path}")
        super().__init__(str(Path(path)), cluster, self._worker)

    async def read(self, *, begins: bool) -> Batch:
        await self._worker.run(partial(root_of, self.name))
        return Batch()

    async def find(self, wanted: Wanted) -> Answer:
        now = SystemClock().now()
        return await self._worker.run(lambda: DirectorySearch(self.name, self.cluster, wanted, now).answer())

    def walk(self, span: ScriptPeriod, progress: Callable[[str], None]) -> AsyncGenerator[Walked, None]:
        return self._steps_of_walk(self._worker, walk(self.name, self.cluster, span, progress))


def open_source(spec: SourceSpec, window: ReadWindow) -> ArchiveDirectory:
    return ArchiveDirectory(spec.target, spec.label)
