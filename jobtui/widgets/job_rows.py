"""The rows of the job table: which are shown, in which order, which need a person. No terminal in it.

Single changes are worked in at once. A new order, a new filter and very many changes at a time are worked out
in slices; until that is done the old order is served. Copies are tuples, which the garbage collector soon
leaves alone; through a list of records it would look again and again.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import cache
from heapq import merge, nlargest
from itertools import islice
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
SLICE_S = 0.006
"""How long a slice of work on a new order may take."""
FIRST, FIRST_S = 100, 0.02
"""How many rows of a new filter are shown before all are looked at, if they are found in this time."""
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
_NEVER_RUN = frozenset({JobStatus.MISSING, JobStatus.PURGED})
_FAR = 1 << 64
Entry = tuple[int, Any, JobId]
"""Whether it is a row without a key, sort key and id, which decides between equal ones."""
SLICE = 1024
"""Rows looked at in one slice of a rebuild."""
RUN = 4096
"""Rows sorted at once in a rebuild, before runs are merged."""


class Order(NamedTuple):
    """What to show, and in which order.

    `sort` gives a job's key; None puts it last in either direction. `keep` tells whether it is shown at all.
    """

    sort: Sort
    reverse: bool = False
    keep: Keep | None = None


class RowIndex:
    """The shown rows in order. Rows without a key come after all others."""

    def __init__(self, order: Order) -> None:
        self.order = order
        self._entries: dict[str, Entry] = {}
        self._sorted: SortedList[Entry] = SortedList()

    def __len__(self) -> int:
        return len(self._entries)

    def put(self, job: Job) -> bool:
        """Take in a new or changed job; whether it came, went or moved."""
        before = self._entries.get(job.id)
        if (entry := _entry(job, self.order)) is None:
            return before is not None and self.discard(job.id)
        if before == entry:
            return False
        if before is not None:
            self._sorted.remove(before)
        try:
            self._sorted.add(entry)
        except TypeError as error:  # its key does not compare with those of others
            FAULTS.note(error, "sorting rows")
            self._sorted.add(entry := _keyless(job, self.order))
        self._entries[job.id] = entry
        return True

    def discard(self, job_id: str) -> bool:
        if entry := self._entries.pop(job_id, None):
            self._sorted.remove(entry)
        return entry is not None

    def position(self, job_id: str) -> int | None:
        entry = self._entries.get(job_id)
        return None if entry is None else self._index(self._sorted.index(entry))

    def window(self, start: int, stop: int) -> list[JobId]:
        """The ids of the rows from `start` up to `stop`, clipped to what there is."""
        rows = range(max(0, start), min(stop, len(self._sorted)))
        return [self._sorted[self._index(at)][-1] for at in rows]

    def ids(self) -> Iterator[JobId]:
        entries = reversed(self._sorted) if self.order.reverse else iter(self._sorted)
        return (entry[-1] for entry in entries)

    def _index(self, at: int) -> int:
        return len(self._sorted) - 1 - at if self.order.reverse else at

    @classmethod
    def rebuilt(cls, jobs: Sequence[Job], order: Order) -> Generator[None, None, "RowIndex"]:
        """An index over `jobs`, returned after as many slices of a few milliseconds as it takes."""
        index: RowIndex = cls(order)
        entries: list[Entry] = []
        for at in range(0, len(jobs), SLICE):
            entries += filter(None, (_entry(job, order) for job in jobs[at : at + SLICE]))
            yield
        index._sorted = yield from _sorted(entries)
        for at in range(0, len(entries), 8 * SLICE):
            yield
            index._entries.update((entry[-1], entry) for entry in entries[at : at + 8 * SLICE])
        return index


def _entry(job: Job, order: Order) -> Entry | None:
    """The entry of a row, None when it is not shown; with a fault of ours it is shown after all others."""
    try:
        if order.keep is not None and not order.keep(job):
            return None
        key = order.sort(job)
        return _keyless(job, order) if key is None else (0, key, job.id)
    except Exception as error:  # noqa: BLE001 - it costs this row its place; a `with` would cost the others time
        FAULTS.note(error, "sorting rows")
        return _keyless(job, order)


def _keyless(job: Job, order: Order) -> Entry:
    return (-1 if order.reverse else 1, None, job.id)


def _sorted(entries: list[Entry]) -> "Generator[None, None, SortedList[Entry]]":
    """`entries` sorted, in slices: short runs first, which are then merged."""
    runs = []
    for at in range(0, len(entries), RUN):
        runs.append(sorted(entries[at : at + RUN]))
        yield
    found, merged = SortedList(), merge(*runs)
    while part := list(islice(merged, SLICE)):
        found.update(part)
        yield
    return found


def _rounds(mapping: Mapping[JobId, object]) -> Iterator[Sequence[JobId]]:
    """The keys of a mapping, a few at a time, again and again."""
    while True:
        keys = tuple(mapping)
        yield from (keys[at : at + SWEPT] for at in range(0, max(1, len(keys)), SWEPT))


class JobRows:
    """All jobs and the index of those shown. Without a sort key what a person should see comes first."""

    def __init__(self, now: Callable[[], Nanos], now_at: ClockOf = here) -> None:
        self._time_of = cache(lambda source: now_at(source, now()))
        """The time by the clock of a source, the same for all jobs that are looked at in one go."""
        self.jobs: dict[JobId, Job] = {}
        self.tally = JobTally(now)
        self.needy: set[JobId] = set()
        """The jobs that need a person."""
        self.held: JobId | None = None
        """The job that the cursor stays on."""
        self._live: dict[JobId, None] = {}
        self._failed: dict[JobId, Nanos] = {}
        self._newest_event = Nanos(0)
        self._on_top: set[JobId] = set()
        self._index: RowIndex = RowIndex(Order(self._urgency))
        self._wanted = self._index.order
        self._whole = self._index
        """The last that was worked out to its end; `_index` may have only the first of its rows."""
        self.has_more = False
        """Whether only the first rows are served by now."""
        self._work: Generator[None, None, RowIndex] | None = None
        self._late: set[JobId] = set()
        self._ages = False
        self._is_urgent_first = True
        self._live_round, self._failed_round = _rounds(self._live), _rounds(self._failed)
        self._round = _rounds(self.jobs)

    def __len__(self) -> int:
        return len(self._index)

    @property
    def worst(self) -> Job | None:
        return min((self.jobs[job_id] for job_id in self.needy), key=self._urgency, default=None)

    @property
    def is_sorting(self) -> bool:
        return self._work is not None

    def apply(self, changed: Iterable[Job], gone: Iterable[JobId] = ()) -> bool:
        jobs = list(changed)
        self._time_of.cache_clear()
        if len(jobs) > BULK:
            for job in jobs:
                self._take(job)
            self._begin()
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
        shown = (job_id for job_id in latest if _entry(self.jobs[job_id], self._wanted) is not None)
        before, self._on_top = self._on_top, set(islice(shown, ON_TOP))
        changed = [job for job_id in before ^ self._on_top if (job := self.jobs.get(job_id))]
        if self._work is not None:
            self._late.update(job.id for job in changed)
        return any([self._index.put(job) for job in changed])

    def _put(self, jobs: Iterable[Job]) -> bool:
        known, put, stays = self.jobs, self._index.put, self._stays
        moved = False
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
        if before.status is not job.status or before.ended_at != job.ended_at or job.ended_at is None:
            return False
        if not self._is_urgent_first or job.status in LIVE or before.is_quasi is not job.is_quasi:
            return False
        keep = self._index.order.keep
        with contained("filtering"):
            return keep is None or keep(before) == keep(job)
        return False

    def set_order(
        self, sort: Sort | None, *, reverse: bool = False, keep: Keep | None = None, ages: bool = False
    ) -> None:
        """Show the jobs that `keep` lets pass, by this key; none stands for what needs a person first.

        `ages` says that what passes may change by time alone.
        """
        self._ages = ages
        self._wanted = Order(sort or self._urgency, reverse, keep)
        self._top()
        self._begin()
        self._serve_first()

    def _serve_first(self) -> None:
        """Serve the first rows at once, if they and `held` are soon found in the order worked out last."""
        if self._whole.order._replace(keep=None) != self._wanted._replace(keep=None):
            return
        first, end = RowIndex(self._wanted), perf_counter() + FIRST_S
        held = self.jobs.get(self.held or JobId(""))
        held = held if held is not None and _entry(held, self._wanted) is not None else None
        for job_id in self._whole.ids():
            if (job := self.jobs.get(job_id)) is not None:
                first.put(job)
            if len(first) == FIRST and (held is None or first.position(held.id) is not None):
                self._index, self.has_more = first, True
            if len(first) == FIRST or perf_counter() > end:
                return

    def work(self) -> bool:
        if self._work is None:
            return False
        end = perf_counter() + SLICE_S
        try:
            while perf_counter() < end:
                next(self._work)
        except StopIteration as done:
            self._serve(done.value)
            return self._work is None
        except Exception as error:  # noqa: BLE001 - the order that was shown goes on being shown
            FAULTS.note(error, "sorting rows")
            self._work = None
        return False

    def sweep(self) -> bool:
        """Look again at some jobs whose flags time alone may change; whether rows moved."""
        moved = False
        self._time_of.cache_clear()
        rounds = (*next(self._live_round), *next(self._failed_round))
        for job_id in (*rounds, *(next(self._round) if self._ages else ())):
            if job := self.jobs.get(job_id):
                if job.status in LIVE:
                    self._judge(job)
                else:
                    self._note_failure(job)
                moved |= self._index.put(job)
        return self._top() or moved

    def position(self, job_id: JobId) -> int | None:
        """In which row a job is shown, None when it is not."""
        return self._index.position(job_id)

    def window(self, start: int, stop: int) -> list[JobId]:
        return self._index.window(start, stop)

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
                now = self._time_of(job.source)
                is_quiet = now - self._newest_event >= FRESH_S * SECOND
                since = self._newest_event - LAST_S * SECOND if is_quiet else now - FRESH_S * SECOND
                if job.ended_at > since:
                    self._failed[job.id] = job.ended_at

    def _judge(self, job: Job) -> None:
        self.needy.discard(job.id)
        with contained("judging a job"):
            if not job.is_quasi and needs_person(job, self._time_of(job.source)):
                self.needy.add(job.id)

    def _drop(self, job_id: JobId) -> bool:
        self.tally.move(self.jobs.pop(job_id, None), None)
        self._live.pop(job_id, None)
        self._failed.pop(job_id, None)
        self.needy.discard(job_id)
        if self._work is not None:
            self._late.add(job_id)
        return self._index.discard(job_id)

    def _begin(self) -> None:
        self._late.clear()
        self._work = RowIndex.rebuilt(tuple(self.jobs.values()), self._wanted)

    def _serve(self, index: RowIndex) -> None:
        if len(self._late) > BULK:
            self._begin()
            return
        for job_id in self._late:
            if job := self.jobs.get(job_id):
                index.put(job)
            else:
                index.discard(job_id)
        self._late.clear()
        self._index = self._whole = index
        self._work, self.has_more = None, False
        self._is_urgent_first = index.order.sort == self._urgency and not self._ages

    def _urgency(self, job: Job) -> int:
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
