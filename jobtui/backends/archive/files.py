"""The files of an archive: which days they are of, opening them safely, reading their records.

The date is the local one of the machine that archived, two seconds after submission. That zone is not known
here, so that a day on either side is looked at, too.

What is read is below the directory, whatever links there are: where a path ends is looked up before it is
opened, and again of what was opened, so that nobody can exchange one in between.

SArchive writes the script first and both in place: of a job of this moment half may be there.
"""

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date, timedelta
from typing import NamedTuple

from jobtui.formats.sarchive import parse_environment, slurm_names, torque_tasks
from jobtui.model.clock import SECOND, Nanos, time_of_iso, utc_of
from jobtui.model.health import SourceDenied, SourceMissing, SourceUnreachable
from jobtui.model.numbers import whole
from jobtui.model.scripts import ArchivedScript, Environment, Outcome, Scheduler, Variable, Wanted, text_of
from jobtui.transport.files import odd_kind

DAY = 86_400 * SECOND
FORMS = ("%Y%m%d", "%Y%m", "%Y")
WHOLE = ""
"""The name of the place where everything is kept without directories."""
_NAME = re.compile(r"(?:19|20|21)\d\d(?:\d\d(?:\d\d)?)?", re.ASCII)


class Period(NamedTuple):
    """One of the directories: from the beginning of its first day up to the end of its last, as if in UTC.

    Both are None for the place without directories.
    """

    name: str
    begin: Nanos | None = None
    end: Nanos | None = None

    def days_from(self, at: Nanos) -> float:
        """How many days a time is outside of it, 0 inside and where it has no bounds."""
        if self.begin is None or self.end is None:
            return 0.0
        return max(0, self.begin - at, at - self.end) / DAY


EVERYTHING = Period(WHOLE)


def parse_period(name: str) -> Period | None:
    """The period that a directory is for, None for any other name."""
    begin = time_of_iso(f"{name}0101"[:8]) if _NAME.fullmatch(name) else None
    if begin is None:
        return None
    first = utc_of(begin).date()
    next_month = (first.replace(day=28) + timedelta(days=4)).replace(day=1)
    following = {4: date(first.year + 1, 1, 1), 6: next_month, 8: first + timedelta(days=1)}[len(name)]
    return Period(name, begin, Nanos(begin + (following - first).days * DAY))


def likely(at: Nanos) -> tuple[Period, ...]:
    """The periods in which a job submitted then may be, likeliest first, the place without any included."""
    days = [utc_of(Nanos(at + offset * DAY)) for offset in (0, 1, -1)]
    names = dict.fromkeys(day.strftime(form) for form in FORMS for day in days)
    return (EVERYTHING, *(period for period in map(parse_period, names) if period is not None))


RECENT_DAYS, RECENT_MONTHS, RECENT_YEARS = 400, 24, 10
"""How far back directories are looked for by their names."""


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
"""A larger file is refused. Slurm takes scripts of 4 MB unless told otherwise."""
PIECE_BYTES = 1 << 20
# O_NONBLOCK: opening a pipe must not wait for a writer.
_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
_LINKS = {
    errno.EXDEV: "leads by a link out of the archive, which is not followed",
    errno.ELOOP: "leads by links into a ring, or was exchanged for a link meanwhile",
}


class NotRead(Exception):
    """A file of an archive that is not read; `outcome` says of which kind the reason is."""

    def __init__(self, outcome: Outcome, note: str = "") -> None:
        super().__init__(note)
        self.outcome = outcome
        self.note = note


class Kept(NamedTuple):
    """A file as it was read."""

    data: bytes
    written_at: Nanos


def root_of(path: str) -> str:
    """Where the directory of an archive really is. Raises SourceError."""
    try:
        root = os.path.realpath(path, strict=True)
        if not stat.S_ISDIR(os.stat(root).st_mode):
            raise NotADirectoryError
    except FileNotFoundError as error:
        raise SourceMissing(f"{path}: no such directory") from error
    except NotADirectoryError as error:
        raise SourceMissing(f"{path}: is no directory; name the one that SArchive writes into") from error
    except PermissionError as error:
        raise SourceDenied(f"{path}: permission denied; run as a user who may read it") from error
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise SourceUnreachable(f"{path}: cannot be read: {why}") from error
    return root


def read_kept(root: str, path: str) -> Kept:
    """The file at a path below the root. Raises NotRead."""
    with _opened(root, path, is_file=True) as file:
        status, parts, size = os.fstat(file), list[bytes](), 0
        while size <= MOST_BYTES and (part := os.read(file, PIECE_BYTES)):
            parts.append(part)
            size += len(part)
        if size > MOST_BYTES:
            raise _too_large(path)
        return Kept(b"".join(parts), Nanos(status.st_mtime_ns))


def written_at(root: str, path: str) -> Nanos:
    """When something at a path below the root was last written, whatever it is. Raises NotRead."""
    with _explained(path):
        return Nanos(os.stat(_below(root, path), follow_symlinks=False).st_mtime_ns)


@contextmanager
def listed(root: str, path: str) -> "Iterator[Iterator[os.DirEntry[str]]]":
    """The entries of a directory below the root, "" for itself, in no order. Raises NotRead."""
    with _opened(root, path, is_file=False) as directory, os.scandir(directory) as entries:
        yield entries


@contextmanager
def _opened(root: str, path: str, *, is_file: bool) -> Iterator[int]:
    """A regular file below the root, or a directory. Raises NotRead."""
    with _explained(path):
        target = _below(root, path)
        if is_file:
            _check_file(os.stat(target, follow_symlinks=False), path)
        opened = os.open(target, _OPEN | (0 if is_file else os.O_DIRECTORY))
        try:
            if is_file:
                _check_file(os.fstat(opened), path)
            # it may have been exchanged meanwhile
            _check_within(root, os.readlink(f"/proc/self/fd/{opened}"))
            yield opened
        finally:
            os.close(opened)


def _below(root: str, path: str) -> str:
    """Where a path really ends. Raises OSError: EXDEV where a link leads out, ELOOP in a ring."""
    target = os.path.realpath(f"{root}/{path}", strict=True)
    _check_within(root, target)
    return target


def _check_within(root: str, target: str) -> None:
    if target != root and not target.startswith(f"{root.rstrip('/')}/"):
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))


@contextmanager
def _explained(path: str) -> Iterator[None]:
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
        raise NotRead(Outcome.REFUSED, f"{path} is {kind}, which is not opened")
    if status.st_size > MOST_BYTES:
        raise _too_large(path)


def _too_large(path: str) -> NotRead:
    return NotRead(Outcome.REFUSED, f"{path} is larger than {MOST_BYTES >> 20} MiB")


class Spot(NamedTuple):
    """Where a job may be kept: the path of its script, of its environment, and in which period that is.

    Without `environment` the job is one of Torque; `is_spool` marks Slurm's own copy.
    """

    period: Period
    script: str
    environment: str = ""
    number: str = ""
    server: str = ""
    is_spool: bool = False


def spots(wanted: Wanted, period: Period, servers: tuple[str, ...]) -> Iterator[Spot]:
    """Where in a period a job may be. `servers` are the ends of Torque's ids there, as far as known."""
    base = f"{period.name}/" if period.name else ""
    if not wanted.server:
        script, environment = slurm_names(wanted.number)
        yield Spot(period, base + script, base + environment, wanted.number)
    for server in (wanted.server,) if wanted.server else servers:
        yield Spot(period, f"{base}{wanted.number}{server}.SC", "", wanted.number, server)
    if not base and not wanted.server:
        # in Slurm's own StateSaveLocation each job has a directory in one of ten
        place = f"hash.{wanted.number[-1:]}/job.{wanted.number}"
        yield Spot(period, f"{place}/script", f"{place}/environment", wanted.number, is_spool=True)


def read_spot(root: str, place: str, spot: Spot, cluster: str, task: str = "") -> ArchivedScript:
    """What is kept there. Raises NotRead."""
    kept = read_kept(root, spot.script)
    if spot.environment:
        environment, note = _environment(root, spot.environment)
    else:
        environment, note = _files_of_torque(root, spot, text_of(kept.data), task), ""
    is_copy = spot.period.days_from(kept.written_at) > 1  # its directory says another date
    archived_at = None if is_copy else kept.written_at
    kept_in = f"kept in {spot.period.name}" if is_copy else ""
    return ArchivedScript(
        number=spot.number + spot.server,
        script=kept.data.removesuffix(b"\0") if spot.is_spool else kept.data,
        source=f"{place}/{spot.script}",
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


def _files_of_torque(root: str, spot: Spot, script: str, task: str) -> Environment:
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
