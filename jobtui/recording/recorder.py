"""Records what sources give while they are read, in one file of bounded size. Raises nothing while it runs.

If the file is full the oldest entries are dropped; the last record of their jobs stays. Used by one thread.
Raises RecordingError. `writer.py` does the writing; the recording says how much was lost, and when.

A bundle has all that was read for one job. Log records and changes have their own times, so that one can go
back in it; entries without a time are at the beginning.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from jobtui.backends.base import COUNTS, LISTS, Batch, Source
from jobtui.backends.registry import SIREPO_DB, Gives, kinds_that_give
from jobtui.model.clock import SECOND, Clock, Nanos, utc_of
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobDetail
from jobtui.model.logs import LogRecord
from jobtui.model.numbers import storable
from jobtui.model.secrets import mask_document, mask_text
from jobtui.recording import database
from jobtui.recording.database import TIMELESS, About, Item
from jobtui.recording.replay import ANSWERS, QUESTIONS
from jobtui.recording.writer import BatchWriter, DatabaseWriter

ROOM_SHARE = 0.9
"""A full recording is cut to this share of its size."""
CUT_AT_ONCE = 200
LINES_KNOWN = 500_000
"""How many of the newest lines of an earlier recorder are recognized, at least."""


class RecordedLines:
    """The lines of logs in a recording that is continued: the logs are read again, and give them again.

    A line is known by its position, time, process and text, as often as it was kept. Lines of a log before
    the first known one are older than what is kept of it, and are dropped. A source's counts are not added
    again until it gives a new line.
    """

    def __init__(self, newest_first: Iterator[tuple[str, Batch]]) -> None:
        self._left: Counter[int] = Counter()
        self._since: dict[str, Nanos] = {}
        self._counted: dict[str, Counter[str]] = {}
        for source, batch in newest_first:
            counted = self._counted.setdefault(source, Counter())
            counted.update({name: getattr(batch, name) for name in COUNTS})
            for record in batch.records:
                log, line = _line_of(record)
                self._left[line] += 1
                if record.at is not None:
                    self._since[log] = min(record.at, self._since.get(log, record.at))

    def without(self, source: str, batch: Batch) -> Batch:
        """A batch without the lines that are kept already, and without their counts."""
        new = tuple(filter(self._is_new, batch.records)) if self._left else batch.records
        counts = Counter({name: getattr(batch, name) for name in COUNTS})
        counted = self._counted.pop(storable(source), Counter())
        if not new:
            self._counted[storable(source)] = counted - counts
        left = counts - counted if new or not batch.records else Counter()
        known = len(batch.records) - len(new)
        left["count"] = max(len(new), min(left["count"], batch.count - known))
        skipped = batch.skipped if left["skip_count"] or not batch.skip_count else ()
        rest = {name: left[name] for name in COUNTS}
        return msgspec.structs.replace(batch, records=new, skipped=skipped, **rest)

    def _is_new(self, record: LogRecord) -> bool:
        log, line = _line_of(record)
        if left := self._left.pop(line, 0):
            if left > 1:
                self._left[line] = left - 1
            self._since.pop(log, None)
            return False
        since = self._since.get(log)
        if since is not None and record.at is not None and record.at < since:
            return False
        self._since.pop(log, None)
        return True


def _line_of(record: LogRecord) -> tuple[str, int]:
    """The name of the log of a record, and what identifies its line, as they are written."""
    log, text = (storable(mask_text(one)) for one in (record.source, record.text))
    line = record.offset if record.identity is None else record.identity
    return log, hash((log, line, record.at, record.pid, record.container, text))


class RecordingWriter(DatabaseWriter):
    """A recording, which must not exist unless it `goes_on`. `most_bytes` bounds what is kept.

    A new one gets its name at `close`; `discard` leaves nothing of it.
    """

    def __init__(self, path: Path, about: database.About, most_bytes: int, *, goes_on: bool = False) -> None:
        self._most_bytes = most_bytes
        self._sources: dict[tuple[str, str], int] = {}
        self._logs: set[tuple[int, str]] = set()
        self.kept_bytes = 0
        self.let_go = 0
        self.refused = 0
        self._about = about
        super().__init__(path, database.RECORDING, goes_on=goes_on)

    def _begin(self) -> None:
        self.say(self._about)

    def _open(self, *, goes_on: bool) -> None:
        super()._open(goes_on=goes_on)
        self.kept_lines = RecordedLines(self._of_logs())

    def _of_logs(self) -> Iterator[tuple[str, Batch]]:
        kinds, count = kinds_that_give(Gives.LOGS), 0
        wanted = f"what = ? AND kind IN ({', '.join('?' * len(kinds))})"
        sql = f"SELECT name, body FROM entry JOIN source ON source = id WHERE {wanted} ORDER BY seq DESC"
        for name, body in self._db.execute(sql, (database.Item.BATCH, *kinds)):
            with suppress(database.Damaged):
                batch: Batch = database.unpacked(database.Item.BATCH, body)
                yield name, batch
                count += len(batch.records)
            if count >= LINES_KNOWN:
                return

    def put(self, kind: str, name: str, what: database.Item, value: object, at: Nanos, key: str = "") -> None:
        """Record one value that a source gave or answered; one that cannot be recorded is counted."""
        try:
            body = database.packed(value)
        except database.NotPacked:
            self.refused += 1
            return
        with self._guarded():
            source = self._source(kind, name)
            if isinstance(value, Batch):  # logs are known without being read
                named = {(source, storable(mask_text(record.source))) for record in value.records}
                self._db.executemany("INSERT OR IGNORE INTO log VALUES (?, ?)", named - self._logs)
                self._logs |= named
            sql = "INSERT INTO entry (at, source, what, key, body) VALUES (?, ?, ?, ?, ?)"
            self._db.execute(sql, (at, source, what, storable(key), body))
        self.kept_bytes += len(body)
        if self.kept_bytes > self._most_bytes:
            self._cut()

    def say(self, about: database.About) -> None:
        self._about = about
        text = database.encoded(mask_document(msgspec.to_builtins(about))).decode()
        with self._guarded():
            self._db.execute("INSERT OR REPLACE INTO about VALUES ('about', ?)", (text,))

    def add_note(self, note: str) -> None:
        self.say(msgspec.structs.replace(self._about, notes=(*self._about.notes, note)))

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

    def _cut(self) -> None:
        """Drop the oldest entries until there is room; the last records of their jobs stay."""
        while self.kept_bytes > self._most_bytes * ROOM_SHARE:
            sql = "SELECT seq, at, source, what, body FROM entry ORDER BY seq LIMIT ?"
            oldest = self._db.execute(sql, (CUT_AT_ONCE,)).fetchall()
            for seq, at, source, what, body in oldest:
                if what == database.Item.BATCH:
                    with suppress(database.Damaged):
                        batch: Batch = database.unpacked(database.Item.BATCH, body)
                        jobs = [(source, job.id, at, database.packed(job)) for job in batch.jobs]
                        gone = [(source, job_id) for job_id in batch.gone]
                        self._db.executemany("INSERT OR REPLACE INTO job VALUES (?, ?, ?, ?)", jobs)
                        self._db.executemany("DELETE FROM job WHERE source = ? AND id = ?", gone)
                self._db.execute("DELETE FROM entry WHERE seq = ?", (seq,))
                self.kept_bytes -= len(body)
                self.let_go += 1
                if self.kept_bytes <= self._most_bytes * ROOM_SHARE:
                    return
            if not oldest:
                return


LONG_CHARACTERS = 1_000


class _Entry(NamedTuple):
    kind: str
    name: str
    what: database.Item
    value: object
    at: Nanos


class Recorder(BatchWriter[_Entry]):
    """Gets the results of polls, see `backends.base.Observer`.

    `detail_of` gives the whole record of a job, to be recorded with its changes.
    """

    _writer: RecordingWriter

    def __init__(
        self,
        writer: RecordingWriter,
        clock: Clock,
        detail_of: Callable[[str, JobId], JobDetail | None] = lambda source, job_id: None,
    ) -> None:
        self._clock = clock
        self._detail_of = detail_of
        self._kept_lines = writer.kept_lines
        self._noted = 0
        self._states: dict[tuple[str, str], tuple[object, ...]] = {}
        super().__init__(writer, "recording")

    def delivered(self, source: Source, batch: Batch) -> None:
        batch = self._kept_lines.without(source.name, batch)
        says_something = any(getattr(batch, name) for name in (*LISTS, *COUNTS))
        if self._is_news(source, (None, batch.note, batch.failing)) or says_something:
            long = sum(len(record.text) for record in batch.records) // LONG_CHARACTERS
            weight = 1 + long + sum(len(getattr(batch, name)) for name in LISTS)
            self.put(_Entry(source.kind, source.name, database.Item.BATCH, batch, self._clock.now()), weight)

    def failed(self, source: Source, error: str) -> None:
        if self._is_news(source, (error,)):
            self.put(_Entry(source.kind, source.name, database.Item.FAILURE, error, self._clock.now()))

    def replied(self, name: str, asked: Sequence[Any], answer: object) -> None:
        """Answers are kept in bundles only."""

    def _is_news(self, source: Source, state: tuple[object, ...]) -> bool:
        known = self._states.get((source.kind, source.name))
        self._states[source.kind, source.name] = state
        return known != state

    def write_end(self) -> None:
        """Note in the recording what was lost since the last such note. Raises RecordingError."""
        with self._lock:
            lost = self.lost - self._noted
        if lost:
            until = f"{utc_of(self._clock.now()):%Y-%m-%dT%H:%M:%SZ}"
            self._writer.add_note(f"{lost:,} records that could not be written until {until}")
            self._noted += lost

    def write_one(self, one: _Entry) -> None:
        self._writer.put(one.kind, one.name, one.what, one.value, one.at)
        if isinstance(one.value, Batch) and SIREPO_DB.made(one):
            for job in one.value.jobs:
                if (detail := self._detail_of(one.name, job.id)) is not None:
                    self._writer.put(one.kind, one.name, database.Item.DETAIL, detail, one.at, job.id)


MOST_BYTES = 512 << 20
"""The largest bundle, packed; older entries are dropped."""
MOST_JOBS = 5_000
"""With more jobs only those related to the given one are kept."""
PIECE_RECORDS = 500

States = Callable[[Job], Iterable[tuple[Nanos, Job]]]
"""Gives the state of a job and since when."""


class BundleCollector:
    """Keeps in memory what sources gave and answered, see `backends.base.Observer`."""

    def __init__(self) -> None:
        self._delivered: list[tuple[str, str, Batch | str]] = []
        self._answers: list[tuple[str, str, Item, str, object]] = []

    def delivered(self, source: Source, batch: Batch) -> None:
        self._delivered.append((source.kind, source.name, batch))

    def failed(self, source: Source, error: str) -> None:
        self._delivered.append((source.kind, source.name, error))

    def replied(self, name: str, asked: Sequence[Any], answer: object) -> None:
        is_why = isinstance(answer, str)
        if (question := QUESTIONS.get(name)) is not None and not (is_why and question.what is Item.LINES):
            self.answered(ANSWERS, "", question.what, question.key(*asked), answer)

    def answered(self, kind: str, name: str, what: Item, key: str, answer: object) -> None:
        self._answers.append((kind, name, what, key, answer))

    @property
    def jobs(self) -> int:
        batches = (one for _, _, one in self._delivered if isinstance(one, Batch))
        return len({job.id for batch in batches for job in batch.jobs})

    def write(self, path: Path, about: About, states: States, wanted: Callable[[JobId], bool]) -> int:
        """Make the bundle, with only the wanted jobs. Returns its size in bytes. Raises RecordingError."""
        writer = RecordingWriter(path, about, MOST_BYTES)
        try:
            with writer.together():
                for kind, name, what, key, answer in self._answers:
                    writer.put(kind, name, what, answer, TIMELESS, key)
                found: dict[tuple[str, str], list[tuple[Nanos, Batch | str]]] = {}
                for kind, name, one in self._delivered:
                    pieces = found.setdefault((kind, name), [])
                    pieces += [(about.at, one)] if isinstance(one, str) else _pieces(one, states, wanted)
                for (kind, name), pieces in found.items():
                    for at, batch in sorted(pieces, key=lambda piece: piece[0]):
                        what = Item.FAILURE if isinstance(batch, str) else Item.BATCH
                        writer.put(kind, name, what, batch, min(at, about.at))
            if writer.let_go:
                why = f"as a bundle has {MOST_BYTES >> 20} MB at most"
                writer.add_note(f"the oldest {writer.let_go:,} entries, {why}")
            if writer.refused:
                writer.add_note(f"entries that cannot be stored: {writer.refused:,}")
            writer.close()
        finally:
            writer.discard()
        return path.stat().st_size


def _pieces(batch: Batch, states: States, wanted: Callable[[JobId], bool]) -> Iterator[tuple[Nanos, Batch]]:
    """The parts of a batch, each with its own time; only the wanted jobs."""
    reasons = tuple(seen for seen in batch.reasons if wanted(seen.job_id))
    yield TIMELESS, msgspec.structs.replace(batch, jobs=(), records=(), changes=(), reasons=reasons)
    for job in batch.jobs:
        for at, state in states(job) if wanted(job.id) else ():
            yield at, Batch(jobs=(state,))
    for change in batch.changes:
        if wanted(change.job_id):
            yield change.at, Batch(changes=(change,))
    piece: list[LogRecord] = []
    begun = latest = TIMELESS
    for record in batch.records:  # one second at a time, none before the ones that it follows
        at = max(latest, record.at or TIMELESS)
        if piece and (at >= begun + SECOND or len(piece) >= PIECE_RECORDS):
            yield latest, Batch(records=tuple(piece))
            piece, begun = [], at
        piece.append(record)
        latest = at
    if piece:
        yield latest, Batch(records=tuple(piece))
