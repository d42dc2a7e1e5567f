"""Jobs of HTCondor that are to be told anew: they wait for their turn, so that each step is short."""

from collections import OrderedDict, deque
from collections.abc import Iterable, Iterator
from itertools import islice

from jobtui.model.condor_facts import CondorFact
from jobtui.model.ids import JobId

SEARCHED_AT_ONCE = 200
"""Jobs looked through at a time for those that are due."""


class Due:
    """The jobs that are due, each with what is new of it, those first that have been for longest."""

    def __init__(self) -> None:
        self._fresh: OrderedDict[str, list[CondorFact]] = OrderedDict()
        self._searches: deque[Iterator[str | None]] = deque()
        self._gone: set[JobId] = set()

    def __bool__(self) -> bool:
        return bool(self._fresh or self._searches or self._gone)

    def add(self, job_id: str, fresh: Iterable[CondorFact] = ()) -> None:
        """Let a job be told anew, with these facts as news of it."""
        self._fresh.setdefault(job_id, []).extend(fresh)

    def search(self, found: Iterator[str | None]) -> None:
        """Let jobs be told anew that a search finds, which goes on when no others are due."""
        self._searches.append(found)

    def take_back(self, job_id: str) -> list[CondorFact]:
        """Let a job not be told; what was new of it."""
        return self._fresh.pop(job_id, [])

    def drop(self, job_id: str) -> None:
        """Let it be told that a job is no more."""
        self.take_back(job_id)
        self._gone.add(JobId(job_id))

    def turns(self) -> Iterator[tuple[JobId, list[CondorFact]]]:
        """The jobs whose turn it is. Those that are not asked for stay due."""
        if not self._fresh and self._searches:
            some = list(islice(self._searches[0], SEARCHED_AT_ONCE))
            if not some:
                self._searches.popleft()
            for job_id in filter(None, some):
                self.add(job_id)
        while self._fresh:
            job_id, fresh = self._fresh.popitem(last=False)
            yield JobId(job_id), fresh

    def gone(self) -> frozenset[JobId]:
        """The jobs that are no more, each told once."""
        gone = frozenset(self._gone)
        self._gone.clear()
        return gone
