"""The questions to a Balsam server, one by one, and what is known from the answers."""

import asyncio
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from copy import copy
from itertools import islice, product
from sys import intern
from typing import Any, NamedTuple, TypeVar

import msgspec

from jobtui.backends.balsam import records
from jobtui.backends.balsam.client import PAGE_ROWS, BalsamClient, Parameters
from jobtui.backends.base import Batch, PolledSource, SourceParts, merged
from jobtui.model.bounded import Bounded
from jobtui.model.changes import OPEN, UNLISTED, Allocation, StateChange, serving, tag_word
from jobtui.model.clock import DAY, SECOND, Nanos, from_seconds, seconds_between, to_rfc3339
from jobtui.model.health import Skip, SourceError, SourceMissing, rows_of
from jobtui.model.ids import JobId, system_job_id
from jobtui.model.jobs import BLOCKED, DELETED, NO_SESSION, NOT_DONE, Job, JobStatus
from jobtui.model.numbers import counted, whole

STEP_S = 5.0
"""A clock that goes back by this much was set back; if it is less, the answer may be slow."""
OVERLAP_S = 120
"""How much later than others an event may come and still be found at once."""
SLICE_ROWS = 500
"""How many rows are processed before other tasks have a turn."""
BAD_ROWS_KEPT = 10_000
"""How many rows that make no sense are remembered; more of them would count again."""
IDS_AT_ONCE = 200
RESYNC_S = 3600
"""How far back older events are read from time to time."""
COMMIT_S = 5
"""How long after its noted time a change may become visible."""
FRAME_EVERY, DELETED_EVERY, RESYNC_EVERY = 8, 30, 150
"""After how many polls allocations, sites and launchers, deleted jobs, and late events are asked for."""
FRAME_S = 30
"""How often allocations, sites and launchers are asked for."""
ALLOCATIONS_ASKED = 1_000
LIVE: Mapping[str, Any] = {
    "state": [state for state, status in records.STATUSES.items() if status.is_live], "ordering": "id"
}  # fmt: skip
"""Jobs in states that they leave again."""
CLOCK_S = 60.0
"""How far a server's clock may be wrong without a note."""
FOR_AGENT = frozenset({"READY", "STAGED_IN", "RUN_DONE", "RUN_ERROR", "RUN_TIMEOUT", "POSTPROCESSED"})
"""States that a job leaves only through a site's agent."""
JOBS, EVENTS, TRANSFERS, SITES, SESSIONS, BATCH_JOBS, APPS = (
    "jobs", "events", "transfers", "sites", "sessions", "batch-jobs", "apps"
)  # fmt: skip
ROWS: Mapping[str, type[Any]] = {
    JOBS: records.JobRow, EVENTS: records.EventRow, TRANSFERS: records.TransferRow, SITES: records.SiteRow,
    SESSIONS: records.SessionRow, BATCH_JOBS: records.BatchJobRow, APPS: records.AppRow,
}  # fmt: skip
"""The server's lists, and what their rows are."""
FRAME: Mapping[str, Parameters] = {
    SITES: {"limit": ALLOCATIONS_ASKED}, SESSIONS: {},
    BATCH_JOBS: {"ordering": "-start_time", "limit": ALLOCATIONS_ASKED},
}  # fmt: skip
"""Those that are asked for together, and rarely; with them, what has to be transferred."""
NO_ROWS: records.DecodedList[Any] = records.DecodedList(0, [], 0)

_Row = TypeVar("_Row")
_Made = TypeVar("_Made")


class Request(NamedTuple):
    """A page of one of the server's lists."""

    path: str
    asked: Parameters


Question = Generator[Request | Batch, Any, None]
"""Yields requests, is sent the answers, and yields what they bring. It waits while there is no answer."""


def _pages(
    path: str,
    asked: Parameters,
    take: Callable[[records.DecodedList[Any], Nanos], Batch],
    since: tuple[str, Nanos] | None = None,
) -> Question:
    """What `take` gives for each slice of each page, and how far in time the page goes.

    The next page of a list `since` a time, in its order, begins at the time of the last row, of others
    at an offset. So it does where a bulk update gave the same time to more rows than a page holds.
    """
    after, begin = since or ("", Nanos(0))
    offset, received = 0, PAGE_ROWS
    while received >= PAGE_ROWS:
        times = {after: to_rfc3339(Nanos(max(0, begin)))} if after else {}
        page = yield Request(path, {**asked, **times, "limit": PAGE_ROWS, "offset": offset})
        last = page.rows[-1] if page.rows and after else None
        at = last.at if isinstance(last, StateChange) else last and records.time_of(last.last_update)
        at = begin if at is None else at
        begin, offset = (at, 0) if at > begin else (begin, offset + PAGE_ROWS)
        received, skips = page.received, page.skips
        for start in range(0, len(page.rows) or 1, SLICE_ROWS):
            rows = page.rows[start : start + SLICE_ROWS]
            yield take(records.DecodedList(page.count, rows, len(rows), skips), begin)
            skips = ()  # rows that made no sense count with the first slice


async def _answer_to(client: BalsamClient, request: Request) -> records.DecodedList[Any]:
    try:
        page = await client.rows(f"/{request.path}/", ROWS[request.path], request.asked)
    except SourceMissing:
        if request.path != TRANSFERS:
            raise
        return NO_ROWS  # a server without transfers
    if request.path == EVENTS:  # parsing their times takes a while
        return await asyncio.to_thread(records.changes_in, page, client.name, client.system)
    return page


class Questions:
    """What is asked of one server, one by one, from `since` on, and what it answered.

    One that fails while others are answered goes to the end, and is asked again later. A question is known by
    its name, which begins with that of its list. The same one is not due twice.
    """

    def __init__(self, client: BalsamClient, owner: str, since: Nanos, source: PolledSource) -> None:
        self._client = client
        self._source = source
        self.parts = SourceParts(source, JOBS)
        self._due: dict[str, tuple[Question, Request | Batch | None]] = {}
        """Each with what it yielded and was not dealt with yet."""
        self.known = KnownRows(client.name, owner, client.system)
        self.known.newest = since
        self._bad: Bounded[str, None] = Bounded(BAD_ROWS_KEPT)
        """Rows that make no sense, by the names they are skipped under."""
        self._alerts: dict[int, tuple[str | None, records.Needs]] = {}
        self._lost: list[Skip] = []
        self._asked_for: dict[int, None] = {}
        """Jobs for which only events were seen, or that may have been deleted."""
        self._changed: dict[int, None] = {}
        """Jobs that changed since events were last read."""
        self._silent: dict[int, None] = {}
        """Those in a state that no known event explains."""
        self._lists: dict[str, records.DecodedList[Any]] = {}
        """The last answers about sites, launchers and allocations."""
        self._are_lists_new = False
        self._frame_now = Batch()
        self._offered: object = None
        """What all sites offered when the jobs that it concerns were last given."""
        self.updated = since
        """The newest change of a job, by the server's clock."""
        self._since = since
        self._polls = 0
        self._back_at: Nanos | None = None
        """When the server's ids were seen to go back."""
        self._ahead_s: float | None = None
        self._begin()

    def _add(self, name: str, question: Question) -> None:
        self._due.setdefault(name, (question, None))

    def next_step(self) -> tuple[str, Request | Batch] | None:
        """The step of a question that may be asked now, with its name."""
        for name in filter(self.parts.may_ask, tuple(self._due)):
            step = self._due[name][1] or self._go_on(name)
            if step is not None:
                return name, step
        return None

    def _go_on(self, name: str, answer: object = None) -> Request | Batch | None:
        """What a question yields next; None when it is over."""
        question, step = self._due.pop(name)[0], None
        with suppress(StopIteration):
            step = question.send(answer)
            self._due = {name: (question, step), **self._due}
        return step

    async def _answer_of(self, name: str, request: Request) -> Batch | None:
        """What the answer to a request brings, None if it is nothing or the request fails alone."""
        try:
            answer = await _answer_to(self._client, request)
        except SourceError as error:
            self._due[name] = self._due.pop(name)  # the others come first
            others = (one for one in (SITES, APPS) if one != request.path and not self.parts.fails(one))
            if (other := next(others, None)) is None:
                raise
            await self._client.rows(f"/{other}/", dict, {"limit": 1})  # raises if nothing is answered
            self.parts.fail(name, error)
            return None
        self.parts.take(name)
        step = self._go_on(name, answer)
        return step if isinstance(step, Batch) else None

    def _begin(self) -> None:
        self._due.clear()
        self._add(SITES, self._read_list(SITES, self._take_sites))
        self._add(APPS, self._apps())  # before jobs, which have their hosts from them
        self._add_frame()
        self._add("jobs that are not over", self._live_jobs())
        self._add(JOBS, self._changed_jobs(self._since, then_events=False))
        self._add(EVENTS, self._events(0))
        self._add(TRANSFERS, self._transfers())  # and only now is known when running allocations began

    def _add_frame(self) -> None:
        self._add(SITES, self._read_list(SITES, self._take_sites))
        self._add(SESSIONS, self._read_list(SESSIONS, lambda page: Batch()))
        self._add(BATCH_JOBS, self._read_list(BATCH_JOBS, self._take_batch_jobs))

    def _plan(self) -> None:
        """Ask again what was answered, each at its time."""
        poll = self._polls = self._polls + 1
        ahead, before = self._client.ahead_s, self._ahead_s
        is_back = before is not None and ahead < before - STEP_S
        if before is not None and is_back:  # what changed is asked for from that much earlier
            self.updated = Nanos(self.updated - from_seconds(before - ahead))
        self._ahead_s = ahead if before is None or is_back else max(before, ahead)
        is_framed = poll % FRAME_EVERY == 0
        framed_at = max(map(self.parts.read_at, FRAME))
        if is_framed or seconds_between(framed_at, self._source.clock.now()) > FRAME_S:
            self._add_frame()  # first, so that nothing is judged by old heartbeats
            self._add(TRANSFERS, self._transfers())
        self._add(JOBS, self._changed_jobs(Nanos(self.updated - COMMIT_S * SECOND)))
        is_wide = poll % RESYNC_EVERY == 0
        if is_framed or is_wide:
            self._add(EVENTS, self._events(RESYNC_S if is_wide else OVERLAP_S))
        if poll % DELETED_EVERY == 0:
            self._add("jobs that may be gone", self._deleted_jobs())
        if is_wide:
            self._add("jobs that are not over", self._live_jobs())

    async def ask(self) -> Batch:
        """What the next question brings. Raises SourceError when nothing is answered."""
        if self.next_step() is None:
            self._plan()
        if (found := self.next_step()) is None:
            return Batch()
        name, step = found
        brought = step if isinstance(step, Batch) else await self._answer_of(name, step)
        batch = Batch()
        if brought is not None:
            batch, self._due[name] = brought, (self._due[name][0], None)
        if self.next_step() is None:
            known = self.known
            parents = known.parents_to_ask - known.rows.keys() - known.missing.keys()
            self._asked_for.update(dict.fromkeys(sorted(parents)))
            known.parents_to_ask.clear()
            if self._asked_for:
                self._add("jobs by their ids", self._jobs_by_id())
            if self._silent:
                self._add("events by their jobs", self._events_by_job())
        if self._are_lists_new and not any(map(self.parts.may_ask, self._due.keys() & FRAME.keys())):
            batch = merged((batch, self._frame()))
        if self.known.went_back:  # jobs that are known may be gone, or as they were before
            self._back_at = self._source.clock.now()
            self.known.forget_events()
            self._begin()
            self._asked_for = dict.fromkeys(self.known.rows)
        lost, self._lost = tuple(self._lost), []
        return merged((batch, Batch(skipped=lost, skip_count=len(lost)))) if lost else batch

    def _each(self, rows: Iterable[_Row], make: Callable[[_Row], _Made]) -> Iterator[_Made]:
        """The record of each row; a row from which none can be made loses only itself."""

        def lose(row: Any, why: str) -> None:
            self._lost.append(Skip(f"{self._client.name}: {type(row).__name__} {row.id}", why))

        return rows_of(rows, make, lose)

    @property
    def server_now(self) -> Nanos:
        return Nanos(self._source.clock.now() + from_seconds(self._client.ahead_s))

    def _read_at(self, *paths: str) -> Nanos:
        """When all of these lists were last read, by the server's clock."""
        return Nanos(min(map(self.parts.read_at, paths)) + from_seconds(self._client.ahead_s))

    def _read_list(self, path: str, take: Callable[[Any], Batch]) -> Question:
        page = yield Request(path, FRAME[path])
        self._lists[path], self._are_lists_new = page, True
        yield merged((take(page), self._note_skips(path, page)))

    def _take_sites(self, page: records.DecodedList[records.SiteRow]) -> Batch:
        known, sites = self.known, {row.id: row for row in page.rows}
        are_new = bool(sites.keys() - known.sites.keys())
        known.take_sites(sites)
        if are_new or not known.apps:
            self._add(APPS, self._apps())
        return Batch()

    def _apps(self) -> Question:
        page = yield Request(APPS, {"limit": ALLOCATIONS_ASKED})
        self.known.apps.update((row.id, row) for row in page.rows)
        yield Batch(jobs=self._jobs_where(lambda row: row.app_id in self.known.apps))

    def _take_batch_jobs(self, page: records.DecodedList[records.BatchJobRow]) -> Batch:
        named = {row.id: records.ids_of(row, self._client.label) for row in page.rows}
        fresh = dict(named.items() - self.known.allocations.items())
        self.known.allocations.update(fresh)
        return Batch(jobs=self._jobs_where(lambda row: row.batch_job_id in fresh) if fresh else ())

    def _frame(self) -> Batch:
        """Sites and allocations, by the last answers about them."""
        name, self._are_lists_new = self._client.name, False
        sites, sessions, batch_jobs = (self._lists.get(one, NO_ROWS) for one in (SITES, SESSIONS, BATCH_JOBS))
        signs = self.known.first_signs({row.id for row in batch_jobs.rows if records.is_estimated(row)})
        is_whole = {SITES, BATCH_JOBS} <= self._lists.keys() and all(
            not page.skips and len(page.rows) >= page.count for page in (sites, batch_jobs)
        )
        listed = {row.id for row in batch_jobs.rows}
        unlisted = {
            one.batch_job_id: records.BatchJobRow(one.batch_job_id, one.site_id, UNLISTED, num_nodes=0)
            for one in sessions.rows
            if is_whole and not self.parts.failing and one.batch_job_id is not None
            and one.batch_job_id not in listed
        }  # fmt: skip
        rows = (*batch_jobs.rows, *unlisted.values())
        own = self._each(rows, lambda row: records.allocation_of(row, name, sessions.rows, signs.get(row.id)))
        self._frame_now = Batch(
            allocations=tuple(own),
            sites=tuple(self._each(sites.rows, lambda site: records.site_of(site, name))),
            is_whole_frame=is_whole,
            count=len(batch_jobs.rows),
        )
        self._take_offers()
        return msgspec.structs.replace(self._frame_now, jobs=self._newly_alerted())

    def _take_offers(self) -> None:
        """Learn what sites offer, and have the jobs that it concerns given again where that changed."""
        known, frame, at = self.known, self._frame_now, self._read_at(SITES)
        known.launchers_at = self._read_at(SESSIONS, BATCH_JOBS) if BATCH_JOBS in self._lists else None
        known.going = [one for one in frame.allocations if one.state in OPEN]
        known.down = {
            site.id: f"the agent of site {site.name} was last heard from at {clock(site.seen_at, at)}"
            for site in frame.sites
            if site.is_down(at)
        }
        offered = [(one.id, one.state, one.nodes, one.tags, known.silence(one)) for one in known.going]
        if self._offered != (now := (offered, known.down)):
            self._offered = now
            self._due["jobs at sites"] = self._jobs_at_sites(), None  # from their beginning

    def _jobs_at_sites(self) -> Question:
        rows = self.known.rows
        numbers = [row.id for row in rows.values() if row.state in AT_SITE]
        for start in range(0, len(numbers), SLICE_ROWS):
            part = (rows[number] for number in numbers[start : start + SLICE_ROWS] if number in rows)
            yield Batch(jobs=tuple(self._each(part, self._job)))

    def _note_skips(self, path: str, page: records.DecodedList[Any]) -> Batch:
        """The rows of a page that are skipped for the first time, and how many are good again."""
        fresh = tuple(skip for skip in page.skips if skip.where not in self._bad)
        good = {f"{self._client.name}/{path}/{row.id}" for row in page.rows} if self._bad else set()
        mended = good & self._bad.keys()
        for key in mended:
            del self._bad[key]
        self._bad.update((skip.where, None) for skip in fresh)
        return Batch(skipped=fresh, skip_count=len(fresh), recovered=len(mended))

    def _transfers(self) -> Question:
        """The files that waiting jobs still need, or that must be moved away: first those that failed.

        A job with a failed transfer stays as it is.
        """
        found: dict[int, records.Needs] = {}
        states = sorted({row.state for row in self.known.waiting.values() if row.state != AWAITING_PARENTS})
        for state, of in product(states, (["error"], UNDER_WAY)):
            asked: Parameters = {"state": of, "job_state": state, "limit": ALLOCATIONS_ASKED}
            page = yield Request(TRANSFERS, asked)
            for row in page.rows:
                found[row.job_id] = (*found.get(row.job_id, ()), records.transfer_of(row))
        self.known.transfers, self._are_lists_new = found, True  # allocations may have begun meanwhile
        yield Batch(jobs=self._newly_alerted())

    def _newly_alerted(self) -> tuple[Job, ...]:
        """The jobs with an alert that is new or over, or with other needs than before."""
        known, now, before = self.known, self.server_now, self._alerts
        found = {n: (known.trouble(row, now), known.needs(row)) for n, row in known.waiting.items()}
        self._alerts = found
        numbers = {n for n in before.keys() | found.keys() if before.get(n) != found.get(n)}
        return self._jobs_where(lambda row: row.id in numbers) if numbers else ()

    def notes(self) -> Iterator[str]:
        """What there is to say about the server."""
        ahead_s = self._client.ahead_s
        if abs(ahead_s) >= CLOCK_S:
            yield f"the server's clock is {abs(ahead_s) / 60:.0f} min {'ahead' if ahead_s > 0 else 'behind'}"
        yield from self.known.down.values()
        yield from filter(None, map(self.known.silence, self.known.going))
        if self._back_at is not None:
            seen = f"seen at {clock(self._back_at, self._back_at)}"
            yield f"event ids went back, {seen}: another server, or a backup; all was read again"

    def _jobs_where(self, is_meant: Callable[[records.JobRow], bool]) -> tuple[Job, ...]:
        return tuple(self._each(filter(is_meant, self.known.rows.values()), self._job))

    def _job(self, row: records.JobRow) -> Job:
        return self.known.job(row, self.known.trouble(row, self.server_now))

    def _live_jobs(self) -> Question:
        """All jobs that are not over, then those that are known as such and were not among them."""
        found: set[int] = set()

        def take(page: records.DecodedList[records.JobRow], begin: Nanos) -> Batch:
            found.update(row.id for row in page.rows)
            return self._of_jobs(page)

        yield from _pages(JOBS, LIVE, take)
        live = (number for number, row in self.known.rows.items() if row.state in LIVE["state"])
        self._asked_for.update((number, None) for number in live if number not in found)

    def _deleted_jobs(self) -> Question:
        """Find deleted jobs: in some interval the server has fewer changed jobs than are known here.

        Such an interval is halved until its jobs can be asked about by their ids.
        """
        times = sorted(
            (at, row.id)
            for row in self.known.rows.values()
            if (at := records.time_of(row.last_update)) is not None and at >= self._since
        )
        left = [times] if times else []
        while left:
            part = left.pop()
            first, middle, last = part[0][0], part[len(part) // 2][0], part[-1][0]
            span = {"last_update_after": to_rfc3339(first), "last_update_before": to_rfc3339(last)}
            page = yield Request(JOBS, {**span, "limit": 0})
            if page.count >= len(part):
                continue
            if len(part) <= IDS_AT_ONCE or first == last:
                self._asked_for.update(dict.fromkeys(number for _, number in part))
            else:  # rows of one time stay together, as an interval has all rows of a time
                half = bisect_left(part, (middle,)) or bisect_left(part, (Nanos(middle + 1),))
                left += [part[:half], part[half:]]

    def _changed_jobs(self, since: Nanos, *, then_events: bool = True) -> Question:
        """Jobs that changed since a time by the server's clock. If there are some, then the newest events."""

        def take(page: records.DecodedList[records.JobRow], begin: Nanos) -> Batch:
            # A change that seems to come was made before the server's clock was set back
            self.updated = max(self.updated, min(begin, self.server_now))
            if then_events:
                known = self.known.rows
                self._changed.update((row.id, None) for row in page.rows if known.get(row.id) != row)
            return self._of_jobs(page)

        yield from _pages(JOBS, {"ordering": "last_update"}, take, ("last_update_after", since))
        if self._changed:
            self._add(EVENTS, self._events(OVERLAP_S))

    def _of_jobs(self, page: records.DecodedList[records.JobRow]) -> Batch:
        known = self.known
        fresh = [row for row in self._each(page.rows, known.take_job) if row is not None]
        found = Batch(
            jobs=tuple(self._each((*fresh, *known.dependents(row.id for row in fresh)), self._job)),
            gone=known.drop(list(islice(known.rows, max(0, len(known.rows) - JOBS_KEPT)))),
            count=len(fresh),
        )
        return merged((found, self._note_skips(JOBS, page)))

    def _jobs_by_id(self) -> Question:
        while ids := list(islice(self._asked_for, IDS_AT_ONCE)):
            page = yield Request(JOBS, {"id": ids, "limit": len(ids)})
            for number in ids:
                self._asked_for.pop(number, None)
            deleted = set(ids) - {row.id for row in page.rows} if not page.skips else set()
            self.known.missing.update(dict.fromkeys(deleted))
            gone = self.known.drop(deleted)
            batch = self._of_jobs(page)
            held = self._each(self.known.dependents(deleted), self._job)
            yield msgspec.structs.replace(
                batch,
                jobs=(*batch.jobs, *held),
                gone=(*gone, *batch.gone),
                deleted=tuple(system_job_id(self._client.system, number) for number in deleted),
            )

    def _events(self, overlap_s: int) -> Question:
        """Events since some time before the newest, then those of jobs in unexplained states."""

        newest = min(self.known.newest, max(self.server_now, self._source.clock.now()))
        since = ("timestamp_after", Nanos(newest - overlap_s * SECOND))
        asked: Parameters = {"ordering": "timestamp"}
        yield from _pages(EVENTS, asked, lambda page, begin: self._of_events(page), since)
        self._silent.update(dict.fromkeys(self.known.jobs_without_event(self._changed)))
        self._changed.clear()

    def _events_by_job(self) -> Question:
        while ids := list(islice(self._silent, IDS_AT_ONCE)):
            asked: Parameters = {"job_id": ids, "ordering": "timestamp", "limit": 4 * PAGE_ROWS}
            page = yield Request(EVENTS, asked)
            for number in ids:
                self._silent.pop(number, None)
            yield self._of_events(page)

    def _of_events(self, page: records.DecodedList[StateChange]) -> Batch:
        known = self.known
        changes = [one for one in self._each(page.rows, known.take_change) if one is not None]
        numbers = dict.fromkeys(map(known.number_of, changes))
        self._asked_for.update(dict.fromkeys(number for number in numbers if number not in known.rows))
        rows = (known.rows[number] for number in numbers if number in known.rows)
        found = Batch(jobs=tuple(self._each(rows, self._job)), changes=tuple(changes), count=len(changes))
        return merged((found, self._note_skips(EVENTS, page)))


def clock(at: Nanos | None, now: Nanos) -> str:
    """A time that does not change while it is shown, with its date where that is a day ago or more."""
    date, time = to_rfc3339(at or Nanos(0))[:16].split("T")
    return f"{date} {time}Z" if now - (at or 0) >= DAY else f"{time}Z"


JOBS_KEPT = 200_000
AWAITING_PARENTS, FINISHED, FAILED = "AWAITING_PARENTS", "JOB_FINISHED", "FAILED"
WAITING = frozenset({AWAITING_PARENTS, "READY", "POSTPROCESSED"})
"""States in which a job waits for other jobs, or for its files to be brought in or away."""
UNDER_WAY = ["pending", "active", "inactive"]
"""States of transfers that are neither done nor given up."""
HOPELESS = frozenset({FAILED, DELETED, BLOCKED})
RUNNABLE = frozenset({"PREPROCESSED", "RESTART_READY"})
AT_SITE = FOR_AGENT | RUNNABLE | {"RUNNING"}
"""States that a job leaves through its site's agent or a launcher there."""
PARENTS_KEPT = 100
RELATED_MOST = 5_000
"""The most jobs that are checked for one, among its parents or its children."""
RELEASED_S = 60
"""A job is released as soon as its parents have finished; after this time that failed."""
SEEN_KEPT = 400_000
"""How many of the newest events are recognized: more than arrive while older ones are read."""


def _with_followers(numbers: Collection[int], following: Callable[[int], Iterable[int]]) -> Iterator[int]:
    """These jobs, what follows them, and what follows those: each once, and not too many."""
    left, seen = deque(numbers), set(numbers)
    while left and len(seen) < RELATED_MOST:
        yield (number := left.popleft())
        fresh = dict.fromkeys(one for one in following(number) if one not in seen)
        seen.update(fresh)
        left.extend(fresh)


class KnownRows:
    """Rows and events of one server. `source` is its name, `owner` whose jobs they are.

    `system` is what the ids of its jobs begin with.
    """

    def __init__(self, source: str, owner: str, system: str = records.SYSTEM) -> None:
        self._source = source
        self._system = system
        self._owner = owner
        self._lives: dict[int, records.Lifetime] = {}
        self._seen: Bounded[int, Nanos] = Bounded(SEEN_KEPT)
        self.rows: dict[int, records.JobRow] = {}
        self.apps: dict[int, records.AppRow] = {}
        self.sites: dict[int, records.SiteRow] = {}
        self.allocations: dict[int, str] = {}
        """The ids by which each allocation is known: its own and the scheduler's."""
        self.going: Sequence[Allocation] = ()
        """Those that run or are in the queue, as they were at `launchers_at`: None until they are read."""
        self.launchers_at: Nanos | None = None
        self.down: Mapping[int, str] = {}
        """The sites whose agents are silent, in words."""
        self.transfers: dict[int, records.Needs] = {}
        """Which files are still to be brought to jobs, or away from them."""
        self.missing: Bounded[int, None] = Bounded(JOBS_KEPT)
        """Jobs that were asked about and are gone."""
        self.parents_to_ask: set[int] = set()
        """Parents of waiting jobs without a known row."""
        self._children: dict[int, set[int]] = {}
        self.waiting: dict[int, records.JobRow] = {}
        self.newest = Nanos(0)
        self.went_back = False
        """Whether an id came again for another event or site: a backup, or a server that was set up again."""

    def without_events(self) -> "KnownRows":
        """The same for a job that is looked up alone: what that learns of its own stays there."""
        one = copy(self)
        one._lives, one._seen = {}, Bounded(SEEN_KEPT)
        one.apps, one.sites, one.allocations = self.apps.copy(), self.sites.copy(), self.allocations.copy()
        return one

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
        self.missing.pop(row.id, None)
        self.waiting.pop(row.id, None)
        self.waiting.update({row.id: row} if row.state in WAITING else {})
        if row.state == AWAITING_PARENTS:
            for parent in row.parent_ids[:PARENTS_KEPT]:
                self._children.setdefault(parent, set()).add(row.id)
            self.parents_to_ask.update(row.parent_ids[:PARENTS_KEPT])
        return row

    def dependents(self, numbers: Iterable[int]) -> list[records.JobRow]:
        """Jobs that wait for these, perhaps through others."""
        given = set(numbers)
        found = _with_followers(given, lambda number: filter(self._awaits, self._children.get(number, ())))
        return [self.rows[number] for number in found if number not in given]

    def _awaits(self, number: int) -> bool:
        return number in self.waiting and self.waiting[number].state == AWAITING_PARENTS

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
        if row.state != AWAITING_PARENTS:
            return row.state
        # It may wait, perhaps through others, for one that has failed or was deleted
        rows = self.rows
        found = _with_followers(row.parent_ids, lambda one: rows[one].parent_ids if self._awaits(one) else ())
        is_blocked = any(n in self.missing if n not in rows else rows[n].state == FAILED for n in found)
        return BLOCKED if is_blocked else AWAITING_PARENTS

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
        parents = [self.rows[number] for number in row.parent_ids if number in self.rows]
        times = [records.time_of(one.last_update) for one in parents if one.state == FINISHED]
        ended = [at for at in times if at is not None and now - at > RELEASED_S * SECOND]
        is_over = len(ended) == len(row.parent_ids)
        return "its parents have finished, and it was not released" if is_over else None

    def take_change(self, change: StateChange) -> StateChange | None:
        known_at = self._seen.get(change.id)
        if known_at == change.at:
            return None
        self.went_back = self.went_back or known_at is not None
        self._seen[change.id] = change.at
        self.newest = max(self.newest, change.at)
        self._lives.setdefault(self.number_of(change), records.Lifetime()).take(change)
        return change

    def jobs_without_event(self, numbers: Iterable[int]) -> list[int]:
        """Jobs in a state that no known event explains: the clock of its sender may be wrong."""
        lives, rows = self._lives, self.rows
        return [n for n in numbers if n in rows and (n not in lives or lives[n].state != rows[n].state)]

    def forget_events(self) -> None:
        """Have all events read again, as the server no longer has some that were read."""
        for kept in (self._lives, self._seen, self.missing):
            kept.clear()
        self.went_back = False

    def drop(self, numbers: Iterable[int]) -> tuple[JobId, ...]:
        ids = []
        for number in numbers:
            self._lives.pop(number, None)
            self.waiting.pop(number, None)
            if self.rows.pop(number, None) is not None:
                ids.append(system_job_id(self._system, number))
        return tuple(ids)

    def job(self, row: records.JobRow, alert: str | None = None) -> Job:
        """A job in the form of all systems. Its times come from its events, as its row has only the last."""
        app, life = self.apps.get(row.app_id), self._lives.get(row.id, records.Lifetime())
        tags = intern(" ".join(tag_word(name, value) for name, value in row.tags.items()))
        site = self.sites.get(app.site_id) if app is not None else None
        status, updated = records.STATUSES.get(row.state, JobStatus.UNKNOWN), records.time_of(row.last_update)
        message = records.WAITS.get(row.state)
        if row.state == AWAITING_PARENTS:
            message = counted(len(row.parent_ids), "parent job")
        if app is not None and row.state in AT_SITE:
            waits, silence = self._offered_to(row, tags, app.site_id)
            message, alert = waits or message, alert or silence
        if row.state == "RESTART_READY":
            is_error = life.passed.rfind("RUN_ERROR") > life.passed.rfind("RUN_TIMEOUT")
            message = f"{message}, to run again{' after an error' if is_error else ''}"
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
            tags=tags,
            passed=life.passed,
            allocation=self.allocations.get(row.batch_job_id, "") if row.batch_job_id is not None else "",
            nodes=row.num_nodes,
            needs=self.needs(row),
        )

    def silence(self, one: Allocation) -> str | None:
        """In words, that no launcher of an allocation is heard from, if that is so."""
        if self.launchers_at is None or not one.is_stale(self.launchers_at):
            return None
        last = f"its launcher was last heard from at {clock(one.heartbeat_at, self.launchers_at)}"
        return f"batch job {one.id}: {last if one.launchers else 'it runs and has no launcher'}"

    def _offered_to(self, row: records.JobRow, tags: str, site: int) -> tuple[str | None, str | None]:
        """What a job waits for at its site, and, if a person has to do something for it, what is wrong."""
        if row.state == "RUNNING":
            silence = next((self.silence(one) for one in self.going if one.id == row.batch_job_id), None)
            return None, silence if row.session_id is not None else NO_SESSION
        if row.state in FOR_AGENT or self.launchers_at is None:
            return None, self.down.get(site)
        here = [one for one in self.going if one.site_id == site]
        found = serving(tags, row.num_nodes, here, self.launchers_at)
        if found.live:
            return found.words, None
        silence = self.silence(found.silent[0]) if found.silent else self.down.get(site)
        return found.words, silence or (None if found.coming else found.words)

    def first_signs(self, allocations: Collection[int]) -> dict[int, Nanos]:
        """When the first job began to run in each of these allocations, which have no start before their end.

        Only the last run of a job counts: its row names its last allocation, and earlier runs were in others.
        The last run of a job that was taken and has not begun yet was in another one.
        """
        found: dict[int, Nanos] = {}
        for row in self.rows.values() if allocations else ():
            life = self._lives.get(row.id)
            number, at = row.batch_job_id, life.started_at if life is not None else None
            if number is None or number not in allocations or life is None or at is None:
                continue
            is_taken = bool(row.session_id) and row.state in RUNNABLE
            if not is_taken and life.state == row.state:
                found[number] = min(at, found.get(number, at))
        return found

    def number_of(self, change: StateChange) -> int:
        return whole(change.job_id.rpartition("/")[2], 0)
