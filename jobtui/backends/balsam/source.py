"""A Balsam server as a source: jobs, how they went from state to state, allocations and sites.

Never asks without a filter, and one request at a time. Each poll asks for the jobs that were changed since
the last, by the server's own clock; only where there are some, for the newest events. Events come late and
out of order: that question goes back `OVERLAP_S` behind the newest event, once in a while further, and a job
in a state that no known event explains is asked about by its id. What is known already is dropped by id.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime

import msgspec

from jobtui.backends.balsam.client import PAGE_ROWS, BalsamClient, Parameters
from jobtui.backends.balsam.detail import fetch_detail
from jobtui.backends.balsam.known import Known
from jobtui.backends.balsam.lookout import Frame, alerts_of, note_of
from jobtui.backends.balsam.rows import (
    AppRow,
    BatchJobRow,
    Decoded,
    EventRow,
    JobRow,
    SessionRow,
    SiteRow,
    allocation_of,
    number_of,
    site_of,
    time_of,
)
from jobtui.backends.balsam.skips import BadRows
from jobtui.backends.base import Batch, SourceError
from jobtui.model.clock import SECOND, Clock, Nanos, SystemClock
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobDetail

WINDOW_S = 24 * 3600
"""How far back events and ended jobs are read at first."""
OVERLAP_S = 120
"""How much later than others an event may come and be found at once."""
RESYNC_S = 3600
"""How far back is looked once in a while."""
COMMIT_S = 5
"""How long a change may take to be seen after its time was noted."""
FRAME_EVERY, RESYNC_EVERY = 8, 150
"""After how many polls allocations, sites and launchers are asked for, and late events and deleted jobs."""
IDS_AT_ONCE = 200
ALLOCATIONS_ASKED = 1_000
LIVE_STATES = (
    "CREATED", "AWAITING_PARENTS", "READY", "STAGED_IN", "PREPROCESSED", "RUNNING", "RUN_DONE", "RUN_ERROR",
    "RUN_TIMEOUT", "RESTART_READY", "POSTPROCESSED", "STAGED_OUT",
)  # fmt: skip
"""States that do not last for ever."""

Step = Callable[[], Awaitable[Batch]]
Notice = Callable[[Nanos], str | None]


def _silent(now: Nanos) -> str | None:
    """Says nothing."""


class Balsam:
    """One server. `owner` is whose jobs these are: a token shows those of its user only.

    `notice` is what is to be said of the login.
    """

    kind = "balsam"

    def __init__(
        self,
        client: BalsamClient,
        *,
        owner: str = "",
        since: Nanos | None = None,
        clock: Clock | None = None,
        notice: Notice = _silent,
    ) -> None:
        self.name = client.name
        self.client = client
        self._owner = owner
        self._since = since
        self._clock = clock or SystemClock()
        self._notice = notice
        self._issued = 0
        self._last: Batch | None = None
        self._closed = False
        self._reset()

    def _reset(self) -> None:
        now = self._clock.now()
        since = self._since if self._since is not None else Nanos(now - WINDOW_S * SECOND)
        self._known = Known(self.name, self._owner)
        self._bad = BadRows(self.name)
        self._known.newest = since
        self._frame_now = Frame()
        self._alerts: dict[int, str] = {}
        self._asked_for: deque[int] = deque()
        self._updated = since
        self._polls = 0
        self._due: deque[Step] = deque(
            [self._frame, self._live_jobs(), self._jobs(since), self._events(since)]
        )

    async def poll(self, cursor: str | None) -> Batch:
        """What is new; the first polls read the window, a page each. Raises SourceError.

        A cursor is good for one batch back: with that before the last the same batch comes again.
        """
        if self._closed:
            raise SourceError(f"{self.name}: this source is closed")
        if cursor != str(self._issued):
            if self._last is not None and cursor == str(self._issued - 1):
                return self._last
            self._reset()
        if not self._due:
            self._polls += 1
            self._due.extend(self._next_steps())
        batch = await self._due[0]()
        if not batch.more:
            self._due.popleft()
        self._issued += 1
        self._last = msgspec.structs.replace(
            batch, cursor=str(self._issued), more=bool(self._due), note=self._note()
        )
        return self._last

    def _next_steps(self) -> list[Step]:
        steps = [self._jobs(Nanos(self._updated - COMMIT_S * SECOND))]
        if self._polls % FRAME_EVERY == 0:
            steps += [self._frame, self._events(Nanos(self._known.newest - OVERLAP_S * SECOND))]
        if self._polls % RESYNC_EVERY == 0:
            steps += [self._live_jobs(), self._events(Nanos(self._known.newest - RESYNC_S * SECOND))]
        return steps

    def _note(self) -> str:
        now = self._clock.now()
        return note_of(self._frame_now, self._notice(now), now, self.client.ahead_s)

    async def changed(self, timeout_s: float) -> None:
        """Nothing tells of a change: polls are due one after the other."""
        await asyncio.sleep(timeout_s)

    async def detail(self, job_id: JobId) -> JobDetail | None:
        """The record of a job with its runs and events, None when there is none. Raises SourceError."""
        number = number_of(job_id)
        if number is None or not job_id.startswith("balsam/"):
            return None
        return await fetch_detail(self.client, int(number), self._owner)

    async def aclose(self) -> None:
        """Close the connection."""
        self._closed = True
        await self.client.aclose()

    async def _frame(self) -> Batch:
        """Sites, their apps, launchers and allocations: few rows each."""
        known = self._known
        sites = await self.client.rows("/sites/", SiteRow, {"limit": ALLOCATIONS_ASKED})
        sessions = await self.client.rows("/sessions/", SessionRow, {})
        asked: Parameters = {"ordering": "-start_time", "limit": ALLOCATIONS_ASKED}
        batch_jobs = await self.client.rows("/batch-jobs/", BatchJobRow, asked)
        named = {row.id: row for row in sites.rows}
        if named.keys() - known.sites.keys() or not known.apps:
            apps = await self.client.rows("/apps/", AppRow, {"limit": ALLOCATIONS_ASKED})
            known.apps.update((app.id, app) for app in apps.rows)
        known.sites = named
        allocations = tuple(
            allocation_of(row, self.name, sessions.rows, known.signs.get(row.id)) for row in batch_jobs.rows
        )
        places = tuple(site_of(site, self.name) for site in sites.rows)
        self._frame_now = Frame(places, allocations)
        counted = [
            self._bad.count("/sites/", sites.rows, sites.skips),
            self._bad.count("/sessions/", sessions.rows, sessions.skips),
            self._bad.count("/batch-jobs/", batch_jobs.rows, batch_jobs.skips),
        ]
        skips = tuple(skip for one in counted for skip in one.fresh)
        return Batch(
            cursor="",
            jobs=self._newly_alerted(),
            sites=places,
            allocations=allocations,
            count=len(batch_jobs.rows),
            skipped=skips,
            skip_count=len(skips),
            recovered=sum(one.recovered for one in counted),
        )

    def _newly_alerted(self) -> tuple[Job, ...]:
        """Jobs of which something is to be said since now, or no more."""
        known = self._known
        server_now = Nanos(self._clock.now() + int(self.client.ahead_s * SECOND))
        before, self._alerts = self._alerts, alerts_of(self._frame_now, known, server_now)
        numbers = {n for n in before.keys() | self._alerts.keys() if before.get(n) != self._alerts.get(n)}
        return tuple(self._job(known.rows[number]) for number in sorted(numbers) if number in known.rows)

    def _job(self, row: JobRow) -> Job:
        return self._known.job(row, self._alerts.get(row.id))

    def _live_jobs(self) -> Step:
        """Jobs that are not over, however long ago they changed; those that should be among them and are not
        are asked about by their ids."""
        offset = 0
        found: set[int] = set()

        async def step() -> Batch:
            nonlocal offset
            asked: Parameters = {"state": LIVE_STATES, "ordering": "id", "limit": PAGE_ROWS, "offset": offset}
            page = await self.client.rows("/jobs/", JobRow, asked)
            offset += PAGE_ROWS
            found.update(row.id for row in page.rows)
            more = offset < page.count and page.received > 0
            if not more:
                rows = self._known.rows.values()
                lost = [row.id for row in rows if row.state in LIVE_STATES and row.id not in found]
                self._ask_for(lost)
            return self._of_jobs(page, more=more)

        return step

    def _jobs(self, since: Nanos) -> Step:
        """Jobs that were changed since a time by the server's clock, a page for each call."""
        begin, offset = since, 0
        changed: list[JobRow] = []

        async def step() -> Batch:
            nonlocal begin, offset
            asked: Parameters = {
                "last_update_after": _text_of(begin), "ordering": "last_update", "limit": PAGE_ROWS,
                "offset": offset,
            }  # fmt: skip
            page = await self.client.rows("/jobs/", JobRow, asked)
            last = max((time_of(row.last_update) or begin for row in page.rows), default=begin)
            begin, offset = (last, 0) if last > begin else (begin, offset + PAGE_ROWS)
            self._updated = max(self._updated, last)
            changed.extend(row for row in page.rows if self._known.rows.get(row.id) != row)
            more = page.received >= PAGE_ROWS
            if changed and not more and self._polls:
                self._due.append(self._events(Nanos(self._known.newest - OVERLAP_S * SECOND), changed))
            return self._of_jobs(page, more=more)

        return step

    def _of_jobs(self, page: Decoded[JobRow], *, more: bool = False) -> Batch:
        fresh = self._known.take_jobs(page.rows)
        bad = self._bad.count("/jobs/", page.rows, page.skips)
        return Batch(
            cursor="",
            jobs=tuple(map(self._job, fresh)),
            count=len(fresh),
            skipped=bad.fresh,
            skip_count=len(bad.fresh),
            recovered=bad.recovered,
            more=more,
        )

    def _ask_for(self, numbers: Sequence[int]) -> None:
        """Ask about jobs by their ids, when it is their turn."""
        if numbers and not self._asked_for:
            self._due.append(self._missing_jobs)
        self._asked_for.extend(numbers)

    async def _missing_jobs(self) -> Batch:
        """Jobs of which only events were seen, or that may have been deleted."""
        ids = list(dict.fromkeys(self._asked_for))[:IDS_AT_ONCE]
        page = await self.client.rows("/jobs/", JobRow, {"id": ids, "limit": len(ids)})
        asked = set(ids)
        self._asked_for = deque(number for number in self._asked_for if number not in asked)
        gone = self._known.drop(asked - {row.id for row in page.rows}) if not page.skips else ()
        batch = self._of_jobs(page, more=bool(self._asked_for))
        return msgspec.structs.replace(batch, gone=gone)

    def _events(self, since: Nanos, about: Sequence[JobRow] = ()) -> Step:
        """Events from a time on, a page for each call, and then those of jobs that these do not explain."""
        begin, offset = since, 0

        async def step() -> Batch:
            nonlocal begin, offset
            asked: Parameters = {
                "timestamp_after": _text_of(begin), "ordering": "timestamp", "limit": PAGE_ROWS,
                "offset": offset,
            }  # fmt: skip
            page = await self.client.rows("/events/", EventRow, asked)
            last = max((time_of(row.timestamp) or begin for row in page.rows), default=begin)
            begin, offset = (last, 0) if last > begin else (begin, offset + PAGE_ROWS)
            more = page.received >= PAGE_ROWS
            batch = self._of_events(page, more=more)
            if not more and (silent := self._known.unexplained(about)):
                self._due.append(self._events_of(silent))
            return batch

        return step

    def _events_of(self, numbers: Sequence[int]) -> Step:
        """All events of some jobs, of so many for each call."""
        left = deque(numbers)

        async def step() -> Batch:
            ids = [left[at] for at in range(min(IDS_AT_ONCE, len(left)))]
            asked: Parameters = {"job_id": ids, "ordering": "timestamp", "limit": 4 * PAGE_ROWS}
            page = await self.client.rows("/events/", EventRow, asked)
            for _ in ids:
                left.popleft()
            batch = self._of_events(page, more=bool(left))
            self._known.asked_about(ids)
            return batch

        return step

    def _of_events(self, page: Decoded[EventRow], *, more: bool) -> Batch:
        changes = self._known.take_events(page.rows)
        bad = self._bad.count("/events/", page.rows, page.skips)
        self._ask_for(list(self._known.strangers(changes)))
        return Batch(
            cursor="",
            jobs=tuple(map(self._job, self._known.rows_of(changes))),
            changes=tuple(changes),
            count=len(changes),
            skipped=bad.fresh,
            skip_count=len(bad.fresh),
            recovered=bad.recovered,
            more=more,
        )


def _text_of(at: Nanos) -> str:
    """A time as the API takes it."""
    moment = datetime.fromtimestamp(max(0, at) // SECOND, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{max(0, at) % SECOND // 1_000:06d}Z"
