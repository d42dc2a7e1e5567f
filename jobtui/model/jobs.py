"""A job as every system has it, and its earlier runs.

These records are `msgspec.Struct`, not dataclasses: a hundred thousand of them are live at once, and a
Struct takes a third of the time to make and, untracked by the garbage collector, no time to keep.
"""

from enum import StrEnum

import msgspec

from jobtui.model.changes import Site, StateChange
from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.ids import JobId


class JobStatus(StrEnum):
    """What a job is doing, in words that hold for every system; the system's own word is kept beside it."""

    PENDING = "pending"
    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    CANCELED = "canceled"
    MISSING = "missing"
    PURGED = "purged"
    UNKNOWN = "unknown"

    @property
    def is_live(self) -> bool:
        """Whether the job still waits or runs."""
        return self in _LIVE


_LIVE = frozenset({JobStatus.PENDING, JobStatus.RUNNING})


class Job(msgspec.Struct, frozen=True, gc=False):
    """The present state of one job. Times are None when the system has not set them.

    `tags`, `passed` (the states it was in, in the system's own words, oldest first) and `allocation` (ids by
    which the scheduler's allocation it runs in is known) are words with a blank between. `trace` is the
    id of the trace that it was handed, "" where none is known. `reason` is the
    system's own word for why it is in its state, `exit` how its program ended, as `code:signal`.

    Give the fields by name. Only who makes a hundred thousand at once may give them by position: a Struct
    looks for every name in turn, which takes longer than all the rest.
    """

    id: JobId
    system: str
    status: JobStatus
    native_status: str
    source: str
    owner: str = ""
    name: str | None = None
    app: str = ""
    model: str = ""
    mode: str = ""
    queued_at: Nanos | None = None
    started_at: Nanos | None = None
    updated_at: Nanos | None = None
    ended_at: Nanos | None = None
    written_at: Nanos | None = None
    runs: int = 0
    percent: float | None = None
    frames: int | None = None
    message: str | None = None
    error: str | None = None
    alert: str | None = None
    limit_s: float | None = None
    driver: str | None = None
    host: str | None = None
    plan: str | None = None
    is_quasi: bool = False
    tags: str = ""
    passed: str = ""
    allocation: str = ""
    reason: str = ""
    exit: str = ""
    trace: str = ""

    def elapsed_s(self, now: Nanos) -> float | None:
        """Seconds since the start, up to the end when there is one; None when it never started."""
        if self.started_at is None:
            return None
        return seconds_between(self.started_at, self.ended_at if self.ended_at is not None else now)

    def waited_s(self, now: Nanos) -> float | None:
        """Seconds from submission to start, to the end when it never started, or to now while pending."""
        if self.queued_at is None:
            return None
        until = self.started_at or self.ended_at
        return seconds_between(self.queued_at, until if until is not None else now)


class Run(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One run of a job: the present one or one out of the record's history."""

    number: int
    status: JobStatus
    native_status: str
    mode: str = ""
    queued_at: Nanos | None = None
    started_at: Nanos | None = None
    updated_at: Nanos | None = None
    ended_at: Nanos | None = None
    message: str | None = None
    error: str | None = None
    alert: str | None = None
    limit_s: float | None = None
    driver: str | None = None
    host: str | None = None


class JobDetail(msgspec.Struct, frozen=True, kw_only=True):
    """Everything stored about one job: its runs oldest first, other history entries, and the raw record.

    `history` is every entry of the record's history in order (also those that were no runs), `native` is the
    record as the system stores it, unknown fields included and not yet masked. `changes` are
    those of its state, where the system keeps them; `directory` is where its files are, on a machine of its
    own, where the record says so, and `facts` are further things it says, by name. `site` is
    the place that it is for.
    """

    job: Job
    runs: tuple[Run, ...]
    history: tuple[Run, ...]
    native: dict[str, object]
    path: str | None = None
    changes: tuple[StateChange, ...] = ()
    directory: str | None = None
    facts: tuple[tuple[str, str], ...] = ()
    site: Site | None = None
