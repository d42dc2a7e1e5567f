"""The record files of one `supervisor-job` directory: which there are, which changed, what they hold.

Sirepo replaces a file by renaming, so its mtime, size and inode together tell whether it changed. Reading
follows symbolic links and never blocks: pipes and devices are left alone. A file that cannot be read costs
its own job only, whose last good record stays valid. Used by one thread at a time; knows no event loop.
"""

import os
import re
import stat
from collections.abc import Iterable
from operator import itemgetter

from jobtui.backends.base import Batch
from jobtui.backends.sirepo.records import read_job
from jobtui.model.health import FAULTS, Skip
from jobtui.model.ids import JID, JobId
from jobtui.model.jobs import Job
from jobtui.transport.files import odd_kind

SUFFIX = ".json"
MAX_BYTES = 8 << 20
"""The largest record that is read: four thousand times the usual size."""
SKIPS_NAMED = 20
"""How many of the files that a reading left out are named; all are counted."""

_FIRST_BYTES = 8192
# O_NONBLOCK: should a pipe have taken the file's place by now, opening it must not wait for a writer.
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
# "/" cannot be in a name, so names joined by it are distinct, and one pass finds those of records.
_NAMES = re.compile(rf"/({JID})\.json(?=/)", re.ASCII)
_AT_ONCE = 1_000
_NAME = re.compile(rf"{JID}\.json", re.ASCII)
_MTIME_SHIFT, _SIZE_SHIFT = 119, 64
_STAMP = itemgetter(0)  # comparing whole pairs takes three times as long
_KIND = stat.S_IFMT(0o177777)
_REGULAR = stat.S_IFREG


class TooLarge(Exception):
    """A file is larger than what is read. The text says how large."""


def is_record_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def listed(directory: int | str) -> list[JobId]:
    """The ids of all records in a directory, in no order. Raises OSError."""
    names = os.listdir(directory)
    parts = (names[start : start + _AT_ONCE] for start in range(0, len(names), _AT_ONCE))
    return [jid for part in parts for jid in _NAMES.findall(f"/{'/'.join(part)}/")]


def read_file(name: str, directory: int | None) -> bytes:
    """The bytes of a file. Raises OSError and TooLarge."""
    fd = os.open(name, _FLAGS, dir_fd=directory)
    try:
        data = os.read(fd, _FIRST_BYTES)
        return data if len(data) < _FIRST_BYTES else _read_rest(fd, data)
    finally:
        os.close(fd)


def _read_rest(fd: int, first: bytes) -> bytes:
    size = os.fstat(fd).st_size
    parts, total = [first], len(first)
    while size <= MAX_BYTES and (part := os.read(fd, max(size - total + 1, _FIRST_BYTES))):
        parts.append(part)
        total += len(part)
        size = max(size, total)  # what `fstat` said, or more when it grows
    if size > MAX_BYTES:
        raise TooLarge(f"{size} bytes, more than the {MAX_BYTES} that are read")
    return b"".join(parts)


def oddity_of(status: os.stat_result) -> str | None:
    """Why a directory entry is not read, None when it is a regular file."""
    kind = odd_kind(status.st_mode)
    return f"not a regular file but {kind}" if kind else None


class JobFiles:
    """What is known of the files of one directory. `where` is its path, `source` the name of the source."""

    def __init__(self, where: str, source: str) -> None:
        self._where = where
        self._source = source
        self._stamps: dict[JobId, int] = {}
        """By job, 60 bits of the hash of its file's stamp, which take 16 bytes less than the stamp."""
        self._waiting: list[tuple[int, JobId]] = []
        self._listed: list[JobId] = []
        self._odd: dict[JobId, str] = {}
        self._gone: list[JobId] = []
        self._faulty: dict[JobId, str] = {}
        self._recovered = 0

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def forget(self) -> None:
        self._recovered += len(self._faulty)
        for kept in (self._stamps, self._waiting, self._listed, self._odd, self._gone, self._faulty):
            kept.clear()

    def sweep(self, directory: int) -> None:
        try:
            jids, self._listed = self._listed or listed(directory), []
            if self._compare(jids, directory) < len(self._stamps):
                self._lose(self._stamps.keys() - set(jids))
            if self._faulty:
                self._lose(self._faulty.keys() - set(jids))
        finally:
            self._waiting.sort(key=_STAMP)  # the newest last, which is where reading takes them

    def begin(self, directory: int, most: int) -> bool:
        """Look at some of the files, so that jobs show before all were looked at; whether there are more.

        Then the sweep that comes at once takes the same list.
        """
        jids = listed(directory)
        self._listed = jids if len(jids) > most else []
        self._compare(jids[:most], directory)
        self._waiting.sort(key=_STAMP)
        return len(jids) > most

    def check(self, directory: int, jids: Iterable[JobId]) -> None:
        try:
            for jid in jids:
                self._look(jid, directory)
        finally:
            self._waiting.sort(key=_STAMP)  # the newest last, which is where reading takes them

    def _compare(self, jids: Iterable[JobId], directory: int) -> int:
        """Find which files changed; how many of them were known. The one loop that must be quick."""
        known, waiting, status_of, found = self._stamps, self._waiting, os.stat, 0
        for jid in jids:
            try:
                status = status_of(jid + SUFFIX, dir_fd=directory)
            except OSError:
                found += self._look(jid, directory)
                continue
            stamp = status.st_mtime_ns << _MTIME_SHIFT | status.st_size << _SIZE_SHIFT | status.st_ino
            before = known.get(jid)
            if before is not None:
                found += 1
            if before != hash(stamp) >> 1:
                waiting.append((stamp, jid))
                if status.st_mode & _KIND != _REGULAR and (why := oddity_of(status)):
                    self._odd[jid] = why
        return found

    def _look(self, jid: JobId, directory: int) -> bool:
        """Look at one file, with care for all that can be there instead; whether it was known and is."""
        name, why = jid + SUFFIX, None
        try:
            # When even this is denied, it is the directory that may not be searched: no matter of one file.
            status = os.stat(name, dir_fd=directory, follow_symlinks=False)
        except FileNotFoundError:
            self._lose([jid])
            return False
        if stat.S_ISLNK(status.st_mode):
            try:
                status = os.stat(name, dir_fd=directory)
            except OSError as error:
                why = f"a link that cannot be followed: {error.strerror}"
        known = self._stamps.get(jid)
        stamp = status.st_mtime_ns << _MTIME_SHIFT | status.st_size << _SIZE_SHIFT | status.st_ino
        if known != hash(stamp) >> 1:
            self._waiting.append((stamp, jid))
            if why := why or oddity_of(status):
                self._odd[jid] = why
        return known is not None

    def _lose(self, jids: Iterable[JobId]) -> None:
        for jid in jids:
            self._odd.pop(jid, None)
            self._recovered += self._faulty.pop(jid, None) is not None
            if self._stamps.pop(jid, None) is not None:
                self._gone.append(jid)

    def read(self, directory: int, limit: int) -> Batch:
        """Read up to `limit` of the files that wait, the newest first."""
        jobs: list[Job] = []
        faults: list[tuple[JobId, str]] = []
        rest = max(0, len(self._waiting) - limit)
        batch = self._waiting[rest:]
        del self._waiting[rest:]
        faulty, stamps, odd = self._faulty, self._stamps, self._odd
        source = self._source
        open_, read, close = os.open, os.read, os.close
        job: Job | None
        fault: str | None
        for stamp, jid in reversed(batch):
            try:
                if jid in odd:
                    job, fault = None, odd.pop(jid)
                else:
                    # As `read_file` does; the call would take a twentieth of the whole
                    fd = open_(jid + SUFFIX, _FLAGS, dir_fd=directory)
                    try:
                        data = read(fd, _FIRST_BYTES)
                        if len(data) == _FIRST_BYTES:
                            data = _read_rest(fd, data)
                    finally:
                        close(fd)
                    job, fault = read_job(data, jid, stamp >> _MTIME_SHIFT, source)
                stamps[jid] = hash(stamp) >> 1
            except FileNotFoundError:
                self._lose([jid])
                continue
            except TooLarge as error:
                stamps[jid] = hash(stamp) >> 1
                job, fault = None, str(error)
            except OSError as error:
                # Not stamped, so that it is tried again: what forbids reading can go and leave no trace.
                job, fault = None, error.strerror or str(error)
            except Exception as error:  # noqa: BLE001 - it costs the record, and as `rows_of` would be slow
                stamps[jid] = hash(stamp) >> 1
                job, fault = None, FAULTS.note(error, "reading a record").words
            if job is not None:
                jobs.append(job)
            if (fault is not None or faulty) and faulty.get(jid) != fault:
                self._judge(jid, fault, faults)
        return self._batch(jobs, faults, len(batch))

    def _judge(self, jid: JobId, fault: str | None, faults: list[tuple[JobId, str]]) -> None:
        """Note that what is wrong with a file is another thing than before."""
        self._recovered += self._faulty.pop(jid, None) is not None
        if fault is not None:
            self._faulty[jid] = fault
            faults.append((jid, fault))

    def _batch(self, jobs: list[Job], faults: list[tuple[JobId, str]], count: int) -> Batch:
        gone, self._gone = tuple(self._gone), []
        recovered, self._recovered = self._recovered, 0
        return Batch(
            jobs=tuple(jobs),
            gone=gone,
            skipped=tuple(Skip(f"{self._where}/{jid}{SUFFIX}", why) for jid, why in faults[-SKIPS_NAMED:]),
            skip_count=len(faults),
            recovered=recovered,
            count=count,
            more=bool(self._waiting),
            left=len(self._waiting) or max(0, len(self._listed) - len(self._stamps)),
        )
