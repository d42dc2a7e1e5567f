"""What is asked of a Balsam server, question by question, and what the answers tell.

Each question is a step that may be repeated until it says that there is no more. A step that fails or is
given up loses nothing: it is asked again.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

import msgspec

from jobtui.backends.balsam.cache import Stretch
from jobtui.backends.balsam.client import PAGE_ROWS, BalsamClient, Parameters
from jobtui.backends.balsam.known import Known
from jobtui.backends.balsam.lookout import Frame, alerts_of
from jobtui.backends.balsam.recall import Recall
from jobtui.backends.balsam.rows import (
    AppRow,
    BatchJobRow,
    Decoded,
    EventRow,
    JobRow,
    SessionRow,
    SiteRow,
    allocation_of,
    change_of,
    ids_of,
    site_of,
    time_of,
)
from jobtui.backends.balsam.skips import BadRows
from jobtui.backends.base import Batch
from jobtui.model.changes import StateChange
from jobtui.model.clock import SECOND, Clock, Nanos
from jobtui.model.jobs import Job

OVERLAP_S = 120
"""How much later than others an event may come and be found at once."""
SLICE_ROWS = 500
"""Rows that are dealt with before others have their turn."""
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

    def __init__(self, client: BalsamClient, owner: str, since: Nanos, clock: Clock, recall: Recall) -> None:
        self._client = client
        self._clock = clock
        self._known = Known(client.name, owner, client.system)
        self._known.newest = since
        self._bad = BadRows(client.name)
        self._alerts: dict[int, str] = {}
        self._asked_for: deque[int] = deque()
        self.frame_now = Frame()
        """Sites and allocations as of the last look."""
        self.updated = since
        """The newest change of a job, by the server's clock."""
        self._since = since
        self._recall = recall
        self.due: deque[Step] = deque()
        self.begin()

    def begin(self, *, again: bool = False) -> None:
        """Let everything be asked that there is to know; again when what was told holds no more."""
        self.due.clear()
        self._recall.begin(distrusted=again)
        self.due.extend(
            (
                self.frame,
                *((self._recalled,) if self._recall.is_used else ()),
                self.live_jobs(),
                self.jobs(self._since, then_events=False),
                _when_due(lambda: self.events(self._recall.ask_from(self._since))),
                self.frame,  # running allocations have a start by their first events only
            )
        )

    def begin_again_if_back(self) -> bool:
        """Begin anew where the server's ids went back; whether they did.

        Every known job is asked about by its id: some may be no more, or as they were before.
        """
        if not self._known.went_back:
            return False
        self._known.forget_events()
        self.begin(again=True)
        self._asked_for.clear()
        self._ask_for(list(self._known.rows))
        return True

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
        are_new = bool(named.keys() - known.sites.keys())
        known.take_sites(named)
        if are_new or not known.apps:
            apps = await self._client.rows("/apps/", AppRow, {"limit": ALLOCATIONS_ASKED})
            known.apps.update((app.id, app) for app in apps.rows)
        known.allocations.update((row.id, ids_of(row, self._client.label)) for row in batch_jobs.rows)
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
        left: deque[Decoded[JobRow]] = deque()
        more_pages = True

        async def step() -> Batch:
            nonlocal offset, more_pages
            if not left:
                asked: Parameters = {
                    "state": LIVE_STATES, "ordering": "id", "limit": PAGE_ROWS, "offset": offset
                }  # fmt: skip
                page = await self._client.rows("/jobs/", JobRow, asked)
                offset += PAGE_ROWS
                more_pages = offset < page.count and page.received > 0
                left.extend(_slices(page))
            part = left.popleft()
            found.update(row.id for row in part.rows)
            more = bool(left) or more_pages
            if not more:
                rows = self._known.rows.values()
                self._ask_for([row.id for row in rows if row.state in LIVE_STATES and row.id not in found])
            return self._of_jobs(part, more=more)

        return step

    def jobs(self, since: Nanos, *, then_events: bool = True) -> Step:
        """Jobs that were changed since a time by the server's clock, a slice of a page for each call.

        Where there are some, the newest events are asked for next.
        """
        place = _Place(since)
        left: deque[Decoded[JobRow]] = deque()
        changed: list[JobRow] = []

        async def step() -> Batch:
            if not left:
                asked: Parameters = {
                    "last_update_after": _text_of(place.begin), "ordering": "last_update",
                    "limit": PAGE_ROWS, "offset": place.offset,
                }  # fmt: skip
                page = await self._client.rows("/jobs/", JobRow, asked)
                place.go_on(page.received, (time_of(row.last_update) for row in page.rows[-1:]))
                left.extend(_slices(page))
            part = left.popleft()
            self.updated = max(self.updated, place.begin)
            changed.extend(row for row in part.rows if self._known.rows.get(row.id) != row)
            more = bool(left) or place.has_more
            if changed and not more and then_events:
                self.due.append(self.events(Nanos(self._known.newest - OVERLAP_S * SECOND), changed))
            return self._of_jobs(part, more=more)

        return step

    def _of_jobs(self, page: Decoded[JobRow], *, more: bool = False) -> Batch:
        fresh = self._known.take_jobs(page.rows)
        bad = self._bad.count("/jobs/", page.rows, page.skips)
        return Batch(
            cursor="",
            jobs=tuple(map(self._job, fresh)),
            gone=self._known.let_go(),
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
        return msgspec.structs.replace(batch, gone=(*gone, *batch.gone))

    async def _recalled(self) -> Batch:
        """Events that were kept, some at a time; their jobs are asked for next."""
        found = await self._recall.part(self._since, partial(_times_of, self._client))
        changes = tuple(self._known.take_changes(found))
        return Batch(cursor="", changes=changes, count=len(changes), more=bool(found))

    def events(self, since: Nanos, about: Sequence[JobRow] = ()) -> Step:
        """Events from a time on, a slice of a page for each call, then those of jobs these do not explain."""
        place = _Place(since)
        left: deque[_Events] = deque()

        async def step() -> Batch:
            if not left:
                asked: Parameters = {
                    "timestamp_after": _text_of(place.begin), "ordering": "timestamp", "limit": PAGE_ROWS,
                    "offset": place.offset,
                }  # fmt: skip
                page = await _events_page(self._client, asked)
                place.go_on(page.received, (change.at for change in page.rows[-1:]))
                left.extend(_slices(page))
            batch = self._of_events(left.popleft(), more=bool(left) or place.has_more)
            until = Nanos(min(self._known.newest, self._clock.now()))
            await self._recall.keep(batch.changes, None if batch.more else Stretch(since, until))
            if not batch.more and (silent := self._known.unexplained(about)):
                self.due.append(self._events_of(silent))
            return batch

        return step

    def _events_of(self, numbers: Sequence[int]) -> Step:
        """All events of some jobs, of so many for each call."""
        left = deque(numbers)

        async def step() -> Batch:
            ids = [left[at] for at in range(min(IDS_AT_ONCE, len(left)))]
            asked: Parameters = {"job_id": ids, "ordering": "timestamp", "limit": 4 * PAGE_ROWS}
            page = await _events_page(self._client, asked)
            for _ in ids:
                left.popleft()
            batch = self._of_events(page, more=bool(left))
            self._known.asked_about(ids)
            return batch

        return step

    def _of_events(self, page: "_Events", *, more: bool) -> Batch:
        changes = self._known.take_changes(page.rows)
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


_Events = Decoded[StateChange]
_Row = TypeVar("_Row")


class _Place:
    """Where the next page of a list in the order of time begins: a time, and how many rows after it."""

    def __init__(self, begin: Nanos) -> None:
        self.begin = begin
        self.offset = 0
        self.has_more = True

    def go_on(self, received: int, last: Iterable[Nanos | None]) -> None:
        """After a page of so many rows, with the time of its last one."""
        at = next((at for at in last if at is not None), self.begin)
        # A bulk update stamps more rows alike than a page holds
        self.begin, self.offset = (at, 0) if at > self.begin else (self.begin, self.offset + PAGE_ROWS)
        self.has_more = received >= PAGE_ROWS


def _slices(page: Decoded[_Row]) -> Iterator[Decoded[_Row]]:
    """A page in parts that are dealt with at once; the first one has what made no sense."""
    rows = page.rows
    yield Decoded(page.count, rows[:SLICE_ROWS], page.received, page.skips)
    for begin in range(SLICE_ROWS, len(rows), SLICE_ROWS):
        yield Decoded(page.count, rows[begin : begin + SLICE_ROWS], 0)


async def _events_page(client: BalsamClient, asked: Parameters) -> _Events:
    """One page of events as changes, made in a thread when there are many: their times take a while."""
    page = await client.rows("/events/", EventRow, asked)
    if page.received < SLICE_ROWS:
        return _changes_in(page, client)
    return await asyncio.to_thread(_changes_in, page, client)


async def _times_of(client: BalsamClient, ids: Sequence[int]) -> dict[int, Nanos]:
    page = await _events_page(client, {"id": ids, "limit": len(ids)})
    return {change.id: change.at for change in page.rows}


def _when_due(make: Callable[[], Step]) -> Step:
    """A step that is made when it is its turn: what those before it found out is known by then."""
    made: list[Step] = []

    async def step() -> Batch:
        if not made:
            made.append(make())
        return await made[0]()

    return step


def _changes_in(page: Decoded[EventRow], client: BalsamClient) -> _Events:
    source, system = client.name, client.system
    changes = [change for row in page.rows if (change := change_of(row, source, system)) is not None]
    return Decoded(page.count, changes, page.received, page.skips)


def _text_of(at: Nanos) -> str:
    """A time as the API takes it."""
    moment = datetime.fromtimestamp(max(0, at) // SECOND, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{max(0, at) % SECOND // 1_000:06d}Z"
