"""All that was read for one job, put into one file under the times it is of, so that one can go back in it.

A log record is put under its own time, so are changes; what is of no time is put at the beginning.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from jobtui.backends.base import Batch, Source
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job
from jobtui.model.logs import LogRecord
from jobtui.recording.database import TIMELESS, About, Item
from jobtui.recording.recorder import RecordingWriter
from jobtui.recording.replay import ANSWERS, QUESTIONS

MOST_BYTES = 512 << 20
"""A bundle holds no more, packed; what is older is dropped."""
MOST_JOBS = 5_000
"""With more jobs than this only those related to the given one are kept."""
PIECE_RECORDS = 500

States = Callable[[Job], Iterable[tuple[Nanos, Job]]]
"""Gives what a job was and since when."""


class BundleCollector:
    """Keeps in memory what was delivered and answered, see `backends.base.Observer`."""

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
        """Make the bundle, of jobs only those that are wanted; its size in bytes. Raises RecordingError."""
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
    """What a batch gives, each under the time it is of; of jobs only those that are wanted."""
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
    for record in batch.records:  # a second's worth at a time, none before those it follows
        at = max(latest, record.at or TIMELESS)
        if piece and (at >= begun + SECOND or len(piece) >= PIECE_RECORDS):
            yield latest, Batch(records=tuple(piece))
            piece, begun = [], at
        piece.append(record)
        latest = at
    if piece:
        yield latest, Batch(records=tuple(piece))
