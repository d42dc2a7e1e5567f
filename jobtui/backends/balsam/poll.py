"""The questions to a Balsam server, one by one, and what is known from the answers.

Each question is a step that is repeated until it says that there is no more. A step that fails or is
cancelled loses nothing: it is asked again.
"""

import asyncio
from bisect import bisect_left
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice, product
from sys import intern
from typing import Any, Generic, TypeVar

import msgspec

from jobtui.backends.balsam import records
from jobtui.backends.balsam.client import PAGE_ROWS, BalsamClient, Parameters
from jobtui.backends.base import Batch, merged
from jobtui.model.changes import UNLISTED, Allocation, Site, StateChange
from jobtui.model.clock import SECOND, Clock, Nanos, from_seconds, utc_of
from jobtui.model.health import Skip, SourceMissing, rows_of
from jobtui.model.ids import JobId, system_job_id
from jobtui.model.jobs import BLOCKED, DELETED, NOT_DONE, Job, JobStatus
from jobtui.model.numbers import counted, whole
from jobtui.model.state_runs import tag_word

STEP_S = 5.0
"""A clock that goes back by this much was set back; if it is less, the answer may be slow."""
OVERLAP_S = 120
"""How much later than others an event may come and still be found at once."""
SLICE_ROWS = 500
"""How many rows are processed before other tasks have a turn."""
BAD_ROWS_KEPT = 10_000
"""How many rows that make no sense are remembered; more of them would count again."""
IDS_AT_ONCE = 200
ALLOCATIONS_ASKED = 1_000
LIVE_STATES = tuple(state for state, status in records.STATUSES.items() if status.is_live)
"""States that a job leaves again."""

Step = Callable[[], Awaitable[Batch]]
_Row = TypeVar("_Row")
_Made = TypeVar("_Made")


class Questions:
    """Questions to one server, from `since` on, and what it answered. `due` are those to be asked."""

    def __init__(self, client: BalsamClient, owner: str, since: Nanos, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._known = KnownRows(client.name, owner, client.system)
        self._known.newest = since
        self._bad: dict[str, None] = {}
        """Rows that make no sense, by the names they are skipped under."""
        self._alerts: dict[int, str] = {}
        self._lost: list[Skip] = []
        self._asked_for: deque[int] = deque()
        self.frame_now = SitesSnapshot()
        """Sites and allocations as of the last look."""
        self.updated = since
        """The newest change of a job, by the server's clock."""
        self._since = since
        self._ahead_s: float | None = None
        self._back_until = Nanos(0)
        self.due: deque[Step] = deque()
        self.begin()

    def begin(self) -> None:
        self.due.clear()
        self.due.extend(
            (
                self.frame,
                self.live_jobs(),
                self.jobs(self._since, then_events=False),
                self.events(self._since),
                self.frame,  # only its first events say when a running allocation started
            )
        )

    def begin_again_if_back(self) -> bool:
        """Start again if the server's ids went back. Returns whether they did.

        Every known job is asked about by its id: some may be gone, or as they were before.
        """
        if not self._known.went_back:
            return False
        self._known.forget_events()
        self.begin()
        self._asked_for.clear()
        self._ask_for(list(self._known.rows))
        return True

    async def ask(self) -> Batch:
        batch = await self.due[0]()
        if not batch.more:
            self.due.popleft()
        lost, self._lost = tuple(self._lost), []
        return merged((batch, Batch(skipped=lost, skip_count=len(lost)))) if lost else batch

    def _each(self, rows: Iterable[_Row], make: Callable[[_Row], _Made]) -> Iterator[_Made]:
        """The record of each row; a row from which none can be made loses only itself."""

        def lose(row: Any, why: str) -> None:
            self._lost.append(Skip(f"{self._client.name}: {type(row).__name__} {row.id}", why))

        return rows_of(rows, make, lose)

    @property
    def newest(self) -> Nanos:
        return min(self._known.newest, max(self.server_now, self._clock.now()))

    def note_clock(self) -> None:
        """If the server's clock was set back, ask for changes from that much earlier.

        Earlier changes do not count as the newest until that time has come again.
        """
        ahead, before = self._client.ahead_s, self._ahead_s
        if before is not None and ahead < before - STEP_S:
            self._back_until = max(self.updated, self._back_until)
            self.updated = Nanos(self.updated - from_seconds(before - ahead))
        self._ahead_s = ahead if before is None or ahead < before - STEP_S else max(before, ahead)

    async def frame(self) -> Batch:
        known = self._known
        sites = await self._client.rows("/sites/", records.SiteRow, {"limit": ALLOCATIONS_ASKED})
        sessions = await self._client.rows("/sessions/", records.SessionRow, {})
        asked: Parameters = {"ordering": "-start_time", "limit": ALLOCATIONS_ASKED}
        batch_jobs = await self._client.rows("/batch-jobs/", records.BatchJobRow, asked)
        named = {row.id: row for row in sites.rows}
        are_new = bool(named.keys() - known.sites.keys())
        known.take_sites(named)
        if are_new or not known.apps:
            apps = await self._client.rows("/apps/", records.AppRow, {"limit": ALLOCATIONS_ASKED})
            known.apps.update((app.id, app) for app in apps.rows)
        known.allocations.update((row.id, records.ids_of(row, self._client.label)) for row in batch_jobs.rows)
        signs = known.first_signs({row.id for row in batch_jobs.rows if records.is_estimated(row)})
        name = self._client.name
        listed = {row.id for row in batch_jobs.rows}
        is_whole = all(not page.skips and len(page.rows) >= page.count for page in (sites, batch_jobs))
        unlisted = {
            one.batch_job_id: records.BatchJobRow(one.batch_job_id, one.site_id, UNLISTED, num_nodes=0)
            for one in sessions.rows
            if is_whole and one.batch_job_id is not None and one.batch_job_id not in listed
        }
        rows = (*batch_jobs.rows, *unlisted.values())
        allocations = tuple(
            self._each(rows, lambda row: records.allocation_of(row, name, sessions.rows, signs.get(row.id)))
        )
        moved, known.transfers = known.transfers, await self._transfers()
        places = tuple(self._each(sites.rows, lambda site: records.site_of(site, name)))
        self.frame_now = SitesSnapshot(places, allocations, self._clock.now())
        read = (("/sites/", sites), ("/sessions/", sessions), ("/batch-jobs/", batch_jobs))
        skipped = [self._skipped(path, page) for path, page in read]
        found = Batch(
            jobs=self._newly_alerted(moved),
            sites=places,
            allocations=allocations,
            is_whole_frame=is_whole,
            count=len(batch_jobs.rows),
        )
        return merged((found, *skipped))

    def _skipped(self, path: str, page: records.DecodedList[Any]) -> Batch:
        """The rows of a page that are skipped for the first time, and how many are good again."""
        fresh = tuple(skip for skip in page.skips if skip.where not in self._bad)
        mended = {f"{self._client.name}{path}{row.id}" for row in page.rows} if self._bad else set()
        mended &= self._bad.keys()
        for key in mended:
            del self._bad[key]
        for skip in fresh[: max(0, BAD_ROWS_KEPT - len(self._bad))]:
            self._bad[skip.where] = None
        return Batch(skipped=fresh, skip_count=len(fresh), recovered=len(mended))

    async def _transfers(self) -> dict[int, records.Needs]:
        """The files that waiting jobs still need, or that must be moved away: first those that failed.

        A job with a failed transfer stays as it is.
        """
        found: dict[int, records.Needs] = {}
        states = sorted({row.state for row in self._known.waiting() if row.state != AWAITING_PARENTS})
        for state, of in product(states, (["error"], UNDER_WAY)):
            asked: Parameters = {"state": of, "job_state": state, "limit": ALLOCATIONS_ASKED}
            try:
                page = await self._client.rows("/transfers/", records.TransferRow, asked)
            except SourceMissing:
                return {}  # a server without transfers
            for row in page.rows:
                found[row.job_id] = (*found.get(row.job_id, ()), records.transfer_of(row))
        return found

    @property
    def server_now(self) -> Nanos:
        return Nanos(self._clock.now() + from_seconds(self._client.ahead_s))

    def _newly_alerted(self, moved: Mapping[int, records.Needs]) -> tuple[Job, ...]:
        """The jobs with an alert that is new or over, or with a transfer that changed."""
        known, now, before = self._known, self.server_now, self._alerts
        stale = {one.id: one for one in self.frame_now.allocations if one.is_stale(now)}
        down = {site.id: site for site in self.frame_now.sites if site.is_down(now)}
        found = {row.id: said for row in known.waiting() if (said := known.trouble(row, now)) is not None}
        for row in known.rows.values() if stale or down else ():
            if row.state == "RUNNING" and row.batch_job_id in stale:
                who, heard_at = "its launcher", stale[row.batch_job_id].heartbeat_at
            elif row.state in FOR_AGENT and (site := known.site_of(row)) in down:
                who, heard_at = "the agent of its site", down[site].seen_at
            else:
                continue
            found.setdefault(row.id, f"{who} was last heard from at {clock(heard_at)}")
        self._alerts = found
        pairs = ((before, found), (moved, known.transfers))
        numbers = {n for old, new in pairs for n in old.keys() | new.keys() if old.get(n) != new.get(n)}
        rows = (known.rows[number] for number in sorted(numbers) if number in known.rows)
        return tuple(self._each(rows, self._job))

    def _job(self, row: records.JobRow) -> Job:
        alert = self._alerts.get(row.id) or self._known.trouble(row, self.server_now)
        return self._known.job(row, alert)

    def live_jobs(self) -> Step:
        """Jobs that are not over, however long ago they changed. If known ones are missing in the answer,
        these are asked about by their ids."""
        found: set[int] = set()

        def ask(since: Nanos, paged: Parameters) -> Awaitable[records.DecodedList[records.JobRow]]:
            return self._client.rows(
                "/jobs/", records.JobRow, {"state": LIVE_STATES, "ordering": "id", **paged}
            )

        pages = _PageSlices(ask, Nanos(0), lambda row: None)

        async def step() -> Batch:
            part = await pages.next()
            found.update(row.id for row in part.rows)
            batch = self._of_jobs(part, more=pages.has_more)
            if not pages.has_more:
                rows = self._known.rows.values()
                self._ask_for([row.id for row in rows if row.state in LIVE_STATES and row.id not in found])
            return batch

        return step

    def deleted_jobs(self) -> Step:
        """Find deleted jobs: in some interval the server has fewer changed jobs than are known here.

        Such an interval is halved until its jobs can be asked about by their ids.
        """
        times = sorted(
            (at, row.id)
            for row in self._known.rows.values()
            if (at := records.time_of(row.last_update)) is not None and at >= self._since
        )
        left = deque([times] if times else [])

        async def step() -> Batch:
            if left:
                part = left.popleft()
                first, middle, last = part[0][0], part[len(part) // 2][0], part[-1][0]
                # Rows of one time stay together, as an interval has all rows of a time
                half = bisect_left(part, (middle,)) or bisect_left(part, (Nanos(middle + 1),))
                if len(part) <= PAGE_ROWS or first == last:
                    asked: Parameters = {
                        "last_update_after": _text_of(first), "last_update_before": _text_of(last), "limit": 0
                    }  # fmt: skip
                    is_whole = (await self._client.rows("/jobs/", records.JobRow, asked)).count >= len(part)
                else:
                    is_whole = False
                if not is_whole and (len(part) <= IDS_AT_ONCE or first == last):
                    self._ask_for([number for _, number in part])
                elif not is_whole:
                    left.extend((part[:half], part[half:]))
            return Batch(more=bool(left))

        return step

    def jobs(self, since: Nanos, *, then_events: bool = True) -> Step:
        """Jobs that changed since a time by the server's clock, a slice of a page for each call.

        If there are some, the newest events are asked for next.
        """
        changed: list[records.JobRow] = []

        def ask(since: Nanos, paged: Parameters) -> Awaitable[records.DecodedList[records.JobRow]]:
            asked = {"last_update_after": _text_of(since), "ordering": "last_update", **paged}
            return self._client.rows("/jobs/", records.JobRow, asked)

        pages = _PageSlices(ask, since, lambda row: records.time_of(row.last_update))

        async def step() -> Batch:
            part = await pages.next()
            is_back = self.server_now < self._back_until  # no change is later than now
            self.updated = max(self.updated, min(pages.begin, self.server_now if is_back else pages.begin))
            changed.extend(row for row in part.rows if self._known.rows.get(row.id) != row)
            if changed and not pages.has_more and then_events:
                self.due.append(self.events(Nanos(self._known.newest - OVERLAP_S * SECOND), changed))
            return self._of_jobs(part, more=pages.has_more)

        return step

    def _of_jobs(self, page: records.DecodedList[records.JobRow], *, more: bool = False) -> Batch:
        known = self._known
        fresh = [row for row in self._each(page.rows, known.take_job) if row is not None]
        known.parents_to_ask -= known.rows.keys()
        if known.parents_to_ask and self._parents not in self.due:
            self.due.append(self._parents)
        found = Batch(
            jobs=tuple(self._each((*fresh, *known.dependents(row.id for row in fresh)), self._job)),
            gone=known.let_go(),
            count=len(fresh),
            more=more,
        )
        return merged((found, self._skipped("/jobs/", page)))

    def _ask_for(self, numbers: Sequence[int]) -> None:
        if numbers and not self._asked_for:
            self.due.append(self._missing_jobs)
        self._asked_for.extend(numbers)

    async def _parents(self) -> Batch:
        """Ask about parents of waiting jobs if no row of them came meanwhile."""
        known = self._known
        self._ask_for(sorted(known.parents_to_ask - known.rows.keys() - known.missing))
        known.parents_to_ask.clear()
        return Batch()

    async def _missing_jobs(self) -> Batch:
        """Jobs for which only events were seen, or that may have been deleted."""
        ids = list(dict.fromkeys(self._asked_for))[:IDS_AT_ONCE]
        page = await self._client.rows("/jobs/", records.JobRow, {"id": ids, "limit": len(ids)})
        asked = set(ids)
        self._asked_for = deque(number for number in self._asked_for if number not in asked)
        deleted = asked - {row.id for row in page.rows} if not page.skips else set()
        gone = self._known.delete(deleted)
        batch = self._of_jobs(page, more=bool(self._asked_for))
        held = self._each(self._known.dependents(deleted), self._job)
        return msgspec.structs.replace(
            batch,
            jobs=(*batch.jobs, *held),
            gone=(*gone, *batch.gone),
            deleted=tuple(system_job_id(self._client.system, number) for number in deleted),
        )

    async def _events_page(self, asked: Parameters) -> records.DecodedList[StateChange]:
        """One page of events as changes, made in a thread: parsing their times takes a while."""
        client = self._client
        page = await client.rows("/events/", records.EventRow, asked)
        return await asyncio.to_thread(records.changes_in, page, client.name, client.system)

    def events(self, since: Nanos, about: Sequence[records.JobRow] = ()) -> Step:
        """Events from a time on, a slice of a page per call, then those of jobs in unexplained states."""

        def ask(since: Nanos, paged: Parameters) -> Awaitable[records.DecodedList[StateChange]]:
            asked = {"timestamp_after": _text_of(since), "ordering": "timestamp", **paged}
            return self._events_page(asked)

        pages = _PageSlices(ask, since, lambda one: one.at)

        async def step() -> Batch:
            part = await pages.next()
            batch = self._of_events(part, more=pages.has_more)
            if not batch.more and (silent := self._known.unexplained(about)):
                self.due.append(self._events_of(silent))
            return batch

        return step

    def _events_of(self, numbers: Sequence[int]) -> Step:
        left = deque(numbers)

        async def step() -> Batch:
            ids = [left[at] for at in range(min(IDS_AT_ONCE, len(left)))]
            asked: Parameters = {"job_id": ids, "ordering": "timestamp", "limit": 4 * PAGE_ROWS}
            page = await self._events_page(asked)
            for _ in ids:
                left.popleft()
            batch = self._of_events(page, more=bool(left))
            self._known.asked_about(ids)
            return batch

        return step

    def _of_events(self, page: records.DecodedList[StateChange], *, more: bool) -> Batch:
        known = self._known
        changes = [one for one in self._each(page.rows, known.take_change) if one is not None]
        numbers = dict.fromkeys(map(known.number_of, changes))
        self._ask_for([number for number in numbers if number not in known.rows])
        rows = (known.rows[number] for number in numbers if number in known.rows)
        found = Batch(
            jobs=tuple(self._each(rows, self._job)), changes=tuple(changes), count=len(changes), more=more
        )
        return merged((found, self._skipped("/events/", page)))


class _PageSlices(Generic[_Row]):
    """The pages of a list, a slice at a time; `begin` is how far back to ask. The next page of a list in
    order of time begins at the time of the last row, of others at an offset.
    """

    def __init__(
        self,
        ask: Callable[[Nanos, Parameters], Awaitable[records.DecodedList[_Row]]],
        since: Nanos,
        time_of_row: Callable[[_Row], Nanos | None],
    ) -> None:
        self._ask = ask
        self._time_of_row = time_of_row
        self._left: deque[records.DecodedList[_Row]] = deque()
        self._offset = 0
        self._is_last = False
        self.begin = since

    @property
    def has_more(self) -> bool:
        return bool(self._left) or not self._is_last

    async def next(self) -> records.DecodedList[_Row]:
        if not self._left:
            page = await self._ask(self.begin, {"limit": PAGE_ROWS, "offset": self._offset})
            times = map(self._time_of_row, page.rows[-1:])
            at = next((at for at in times if at is not None), self.begin)
            # A bulk update gives the same time to more rows than a page holds
            self.begin, self._offset = (at, 0) if at > self.begin else (self.begin, self._offset + PAGE_ROWS)
            self._is_last = page.received < PAGE_ROWS
            # Rows that made no sense count with the first slice
            skips, received = page.skips, page.received
            for start in range(0, len(page.rows) or 1, SLICE_ROWS):
                self._left.append(
                    records.DecodedList(page.count, page.rows[start : start + SLICE_ROWS], received, skips)
                )
                skips, received = (), 0
        return self._left.popleft()


def _text_of(at: Nanos) -> str:
    at = Nanos(max(0, at))
    return f"{utc_of(at):%Y-%m-%dT%H:%M:%S}.{at % SECOND // 1_000:06d}Z"


JOBS_KEPT = 200_000
AWAITING_PARENTS, FINISHED, FAILED = "AWAITING_PARENTS", "JOB_FINISHED", "FAILED"
WAITING = frozenset({AWAITING_PARENTS, "READY", "POSTPROCESSED"})
"""States in which a job waits for other jobs, or for its files to be brought in or away."""
UNDER_WAY = ["pending", "active", "inactive"]
"""States of transfers that are neither done nor given up."""
HOPELESS = frozenset({FAILED, DELETED, BLOCKED})
RUNNABLE = frozenset({"PREPROCESSED", "RESTART_READY"})
PARENTS_KEPT = 100
RELATED_MOST = 5_000
"""The most jobs that are checked for one, among its parents or its children."""
RELEASED_S = 60
"""A job is released as soon as its parents have finished; after this time that failed."""
SEEN_KEPT = 400_000
"""How many of the newest events are recognized: more than arrive while older ones are read."""


class KnownRows:
    """Rows and events of one server. `source` is its name, `owner` whose jobs they are.

    `system` is what the ids of its jobs begin with.
    """

    def __init__(self, source: str, owner: str, system: str = records.SYSTEM) -> None:
        self._source = source
        self._system = system
        self._prefix = len(f"{system}/")
        self._owner = owner
        self._lives: dict[int, records.Lifetime] = {}
        self._seen: dict[int, Nanos] = {}
        self._seen_before: dict[int, Nanos] = {}
        self._silent: dict[int, str] = {}
        self.rows: dict[int, records.JobRow] = {}
        self.apps: dict[int, records.AppRow] = {}
        self.sites: dict[int, records.SiteRow] = {}
        self.allocations: dict[int, str] = {}
        """The ids by which each allocation is known: its own and the scheduler's."""
        self.transfers: dict[int, records.Needs] = {}
        """Which files are still to be brought to jobs, or away from them."""
        self.missing: set[int] = set()
        """Jobs that were asked about and are gone."""
        self.parents_to_ask: set[int] = set()
        """Parents of waiting jobs without a known row."""
        self._children: dict[int, set[int]] = {}
        self._waiting: set[int] = set()
        self.newest = Nanos(0)
        """The newest time of an event."""
        self.went_back = False
        """Whether an id came again for another event or site: a backup, or a server that was set up again."""

    def take_sites(self, sites: Mapping[int, records.SiteRow]) -> None:
        """Learn which sites exist. One with the same id and another time of creation is another site.

        So a server that was set up again is noticed with its first site, even if no event's id is used again.
        """
        known = self.sites
        if any(id in known and known[id].creation_date != site.creation_date for id, site in sites.items()):
            self.went_back = True
            self.apps.clear()
        self.sites = dict(sites)

    def take_job(self, row: records.JobRow) -> records.JobRow | None:
        if self.rows.get(row.id) == row:
            return None
        # Move it to the end: the change of the first was seen longest ago
        self.rows.pop(row.id, None)
        self.rows[row.id] = row
        self.missing.discard(row.id)
        (self._waiting.add if row.state in WAITING else self._waiting.discard)(row.id)
        if row.state == AWAITING_PARENTS:
            for parent in row.parent_ids[:PARENTS_KEPT]:
                self._children.setdefault(parent, set()).add(row.id)
            self.parents_to_ask.update(row.parent_ids[:PARENTS_KEPT])
        return row

    def waiting(self) -> Iterator[records.JobRow]:
        return (self.rows[number] for number in self._waiting)

    def dependents(self, numbers: Iterable[int]) -> list[records.JobRow]:
        found: dict[int, records.JobRow] = {}
        left = deque(numbers)
        while left and len(found) < RELATED_MOST:
            for child in self._children.get(left.popleft(), ()):
                row = self.rows.get(child)
                if row is not None and row.state == AWAITING_PARENTS and child not in found:
                    found[child] = row
                    left.append(child)
        return list(found.values())

    def needs(self, row: records.JobRow) -> records.Needs:
        if row.state != AWAITING_PARENTS:
            return self.transfers.get(row.id, ()) if row.state in WAITING else ()
        found = [
            (str(system_job_id(self._system, number)), self._state(number))
            for number in row.parent_ids[:PARENTS_KEPT]
        ]
        return tuple(sorted(found, key=lambda one: (one[1] not in HOPELESS, one[1] == FINISHED)))

    def _state(self, number: int) -> str:
        row = self.rows.get(number)
        if row is None:
            return DELETED if number in self.missing else ""
        return BLOCKED if row.state == AWAITING_PARENTS and self._is_blocked(row) else row.state

    def _is_blocked(self, row: records.JobRow) -> bool:
        """Whether a waiting job waits, perhaps through others, for one that has failed or was deleted."""
        left, looked_at = deque(row.parent_ids), set(row.parent_ids)
        while left and len(looked_at) < RELATED_MOST:
            number = left.popleft()
            parent = self.rows.get(number)
            if number in self.missing if parent is None else parent.state == FAILED:
                return True
            if parent is not None and parent.state == AWAITING_PARENTS:
                fresh = set(parent.parent_ids) - looked_at
                looked_at |= fresh
                left.extend(fresh)
        return False

    def trouble(self, row: records.JobRow, now: Nanos) -> str | None:
        """In words, what a waiting job will never get. `now` is the server's."""
        needs = self.needs(row)
        if not needs:
            return None
        name, state = needs[0]
        if row.state != AWAITING_PARENTS:
            return f"{name} failed" if state.startswith(NOT_DONE) else None
        if state in HOPELESS:
            return f"its parent {name} is {state}"
        parents = [self.rows.get(number) for number in row.parent_ids]
        ended = [
            records.time_of(one.last_update) for one in parents if one is not None and one.state == FINISHED
        ]
        if len(ended) == len(parents) and all(
            at is not None and now - at > RELEASED_S * SECOND for at in ended
        ):
            return "its parents have finished, and it was not released"
        return None

    def let_go(self) -> tuple[JobId, ...]:
        surplus = len(self.rows) - JOBS_KEPT
        return self.drop(list(islice(self.rows, surplus))) if surplus > 0 else ()

    def take_change(self, change: StateChange) -> StateChange | None:
        known_at = self._seen.get(change.id, self._seen_before.get(change.id))
        if known_at == change.at:
            return None
        self.went_back = self.went_back or known_at is not None
        if len(self._seen) > SEEN_KEPT // 2:  # in two halves, so that dropping takes no time
            self._seen_before, self._seen = self._seen, {}
        self._seen[change.id] = change.at
        self.newest = max(self.newest, change.at)
        self._lives.setdefault(self.number_of(change), records.Lifetime()).take(change)
        return change

    def unexplained(self, rows: Iterable[records.JobRow]) -> list[int]:
        """Jobs in a state that no known event explains: the clock of its sender may be wrong.

        Each is named once for each change of its row, as there may be no such event.
        """
        found = []
        for row in rows:
            life = self._lives.get(row.id)
            if (life is None or life.state != row.state) and self._silent.get(row.id) != row.last_update:
                found.append(row.id)
        return found

    def asked_about(self, numbers: Iterable[int]) -> None:
        """Note that all events of these jobs were asked for; perhaps none explains their state."""
        for number in numbers:
            if number in self.rows:
                self._silent[number] = self.rows[number].last_update

    def forget_events(self) -> None:
        """Have all events read again, as the server no longer has some that were read."""
        for kept in (self._lives, self._silent, self._seen, self._seen_before, self.missing):
            kept.clear()
        self.went_back = False

    def delete(self, numbers: Iterable[int]) -> tuple[JobId, ...]:
        numbers = set(numbers)
        self.missing = (self.missing if len(self.missing) < JOBS_KEPT else set()) | numbers
        return self.drop(numbers)

    def drop(self, numbers: Iterable[int]) -> tuple[JobId, ...]:
        ids = []
        for number in numbers:
            self._lives.pop(number, None)
            self._silent.pop(number, None)
            self._waiting.discard(number)
            if self.rows.pop(number, None) is not None:
                ids.append(system_job_id(self._system, number))
        return tuple(ids)

    def job(self, row: records.JobRow, alert: str | None = None) -> Job:
        """A job in the form of all systems. Its times come from its events, as its row has only the last."""
        app, life = self.apps.get(row.app_id), self._lives.get(row.id, records.Lifetime())
        site = self.sites.get(app.site_id) if app is not None else None
        status, updated = records.STATUSES.get(row.state, JobStatus.UNKNOWN), records.time_of(row.last_update)
        message = records.WAITS.get(row.state)
        if row.state == AWAITING_PARENTS:
            message = counted(len(row.parent_ids), "parent job")
        elif row.state == "RESTART_READY" and life.error is not None:
            message = "a launcher, to run again after an error"
        return Job(
            id=system_job_id(self._system, row.id),
            system=records.SYSTEM,
            status=status,
            native_status=row.state,
            source=self._source,
            owner=self._owner,
            name=row.workdir or None,
            app=app.name if app else "",
            queued_at=life.queued_at,
            started_at=life.started_at,
            updated_at=updated,
            ended_at=None if status.is_live else life.ended_at or updated,
            written_at=updated,
            runs=life.runs,
            message=message,
            error=life.error if status is JobStatus.FAILED and life.error_id > life.over_id else None,
            alert=alert,
            host=site.name or None if site else None,
            tags=intern(" ".join(tag_word(name, value) for name, value in row.tags.items())),
            passed=life.passed,
            allocation=self.allocations.get(row.batch_job_id, "") if row.batch_job_id is not None else "",
            needs=self.needs(row),
        )

    def site_of(self, row: records.JobRow) -> int | None:
        app = self.apps.get(row.app_id)
        return None if app is None else app.site_id

    def first_signs(self, allocations: Collection[int]) -> dict[int, Nanos]:
        """When the first job began to run in each of these allocations, which have no start before their end.

        Only the last run of a job counts: its row names its last allocation, and earlier runs were in others.
        The last run of a job that was taken and has not begun yet was in another one.
        """
        found: dict[int, Nanos] = {}
        for row in self.rows.values() if allocations else ():
            life = self._lives.get(row.id)
            if row.batch_job_id not in allocations or life is None or life.started_at is None:
                continue
            is_taken = row.session_id is not None and row.state in RUNNABLE
            if not is_taken and life.state == row.state:
                assert row.batch_job_id is not None
                found[row.batch_job_id] = min(life.started_at, found.get(row.batch_job_id, life.started_at))
        return found

    def number_of(self, change: StateChange) -> int:
        return whole(change.job_id[self._prefix :], 0)


CLOCK_S = 60.0
"""How far a server's clock may be wrong without a note."""
FOR_AGENT = frozenset({"READY", "STAGED_IN", "RUN_DONE", "RUN_ERROR", "RUN_TIMEOUT", "POSTPROCESSED"})
"""States that a job leaves only through a site's agent."""


class SitesSnapshot(msgspec.Struct, frozen=True):
    """Sites and allocations as of the last answer, and its time."""

    sites: tuple[Site, ...] = ()
    allocations: tuple[Allocation, ...] = ()
    at: Nanos = Nanos(0)


def clock(at: Nanos | None) -> str:
    """A time of day that does not change while it is shown."""
    seconds = (at or 0) // SECOND % 86_400
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}Z"


def notes_of(frame: SitesSnapshot, ahead_s: float) -> Iterator[str]:
    now = Nanos(frame.at + from_seconds(ahead_s))
    if abs(ahead_s) >= CLOCK_S:
        yield f"the server's clock is {abs(ahead_s) / 60:.0f} min {'ahead' if ahead_s > 0 else 'behind'}"
    for site in frame.sites:
        if site.is_down(now):
            yield f"the agent of site {site.name} was last heard from at {clock(site.seen_at)}"
    for one in frame.allocations:
        if one.is_stale(now):
            launcher = f"launcher was last heard from at {clock(one.heartbeat_at)}"
            what = launcher if one.launchers else "allocation runs and has no launcher"
            yield f"batch job {one.id}: its {what}"
