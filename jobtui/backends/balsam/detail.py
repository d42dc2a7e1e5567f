"""The record of one Balsam job, with what stands beside it: its app, site, allocation and events."""

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
    job_of,
)
from jobtui.backends.balsam.runs import runs_of
from jobtui.backends.base import SourceUnreachable
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
    job = job_of(row, life, Placed(app.name if app else "", site.name if site else "", owner), client.name)
    runs = runs_of(changes, job)
    native["app"], native["site"] = (app.name if app else None), (site.name if site else None)
    if site is not None and site.path and row.workdir:
        native["directory"] = f"{site.path.rstrip('/')}/{DATA}/{row.workdir.strip('/')}"
        native["site_logs"] = f"{site.path.rstrip('/')}/log"
    if row.batch_job_id is not None:
        native["batch_job"] = await _batch_job(client, row.batch_job_id)
    native["events"] = [msgspec.to_builtins(event) for event in sorted(events, key=lambda one: one.id)]
    return JobDetail(
        job=job, runs=runs, history=runs, native=native, changes=tuple(changes),
        path=f"{client.name}/jobs/{number}",
    )  # fmt: skip


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


async def _batch_job(client: BalsamClient, number: int) -> object:
    rows = (await client.rows("/batch-jobs/", BatchJobRow, {"id": number, "limit": 1})).rows
    found = next((row for row in rows if row.id == number), None)
    return None if found is None else msgspec.to_builtins(found)
