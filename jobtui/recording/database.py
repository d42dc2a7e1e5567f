"""A recording in one file, read: which sources there were, what each delivered, what was answered.

Entries are JSON: it allows numbers of any size, such as positions in journals, has bytes as base64, and can
still be read in many years. They are deflated, which also detects damage.

An SQLite database (https://www.sqlite.org/fileformat2.html): it survives a killed writer, and every machine
has tools for it. `about` describes it, `source` names the sources, `entry` holds what came, in order, and
`job` the last record of jobs whose entries were dropped.
"""

import json
import os
import sqlite3
import stat
import time
import zlib
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec

from jobtui.backends.base import Batch
from jobtui.model.clock import Nanos
from jobtui.model.health import Skip, SourceError
from jobtui.model.ids import JobId
from jobtui.model.job_reader import ClusterStatus, FilePart, RunListing
from jobtui.model.jobs import Job, JobDetail
from jobtui.model.journal import JournalEntry
from jobtui.model.logs import RawLine
from jobtui.model.memory import JobMemory
from jobtui.model.numbers import LEAST_INT64, MOST_INT64, storable
from jobtui.model.scripts import Answer
from jobtui.model.secrets import mask_document
from jobtui.model.tables import text_of
from jobtui.model.traces import Telemetry
from jobtui.transport.files import open_regular, read_small
from jobtui.transport.unpacking import HTTP_PACKINGS, RATIO, TooLarge, Unpacker, UnpackError, UnpackLimit

LEVEL = 6
LARGEST_BYTES = 256 << 20
SMALL_BYTES = 4 << 20
"""No entry is larger, unpacked, than the first; nor than the second and `RATIO` times what it is packed."""
WHOLE_RATIO = 25
WHOLE_BYTES = 128 << 20
"""Entries may be the first times as large as they are packed, and all of a recording the second more."""
AT_ONCE_BYTES = 1 << 20
NEWEST_BYTES = 8 << 20
"""Packed bytes delivered at a time, and of a log at first; the last entry may exceed them."""


class Damaged(ValueError):
    """An entry cannot be read. The text says why."""


class TooMuch(Damaged):
    """An entry is left out, as too much was read before it."""


class NotPacked(ValueError):
    """A value cannot be kept. The text says why."""


class Item(StrEnum):
    BATCH = "batch"
    FAILURE = "failure"
    JOB = "job"
    DETAIL = "detail"
    LINES = "lines"
    LISTING = "listing"
    FILE = "file"
    NOTED = "noted"
    MESSAGES = "messages"
    REMEMBERED = "remembered"
    SCRIPT = "script"
    TRACE = "trace"


# A document may hold a time of thousands of digits. Set here, as the clock is imported without msgspec
Nanos.__supertype__ = Annotated[int, msgspec.Meta(ge=LEAST_INT64, le=MOST_INT64)]  # type: ignore[attr-defined]

TYPES: Mapping[Item, Any] = {
    Item.BATCH: Batch, Item.FAILURE: str, Item.JOB: Job, Item.DETAIL: JobDetail | None,
    Item.LINES: tuple[RawLine, ...], Item.LISTING: RunListing | str, Item.FILE: FilePart | str,
    Item.NOTED: ClusterStatus | str | None, Item.MESSAGES: tuple[JournalEntry, ...] | str,
    Item.SCRIPT: Answer, Item.TRACE: Telemetry | None, Item.REMEMBERED: JobMemory | str,
}  # fmt: skip
"""The type of each; a text in place of an answer says why there is none."""


def packed(value: object) -> bytes:
    """A value with its secrets masked, as bytes. Raises NotPacked for what JSON cannot hold.

    Bytes in it, such as scripts, must be masked before: in base64 they look like a key. A value that packs so
    well that it would look like an attack is padded.
    """
    try:
        text = encoded(mask_document(msgspec.to_builtins(value, builtin_types=(bytes,))))
        return zlib.compress(text, LEVEL).ljust(len(text) // WHOLE_RATIO + 1, b"\0")
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise NotPacked(f"cannot be kept: {error}") from error


def encoded(document: object) -> bytes:
    """A document as JSON; see `storable` for what that cannot hold."""
    try:
        return msgspec.json.encode(document)
    except UnicodeEncodeError:
        return storable(
            json.dumps(document, ensure_ascii=False, default=lambda value: b64encode(value).decode())
        ).encode()


def unpacked(what: Item, data: bytes, allowance: UnpackLimit | None = None) -> Any:
    """The value, of the type in `TYPES`. Raises Damaged."""
    most = min(LARGEST_BYTES, SMALL_BYTES + RATIO * len(data))
    unpacker = Unpacker(HTTP_PACKINGS["deflate"], most, allowance)
    try:
        text = b"".join(unpacker.feed(data))
        unpacker.end()
        return msgspec.json.decode(text, type=TYPES[what])
    except TooLarge as error:
        raise TooMuch("is too large when unpacked") from error
    except UnpackError as error:
        raise Damaged(f"an entry {str(error).removeprefix('it ')}") from error
    except msgspec.MsgspecError as error:
        raise Damaged(f"a {what} cannot be read: {error}") from error


APPLICATION_ID = 0x6A_6F_62_74
"""Marks the file as ours, see https://www.sqlite.org/pragma.html#pragma_application_id; spells "jobt"."""
HEADER_BYTES, MARK = 100, slice(68, 72)
"""The header of a database, and where the mark is in it, see https://sqlite.org/fileformat2.html#database_header."""
SIDE_FILES = ("-journal", "-wal", "-shm")
"""What SQLite keeps beside a database, see https://www.sqlite.org/tempfiles.html."""
SUPER_JOURNAL = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
"""The end of a journal that names another file, see readSuperJournal in pager.c of SQLite."""
VERSION = 1
"""The layout. A file with a later one is refused."""
TIMELESS = Nanos(0)
"""The time of entries that are valid from the beginning on."""
FILE_NAME = "recording.jobtui"
LONGEST_VALUE = 128 << 20
"""The longest packed value in a recording."""
LONGEST_QUESTION_S = 30.0
STEPS_BETWEEN = 1_000_000
"""Of SQLite's machine, some milliseconds."""


class Layout(NamedTuple):
    """One of our kinds of database: its mark, version and tables, and its name in messages."""

    mark: int
    version: int
    schema: str
    name: str
    made_by: str
    elsewhere: str
    verb: str


RECORDING = Layout(
    APPLICATION_ID, VERSION, text_of("jobtui.recording", "schema.sql"), "recording",
    "name a file made by bundle or the directory of record", "name another directory", "records",
)  # fmt: skip
ENTRIES = "SELECT seq, CAST(at AS INTEGER), what, CAST(body AS BLOB) FROM entry WHERE source = ?"
"""Columns of SQLite hold values of any type, whatever was declared."""
DAMAGED = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite raises on a damaged file; the latter where its own message quotes bytes of it."""


class RecordingError(SourceError):
    """A recording cannot be opened. The text says which, why, and what to do."""


class About(msgspec.Struct, frozen=True, kw_only=True):
    """The description of a recording.

    `job_id` is the job a bundle is about, "" for a recording of everything. `at` is the present time when it
    was made. `config` are the effective settings, `verdict` the verdict as `explain --json` prints it;
    `notes` say what is not in it.
    """

    version: str
    made_at: Nanos
    at: Nanos
    config: object
    job_id: str = ""
    notes: tuple[str, ...] = ()
    verdict: dict[str, object] | None = None


class Entry(msgspec.Struct, frozen=True):
    """One recorded value: its number in the order of arrival, when it came, and the value."""

    seq: int
    at: Nanos
    what: Item
    value: Any


class Recording:
    """A recording that is read. To be used by one thread at a time."""

    def __init__(self, path: Path) -> None:
        self.path = _file_of(path)
        self._damaged: set[int] = set()
        self._too_much: set[int] = set()
        self._large: set[int] = set()
        self._allowance = UnpackLimit(WHOLE_BYTES, WHOLE_RATIO)
        with ExitStack() as unless_read:
            self._db = unless_read.enter_context(closing(opened(self.path)))
            about = dict(self._rows("SELECT name, value FROM about")).get("about", "")
            try:
                self.about = msgspec.json.decode(about, type=About)
            except msgspec.MsgspecError as error:
                raise RecordingError(f"{self.path}: damaged: {error}") from error
            rows = self._rows("SELECT id, kind, name FROM source")
            self._sources: dict[tuple[str, str], int] = {(kind, name): number for number, kind, name in rows}
            self._logs: dict[int, list[str]] = {}
            for source, name in self._rows("SELECT source, name FROM log ORDER BY source, name"):
                self._logs.setdefault(source, []).append(name)
            unless_read.pop_all()

    def left_out(self) -> Iterator[str]:
        for seqs, why in ((self._damaged, "damaged"), (self._too_much, "too large when unpacked")):
            if seqs:
                entries = "1 entry is" if len(seqs) == 1 else f"{len(seqs):,} entries are"
                yield f"{entries} {why}, and left out"

    @property
    def begins_at(self) -> Nanos | None:
        return self._moment("SELECT min(at) FROM entry WHERE at > ?", TIMELESS)

    @property
    def ends_at(self) -> Nanos | None:
        return self._moment("SELECT max(at) FROM entry WHERE at > ?", TIMELESS)

    def source(self, kind: str, name: str) -> int | None:
        return self._sources.get((kind, name))

    def delivered(self, source: int, after: int, until: Nanos, most: int) -> list[Entry]:
        """The next entries of a source, at most `most`; empty if there are no more."""
        sql = f"{ENTRIES} AND what IN (?, ?) AND seq > ? AND at <= ? ORDER BY seq LIMIT ?"
        rows = self._rows(sql, source, Item.BATCH, Item.FAILURE, after, until, most)
        return list(self._deliveries(_within(rows, AT_ONCE_BYTES)))

    def newest(self, source: int, until: Nanos, most: int) -> list[Entry]:
        """The last entries of a source up to a time, in the order in which they came."""
        sql = f"{ENTRIES} AND what IN (?, ?) AND at <= ? ORDER BY seq DESC LIMIT ?"
        rows = self._rows(sql, source, Item.BATCH, Item.FAILURE, until, most)
        return list(self._deliveries(_within(rows, NEWEST_BYTES)))[::-1]

    def has_before(self, source: int, seq: int) -> bool:
        sql = "SELECT seq FROM entry WHERE source = ? AND what IN (?, ?) AND seq < ? LIMIT 1"
        return any(self._rows(sql, source, Item.BATCH, Item.FAILURE, seq))

    def logs(self, sources: Iterable[int]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for source in sources for name in self._logs.get(source, ())))

    def early_jobs(self, source: int, until: Nanos) -> tuple[Job, ...]:
        """Jobs as they were when their entries were dropped."""
        sql = (
            "SELECT -rowid, CAST(at AS INTEGER), ?, CAST(body AS BLOB) FROM job WHERE source = ? AND at <= ?"
        )
        return tuple(one.value for one in self._entries(self._rows(sql, Item.JOB, source, until)))

    def last_job(self, source: int, job_id: JobId, until: Nanos) -> Job | None:
        """A job as last recorded at a time, None if it was not, or was gone by then."""
        sql = f"{ENTRIES} AND what = ? AND at <= ? ORDER BY seq DESC"
        for entry in self._entries(self._rows(sql, source, Item.BATCH, until)):
            batch: Batch = entry.value
            if job_id in batch.gone:
                return None
            if (found := next((job for job in batch.jobs if job.id == job_id), None)) is not None:
                return found
        return next((job for job in self.early_jobs(source, until) if job.id == job_id), None)

    def answer(self, what: Item, source: int, key: str, until: Nanos) -> Entry | None:
        """The last answer to a question up to a time, None if it was not asked."""
        sql = f"{ENTRIES} AND what = ? AND key = ? AND at <= ? ORDER BY seq DESC LIMIT 1"
        return next(self._entries(self._rows(sql, source, what, key, until)), None)

    def keys(self, what: Item, source: int) -> list[str]:
        sql = "SELECT DISTINCT key FROM entry WHERE what = ? AND source = ?"
        return [key for (key,) in self._rows(sql, what, source)]

    def next_change(self, after: Nanos, *, forward: bool) -> Nanos | None:
        """The time of the next entry after a time, or of the last one before it."""
        order, compared = ("min", ">") if forward else ("max", "<")
        sql = f"SELECT {order}(at) FROM entry WHERE what = ? AND at > ? AND at {compared} ?"
        return self._moment(sql, Item.BATCH, TIMELESS, after)

    def close(self) -> None:
        self._db.close()

    def _moment(self, sql: str, *values: object) -> Nanos | None:
        return next((Nanos(at) for (at,) in self._rows(sql, *values) if at is not None), None)

    def _entries(self, rows: Iterable[tuple[Any, ...]]) -> Iterator[Entry]:
        for row in rows:
            with suppress(Damaged):
                yield self._entry(*row)

    def _deliveries(self, rows: Iterable[tuple[Any, ...]]) -> Iterator[Entry]:
        """The same for entries of sources; one that cannot be read becomes a batch that counts it."""
        for seq, at, what, body in rows:
            try:
                yield self._entry(seq, at, what, body)
            except Damaged as error:
                skip = Skip(f"{self.path}: entry {seq}", str(error))
                yield Entry(seq, Nanos(at), Item.BATCH, Batch(skipped=(skip,), skip_count=1))

    def _entry(self, seq: int, at: int, what: str, body: bytes) -> Entry:
        """One entry. It uses its allowance once, however often it is read. Raises Damaged."""
        if seq in self._too_much:
            raise TooMuch("is too large when unpacked")
        left = self._allowance.left
        allowance = UnpackLimit(LARGEST_BYTES) if seq in self._large else self._allowance
        try:
            return Entry(seq, Nanos(at), Item(what), unpacked(Item(what), body, allowance))
        except TooMuch:
            self._too_much.add(seq)
            raise
        except (ValueError, TypeError) as error:
            self._damaged.add(seq)
            raise Damaged(str(error)) from error
        finally:
            if self._allowance.left != left:
                self._large.add(seq)

    def _rows(self, sql: str, *values: object) -> Iterator[tuple[Any, ...]]:
        limit_time(self._db)
        try:
            yield from self._db.execute(sql, values)
        except DAMAGED as error:
            raise RecordingError(f"{self.path}: damaged: {error}; the original may be intact") from error


def _within(rows: Iterable[tuple[Any, ...]], most_bytes: int) -> Iterator[tuple[Any, ...]]:
    """Rows until their bodies, which come last, have more bytes than that."""
    for row in rows:
        yield row
        most_bytes -= len(row[-1])
        if most_bytes < 0:
            return


def _file_of(path: Path) -> Path:
    try:
        return path / FILE_NAME if path.is_dir() else path
    except OSError as error:  # such as a name that is too long
        raise RecordingError(f"{path}: cannot be read: {error.strerror}") from error


def opened(path: Path, layout: Layout = RECORDING) -> sqlite3.Connection:
    """A database to read. Raises RecordingError."""
    try:
        head = read_small(path, HEADER_BYTES)
    except FileNotFoundError:
        raise RecordingError(f"{path}: no such file; {layout.made_by}") from None
    except (OSError, ValueError) as error:  # the latter for names that no file can have
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise RecordingError(f"{path}: cannot be read: {why}") from error
    if not head.startswith(b"SQLite format 3"):
        raise RecordingError(f"{path}: is not a {layout.name} of jobtui; {layout.made_by}")
    refuse_odd_sides(path)
    if head[MARK] == layout.mark.to_bytes(4, "big"):
        _roll_back(path)
    db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, check_same_thread=False)
    try:
        _check(db, path, layout)
    except BaseException:
        db.close()
        raise
    return db


def refuse_odd_sides(path: Path) -> None:
    """Raise RecordingError where SQLite would write through a link, or wait for a pipe."""
    for side in SIDE_FILES:
        with suppress(OSError):
            if not stat.S_ISREG(os.lstat(f"{path}{side}").st_mode):
                raise RecordingError(f"{path}{side}: is not a regular file; remove it")


def _roll_back(path: Path) -> None:
    """Let SQLite roll back what a killed recorder was writing, see https://sqlite.org/lockingv3.html.

    Only a user who may write the recording can; others see it as damaged. So is what has a journal that no
    recorder wrote: of another user, or with a super-journal, a file of any name that SQLite then deletes.
    """
    journal = Path(f"{path}-journal")
    try:
        with os.fdopen(open_regular(journal), "rb") as file:
            is_ours = os.fstat(file.fileno()).st_uid == path.stat().st_uid and not path.is_symlink()
            file.seek(-len(SUPER_JOURNAL), os.SEEK_END)
            is_ours = is_ours and file.read() != SUPER_JOURNAL
    except OSError:
        return
    if not is_ours:
        return
    with (
        suppress(sqlite3.Error),
        closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)) as db,
    ):
        db.execute("PRAGMA trusted_schema = OFF")
        db.execute("SELECT count(*) FROM sqlite_master")


def _check(db: sqlite3.Connection, path: Path, layout: Layout) -> None:
    """Raise RecordingError unless a database has the tables of its layout and nothing that computes."""
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
    limit_time(db)
    try:
        db.execute("PRAGMA trusted_schema = OFF")
        ((mark,),) = db.execute("PRAGMA application_id")
        ((version,),) = db.execute("PRAGMA user_version")
        parts = {str(sql) for (sql,) in db.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
    except DAMAGED as error:
        raise RecordingError(f"{path}: cannot be read, it is damaged: {error}") from error
    if mark != layout.mark:
        raise RecordingError(f"{path}: is a database of something else, not a {layout.name} of jobtui")
    if version > layout.version:
        raise RecordingError(f"{path}: layout {version} is of a later jobtui; update this one")
    if parts != {part.strip() for part in layout.schema.split(";") if part.strip()}:
        raise RecordingError(f"{path}: has other tables than a {layout.name} of jobtui, and is not opened")


def limit_time(db: sqlite3.Connection) -> None:
    """Let the next queries fail if they take too long, whatever the file contains."""
    until = time.monotonic() + LONGEST_QUESTION_S
    db.set_progress_handler(lambda: int(time.monotonic() > until), STEPS_BETWEEN)
