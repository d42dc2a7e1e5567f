"""A recording in one file, read: which sources there were, what each delivered, what was answered.

An SQLite database (https://www.sqlite.org/fileformat2.html): it survives that its writer is killed, and every
machine has what looks into it. `about` says what it is, `source` names the sources, `entry` holds what came,
in the order in which it came, and `job` the last record of jobs whose entries were let go of.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from jobtui.backends.base import Batch, SourceError
from jobtui.backends.recording.codec import Damaged, What, unpacked
from jobtui.model.clock import Nanos
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job

APPLICATION_ID = 0x6A_6F_62_74
"""Marks the file as ours, see https://www.sqlite.org/pragma.html#pragma_application_id; spells "jobt"."""
VERSION = 1
"""Of this layout. A later one is refused, an earlier one goes on being read."""
TIMELESS = Nanos(0)
"""The time of what holds from the beginning on."""
FILE_NAME = "recording.jobtui"
"""What a recording is called in the directory it is made in."""
SCHEMA = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE source (id INTEGER PRIMARY KEY, kind TEXT NOT NULL, name TEXT NOT NULL, UNIQUE (kind, name));
CREATE TABLE entry (
    seq INTEGER PRIMARY KEY, at INTEGER NOT NULL, source INTEGER NOT NULL, what TEXT NOT NULL,
    key TEXT NOT NULL, body BLOB NOT NULL
);
CREATE INDEX entry_of_source ON entry (source, what, key, seq);
CREATE TABLE log (source INTEGER NOT NULL, name TEXT NOT NULL, PRIMARY KEY (source, name));
CREATE TABLE job (source INTEGER NOT NULL, id TEXT NOT NULL, at INTEGER NOT NULL, body BLOB NOT NULL,
    PRIMARY KEY (source, id));
"""


class TapeError(SourceError):
    """A recording cannot be opened. The text says which, why, and what to do."""


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What a recording says of itself.

    `job_id` is the job a bundle is about, "" for a recording of everything. `at` is the time that was taken
    for the present when it was made. `config` are the settings that held, `verdict` what was found to be the
    matter, as `explain --json` prints it; `notes` say what is not in it.
    """

    version: str
    made_at: Nanos
    at: Nanos
    config: object
    job_id: str = ""
    notes: tuple[str, ...] = ()
    verdict: dict[str, object] | None = None


class Entry(msgspec.Struct, frozen=True):
    """One thing that was kept: its number in the order of arrival, when it came, and the value."""

    seq: int
    at: Nanos
    what: What
    value: Any


class Tape:
    """A recording that is read. To be used by one thread at a time."""

    def __init__(self, path: Path) -> None:
        self.path = _file_of(path)
        self._damaged: set[int] = set()
        self._db = _opened(self.path)
        self.about = self._about()
        self._sources: dict[tuple[str, str], int] = {
            (kind, name): number for number, kind, name in self._rows("SELECT id, kind, name FROM source")
        }
        self._logs: dict[int, list[str]] = {}
        for source, name in self._rows("SELECT source, name FROM log ORDER BY source, name"):
            self._logs.setdefault(source, []).append(name)

    @property
    def damaged(self) -> int:
        """How many entries were left out so far."""
        return len(self._damaged)

    @property
    def begins_at(self) -> Nanos | None:
        """When the first entry came that is still there."""
        return self._moment("min")

    @property
    def ends_at(self) -> Nanos | None:
        """When the last one came."""
        return self._moment("max")

    def source(self, kind: str, name: str) -> int | None:
        """The number of a source, None when it is not in here."""
        return self._sources.get((kind, name))

    def delivered(self, source: int, after: int, until: Nanos, most: int) -> list[Entry]:
        """What a source delivered, or why it could not, behind an entry and up to a time; at most so many."""
        sql = (
            "SELECT seq, at, what, body FROM entry WHERE source = ? AND what IN (?, ?)"
            " AND seq > ? AND at <= ? ORDER BY seq LIMIT ?"
        )
        rows = self._rows(sql, source, What.BATCH, What.FAILURE, after, until, most)
        return list(self._entries(rows))

    def newest(self, source: int, until: Nanos, most: int) -> list[Entry]:
        """The last so many things that a source delivered up to a time, in the order in which they came."""
        sql = (
            "SELECT seq, at, what, body FROM entry WHERE source = ? AND what IN (?, ?) AND at <= ?"
            " ORDER BY seq DESC LIMIT ?"
        )
        rows = self._rows(sql, source, What.BATCH, What.FAILURE, until, most)
        return list(self._entries(rows))[::-1]

    def logs(self, sources: Iterable[int]) -> tuple[str, ...]:
        """The logs that a source has records of, each source's own in the order of their names."""
        return tuple(dict.fromkeys(name for source in sources for name in self._logs.get(source, ())))

    def early_jobs(self, source: int, until: Nanos) -> tuple[Job, ...]:
        """Jobs as they were when what was delivered of them was let go of."""
        rows = self._rows(
            "SELECT 0, at, ?, body FROM job WHERE source = ? AND at <= ?", What.JOB, source, until
        )
        return tuple(entry.value for entry in self._entries(rows))

    def last_job(self, source: int, job_id: JobId, until: Nanos) -> Job | None:
        """A job as it was delivered last by a time, None when it was not, or gone by then."""
        sql = (
            "SELECT seq, at, what, body FROM entry WHERE source = ? AND what = ? AND at <= ?"
            " ORDER BY seq DESC"
        )
        for entry in self._entries(self._rows(sql, source, What.BATCH, until)):
            batch: Batch = entry.value
            if job_id in batch.gone:
                return None
            if (found := next((job for job in batch.jobs if job.id == job_id), None)) is not None:
                return found
        return next((job for job in self.early_jobs(source, until) if job.id == job_id), None)

    def answer(self, what: What, source: int, key: str, until: Nanos) -> Entry | None:
        """The last answer to a question by a time, None when it was not asked."""
        sql = (
            "SELECT seq, at, what, body FROM entry WHERE what = ? AND source = ? AND key = ? AND at <= ?"
            " ORDER BY seq DESC LIMIT 1"
        )
        return next(self._entries(self._rows(sql, what, source, key, until)), None)

    def keys(self, what: What, source: int) -> list[str]:
        """What was asked for."""
        return [
            key
            for (key,) in self._rows(
                "SELECT DISTINCT key FROM entry WHERE what = ? AND source = ?", what, source
            )
        ]

    def next_change(self, after: Nanos, *, forward: bool) -> Nanos | None:
        """When the next thing was delivered behind a time, or the last one before it."""
        order, compared = ("min", ">") if forward else ("max", "<")
        rows = self._rows(
            f"SELECT {order}(at) FROM entry WHERE what = ? AND at > ? AND at {compared} ?",
            What.BATCH,
            TIMELESS,
            after,
        )
        return next((Nanos(at) for (at,) in rows if at is not None), None)

    def job_ids(self, source: int) -> list[JobId]:
        """The jobs of a source of which details were asked, or whose records were let go of."""
        rows = self._rows("SELECT id FROM job WHERE source = ?", source)
        return [JobId(key) for key in {*self.keys(What.DETAIL, source), *(key for (key,) in rows)}]

    def close(self) -> None:
        """Let the file go. May be called twice."""
        self._db.close()

    def _about(self) -> About:
        found = dict(self._rows("SELECT name, value FROM about"))
        try:
            return msgspec.json.decode(found.get("about", ""), type=About)
        except msgspec.MsgspecError as error:
            raise TapeError(f"{self.path}: does not say what it is, it is damaged: {error}") from error

    def _moment(self, which: str) -> Nanos | None:
        rows = self._rows(f"SELECT {which}(at) FROM entry WHERE at > ?", TIMELESS)
        return next((Nanos(at) for (at,) in rows if at is not None), None)

    def _entries(self, rows: Iterator[tuple[Any, ...]]) -> Iterator[Entry]:
        for seq, at, what, body in rows:
            try:
                yield Entry(seq, Nanos(at), What(what), unpacked(What(what), body))
            except (Damaged, ValueError):
                self._damaged.add(seq)

    def _rows(self, sql: str, *values: object) -> Iterator[tuple[Any, ...]]:
        try:
            yield from self._db.execute(sql, values)
        except sqlite3.DatabaseError as error:
            raise TapeError(f"{self.path}: damaged: {error}; what it is a copy of may be whole") from error


def _file_of(path: Path) -> Path:
    try:
        return path / FILE_NAME if path.is_dir() else path
    except OSError as error:  # such as a name that is too long
        raise TapeError(f"{path}: cannot be read: {error.strerror}") from error


def _opened(path: Path) -> sqlite3.Connection:
    """The database, after a look whether it is one of ours."""
    try:
        with open(path, "rb") as file:
            head = file.read(16)
    except FileNotFoundError:
        raise TapeError(
            f"{path}: no such file; name a file made by bundle or the directory of record"
        ) from None
    except (OSError, ValueError) as error:  # the latter for names that no file can have
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise TapeError(f"{path}: cannot be read: {why}") from error
    if not head.startswith(b"SQLite format 3"):
        raise TapeError(f"{path}: is no recording of jobtui; name a file made by bundle or record")
    try:
        db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False)
        ((mark,),) = db.execute("PRAGMA application_id")
        ((version,),) = db.execute("PRAGMA user_version")
    except sqlite3.DatabaseError as error:
        raise TapeError(f"{path}: cannot be read, it is damaged: {error}") from error
    if mark != APPLICATION_ID:
        raise TapeError(f"{path}: is a database of something else, no recording of jobtui")
    if version > VERSION:
        raise TapeError(
            f"{path}: was made by a later jobtui (layout {version}, this one reads {VERSION}); renew jobtui"
        )
    return db
