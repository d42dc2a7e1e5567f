"""The job supervisor's db directory as a source: `<srdb>/supervisor-job/<computeJid>.json`. Reads only.

One worker thread does all reading. The first polls give every job, newest first; later ones what changed.
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
from typing import TypeVar

from jobtui.backends.base import Batch, SourceDenied, SourceError, SourceMissing, SourceUnreachable
from jobtui.backends.file_watch import WatchMaker, watch_directory
from jobtui.backends.lookout import SWEEP_S, Lookout
from jobtui.backends.mounts import silent_file_system
from jobtui.backends.sirepo_files import (
    MAX_BYTES,
    SUFFIX,
    JobFiles,
    Reading,
    TooLarge,
    listed,
    oddity_of,
    read_file,
)
from jobtui.backends.sirepo_json import NotARecord
from jobtui.backends.sirepo_record import read_detail
from jobtui.backends.worker import Worker
from jobtui.model.ids import JobId, split_jid
from jobtui.model.jobs import JobDetail

DIRECTORY = "supervisor-job"
BATCH_FILES = 2_000

T = TypeVar("T")


class SirepoDb:
    """The records of a job supervisor. `root` is Sirepo's db directory, `name` that path as it was given.

    `timer` is a monotonic clock in seconds.
    """

    kind = "sirepo_db"

    def __init__(
        self,
        root: Path,
        *,
        batch_files: int = BATCH_FILES,
        max_bytes: int = MAX_BYTES,
        sweep_s: float = SWEEP_S,
        timer: Callable[[], float] = time.monotonic,
        make_watch: WatchMaker = watch_directory,
        silent: Callable[[str], str | None] = silent_file_system,
    ) -> None:
        self.name = str(root)
        self._path = os.path.join(self.name, DIRECTORY)
        self._files = JobFiles(self._path, self.name, max_bytes)
        self._batch_files = batch_files
        self._max_bytes = max_bytes
        self._worker = Worker(f"sirepo_db {self.name}")
        self._lookout = Lookout(self._path, self._files, make_watch, silent, timer, sweep_s)
        self._sent = 0
        self._last: Batch | None = None
        self._closed = False

    async def poll(self, cursor: str | None) -> Batch:
        """What changed since `cursor`; None asks for the beginning. Raises SourceError."""
        self._lookout.news.clear()
        return await self._run(partial(self._poll, cursor))

    async def changed(self, timeout_s: float) -> None:
        """Return when a file was told to have changed, or after `timeout_s` at the latest.

        Without notification, as late as keeps the work for looking at every file small; the first call sets
        up the notification and returns.
        """
        if self._closed:
            return
        loop = asyncio.get_running_loop()

        def wake() -> None:
            with suppress(RuntimeError):  # the loop was closed, nobody waits any more
                loop.call_soon_threadsafe(self._lookout.news.set)

        if self._lookout.is_due and await self._worker.run(partial(self._lookout.begin, wake)):
            return
        await self._lookout.wait(timeout_s)

    async def detail(self, job_id: JobId) -> JobDetail | None:
        """The whole record of a job, read anew; None when there is none of that id. Raises SourceError."""
        if split_jid(job_id) is None:
            return None
        return await self._run(partial(self._detail, job_id))

    async def job_ids(self) -> list[JobId]:
        """The id of every job, in no order, by the names of the files only. Raises SourceError."""
        return await self._run(self._list)

    async def aclose(self) -> None:
        """Stop watching and let the thread go. May be called twice."""
        self._closed = True
        await self._worker.finish(self._lookout.close)

    async def _run(self, call: Callable[[], T]) -> T:
        if self._closed:
            raise SourceError(f"{self.name}: is closed")
        return await self._worker.run(call)

    def _poll(self, cursor: str | None) -> Batch:
        if self._last is not None and cursor == str(self._sent - 1):
            return self._last  # it was lost on its way, as when whoever awaited it was cancelled
        if cursor != str(self._sent):
            self._files.forget()
            self._lookout.sweep_now()
        with self._directory() as directory:
            if not self._files.waiting:
                self._lookout.look(directory)
            return self._sending(self._files.read(directory, self._batch_files))

    def _sending(self, reading: Reading) -> Batch:
        quiet = not (reading.count or reading.gone or reading.recovered)
        self._sent += not quiet
        batch = Batch(
            cursor=str(self._sent),
            jobs=reading.jobs,
            gone=reading.gone,
            skipped=reading.skipped,
            skip_count=reading.skip_count,
            recovered=reading.recovered,
            count=reading.count,
            more=reading.more,
            note=self._lookout.note,
        )
        self._last = self._last if quiet else batch
        return batch

    def _detail(self, job_id: JobId) -> JobDetail | None:
        path = os.path.join(self._path, job_id + SUFFIX)
        with self._directory() as directory:
            try:
                status = os.stat(job_id + SUFFIX, dir_fd=directory)
                if why := oddity_of(status):
                    raise SourceError(f"{path}: {why}")
                data = read_file(job_id + SUFFIX, directory, self._max_bytes)
                return read_detail(data, job_id, status.st_mtime_ns, self.name, path)
            except FileNotFoundError:
                return None
            except OSError as error:
                raise self._error(error, path) from error
            except (TooLarge, NotARecord) as error:
                raise SourceError(f"{path}: {error}") from error

    def _list(self) -> list[JobId]:
        with self._directory() as directory:
            return listed(directory)

    @contextmanager
    def _directory(self) -> Iterator[int]:
        """The directory, open as long as needed: a file system in use could not be unmounted."""
        try:
            directory = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except (OSError, ValueError) as error:
            # What comes in its place may have its inode, and the kernel's word of that comes later
            self._lookout.sweep_now()
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
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            return SourceMissing(self._what_is_missing())
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return SourceUnreachable(f"{path}: cannot be read: {reason}")

    def _what_is_missing(self) -> str:
        if not os.path.lexists(self.name):
            return f"{self.name}: no such directory; name the db directory of Sirepo"
        if not os.path.isdir(self.name):
            return f"{self.name}: not a directory; name the db directory of Sirepo"
        if os.path.basename(os.path.abspath(self.name)) == DIRECTORY:
            return f"{self.name}: holds no {DIRECTORY} but may be it; name the directory above it"
        return (
            f"{self.name}: has no {DIRECTORY} directory: it is not the db directory of Sirepo, "
            "or its supervisor has not run yet"
        )


def read_whole(root: Path, job_id: JobId) -> JobDetail | None:
    """Everything stored about a job below a database root, read in this thread; None when it cannot be."""
    with suppress(SourceError):
        return SirepoDb(root)._detail(job_id)
    return None
