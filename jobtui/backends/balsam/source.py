"""A Balsam server as a source: jobs, their changes of state, allocations and sites.

Never asks without a filter. Polls use one request at a time; requests of a person are made at the same time.
Each poll asks for the jobs that changed since the last, by the server's own clock, and, if there are some,
for the newest events. Events come late and out of order: so this goes back `OVERLAP_S` before the newest
event, and sometimes further, and a job in a state that no known event explains is asked about by its id.
Known events are dropped by id. If ids are used again for other events, everything is read again.
"""

import os
import posixpath
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TypeVar

import msgspec

from jobtui.backends.balsam import records
from jobtui.backends.balsam.client import BalsamClient, Parameters
from jobtui.backends.balsam.login import login_for, login_path, notice, user_of
from jobtui.backends.balsam.poll import OVERLAP_S, KnownRows, Questions, Step, clock, notes_of
from jobtui.backends.balsam.site_logs import LOGS
from jobtui.backends.base import WINDOW_S, Batch, PolledSource
from jobtui.model.changes import Allocation, ReportQuery, StateChange
from jobtui.model.clock import SECOND, Nanos, to_rfc3339
from jobtui.model.health import Skip, SourceError, SourceMissing, SourceUnreachable
from jobtui.model.ids import JobId, system_job_id
from jobtui.model.jobs import JobDetail
from jobtui.model.specs import ReadWindow, SourceSpec
from jobtui.model.state_runs import tag_word

PAYLOADS = ("serialized_parameters", "serialized_return_value", "serialized_exception")
"""Opaque and large: only the size is kept."""
EVENTS_OF_JOB = 10_000
"""Events of one job that are read."""
OUTPUT = "job.out"
"""What a job prints, in its working directory below the site's `data`."""
DATA = "data"


async def _record_of(client: BalsamClient, number: int) -> tuple[dict[str, object], records.JobRow] | None:
    """A job as it is stored, without its payloads, and as a row; None without one. Raises SourceError."""
    page = await client.rows("/jobs/", dict[str, object], {"id": number, "limit": 1})
    senseless = f"{client.name}/jobs/{number}: the record is not understood"
    native = next((row for row in page.rows if row.get("id") == number), None)
    if native is None and not page.received:
        return None
    if native is None:
        why = page.skips[0].why if page.skips else "it belongs to another job"
        raise SourceUnreachable(f"{senseless}: {why}")
    for name in PAYLOADS:
        if payload := native.get(name):
            native[name] = f"({len(payload) if isinstance(payload, str) else 0} characters)"
    try:
        return native, msgspec.convert(native, records.JobRow)
    except (ValueError, RecursionError) as error:
        raise SourceUnreachable(f"{senseless}: {error}") from error


async def fetch_detail(client: BalsamClient, number: int, owner: str) -> JobDetail | None:
    """Everything stored about a job, None if there is no job of this number. Raises SourceError."""
    if (found := await _record_of(client, number)) is None:
        return None
    native, row = found
    asked: Parameters = {"job_id": number, "ordering": "timestamp", "limit": EVENTS_OF_JOB}
    events = (await client.rows("/events/", records.EventRow, asked)).rows
    app = await _one(client, "/apps/", records.AppRow, row.app_id)
    site = await _one(client, "/sites/", records.SiteRow, app.site_id) if app is not None else None
    batch_job = await _one(client, "/batch-jobs/", records.BatchJobRow, row.batch_job_id)
    known = KnownRows(client.name, owner, client.system)
    known.apps = {app.id: app} if app is not None else {}
    known.sites = {site.id: site} if site is not None else {}
    known.allocations = (
        {batch_job.id: records.ids_of(batch_job, client.label)} if batch_job is not None else {}
    )
    changes = records.changes_in(
        records.DecodedList(len(events), events, len(events)), client.name, client.system
    ).rows
    for change in changes:
        known.take_change(change)
    job = known.job(row)
    runs = records.runs_of(changes, job)
    beside: dict[str, object] = {
        "app": app.name if app is not None else None,
        "site": msgspec.to_builtins(site),
        "batch_job": msgspec.to_builtins(batch_job),
        "events": [msgspec.to_builtins(event) for event in sorted(events, key=lambda event: event.id)],
    }
    directory = directory_of(row, site)
    return JobDetail(
        job=job,
        runs=runs,
        history=runs,
        native=native | beside,
        changes=tuple(changes),
        path=f"{client.name}/jobs/{row.id}",
        directory=directory,
        outputs=(posixpath.join(directory, OUTPUT),) if directory is not None else (),
        facts=tuple(_facts(client.system, row, site, batch_job)),
        site=records.site_of(site, client.name) if site is not None else None,
    )


def directory_of(row: records.JobRow, site: records.SiteRow | None) -> str | None:
    """Where a job works, at its site: `<site>/data/<workdir>`; None when a name leads elsewhere."""
    if site is None or not posixpath.isabs(site.path) or not row.workdir:
        return None
    parts = (*site.path.split("/"), *row.workdir.split("/"))
    if ".." in parts or "\0" in site.path + row.workdir or row.workdir.startswith("/"):
        return None
    return posixpath.join(site.path, DATA, row.workdir)


def _facts(
    system: str, row: records.JobRow, site: records.SiteRow | None, batch_job: records.BatchJobRow | None
) -> Iterator[tuple[str, str]]:
    if row.tags:
        yield "tags", " ".join(tag_word(name, value) for name, value in sorted(row.tags.items()))
    if row.parent_ids:
        yield "parents", " ".join(system_job_id(system, parent) for parent in row.parent_ids)
    per_node = f", {row.node_packing_count} jobs on a node" if row.node_packing_count > 1 else ""
    yield "nodes", f"{row.num_nodes}{per_node}"
    if row.wall_time_min:
        yield "wall time", f"{row.wall_time_min} min"
    if batch_job is not None:
        scheduler = f", {batch_job.scheduler_id} in {batch_job.queue}" if batch_job.scheduler_id else ""
        yield "batch job", f"{batch_job.id} ({batch_job.state}{scheduler})"
    if site is not None and posixpath.isabs(site.path):
        yield "site logs", posixpath.join(site.path, LOGS)


_Row = TypeVar("_Row", records.AppRow, records.SiteRow, records.BatchJobRow)


async def _one(client: BalsamClient, path: str, kind: type[_Row], number: int | None) -> _Row | None:
    if number is None:
        return None
    rows = (await client.rows(path, kind, {"id": number, "limit": 1})).rows
    return next((row for row in rows if row.id == number), None)


PAGE_EVENTS = 20_000
MOST_EVENTS = 2_000_000
"""The most events from which a report is made."""
IDS_AT_ONCE = 500


async def fetch_changes(
    client: BalsamClient, query: ReportQuery, *, exact: bool = False, to_state: str | None = None
) -> tuple[list[StateChange], tuple[Skip, ...]]:
    """The changes that a query asks for, as the server has them, and skipped rows. Raises SourceError.

    With `exact` it asks as Balsam's own client does, where a scheduler's id selects nothing. Else that id is
    resolved first, and events before the window are read, too, as runs in it may have begun before. With
    `to_state` only changes to this state are given.
    """
    asked = _asked_by(query, client.system, exact=exact)
    if query.batch_job is None and query.scheduler_id is not None and not exact:
        named: Parameters = {"scheduler_id": query.scheduler_id, "limit": 1}
        batch_jobs = (await client.rows("/batch-jobs/", records.BatchJobRow, named)).rows
        if not batch_jobs:
            raise SourceMissing(f"{client.name}: no batch job has the scheduler id {query.scheduler_id}")
        asked["batch_job_id"] = batch_jobs[0].id
    if query.jobs and not asked["job_id"]:
        return [], ()  # those are jobs of another system
    if to_state is not None:
        asked["to_state"] = to_state
    found: dict[int, StateChange] = {}
    skips: list[Skip] = []
    async for page in client.pages("/events/", records.EventRow, asked, PAGE_EVENTS):
        changes = records.changes_in(page, client.name, client.system)
        skips += changes.skips
        found.update((change.id, change) for change in changes.rows)
        if len(found) >= min(page.count, MOST_EVENTS):
            break
    return sorted(found.values(), key=lambda change: change.id), tuple(skips)


def _asked_by(
    query: ReportQuery, system: str, *, exact: bool
) -> dict[str, str | int | list[str] | list[int]]:
    asked: dict[str, str | int | list[str] | list[int]] = {"ordering": "timestamp"}
    if query.jobs:
        asked["job_id"] = [
            number for job in query.jobs if (number := records.number_of(job, system)) is not None
        ]
    if query.batch_job is not None:
        asked["batch_job_id"] = query.batch_job
    elif query.scheduler_id is not None and exact:
        asked["scheduler_id"] = query.scheduler_id
    if query.tags:
        asked["tags"] = [f"{name}:{value}" for name, value in query.tags]
    if query.until is not None:
        asked["timestamp_before"] = to_rfc3339(query.until)
    if query.since is not None:
        asked["timestamp_after"] = to_rfc3339(query.since if exact else _before(query.since, RUN_S))
    return asked


RUN_S = 24 * 3600
"""How long before the window a run in it may have begun."""


async def fetch_allocations(
    client: BalsamClient, query: ReportQuery
) -> tuple[list[Allocation], tuple[Skip, ...]]:
    """The allocations that a query asks for, and skipped rows. Raises SourceError."""
    sessions = await client.rows("/sessions/", records.SessionRow, {})
    asked: Parameters = {} if query.scheduler_id is None else {"scheduler_id": query.scheduler_id}
    found: list[Allocation] = []
    skips = list(sessions.skips)
    async for page in client.pages("/batch-jobs/", records.BatchJobRow, asked):
        skips += page.skips
        for row in page.rows:
            sign = await _first_sign(client, row)
            found.append(records.allocation_of(row, client.name, sessions.rows, sign))
    wanted = set(query.tags)
    allocations = [
        one
        for one in found
        if wanted <= set(one.tags)
        and query.batch_job in (None, str(one.id))
        and query.allocation_state in (None, one.state)
    ]
    return allocations, tuple(skips)


async def _first_sign(client: BalsamClient, row: records.BatchJobRow) -> Nanos | None:
    """When the first job began to run in a running allocation: this has no start before its end."""
    if not records.is_estimated(row):
        return None
    asked: Parameters = {"batch_job_id": row.id, "to_state": "RUNNING", "ordering": "timestamp"}
    last: dict[int, records.EventRow] = {}  # earlier runs of these jobs were in other allocations
    async for page in client.pages("/events/", records.EventRow, asked, PAGE_EVENTS):
        for event in page.rows:
            if event.job_id not in last or last[event.job_id].id < event.id:
                last[event.job_id] = event
    times = [at for event in last.values() if (at := records.time_of(event.timestamp)) is not None]
    submitted = records.submitted_at(row)
    return min((at for at in times if submitted is None or at >= submitted), default=None)


async def fetch_nodes(client: BalsamClient, jobs: set[JobId]) -> dict[JobId, float]:
    """How many nodes these jobs use, from their records. Raises SourceError."""
    numbers = [job.rpartition("/")[2] for job in jobs]
    found: dict[JobId, float] = {}
    for begin in range(0, len(numbers), IDS_AT_ONCE):
        asked: Parameters = {"id": numbers[begin : begin + IDS_AT_ONCE], "limit": IDS_AT_ONCE}
        page = await client.rows("/jobs/", records.JobRow, asked)
        found.update((system_job_id(client.system, row.id), records.nodes_of(row)) for row in page.rows)
    return found


RESYNC_S = 3600
"""How far back older events are read from time to time."""
COMMIT_S = 5
"""How long after its noted time a change may become visible."""
FRAME_EVERY, DELETED_EVERY, RESYNC_EVERY = 8, 30, 150
"""After how many polls allocations, sites and launchers, deleted jobs, and late events are asked for."""
EXACT_S = 2.0
"""The least difference of clocks that counts: the server's answers have whole seconds."""
FRAME_S = 30
"""How often allocations, sites and launchers are asked for."""


class Balsam(PolledSource):
    """One server. `owner` is the user of its jobs: a token shows only those of its user.

    `notice` is the note about the login.
    """

    kind = "balsam"

    def __init__(
        self,
        client: BalsamClient,
        *,
        owner: str = "",
        since: Nanos | None = None,
        notice: Callable[[Nanos], str | None] = lambda now: None,
    ) -> None:
        super().__init__(client.name, client)
        self.client = client
        self._owner = owner
        self._since = since
        self._notice = notice
        self._back_at: Nanos | None = None
        self._reset()

    def _reset(self) -> None:
        now = self.clock.now()
        since = self._since if self._since is not None else Nanos(now - WINDOW_S * SECOND)
        self._questions = Questions(self.client, self._owner, since, self.clock)
        self._polls = 0

    async def read(self, *, begins: bool) -> Batch:
        """What is new; the first polls read the window, a page each. Raises SourceError."""
        if begins:
            self._reset()
        due = self._questions.due
        if not due:
            self._polls += 1
            due.extend(self._next_steps())
        batch = await self._questions.ask()
        if self._questions.begin_again_if_back():
            self._back_at = self.clock.now()
        ahead_s = self.client.ahead_s if abs(self.client.ahead_s) >= EXACT_S else 0.0
        return msgspec.structs.replace(batch, more=bool(due), note=self._note(), ahead_s=ahead_s)

    def _next_steps(self) -> list[Step]:
        questions = self._questions
        questions.note_clock()
        steps = [questions.jobs(_before(questions.updated, COMMIT_S))]
        if self.clock.now() - questions.frame_now.at > FRAME_S * SECOND:
            steps.insert(0, questions.frame)  # so that nothing is judged by old heartbeats
        if self._polls % FRAME_EVERY == 0:
            steps += [questions.frame, questions.events(_before(questions.newest, OVERLAP_S))]
        if self._polls % DELETED_EVERY == 0:
            steps.append(questions.deleted_jobs())
        if self._polls % RESYNC_EVERY == 0:
            steps += [questions.live_jobs(), questions.events(_before(questions.newest, RESYNC_S))]
        return steps

    def _note(self) -> str:
        notes = [self._notice(self.clock.now())]
        notes += notes_of(self._questions.frame_now, self.client.ahead_s)
        if self._polls == 0 and self._questions.due:
            notes.append("being read for the first time")
        if self._back_at is not None:
            seen = f"seen at {clock(self._back_at)}"
            notes.append(f"event ids went back, {seen}: another server, or a backup; all was read again")
        return "; ".join(filter(None, notes))

    async def detail(self, job_id: JobId) -> JobDetail | None:
        number = records.number_of(job_id, self.client.system)
        return None if number is None else await fetch_detail(self.client, number, self._owner)


def _before(at: Nanos, seconds: int) -> Nanos:
    return Nanos(at - seconds * SECOND)


def open_source(spec: SourceSpec, window: ReadWindow) -> Balsam:
    """The source. Its login is read again for each request, as it may be renewed meanwhile."""
    path = login_path(os.environ, os.path.expanduser("~"))
    client = BalsamClient(spec.target, lambda: login_for(spec.target, path).token, label=spec.label)
    owner = ""
    with suppress(SourceError):  # the first poll says what is wrong
        owner = user_of(login_for(spec.target, path))

    def notice_at(now: Nanos) -> str | None:
        with suppress(SourceError):  # the poll says what is wrong
            return notice(login_for(spec.target, path), now)
        return None

    return Balsam(client, owner=owner, since=window.since, notice=notice_at)
