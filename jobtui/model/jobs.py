"""A job as every system has it, why it waits, and its earlier runs.

These records are `msgspec.Struct`, not dataclasses: a hundred thousand of them are live at once, and a
Struct takes a third of the time to make and, untracked by the garbage collector, no time to keep.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum

import msgspec
from msgspec.structs import replace

from jobtui.model.changes import Site, StateChange
from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.health import FailingPart
from jobtui.model.ids import JobId
from jobtui.model.tables import tables_of

MOST_REASONS = 12
"""Reasons of one job that are kept while it is watched, the newest of them."""
MOST_HOLDERS = 3
"""Jobs that are named of those ahead, or of those that hold what a job waits for; all are counted."""


class Category(StrEnum):
    """What kind of thing a job waits for. The words are stable; scripts depend on them."""

    PRIORITY = "priority"
    RESOURCES = "resources"
    NODES = "nodes"
    REQUEST = "request"
    DEPENDENCY = "dependency"
    HELD = "held"
    LIMIT = "limit"
    LICENSE = "license"
    RESERVATION = "reservation"
    BEGIN_TIME = "begin_time"
    PARTITION = "partition"
    ARRAY = "array"
    ALLOCATION = "allocation"
    SITE = "site"
    TRANSFER = "transfer"
    SLOT = "slot"
    AGENT = "agent"
    LOGIN = "login"
    MACHINE = "machine"
    RETRY = "retry"
    OTHER = "other"

    @property
    def is_for_nodes(self) -> bool:
        """Whether jobs that wait for this are before others, or after them."""
        return self in (Category.RESOURCES, Category.PRIORITY, Category.NODES)


class ReasonSeen(msgspec.Struct, frozen=True, gc=False):
    """What a pending job waited for from a time on, in its system's own words; "" once it ran."""

    job_id: JobId
    at: Nanos
    reason: str


class Blocker(msgspec.Struct, frozen=True, kw_only=True):
    """A job that holds what another waits for, or is ahead of it. `has` says what it holds, since `since`.

    It holds that for `held_s`, at most `limit_s`, usually `usual_s`.
    """

    job: str
    user: str = ""
    has: str = ""
    since: Nanos | None = None
    held_s: float | None = None
    limit_s: float | None = None
    usual_s: float | None = None


class NodeTally(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes that a job may run on, each counted once, under the first of these that applies.

    They are down, drained, reserved for others, lack a feature, lack a GRES, are too small, are full, or are
    free. `wanted` is how many the job asks for. `reasons` are those for which nodes are down or drained, each
    with the nodes; `features` and `gres` what is asked for.
    """

    total: int
    wanted: int = 1
    down: int = 0
    drained: int = 0
    reserved: int = 0
    no_feature: int = 0
    no_gres: int = 0
    too_small: int = 0
    full: int = 0
    free: int = 0
    reasons: tuple[tuple[str, str], ...] = ()
    features: str = ""
    gres: str = ""

    @property
    def up(self) -> int:
        return self.total - self.down - self.drained


class Limit(msgspec.Struct, frozen=True, kw_only=True):
    """A limit that a job runs into: whose it is, its name, of what, how much it allows, how much is taken."""

    of: str
    name: str
    what: str
    most: float
    used: float | None = None


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """Why a job waits.

    `reason` is its system's own word, `words` what it waits for in ours. `since` is when that reason was
    first seen, or since when it waits. `ahead` counts the jobs before it of the `of` that wait in `queue`,
    `next` are those right before it. `needs` are jobs or transfers that it needs, each with how that is.
    `eligible_at` is when it may begin at the soonest, `scheduler_estimate` when its scheduler means to start
    it. `is_stuck` says that a person has to do something. `asked` are the commands that were run for this
    alone, with what they cost; `unread` says why they gave nothing.
    """

    category: Category
    reason: str = ""
    words: str = ""
    since: Nanos | None = None
    queue: str = ""
    ahead: int | None = None
    of: int | None = None
    next: tuple[Blocker, ...] = ()
    nodes: NodeTally | None = None
    limit: Limit | None = None
    holders: tuple[Blocker, ...] = ()
    holder_count: int = 0
    needs: tuple[tuple[str, str], ...] = ()
    note: str = ""
    eligible_at: Nanos | None = None
    scheduler_estimate: Nanos | None = None
    is_stuck: bool = False
    history: tuple[tuple[Nanos, str], ...] = ()
    asked: tuple[str, ...] = ()
    unread: str = ""


class JobStatus(StrEnum):
    """The state of a job in words that are the same for every system; see `Job.native_status`."""

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
        return self in _LIVE


_LIVE = frozenset({JobStatus.PENDING, JobStatus.RUNNING})

NO_SESSION = "no launcher holds it"
"""What is wrong with a running job that belongs to no session."""
NOT_DONE = "failed: "
"""Begins the state of a file's transfer that failed; the reason follows."""


def statuses_of(system: str) -> dict[str, JobStatus]:
    """What a job is doing in each state of a system, in the words of that."""
    table = tables_of("jobtui.model", "states")[system].items()
    return {state: JobStatus(status) for status, states in table for state in states}


DELETED, BLOCKED = "deleted", "blocked"
"""States of a job that another one needs, besides its system's own: it no longer exists, or cannot start."""


SIREPO = "sirepo"
"""The one system in which the state of a live job is in the logs and not in the record."""
SLURM = "slurm"


class Job(msgspec.Struct, frozen=True, gc=False):
    """The present state of one job. Times are None if the system has not set them.

    Three fields are words separated by blanks: `tags`, `passed` (its former states in the system's own words,
    oldest first) and `allocation` (the ids of the scheduler's allocation in which it runs). `trace` is the id
    of its trace, "" if none is known. `reason` is the system's own word for why it is in its state, `exit`
    how its program ended, as `code:signal`. `nodes` is how many it asks for, 0 if not known. `needs` is what
    it waits for: pairs of a job's id and its state ("" if that is not known), or of a file's transfer and how
    that is. `others` are the records of further sources about the same id.

    Pass the fields by name. Only code that makes a hundred thousand at once passes them by position: a Struct
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
    nodes: int = 0
    needs: tuple[tuple[str, str], ...] = ()
    others: tuple["Job", ...] = ()

    @property
    def needs_logs(self) -> bool:
        """Whether the state of the live job is in the logs and not in the record."""
        return self.system == SIREPO

    @property
    def reason_words(self) -> str:
        """What it waits for by its record, "" if it does not wait."""
        if self.status is not JobStatus.PENDING:
            return ""
        message = self.message if self.needs_logs else None
        return self.reason or self.alert or message or self.native_status

    def elapsed_s(self, now: Nanos) -> float | None:
        """Seconds since the start, up to the end when there is one; None when it never started, or later."""
        began, ended = self.started_at, self.ended_at
        if began is None or (ended is not None and ended < began):
            return None
        return seconds_between(began, ended if ended is not None else now)

    def waited_s(self, now: Nanos) -> float | None:
        """Seconds from submission to start, to the end when it never started, or to now while pending."""
        if self.queued_at is None:
            return None
        until = self.started_at or self.ended_at
        return seconds_between(self.queued_at, until if until is not None else now)


def together(records: Iterable[Job]) -> Job:
    """One job from the records of several sources: the record written last, with the others in `others`."""
    newest, *others = sorted(records, key=lambda job: job.written_at or job.updated_at or 0, reverse=True)
    return replace(newest, others=tuple(replace(job, others=()) for job in others))


class Run(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One run of a job: the present one, or one of the record's history."""

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


NOT_READ = "not read"
"""The fact that says why the part of a record with the present state of a live job was not read."""


class JobDetail(msgspec.Struct, frozen=True, kw_only=True):
    """Everything stored about one job: its runs oldest first, other history entries, and the raw record.

    `history` is every entry of the record's history in order, also those that are not runs. `native` is the
    record as the system stores it, with unknown fields, not yet masked. `changes` are the changes of its
    state, if the system keeps them. `directory` is where its files are, perhaps on another machine, and
    `outputs` are the files there with its output and errors. `facts` are further fields by name. `site` is
    the site that it is for, `pending` why it waits, if its system was asked. `failing` are the parts of its
    source that could not be read for this.
    """

    job: Job
    runs: tuple[Run, ...] = ()
    history: tuple[Run, ...] = ()
    native: dict[str, object] = msgspec.field(default_factory=dict)
    path: str | None = None
    changes: tuple[StateChange, ...] = ()
    directory: str | None = None
    facts: tuple[tuple[str, str], ...] = ()
    outputs: tuple[str, ...] = ()
    site: Site | None = None
    pending: Pending | None = None
    failing: tuple[FailingPart, ...] = ()


def newest(details: Sequence[JobDetail]) -> JobDetail | None:
    if len(details) < 2:
        return next(iter(details), None)
    job = together(detail.job for detail in details)
    return replace(next(detail for detail in details if detail.job.source == job.source), job=job)


def status_since(job: Job) -> Nanos | None:
    if job.status not in _LIVE:
        return job.ended_at or job.updated_at or job.written_at
    is_begun = job.status is JobStatus.RUNNING and job.started_at is not None
    return job.started_at if is_begun else job.queued_at


def age_s(job: Job, now: Nanos) -> float | None:
    since = status_since(job)
    return None if since is None else seconds_between(since, now)


def first_seen(job: Job) -> Nanos | None:
    return job.queued_at or job.started_at or job.updated_at or job.written_at


def last_active(job: Job, now: Nanos) -> Nanos | None:
    return now if job.status.is_live else status_since(job)


def happened_at(job: Job) -> Nanos | None:
    """When a job failed by its record; for a live one when it was submitted."""
    if job.status.is_live:
        return job.queued_at or job.started_at or job.updated_at or job.written_at
    return job.ended_at or job.updated_at or job.started_at or job.queued_at or job.written_at


def is_within(job: Job, since: Nanos, until: Nanos) -> bool:
    """Whether a job is live or something happened to it between two times; False for quasi jobs."""
    if job.is_quasi:
        return False
    return job.status.is_live or ((at := happened_at(job)) is not None and since <= at <= until)
