"""Jobs of HTCondor, put together from what all files say of them.

A job may be told of by its event log, by job ads and by its own output; files that leave out the schedd are
taken to speak of the one job that has their number.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from jobtui.model.changes import StateChange
from jobtui.model.condor import TRACEPARENT
from jobtui.model.condor_facts import CondorFact, Teller
from jobtui.model.condor_jobs import job_of
from jobtui.model.condor_life import CondorLife, Turn, is_of_jobsub
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobDetail
from jobtui.store.condor_changes import changes_of
from jobtui.store.condor_detail import detail_of
from jobtui.store.condor_standing import Standing, Standings
from jobtui.store.condor_times import Zones, in_order, may_tell_zone

MOST_FACTS = 150_000
"""Facts kept, about 1 kB each; those of jobs that ended first are let go of."""
KEPT_PERCENT = 99
"""So much of that is left when facts are let go of: few at a time hold up nobody."""
MOST_OF_JOB = 300
"""Facts kept of one job."""
MOST_SUBMISSIONS = 10_000
"""Submit files kept that name a trace but no job, those read last."""
PASSING = frozenset({"image_size", "file_transfer", "attribute_update", "generic"})
"""What comes again and again, and of which the last one tells enough."""


class News(NamedTuple):
    """What came of new facts: jobs as they are now, ids that are no more, and what events changed."""

    jobs: tuple[Job, ...] = ()
    gone: frozenset[JobId] = frozenset()
    changes: tuple[StateChange, ...] = ()


_Key = tuple[str, int, str, int]


class CondorBook:
    """All that is known of jobs of HTCondor. Adding the same twice changes nothing more."""

    def __init__(self, most: int = MOST_FACTS) -> None:
        self._most = most
        self._facts: dict[str, dict[_Key, CondorFact]] = {}
        self._ids: dict[str, set[str]] = defaultdict(set)
        self._submissions: dict[str, CondorFact] = {}
        self._zones = Zones()
        self._standings = Standings()
        self._over: dict[str, None] = {}
        self._of_jobsub: set[str] = set()
        self._clusters: dict[str, set[str]] = defaultdict(set)
        self._count = 0
        self.dropped = 0
        """Facts that were let go of."""

    def add(self, facts: Iterable[CondorFact]) -> News:
        """Take in facts of any jobs, in the order in which each file has them."""
        fresh: list[CondorFact] = []
        numbers: dict[str, list[CondorFact]] = {}
        for fact in facts:
            if self._take(fact):
                fresh.append(fact)
                for number in self._with_cluster(fact):
                    numbers.setdefault(number, [])
                numbers[_number(fact.job)].append(fact)
        if self._learn_zones(fresh):
            self._standings.forget_all()
            numbers |= {number: [] for job in self._facts if (number := _number(job)) not in numbers}
        news = self._news(numbers)
        gone = self._keep_within()
        if not gone:
            return news
        return News(tuple(job for job in news.jobs if job.id not in gone), news.gone | gone, news.changes)

    @property
    def notice(self) -> str | None:
        """What is to be said of what was let go of, None when all is here."""
        if not self.dropped:
            return None
        limits = f"at most {self._most:,}, and {MOST_OF_JOB} of a job, are kept"
        return f"{self.dropped:,} facts let go of, those of ended jobs first: {limits}"

    def facts_of(self, job_id: JobId) -> tuple[CondorFact, ...]:
        """What files say of a job, in order of time."""
        return tuple(in_order(self._all_of(job_id), self._zones.shifts))

    def detail(self, job_id: JobId) -> JobDetail | None:
        """All that is known of a job, None for one that no file tells of."""
        facts = self.facts_of(job_id)
        return detail_of(job_id, self._life(job_id, facts), facts) if facts else None

    def traces_named_in(self, source: str) -> dict[str, tuple[str, ...]]:
        """The traces that a file names, each with the jobs it is named for."""
        found: dict[str, dict[str, None]] = defaultdict(dict)
        told = (fact for own in self._facts.values() for fact in own.values())
        for fact in (*told, *self._submissions.values()):
            if fact.source == source and (trace := fact.values.get(TRACEPARENT)) is not None:
                found[trace].update({fact.job: None} if fact.job else {})
        return {trace: tuple(jobs) for trace, jobs in found.items()}

    def jobs_told_in(self, source: str) -> tuple[str, ...]:
        """The jobs of which a file tells, each by the longest of its ids."""
        told = {job for job, own in self._facts.items() if any(key[0] == source for key in own)}
        return tuple(sorted(job for job in told if job != _number(job) or not told & set(self._full(job))))

    def changes_of(self, job_id: JobId) -> tuple[StateChange, ...] | None:
        """How the state of a job changed, None for one that no file tells of."""
        facts = self.facts_of(job_id)
        return changes_of(job_id, CondorLife(facts).turns) if facts else None

    def _take(self, fact: CondorFact) -> bool:
        """Put a fact among those of its job; False for one that is known, or of none."""
        if not fact.job:
            if fact.teller is Teller.SUBMIT:
                self._keep_submission(fact)
            return False
        own = self._facts.setdefault(fact.job, {})
        key = _key(fact)
        if own.get(key) == fact:
            return False
        self._make_room(own, fact)
        self._count += key not in own
        own[key] = fact
        if fact.what in _ENDS:
            self._over.setdefault(fact.job)
        if fact.job not in (ids := self._ids[_number(fact.job)]):
            ids.add(fact.job)
            self._standings.forget(ids)
        return True

    def _make_room(self, own: dict[_Key, CondorFact], fact: CondorFact) -> None:
        """Let go of what need not be kept of a job beside one more fact."""
        if _key(fact) in own:
            self._standings.forget(self._ids[_number(fact.job)])
        elif fact.what in PASSING:
            before = [one for key, one in own.items() if key[2] == fact.what and key[0] == fact.source]
            self._let_go(own, before, fact)
        elif len(own) >= MOST_OF_JOB:
            middle = list(own.values())[MOST_OF_JOB // 4 : MOST_OF_JOB // 2]
            self._let_go(own, middle, None)
            self.dropped += len(middle)

    def _let_go(
        self, own: dict[_Key, CondorFact], facts: Iterable[CondorFact], later: CondorFact | None
    ) -> None:
        """Keep these facts of a job no more, `later` tells enough of what they did."""
        for fact in facts:
            del own[_key(fact)]
            self._count -= 1
            for job_id in tuple(self._ids[_number(fact.job)]):
                standing = self._standings.get(job_id)
                if standing and not (later and standing.spare(fact, later)):
                    self._standings.forget((job_id,))

    def _keep_submission(self, fact: CondorFact) -> None:
        trace = fact.values[TRACEPARENT]
        self._submissions.pop(trace, None)
        self._submissions[trace] = fact
        if len(self._submissions) > MOST_SUBMISSIONS:
            del self._submissions[next(iter(self._submissions))]
            self.dropped += 1

    def _with_cluster(self, fact: CondorFact) -> dict[str, None]:
        """The job of a fact, and all others of its cluster where it shows that jobsub submitted them."""
        number = _number(fact.job)
        cluster = number.partition(".")[0]
        self._clusters[cluster].add(number)
        if cluster in self._of_jobsub or not is_of_jobsub(fact):
            return {number: None}
        self._of_jobsub.add(cluster)
        return dict.fromkeys(self._clusters[cluster])

    def _life(self, job_id: str, facts: Iterable[CondorFact]) -> CondorLife:
        life = CondorLife(facts)
        life.is_jobsub = job_id.partition(".")[0] in self._of_jobsub
        return life

    def _all_of(self, job_id: str) -> list[CondorFact]:
        """The facts of a job, also those that name it by its number only."""
        return [fact for one in self._ids_of(job_id) for fact in self._facts.get(one, {}).values()]

    def _ids_of(self, job_id: str) -> tuple[str, ...]:
        """The ids that mean a job: its own, and its number where no other job has that."""
        number = _number(job_id)
        is_only = job_id != number and len(self._full(number)) == 1
        return (job_id, number) if is_only else (job_id,)

    def _full(self, number: str) -> list[str]:
        """The ids with a schedd of jobs that have a number."""
        return [one for one in self._ids.get(number, ()) if one != number]

    def _learn_zones(self, facts: Iterable[CondorFact]) -> bool:
        """Find out which zone files mean; whether one is another than it was taken for."""
        numbers = dict.fromkeys(_number(fact.job) for fact in facts if may_tell_zone(fact))
        told = [self._zones.learn(self._all_of(job_id)) for number in numbers for job_id in self._ids[number]]
        return any(told)

    def _news(self, numbers: Mapping[str, Sequence[CondorFact]]) -> News:
        """The jobs that have these numbers, and what facts of them that are new changed."""
        jobs: list[Job] = []
        gone: set[JobId] = set()
        changes: list[StateChange] = []
        for number, fresh in numbers.items():
            full = self._full(number)
            if len(full) == 1 and number in self._ids[number]:
                gone.add(JobId(number))
            for job_id in map(JobId, full if len(full) == 1 else sorted(self._ids[number])):
                standing, turns = self._standing_of(job_id, [fact for fact in fresh if self._is_known(fact)])
                jobs.append(job_of(job_id, standing.life, standing.source))
                changes += changes_of(job_id, turns)
        return News(tuple(jobs), frozenset(gone), tuple(changes))

    def _is_known(self, fact: CondorFact) -> bool:
        return self._facts[fact.job].get(_key(fact)) is fact

    def _standing_of(self, job_id: JobId, fresh: Sequence[CondorFact]) -> tuple[Standing, list[Turn]]:
        """A job as it stands, and the turns that new facts made, those of its number that are about it."""
        ids = self._ids_of(job_id)
        own = [fact for fact in fresh if fact.job in ids]
        standing = self._standings.get(job_id)
        turns = standing.extend(own) if standing else None
        if standing is None or turns is None:
            standing = Standing(self._all_of(job_id), self._zones.shifts)
            turns = standing.life.turns
        standing.life.is_jobsub = job_id.partition(".")[0] in self._of_jobsub
        self._standings.keep(job_id, standing)
        keys = {_key(fact) for fact in own if fact.teller is Teller.EVENT}
        return standing, [turn for turn in turns if _key(turn.fact) in keys]

    def _keep_within(self) -> frozenset[JobId]:
        """Let go of the facts of jobs that ended first; the jobs."""
        if self._count <= self._most:
            return frozenset()
        goal = self._most * KEPT_PERCENT // 100
        gone: set[JobId] = set()
        for job in list(islice(self._over or self._facts, self._count - goal)):
            if self._count <= goal:
                break
            own = self._facts.pop(job)
            self._count -= len(own)
            self.dropped += len(own)
            self._forget(job)
            gone.add(JobId(job))
        return frozenset(gone)

    def _forget(self, job: str) -> None:
        """Keep no id of a job that is no more, and of a cluster without jobs nothing."""
        number = _number(job)
        self._over.pop(job, None)
        self._standings.forget(self._ids[number])
        self._ids[number].discard(job)
        if self._ids[number]:
            return
        del self._ids[number]
        cluster = number.partition(".")[0]
        self._clusters[cluster].discard(number)
        if not self._clusters[cluster]:
            del self._clusters[cluster]
            self._of_jobsub.discard(cluster)


_ENDS = frozenset({"terminated", "aborted", "completed", "ad"})


def _key(fact: CondorFact) -> _Key:
    return fact.source, fact.offset, fact.what, fact.rotation


def _number(job: str) -> str:
    return job.partition("@")[0]
