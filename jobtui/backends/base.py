"""What a source is: the only contract a new service implements.

Errors of this boundary:

    SourceError                 the source as a whole could not be read
     ├── SourceMissing          it is not there
     ├── SourceDenied           it is there, and may not be read
     └── SourceUnreachable      it did not answer, or broke off
"""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import msgspec

from jobtui.model.changes import Allocation, Site, StateChange
from jobtui.model.clock import Clock, Nanos, SystemClock, to_rfc3339
from jobtui.model.health import SKIPS_NAMED, FailingPart, Skip, SourceError
from jobtui.model.ids import JobId, TraceId
from jobtui.model.jobs import Job, JobDetail, JobStatus, ReasonSeen
from jobtui.model.logs import CondorFact, LogRecord
from jobtui.model.slurm import Cluster
from jobtui.model.traces import Span, SpanLog, Telemetry, TraceList, TraceSearch

if TYPE_CHECKING:
    from jobtui.model.job_reader import FilePart, RunListing


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one poll.

    `jobs`, `records`, `changes`, `allocations` and `sites` are new or changed. `gone` are jobs that the
    source no longer has, `deleted` those that their system no longer knows at all. `clusters` are all nodes
    of one, `reasons` what pending jobs waited for, in order. `spans` and `span_logs` belong to traces,
    `condor` are facts about jobs of HTCondor. `cursor` is opaque to all but the source. `more` asks for the
    next poll at once, `left` is how many records are known to come then. `count` is the number of records
    that were examined, also of those that nobody needs. `skip_count` counts all skipped input, `skipped`
    names some of it, and `recovered` counts input that was skipped before and is good now. `note` says what
    the source left out on purpose. `begins_at` is the time from which a log was read if its beginning was
    not. `ahead_s` is how far the clock of the source is ahead of ours. `is_whole_frame`: there are no other
    sites and allocations. `failing` are the parts that cannot be read, None where it says nothing of that.
    `read_at` is when it was read, where that is not now.
    """

    cursor: str = ""
    jobs: tuple[Job, ...] = ()
    gone: tuple[JobId, ...] = ()
    deleted: tuple[JobId, ...] = ()
    records: tuple[LogRecord, ...] = ()
    changes: tuple[StateChange, ...] = ()
    allocations: tuple[Allocation, ...] = ()
    sites: tuple[Site, ...] = ()
    clusters: tuple[Cluster, ...] = ()
    reasons: tuple[ReasonSeen, ...] = ()
    spans: tuple[Span, ...] = ()
    span_logs: tuple[SpanLog, ...] = ()
    condor: tuple[CondorFact, ...] = ()
    skipped: tuple[Skip, ...] = ()
    skip_count: int = 0
    recovered: int = 0
    count: int = 0
    more: bool = False
    left: int = 0
    is_whole_frame: bool = False
    note: str | None = None
    begins_at: Nanos | None = None
    ahead_s: float = 0.0
    failing: tuple[FailingPart, ...] | None = None
    read_at: Nanos | None = None


LISTS = tuple(field.name for field in msgspec.structs.fields(Batch) if field.default == ())
"""The fields of a batch that hold records or skips."""
COUNTS = ("skip_count", "recovered", "count")
"""The fields of a batch that are numbers."""


def merged(batches: Iterable[Batch]) -> Batch:
    """Batches as one, in their order. The last of several notes, clocks and failures counts."""
    every = tuple(batches)
    parts: dict[str, Any] = {
        name: tuple(chain.from_iterable(getattr(one, name) for one in every)) for name in LISTS
    }
    return Batch(
        more=any(one.more for one in every),
        is_whole_frame=any(one.is_whole_frame for one in every),
        note=next((one.note for one in reversed(every) if one.note is not None), None),
        failing=next((one.failing for one in reversed(every) if one.failing is not None), None),
        ahead_s=next((one.ahead_s for one in reversed(every) if one.ahead_s), 0.0),
        **parts,
        **{name: sum(getattr(one, name) for one in every) for name in COUNTS},
    )


def batch_of(found: "Telemetry") -> Batch:
    return Batch(
        spans=found.spans,
        span_logs=found.logs,
        skipped=found.skipped,
        skip_count=found.skip_count,
        count=len(found.spans) + len(found.logs),
    )


AGAIN_S = 2.0
"""A part that fails is asked for again after twice this time, then after twice as long each time."""
WINDOW_S = 24 * 3600
"""How far back events and ended jobs are read at first."""


def skipping(batch: Batch, skips: Sequence[Skip]) -> Batch:
    return msgspec.structs.replace(batch, skipped=tuple(skips[-SKIPS_NAMED:]), skip_count=len(skips))


class Source(Protocol):
    """Something that can be polled for jobs or log records."""

    @property
    def name(self) -> str:
        """Unique among the sources of a session; the path or address it reads."""

    @property
    def kind(self) -> str:
        """The backend: `sirepo_db`, `logfile`, ..."""

    async def poll(self, cursor: str | None) -> Batch:
        """The batch after `cursor`, the first one for None. Raises SourceError and nothing else."""

    async def changed(self, timeout_s: float) -> None:
        """Wait until a poll may find something new, at most `timeout_s`."""

    async def aclose(self) -> None:
        """Release what is held. May be called twice."""


class Closable(Protocol):
    """A resource that a source holds while it is open: a client, or the thread that reads."""

    async def aclose(self) -> None:
        """Release what is held. May be called twice."""


class PolledSource(ABC):
    """A source whose cursors count its batches; with any other cursor it begins again.

    What was being read when a poll was cancelled is given to the next one. What is `held` is closed with it.
    """

    clock: Clock = SystemClock()
    timer: Callable[[], float] = staticmethod(time.monotonic)
    """Any steady clock, in seconds."""
    until: Nanos | None = None
    """Records after this time are left out, as the note says."""
    _ended: Batch | None = None

    def __init__(self, name: str, held: Closable | None = None) -> None:
        self.name = name
        self.closing = asyncio.Event()
        self._held = held
        self._number = 0
        self._reasons: dict[JobId, ReasonSeen] = {}
        """What each pending job waits for, and since when that was seen."""
        self._last: Batch | None = None
        self._reading: asyncio.Future[Batch] | None = None

    async def poll(self, cursor: str | None) -> Batch:
        """What is new since `cursor`. Raises SourceError and nothing else."""
        if self.closing.is_set():
            raise SourceError(f"{self.name}: is closed")
        if self._last is not None and cursor == str(self._number - 1):
            return self._last  # it was lost, for example because the waiting task was cancelled
        if self._reading is None or self._reading.done():
            self._reading = asyncio.ensure_future(self._read_numbered(begins=cursor != str(self._number)))
            self._reading.add_done_callback(lambda done: done.cancelled() or done.exception())
        return await asyncio.shield(self._reading)

    async def _read_numbered(self, *, begins: bool) -> Batch:
        self._ended = None if begins else self._ended
        batch = self._ended or self._up_to(self.until, await self.read(begins=begins))
        self._number += 1
        seen = tuple(self._new_reasons(batch))
        self._last = msgspec.structs.replace(batch, cursor=str(self._number), reasons=seen)
        return self._last

    def _up_to(self, until: Nanos | None, batch: Batch) -> Batch:
        """The part of a batch that is not later; if all is, reading ends: one line may have a clock ahead."""
        kept, is_within = [], True
        for record in batch.records:
            is_within = is_within if until is None or record.at is None else record.at <= until
            kept += [record] if is_within else []
        if until is None or len(kept) == len(batch.records):
            return batch
        said = f"nothing after {to_rfc3339(until)} was read"
        note = f"{batch.note}; {said}" if batch.note else said
        self._ended = None if kept else Batch(note=note)
        return msgspec.structs.replace(batch, records=tuple(kept), note=note, more=batch.more and bool(kept))

    def reasons_in(self, batch: Batch) -> Iterator[ReasonSeen]:
        """What jobs of a batch wait for, "" for those that waited before and do not now."""
        now, known = self.clock.now(), self._reasons
        for job in batch.jobs:
            if job.status is JobStatus.PENDING or job.id in known:
                yield ReasonSeen(job.id, now, job.reason_words)

    def _new_reasons(self, batch: Batch) -> Iterator[ReasonSeen]:
        """The reasons of jobs that waited for something else before, with what that was."""
        for job_id in batch.gone:
            self._reasons.pop(job_id, None)
        for seen in self.reasons_in(batch):
            before = self._reasons.get(seen.job_id)
            if not seen.reason:
                self._reasons.pop(seen.job_id, None)
            elif before is None or before.reason != seen.reason:
                self._reasons[seen.job_id] = seen
                yield from () if before is None else (before, seen)

    @abstractmethod
    async def read(self, *, begins: bool) -> Batch:
        """What is new since the last batch, or all when it `begins`. Its cursor does not count."""

    async def changed(self, timeout_s: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self.closing.wait()

    async def aclose(self) -> None:
        self.closing.set()
        if self._reading is not None:
            self._reading.cancel()
        if self._held is not None:
            await self._held.aclose()


class SourceParts:
    """The parts of a source that are asked for one by one, as one may fail while others do not.

    Each has a name, with which its question begins. One that fails is asked for again after growing pauses.
    `main` is the one without which all others say nothing, if there is one.
    """

    def __init__(self, source: PolledSource, main: str = "") -> None:
        self._source, self._main = source, main
        self._read_at: dict[str, Nanos] = {}
        self._failing: dict[str, tuple[FailingPart, int, float]] = {}
        """For each how often it failed in a row, and when it may be asked for again."""

    @property
    def failing(self) -> tuple[FailingPart, ...]:
        return tuple(part for part, _, _ in self._failing.values())

    def read_at(self, part: str) -> Nanos:
        """When it was last asked for and given, 0 if it never was."""
        return self._read_at.get(part, Nanos(0))

    def may_ask(self, part: str) -> bool:
        return part not in self._failing or self._failing[part][2] <= self._source.timer()

    def fails(self, part: str) -> bool:
        return part in self._failing

    def take(self, part: str) -> None:
        """Note that it was given."""
        self._read_at[part] = self._source.clock.now()
        self.forget(part)

    def forget(self, part: str) -> None:
        """Note that it is not asked for any more, and so does not fail."""
        self._failing.pop(part, None)

    def fail(self, part: str, error: SourceError) -> None:
        failures = self._failing[part][1] + 1 if part in self._failing else 1
        why = str(error).removeprefix(f"{self._source.name}: ")
        again_at = self._source.timer() + next_delay(AGAIN_S, failures)
        failing = FailingPart(part, why, self._read_at.get(part), part == self._main)
        self._failing[part] = failing, failures, again_at


class Unopened(NamedTuple):
    """A source that is named and not made yet: its backend is imported after the first paint."""

    name: str
    kind: str
    make: Callable[[], Source]


@runtime_checkable
class DetailSource(Protocol):
    """A source that can give everything stored about one job."""

    async def detail(self, job_id: JobId) -> JobDetail | None:
        """The whole record of a job; None if this source has none. Raises SourceError."""


@runtime_checkable
class RecordReader(Protocol):
    """A source whose records are read at once, in the thread that asks."""

    def read_record(self, job_id: JobId) -> JobDetail | None:
        """The whole record of a job; None if there is none, or it cannot be read."""


@runtime_checkable
class FileServer(Protocol):
    """A source that keeps the files of jobs, and is asked for those of one."""

    @property
    def name(self) -> str:
        """The address with which the names of its directories begin."""

    def directory_of(self, job_id: JobId) -> str | None:
        """Where the files of a job are; None for one that cannot have any there."""

    async def list_files(self, path: str) -> "RunListing":
        """The files in a directory. Raises SourceError and Unreadable."""

    async def read_file(self, path: str, name: str, *, tail: bool) -> "FilePart":
        """The beginning or the end of one. Raises SourceError and Unreadable."""


def with_files(detail: JobDetail, sources: Iterable[Source]) -> JobDetail:
    """The record, with the place of the job's files if it does not name that itself."""
    servers = (source for source in sources if isinstance(source, FileServer))
    kept = next(filter(None, (server.directory_of(detail.job.id) for server in servers)), None)
    return detail if detail.directory or kept is None else msgspec.structs.replace(detail, directory=kept)


@runtime_checkable
class NodeSource(Protocol):
    """A source that knows the nodes of its cluster; asking costs too much to do it all the time."""

    def ask_for_nodes(self, every_s: float | None) -> None:
        """Let its polls give the nodes, not more often than this; None for no more."""


@runtime_checkable
class RewindableSource(Protocol):
    """A source that begins near its end and can be read again from an earlier time."""

    def begins_after(self, at: Nanos) -> bool:
        """Whether records of this time may come before the point where reading began."""

    def starting_at(self, at: Nanos) -> Source:
        """A new source for the same log that begins at this time."""


@runtime_checkable
class TraceSource(Source, Protocol):
    """A server that is asked for traces, as it has too many to read all. Raises SourceError only."""

    async def trace(self, trace_id: "TraceId") -> "Telemetry | None":
        """All that it has of a trace now; None if it has nothing."""

    async def search(self, search: "TraceSearch") -> "TraceList":
        """The traces that match, newest first."""


@runtime_checkable
class SeesOthers(Protocol):
    """A source that does not repeat what another one gives."""

    others: Callable[[], Iterable[Any]]
    """All sources in their order, with itself."""


@runtime_checkable
class MeasuredSource(Protocol):
    @property
    def measured(self) -> tuple[int, int]:
        """Bytes read since reading began, and bytes from there to the end, as of the last poll."""


def next_delay(period_s: float, failures: int, cap_s: float = 60.0) -> float:
    """Seconds to wait before the next poll after `failures` failures in a row."""
    return min(period_s * 2.0 ** min(failures, 16), max(cap_s, period_s))


DetailOf = Callable[[JobId], JobDetail | None]
"""Gives the detail of a job that is put together from several sources."""


class Observer(Protocol):
    """Gets the result of each poll. Its methods return at once and raise nothing."""

    def delivered(self, source: Source, batch: Batch) -> None:
        """A source gave a batch, perhaps an empty one."""

    def failed(self, source: Source, error: str) -> None: ...

    def replied(self, name: str, asked: Sequence[Any], answer: object) -> None:
        """A method of a `JobReader` answered, or said why it cannot."""
