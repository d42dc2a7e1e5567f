"""How a job of HTCondor stands by the facts that came so far. What comes later in time costs only itself."""

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence

from jobtui.model.condor import TRACEPARENT
from jobtui.model.condor_facts import CondorFact
from jobtui.model.condor_life import OVER, CondorLife, Turn, host_of
from jobtui.model.condor_once import Once, files_in
from jobtui.model.ids import JobId
from jobtui.store.condor_times import Ordering, Place, Placed

MOST_STANDING = 10_000
"""Jobs that are not over and are kept as they stand; another is put together anew when more is told of it."""


class Standing:
    """A job: the life that its facts make, each event once."""

    def __init__(self, facts: Sequence[CondorFact], shifts: Mapping[str, int]) -> None:
        self.life = CondorLife(())
        self._files = files_in(facts)
        self._once = Once() if self.is_shared else None
        self._best: CondorFact | None = None
        self._ordering = Ordering(shifts)
        self._last: Place | None = None
        self._is_thinned = False
        self.looked = 0
        """Facts that were looked at for what was told last."""
        self._take(self._ordering.placed(facts))

    @property
    def source(self) -> str:
        """The file that knows best of it."""
        return self._best.source if self._best else ""

    @property
    def is_over(self) -> bool:
        """Whether not much more is to come."""
        return self.life.state in OVER

    @property
    def is_shared(self) -> bool:
        """Whether several logs tell of it, so that an event may be told twice."""
        return len(self._files) > 1

    def extend(self, facts: Sequence[CondorFact]) -> list[Turn] | None:
        """Let more facts hold. Gives the turns they made, the one before them first.

        None where one of them belongs before what came, or another log tells: it stands for nothing then.
        """
        if not all(map(self._ordering.goes_on, facts)) or not files_in(facts) <= self._files:
            return None
        placed = self._ordering.placed(facts)
        is_late = placed and self._last is not None and placed[0].place < self._last
        if is_late or (self._is_thinned and self._ordering.is_bent):
            return None
        before = max(0, len(self.life.turns) - 1)
        self._take(placed)
        return self.life.turns[before:]

    def spare(self, fact: CondorFact, later: CondorFact) -> bool:
        """Go on without a fact, as a later one of its kind and file tells as much; False if it does not."""
        self._is_thinned = True
        best = self._best
        return (
            not self._ordering.is_bent
            and (best is None or _place(best) != _place(fact))
            and fact.values.keys() <= later.values.keys()
            and TRACEPARENT not in fact.values
            and host_of(fact.values) is None
            and (fact.at is None or (later.at is not None and fact.at <= later.at))
        )

    def _take(self, placed: Sequence[Placed]) -> None:
        self.looked = len(placed)
        for one in placed:
            is_new = self._once is None or self._once.is_new(one.fact)
            (self.life.take if is_new else self.life.hear_again)(one.fact)
            self._last = one.place
            if self._best is None or one.fact.teller.rank < self._best.teller.rank:
                self._best = one.fact


class Standings:
    """Jobs that are not over, as they stand; a bounded number, those that were asked for last."""

    def __init__(self) -> None:
        self._known: OrderedDict[JobId, Standing] = OrderedDict()

    def get(self, job_id: str) -> Standing | None:
        """A job as it stands, None where it must be put together."""
        return self._known.get(JobId(job_id))

    def keep(self, job_id: JobId, standing: Standing) -> None:
        """Keep a job until more is told of it."""
        self._known[job_id] = standing
        self._known.move_to_end(job_id)
        if standing.is_over:
            del self._known[job_id]
        elif len(self._known) > MOST_STANDING:
            self._known.popitem(last=False)

    def forget(self, job_ids: Iterable[str]) -> None:
        """Put these jobs together anew when more is told of them."""
        for job_id in job_ids:
            self._known.pop(JobId(job_id), None)

    def forget_all(self) -> None:
        """Put all jobs together anew."""
        self._known.clear()


def _place(fact: CondorFact) -> tuple[str, int, int]:
    return fact.source, fact.rotation, fact.offset
