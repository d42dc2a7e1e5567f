"""Rows of Balsam's REST API, and records out of them. Pure; reads nothing.

Basis: Balsam 0.7.0a24 as run. Times are ISO text, of events, batch jobs, sessions and sites without a zone
(UTC), of jobs with one; the fraction is absent when it is zero. Unknown fields are ignored; what has another
type than it should costs its row.
"""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from sys import intern
from typing import Generic, TypeVar
from zlib import crc32

import msgspec

from jobtui.model.changes import Allocation, Site, StateChange
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.health import Skip
from jobtui.model.ids import numbered, system_job_id
from jobtui.model.jobs import Job, JobStatus
from jobtui.model.servers import named
from jobtui.model.state_runs import MESSAGE_CHARACTERS, RUNNING, error_of
from jobtui.model.words import counted

SYSTEM = "balsam"

STATUSES: Mapping[str, JobStatus] = {
    "CREATED": JobStatus.PENDING,
    "AWAITING_PARENTS": JobStatus.PENDING,
    "READY": JobStatus.PENDING,
    "STAGED_IN": JobStatus.PENDING,
    "PREPROCESSED": JobStatus.PENDING,
    "RESTART_READY": JobStatus.PENDING,
    "RUNNING": JobStatus.RUNNING,
    "RUN_DONE": JobStatus.RUNNING,
    "RUN_ERROR": JobStatus.RUNNING,
    "RUN_TIMEOUT": JobStatus.RUNNING,
    "POSTPROCESSED": JobStatus.RUNNING,
    "STAGED_OUT": JobStatus.RUNNING,
    "JOB_FINISHED": JobStatus.COMPLETED,
    "FAILED": JobStatus.FAILED,
}
"""What a job in each of Balsam's states is doing. States behind the run are its last part: not yet over."""

PASSED_CHARACTERS = 400
"""Kept of the names of states: more than all of them have."""

WAITS: Mapping[str, str] = {
    "CREATED": "the server",
    "READY": "its stage-in",
    "STAGED_IN": "the site's agent, to prepare it",
    "PREPROCESSED": "a launcher",
    "RESTART_READY": "a launcher, to run again",
}
"""What a job in each of these states waits for."""


class EventRow(msgspec.Struct, gc=False):
    """One row of the EventLog."""

    id: int
    job_id: int
    timestamp: str
    from_state: str
    to_state: str
    data: dict[str, object] | None = None


class JobRow(msgspec.Struct, gc=False):
    """One job, without its payloads."""

    id: int
    state: str
    app_id: int
    last_update: str
    workdir: str = ""
    tags: dict[str, str] = msgspec.field(default_factory=dict)
    batch_job_id: int | None = None
    parent_ids: list[int] = msgspec.field(default_factory=list)
    num_nodes: int = 1
    node_packing_count: int = 1
    wall_time_min: int = 0


class BatchJobRow(msgspec.Struct):
    """One allocation."""

    id: int
    site_id: int
    state: str
    num_nodes: int
    wall_time_min: int = 0
    scheduler_id: int | None = None
    project: str = ""
    queue: str = ""
    job_mode: str = ""
    filter_tags: dict[str, str] = msgspec.field(default_factory=dict)
    status_info: dict[str, object] | None = None
    start_time: str | None = None
    end_time: str | None = None


class SiteRow(msgspec.Struct):
    """One site."""

    id: int
    name: str
    path: str = ""
    last_refresh: str | None = None
    creation_date: str | None = None
    queued_jobs: dict[str, object] | None = None


class AppRow(msgspec.Struct):
    """One application: a kind of job at a site."""

    id: int
    site_id: int
    name: str


class SessionRow(msgspec.Struct):
    """A launcher, or a site's processing service when it has no allocation."""

    id: int
    site_id: int
    batch_job_id: int | None = None
    heartbeat: str | None = None


Row = TypeVar("Row")


class Page(msgspec.Struct, Generic[Row]):
    """A list as the API answers: how many match in all, and some of them."""

    count: int
    results: list[Row]


class _RawPage(msgspec.Struct):
    count: int
    results: list[msgspec.Raw]


class Decoded(msgspec.Struct, Generic[Row]):
    """A decoded list. `skips` are rows that made no sense; `received` counts these too."""

    count: int
    rows: list[Row]
    received: int
    skips: tuple[Skip, ...] = ()


def decode_page(kind: type[Row], body: bytes, where: str) -> Decoded[Row]:
    """A list's rows. Raises ValueError when the body is no list of the API at all."""
    try:
        page = msgspec.json.decode(body, type=Page[kind])  # type: ignore[valid-type]
        return Decoded(page.count, page.results, len(page.results))
    except msgspec.MsgspecError:
        return _decode_row_by_row(kind, body, where)


def _decode_row_by_row(kind: type[Row], body: bytes, where: str) -> Decoded[Row]:
    """The rows that make sense, when not all of them do."""
    try:
        page = msgspec.json.decode(body, type=_RawPage)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ValueError(str(error)) from error
    rows: list[Row] = []
    skips: list[Skip] = []
    for raw in page.results:
        try:
            rows.append(msgspec.json.decode(raw, type=kind))
        except (msgspec.MsgspecError, RecursionError) as error:
            skips.append(Skip(f"{where}{_id_in(raw)}", str(error)))
    return Decoded(page.count, rows, len(page.results), tuple(skips))


class _HasId(msgspec.Struct):
    id: int


def _id_in(raw: msgspec.Raw) -> str:
    """The id of a row that makes no sense, else what tells it from others."""
    try:
        return str(msgspec.json.decode(raw, type=_HasId).id)
    except (msgspec.MsgspecError, RecursionError):
        return f"row#{crc32(bytes(raw)):08x}"


def time_of(text: str | None) -> Nanos | None:
    """A time as the API writes it, in nanoseconds since the epoch; None for none or what is no time."""
    if not text:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    seconds = int(moment.replace(microsecond=0).timestamp())
    return Nanos(seconds * SECOND + moment.microsecond * 1_000)


def change_of(row: EventRow, source: str, system: str) -> StateChange | None:
    """An event as a change of state; None when its time is none."""
    at = time_of(row.timestamp)
    if at is None:
        return None
    return StateChange(
        row.id,
        system_job_id(system, row.job_id),
        at,
        row.from_state,
        row.to_state,
        source,
        _nodes(row.data),
        row.data or None,
    )


def _nodes(data: Mapping[str, object] | None) -> float | None:
    nodes = data.get("num_nodes") if data else None
    return float(nodes) if isinstance(nodes, int | float) and not isinstance(nodes, bool) else None


def number_of(job_id: str, system: str) -> int | None:
    """The number of a job of one server, whose ids begin with `system`; None for what is no such id."""
    parts = numbered(job_id)
    return int(parts.number) if parts is not None and named(parts.system, parts.label) == system else None


def nodes_of(row: JobRow) -> float:
    """What part of how many nodes a job takes while it runs."""
    return row.num_nodes / max(1, row.node_packing_count)


class Placed(msgspec.Struct, frozen=True):
    """What is known of a job beside its own row."""

    app: str = ""
    site: str = ""
    owner: str = ""
    alert: str | None = None
    allocation: str = ""


class Lifetime(msgspec.Struct):
    """What a job's events have told of its times. Events may come in any order, each once.

    `*_id` is the event that told it: of two the later learnt counts, whatever their clocks said.
    """

    queued_at: Nanos | None = None
    started_at: Nanos | None = None
    started_id: int = -1
    ended_at: Nanos | None = None
    ended_id: int = -1
    error: str | None = None
    error_id: int = -1
    runs: int = 0
    state: str = ""
    state_id: int = -1
    passed: str = ""

    @classmethod
    def of(cls, changes: Iterable[StateChange]) -> "Lifetime":
        """What all of these have told."""
        life = cls()
        for change in changes:
            life.take(change)
        return life

    def _pass(self, state: str) -> None:
        """Note a state as the last that was come into. Few ways are gone by many jobs, so they are shared."""
        earlier = " ".join(word for word in self.passed.split() if word != state)
        self.passed = intern(f"{earlier} {state}".strip()[-PASSED_CHARACTERS:])

    def take(self, change: StateChange) -> None:
        """Learn from one more event."""
        if change.id > self.state_id:
            self.state, self.state_id = change.after, change.id
            self._pass(change.after)
        if change.before == "CREATED":
            self.queued_at = change.at
        if change.after == RUNNING:
            self.runs += 1
            if change.id > self.started_id:
                self.started_at, self.started_id = change.at, change.id
        if not STATUSES.get(change.after, JobStatus.UNKNOWN).is_live and change.id > self.ended_id:
            self.ended_at, self.ended_id = change.at, change.id
        if change.id > self.error_id and (error := error_of(change)) is not None:
            self.error, self.error_id = error, change.id


def job_of(row: JobRow, life: Lifetime, placed: Placed, source: str, system: str) -> Job:
    """A job as all systems have it. Its times come from its events, as its row has the last one only."""
    status = STATUSES.get(row.state, JobStatus.UNKNOWN)
    updated = time_of(row.last_update)
    return Job(
        id=system_job_id(system, row.id),
        system=SYSTEM,
        status=status,
        native_status=row.state,
        source=source,
        owner=placed.owner,
        name=row.workdir or None,
        app=placed.app,
        queued_at=life.queued_at,
        started_at=life.started_at,
        updated_at=updated,
        ended_at=None if status.is_live else life.ended_at or updated,
        written_at=updated,
        runs=life.runs,
        message=_message(row, life),
        error=life.error if status is JobStatus.FAILED else None,
        alert=placed.alert,
        host=placed.site or None,
        tags=intern(" ".join(f"{name}:{value}".replace(" ", "_") for name, value in row.tags.items())),
        passed=life.passed,
        allocation=placed.allocation,
    )


def _message(row: JobRow, life: Lifetime) -> str | None:
    """What a live job waits for, in the words of its state."""
    if row.state == "AWAITING_PARENTS":
        return counted(len(row.parent_ids), "parent job")
    if row.state == "RESTART_READY" and life.error is not None:
        return "a launcher, to run again after an error"
    return WAITS.get(row.state)


def ids_of(row: BatchJobRow, label: str = "") -> str:
    """The ids by which an allocation is known: its own, the scheduler's, its own with the server's label."""
    known = [str(row.id)] if row.scheduler_id is None else [str(row.id), str(row.scheduler_id)]
    return " ".join([*known, f"{row.id}@{label}"] if label else known)


def allocation_of(
    row: BatchJobRow, source: str, sessions: Iterable[SessionRow] = (), first_sign: Nanos | None = None
) -> Allocation:
    """An allocation. One that runs has no start yet: `first_sign` is then taken, and said to be estimated."""
    own = [session for session in sessions if session.batch_job_id == row.id]
    beats = [at for session in own if (at := time_of(session.heartbeat)) is not None]
    start = time_of(row.start_time)
    info = row.status_info or {}
    return Allocation(
        id=row.id,
        source=source,
        site_id=row.site_id,
        state=row.state,
        nodes=row.num_nodes,
        scheduler_id=None if row.scheduler_id is None else str(row.scheduler_id),
        project=row.project,
        queue=row.queue,
        mode=row.job_mode,
        wall_time_s=row.wall_time_min * 60.0 or None,
        submitted_at=_submit_time(info.get("submit_time")),
        start_at=start if start is not None else first_sign,
        end_at=time_of(row.end_time),
        start_estimated=start is None and first_sign is not None,
        launchers=len(own),
        heartbeat_at=max(beats, default=None),
        tags=tuple(sorted(row.filter_tags.items())),
        note=str(info.get("error") or "")[:MESSAGE_CHARACTERS],
    )


def _submit_time(value: object) -> Nanos | None:
    """Text in UTC with a blank instead of the T."""
    return time_of(value.replace(" ", "T", 1)) if isinstance(value, str) else None


def site_of(row: SiteRow, source: str) -> Site:
    """A site; `seen_at` is when its agent last reported."""
    queued = len(row.queued_jobs) if row.queued_jobs else 0
    return Site(
        id=row.id,
        source=source,
        name=row.name,
        path=row.path,
        seen_at=time_of(row.last_refresh),
        queued=queued,
    )
