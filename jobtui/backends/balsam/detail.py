"""The record of one Balsam job, with what stands beside it: its app, site, allocation and events."""

import posixpath
from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeVar

import msgspec

from jobtui.backends.balsam.client import BalsamClient, Parameters
from jobtui.backends.balsam.rows import (
    AppRow,
    BatchJobRow,
    EventRow,
    JobRow,
    Lifetime,
    Placed,
    SiteRow,
    change_of,
    ids_of,
    job_of,
    site_of,
)
from jobtui.backends.balsam.runs import runs_of
from jobtui.backends.balsam.site_logs import LOGS
from jobtui.backends.base import SourceUnreachable
from jobtui.model.ids import system_job_id
from jobtui.model.jobs import JobDetail

PAYLOADS = ("serialized_parameters", "serialized_return_value", "serialized_exception")
"""Opaque and large: said to be there and how large, not kept."""
MOST_EVENTS = 10_000
"""Events of one job that are read."""
OUTPUT = "job.out"
"""What a job prints, in its working directory below the site's `data`."""
DATA = "data"


async def fetch_detail(client: BalsamClient, number: int, owner: str) -> JobDetail | None:
    """Everything stored about a job, None when there is none of this number. Raises SourceError."""
    native = await _native(client, number)
    if native is None:
        return None
    try:
        row = msgspec.convert(native, JobRow)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise SourceUnreachable(_senseless(client, number, error)) from error
    asked: Parameters = {"job_id": number, "ordering": "timestamp", "limit": MOST_EVENTS}
    events = (await client.rows("/events/", EventRow, asked)).rows
    return _detail_of(client, native, row, events, await _beside(client, row), owner)


async def _native(client: BalsamClient, number: int) -> dict[str, object] | None:
    """The record as the server gives it, but for its payloads."""
    body = await client.get("/jobs/", {"id": number, "limit": 1})
    try:
        results = msgspec.json.decode(body, type=_Documents).results
    except (msgspec.MsgspecError, RecursionError) as error:
        raise SourceUnreachable(_senseless(client, number, error)) from error
    if not results:
        return None
    return results[0] | {name: _size(results[0].get(name)) for name in PAYLOADS if results[0].get(name)}


def _senseless(client: BalsamClient, number: int, error: Exception) -> str:
    return f"{client.name}/jobs/{number}: the record makes no sense: {error}"


class _Beside(NamedTuple):
    """What a job belongs to."""

    app: AppRow | None
    site: SiteRow | None
    batch_job: BatchJobRow | None

    def placed(self, owner: str, label: str) -> Placed:
        return Placed(
            app=self.app.name if self.app else "",
            site=self.site.name if self.site else "",
            owner=owner,
            allocation=ids_of(self.batch_job, label) if self.batch_job else "",
        )

    def native(self) -> dict[str, object]:
        return {
            "app": self.app.name if self.app else None,
            "site": msgspec.to_builtins(self.site) if self.site else None,
            "batch_job": msgspec.to_builtins(self.batch_job) if self.batch_job else None,
        }


def _detail_of(
    client: BalsamClient,
    native: dict[str, object],
    row: JobRow,
    events: Sequence[EventRow],
    beside: _Beside,
    owner: str,
) -> JobDetail:
    changes = [c for event in events if (c := change_of(event, client.name, client.system)) is not None]
    job = job_of(row, Lifetime.of(changes), beside.placed(owner, client.label), client.name, client.system)
    runs = runs_of(changes, job)
    in_order = sorted(events, key=lambda event: event.id)
    return JobDetail(
        job=job,
        runs=runs,
        history=runs,
        native=native | beside.native() | {"events": [msgspec.to_builtins(event) for event in in_order]},
        changes=tuple(changes),
        path=f"{client.name}/jobs/{row.id}",
        directory=directory_of(row, beside.site),
        facts=tuple(_facts(client.system, row, beside)),
        site=site_of(beside.site, client.name) if beside.site is not None else None,
    )


def directory_of(row: JobRow, site: SiteRow | None) -> str | None:
    """Where a job works, at its site: `<site>/data/<workdir>`; None when a name leads elsewhere."""
    if site is None or not posixpath.isabs(site.path) or not row.workdir:
        return None
    parts = (*site.path.split("/"), *row.workdir.split("/"))
    if ".." in parts or "\0" in site.path + row.workdir or row.workdir.startswith("/"):
        return None
    return posixpath.join(site.path, DATA, row.workdir)


def _facts(system: str, row: JobRow, beside: _Beside) -> Iterator[tuple[str, str]]:
    """What a person asks of a job beside how it stands."""
    site, batch_job = beside.site, beside.batch_job
    if row.tags:
        yield "tags", " ".join(f"{name}:{value}" for name, value in sorted(row.tags.items()))
    if row.parent_ids:
        yield "parents", " ".join(system_job_id(system, parent) for parent in row.parent_ids)
    per_node = f", {row.node_packing_count} jobs on a node" if row.node_packing_count > 1 else ""
    yield "nodes", f"{row.num_nodes}{per_node}"
    if row.wall_time_min:
        yield "wall time", f"{row.wall_time_min} min"
    if batch_job is not None:
        scheduler = f", {batch_job.scheduler_id} in {batch_job.queue}" if batch_job.scheduler_id else ""
        yield "batch job", f"{batch_job.id} ({batch_job.state}{scheduler})"
    if (directory := directory_of(row, site)) is not None:
        yield "output", posixpath.join(directory, OUTPUT)
    if site is not None and posixpath.isabs(site.path):
        yield "site logs", posixpath.join(site.path, LOGS)


class _Documents(msgspec.Struct):
    results: list[dict[str, object]]


def _size(payload: object) -> str:
    return f"({len(payload) if isinstance(payload, str) else 0} characters)"


async def _beside(client: BalsamClient, row: JobRow) -> _Beside:
    app = await _one(client, "/apps/", AppRow, row.app_id)
    site = await _one(client, "/sites/", SiteRow, app.site_id) if app is not None else None
    batch_job = None
    if row.batch_job_id is not None:
        batch_job = await _one(client, "/batch-jobs/", BatchJobRow, row.batch_job_id)
    return _Beside(app, site, batch_job)


_Row = TypeVar("_Row", AppRow, SiteRow, BatchJobRow)


async def _one(client: BalsamClient, path: str, kind: type[_Row], number: int) -> _Row | None:
    rows = (await client.rows(path, kind, {"id": number, "limit": 1})).rows
    return next((row for row in rows if row.id == number), None)
