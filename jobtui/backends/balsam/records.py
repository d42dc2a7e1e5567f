"""Rows of Balsam's REST API, and records out of them. Pure; reads nothing.

Basis: Balsam 0.7.0a24 as run. Times are ISO text, of events, batch jobs, sessions and sites without a zone
(UTC), of jobs with one; the fraction is absent if it is zero. A row with a field of a wrong type is skipped.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from sys import intern
from typing import Annotated, Generic, TypeVar
from zlib import crc32

import msgspec

from jobtui.formats.json_values import mended
from jobtui.model.changes import RUNNING as RUNNING_ALLOCATION
from jobtui.model.changes import Allocation, Site, StateChange
from jobtui.model.clock import Nanos, time_of_iso
from jobtui.model.health import Skip, rows_of
from jobtui.model.ids import named, numbered, system_job_id
from jobtui.model.jobs import NOT_DONE, JobStatus, Run, statuses_of
from jobtui.model.numbers import real_of, whole
from jobtui.model.state_runs import MESSAGE_CHARACTERS, RUNNING, by_run, error_of
from jobtui.model.tables import tables_of

SYSTEM = "balsam"

STATUSES = statuses_of(SYSTEM)

FAULTS = frozenset({"RUN_ERROR", "FAILED"})
PASSED_CHARACTERS = 400
"""Characters of the names of passed states that are kept: more than all names together have."""

WAITS: Mapping[str, str] = tables_of("jobtui.model", "states")["waits"]
"""What a job in each of these states waits for."""

Id = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
"""The ranges of the server's database: a row with a number outside of them is skipped."""
MOST_NODES = 10**6
"""An event that claims more nodes than this is not believed."""


class EventRow(msgspec.Struct, gc=False):
    id: Id
    job_id: Id
    timestamp: str
    from_state: str
    to_state: str
    data: dict[str, object] | None = None


class JobRow(msgspec.Struct, gc=False):
    """One job, without its payloads."""

    id: Id
    state: str
    app_id: Id
    last_update: str
    workdir: str = ""
    tags: dict[str, str] = msgspec.field(default_factory=dict)
    batch_job_id: Id | None = None
    session_id: Id | msgspec.UnsetType | None = msgspec.UNSET
    parent_ids: list[Id] = msgspec.field(default_factory=list)
    num_nodes: Count = 1
    node_packing_count: Count = 1
    wall_time_min: Count = 0


class BatchJobRow(msgspec.Struct):
    id: Id
    site_id: Id
    state: str
    num_nodes: Count
    wall_time_min: Count = 0
    scheduler_id: Id | None = None
    project: str = ""
    queue: str = ""
    job_mode: str = ""
    filter_tags: dict[str, str] = msgspec.field(default_factory=dict)
    status_info: dict[str, object] | None = None
    start_time: str | None = None
    end_time: str | None = None


class SiteRow(msgspec.Struct):
    id: Id
    name: str
    path: str = ""
    last_refresh: str | None = None
    creation_date: str | None = None
    queued_jobs: dict[str, object] | None = None


class AppRow(msgspec.Struct):
    """One application: a kind of job at a site."""

    id: Id
    site_id: Id
    name: str


class SessionRow(msgspec.Struct):
    """A launcher, or a site's processing service when it has no allocation."""

    id: Id
    site_id: Id
    batch_job_id: Id | None = None
    heartbeat: str | None = None


class TransferRow(msgspec.Struct):
    """A file that must be brought to a job, or away from it."""

    id: Id
    job_id: Id
    direction: str
    state: str
    local_path: str = ""
    transfer_info: dict[str, object] | None = None


def transfer_of(row: TransferRow) -> tuple[str, str]:
    """A file of a job and its state, with its last error."""
    what = f"the {'stage-in' if row.direction == 'in' else 'stage-out'} of {row.local_path or 'a file'}"
    error = str((row.transfer_info or {}).get("error") or "")[:MESSAGE_CHARACTERS]
    if row.state == "error":
        return what, f"{NOT_DONE}{error or 'no reason is given'}"
    return what, f"{row.state}, last error: {error}" if error else row.state


Row = TypeVar("Row")


class ListPage(msgspec.Struct, Generic[Row]):
    """A list as the API answers: how many match in all, and some of them."""

    count: int
    results: list[Row]


class DecodedList(msgspec.Struct, Generic[Row]):
    """A decoded list. `skips` are rows that made no sense; `received` counts these too."""

    count: int
    rows: list[Row]
    received: int
    skips: tuple[Skip, ...] = ()


def decode_page(kind: type[Row], body: bytes, where: str) -> DecodedList[Row]:
    """A list's rows. Raises ValueError if the body is not a list of the API."""
    try:
        page = msgspec.json.decode(body, type=ListPage[kind])  # type: ignore[valid-type]
        return DecodedList(page.count, page.results, len(page.results))
    except (ValueError, RecursionError):
        pass  # row by row: a row that makes no sense loses only itself
    skips: list[Skip] = []

    def skip(raw: msgspec.Raw, why: str) -> None:
        try:
            name = str(msgspec.json.decode(raw, type=_HasId).id)
        except (ValueError, RecursionError):
            name = f"row#{crc32(bytes(raw)):08x}"
        skips.append(Skip(f"{where}{name}", why))

    try:
        raw_page = msgspec.json.decode(mended(body), type=ListPage[msgspec.Raw])
    except RecursionError as error:
        raise ValueError(str(error)) from error
    make = partial(msgspec.json.decode, type=kind)
    rows = list(rows_of(raw_page.results, make, skip, (ValueError, RecursionError)))
    return DecodedList(raw_page.count, rows, len(raw_page.results), tuple(skips))


class _HasId(msgspec.Struct):
    id: int


def time_of(text: str | None) -> Nanos | None:
    """A time as the API writes it, in nanoseconds since the epoch; None if there is none or it is invalid."""
    return time_of_iso(text) if text else None


def changes_in(page: DecodedList[EventRow], source: str, system: str) -> "DecodedList[StateChange]":
    """A page of events as changes of state; an event without a valid time is skipped."""
    skips = list(page.skips)
    changes = rows_of(
        page.rows,
        lambda row: change_of(row, source, system),
        lambda row, why: skips.append(Skip(f"{source}/events/{row.id}", why)),
        ValueError,
    )
    return DecodedList(page.count, list(changes), page.received, tuple(skips))


def change_of(row: EventRow, source: str, system: str) -> StateChange:
    """An event as a change of state. Raises ValueError if its time is not valid."""
    at = time_of(row.timestamp)
    if at is None:
        raise ValueError(f'"{row.timestamp}" is not a time')
    nodes = real_of(row.data.get("num_nodes")) if row.data else None
    if nodes is not None and not 0 <= nodes <= MOST_NODES:
        nodes = None
    job_id, data = system_job_id(system, row.job_id), row.data or None
    return StateChange(row.id, job_id, at, row.from_state, row.to_state, source, nodes, data)


def number_of(job_id: str, system: str) -> int | None:
    """The number of a job of one server, whose ids begin with `system`; None for any other id."""
    parts = numbered(job_id)
    return whole(parts.number) if parts is not None and named(parts.system, parts.label) == system else None


Needs = tuple[tuple[str, str], ...]
"""The things a job waits for, each with its state."""


class Lifetime(msgspec.Struct):
    """What a job's events say about its times. Events may come in any order, each once.

    `*_id` is the event that gave it: of two events the one with the later id counts, whatever their times.
    """

    queued_at: Nanos | None = None
    started_at: Nanos | None = None
    started_id: int = -1
    ended_at: Nanos | None = None
    ended_id: int = -1
    error: str | None = None
    error_id: int = -1
    over_id: int = -1
    """The newest event that makes an earlier error irrelevant for the job's state."""
    runs: int = 0
    state: str = ""
    state_id: int = -1
    passed: str = ""

    def take(self, change: StateChange) -> None:
        if change.id > self.state_id:
            self.state, self.state_id = change.after, change.id
            earlier = " ".join(word for word in self.passed.split() if word != change.after)
            # Many jobs pass the same states, and share one text
            self.passed = intern(f"{earlier} {change.after}".strip()[-PASSED_CHARACTERS:])
        if change.before == "CREATED":
            self.queued_at = change.at
        if change.after == RUNNING:
            self.runs += 1
            if change.id > self.started_id:
                self.started_at, self.started_id = change.at, change.id
        if not STATUSES.get(change.after, JobStatus.UNKNOWN).is_live and change.id > self.ended_id:
            self.ended_at, self.ended_id = change.at, change.id
        if change.after not in FAULTS:
            self.over_id = max(self.over_id, change.id)
        if change.id > self.error_id and (error := error_of(change)) is not None:
            self.error, self.error_id = error, change.id


def ids_of(row: BatchJobRow, label: str = "") -> str:
    """The ids by which an allocation is known: its own, the scheduler's, its own with the server's label."""
    known = [str(row.id)] if row.scheduler_id is None else [str(row.id), str(row.scheduler_id)]
    return " ".join([*known, f"{row.id}@{label}"] if label else known)


def is_estimated(row: BatchJobRow) -> bool:
    """Whether an allocation runs and has no start yet: the server gets the start only after the end."""
    return row.state == RUNNING_ALLOCATION and row.start_time is None


def allocation_of(
    row: BatchJobRow, source: str, sessions: Iterable[SessionRow] = (), first_sign: Nanos | None = None
) -> Allocation:
    """An allocation. One that runs has no start yet: `first_sign` is then taken, and said to be estimated."""
    own = [session for session in sessions if session.batch_job_id == row.id]
    beats = [at for session in own if (at := time_of(session.heartbeat)) is not None]
    start = time_of(row.start_time)
    info = row.status_info or {}
    submitted = submitted_at(row)
    if first_sign is not None and submitted is not None and first_sign < submitted:
        first_sign = None  # it was of another allocation
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
        submitted_at=submitted,
        start_at=start if start is not None else first_sign,
        end_at=time_of(row.end_time),
        start_estimated=start is None and first_sign is not None,
        launchers=len(own),
        heartbeat_at=max(beats, default=None),
        tags=tuple(sorted(row.filter_tags.items())),
        note=str(info.get("error") or "")[:MESSAGE_CHARACTERS],
    )


def submitted_at(row: BatchJobRow) -> Nanos | None:
    """When an allocation was requested: text in UTC with a blank instead of the T."""
    value = (row.status_info or {}).get("submit_time")
    return time_of(value.replace(" ", "T", 1)) if isinstance(value, str) else None


def site_of(row: SiteRow, source: str) -> Site:
    """A site; `seen_at` is when its agent last reported."""
    seen_at, queued = time_of(row.last_refresh), len(row.queued_jobs or ())
    return Site(id=row.id, source=source, name=row.name, path=row.path, seen_at=seen_at, queued=queued)


ENDS: Mapping[str, JobStatus] = {
    "RUN_DONE": JobStatus.COMPLETED,
    "RUN_ERROR": JobStatus.FAILED,
    "RUN_TIMEOUT": JobStatus.CANCELED,
    "FAILED": JobStatus.FAILED,
    "JOB_FINISHED": JobStatus.COMPLETED,
}
"""How a run ended, by the state after it."""


def runs_of(changes: Iterable[StateChange]) -> tuple[Run, ...]:
    """Every run, oldest first; the last may not have begun."""
    return tuple(_run(number, run) for number, run in enumerate(by_run(changes), 1))


def _run(number: int, own: Sequence[StateChange]) -> Run:
    start = next((change for change in own if change.after == RUNNING), None)
    left = next((change for change in own if change.before == RUNNING or change.after in ENDS), None)
    errors = [text for change in own if (text := error_of(change)) is not None]
    last, message = own[-1], None
    status = STATUSES.get(last.after, JobStatus.UNKNOWN)
    if left is not None:
        said = (left.detail or {}).get("message")
        message = said if isinstance(said, str) and said else None
        status = ENDS.get(left.after, JobStatus.UNKNOWN)
    return Run(
        number=number,
        status=status,
        native_status=last.after if left is None else left.after,
        queued_at=own[0].at,
        started_at=None if start is None else start.at,
        ended_at=None if left is None else left.at,
        updated_at=last.at,
        error=errors[-1] if errors else None,
        message=message,
    )
