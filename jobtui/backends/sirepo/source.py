"""The job supervisor's db directory as a source: `<srdb>/supervisor-job/<computeJid>.json`. Reads only.

The kernel is asked for notification only once somebody waits for changes, which a one-shot command never
does. Every file is looked at beside that, in a period that grows with what it costs: notifications get lost
when a queue overflows, and there are none for a file written on another machine.

One worker thread does all reading. The first poll gives some jobs at once, the next ones every job, newest
first; later ones what changed.
Which files those are the kernel tells, once `changed` was called; in between every file is looked at now and
then, because a notification can be lost. Where the kernel cannot know, as on network file systems, each poll
looks at every file.
"""

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import msgspec

from jobtui.backends.base import Batch, PolledSource
from jobtui.backends.sirepo.client import (
    SUFFIX,
    JobFiles,
    TooLarge,
    is_record_name,
    oddity_of,
    read_file,
)
from jobtui.backends.sirepo.records import NotARecord, read_detail
from jobtui.model.health import SourceDenied, SourceError, SourceMissing, SourceUnreachable
from jobtui.model.ids import JobId, split_jid
from jobtui.model.jobs import JobDetail
from jobtui.model.specs import SourceSpec, Window
from jobtui.transport.files import FileId
from jobtui.transport.watch import PASSING, REMOVED, DirectoryWatch, silent_file_system
from jobtui.transport.worker import Worker

SWEEP_S = 30.0
"""How often every file is looked at although the kernel tells of changes."""
WATCHED_SHARE, UNWATCHED_SHARE = 1 / 300, 1 / 10
"""The share of the time that looking at every file may take, with and without notification."""
MANY_NAMES = 2_000
"""From so many names on every file is looked at: that is cheaper, and some names may have been lost."""


class ChangeWatch:
    """Finds what may have changed in a directory. `begin` and `look` are for the worker, `wait` for the loop.

    `note` says in words when there is no notification and why; empty when there is again, None when there
    was never another state.
    """

    def __init__(
        self,
        path: str,
        files: JobFiles,
        make_watch: Callable[[str, Callable[[str], bool]], DirectoryWatch],
        silent: Callable[[str], str | None],
        timer: Callable[[], float],
        sweep_s: float,
    ) -> None:
        self._path = path
        self._files = files
        self._make_watch = make_watch
        self._silent = silent
        self._timer = timer
        self._sweep_s = sweep_s
        self._watch: DirectoryWatch | None = None
        self._begin_at = timer()
        self._sweep_at = timer()
        self._cost_s = 0.0
        self.note: str | None = None

    @property
    def is_due(self) -> bool:
        return self._watch is None and self._timer() >= self._begin_at

    def begin(self) -> bool:
        """Set up notification, if there can be one."""
        try:
            if kind := self._silent(self._path):
                self._do_without(f"{kind} does not tell of changes")
                return False
            watch = self._make_watch(self._path, is_record_name)
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            self._do_without(f"no notification of changes: {reason}")
            return False
        self._watch = watch
        self.note = None if self.note is None else ""
        self.sweep_now()  # for what changed before the watch began
        return True

    def _do_without(self, why: str) -> None:
        self.note = f"{why}; every file is looked at with each poll"
        self._begin_at = self._timer() + self._sweep_s

    def sweep_now(self) -> None:
        self._sweep_at = self._timer()

    def look(self, directory: int) -> None:
        """Look at what may have changed in the open directory. Raises OSError."""
        names = self._watch.take() if self._watch else set()
        self._drop_stale(directory)
        if self._watch is None or self._timer() >= self._sweep_at or len(names) >= MANY_NAMES:
            self.sweep_now()  # it stays due when it fails
            begun = self._timer()
            self._files.sweep(directory)
            self._cost_s = self._timer() - begun
            self._sweep_at = self._timer() + max(self._sweep_s, self._cost_s / WATCHED_SHARE)
        elif names:
            sweep_at = self._sweep_at
            self.sweep_now()
            self._files.check(directory, [JobId(name.removesuffix(SUFFIX)) for name in names])
            self._sweep_at = sweep_at

    def _drop_stale(self, directory: int) -> None:
        """Let go a watch that failed, or watches a directory that is not in this place any more."""
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
            self._begin_at = self._timer()
        else:
            self._do_without(f"notification of changes failed: {failure}")

    async def wait(self, timeout_s: float) -> None:
        """Return after news, or after `timeout_s`; later when nothing tells and looking takes long."""
        if self._watch is None:
            await asyncio.sleep(max(timeout_s, self._cost_s / UNWATCHED_SHARE))
            return
        await self._watch.wait(timeout_s)

    def close(self) -> None:
        """May be called twice; in the thread of who waits, if somebody does."""
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.close()


DIRECTORY = "supervisor-job"
BATCH_FILES = 2_000
FIRST_FILES = 500
"""So many are read before all are looked at, to find the newest: 100,000 take a third of a second."""


class SirepoDb(PolledSource):
    """The records of a job supervisor. `root` is Sirepo's db directory, `name` that path as it was given."""

    kind = "sirepo_db"

    def __init__(self, root: Path, *, batch_files: int = BATCH_FILES, sweep_s: float = SWEEP_S) -> None:
        super().__init__(str(root))
        self._path = os.path.join(self.name, DIRECTORY)
        self._files = JobFiles(self._path, self.name)
        self._batch_files = batch_files
        self._worker = Worker(f"sirepo_db {self.name}")
        self._changes = ChangeWatch(
            self._path, self._files, DirectoryWatch, silent_file_system, time.monotonic, sweep_s
        )

    async def read(self, *, begins: bool) -> Batch:
        return await self._worker.run(partial(self._poll, begins=begins))

    async def changed(self, timeout_s: float) -> None:
        """Return when a file was told to have changed, or after `timeout_s` at the latest.

        Without notification, as late as keeps the work for looking at every file small; the first call sets
        up the notification and returns.
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

    async def aclose(self) -> None:
        await super().aclose()
        self._changes.close()
        await self._worker.finish(self._changes.close)  # what may have begun meanwhile

    def _poll(self, *, begins: bool) -> Batch:
        if begins:
            self._files.forget()
            self._changes.sweep_now()
        with self._directory() as directory:
            more = begins and self._files.begin(directory, FIRST_FILES)
            if not self._files.waiting:
                self._changes.look(directory)
            batch = self._files.read(directory, self._batch_files)
        return msgspec.structs.replace(batch, note=self._changes.note, more=more or batch.more)

    def _detail(self, job_id: JobId) -> JobDetail | None:
        path = os.path.join(self._path, job_id + SUFFIX)
        with self._directory() as directory:
            try:
                status = os.stat(job_id + SUFFIX, dir_fd=directory)
                if why := oddity_of(status):
                    raise SourceError(f"{path}: {why}")
                data = read_file(job_id + SUFFIX, directory)
                return read_detail(data, job_id, status.st_mtime_ns, self.name, path)
            except FileNotFoundError:
                return None
            except OSError as error:
                raise self._error(error, path) from error
            except (TooLarge, NotARecord) as error:
                raise SourceError(f"{path}: {error}") from error

    @contextmanager
    def _directory(self) -> Iterator[int]:
        """The directory, open as long as needed: a file system in use could not be unmounted."""
        try:
            directory = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except (OSError, ValueError) as error:
            # What comes in its place may have its inode, and the kernel's word of that comes later
            self._changes.sweep_now()
            raise self._error(error, self._path) from error
        try:
            yield directory
        except OSError as error:
            raise self._error(error, self._path) from error
        finally:
            os.close(directory)

    def _error(self, error: OSError | ValueError, path: str) -> SourceError:
        if isinstance(error, PermissionError):
            return SourceDenied(f"{path}: permission denied; run as a user who may read it")
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
            return SourceUnreachable(f"{path}: cannot be read: {reason}")
        if not os.path.lexists(self.name):
            why = "no such directory; name the db directory of Sirepo"
        elif not os.path.isdir(self.name):
            why = "not a directory; name the db directory of Sirepo"
        elif os.path.basename(os.path.abspath(self.name)) == DIRECTORY:
            why = f"holds no {DIRECTORY} but may be it; name the directory above it"
        else:
            why = f"has no {DIRECTORY} directory: it is not the db directory of Sirepo, "
            why += "or its supervisor has not run yet"
        return SourceMissing(f"{self.name}: {why}")


def read_whole(root: Path, job_id: JobId) -> JobDetail | None:
    """Everything stored about a job below a database root, read in this thread; None when it cannot be."""
    with suppress(SourceError):
        return SirepoDb(root)._detail(job_id)
    return None


def open_source(spec: SourceSpec, window: Window) -> SirepoDb:
    return SirepoDb(Path(spec.target))
