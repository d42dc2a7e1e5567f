"""All that was read for one job, put into one file under the times it is of, so that one can go back in it.

A log record is put under its own time, so are changes; what is of no time is put at the beginning.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from jobtui.backends.base import Batch, Source
from jobtui.backends.recording.codec import What
from jobtui.backends.recording.desk import DESK, KeepingDesk
from jobtui.backends.recording.tape import TIMELESS, About
from jobtui.backends.recording.writing import TapeWriter
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import JobId
from jobtui.model.job_desk import JobDesk
from jobtui.model.jobs import Job, JobDetail
from jobtui.model.logs import LogRecord

MOST_BYTES = 512 << 20
"""A bundle holds no more, packed; what is older is let go of."""
MOST_JOBS = 5_000
"""Of more jobs only those are kept that have to do with the one that is asked for."""
PIECE_RECORDS = 500

States = Callable[[Job], Iterable[tuple[Nanos, Job]]]
"""Gives what a job was and since when."""


class _Delivered(NamedTuple):
    kind: str
    name: str
    batch: Batch | None
    error: str = ""


class Gathering:
    """Keeps in memory what was delivered and answered, see `backends.staging.Witness`."""

    def __init__(self) -> None:
        self._delivered: list[_Delivered] = []
        self._answers: list[tuple[str, str, What, str, object]] = []

    def delivered(self, source: Source, batch: Batch) -> None:
        """Keep what a source delivered."""
        self._delivered.append(_Delivered(source.kind, source.name, batch))

    def failed(self, source: Source, error: str) -> None:
        """Keep why a source could not be read."""
        self._delivered.append(_Delivered(source.kind, source.name, None, error))

    def beside(self, desk: JobDesk) -> JobDesk:
        """Keep what is asked of the desk."""
        return KeepingDesk(desk, lambda what, key, answer: self.answered(DESK, "", what, key, answer))

    def answered(self, kind: str, name: str, what: What, key: str, answer: object) -> None:
        """Keep an answer of a source."""
        self._answers.append((kind, name, what, key, answer))

    def looked_up(self, kind: str, name: str, job_id: JobId, detail: JobDetail | None) -> None:
        """Keep everything that a source has stored about a job."""
        self.answered(kind, name, What.DETAIL, job_id, detail)

    @property
    def jobs(self) -> int:
        """How many jobs were delivered."""
        return len({job.id for one in self._delivered if one.batch for job in one.batch.jobs})

    def write(self, path: Path, about: About, states: States, wanted: Callable[[JobId], bool]) -> int:
        """Make the bundle, of jobs only those that are wanted; its size in bytes. Raises TapeError."""
        writer = TapeWriter(path, about, MOST_BYTES)
        try:
            with writer.together():
                for kind, name, what, key, answer in self._answers:
                    writer.put(kind, name, what, answer, TIMELESS, key)
                for (kind, name), pieces in self._by_source(states, wanted, about.at).items():
                    for at, batch in sorted(pieces, key=lambda piece: piece[0]):
                        what = What.FAILURE if isinstance(batch, str) else What.BATCH
                        writer.put(kind, name, what, batch, min(at, about.at))
            if missing := _missing(writer):
                writer.say(msgspec.structs.replace(about, notes=(*about.notes, *missing)))
        finally:
            writer.close()
        return path.stat().st_size

    def _by_source(
        self, states: States, wanted: Callable[[JobId], bool], at: Nanos
    ) -> dict[tuple[str, str], list[tuple[Nanos, Batch | str]]]:
        found: dict[tuple[str, str], list[tuple[Nanos, Batch | str]]] = {}
        for one in self._delivered:
            pieces = found.setdefault((one.kind, one.name), [])
            if one.batch is None:
                pieces.append((at, one.error))
            else:
                pieces += _pieces(_only(one.batch, wanted), states)
        return found


def _missing(writer: TapeWriter) -> list[str]:
    """What was left out on the way into the file."""
    found = []
    if writer.let_go:
        found.append(f"the oldest {writer.let_go:,} entries, as a bundle has {MOST_BYTES >> 20} MB at most")
    if writer.refused:
        found.append(f"{writer.refused:,} entries that cannot be written down")
    return found


def _only(batch: Batch, wanted: Callable[[JobId], bool]) -> Batch:
    jobs = tuple(job for job in batch.jobs if wanted(job.id))
    changes = tuple(change for change in batch.changes if wanted(change.job_id))
    return msgspec.structs.replace(batch, jobs=jobs, changes=changes)


def _pieces(batch: Batch, states: States) -> Iterator[tuple[Nanos, Batch]]:
    """A batch in pieces, each under the time it is of; what is of no time at the beginning."""
    yield TIMELESS, msgspec.structs.replace(batch, jobs=(), records=(), changes=())
    for job in batch.jobs:
        for at, state in states(job):
            yield at, Batch(cursor="", jobs=(state,))
    for change in batch.changes:
        yield change.at, Batch(cursor="", changes=(change,))
    for at, records in _by_time(batch.records):
        yield at, Batch(cursor="", records=tuple(records))


def _by_time(records: Iterable[LogRecord]) -> Iterator[tuple[Nanos, list[LogRecord]]]:
    """Records in their order, a second's worth at a time; none is put before those it stands behind."""
    piece: list[LogRecord] = []
    begun = latest = TIMELESS
    for record in records:
        at = max(latest, record.at or TIMELESS)
        if piece and (at >= begun + SECOND or len(piece) >= PIECE_RECORDS):
            yield latest, piece
            piece, begun = [], at
        piece.append(record)
        latest = at
    if piece:
        yield latest, piece
