"""A recording in one file, written: in the order in which things come, within a stated size.

What is older than the size allows is let go of, the oldest first; of a job whose entries go its last record
stays. Used by one thread. Raises TapeError.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from jobtui.backends.base import Batch
from jobtui.backends.recording.codec import Damaged, NotPacked, What, encoded, packed, storable, unpacked
from jobtui.backends.recording.tape import APPLICATION_ID, SCHEMA, VERSION, About, TapeError
from jobtui.model.clock import Nanos
from jobtui.model.secrets import mask_document, mask_text

ROOM_SHARE = 0.9
"""Down to this share of its size a recording is cut when it is full."""
CUT_AT_ONCE = 200
"""Entries that are let go of at a time."""
FOR_OWNER = 0o600


class TapeWriter:
    """A recording, which must not be there yet unless it `goes_on`. `most_bytes` bounds what is kept."""

    def __init__(self, path: Path, about: About, most_bytes: int, *, goes_on: bool = False) -> None:
        self.path = path
        self._most_bytes = most_bytes
        self._sources: dict[tuple[str, str], int] = {}
        self._logs: set[tuple[int, str]] = set()
        self.kept_bytes = 0
        with self._guarded():
            is_new = _claimed(path, goes_on=goes_on)
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            self._prepare(is_new, about)
        self.let_go = 0
        self.refused = 0

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
        """Let all that is put in here be kept, or nothing of it."""
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
        """Let it say this of itself."""
        text = encoded(mask_document(msgspec.to_builtins(about))).decode()
        with self._guarded():
            self._db.execute("INSERT OR REPLACE INTO about VALUES ('about', ?)", (text,))

    def close(self) -> None:
        """Let it be one file, and let it go. May be called twice."""
        with self._guarded():
            try:
                self._db.execute("PRAGMA journal_mode = DELETE")
            except sqlite3.ProgrammingError:
                return  # closed before
            self._db.close()

    def _prepare(self, is_new: bool, about: About) -> None:
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = NORMAL")
        if is_new:
            self._db.executescript(f"BEGIN; {SCHEMA} COMMIT;")
            self._db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            self._db.execute(f"PRAGMA user_version = {VERSION}")
        self.say(about)
        self._count()

    def _count(self) -> None:
        """Learn what is kept."""
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
            raise TapeError(f"{self.path}: cannot be written: {reason}") from error


def _claimed(path: Path, *, goes_on: bool) -> bool:
    """Make the file, for its owner only; whether it is new. Raises OSError."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FOR_OWNER))
    except FileExistsError:
        if not goes_on:
            raise
        return False
    return True
