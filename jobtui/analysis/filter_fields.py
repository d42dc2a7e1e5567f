"""The fields a filter may name, and the words their values may be. Data; the tests are made elsewhere."""

from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import NamedTuple

import msgspec

from jobtui.analysis.flags import LATE, Flag
from jobtui.analysis.job_times import age_s, first_seen, last_active
from jobtui.model.clock import Nanos
from jobtui.model.jobs import Job, JobStatus
from jobtui.model.slurm import SYSTEM as SLURM

Look = Callable[[Job], str | None]


def _own_host(job: Job) -> str | None:
    return job.host


def _own_driver(job: Job) -> str | None:
    return job.driver


def _partition(job: Job, now: Nanos, context: "FilterContext") -> str | None:
    return job.app if job.system == SLURM else None


def _never(job: Job) -> bool:
    return False


class FilterContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a filter needs beside the job: host and driver as the logs tell, and the zone of written times.

    `is_disputed` tells whether sources disagree about the job, `is_late` whether it takes longer than usual.
    """

    host_of: Look = _own_host
    driver_of: Look = _own_driver
    offset_s: int = 0
    is_disputed: Callable[[Job], bool] = _never
    is_late: Callable[[Job], bool] = _never


RECORD_ONLY = FilterContext()
"""Takes host and driver from the record, and times as UTC."""


class Kind(Enum):
    """What the values of a field are."""

    TEXT = auto()
    WORDS = auto()
    NUMBER = auto()
    DURATION = auto()
    TIME = auto()
    STATUS = auto()
    FLAG = auto()
    YES_NO = auto()


class Field(NamedTuple):
    """One field: its names, what it is, where a job has it, and what `:` means where that is not equality."""

    names: tuple[str, ...]
    kind: Kind
    about: str
    get: Callable[[Job, Nanos, FilterContext], object] = lambda j, n, c: None
    colon: str = "="

    @property
    def name(self) -> str:
        """The name under which it is documented."""
        return self.names[0]


FIELDS: tuple[Field, ...] = (
    Field(
        ("status", "state"), Kind.STATUS, "pending, running, completed, failed, ...", lambda j, n, c: j.status
    ),
    Field(("native",), Kind.TEXT, "the system's own word for the status", lambda j, n, c: j.native_status),
    Field(("id", "jid"), Kind.TEXT, "id of the job", lambda j, n, c: j.id),
    Field(("user", "owner", "uid"), Kind.TEXT, "whose job it is", lambda j, n, c: j.owner),
    Field(("name",), Kind.TEXT, "name given by the user", lambda j, n, c: j.name),
    Field(("app",), Kind.TEXT, "application", lambda j, n, c: j.app),
    Field(("model",), Kind.TEXT, "what of the application is computed", lambda j, n, c: j.model),
    Field(("mode",), Kind.TEXT, "sequential, parallel, sbatch", lambda j, n, c: j.mode),
    Field(("host",), Kind.TEXT, "where it runs", lambda j, n, c: c.host_of(j)),
    Field(("driver",), Kind.TEXT, "what starts its agent", lambda j, n, c: c.driver_of(j)),
    Field(("system",), Kind.TEXT, "the system it belongs to", lambda j, n, c: j.system),
    Field(("source",), Kind.TEXT, "the source it was read from", lambda j, n, c: j.source),
    Field(("plan",), Kind.TEXT, "the user's plan", lambda j, n, c: j.plan),
    Field(("error",), Kind.TEXT, "why it failed", lambda j, n, c: j.error),
    Field(("reason",), Kind.TEXT, "the system's own word for why", lambda j, n, c: j.reason),
    Field(("exit",), Kind.TEXT, "how its program ended, CODE:SIGNAL", lambda j, n, c: j.exit),
    Field(("partition", "queue"), Kind.TEXT, "partition of Slurm", _partition),
    Field(("message",), Kind.TEXT, "what it says it waits for", lambda j, n, c: j.message),
    Field(("alert",), Kind.TEXT, "warning to its user", lambda j, n, c: j.alert),
    Field(("tag", "tags"), Kind.WORDS, "a tag it has, KEY:VALUE or KEY", lambda j, n, c: j.tags),
    Field(("batch", "scheduler"), Kind.WORDS, "id of its allocation", lambda j, n, c: j.allocation),
    Field(("to", "passed"), Kind.WORDS, "a state it came into", lambda j, n, c: j.passed),
    Field(("from", "left"), Kind.WORDS, "a state it left", lambda j, n, c: j.passed.rpartition(" ")[0]),
    Field(("age",), Kind.DURATION, "time in its present state", lambda j, n, c: age_s(j, n), "<="),
    Field(("dur", "elapsed"), Kind.DURATION, "how long it runs or ran", lambda j, n, c: j.elapsed_s(n), ">="),
    Field(("wait", "waited"), Kind.DURATION, "how long it waited", lambda j, n, c: j.waited_s(n), ">="),
    Field(("percent", "%"), Kind.NUMBER, "how much is done", lambda j, n, c: j.percent),
    Field(("runs",), Kind.NUMBER, "how often it was run", lambda j, n, c: j.runs),
    Field(("frames",), Kind.NUMBER, "frames written", lambda j, n, c: j.frames),
    Field(("queued",), Kind.TIME, "when it was submitted", lambda j, n, c: j.queued_at),
    Field(("started",), Kind.TIME, "when it started", lambda j, n, c: j.started_at),
    Field(("ended",), Kind.TIME, "when it ended", lambda j, n, c: j.ended_at),
    Field(("updated",), Kind.TIME, "its last news", lambda j, n, c: j.updated_at),
    Field(("since",), Kind.TIME, "active then or later", lambda j, n, c: last_active(j, n), ">="),
    Field(("until",), Kind.TIME, "there then or before", lambda j, n, c: first_seen(j), "<="),
    Field(("flag", "is"), Kind.FLAG, "what should be seen: stuck, over_limit, alert, contradiction, ..."),
    Field(("quasi",), Kind.YES_NO, "records that are no simulations", lambda j, n, c: j.is_quasi),
)
FIELD_BY_NAME: Mapping[str, Field] = {name: field for field in FIELDS for name in field.names}

STATUS_WORDS: Mapping[str, frozenset[JobStatus]] = {
    **{status.value: frozenset({status}) for status in JobStatus},
    "queued": frozenset({JobStatus.PENDING}),
    "waiting": frozenset({JobStatus.PENDING}),
    "done": frozenset({JobStatus.COMPLETED}),
    "ok": frozenset({JobStatus.COMPLETED}),
    "error": frozenset({JobStatus.FAILED}),
    "cancelled": frozenset({JobStatus.CANCELED}),
    "job_run_purged": frozenset({JobStatus.PURGED}),
    "live": frozenset(status for status in JobStatus if status.is_live),
    "final": frozenset(status for status in JobStatus if not status.is_live),
}
STUCK = "stuck"
"""The flag word for jobs that need a person."""
ANY_FLAG = "any"
DISPUTED = "contradiction"
"""The flag word for jobs about which sources disagree."""
FLAG_WORDS: Mapping[str, str] = {word: word for word in (STUCK, ANY_FLAG, DISPUTED, LATE)} | {
    flag.value: flag.value for flag in Flag
}
YES_NO_WORDS: Mapping[str, bool] = {"yes": True, "true": True, "no": False, "false": False}

VALUE_WORDS: Mapping[Kind, tuple[str, ...]] = {
    Kind.STATUS: tuple(STATUS_WORDS),
    Kind.FLAG: tuple(FLAG_WORDS),
    Kind.YES_NO: tuple(YES_NO_WORDS),
}
"""The words that the values of a kind may be, for completion."""
