"""Keeps what sources deliver while they are read, on a thread of its own. Raises nothing while it runs.

What comes is handed over at once and written twice a second, so that a program that is killed loses no more
than that. Where writing cannot keep up, or fails, what comes is let go of and counted: nothing waits for it.
"""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from jobtui.backends.base import Batch, Source
from jobtui.backends.recording.codec import COUNTS, LISTS, What
from jobtui.backends.recording.tape import TapeError
from jobtui.backends.recording.writing import TapeWriter
from jobtui.model.clock import Clock, Nanos
from jobtui.model.ids import JobId
from jobtui.model.job_desk import JobDesk
from jobtui.model.jobs import JobDetail

WRITE_EVERY_S = 0.5
MOST_WAITING = 100_000
"""So many records wait to be written at most, long ones counted as several."""
LONG_CHARACTERS = 1_000
LOOKED_UP_KINDS = frozenset({"sirepo_db"})
"""Kinds of sources whose whole record of a job is a file here, so that it is read with every change."""


class _Came(NamedTuple):
    kind: str
    name: str
    what: What
    value: object
    at: Nanos
    records: int


class Recorder:
    """What polls tell what they got, see `store.poller.Witness`.

    `detail_of` gives the whole record of a job, to be kept with its changes. `lost` counts records that were
    not kept, `problem` says why the last writing failed, None when it did not.
    """

    def __init__(
        self,
        writer: TapeWriter,
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
        self._lock = threading.Lock()
        self._states: dict[tuple[str, str], tuple[str | None, str | None]] = {}
        self._thread = threading.Thread(target=self._serve, name="recorder", daemon=True)
        self._thread.start()

    def delivered(self, source: Source, batch: Batch) -> None:
        """A source delivered something. What says nothing new is not kept."""
        if self._is_news(source, (None, batch.note)) or _says_something(batch):
            self._take(_Came(source.kind, source.name, What.BATCH, batch, self._clock.now(), _weight(batch)))

    def failed(self, source: Source, error: str) -> None:
        """A source could not be read."""
        if self._is_news(source, (error, None)):
            self._take(_Came(source.kind, source.name, What.FAILURE, error, self._clock.now(), 1))

    def beside(self, desk: JobDesk) -> JobDesk:
        """Nothing is asked while a recording is made."""
        return desk

    def close(self, timeout_s: float = 10.0) -> None:
        """Write what waits, and end. May be called twice."""
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
        is_open = True
        while is_open:
            came, is_open = self._gathered()
            try:
                with self._writer.together():
                    for one in came:
                        self._keep(one)
                self._count(came, None)
            except TapeError as error:
                self._count(came, str(error))

    def _count(self, came: Sequence[_Came], problem: str | None) -> None:
        """Note what became of these."""
        records = sum(one.records for one in came)
        with self._lock:
            self._waiting -= records
            self.problem = problem
            if problem is None:
                self.kept += records
            else:
                self.lost += records

    def _gathered(self) -> tuple[list[_Came], bool]:
        """What came until the next writing is due, and whether more can come."""
        came: list[_Came] = []
        due: float | None = None
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

    def _keep(self, came: _Came) -> None:
        self._writer.put(came.kind, came.name, came.what, came.value, came.at)
        if isinstance(came.value, Batch) and came.kind in LOOKED_UP_KINDS:
            for job in came.value.jobs:
                if (detail := self._detail_of(came.name, job.id)) is not None:
                    self._writer.put(came.kind, came.name, What.DETAIL, detail, came.at, job.id)


def _weight(batch: Batch) -> int:
    """How many records a batch counts for."""
    long = sum(len(record.text) for record in batch.records) // LONG_CHARACTERS
    return 1 + long + sum(len(getattr(batch, name)) for name in LISTS)


def _says_something(batch: Batch) -> bool:
    """Whether a batch holds or counts anything."""
    return any(getattr(batch, name) for name in (*LISTS, *COUNTS))
