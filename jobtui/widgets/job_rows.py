"""The rows of the job table: which are shown, in which order, which need a person. No terminal in it.

Single changes are worked in at once. A new order, a new filter and very many changes at a time are worked out
in slices; until that is done the old order is served. Copies are tuples, which the garbage collector soon
leaves alone; through a list of records it would look again and again.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from functools import cache
from heapq import nlargest, nsmallest
from itertools import islice
from operator import attrgetter
from time import perf_counter
from typing import Any, NamedTuple

from sortedcontainers import SortedList

from jobtui.analysis.counts import JobTally
from jobtui.analysis.flags import needs_person
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.health import FAULTS, ClockOf, contained, here
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobStatus, status_since

BULK = 4096
"""More changes than this at once rebuild the index."""
SLICE_S = 0.01
"""How long a slice of work on a new order may take."""
FIRST, TRIED, FIRST_S = 48, 8192, 0.03
"""How many rows show before all are looked at, if TRIED have so many; how long a key waits for them."""
FRESH_S, LAST_S = 3_600, 86_400
"""A job that failed within FRESH_S comes before those that run. If nothing at all happened in that time, one
that failed within LAST_S before the newest event does."""
ON_TOP, LOOKED_AT = 3, 500
"""How many of the latest failures come before stuck jobs, and among how many they are searched."""
SWEPT = 250
"""Jobs looked at again at each sweep, because time alone changes their flags."""

Sort = Callable[[Job], Any]
Keep = Callable[[Job], bool]

LIVE = frozenset(status for status in JobStatus if status.is_live)
_place_of = attrgetter("status", "ended_at", "is_quasi")
_NEVER_RUN = frozenset({JobStatus.MISSING, JobStatus.PURGED})
_FAR = 1 << 64
Entry = tuple[int, Any, JobId]
"""Whether it is a row without a key, sort key and id, which decides between equal ones."""
SLICE = 1024
"""Rows looked at in one slice of work on an order."""


class Order(NamedTuple):
    """What to show, and in which order.

    `sort` gives a job's key; None puts it last in either direction. `keep` tells whether it is shown at all,
    `ages` that this may change by time alone.
    """

    sort: Sort
    reverse: bool = False
    keep: Keep | None = None
    ages: bool = False


class RowIndex:
    """All rows in order, and those of them that pass the filter. Rows without a key come after all others."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self._entries: dict[str, Entry] = {}
        self._all: SortedList[Entry] = SortedList()
        self._shown = self._all if order.keep is None else SortedList[Entry]()

    def __len__(self) -> int:
        return len(self._shown)

    def take(self, entries: Sequence[Entry]) -> "RowIndex":
        """Take in the rows of other jobs, of which none is shown yet if there is a filter."""
        self._all.update(entries)
        self._entries.update((entry[-1], entry) for entry in entries)
        return self

    def put(self, job: Job) -> bool:
        """Take in a new or changed job; whether a shown row came, went or moved."""
        before, entry = self._entries.get(job.id), _entry(job, self.order)
        was_shown, is_shown = before is not None and self._shows(before), _passes(job, self.order)
        if before == entry and was_shown is is_shown:
            return False
        self.discard(job.id)
        try:
            self._all.add(entry)
        except TypeError as error:  # its key does not compare with those of others
            FAULTS.note(error, "sorting rows")
            self._all.add(entry := _entry(job, self.order._replace(sort=lambda job: None)))
        self._entries[job.id] = entry
        if is_shown and self._shown is not self._all:
            self._shown.add(entry)
        return was_shown or is_shown

    def discard(self, job_id: str) -> bool:
        """Forget a job; whether it was known."""
        if (entry := self._entries.pop(job_id, None)) is not None:
            self._all.remove(entry)
            self._shown.discard(entry)
        return entry is not None

    def position(self, job_id: str) -> int | None:
        """In which row a job is shown, None when it is not."""
        entry = self._entries.get(job_id)
        return self._index(self._shown.index(entry)) if entry is not None and self._shows(entry) else None

    def _shows(self, entry: Entry) -> bool:
        return self._shown is self._all or entry in self._shown

    def window(self, start: int, stop: int) -> list[JobId]:
        """The ids of the rows from `start` up to `stop`, clipped to what there is."""
        rows = range(max(0, start), min(stop, len(self._shown)))
        return [self._shown[self._index(at)][-1] for at in rows]

    def _index(self, at: int) -> int:
        return len(self._shown) - 1 - at if self.order.reverse else at

    def entries(self) -> Iterator[Entry]:
        """The entries of all rows, also of those that do not pass, in their order."""
        return reversed(self._all) if self.order.reverse else iter(self._all)

    def of(self, ids: Iterable[JobId]) -> Iterable[Entry]:
        """The entries of those jobs that are known."""
        return filter(None, map(self._entries.get, ids))

    def show(self, order: Order, entries: Iterable[Entry]) -> "RowIndex":
        """Show these rows, which pass its filter, or all rows without one."""
        self.order = order
        self._shown = self._all if order.keep is None else SortedList(entries)
        return self


Arranging = Generator[RowIndex | None, None, RowIndex]
"""Yields after each slice of work: None, or once the first rows if enough of these pass."""


def arranged(
    jobs: Mapping[JobId, Job],
    order: Order,
    whole: RowIndex | None,
    held: JobId | None = None,
    late: Collection[JobId] = (),
    among: Iterable[JobId] | None = None,
) -> Arranging:
    """An index of the jobs in an order. `whole` has all in that order; without one they are sorted.

    First rows have `held` if it passes. Jobs that are `late` are not up to date. None but `among` may pass.
    """
    entries: list[Entry] = []
    for some in _slices(tuple(jobs.values()) if whole is None else ()):
        entries += [_entry(job, order) for job in some]
        yield None
    pick = nlargest if order.reverse else nsmallest
    leading = pick(SLICE, entries) if whole is None else [*islice(whole.entries(), TRIED)]
    held = held if held is not None and held in jobs and _passes(jobs[held], order) else None
    first = list[JobId]()
    for part in _slices(leading):
        if among is None and (len(first) < FIRST or held not in (None, *first)):
            first += [job.id for job in _passing([jobs[at] for *_, at in part if at in jobs], order)]
    if len(first) >= FIRST and held in (None, *first):
        index = RowIndex(order).take(leading) if whole is None else whole
        yield index.show(order, index.of(first))
    if whole is None:
        whole = RowIndex(order)
        for part in _slices(entries):
            whole.take(part)
            yield None
    passing: list[JobId] = []
    known = jobs.values() if among is None else filter(None, map(jobs.get, among))
    for some in _slices(tuple(known) if order.keep is not None else ()):
        passing += [job.id for job in _passing(some, order)]
        yield None
    if len(passing) <= TRIED:
        return whole.show(order, whole.of(passing))
    wanted, shown = frozenset(passing), list[Entry]()
    for part in _slices(tuple(whole.entries())):  # in their order they are soon sorted
        shown += [entry for entry in part if entry[-1] in wanted]
        yield None
    return whole.show(order, [entry for entry in shown if entry[-1] not in late] if late else shown)


def _slices(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (items[at : at + SLICE] for at in range(0, len(items), SLICE))


def _passes(job: Job, order: Order) -> bool:
    """Whether a row is shown; it is if that cannot be found out."""
    try:
        return order.keep is None or bool(order.keep(job))
    except Exception as error:  # noqa: BLE001 - a `with` would cost all other rows time
        FAULTS.note(error, "filtering")
        return True


def _passing(jobs: Sequence[Job], order: Order) -> Iterable[Job]:
    """Those jobs that are shown."""
    try:
        return list(filter(order.keep, jobs))
    except Exception:  # noqa: BLE001 - it is noted for the job that it is about
        return [job for job in jobs if _passes(job, order)]


def _entry(job: Job, order: Order) -> Entry:
    """The entry of a row; with a fault of ours it comes after all others."""
    try:
        key = order.sort(job)
    except Exception as error:  # noqa: BLE001 - it costs this row its place; a `with` would cost the others time
        FAULTS.note(error, "sorting rows")
        key = None
    return (0 if key is not None else -1 if order.reverse else 1, key, job.id)


def _rounds(mapping: Mapping[JobId, object]) -> Iterator[Sequence[JobId]]:
    """The keys of a mapping, a few at a time, again and again."""
    while True:
        keys = tuple(mapping)
        yield from (keys[at : at + SWEPT] for at in range(0, max(1, len(keys)), SWEPT))


class JobRows:
    """All jobs and the index of those shown. Without a sort key what a person should see comes first."""

    def __init__(self, now: Callable[[], Nanos], now_at: ClockOf = here) -> None:
        self.time_of = cache(lambda source: now_at(source, now()))
        """The time by the clock of a source, the same for all jobs that are looked at in one go."""
        self.jobs: dict[JobId, Job] = {}
        self.tally = JobTally(now)
        self.needy: set[JobId] = set()
        self.held: JobId | None = None
        """The job that the cursor stays on."""
        self._live: dict[JobId, None] = {}
        self._failed: dict[JobId, Nanos] = {}
        self._newest_event = Nanos(0)
        self._on_top: set[JobId] = set()
        self.index = RowIndex(Order(self.urgency))
        """The rows shown."""
        self._wanted = self.index.order
        self.has_more = False
        """Whether only the first rows are served by now."""
        self._lacks_jobs = False
        """Whether the index served is without some jobs: many came at once, or it has the first rows only."""
        self._work: Arranging | None = None
        self._late: set[JobId] = set()
        self._is_urgent_first = True
        self._live_round, self._failed_round = _rounds(self._live), _rounds(self._failed)
        self._round = _rounds(self.jobs)

    @property
    def worst(self) -> Job | None:
        return min((self.jobs[job_id] for job_id in self.needy), key=self.urgency, default=None)

    @property
    def is_sorting(self) -> bool:
        return self._work is not None

    def apply(self, changed: Iterable[Job], gone: Iterable[JobId] = ()) -> bool:
        jobs = list(changed)
        self.time_of.cache_clear()
        if len(jobs) > BULK:
            for job in jobs:
                self._take(job)
            self._lacks_jobs = True
            self._work = self._arrange()
            moved = False
        else:
            moved = self._put(jobs)
            if self._work is not None:
                self._late.update(job.id for job in jobs)
        for job_id in gone:
            moved |= self._drop(job_id)
        return self._top() or moved

    def _top(self) -> bool:
        """Bring the latest failures that are shown before what is stuck, which may be much."""
        latest = nlargest(LOOKED_AT, self._failed, key=self._failed.__getitem__)
        shown = (job_id for job_id in latest if _passes(self.jobs[job_id], self._wanted))
        before, self._on_top = self._on_top, set(islice(shown, ON_TOP))
        changed = [job for job_id in before ^ self._on_top if (job := self.jobs.get(job_id))]
        if self._work is not None:
            self._late.update(job.id for job in changed)
        return any([self.index.put(job) for job in changed])

    def _put(self, jobs: Iterable[Job]) -> bool:
        known, put, stays, moved = self.jobs, self.index.put, self._stays, False
        for job in jobs:
            before = known.get(job.id)
            if before is not None and stays(before, job):
                known[job.id] = job
            else:
                self._take(job)
                moved |= put(job)
        return moved

    def _stays(self, before: Job, job: Job) -> bool:
        """Whether it is plain at a glance that a job stays where it is: it had ended, as and when it did."""
        if job.ended_at is None or job.status in LIVE or _place_of(before) != _place_of(job):
            return False
        order = self.index.order
        return self._is_urgent_first and _passes(before, order) is _passes(job, order)

    def set_order(self, order: Order, *, narrows: bool = False) -> None:
        """Show the jobs in this order. `narrows` says that only jobs pass that did before."""
        self.time_of.cache_clear()
        self._wanted = order
        self._top()
        is_known = narrows and self._work is None and not self.has_more and len(self.index) <= TRIED
        self._work = self._arrange(self.index.window(0, TRIED) if is_known else None)
        self.work(FIRST_S)

    def work(self, slice_s: float = SLICE_S) -> bool:
        """Go on for a while, or until other rows are served; whether they are."""
        is_served, end = False, perf_counter() + slice_s
        try:
            while self._work is not None and not is_served:
                if (first := next(self._work)) is not None:
                    self.index, self.has_more, is_served = first, True, True
                if perf_counter() >= end:
                    break
        except StopIteration as done:
            self.index, self._work, is_served = done.value, None, True
            self.has_more = self._lacks_jobs = False
            self._is_urgent_first = self._wanted.sort == self.urgency and not self._wanted.ages
        except Exception as error:  # noqa: BLE001 - the order that was shown goes on being shown
            FAULTS.note(error, "sorting rows")
            self._wanted, self._work = self.index.order, None
        return is_served

    def sweep(self) -> bool:
        """Look again at some jobs whose flags time alone may change; whether rows moved."""
        moved = False
        self.time_of.cache_clear()
        rounds = (*next(self._live_round), *next(self._failed_round))
        for job_id in (*rounds, *(next(self._round) if self._wanted.ages else ())):
            if job := self.jobs.get(job_id):
                if job.status in LIVE:
                    self._judge(job)
                else:
                    self._note_failure(job)
                moved |= self.index.put(job)
        return self._top() or moved

    def _take(self, job: Job) -> None:
        before = self.jobs.get(job.id)
        self.jobs[job.id] = job
        self.tally.move(before, job)
        times = (self._newest_event, job.queued_at, job.started_at, job.ended_at, job.updated_at)
        self._newest_event = max(filter(None, times), default=self._newest_event)
        if job.status in LIVE:
            self._live[job.id] = None
            self._judge(job)
        else:
            self._live.pop(job.id, None)
            self.needy.discard(job.id)
        self._note_failure(job)

    def _note_failure(self, job: Job) -> None:
        """Note whether it failed so lately that it comes before what runs."""
        self._failed.pop(job.id, None)
        if job.status is JobStatus.FAILED and job.ended_at is not None and not job.is_quasi:
            with contained("judging a job"):
                now = self.time_of(job.source)
                is_quiet = now - self._newest_event >= FRESH_S * SECOND
                since = self._newest_event - LAST_S * SECOND if is_quiet else now - FRESH_S * SECOND
                if job.ended_at > since:
                    self._failed[job.id] = job.ended_at

    def _judge(self, job: Job) -> None:
        self.needy.discard(job.id)
        with contained("judging a job"):
            if not job.is_quasi and needs_person(job, self.time_of(job.source)):
                self.needy.add(job.id)

    def _drop(self, job_id: JobId) -> bool:
        self.tally.move(self.jobs.pop(job_id, None), None)
        self._live.pop(job_id, None)
        self._failed.pop(job_id, None)
        self.needy.discard(job_id)
        if self._work is not None:
            self._late.add(job_id)
        return self.index.discard(job_id)

    def _arrange(self, among: Iterable[JobId] | None = None) -> Arranging:
        """Work out the wanted order of all jobs, of which some may change meanwhile."""
        self._late.clear()
        is_sorted = self.index.order[:2] == self._wanted[:2]
        whole = self.index if is_sorted and not self._lacks_jobs else None
        self._lacks_jobs = whole is None
        index = yield from arranged(self.jobs, self._wanted, whole, self.held, self._late, among)
        while self._late:
            for job_id in [self._late.pop() for _ in range(min(len(self._late), SWEPT))]:
                if job := self.jobs.get(job_id):
                    index.put(job)
                else:
                    index.discard(job_id)
            yield None
        return index

    def urgency(self, job: Job) -> int:
        """First what just failed and needs a person, what is live, what ended; in each the latest first."""
        if job.id in self._on_top:
            rank = 0
        elif job.id in self.needy:
            rank = 1
        elif job.id in self._failed:
            rank = 2
        elif job.status in LIVE:
            rank = 3
        else:
            rank = 5 if job.status in _NEVER_RUN else 4
        since = job.ended_at if job.ended_at is not None and rank != 1 else status_since(job)
        return rank * 2 * _FAR + (_FAR if since is None else _FAR - since)
