"""Keeps what sources deliver while they are read, in one file of a stated size. Raises nothing while it runs.

What is older than the size allows is let go of, the oldest first; of a job whose entries go its last record
stays. Used by one thread. Raises RecordingError.

A new file is made beside its name and gets it when it is whole and on the disk, so that a full disk, or the
end of the program, leaves nothing under that name. Only a recording of this user, of this layout, that is no
link and that nobody else writes goes on.

What comes is handed over at once and written twice a second, so that a program that is killed loses no more
than that. What cannot be written waits, up to a bound, and is tried again; what comes beyond that is lost and
counted, and the recording says how much and when.
"""

import errno
import fcntl
import os
import queue
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from jobtui.backends.base import LISTS, Batch, Source
from jobtui.backends.registry import SIREPO_DB
from jobtui.model.clock import Clock, Nanos, utc_of
from jobtui.model.faults import FAULTS, contained
from jobtui.model.ids import JobId
from jobtui.model.job_reader import JobReader
from jobtui.model.jobs import JobDetail
from jobtui.model.secrets import mask_document, mask_text
from jobtui.recording.database import (
    APPLICATION_ID,
    COUNTS,
    SCHEMA,
    SIDE_FILES,
    VERSION,
    About,
    Damaged,
    NotPacked,
    RecordingError,
    What,
    encoded,
    opened,
    packed,
    refuse_odd_sides,
    storable,
    unpacked,
)

ROOM_SHARE = 0.9
"""Down to this share of its size a recording is cut when it is full."""
CUT_AT_ONCE = 200
"""Entries that are let go of at a time."""
FOR_OWNER = 0o600
NO_LINKS = (errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP)
"""What file systems say that have no hard links."""


class RecordingWriter:
    """A recording, which must not be there yet unless it `goes_on`. `most_bytes` bounds what is kept.

    A new one has its name from `close` on, one that goes on at once; `discard` leaves nothing of a new one.
    """

    def __init__(self, path: Path, about: About, most_bytes: int, *, goes_on: bool = False) -> None:
        self.path = path
        self._most_bytes = most_bytes
        self._sources: dict[tuple[str, str], int] = {}
        self._logs: set[tuple[int, str]] = set()
        self.kept_bytes = 0
        self.let_go = 0
        self.refused = 0
        self._about = about
        self._lock: int | None = None
        self._beside: Path | None = None
        try:
            with self._guarded():
                self._open(about, goes_on=goes_on)
        except RecordingError:
            self.discard()
            raise

    def _open(self, about: About, *, goes_on: bool) -> None:
        if goes_on:
            self._lock = _locked(self.path)
        if not _is_there(self.path, goes_on=goes_on):
            self._beside = _made_beside(self.path)
            self._connect(self._beside)
            self._db.executescript(f"BEGIN; {SCHEMA} COMMIT;")
            self._db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            self._db.execute(f"PRAGMA user_version = {VERSION}")
            self.say(about)
            if goes_on:
                self._publish()
        if self._beside is None:
            opened(self.path, exactly=VERSION).close()
            self._connect(self.path)
            self._db.execute("PRAGMA journal_mode = WAL")
            self.say(about)
        self._count()

    def _connect(self, path: Path) -> None:
        refuse_odd_sides(path)
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA synchronous = NORMAL")

    def _publish(self) -> None:
        """Give a new recording its name, once all of it is on the disk. Nothing of that name is replaced."""
        if self._beside is None:
            return
        self._db.close()
        _synced(self._beside)
        _named(self._beside, self.path)
        self._beside = None
        _synced(self.path.absolute().parent)

    def put(self, kind: str, name: str, what: What, value: object, at: Nanos, key: str = "") -> None:
        """Keep one thing that a source delivered or answered; what cannot be kept is counted."""
        try:
            body = packed(value)
        except NotPacked:
            self.refused += 1
            return
        with self._guarded():
            source = self._source(kind, name)
            if isinstance(value, Batch):
                self._name_logs(source, value)
            sql = "INSERT INTO entry (at, source, what, key, body) VALUES (?, ?, ?, ?, ?)"
            self._db.execute(sql, (at, source, what, storable(key), body))
        self.kept_bytes += len(body)
        if self.kept_bytes > self._most_bytes:
            self._cut()

    @contextmanager
    def together(self) -> Iterator[None]:
        with self._guarded():
            self._db.execute("BEGIN")
            try:
                yield
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                self._count()
                raise
            self._db.execute("COMMIT")

    def say(self, about: About) -> None:
        self._about = about
        text = encoded(mask_document(msgspec.to_builtins(about))).decode()
        with self._guarded():
            self._db.execute("INSERT OR REPLACE INTO about VALUES ('about', ?)", (text,))

    def add_note(self, note: str) -> None:
        self.say(msgspec.structs.replace(self._about, notes=(*self._about.notes, note)))

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
        """Let it go as it is, and a new one that has no name yet as a whole. May be called twice."""
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

    def _count(self) -> None:
        ((self.kept_bytes,),) = self._db.execute("SELECT coalesce(sum(length(body)), 0) FROM entry")
        rows = self._db.execute("SELECT id, kind, name FROM source")
        self._sources = {(kind, name): number for number, kind, name in rows}
        self._logs = set(self._db.execute("SELECT source, name FROM log"))

    def _source(self, kind: str, name: str) -> int:
        name = storable(name)
        known = self._sources.get((kind, name))
        if known is None:
            row = self._db.execute("INSERT INTO source (kind, name) VALUES (?, ?)", (kind, name))
            known = self._sources[kind, name] = int(row.lastrowid or 0)
        return known

    def _name_logs(self, source: int, batch: Batch) -> None:
        """Keep of which logs there are records, so that this is known without reading them."""
        named = {(source, storable(mask_text(record.source))) for record in batch.records} - self._logs
        self._db.executemany("INSERT OR IGNORE INTO log VALUES (?, ?)", named)
        self._logs |= named

    def _cut(self) -> None:
        """Let go of the oldest entries until there is room; the last records of their jobs stay."""
        while self.kept_bytes > self._most_bytes * ROOM_SHARE:
            sql = "SELECT seq, at, source, what, body FROM entry ORDER BY seq LIMIT ?"
            oldest = self._db.execute(sql, (CUT_AT_ONCE,)).fetchall()
            for seq, at, source, what, body in oldest:
                if what == What.BATCH:
                    self._keep_jobs(source, at, body)
                self._db.execute("DELETE FROM entry WHERE seq = ?", (seq,))
                self.kept_bytes -= len(body)
                self.let_go += 1
                if self.kept_bytes <= self._most_bytes * ROOM_SHARE:
                    return
            if not oldest:
                return

    def _keep_jobs(self, source: int, at: int, body: bytes) -> None:
        try:
            batch: Batch = unpacked(What.BATCH, body)
        except Damaged:
            return
        jobs = [(source, job.id, at, packed(job)) for job in batch.jobs]
        self._db.executemany("INSERT OR REPLACE INTO job VALUES (?, ?, ?, ?)", jobs)
        self._db.executemany(
            "DELETE FROM job WHERE source = ? AND id = ?", [(source, gone) for gone in batch.gone]
        )

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.DatabaseError, OSError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise RecordingError(f"{self.path}: cannot be written: {reason}") from error


def _is_there(path: Path, *, goes_on: bool) -> bool:
    """Whether the recording is there, and may go on. Raises OSError, RecordingError."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return False
    if not goes_on:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))
    if not stat.S_ISREG(status.st_mode):
        raise RecordingError(f"{path}: is no plain file, and is not written; name another directory")
    if status.st_uid != os.geteuid() or status.st_nlink > 1:
        raise RecordingError(f"{path}: belongs to somebody else or has another name; name another directory")
    if status.st_size == 0:
        os.unlink(path)  # left behind by a version that began with an empty file
        return False
    return True


def _made_beside(path: Path) -> Path:
    """A new file in the directory of a path, for its owner only. Raises OSError."""
    beside = path.with_name(f".{path.name[:200]}.{os.getpid()}.part")
    with suppress(FileNotFoundError):
        os.unlink(beside)  # of a process of this number that was killed
    os.close(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FOR_OWNER))
    return beside


def _named(beside: Path, path: Path) -> None:
    """Give a file its name. Raises OSError, FileExistsError where there is one of that name."""
    try:
        os.link(beside, path, follow_symlinks=False)
    except OSError as error:
        if error.errno not in NO_LINKS:
            raise
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FOR_OWNER))
        os.rename(beside, path)
    else:
        os.unlink(beside)


def _locked(path: Path) -> int:
    """Make sure that nobody else records here, for as long as what is given is open. Raises RecordingError.

    The directory has the lock: closing any descriptor of a database would let go of the locks of SQLite.
    """
    lock = os.open(path.absolute().parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise RecordingError(f"{path}: another jobtui records here; name another directory") from None
    except OSError:
        pass  # a file system without locks
    return lock


def _synced(path: Path) -> None:
    """Return when a file or directory is on the disk. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


WRITE_EVERY_S = 0.5
MOST_WAITING = 100_000
"""So many records wait to be written at most, long ones counted as several."""
LONG_CHARACTERS = 1_000


class _Came(NamedTuple):
    kind: str
    name: str
    what: What
    value: object
    at: Nanos
    records: int


class Recorder:
    """What polls tell what they got, see `store.poller.Observer`.

    `detail_of` gives the whole record of a job, to be kept with its changes. `lost` counts records that will
    not be kept, `problem` says why the last writing failed, None when it did not.
    """

    def __init__(
        self,
        writer: RecordingWriter,
        clock: Clock,
        detail_of: Callable[[str, JobId], JobDetail | None] = lambda source, job_id: None,
    ) -> None:
        self.lost = 0
        self.kept = 0
        self.problem: str | None = None
        self._writer = writer
        self._clock = clock
        self._detail_of = detail_of
        self._came: queue.SimpleQueue[_Came | None] = queue.SimpleQueue()
        self._waiting = 0
        self._noted = 0
        self._lock = threading.Lock()
        self._states: dict[tuple[str, str], tuple[str | None, str | None]] = {}
        self._thread = threading.Thread(target=self._serve, name="recorder", daemon=True)
        self._thread.start()

    def delivered(self, source: Source, batch: Batch) -> None:
        says_something = any(getattr(batch, name) for name in (*LISTS, *COUNTS))
        if self._is_news(source, (None, batch.note)) or says_something:
            self._take(_Came(source.kind, source.name, What.BATCH, batch, self._clock.now(), _weight(batch)))

    def failed(self, source: Source, error: str) -> None:
        if self._is_news(source, (error, None)):
            self._take(_Came(source.kind, source.name, What.FAILURE, error, self._clock.now(), 1))

    def beside(self, job_reader: JobReader) -> JobReader:
        return job_reader

    def close(self, timeout_s: float = 10.0) -> None:
        self._came.put(None)
        self._thread.join(timeout_s)

    def _is_news(self, source: Source, state: tuple[str | None, str | None]) -> bool:
        known = self._states.get((source.kind, source.name))
        self._states[source.kind, source.name] = state
        return known != state

    def _take(self, came: _Came) -> None:
        with self._lock:
            if self._waiting + came.records > MOST_WAITING and self._waiting:
                self.lost += came.records
                return
            self._waiting += came.records
        self._came.put(came)

    def _serve(self) -> None:
        is_open, left = True, list[_Came]()
        while is_open:
            came, is_open = self._gathered(is_patient=not left)
            left += came
            problem: str | None = None
            with contained("recording") as keeping:
                try:
                    with self._writer.together():
                        left = [one for one in left if self._keep(one)]
                        self._note_losses()
                except RecordingError as error:
                    problem = str(error)
            self.problem = keeping.words or problem
            if self.problem is None:
                self._count(left, are_kept=True)
                left = []
        self._count(left, are_kept=False)

    def _count(self, came: Sequence[_Came], *, are_kept: bool) -> None:
        records = sum(one.records for one in came)
        with self._lock:
            self._waiting -= records
            if are_kept:
                self.kept += records
            else:
                self.lost += records

    def _note_losses(self) -> None:
        """Let the recording say what was lost since it said so last. Raises RecordingError."""
        with self._lock:
            lost = self.lost - self._noted
        if lost:
            until = utc_of(self._clock.now())
            self._writer.add_note(
                f"{lost:,} records that could not be written until {until:%Y-%m-%dT%H:%M:%SZ}"
            )
            self._noted += lost

    def _gathered(self, *, is_patient: bool) -> tuple[list[_Came], bool]:
        """What came until the next writing is due, and whether more can come.

        `is_patient` is whether to wait for the first.
        """
        came: list[_Came] = []
        due = None if is_patient else time.monotonic() + WRITE_EVERY_S
        while due is None or (left := due - time.monotonic()) > 0:
            try:
                one = self._came.get(timeout=None if due is None else left)
            except queue.Empty:
                break
            if one is None:
                return came, False
            came.append(one)
            due = due or time.monotonic() + WRITE_EVERY_S
        return came, True

    def _keep(self, came: _Came) -> bool:
        """Write one thing down; whether it is kept. Raises RecordingError."""
        try:
            self._writer.put(came.kind, came.name, came.what, came.value, came.at)
            if isinstance(came.value, Batch) and SIREPO_DB.made(came):
                for job in came.value.jobs:
                    if (detail := self._detail_of(came.name, job.id)) is not None:
                        self._writer.put(came.kind, came.name, What.DETAIL, detail, came.at, job.id)
        except RecordingError:
            raise
        except Exception as error:  # noqa: BLE001 - it costs this one; the others are kept
            FAULTS.note(error, "recording")
            with self._lock:
                self._waiting -= came.records
                self.lost += came.records
            return False
        return True


def _weight(batch: Batch) -> int:
    long = sum(len(record.text) for record in batch.records) // LONG_CHARACTERS
    return 1 + long + sum(len(getattr(batch, name)) for name in LISTS)
