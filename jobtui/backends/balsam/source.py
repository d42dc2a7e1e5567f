"""A Balsam server as a source: jobs, how they went from state to state, allocations and sites.

Never asks without a filter, one request at a time, one request for each poll but the first. Events come late
and out of order: each question goes back `OVERLAP_S` behind the newest event, and once in a while further;
what is known already is dropped by id.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import UTC, datetime

from jobtui.backends.balsam.client import PAGE_ROWS, BalsamClient, Parameters
from jobtui.backends.balsam.rows import (
    AppRow,
    BatchJobRow,
    Decoded,
    EventRow,
    JobRow,
    Lifetime,
    Placed,
    SessionRow,
    SiteRow,
    allocation_of,
    change_of,
    job_of,
    site_of,
    time_of,
)
from jobtui.backends.base import Batch
from jobtui.model.changes import StateChange
from jobtui.model.clock import SECOND, Clock, Nanos, SystemClock
from jobtui.model.jobs import Job

WINDOW_S = 24 * 3600
"""How far back events and ended jobs are read at first."""
OVERLAP_S = 120
"""How much later than others an event may come and be found at once."""
RESYNC_S = 3600
"""How far back is looked once in a while."""
FRAME_EVERY, RESYNC_EVERY = 8, 150
"""After how many polls allocations, sites and launchers are asked for, and late events."""
IDS_AT_ONCE = 200
JOBS_KEPT = 200_000
ALLOCATIONS_ASKED = 1_000
LIVE_STATES = (
    "AWAITING_PARENTS", "READY", "STAGED_IN", "PREPROCESSED", "RUNNING", "RUN_DONE", "RUN_ERROR",
    "RUN_TIMEOUT", "RESTART_READY", "POSTPROCESSED",
)  # fmt: skip
"""States that do not last for ever."""

Step = Callable[[], Awaitable[Batch]]


class Balsam:
    """One server. `owner` is whose jobs these are: a token shows those of its user only."""

    kind = "balsam"

    def __init__(
        self, client: BalsamClient, *, owner: str = "", since: Nanos | None = None, clock: Clock | None = None
    ) -> None:
        self.name = client.name
        self.client = client
        self._owner = owner
        self._since = since
        self._clock = clock or SystemClock()
        self._rows: dict[int, JobRow] = {}
        self._lives: dict[int, Lifetime] = {}
        self._apps: dict[int, AppRow] = {}
        self._sites: dict[int, SiteRow] = {}
        self._seen: set[tuple[int, Nanos]] = set()
        self._signs: dict[int, Nanos] = {}
        self._unknown: deque[int] = deque(maxlen=JOBS_KEPT)
        self._newest = Nanos(0)
        self._updated = ""
        self._polls = 0
        self._first: deque[Step] = deque()
        self._begun = False

    async def poll(self, cursor: str | None) -> Batch:
        """What is new; the first polls read the window, a page each. Raises SourceError."""
        if not self._begun:
            self._begin()
        if self._first:
            batch = await self._first[0]()
            if not batch.more:
                self._first.popleft()
            return _with(batch, more=batch.more or bool(self._first))
        self._polls += 1
        return await self._next_step()()

    def _begin(self) -> None:
        since = self._since if self._since is not None else Nanos(self._clock.now() - WINDOW_S * SECOND)
        self._newest = since
        self._updated = _text_of(since)
        self._first = deque([self._frame, self._live_jobs(), self._jobs, self._events_after(since)])
        self._begun = True

    def _next_step(self) -> Step:
        if self._polls % RESYNC_EVERY == 0:
            return self._events_after(Nanos(self._newest - RESYNC_S * SECOND))
        if self._polls % FRAME_EVERY == 0:
            return self._frame
        if self._unknown:
            return self._missing_jobs
        if self._polls % 2:
            return self._events_after(Nanos(self._newest - OVERLAP_S * SECOND))
        return self._jobs

    async def changed(self, timeout_s: float) -> None:
        """Nothing tells of a change: polls are due one after the other."""
        await asyncio.sleep(timeout_s)

    async def aclose(self) -> None:
        """Close the connection."""
        await self.client.aclose()

    async def _frame(self) -> Batch:
        """Sites, their apps, launchers and allocations: few rows each."""
        sites = await self.client.rows("/sites/", SiteRow, {"limit": ALLOCATIONS_ASKED})
        sessions = await self.client.rows("/sessions/", SessionRow, {})
        asked: Parameters = {"ordering": "-start_time", "limit": ALLOCATIONS_ASKED}
        batch_jobs = await self.client.rows("/batch-jobs/", BatchJobRow, asked)
        if any(site.id not in self._sites for site in sites.rows) or not self._apps:
            apps = await self.client.rows("/apps/", AppRow, {"limit": ALLOCATIONS_ASKED})
            self._apps.update((app.id, app) for app in apps.rows)
        self._sites = {site.id: site for site in sites.rows}
        allocations = (
            allocation_of(row, self.name, sessions.rows, self._signs.get(row.id)) for row in batch_jobs.rows
        )
        return Batch(
            cursor="",
            sites=tuple(site_of(site, self.name) for site in sites.rows),
            allocations=tuple(allocations),
            count=len(batch_jobs.rows),
            skipped=(*sites.skips, *sessions.skips, *batch_jobs.skips),
            skip_count=len(sites.skips) + len(sessions.skips) + len(batch_jobs.skips),
        )

    def _live_jobs(self) -> Step:
        """Jobs that are not over, however long ago they changed; a page for each call."""
        after = 0

        async def step() -> Batch:
            nonlocal after
            asked: Parameters = {"state": LIVE_STATES, "ordering": "id", "limit": PAGE_ROWS, "offset": after}
            page = await self.client.rows("/jobs/", JobRow, asked)
            after += PAGE_ROWS
            return self._of_jobs(page, more=after < page.count and page.received > 0)

        return step

    async def _jobs(self) -> Batch:
        """Jobs that were changed since the last that is known, by the server's clock."""
        asked: Parameters = {
            "last_update_after": self._updated,
            "ordering": "last_update",
            "limit": PAGE_ROWS,
        }
        page = await self.client.rows("/jobs/", JobRow, asked)
        before = self._updated
        if page.rows:
            self._updated = max(self._updated, page.rows[-1].last_update, key=_sort_key)
        # Rows of one instant beyond a page would be asked for for ever
        return self._of_jobs(page, more=page.received >= PAGE_ROWS and self._updated != before)

    async def _missing_jobs(self) -> Batch:
        """Jobs of which only events were seen."""
        ids = [self._unknown.popleft() for _ in range(min(IDS_AT_ONCE, len(self._unknown)))]
        page = await self.client.rows("/jobs/", JobRow, {"id": ids, "limit": len(ids)})
        return self._of_jobs(page)

    def _of_jobs(self, page: Decoded[JobRow], *, more: bool = False) -> Batch:
        fresh = [row for row in page.rows if self._rows.get(row.id) != row]
        for row in fresh:
            self._rows[row.id] = row
        self._forget_old()
        return Batch(
            cursor="",
            jobs=tuple(self._job(row) for row in fresh),
            count=len(fresh),
            skipped=page.skips,
            skip_count=len(page.skips),
            more=more,
        )

    def _events_after(self, since: Nanos) -> Step:
        """Events from a time on, a page for each call."""
        begin = since

        async def step() -> Batch:
            nonlocal begin
            asked: Parameters = {
                "timestamp_after": _text_of(begin),
                "ordering": "timestamp",
                "limit": PAGE_ROWS,
            }
            page = await self.client.rows("/events/", EventRow, asked)
            changes = self._new_changes(page.rows)
            last = max((change.at for change in changes), default=begin)
            more = page.received >= PAGE_ROWS and last > begin
            begin = last
            return self._of_changes(changes, page, more=more)

        return step

    def _new_changes(self, rows: Iterable[EventRow]) -> list[StateChange]:
        changes = [change for row in rows if (change := change_of(row, self.name)) is not None]
        fresh = [change for change in changes if (change.id, change.at) not in self._seen]
        self._seen.update((change.id, change.at) for change in fresh)
        return fresh

    def _of_changes(self, changes: Sequence[StateChange], page: Decoded[EventRow], *, more: bool) -> Batch:
        touched: dict[int, JobRow] = {}
        for change in changes:
            number = int(change.job_id.rpartition("/")[2])
            self._lives.setdefault(number, Lifetime()).take(change)
            row = self._rows.get(number)
            if row is None:
                self._unknown.append(number)
            else:
                touched[number] = row
                self._note_sign(row, change)
            self._newest = max(self._newest, change.at)
        self._forget_seen()
        return Batch(
            cursor="",
            jobs=tuple(self._job(row) for row in touched.values()),
            changes=tuple(changes),
            count=len(changes),
            skipped=page.skips,
            skip_count=len(page.skips),
            more=more,
        )

    def _note_sign(self, row: JobRow, change: StateChange) -> None:
        """The first sign of life of an allocation, which has no start before its end."""
        if change.after == "RUNNING" and row.batch_job_id is not None:
            known = self._signs.get(row.batch_job_id)
            self._signs[row.batch_job_id] = change.at if known is None else min(known, change.at)

    def _job(self, row: JobRow) -> Job:
        app = self._apps.get(row.app_id)
        site = self._sites.get(app.site_id) if app is not None else None
        placed = Placed(app.name if app else "", site.name if site else "", self._owner)
        return job_of(row, self._lives.get(row.id, Lifetime()), placed, self.name)

    def _forget_seen(self) -> None:
        """Ids are needed as far back as is ever asked again."""
        if len(self._seen) > 2 * JOBS_KEPT:
            oldest = self._newest - 2 * RESYNC_S * SECOND
            self._seen = {key for key in self._seen if key[1] >= oldest}

    def _forget_old(self) -> None:
        """Let the jobs go that were changed longest ago, when there are too many."""
        surplus = len(self._rows) - JOBS_KEPT
        if surplus <= 0:
            return
        for number in sorted(self._rows, key=lambda n: time_of(self._rows[n].last_update) or 0)[:surplus]:
            del self._rows[number]
            self._lives.pop(number, None)


def _with(batch: Batch, *, more: bool) -> Batch:
    import msgspec

    return msgspec.structs.replace(batch, more=more)


def _text_of(at: Nanos) -> str:
    """A time as the API takes it."""
    moment = datetime.fromtimestamp(at // SECOND, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{at % SECOND // 1_000:06d}Z"


def _sort_key(text: str) -> Nanos:
    return time_of(text) or Nanos(0)
