"""Jobs of HTCondor, put together from what all files say of them, and when each thing happened.

A log without zones means the zone in which the same moments are as written elsewhere: the end of a job,
which the starter notes in UTC, or its submission, which its job ad has in seconds; or either of them in a
log with a zone. Logs that have the same event at the same time mean the same zone. Until one is known it is
this machine's.

A schedd notes an event in its user's log and in its own, in the form and to the fraction of a second that is
set for each; and a log may be copied. So events of one job are the same if they are of one kind and of one
second, and each is as far among such ones of its file as the other is in its own.

A job may be told of by its event log, by job ads and by its own output; files that leave out the schedd are
taken to speak of the one job that has their number.
"""

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from itertools import islice
from operator import attrgetter, itemgetter
from typing import NamedTuple

import msgspec

from jobtui.model.changes import StateChange
from jobtui.model.clock import SECOND, Nanos, time_of_iso, time_of_moment, time_of_seconds, utc_of
from jobtui.model.condor import LOG_GAP, LOST, TRACEPARENT, CondorFact, Teller
from jobtui.model.condor_life import CondorLife, changes_of, is_of_jobsub, job_of, time_of
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobDetail
from jobtui.model.numbers import whole

QUARTER_S = 900
"""Zones differ by quarters of an hour."""
SLACK_S = 120
"""How far two notes of one moment may be apart."""
ONCE = ("submit", "terminated")
"""Events that a job has once: logs that tell of the same one tell of one moment."""
ALIKE = (*ONCE, "execute")
"""Events by which logs that mean the same zone are known: a line of any of them may be lost."""
FIRST = -10
"""The rank of what nothing can be before."""
MOST_ZONE_S = 14 * 3600
"""No zone is farther from UTC."""


class EventPlace(NamedTuple):
    """Where a fact stands among all of its job."""

    order: Nanos
    rank: int
    fine: int
    source: str
    rotation: int
    part: int
    offset: int


class Placed(NamedTuple):
    """A fact with its time settled, and its place."""

    place: EventPlace
    fact: CondorFact


_IN_FILE = attrgetter("source", "rotation", "part", "offset")
_ORDER = itemgetter(0)


class Ordering:
    """Gives the facts of one job their places; those of each file in the order of the file."""

    def __init__(self, shifts: Mapping[str, int]) -> None:
        self._shifts = shifts
        self._last: dict[str, Nanos] = {}

    def place(self, fact: CondorFact) -> Placed:
        """The place of a fact; one without a time stays behind the one before it in its file."""
        at, source, rank = time_of(fact), fact.source, -fact.teller.rank
        if at is not None and fact.is_local:
            at = _settled(at, self._shifts.get(source))
        order, last, fine = at, self._last.get(source), 0
        if order is not None and fact.what == "submit":  # nothing is before it; an ad may be a second ahead
            order, rank, fine = Nanos(0), FIRST, order
        if order is None or (last is not None and order < last):
            order = last or Nanos(0)
        self._last[source] = order
        if at != fact.at:
            fact = msgspec.structs.replace(fact, at=at, is_local=False)
        return Placed(EventPlace(order, rank, fine, source, fact.rotation, fact.part, fact.offset), fact)

    def placed(self, facts: Iterable[CondorFact]) -> list[Placed]:
        """Facts in the order of their places."""
        return sorted(map(self.place, sorted(facts, key=_IN_FILE)), key=_ORDER)


def in_order(facts: Iterable[CondorFact], shifts: Mapping[str, int]) -> list[CondorFact]:
    """Facts by time, that of each of them settled; one without a time stays behind the one before it."""
    return [placed.fact for placed in Ordering(shifts).placed(facts)]


class Zones:
    """The zones that files without any mean, as shifts from UTC: of each what its latest moment tells."""

    def __init__(self) -> None:
        self.shifts: dict[str, int] = {}
        self._told: dict[str, tuple[Nanos, int]] = {}
        self._alike: dict[str, set[str]] = {}

    def learn(self, facts: Sequence[CondorFact]) -> set[str]:
        """Take in what the facts of a job tell; the files whose zone is another than it was taken for."""
        if not any(fact.is_local for fact in facts):
            return set()
        touched: set[str] = set()
        for one, other in alike_in(facts):
            if other not in self._like(one):
                joined = self._like(one) | self._like(other)
                self._alike.update(dict.fromkeys(joined, joined))
                touched.add(one)
        for source, at, shift in zones_in(facts):
            if (at, shift) > self._told.get(source, (at, shift - 1)):
                self._told[source] = at, shift
                touched.add(source)
        return set().union(*map(self._settle, touched))

    def _like(self, source: str) -> set[str]:
        return self._alike.get(source, {source})

    def _settle(self, source: str) -> set[str]:
        """Let what is told of any of the files that mean one zone hold for all; those that had another."""
        alike = self._like(source)
        told = [self._told[one] for one in alike if one in self._told]
        if not told:
            return set()
        _, shift = max(told)
        changed = {one for one in alike if self.shifts.get(one) != shift}
        self.shifts.update(dict.fromkeys(changed, shift))
        return changed


def may_tell_zone(fact: CondorFact) -> bool:
    return fact.teller is Teller.AD or fact.what in ALIKE


def _settled(at: Nanos, shift: int | None) -> Nanos:
    """A time without a zone: in the one that is known for its file, else in that of this machine."""
    if shift is not None:
        return Nanos(at + shift)
    here = time_of_moment(utc_of(at).replace(tzinfo=None), is_local=True)
    return at if here is None else Nanos(here + at % SECOND)


def zones_in(facts: Iterable[CondorFact]) -> Iterator[tuple[str, Nanos, int]]:
    """How far files' times without a zone are from UTC, by moments that are also written with one.

    Gives the file, the moment without its zone, and the shift.
    """
    known = [fact for fact in facts if fact.at is not None or fact.teller is Teller.AD]
    ads = (fact.values for fact in known if fact.teller is Teller.AD)
    queued = next((at for ad in ads if (at := time_of_seconds(whole(ad.get("QDate"))))), None)
    elsewhere = _told_with_zone(known)
    for fact in known:
        if not fact.is_local or fact.at is None or fact.teller is not Teller.EVENT:
            continue
        true = None
        if fact.what == "submit" and queued is not None:
            true = queued
        elif fact.what == "terminated":
            true = _moment_of_end(fact.values)
        shift = _whole(fact.at, elsewhere.get(fact.what)) if true is None else _rounded(true - fact.at)
        if shift is not None:
            yield fact.source, fact.at, shift


def alike_in(facts: Iterable[CondorFact]) -> Iterator[tuple[str, str]]:
    """Two files each that tell of the same event at the same time, both without a zone."""
    first: dict[tuple[str, int], str] = {}
    for fact in facts:
        if fact.is_local and fact.at is not None and fact.what in ALIKE:
            one = first.setdefault((fact.what, fact.at // SECOND), fact.source)
            if one != fact.source:
                yield one, fact.source


def _told_with_zone(facts: Iterable[CondorFact]) -> dict[str, Nanos]:
    told: dict[str, Nanos] = {}
    for fact in facts:
        if fact.what in ONCE and not fact.is_local and fact.at is not None:
            told[fact.what] = min(fact.at, told.get(fact.what, fact.at))
    return told


def _whole(at: Nanos, true: Nanos | None) -> int | None:
    """How far the time of an event is from UTC, where a log with a zone has the same one to the second."""
    if true is None:
        return None
    apart = (true // SECOND - at // SECOND) * SECOND
    return apart if _rounded(apart) == apart and abs(apart) <= MOST_ZONE_S * SECOND else None


def _moment_of_end(values: Mapping[str, str]) -> Nanos | None:
    """When a program ended, as the starter notes it: in UTC, or in seconds in the XML and JSON forms."""
    if (when := values.get("When", "")).endswith("Z"):
        return time_of_iso(when)
    return time_of_seconds(whole(values.get("ToE.When")))


def _rounded(difference: int) -> int | None:
    """A difference of clocks in whole quarters of an hour; None when it is none."""
    whole = round(difference / SECOND / QUARTER_S) * QUARTER_S * SECOND
    return whole if abs(difference - whole) <= SLACK_S * SECOND else None


PASSING = frozenset({"image_size", "file_transfer", "attribute_update", "generic"})
"""What comes again and again, changes no state, and of which the last one in each file tells enough."""


class Once:
    """Tells events of one job that are told for the first time from those that another file told before.

    It holds texts and numbers only, at which the garbage collector does not look.
    """

    def __init__(self) -> None:
        self._told: dict[str, int] = {}
        self._told_in: dict[str, int] = {}

    def is_new(self, fact: CondorFact) -> bool:
        """Take in one more fact, its time settled; whether no other file told the same event before."""
        if fact.teller is not Teller.EVENT or fact.what in PASSING:
            return True
        second = fact.text if fact.at is None else fact.at // SECOND
        moment = f"{fact.what} {second}"
        place = f"{fact.rotation} {fact.source} {moment}"
        count = self._told_in[place] = self._told_in.get(place, 0) + 1
        if count <= self._told.get(moment, 0):
            return False
        self._told[moment] = count
        return True


def told_once(facts: Iterable[CondorFact]) -> Iterator[CondorFact]:
    """The facts of a job in order of time, of each event the one that comes first."""
    return filter(Once().is_new, facts)


def files_in(facts: Iterable[CondorFact]) -> set[tuple[str, int]]:
    """The logs whose events are among facts. Where there is one, no event is told twice."""
    return {(fact.source, fact.rotation) for fact in facts if fact.teller is Teller.EVENT}


MOST_FACTS = 150_000
"""Facts kept, about 1 kB each; those of jobs that ended first are let go of."""
KEPT_PERCENT = 99
"""So much of that is left when facts are let go of: few at a time hold up nobody."""
MOST_OF_JOB = 300
"""Facts kept of one job out of one file: two logs of a job are bounded as each of them alone."""
MOST_SUBMISSIONS = 10_000
"""Submit files kept that name a trace but no job, those read last."""
TAKEN_AT_ONCE = 500
"""Facts taken in before it is told what became of their jobs."""
LOOKED_AT_ONCE = 600
"""Facts looked at to tell of some jobs, some ms; not many more, as one job has few."""
A_TELLING = 5
"""To tell of a job takes as long as to look at so many facts."""
SEARCHED_AT_ONCE = 200
"""Jobs looked through at a time for those that are due."""


class CondorNews(NamedTuple):
    """What came of new facts: jobs as they are now, ids that are no more, and what events changed."""

    jobs: tuple[Job, ...] = ()
    gone: frozenset[JobId] = frozenset()
    changes: tuple[StateChange, ...] = ()


_Key = tuple[str, int, str, int, int]


class _Facts:
    """What files say of a job under one of its names, each thing once. Every question costs the same."""

    def __init__(self) -> None:
        self.all: dict[_Key, CondorFact] = {}
        self.of_zones: dict[tuple[str, str], CondorFact] = {}
        self._passing: dict[tuple[str, str], _Key] = {}
        self._counts: Counter[str] = Counter()

    def add(self, fact: CondorFact) -> int:
        """Take in a fact; how many others are let go of for it, those that say no less left out."""
        key = _key(fact)
        if fact.what in PASSING and (before := self._passing.get(key[:3:2])) not in (None, key):
            del self.all[before]
            self._counts[fact.source] -= 1
        self._counts[fact.source] += key not in self.all
        self.all[key] = fact
        if fact.what in PASSING:
            self._passing[key[:3:2]] = key
        if may_tell_zone(fact):
            self.of_zones[fact.source, fact.what] = fact
        return self._thin(fact.source) if self._counts[fact.source] > MOST_OF_JOB else 0

    def _thin(self, source: str) -> int:
        """Let go of the middle of what one file says."""
        keys = [key for key, fact in self.all.items() if key[0] == source and fact.what not in PASSING]
        middle = keys[MOST_OF_JOB // 4 : MOST_OF_JOB // 2]
        for key in middle:
            del self.all[key]
        self._counts[source] -= len(middle)
        return len(middle)


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


class CondorBook:
    """All that is known of jobs of HTCondor. Adding the same twice changes nothing more."""

    def __init__(self, most: int = MOST_FACTS) -> None:
        self._most = most
        self._facts: dict[str, _Facts] = {}
        self._ids: dict[str, dict[str, None]] = defaultdict(dict)  # the garbage collector looks at each set
        self._submissions: dict[str, CondorFact] = {}
        self._zones = Zones()
        self._gaps: dict[str, CondorFact] = {}
        self._due = Due()
        self._over: dict[str, None] = {}
        self._of_jobsub: set[str] = set()
        self._clusters: dict[str, dict[str, None]] = defaultdict(dict)
        self._count = 0
        self.dropped = 0
        """Facts that were let go of."""

    def add(self, facts: Iterable[CondorFact]) -> CondorNews:
        """Take in facts of any jobs, in the order in which each file has them."""
        return _together(self.steps(facts))

    def steps(self, facts: Iterable[CondorFact]) -> Iterator[CondorNews]:
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
        return _detail_of(job_id, self._life_of(job_id, facts), facts) if facts else None

    def traces_named_in(self, source: str) -> dict[str, tuple[str, ...]]:
        """The traces that a file names, each with the jobs it is named for."""
        found: dict[str, dict[str, None]] = defaultdict(dict)
        told = (fact for own in self._facts.values() for fact in own.all.values())
        for fact in (*told, *self._submissions.values()):
            if fact.source == source and (trace := fact.values.get(TRACEPARENT)) is not None:
                found[trace].update({fact.job: None} if fact.job else {})
        return {trace: tuple(jobs) for trace, jobs in found.items()}

    def jobs_told_in(self, source: str) -> tuple[str, ...]:
        """The jobs of which a file tells, each by the longest of its ids."""
        told = {job for job, own in self._facts.items() if any(key[0] == source for key in own.all)}
        return tuple(sorted(job for job in told if "@" in job or not (told & self._ids[job].keys()) - {job}))

    def changes_of(self, job_id: JobId) -> tuple[StateChange, ...] | None:
        """How the state of a job changed, None for one that no file tells of."""
        facts = in_order(self._all_of(job_id), self._zones.shifts)
        return changes_of(job_id, self._life_of(job_id, facts).turns) if facts else None

    def _take_in(self, facts: Iterable[CondorFact]) -> None:
        shifted: set[str] = set()
        for fact in facts:
            if fact.job:
                shifted |= self._take(fact)
            elif fact.teller is Teller.SUBMIT:
                self._keep_submission(fact)
            elif fact.what == LOG_GAP:
                self._gaps[fact.source] = fact
                shifted.add(fact.source)
        if shifted:
            self._due.search(self._with_times_in(shifted))

    def _take(self, fact: CondorFact) -> set[str]:
        """Put a fact among those of its job; the files whose zone is another than it was taken for."""
        own = self._own_of(fact.job)
        if own.all.get(_key(fact)) == fact:
            return set()
        job_id = self._bearer(fact.job)
        before = len(own.all)
        self.dropped += own.add(fact)
        self._count += len(own.all) - before
        self._due.add(job_id, (fact,))
        if fact.what in _ENDS:
            self._over.setdefault(fact.job)
        if is_of_jobsub(fact):
            self._learn_jobsub(_cluster(fact.job))
        shifted: set[str] = set()
        if may_tell_zone(fact):
            names = filter(None, map(self._facts.get, self._ids_of(job_id)))
            shifted = self._zones.learn([one for name in names for one in name.of_zones.values()])
        if self._count > self._most:
            self._keep_within()
        return shifted

    def _own_of(self, job: str) -> _Facts:
        """Where the facts are put that name a job so."""
        own = self._facts.get(job)
        if own is None:
            number = _number(job)
            before = self._bearer(number)
            own = self._facts[job] = _Facts()
            self._ids[number][job] = None
            self._clusters[_cluster(job)][number] = None
            if number in self._facts and before != self._bearer(number):
                self._settle(number, before)
        return own

    def _settle(self, number: str, before: str) -> None:
        """Tell anew what facts make that name a number only: they were of one job, and may be of another."""
        jobs = dict.fromkeys((before, self._bearer(number)))
        fresh = [fact for job_id in jobs for fact in self._due.take_back(job_id)]
        for job_id in jobs:
            if job_id in self._facts and self._bearer(job_id) == job_id:
                self._due.add(job_id, fresh)
            else:
                self._due.drop(job_id)

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
        """The jobs of which these files tell; None for each other one."""
        for job in list(self._facts):
            is_found = self._bearer(job) == job and any(one.source in sources for one in self._all_of(job))
            yield job if is_found else None

    def _life_of(self, job_id: str, facts: Sequence[CondorFact]) -> CondorLife:
        """What became of a job, by all facts of it in order of time."""
        life, once = CondorLife(()), Once() if len(files_in(facts)) > 1 else None
        for fact in facts:
            (life.take if once is None or once.is_new(fact) else life.hear_again)(fact)
        life.is_jobsub = _cluster(job_id) in self._of_jobsub
        return life

    def _all_of(self, job_id: str) -> list[CondorFact]:
        """The facts of a job, also those that name it by its number only, and the gaps in its logs."""
        names = filter(None, map(self._facts.get, self._ids_of(job_id)))
        facts = [fact for name in names for fact in name.all.values()]
        for source in {fact.source for fact in facts} & self._gaps.keys():
            gap = self._gaps[source]
            since = (gap.rotation, gap.part)
            if all((fact.rotation, fact.part) < since for fact in facts if fact.source == source):
                facts.append(gap)
        return facts

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

    def _tell(self) -> CondorNews:
        """Some of the jobs that are due, and all that are no more."""
        jobs: dict[JobId, Job] = {}
        changes: list[StateChange] = []
        looked = 0
        for job_id, fresh in self._due.turns():
            facts = in_order(self._all_of(job_id), self._zones.shifts)
            if not facts:
                continue
            life = self._life_of(job_id, facts)
            jobs[job_id] = job_of(job_id, life, min(facts, key=lambda fact: fact.teller.rank).source)
            keys = {_key(fact) for fact in fresh if fact.teller is Teller.EVENT}
            if len(files_in(facts)) > 1:
                keys = _not_told(facts, keys)
            changes += changes_of(job_id, [turn for turn in life.turns if _key(turn.fact) in keys])
            looked += A_TELLING + len(facts)
            if looked >= LOOKED_AT_ONCE:
                break
        return CondorNews(tuple(jobs.values()), self._due.gone() - jobs.keys(), tuple(changes))

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
            known = self._facts.pop(one, None)
            gone = len(known.all) if known is not None else 0
            self._count -= gone
            self.dropped += gone
            self._over.pop(one, None)
            self._ids[number].pop(one, None)
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
    return fact.source, fact.offset, fact.what, fact.rotation, fact.part


def _not_told(facts: Iterable[CondorFact], keys: Set[_Key]) -> set[_Key]:
    """Those of new events that no other file told before."""
    by_age = sorted(facts, key=lambda fact: _key(fact) in keys)
    return {_key(fact) for fact in told_once(by_age)} & keys


def _number(job: str) -> str:
    return job.partition("@")[0]


def _cluster(job: str) -> str:
    return job.partition(".")[0]


def _together(steps: Iterable[CondorNews]) -> CondorNews:
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
    return CondorNews(tuple(jobs.values()), frozenset(gone - jobs.keys()), tuple(changes))


_LOST = LOST | {"held"}
_SHOWN = (
    "args", "RequestCpus", "RequestMemory", "RequestDisk", "RequestGPUs", "Requirements", "PeriodicHold",
    "PeriodicRelease", "PeriodicRemove", "SlotName",
)  # fmt: skip
"""Attributes that are shown as written: what a job asks for, and when it is held, released or removed."""


def _detail_of(job_id: JobId, life: CondorLife, facts: Sequence[CondorFact]) -> JobDetail:
    """A job by its life, and by the facts in order of time, at least one, that made it.

    An event that several files tell of is given as one of them has it.
    """
    runs = tuple(life.runs)
    source = min(facts, key=lambda fact: fact.teller.rank).source
    ads = [fact.values for fact in facts if fact.teller is Teller.AD]
    return JobDetail(
        job=job_of(job_id, life, source),
        runs=runs,
        history=runs,
        native={"ad": dict(ads[-1]) if ads else None, "told": [_native(fact) for fact in told_once(facts)]},
        path=source,
        changes=changes_of(job_id, life.turns),
        facts=tuple(_sayings(life, facts)),
    )


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
    for name in _SHOWN:
        if text := life.values.get(name):
            yield name, text
    yield "told by", ", ".join(dict.fromkeys(fact.source for fact in facts))
