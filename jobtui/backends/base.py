"""What a source is: the only contract a new service implements.

Errors of this boundary:

    SourceError                 the source as a whole could not be read
     ├── SourceMissing          it is not there
     ├── SourceDenied           it is there, and may not be read
     └── SourceUnreachable      it did not answer, or broke off
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

import msgspec

from jobtui.model.changes import Allocation, Site, StateChange
from jobtui.model.clock import Nanos
from jobtui.model.condor_facts import CondorFact
from jobtui.model.health import Skip
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobDetail
from jobtui.model.logs import LogRecord
from jobtui.model.traces import Span, SpanLog

if TYPE_CHECKING:
    from jobtui.model.trace_desk import TraceList, TraceSearch
    from jobtui.model.trace_ids import TraceId
    from jobtui.model.traces import Telemetry


class SourceError(Exception):
    """A source as a whole could not be read. The text says what failed, where, and what to do."""


class SourceMissing(SourceError):
    """The source is not there."""


class SourceDenied(SourceError):
    """The source is there and may not be read."""


class SourceUnreachable(SourceError):
    """The source did not answer, or broke off."""


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """What one poll gave.

    `jobs`, `records`, `changes`, `allocations` and `sites` are new or changed, `gone` are jobs that are no
    more; `spans` and `span_logs` are of traces, `condor` is what files say of jobs of HTCondor. `cursor` is
    opaque to everyone but the source. `more` asks for the next poll at once. `count` is how many records were
    looked at, also those that matter to nobody. `skip_count` counts all skipped input, `skipped` names some
    of it; `recovered` counts what was skipped before and is good again. `note` says what the source
    deliberately has not read, `begins_at` from when on a log was read whose beginning was not.
    """

    cursor: str
    jobs: tuple[Job, ...] = ()
    gone: tuple[JobId, ...] = ()
    records: tuple[LogRecord, ...] = ()
    changes: tuple[StateChange, ...] = ()
    allocations: tuple[Allocation, ...] = ()
    sites: tuple[Site, ...] = ()
    spans: tuple[Span, ...] = ()
    span_logs: tuple[SpanLog, ...] = ()
    condor: tuple[CondorFact, ...] = ()
    skipped: tuple[Skip, ...] = ()
    skip_count: int = 0
    recovered: int = 0
    count: int = 0
    more: bool = False
    note: str | None = None
    begins_at: Nanos | None = None


class Source(Protocol):
    """Something that can be polled for jobs or log records."""

    @property
    def name(self) -> str:
        """Unique among the sources of a session; the path or address it reads."""
        ...

    @property
    def kind(self) -> str:
        """The backend: `sirepo_db`, `logfile`, ..."""
        ...

    async def poll(self, cursor: str | None) -> Batch:
        """What is new since `cursor`; None asks for the beginning. Raises SourceError and nothing else."""
        ...

    async def changed(self, timeout_s: float) -> None:
        """Return when a poll may find something new, at the latest after `timeout_s`."""
        ...

    async def aclose(self) -> None:
        """Release what is held. May be called twice."""
        ...


class Announced(NamedTuple):
    """A source that is named and not made yet: what reads it is imported when that costs no first paint."""

    name: str
    kind: str
    make: Callable[[], Source]


@runtime_checkable
class DetailSource(Protocol):
    """A source that can tell everything stored about one job."""

    async def detail(self, job_id: JobId) -> JobDetail | None:
        """The whole record of a job, None when this source has none. Raises SourceError."""
        ...


@runtime_checkable
class RewindableSource(Protocol):
    """A source that begins near the end of what there is, and can be read again from an earlier time."""

    def begins_after(self, at: Nanos) -> bool:
        """Whether records of this time may lie before where reading began."""
        ...

    def starting_at(self, at: Nanos) -> Source:
        """The same source, not yet polled, that begins at this time."""
        ...


@runtime_checkable
class TraceSource(Source, Protocol):
    """A source that is asked for traces, as it has too many to read them all. Raises SourceError only."""

    async def trace(self, trace_id: "TraceId") -> "Telemetry | None":
        """All that it has of a trace by now, None when it has none."""
        ...

    async def search(self, search: "TraceSearch") -> "TraceList":
        """The traces that are wanted, the newest first."""
        ...

    async def services(self) -> tuple[str, ...]:
        """The services of which it has spans."""
        ...

    async def operations(self, service: str) -> tuple[str, ...]:
        """The names of spans of a service."""
        ...


@runtime_checkable
class MeasuredSource(Protocol):
    """A source that knows how much there is to read."""

    @property
    def measured(self) -> tuple[int, int]:
        """Bytes read since where reading began, and bytes from there to the end, as of the last poll."""
        ...


def next_delay(period_s: float, failures: int, cap_s: float = 60.0) -> float:
    """Seconds to wait before the next poll after `failures` failures in a row."""
    return min(period_s * 2.0 ** min(failures, 16), max(cap_s, period_s))
