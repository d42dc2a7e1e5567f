"""What is asked of a Balsam server, question by question, and what the answers tell.

Each question is a step that may be repeated until it says that there is no more. A step that fails or is
given up loses nothing: it is asked again.
"""

from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime

import msgspec

from jobtui.backends.balsam.client import PAGE_ROWS, BalsamClient, Parameters
from jobtui.backends.balsam.known import Known
from jobtui.backends.balsam.lookout import Frame, alerts_of
from jobtui.backends.balsam.rows import (
    AppRow,
    BatchJobRow,
    Decoded,
    EventRow,
    JobRow,
    SessionRow,
    SiteRow,
    allocation_of,
    site_of,
    time_of,
)
from jobtui.backends.balsam.skips import BadRows
from jobtui.backends.base import Batch
from jobtui.model.clock import SECOND, Clock, Nanos
from jobtui.model.jobs import Job

OVERLAP_S = 120
"""How much later than others an event may come and be found at once."""
IDS_AT_ONCE = 200
ALLOCATIONS_ASKED = 1_000
LIVE_STATES = (
    "CREATED", "AWAITING_PARENTS", "READY", "STAGED_IN", "PREPROCESSED", "RUNNING", "RUN_DONE", "RUN_ERROR",
    "RUN_TIMEOUT", "RESTART_READY", "POSTPROCESSED", "STAGED_OUT",
)  # fmt: skip
"""States that do not last for ever."""

Step = Callable[[], Awaitable[Batch]]


class Questions:
    """Questions to one server, from `since` on, and what its answers told. `due` are those to be asked."""

    def __init__(self, client: BalsamClient, owner: str, since: Nanos, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._known = Known(client.name, owner)
        self._known.newest = since
        self._bad = BadRows(client.name)
        self._alerts: dict[int, str] = {}
        self._asked_for: deque[int] = deque()
        self.frame_now = Frame()
        """Sites and allocations as of the last look."""
        self.updated = since
        """The newest change of a job, by the server's clock."""
        self.due: deque[Step] = deque()

    @property
    def newest(self) -> Nanos:
        """The newest time of an event."""
        return self._known.newest

    async def frame(self) -> Batch:
        """Sites, their apps, launchers and allocations: few rows each."""
        known = self._known
        sites = await self._client.rows("/sites/", SiteRow, {"limit": ALLOCATIONS_ASKED})
        sessions = await self._client.rows("/sessions/", SessionRow, {})
        asked: Parameters = {"ordering": "-start_time", "limit": ALLOCATIONS_ASKED}
        batch_jobs = await self._client.rows("/batch-jobs/", BatchJobRow, asked)
        named = {row.id: row for row in sites.rows}
        if named.keys() - known.sites.keys() or not known.apps:
            apps = await self._client.rows("/apps/", AppRow, {"limit": ALLOCATIONS_ASKED})
            known.apps.update((app.id, app) for app in apps.rows)
        known.sites = named
        allocations = tuple(
            allocation_of(row, self._client.name, sessions.rows, known.signs.get(row.id))
            for row in batch_jobs.rows
        )
        places = tuple(site_of(site, self._client.name) for site in sites.rows)
        self.frame_now = Frame(places, allocations)
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
        server_now = Nanos(self._clock.now() + int(self._client.ahead_s * SECOND))
        before, self._alerts = self._alerts, alerts_of(self.frame_now, known, server_now)
        numbers = {n for n in before.keys() | self._alerts.keys() if before.get(n) != self._alerts.get(n)}
        return tuple(self._job(known.rows[number]) for number in sorted(numbers) if number in known.rows)

    def _job(self, row: JobRow) -> Job:
        return self._known.job(row, self._alerts.get(row.id))

    def live_jobs(self) -> Step:
        """Jobs that are not over, however long ago they changed; those that should be among them and are not
        are asked about by their ids."""
        offset = 0
        found: set[int] = set()

        async def step() -> Batch:
            nonlocal offset
            asked: Parameters = {"state": LIVE_STATES, "ordering": "id", "limit": PAGE_ROWS, "offset": offset}
            page = await self._client.rows("/jobs/", JobRow, asked)
            offset += PAGE_ROWS
            found.update(row.id for row in page.rows)
            more = offset < page.count and page.received > 0
            if not more:
                rows = self._known.rows.values()
                lost = [row.id for row in rows if row.state in LIVE_STATES and row.id not in found]
                self._ask_for(lost)
            return self._of_jobs(page, more=more)

        return step

    def jobs(self, since: Nanos, *, then_events: bool = True) -> Step:
        """Jobs that were changed since a time by the server's clock, a page for each call.

        Where there are some, the newest events are asked for next.
        """
        begin, offset = since, 0
        changed: list[JobRow] = []

        async def step() -> Batch:
            nonlocal begin, offset
            asked: Parameters = {
                "last_update_after": _text_of(begin), "ordering": "last_update", "limit": PAGE_ROWS,
                "offset": offset,
            }  # fmt: skip
            page = await self._client.rows("/jobs/", JobRow, asked)
            last = max((time_of(row.last_update) or begin for row in page.rows), default=begin)
            begin, offset = (last, 0) if last > begin else (begin, offset + PAGE_ROWS)
            self.updated = max(self.updated, last)
            changed.extend(row for row in page.rows if self._known.rows.get(row.id) != row)
            more = page.received >= PAGE_ROWS
            if changed and not more and then_events:
                self.due.append(self.events(Nanos(self._known.newest - OVERLAP_S * SECOND), changed))
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
            self.due.append(self._missing_jobs)
        self._asked_for.extend(numbers)

    async def _missing_jobs(self) -> Batch:
        """Jobs of which only events were seen, or that may have been deleted."""
        ids = list(dict.fromkeys(self._asked_for))[:IDS_AT_ONCE]
        page = await self._client.rows("/jobs/", JobRow, {"id": ids, "limit": len(ids)})
        asked = set(ids)
        self._asked_for = deque(number for number in self._asked_for if number not in asked)
        gone = self._known.drop(asked - {row.id for row in page.rows}) if not page.skips else ()
        batch = self._of_jobs(page, more=bool(self._asked_for))
        return msgspec.structs.replace(batch, gone=gone)

    def events(self, since: Nanos, about: Sequence[JobRow] = ()) -> Step:
        """Events from a time on, a page for each call, and then those of jobs that these do not explain."""
        begin, offset = since, 0

        async def step() -> Batch:
            nonlocal begin, offset
            asked: Parameters = {
                "timestamp_after": _text_of(begin), "ordering": "timestamp", "limit": PAGE_ROWS,
                "offset": offset,
            }  # fmt: skip
            page = await self._client.rows("/events/", EventRow, asked)
            last = max((time_of(row.timestamp) or begin for row in page.rows), default=begin)
            begin, offset = (last, 0) if last > begin else (begin, offset + PAGE_ROWS)
            more = page.received >= PAGE_ROWS
            batch = self._of_events(page, more=more)
            if not more and (silent := self._known.unexplained(about)):
                self.due.append(self._events_of(silent))
            return batch

        return step

    def _events_of(self, numbers: Sequence[int]) -> Step:
        """All events of some jobs, of so many for each call."""
        left = deque(numbers)

        async def step() -> Batch:
            ids = [left[at] for at in range(min(IDS_AT_ONCE, len(left)))]
            asked: Parameters = {"job_id": ids, "ordering": "timestamp", "limit": 4 * PAGE_ROWS}
            page = await self._client.rows("/events/", EventRow, asked)
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
