"""State changes of all jobs in the order of time, each one once, within a bound. Old ones go first."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from operator import attrgetter

from jobtui.model.changes import StateChange
from jobtui.model.clock import Nanos
from jobtui.model.ids import JobId

CHANGES_KEPT = 1_000_000
"""Changes held at most, about 200 bytes each."""
LET_GO = 100
"""When there are too many, so much more than needed goes as the most divided by this."""

_order = attrgetter("at", "id", "source")
_at = attrgetter("at")


class ChangeLog:
    """What is known of jobs' states over time. Only the event loop touches it."""

    def __init__(self, most: int = CHANGES_KEPT) -> None:
        self._most = most
        self._changes: list[StateChange] = []
        self._oldest = Nanos(0)
        self._by_job: dict[JobId, tuple[StateChange, ...]] = {}
        self.dropped = 0
        self.version = 0
        """Another one whenever something was added."""

    def __len__(self) -> int:
        return len(self._changes)

    def add(self, changes: Iterable[StateChange]) -> set[JobId]:
        """Take in changes in any order; the jobs of those that were not known yet."""
        fresh = sorted((change for change in changes if self._take(change)), key=_order)
        if not fresh:
            return set()
        self.version += 1
        self._merge(fresh)
        self._drop_old()
        return {change.job_id for change in fresh}

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
        return self._by_job.get(job_id, ())

    def histories(self) -> list[tuple[StateChange, ...]]:
        """The changes of each job as they are now, oldest first."""
        return list(self._by_job.values())

    def _take(self, change: StateChange) -> bool:
        """Put a change among those of its job; False for one that is known, or too old.

        Ids alone do not tell: a system set up anew counts from the beginning.
        """
        if change.at < self._oldest:
            return False
        own, order = self._by_job.get(change.job_id, ()), _order(change)
        place = len(own)
        if own and _order(own[-1]) >= order:
            place = bisect_left(own, order, key=_order)
            if _order(own[place]) == order:
                return False
        # Tuples, as the garbage collector soon looks at them no more: there are hundreds of thousands
        self._by_job[change.job_id] = (*own[:place], change, *own[place:])
        return True

    def _merge(self, fresh: Sequence[StateChange]) -> None:
        """Put changes, which are in order, each in its place: those between are moved and not looked at."""
        first = last = bisect_left(self._changes, _order(fresh[0]), key=_order)
        merged: list[StateChange] = []
        for change in fresh:
            place = bisect_left(self._changes, _order(change), last, key=_order)
            merged += self._changes[last:place]
            merged.append(change)
            last = place
        self._changes[first:last] = merged

    def _drop_old(self) -> None:
        surplus = len(self._changes) - self._most
        if surplus <= 0:
            return
        # Some more than needed, so that this is not done for each batch
        old = self._changes[: surplus + self._most // LET_GO]
        del self._changes[: len(old)]
        self.dropped += len(old)
        self._oldest = self._changes[0].at if self._changes else self._oldest
        last = _order(old[-1])
        for job_id in {change.job_id for change in old}:
            own = self._by_job[job_id]
            kept = own[bisect_right(own, last, key=_order) :]
            if kept:
                self._by_job[job_id] = kept
            else:
                del self._by_job[job_id]
