"""The past of a Balsam server, asked for once: the events and allocations that a report is made of."""

from collections.abc import Callable
from typing import NamedTuple

from jobtui.backends.balsam.client import BalsamClient, Parameters
from jobtui.backends.balsam.rows import (
    BatchJobRow,
    EventRow,
    JobRow,
    SessionRow,
    allocation_of,
    change_of,
    nodes_of,
    number_of,
    time_of,
)
from jobtui.backends.base import SourceMissing
from jobtui.model.changes import Allocation, StateChange
from jobtui.model.clock import SECOND, Nanos, to_rfc3339
from jobtui.model.health import Skip
from jobtui.model.ids import JobId, system_job_id
from jobtui.model.report_query import ReportQuery

PAGE_EVENTS = 20_000
MOST_EVENTS = 2_000_000
"""Events that a report is made of at most."""
IDS_AT_ONCE = 500

Progress = Callable[[int, int], None]
"""Is told how many rows were read, of how many."""


def _quiet(read: int, of: int) -> None:
    """Tells nobody."""


class Fetched(NamedTuple):
    """The changes a query is about, in the order the server learnt of them, and what made no sense."""

    changes: list[StateChange]
    skips: tuple[Skip, ...] = ()


async def fetch_changes(
    client: BalsamClient,
    query: ReportQuery,
    *,
    exact: bool = False,
    to_state: str | None = None,
    progress: Progress = _quiet,
) -> Fetched:
    """The changes a query is about. Raises SourceError.

    With `exact` it is asked as Balsam's own client asks, where a scheduler's id does not narrow; else that id
    is resolved first, and events of before the window are read too, as runs in it may have begun there.
    `to_state` is the only state to which changes are wanted.
    """
    asked = await _asked(client, query, exact=exact)
    if query.jobs and not asked["job_id"]:
        return Fetched([])  # those are jobs of another system
    if to_state is not None:
        asked["to_state"] = to_state
    found: dict[int, StateChange] = {}
    skips: list[Skip] = []
    async for page in client.pages("/events/", EventRow, asked, PAGE_EVENTS):
        skips += page.skips
        for row in page.rows:
            if (change := change_of(row, client.name, client.system)) is not None:
                found[change.id] = change
        progress(len(found), page.count)
        if len(found) >= min(page.count, MOST_EVENTS):
            break
    return Fetched(sorted(found.values(), key=lambda change: change.id), tuple(skips))


async def _asked(
    client: BalsamClient, query: ReportQuery, *, exact: bool
) -> dict[str, str | int | list[str] | list[int]]:
    asked: dict[str, str | int | list[str] | list[int]] = {"ordering": "timestamp"}
    if query.jobs:
        asked["job_id"] = [
            number for job in query.jobs if (number := number_of(job, client.system)) is not None
        ]
    if query.batch_job is not None:
        asked["batch_job_id"] = query.batch_job
    elif query.scheduler_id is not None and exact:
        asked["scheduler_id"] = query.scheduler_id
    elif query.scheduler_id is not None:
        asked["batch_job_id"] = await _batch_job_of(client, query.scheduler_id)
    if query.tags:
        asked["tags"] = [f"{name}:{value}" for name, value in query.tags]
    if query.until is not None:
        asked["timestamp_before"] = to_rfc3339(query.until)
    if query.since is not None and exact:
        asked["timestamp_after"] = to_rfc3339(query.since)
    elif query.since is not None:
        asked["timestamp_after"] = to_rfc3339(Nanos(query.since - RUN_S * SECOND))
    return asked


RUN_S = 24 * 3600
"""How long before a window a run may have begun that goes on in it."""


async def _batch_job_of(client: BalsamClient, scheduler_id: str) -> int:
    page = await client.rows("/batch-jobs/", BatchJobRow, {"scheduler_id": scheduler_id, "limit": 1})
    if not page.rows:
        raise SourceMissing(f"{client.name}: no batch job has the scheduler id {scheduler_id}")
    return page.rows[0].id


async def fetch_allocations(client: BalsamClient, query: ReportQuery) -> list[Allocation]:
    """The allocations a query is about. Raises SourceError."""
    sessions = await client.rows("/sessions/", SessionRow, {})
    asked: Parameters = {} if query.scheduler_id is None else {"scheduler_id": query.scheduler_id}
    found: list[Allocation] = []
    async for page in client.pages("/batch-jobs/", BatchJobRow, asked):
        for row in page.rows:
            sign = await _first_sign(client, row)
            found.append(allocation_of(row, client.name, sessions.rows, sign))
    wanted = set(query.tags)
    return [
        one
        for one in found
        if wanted <= set(one.tags)
        and query.batch_job in (None, str(one.id))
        and query.allocation_state in (None, one.state)
    ]


async def _first_sign(client: BalsamClient, row: BatchJobRow) -> Nanos | None:
    """When the first job began to run in an allocation that runs: it has no start before its end."""
    if row.state != "running" or row.start_time is not None:
        return None
    asked: Parameters = {
        "batch_job_id": row.id, "to_state": "RUNNING", "ordering": "timestamp", "limit": IDS_AT_ONCE,
    }  # fmt: skip
    page = await client.rows("/events/", EventRow, asked)
    return time_of(page.rows[0].timestamp) if page.rows else None


async def fetch_nodes(client: BalsamClient, jobs: set[JobId]) -> dict[JobId, float]:
    """How many nodes these jobs take by their records. Raises SourceError."""
    numbers = [job.rpartition("/")[2] for job in jobs]
    found: dict[JobId, float] = {}
    for begin in range(0, len(numbers), IDS_AT_ONCE):
        asked: Parameters = {"id": numbers[begin : begin + IDS_AT_ONCE], "limit": IDS_AT_ONCE}
        page = await client.rows("/jobs/", JobRow, asked)
        found.update((system_job_id(client.system, row.id), nodes_of(row)) for row in page.rows)
    return found
