"""The record of one Balsam job, with what stands beside it: its app, site, allocation and events."""

import posixpath
from collections.abc import Iterator

import msgspec

from jobtui.backends.balsam.client import BalsamClient, Parameters
from jobtui.backends.balsam.rows import (
    SYSTEM,
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
)
from jobtui.backends.balsam.runs import runs_of
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
LOGS = "log"
"""Below a site: `service*.log` of its agent, `mpi_mode*.log` and `serial_mode*.log` of its launchers."""


async def fetch_detail(client: BalsamClient, number: int, owner: str) -> JobDetail | None:
    """Everything stored about a job, None when there is none of this number. Raises SourceError."""
    body = await client.get("/jobs/", {"id": number, "limit": 1})
    try:
        results = msgspec.json.decode(body, type=_Documents).results
        if not results:
            return None
        native = results[0]
        row = msgspec.convert(native, JobRow)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise SourceUnreachable(f"{client.name}/jobs/{number}: the record makes no sense: {error}") from error
    native |= {name: _size(native.get(name)) for name in PAYLOADS if native.get(name)}
    asked: Parameters = {"job_id": number, "ordering": "timestamp", "limit": MOST_EVENTS}
    events = (await client.rows("/events/", EventRow, asked)).rows
    changes = [change for event in events if (change := change_of(event, client.name)) is not None]
    life = Lifetime()
    for change in changes:
        life.take(change)
    app, site = await _place(client, row)
    batch_job = None if row.batch_job_id is None else await _batch_job(client, row.batch_job_id)
    placed = Placed(
        app=app.name if app else "",
        site=site.name if site else "",
        owner=owner,
        allocation=ids_of(batch_job) if batch_job else "",
    )
    job = job_of(row, life, placed, client.name)
    runs = runs_of(changes, job)
    native |= {
        "app": app.name if app else None,
        "site": msgspec.to_builtins(site) if site else None,
        "batch_job": msgspec.to_builtins(batch_job) if batch_job else None,
        "events": [msgspec.to_builtins(event) for event in sorted(events, key=lambda one: one.id)],
    }
    return JobDetail(
        job=job,
        runs=runs,
        history=runs,
        native=native,
        changes=tuple(changes),
        path=f"{client.name}/jobs/{number}",
        directory=directory_of(row, site),
        facts=tuple(_facts(row, site, batch_job)),
    )


def directory_of(row: JobRow, site: SiteRow | None) -> str | None:
    """Where a job works, at its site: `<site>/data/<workdir>`; None when a name leads elsewhere."""
    if site is None or not posixpath.isabs(site.path) or not row.workdir:
        return None
    parts = (*site.path.split("/"), *row.workdir.split("/"))
    if ".." in parts or "\0" in site.path + row.workdir or row.workdir.startswith("/"):
        return None
    return posixpath.join(site.path, DATA, row.workdir)


def _facts(row: JobRow, site: SiteRow | None, batch_job: BatchJobRow | None) -> Iterator[tuple[str, str]]:
    """What a person asks of a job beside how it stands."""
    if row.tags:
        yield "tags", " ".join(f"{name}:{value}" for name, value in sorted(row.tags.items()))
    if row.parent_ids:
        yield "parents", " ".join(system_job_id(SYSTEM, parent) for parent in row.parent_ids)
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


async def _place(client: BalsamClient, row: JobRow) -> tuple[AppRow | None, SiteRow | None]:
    apps = (await client.rows("/apps/", AppRow, {"id": row.app_id, "limit": 1})).rows
    app = next((app for app in apps if app.id == row.app_id), None)
    if app is None:
        return None, None
    sites = (await client.rows("/sites/", SiteRow, {"id": app.site_id, "limit": 1})).rows
    return app, next((site for site in sites if site.id == app.site_id), None)


async def _batch_job(client: BalsamClient, number: int) -> BatchJobRow | None:
    rows = (await client.rows("/batch-jobs/", BatchJobRow, {"id": number, "limit": 1})).rows
    return next((row for row in rows if row.id == number), None)
