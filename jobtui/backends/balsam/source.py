"""A Balsam server as a source: jobs, their changes of state, allocations and sites.

Never asks without a filter. Polls use one request at a time; requests of a person are made at the same time.
Each poll asks for the jobs that changed since the last, by the server's own clock, and, if there are some,
for the newest events. Events come late and out of order: so this goes back `OVERLAP_S` before the newest
event, and sometimes further, and a job in a state that no known event explains is asked about by its id.
Known events are dropped by id. If ids are used again for other events, everything is read again.
"""

import os
import posixpath
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from jobtui.backends.balsam import records
from jobtui.backends.balsam.client import BalsamClient, Parameters
from jobtui.backends.balsam.login import Login, login_for, login_path, notice, user_of
from jobtui.backends.balsam.poll import IDS_AT_ONCE, Questions
from jobtui.backends.balsam.site_logs import LOGS
from jobtui.backends.base import WINDOW_S, Batch, PolledSource
from jobtui.model.changes import Allocation, ReportQuery, StateChange, tag_word
from jobtui.model.clock import SECOND, Nanos, to_rfc3339
from jobtui.model.health import FailingPart, Skip, SourceError, SourceMissing, SourceUnreachable
from jobtui.model.ids import JobId, system_job_id
from jobtui.model.jobs import JobDetail
from jobtui.model.specs import ReadWindow, SourceSpec

PAYLOADS = ("serialized_parameters", "serialized_return_value", "serialized_exception")
"""Opaque and large: only the size is kept."""
EVENTS_OF_JOB = 10_000
OUTPUT = "job.out"
"""What a job prints, in its working directory below the site's `data`."""
DATA = "data"


async def _record_of(client: BalsamClient, number: int) -> tuple[dict[str, object], records.JobRow] | None:
    """A job as it is stored, without its payloads, and as a row; None without one. Raises SourceError."""
    try:
        page = await client.rows("/jobs/", dict[str, object], {"id": number, "limit": 1})
    except SourceError as error:
        why = str(error).removeprefix(client.name)
        raise type(error)(f"{client.name}/jobs/{why}") from error
    native = next((row for row in page.rows if row.get("id") == number), None)
    if native is None and not page.received:
        return None
    try:
        if native is None:
            raise ValueError(page.skips[0].why if page.skips else "it belongs to another job")
        for name in PAYLOADS:
            if payload := native.get(name):
                native[name] = f"({len(payload) if isinstance(payload, str) else 0} characters)"
        return native, msgspec.convert(native, records.JobRow)
    except (ValueError, RecursionError) as error:
        where = f"{client.name}/jobs/{number}"
        raise SourceUnreachable(f"{where}: the record is not understood: {error}") from error


class _PartReader:
    """Reads what is stored beside the record of a job; `failing` are the parts that cannot be read."""

    def __init__(self, client: BalsamClient) -> None:
        self._client = client
        self.failing: list[FailingPart] = []

    async def rows(self, path: str, kind: type[Any], asked: Parameters) -> records.DecodedList[Any]:
        try:
            return await self._client.rows(path, kind, asked)
        except SourceError as error:
            why = str(error).removeprefix(f"{self._client.name}: ")
            self.failing.append(FailingPart(path.strip("/"), why))
            return records.DecodedList(0, [], 0)

    async def one(self, path: str, kind: type[Any], number: int | None) -> Any:
        rows = () if number is None else (await self.rows(path, kind, {"id": number, "limit": 1})).rows
        return next((row for row in rows if row.id == number), None)


async def fetch_detail(client: BalsamClient, number: int, asked: Questions) -> JobDetail | None:
    """Everything stored about a job, None if there is no job of this number. Raises SourceError if its record
    cannot be read; a part beside that is left out, and named as failing. `asked` knows the other jobs.
    """
    if (found := await _record_of(client, number)) is None:
        return None
    native, row = found
    own: Parameters = {"job_id": number, "ordering": "timestamp", "limit": EVENTS_OF_JOB}
    parts = _PartReader(client)
    events = await parts.rows("/events/", records.EventRow, own)
    app: records.AppRow | None = await parts.one("/apps/", records.AppRow, row.app_id)
    site = await parts.one("/sites/", records.SiteRow, app.site_id if app is not None else None)
    batch_job = await parts.one("/batch-jobs/", records.BatchJobRow, row.batch_job_id)
    failing = tuple(parts.failing)
    known = asked.known.without_events()
    if app is not None:
        known.apps[app.id] = app
    if site is not None:
        known.sites[site.id] = site
    if batch_job is not None:
        known.allocations[batch_job.id] = records.ids_of(batch_job, client.label)
    changes = records.changes_in(events, client.name, client.system).rows
    for change in changes:
        known.take_change(change)
    job = known.job(row, known.trouble(row, asked.server_now))
    runs = records.runs_of(changes)
    beside: dict[str, object] = {
        "app": app.name if app is not None else None,
        "site": msgspec.to_builtins(site),
        "batch_job": msgspec.to_builtins(batch_job),
        "events": [msgspec.to_builtins(event) for event in sorted(events.rows, key=lambda event: event.id)],
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
        facts=(*_facts(client.system, row, site, batch_job), *((one.name, one.words) for one in failing)),
        failing=failing,
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


PAGE_EVENTS = 20_000
MOST_EVENTS = 2_000_000
"""The most events from which a report is made."""


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
) -> dict[str, str | int | Sequence[str] | Sequence[int]]:
    since, numbers = query.since, (records.number_of(job, system) for job in query.jobs)
    if since is not None and not exact:
        since = Nanos(since - RUN_S * SECOND)
    asked = {
        "ordering": "timestamp",
        "job_id": [number for number in numbers if number is not None] if query.jobs else None,
        "batch_job_id": query.batch_job,
        "scheduler_id": query.scheduler_id if exact and query.batch_job is None else None,
        "tags": [f"{name}:{value}" for name, value in query.tags],
        "timestamp_before": None if query.until is None else to_rfc3339(query.until),
        "timestamp_after": None if since is None else to_rfc3339(since),
    }
    return {name: given for name, given in asked.items() if given is not None}


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
    return [
        one
        for one in found
        if set(query.tags) <= set(one.tags)
        and query.batch_job in (None, str(one.id))
        and query.allocation_state in (None, one.state)
    ], tuple(skips)


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
        parts = ((row.id, row.num_nodes / max(1, row.node_packing_count)) for row in page.rows)
        found.update((system_job_id(client.system, number), nodes) for number, nodes in parts)
    return found


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
        self._begin()

    def _begin(self) -> None:
        since = self._since if self._since is not None else Nanos(self.clock.now() - WINDOW_S * SECOND)
        self._questions = Questions(self.client, self._owner, since, self)

    async def read(self, *, begins: bool) -> Batch:
        """What is new; the first polls read the window, a page each. Raises SourceError."""
        if begins:
            self._begin()
        questions = self._questions
        batch = await questions.ask()
        notes = (self._notice(self.clock.now()), *questions.notes())
        return msgspec.structs.replace(
            batch,
            more=questions.next_step() is not None,
            note="; ".join(filter(None, notes)),
            failing=questions.parts.failing,
            ahead_s=self.client.ahead_s,
        )

    async def detail(self, job_id: JobId) -> JobDetail | None:
        number = records.number_of(job_id, self.client.system)
        return None if number is None else await fetch_detail(self.client, number, self._questions)


def open_source(spec: SourceSpec, window: ReadWindow) -> Balsam:
    """The source. Its login is read again for each request, as it may be renewed meanwhile."""
    path = login_path(os.environ, os.path.expanduser("~"))
    client = BalsamClient(spec.target, lambda: login_for(spec.target, path).token, label=spec.label)

    def login() -> Login | None:
        with suppress(SourceError):  # the poll says what is wrong
            return login_for(spec.target, path)
        return None

    def notice_at(now: Nanos) -> str | None:
        return None if (found := login()) is None else notice(found, now)

    owner = "" if (first := login()) is None else user_of(first)
    return Balsam(client, owner=owner, since=window.since, notice=notice_at)
