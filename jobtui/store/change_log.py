"""State changes of all jobs in the order of time, each one once, within a bound. Old ones go first."""

from array import array
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from operator import attrgetter

from jobtui.model.changes import StateChange
from jobtui.model.clock import Nanos
from jobtui.model.ids import JobId

CHANGES_KEPT = 1_000_000
"""Changes held at most, about 200 bytes each."""

_order = attrgetter("at", "id", "source")
_at = attrgetter("at")


class ChangeLog:
    """What is known of jobs' states over time. Only the event loop touches it."""

    def __init__(self, most: int = CHANGES_KEPT) -> None:
        self._most = most
        self._changes: list[StateChange] = []
        self._ids: defaultdict[str, array[int]] = defaultdict(lambda: array("q"))
        self._oldest = Nanos(0)
        self._by_job: defaultdict[JobId, list[StateChange]] = defaultdict(list)
        self.dropped = 0

    def __len__(self) -> int:
        return len(self._changes)

    def add(self, changes: Iterable[StateChange]) -> set[JobId]:
        """Take in changes in any order; the jobs of those that were not known yet."""
        once = {_order(change): change for change in changes}
        fresh = sorted((change for change in once.values() if self._is_new(change)), key=_order)
        if not fresh:
            return set()
        # Senders are late by minutes at most: what has to be sorted again is near the end
        begin = bisect_left(self._changes, fresh[0].at, key=_at)
        self._changes[begin:] = sorted([*self._changes[begin:], *fresh], key=_order)
        jobs = {change.job_id for change in fresh}
        for change in fresh:
            self._by_job[change.job_id].append(change)
        for job_id in jobs:
            self._by_job[job_id].sort(key=_order)
        self._drop_old()
        return jobs

    def all(self) -> Sequence[StateChange]:
        """Every change that is kept, oldest first; not to be changed."""
        return self._changes

    def between(self, since: Nanos | None, until: Nanos | None) -> Sequence[StateChange]:
        """Those of a stretch of time, both ends included."""
        begin = 0 if since is None else bisect_left(self._changes, since, key=_at)
        end = len(self._changes) if until is None else bisect_right(self._changes, until, key=_at)
        return self._changes[begin:end]

    def of_job(self, job_id: JobId) -> tuple[StateChange, ...]:
        """Those of one job, oldest first."""
        return tuple(self._by_job.get(job_id, ()))

    def _is_new(self, change: StateChange) -> bool:
        """Whether it is not known. Ids alone do not tell: a system set up anew counts from the beginning."""
        if change.at < self._oldest:
            return False
        ids = self._ids[change.source]
        place = bisect_left(ids, change.id)
        if place == len(ids) or ids[place] != change.id:
            ids.insert(place, change.id)
            return True
        own = self._by_job.get(change.job_id, ())
        return all(_order(one) != _order(change) for one in own)

    def _drop_old(self) -> None:
        surplus = len(self._changes) - self._most
        if surplus <= 0:
            return
        # Some more than needed, so that this is not done for each batch
        old = self._changes[: surplus + self._most // 10]
        del self._changes[: len(old)]
        self.dropped += len(old)
        self._forget_ids()
        for job_id in {change.job_id for change in old}:
            kept = [change for change in self._by_job[job_id] if _order(change) > _order(old[-1])]
            if kept:
                self._by_job[job_id] = kept
            else:
                del self._by_job[job_id]

    def _forget_ids(self) -> None:
        """Let go of ids below all that are kept: those are too old by their time."""
        self._oldest = self._changes[0].at if self._changes else self._oldest
        lowest: dict[str, int] = {}
        for change in self._changes:
            lowest[change.source] = min(change.id, lowest.get(change.source, change.id))
        for source, ids in self._ids.items():
            del ids[: bisect_left(ids, lowest[source]) if source in lowest else len(ids)]
