"""Writes one of our databases, in batches on a thread.

A new file gets its name only once it is complete and on the disk, so that a full disk, or the end of the
program, leaves nothing under that name. An existing file is continued only if it is this user's, has this
layout, is no link, and nobody else writes it.

Batches are written twice a second, so a killed program loses no more than that. A batch that cannot be
written is kept, up to a bound, and tried again; more than that is lost and counted.
"""

import errno
import fcntl
import os
import queue
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Generic, TypeVar

from jobtui.model.health import FAULTS, contained
from jobtui.recording.database import SIDE_FILES, Layout, RecordingError, opened, refuse_odd_sides

FOR_OWNER = 0o600
NO_LINKS = (errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP)
"""The errors of file systems without hard links."""


class DatabaseWriter:
    """A database of a layout, which must not exist unless it `goes_on`.

    A new one gets its name at `close`; `discard` leaves nothing of it.
    """

    def __init__(self, path: Path, layout: Layout, *, goes_on: bool = False) -> None:
        self.path = path
        self._layout = layout
        self._lock: int | None = None
        self._beside: Path | None = None
        try:
            with self._guarded():
                self._open(goes_on=goes_on)
        except RecordingError:
            self.discard()
            raise

    def _begin(self) -> None:
        """Called when the file, perhaps a new one, was opened: write its description."""

    def _count(self) -> None:
        """Called when the file was opened or a transaction rolled back: count what is in it."""

    def _open(self, *, goes_on: bool) -> None:
        if goes_on:
            self._lock = _locked(self.path, self._layout)
        if not _is_there(self.path, self._layout, goes_on=goes_on):
            self._beside = self.path.with_name(f".{self.path.name[:200]}.{os.getpid()}.part")
            with suppress(FileNotFoundError):
                os.unlink(self._beside)  # of a process of this number that was killed
            _make(self._beside)
            self._connect(self._beside)
            self._db.executescript(f"BEGIN; {self._layout.schema} COMMIT;")
            self._db.execute(f"PRAGMA application_id = {self._layout.mark}")
            self._db.execute(f"PRAGMA user_version = {self._layout.version}")
            self._begin()
            if goes_on:
                self._publish()
        if self._beside is None:
            opened(self.path, self._layout).close()
            self._connect(self.path)
            self._db.execute("PRAGMA journal_mode = WAL")
            self._begin()
        self._count()

    def _connect(self, path: Path) -> None:
        refuse_odd_sides(path)
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA synchronous = NORMAL")

    def _publish(self) -> None:
        """Give a new recording its name, once it is on the disk. An existing file is not replaced."""
        if self._beside is None:
            return
        self._db.close()
        _synced(self._beside)
        _named(self._beside, self.path)
        self._beside = None
        _synced(self.path.absolute().parent)

    @contextmanager
    def together(self) -> Iterator[None]:
        with self._guarded():
            self._db.execute("BEGIN")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                self._count()
                raise

    def close(self) -> None:
        try:
            with self._guarded():
                try:
                    self._db.execute("PRAGMA journal_mode = DELETE")
                except sqlite3.ProgrammingError:
                    return  # closed before
                self._publish()
                self._db.close()
        finally:
            self.discard()

    def discard(self) -> None:
        """Close it as it is, and remove a new one without a name. May be called twice."""
        if (db := getattr(self, "_db", None)) is not None:
            with suppress(sqlite3.Error):
                db.close()
        if self._beside is not None:
            for side in ("", *SIDE_FILES):
                with suppress(OSError):
                    os.unlink(f"{self._beside}{side}")
            self._beside = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.DatabaseError, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise RecordingError(f"{self.path}: cannot be written: {reason}") from error


def _is_there(path: Path, layout: Layout, *, goes_on: bool) -> bool:
    """Whether the database exists, and may be continued. Raises OSError, RecordingError."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return False
    if not goes_on:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    if not stat.S_ISREG(status.st_mode):
        raise RecordingError(f"{path}: is not a regular file, and is not written; {layout.elsewhere}")
    if status.st_uid != os.geteuid() or status.st_nlink > 1:
        raise RecordingError(f"{path}: belongs to somebody else or has another name; {layout.elsewhere}")
    return True


def _make(path: Path) -> None:
    """Make a new file for its owner only. Raises OSError."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FOR_OWNER))


def _named(beside: Path, path: Path) -> None:
    """Give a file its name. Raises OSError, FileExistsError if there is one of that name."""
    try:
        os.link(beside, path, follow_symlinks=False)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        _make(path)
        os.rename(beside, path)
    else:
        os.unlink(beside)


def _locked(path: Path, layout: Layout) -> int:
    """Lock out other writers until the result is closed. Raises RecordingError.

    The directory has the lock: closing any descriptor of a database would drop the locks of SQLite.
    """
    lock = os.open(path.absolute().parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise RecordingError(f"{path}: another jobtui {layout.verb} here; {layout.elsewhere}") from None
    except OSError:
        pass  # a file system without locks
    return lock


def _synced(path: Path) -> None:
    """Flush a file or directory to the disk. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


WRITE_EVERY_S = 0.5
MOST_WAITING = 100_000
"""The most records that wait to be written; a large one counts as several."""

One = TypeVar("One")


class BatchWriter(Generic[One]):
    """Writes what `put` gives it on a thread of its own, in batches of half a second.

    Subclasses give `write_one`. `lost` counts records that will not be kept, `problem` says why the last
    writing failed, None when it did not.
    """

    def __init__(self, writer: DatabaseWriter, stage: str) -> None:
        self.lost = 0
        self.kept = 0
        self.problem: str | None = None
        self._writer, self._stage = writer, stage
        self._came: queue.SimpleQueue[tuple[One, int] | None] = queue.SimpleQueue()
        self.waiting = 0
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._serve, name=stage, daemon=True)
        self._thread.start()

    def write_one(self, one: One) -> None:
        """Raises RecordingError to try the batch again. Any other exception loses this one."""
        raise NotImplementedError

    def write_end(self) -> None:
        """Called at the end of each batch, in its transaction. Raises RecordingError."""

    def put(self, one: One, records: int = 1) -> None:
        with self._lock:
            if self.waiting + records > MOST_WAITING and self.waiting:
                self.lost += records
                return
            self.waiting += records
        self._came.put((one, records))

    def close(self, timeout_s: float = 10.0) -> None:
        self._came.put(None)
        self._thread.join(timeout_s)

    def _serve(self) -> None:
        is_open, left = True, list[tuple[One, int]]()
        while is_open:
            came, is_open = self._gathered(is_patient=not left)
            left += came
            problem: str | None = None
            with contained(self._stage) as keeping:
                try:
                    with self._writer.together():
                        left = [(one, records) for one, records in left if self._is_kept(one, records)]
                        self.write_end()
                except RecordingError as error:
                    problem = str(error)
            self.problem = keeping.words or problem
            if self.problem is None:
                self._count(left, are_kept=True)
                left = []
        self._count(left, are_kept=False)

    def _count(self, came: Sequence[tuple[One, int]], *, are_kept: bool) -> None:
        records = sum(count for _, count in came)
        with self._lock:
            self.waiting -= records
            if are_kept:
                self.kept += records
            else:
                self.lost += records

    def _gathered(self, *, is_patient: bool) -> tuple[list[tuple[One, int]], bool]:
        """What came until the next write is due, and whether more can come.

        `is_patient` is whether to wait for the first.
        """
        came: list[tuple[One, int]] = []
        due = None if is_patient else time.monotonic() + WRITE_EVERY_S
        while due is None or (left := due - time.monotonic()) > 0:
            try:
                waiting = self._came.get(timeout=None if due is None else left)
            except queue.Empty:
                break
            if waiting is None:
                return came, False
            came.append(waiting)
            due = due or time.monotonic() + WRITE_EVERY_S
        return came, True

    def _is_kept(self, one: One, records: int) -> bool:
        try:
            self.write_one(one)
        except RecordingError:
            raise
        except Exception as error:  # noqa: BLE001 - it costs this one; the others are kept
            FAULTS.note(error, self._stage)
            with self._lock:
                self.waiting -= records
                self.lost += records
            return False
        return True
