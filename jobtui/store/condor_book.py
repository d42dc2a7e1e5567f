"""Jobs of HTCondor, put together from what all files say of them.

A job may be told of by its event log, by job ads and by its own output; files that leave out the schedd are
taken to speak of the one job that has their number.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from jobtui.model.changes import StateChange
from jobtui.model.condor import LOST, TRACEPARENT
from jobtui.model.condor_facts import CondorFact, Teller
from jobtui.model.condor_jobs import job_of
from jobtui.model.condor_life import CondorLife, is_of_jobsub
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobDetail
from jobtui.store.condor_changes import changes_of
from jobtui.store.condor_times import in_order, zones_in

MOST_FACTS = 150_000
"""Facts kept, about 1 kB each; those of jobs that ended first are let go of."""
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


_Key = tuple[str, int, str]


class CondorBook:
    """All that is known of jobs of HTCondor. Adding the same twice changes nothing more."""

    def __init__(self, most: int = MOST_FACTS) -> None:
        self._most = most
        self._facts: dict[str, dict[_Key, CondorFact]] = {}
        self._ids: dict[str, set[str]] = defaultdict(set)
        self._submissions: dict[str, CondorFact] = {}
        self._shifts: dict[str, int] = {}
        self._of_jobsub: set[str] = set()
        self._clusters: dict[str, set[str]] = defaultdict(set)
        self._count = 0
        self.dropped = 0
        """Facts that were let go of."""

    def add(self, facts: Iterable[CondorFact]) -> News:
        """Take in facts of any jobs, in the order in which each file has them."""
        fresh: set[_Key] = set()
        numbers: dict[str, None] = {}
        for fact in facts:
            if self._take(fact):
                fresh.add(_key(fact))
                numbers.update(self._with_cluster(fact))
        if self._learn_zones(numbers):
            numbers.update((_number(job), None) for job in self._facts)
        news = self._news(numbers, fresh)
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
        return tuple(in_order(self._all_of(job_id), self._shifts))

    def detail(self, job_id: JobId) -> JobDetail | None:
        """All that is known of a job, None for one that no file tells of."""
        facts = self.facts_of(job_id)
        if not facts:
            return None
        life = self._life(job_id, facts)
        runs = tuple(life.runs)
        ads = [fact.values for fact in facts if fact.teller is Teller.AD]
        return JobDetail(
            job=job_of(job_id, life, _source(facts)),
            runs=runs,
            history=runs,
            native={"ad": dict(ads[-1]) if ads else None, "told": [_native(fact) for fact in facts]},
            path=_source(facts),
            changes=changes_of(job_id, life.turns),
            facts=tuple(_sayings(life, facts)),
        )

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
        if fact.what in PASSING:
            for other in [one for one in own if one[2] == fact.what and one[0] == fact.source]:
                del own[other]
                self._count -= 1
        elif len(own) >= MOST_OF_JOB and key not in own:
            del own[next(iter(list(own)[MOST_OF_JOB // 4 :]))]
            self._count -= 1
            self.dropped += 1
        self._count += key not in own
        own[key] = fact
        self._ids[_number(fact.job)].add(fact.job)
        return True

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
        number = _number(job_id)
        found = list(self._facts.get(job_id, {}).values())
        if job_id != number and len(self._full(number)) == 1:
            found += self._facts.get(number, {}).values()
        return found

    def _full(self, number: str) -> list[str]:
        """The ids with a schedd of jobs that have a number."""
        return [one for one in self._ids.get(number, ()) if one != number]

    def _learn_zones(self, numbers: Iterable[str]) -> bool:
        """Find out which zone files mean; whether one is another than it was taken for."""
        changed = False
        for number in numbers:
            for job_id in self._ids[number]:
                for source, shift in zones_in(self._all_of(job_id)):
                    changed |= self._shifts.get(source) != shift
                    self._shifts[source] = shift
        return changed

    def _news(self, numbers: Iterable[str], fresh: set[_Key]) -> News:
        jobs: list[Job] = []
        gone: set[JobId] = set()
        changes: list[StateChange] = []
        for number in numbers:
            full = self._full(number)
            if len(full) == 1 and number in self._ids[number]:
                gone.add(JobId(number))
            ids = full if len(full) == 1 else self._ids[number]
            for job_id in map(JobId, sorted(ids)):
                facts = self.facts_of(job_id)
                life = self._life(job_id, facts)
                jobs.append(job_of(job_id, life, _source(facts)))
                turns = (turn for turn in life.turns if _key(turn.fact) in fresh)
                changes += changes_of(job_id, (turn for turn in turns if turn.fact.teller is Teller.EVENT))
        return News(tuple(jobs), frozenset(gone), tuple(changes))

    def _keep_within(self) -> frozenset[JobId]:
        """Let go of the facts of jobs that ended first; the jobs."""
        if self._count <= self._most:
            return frozenset()
        gone: set[JobId] = set()
        over = [job for job, own in self._facts.items() if any(f.what in _ENDS for f in own.values())]
        for job in over or list(self._facts):
            if self._count <= self._most * 9 // 10:
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
    return fact.source, fact.offset, fact.what


def _number(job: str) -> str:
    return job.partition("@")[0]


def _source(facts: Sequence[CondorFact]) -> str:
    """The file that knows best."""
    return min(facts, key=lambda fact: fact.teller.rank).source


def _native(fact: CondorFact) -> dict[str, object]:
    return {
        "what": fact.what, "by": fact.teller.value, "source": fact.source, "offset": fact.offset,
        "text": fact.text,
    }  # fmt: skip


def _sayings(life: CondorLife, facts: Sequence[CondorFact]) -> Iterator[tuple[str, str]]:
    """What a person asks of a job beside how it stands."""
    for trace, fact in life.traces.items():
        yield "trace", f"{trace}, named in {fact.source}"
    if life.exit is not None:
        yield "ended with", str(life.exit)
    if life.lost:
        counts = ((what.replace("_", " "), life.counts[what]) for what in sorted(_LOST & life.counts.keys()))
        yield "lost runs", ", ".join(f"{count} {what}" for what, count in counts)
    if life.hold_code:
        yield "hold code", life.hold_code
    for name in ("args", "RequestMemory", "SlotName"):
        if text := life.values.get(name):
            yield name, text
    yield "told by", ", ".join(dict.fromkeys(fact.source for fact in facts))


_LOST = LOST | {"held"}
