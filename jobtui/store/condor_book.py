"""Jobs of HTCondor, put together from what all files say of them.

A job may be told of by its event log, by job ads and by its own output; files that leave out the schedd are
taken to speak of the one job that has their number.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import islice
from typing import NamedTuple

from jobtui.model.changes import StateChange
from jobtui.model.condor import TRACEPARENT
from jobtui.model.condor_facts import CondorFact, Teller
from jobtui.model.condor_jobs import job_of
from jobtui.model.condor_life import Turn, is_of_jobsub
from jobtui.model.condor_once import PASSING, told_once
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobDetail
from jobtui.store.condor_changes import changes_of
from jobtui.store.condor_detail import detail_of
from jobtui.store.condor_due import Due
from jobtui.store.condor_standing import Standing, Standings
from jobtui.store.condor_times import Zones, in_order, may_tell_zone

MOST_FACTS = 150_000
"""Facts kept, about 1 kB each; those of jobs that ended first are let go of."""
KEPT_PERCENT = 99
"""So much of that is left when facts are let go of: few at a time hold up nobody."""
MOST_OF_JOB = 300
"""Facts kept of one job out of one file: two logs of a job are bounded as each of them alone."""
MOST_SUBMISSIONS = 10_000
"""Submit files kept that name a trace but no job, those read last."""
TAKEN_AT_ONCE = 100
"""Facts taken in before it is told what became of their jobs."""
LOOKED_AT_ONCE = 600
"""Facts looked at to tell of some jobs, some ms; not many more, as one job has few."""
A_TELLING = 5
"""To tell of a job takes as long as to look at so many facts."""


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
        self._ids: dict[str, dict[str, None]] = defaultdict(dict)  # the garbage collector looks at each set
        self._submissions: dict[str, CondorFact] = {}
        self._zones = Zones()
        self._standings = Standings()
        self._due = Due()
        self._over: dict[str, None] = {}
        self._of_jobsub: set[str] = set()
        self._clusters: dict[str, dict[str, None]] = defaultdict(dict)
        self._count = 0
        self.dropped = 0
        """Facts that were let go of."""

    def add(self, facts: Iterable[CondorFact]) -> News:
        """Take in facts of any jobs, in the order in which each file has them."""
        return _together(self.steps(facts))

    def steps(self, facts: Iterable[CondorFact]) -> Iterator[News]:
        """The same in steps that hold up nobody.

        Others may add facts in between. Steps that nobody takes are left to whoever adds next.
        """
        coming = iter(facts)
        while part := list(islice(coming, TAKEN_AT_ONCE)):
            self._take_in(part)
            while self._due:
                yield self._tell()

    @property
    def notice(self) -> str | None:
        """What is to be said of what was let go of, None when all is here."""
        if not self.dropped:
            return None
        limits = f"at most {self._most:,}, and {MOST_OF_JOB} of a job in one file, are kept"
        return f"{self.dropped:,} facts let go of, those of ended jobs first: {limits}"

    def facts_of(self, job_id: JobId) -> tuple[CondorFact, ...]:
        """What files say of a job in order of time; of an event that several tell of, what one says."""
        return tuple(told_once(in_order(self._all_of(job_id), self._zones.shifts)))

    def detail(self, job_id: JobId) -> JobDetail | None:
        """All that is known of a job, None for one that no file tells of."""
        facts = in_order(self._all_of(job_id), self._zones.shifts)
        return detail_of(job_id, self._put_together(job_id).life, facts) if facts else None

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
        return tuple(sorted(job for job in told if "@" in job or not (told & self._ids[job].keys()) - {job}))

    def changes_of(self, job_id: JobId) -> tuple[StateChange, ...] | None:
        """How the state of a job changed, None for one that no file tells of."""
        return changes_of(job_id, self._put_together(job_id).life.turns) if self._all_of(job_id) else None

    def _take_in(self, facts: Iterable[CondorFact]) -> None:
        shifted: set[str] = set()
        for fact in facts:
            if fact.job:
                shifted |= self._take(fact)
            elif fact.teller is Teller.SUBMIT:
                self._keep_submission(fact)
        if shifted:
            self._due.search(self._with_times_in(shifted))

    def _take(self, fact: CondorFact) -> set[str]:
        """Put a fact among those of its job; the files whose zone is another than it was taken for."""
        own, key = self._own_of(fact.job), _key(fact)
        if own.get(key) == fact:
            return set()
        job_id = self._bearer(fact.job)
        self._make_room(own, fact, job_id)
        self._count += key not in own
        own[key] = fact
        self._due.add(job_id, (fact,))
        if fact.what in _ENDS:
            self._over.setdefault(fact.job)
        if is_of_jobsub(fact):
            self._learn_jobsub(_cluster(fact.job))
        shifted = self._zones.learn(self._all_of(job_id)) if may_tell_zone(fact) else set()
        if self._count > self._most:
            self._keep_within()
        return shifted

    def _own_of(self, job: str) -> dict[_Key, CondorFact]:
        """Where the facts are put that name a job so."""
        own = self._facts.get(job)
        if own is None:
            number = _number(job)
            before = self._bearer(number)
            own = self._facts[job] = {}
            self._ids[number][job] = None
            self._clusters[_cluster(job)][number] = None
            if number in self._facts and before != self._bearer(number):
                self._settle(number, before)
        return own

    def _settle(self, number: str, before: str) -> None:
        """Tell anew what facts make that name a number only: they were of one job, and may be of another."""
        jobs = dict.fromkeys((before, self._bearer(number)))
        fresh = [fact for job_id in jobs for fact in self._due.take_back(job_id)]
        self._standings.forget(jobs)
        for job_id in jobs:
            if job_id in self._facts and self._bearer(job_id) == job_id:
                self._due.add(job_id, fresh)
            else:
                self._due.drop(job_id)

    def _make_room(self, own: dict[_Key, CondorFact], fact: CondorFact, job_id: str) -> None:
        """Let go of what need not be kept of a job beside one more fact."""
        if _key(fact) in own:
            self._standings.forget((job_id,))
        elif fact.what in PASSING:
            before = [one for key, one in own.items() if key[2] == fact.what and key[0] == fact.source]
            standing = self._standings.get(job_id)
            if standing and not all(standing.spare(one, fact) for one in before):
                self._standings.forget((job_id,))
            self._let_go(own, before)
        elif len(own) >= MOST_OF_JOB and len(told := _told_in(fact.source, own)) >= MOST_OF_JOB:
            middle = told[MOST_OF_JOB // 4 : MOST_OF_JOB // 2]
            self._standings.forget((job_id,))
            self._let_go(own, middle)
            self.dropped += len(middle)

    def _let_go(self, own: dict[_Key, CondorFact], facts: Sequence[CondorFact]) -> None:
        for fact in facts:
            del own[_key(fact)]
        self._count -= len(facts)

    def _keep_submission(self, fact: CondorFact) -> None:
        trace = fact.values[TRACEPARENT]
        self._submissions.pop(trace, None)
        self._submissions[trace] = fact
        if len(self._submissions) > MOST_SUBMISSIONS:
            del self._submissions[next(iter(self._submissions))]
            self.dropped += 1

    def _learn_jobsub(self, cluster: str) -> None:
        """All jobs of a cluster are of jobsub where one shows that it submitted them."""
        if cluster not in self._of_jobsub:
            self._of_jobsub.add(cluster)
            numbers = list(self._clusters[cluster])
            ids = (job for number in numbers for job in tuple(self._ids.get(number, {})))
            self._due.search(map(self._bearer, ids))

    def _with_times_in(self, sources: Set[str]) -> Iterator[str | None]:
        """The jobs of which these files tell, which are put together anew; None for each other one."""
        for job in list(self._facts):
            is_found = self._bearer(job) == job and any(one.source in sources for one in self._all_of(job))
            self._standings.forget((job,) if is_found else ())
            yield job if is_found else None

    def _put_together(self, job_id: str) -> Standing:
        standing = Standing(self._all_of(job_id), self._zones.shifts)
        standing.life.is_jobsub = _cluster(job_id) in self._of_jobsub
        return standing

    def _all_of(self, job_id: str) -> list[CondorFact]:
        """The facts of a job, also those that name it by its number only."""
        return [fact for one in self._ids_of(job_id) for fact in self._facts.get(one, {}).values()]

    def _ids_of(self, job_id: str) -> tuple[str, ...]:
        """The ids that mean a job: its own, and its number where no other job has that."""
        number = _number(job_id)
        return (job_id, number) if job_id != number and self._bearer(number) == job_id else (job_id,)

    def _bearer(self, job: str) -> str:
        """The job that an id means: a number that one job has alone, with its schedd, is that one."""
        if "@" in job:
            return job
        ids = self._ids.get(job, {})
        is_one = len(ids) - (job in ids) == 1
        return next(one for one in ids if one != job) if is_one else job

    def _tell(self) -> News:
        """Some of the jobs that are due, and all that are no more."""
        jobs: dict[JobId, Job] = {}
        changes: list[StateChange] = []
        looked = 0
        for job_id, fresh in self._due.turns():
            standing, turns = self._standing_of(job_id, list(filter(self._is_known, fresh)))
            jobs[job_id] = job_of(job_id, standing.life, standing.source)
            changes += changes_of(job_id, turns)
            looked += A_TELLING + standing.looked
            if looked >= LOOKED_AT_ONCE:
                break
        return News(tuple(jobs.values()), self._due.gone() - jobs.keys(), tuple(changes))

    def _is_known(self, fact: CondorFact) -> bool:
        return self._facts.get(fact.job, {}).get(_key(fact)) is fact

    def _standing_of(self, job_id: JobId, fresh: Sequence[CondorFact]) -> tuple[Standing, list[Turn]]:
        """A job as it stands, and the turns that new facts made, those of its number that are about it."""
        ids = self._ids_of(job_id)
        own = [fact for fact in fresh if fact.job in ids]
        standing = self._standings.get(job_id)
        turns = standing.extend(own) if standing else None
        keys = {_key(fact) for fact in own if fact.teller is Teller.EVENT}
        if standing is None or turns is None:
            standing = self._put_together(job_id)
            turns = standing.life.turns
            if standing.is_shared:
                keys = _not_told(in_order(self._all_of(job_id), self._zones.shifts), keys)
                standing.looked *= 2
        standing.life.is_jobsub = _cluster(job_id) in self._of_jobsub
        self._standings.keep(job_id, standing)
        return standing, [turn for turn in turns if _key(turn.fact) in keys]

    def _keep_within(self) -> None:
        """Let go of the facts of jobs that ended first."""
        goal = self._most * KEPT_PERCENT // 100
        for job in list(islice(self._over or self._facts, self._count - goal)):
            if self._count <= goal:
                break
            if job in self._facts:
                self._forget(self._bearer(job))

    def _forget(self, job_id: str) -> None:
        """Keep nothing of a job, and of a cluster without jobs nothing."""
        number, cluster = _number(job_id), _cluster(job_id)
        for one in self._ids_of(job_id):
            gone = len(self._facts.pop(one, ()))
            self._count -= gone
            self.dropped += gone
            self._over.pop(one, None)
            self._ids[number].pop(one, None)
        self._standings.forget((job_id,))
        self._due.drop(job_id)
        if self._ids[number]:
            self._settle(number, number)
            return
        del self._ids[number]
        self._clusters[cluster].pop(number, None)
        if not self._clusters[cluster]:
            del self._clusters[cluster]
            self._of_jobsub.discard(cluster)


_ENDS = frozenset({"terminated", "aborted", "completed", "ad"})


def _key(fact: CondorFact) -> _Key:
    return fact.source, fact.offset, fact.what, fact.rotation


def _not_told(facts: Iterable[CondorFact], keys: Set[_Key]) -> set[_Key]:
    """Those of new events that no other file told before."""
    by_age = sorted(facts, key=lambda fact: _key(fact) in keys)
    return {_key(fact) for fact in told_once(by_age)} & keys


def _told_in(source: str, own: Mapping[_Key, CondorFact]) -> list[CondorFact]:
    return [fact for key, fact in own.items() if key[0] == source]


def _number(job: str) -> str:
    return job.partition("@")[0]


def _cluster(job: str) -> str:
    return job.partition(".")[0]


def _together(steps: Iterable[News]) -> News:
    """All that is told, one after the other, as one piece of news."""
    jobs: dict[JobId, Job] = {}
    gone: set[JobId] = set()
    changes: list[StateChange] = []
    for news in steps:
        for job_id in news.gone:
            jobs.pop(job_id, None)
        jobs.update((job.id, job) for job in news.jobs)
        gone |= news.gone
        changes += news.changes
    return News(tuple(jobs.values()), frozenset(gone - jobs.keys()), tuple(changes))
