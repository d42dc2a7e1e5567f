"""The job supervisor's db directory as a source: `<srdb>/supervisor-job/<computeJid>.json`. Reads only.

Sirepo replaces a file by renaming, so its mtime, size and inode together tell whether it changed. Reading
follows symbolic links and never blocks: pipes and devices are left alone. A file that cannot be read costs
its own job only, whose last good record stays valid.

One worker thread does all reading. The first poll gives some jobs at once, the next ones all jobs, newest
first; later ones what changed. The kernel reports changed files once `changed` was called, which a one-shot
command never does. Every file is also checked, less often the more that costs: notifications get lost when a
queue overflows. If the kernel cannot know, as when another machine writes the files, each poll checks every
file.
"""

import asyncio
import os
import re
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from operator import itemgetter
from pathlib import Path

import msgspec

from jobtui.backends.base import Batch, PolledSource
from jobtui.backends.sirepo.files import DIRECTORY, SUFFIX, RecordTooLarge, listed, newest, read_file
from jobtui.backends.sirepo.records import NotARecord, read_detail, read_job
from jobtui.model.health import FAULTS, SKIPS_NAMED, Skip, SourceError, SourceMissing
from jobtui.model.ids import JID, JobId, split_jid
from jobtui.model.jobs import Job, JobDetail
from jobtui.model.specs import ReadWindow, SourceSpec
from jobtui.transport.files import FileId, odd_kind, source_error
from jobtui.transport.watch import PASSING, REMOVED, DirectoryWatch, silent_file_system
from jobtui.transport.worker import Worker

_NAME = re.compile(rf"{JID}\.json", re.ASCII)
_MTIME_SHIFT, _SIZE_SHIFT = 119, 64
_STAMP = itemgetter(0)  # comparing whole pairs takes three times as long
_KIND = stat.S_IFMT(0o177777)
_REGULAR = stat.S_IFREG


class JobFiles:
    """What is known of the files of one directory. `where` is its path, `source` the name of the source."""

    def __init__(self, where: str, source: str) -> None:
        self._where = where
        self._source = source
        self._stamps: dict[JobId, int] = {}
        """By job, 60 bits of the hash of its file's stamp, which is 16 bytes smaller than the stamp."""
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
        jids, self._listed = self._listed or listed(directory), []
        if self.check(directory, jids) < len(self._stamps):
            self._lose(self._stamps.keys() - set(jids))
        if self._faulty:
            self._lose(self._faulty.keys() - set(jids))

    def begin(self, directory: int, most: int | None) -> None:
        """Look at some of the files, so that jobs show before all were checked.

        Either any files, and the sweep that follows at once uses the same list; or the `most` newest.
        """
        jids = listed(directory) if most is None else newest(directory, most)
        first = most or FIRST_FILES
        self._listed = jids if len(jids) > first else []
        self.check(directory, jids[:first])

    def check(self, directory: int, jids: Iterable[JobId]) -> int:
        """Find which files changed. Returns how many were known."""
        try:
            return self._compare(jids, directory)
        finally:
            self._waiting.sort(key=_STAMP)  # the newest last, which is where reading takes them

    def _compare(self, jids: Iterable[JobId], directory: int) -> int:
        """The one loop that must be fast."""
        known, waiting, status_of, found, why = self._stamps, self._waiting, os.stat, 0, ""
        for jid in jids:
            try:
                status = status_of(jid + SUFFIX, dir_fd=directory)
            except OSError as error:
                try:
                    # If even this is denied, the directory may not be searched: not the fault of one file
                    status = status_of(jid + SUFFIX, dir_fd=directory, follow_symlinks=False)
                except FileNotFoundError:
                    self._lose([jid])
                    continue
                why = f"a link that cannot be followed: {error.strerror}"
            stamp = status.st_mtime_ns << _MTIME_SHIFT | status.st_size << _SIZE_SHIFT | status.st_ino
            before = known.get(jid)
            if before is not None:
                found += 1
            if before != hash(stamp) >> 1:
                waiting.append((stamp, jid))
                if status.st_mode & _KIND != _REGULAR:
                    is_link = stat.S_ISLNK(status.st_mode)
                    self._odd[jid] = why if is_link else f"not a regular file but {odd_kind(status.st_mode)}"
        return found

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
        job: Job | None
        fault: str | None
        for stamp, jid in reversed(batch):
            try:
                if jid in odd:
                    job, fault = None, odd.pop(jid)
                else:
                    data = read_file(jid + SUFFIX, directory)
                    job, fault = read_job(data, jid, stamp >> _MTIME_SHIFT, source)
                stamps[jid] = hash(stamp) >> 1
            except FileNotFoundError:
                self._lose([jid])
                continue
            except RecordTooLarge as error:
                stamps[jid] = hash(stamp) >> 1
                job, fault = None, str(error)
            except OSError as error:
                # Not stamped, so that it is tried again: what forbids reading can end without a trace.
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
        """Note that the fault of a file has changed."""
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
            more=bool(self._waiting or self._listed),
            left=len(self._waiting) or max(0, len(self._listed) - len(self._stamps)),
        )


SWEEP_S = 30.0
"""How often every file is checked although the kernel reports changes."""
WATCHED_SHARE, UNWATCHED_SHARE = 1 / 300, 1 / 10
"""The share of the time that checking every file may take, with and without notification."""
MANY_NAMES = 10_000
"""With so many changed names every file is checked: that is cheaper, and some names may be lost."""


class ChangeWatch:
    """Finds what may have changed in a directory. `begin` and `look` are for the worker, `wait` for the loop.

    `note` says why there is no notification; "" once there is again, None if there always was.
    """

    make_watch: Callable[[str, Callable[[str], bool]], DirectoryWatch] = DirectoryWatch
    silent: Callable[[str], str | None] = staticmethod(silent_file_system)
    timer: Callable[[], float] = staticmethod(time.monotonic)
    sweep_s = SWEEP_S

    def __init__(self, path: str, files: JobFiles) -> None:
        self._path = path
        self._files = files
        self._watch: DirectoryWatch | None = None
        self._begin_at = self._sweep_at = self.timer()
        self._cost_s = 0.0
        self.note: str | None = None

    @property
    def is_due(self) -> bool:
        return self._watch is None and self.timer() >= self._begin_at

    def begin(self) -> bool:
        try:
            if kind := self.silent(self._path):
                self._do_without(f"{kind} does not report changes")
                return False
            watch = self.make_watch(self._path, lambda name: _NAME.fullmatch(name) is not None)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            self._do_without(f"no notification of changes: {reason}")
            return False
        self._watch = watch
        self.note = None if self.note is None else ""
        self.sweep_now()  # for what changed before the watch began
        return True

    def _do_without(self, why: str) -> None:
        self.note = f"{why}; each poll checks every file"
        self._begin_at = self.timer() + self.sweep_s

    def sweep_now(self) -> None:
        self._sweep_at = self.timer()

    def look(self, directory: int) -> None:
        """Look at what may have changed in the open directory. Raises OSError."""
        names = self._watch.take() if self._watch else set()
        self._drop_stale(directory)
        if self._watch is None or self.timer() >= self._sweep_at or len(names) >= MANY_NAMES:
            self.sweep_now()  # it stays due when it fails
            begun = self.timer()
            self._files.sweep(directory)
            self._cost_s = self.timer() - begun
            self._sweep_at = self.timer() + max(self.sweep_s, self._cost_s / WATCHED_SHARE)
        elif names:
            sweep_at = self._sweep_at
            self.sweep_now()
            self._files.check(directory, [JobId(name.removesuffix(SUFFIX)) for name in names])
            self._sweep_at = sweep_at

    def _drop_stale(self, directory: int) -> None:
        """Drop a watch that failed, or that watches a directory that is no longer at this path."""
        if (watch := self._watch) is None:
            return
        status = os.fstat(directory)
        replaced = watch.directory != FileId(status.st_dev, status.st_ino)
        failure = REMOVED if replaced else watch.failure
        if failure is None:
            return
        self._watch = None
        watch.close()
        if failure in PASSING:
            self._begin_at = self.timer()
        else:
            self._do_without(f"notification of changes failed: {failure}")

    async def wait(self, timeout_s: float) -> None:
        """Return after news, or after `timeout_s`; later without notification if checking takes long."""
        if self._watch is None:
            await asyncio.sleep(max(timeout_s, self._cost_s / UNWATCHED_SHARE))
            return
        await self._watch.wait(timeout_s)

    def close(self) -> None:
        """May be called twice; in the thread of who waits, if somebody does."""
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.close()


BATCH_FILES = 2_000
FIRST_FILES = 500
"""How many are read before all are checked for the newest: 100,000 take a third of a second."""


class SirepoDb(PolledSource):
    """The records of a job supervisor. `root` is Sirepo's db directory, `name` that path as it was given.

    With `most` the first polls give the newest, and tell whether there are more.
    """

    kind = "sirepo_db"

    batch_files = BATCH_FILES

    def __init__(self, root: Path, most: int | None = None) -> None:
        super().__init__(str(root))
        self._most = most
        self._path = os.path.join(self.name, DIRECTORY)
        self._files = JobFiles(self._path, self.name)
        self._worker = Worker(f"sirepo_db {self.name}")
        self._changes = ChangeWatch(self._path, self._files)

    async def read(self, *, begins: bool) -> Batch:
        return await self._worker.run(partial(self._poll, begins=begins))

    async def changed(self, timeout_s: float) -> None:
        """Return when a change of a file is reported, or after `timeout_s` at the latest.

        Without notification it waits longer, as it checks every file. The first call sets up and returns.
        """
        if self.closing.is_set():
            return
        if self._changes.is_due and await self._worker.run(self._changes.begin):
            return
        await self._changes.wait(timeout_s)

    async def detail(self, job_id: JobId) -> JobDetail | None:
        if split_jid(job_id) is None:
            return None
        if self.closing.is_set():
            raise SourceError(f"{self.name}: is closed")
        return await self._worker.run(partial(self._detail, job_id))

    def read_record(self, job_id: JobId) -> JobDetail | None:
        with suppress(SourceError):
            return self._detail(job_id)
        return None

    async def aclose(self) -> None:
        await super().aclose()
        self._changes.close()
        await self._worker.finish(self._changes.close)  # a watch that may have begun in between

    def _poll(self, *, begins: bool) -> Batch:
        if begins:
            self._files.forget()
            self._changes.sweep_now()
        with self._directory() as directory:
            if begins:
                self._files.begin(directory, self._most)
            if not (self._files.waiting or (begins and self._most)):
                self._changes.look(directory)
            batch = self._files.read(directory, self.batch_files)
        return msgspec.structs.replace(batch, note=self._changes.note)

    def _detail(self, job_id: JobId) -> JobDetail | None:
        path = os.path.join(self._path, job_id + SUFFIX)
        with self._directory() as directory:
            try:
                status = os.stat(job_id + SUFFIX, dir_fd=directory)
                if kind := odd_kind(status.st_mode):
                    raise SourceError(f"{path}: not a regular file but {kind}")
                data = read_file(job_id + SUFFIX, directory)
                return read_detail(data, job_id, status.st_mtime_ns, self.name, path)
            except FileNotFoundError:
                return None
            except OSError as error:
                raise self._error(error, path) from error
            except (RecordTooLarge, NotARecord) as error:
                raise SourceError(f"{path}: {error}") from error

    @contextmanager
    def _directory(self) -> Iterator[int]:
        """The directory, open only while needed: a file system in use cannot be unmounted."""
        try:
            directory = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except (OSError, ValueError) as error:
            # Its successor may have the same inode, and the kernel reports that later
            self._changes.sweep_now()
            raise self._error(error, self._path) from error
        try:
            yield directory
        except OSError as error:
            raise self._error(error, self._path) from error
        finally:
            os.close(directory)

    def _error(self, error: OSError | ValueError, path: str) -> SourceError:
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            return source_error(error, path)
        if not os.path.lexists(self.name):
            why = "no such directory; name the db directory of Sirepo"
        elif not os.path.isdir(self.name):
            why = "not a directory; name the db directory of Sirepo"
        elif os.path.basename(os.path.abspath(self.name)) == DIRECTORY:
            why = f"has no {DIRECTORY}, but may be that directory itself; name its parent"
        else:
            why = f"has no {DIRECTORY} directory: it is not the db directory of Sirepo, "
            why += "or its supervisor has not run yet"
        return SourceMissing(f"{self.name}: {why}")


def open_source(spec: SourceSpec, window: ReadWindow) -> SirepoDb:
    return SirepoDb(Path(spec.target), window.most)
