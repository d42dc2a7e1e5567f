"""Jobs of HTCondor, made from what all files say about them, and when each thing happened.

The zone of a log without zones is found from a moment that another file has with a zone: the end of a job,
which the starter notes in UTC, or its submission, which its job ad has in seconds; or either of them in a
log with a zone; or when the file was last written, for the last event in it. Until one is known, it is the
zone of this machine.

A schedd writes an event to its user's log and to its own, each in its own form and with its own fraction of
a second; and a log may be copied. So two events of one job are the same if kind and second are the same, and
if each has the same position among such events of its file.

Event logs, job ads and a job's own output may all report one job. A file that leaves out the schedd means
the one job that has the number.
"""

import posixpath
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import attrgetter, itemgetter
from typing import NamedTuple

import msgspec

from jobtui.model import condor
from jobtui.model.changes import StateChange
from jobtui.model.clock import SECOND, Nanos, time_of_iso, time_of_moment, time_of_seconds, utc_of, zone_shift
from jobtui.model.condor import CondorLife
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobDetail
from jobtui.model.logs import CondorFact, Origin
from jobtui.model.numbers import counted, whole

SLACK_S = 120
"""How far two notes of one moment may be apart."""
WRITTEN_S = 2
"""How long after an event was dated its log may be written."""
EARLIER_S = 26 * 3600
"""Facts so long before a submission are of another job; zones that are not known yet differ by less."""
ONCE = ("submit", "terminated")
"""Events that a job has once: logs with the same event mean the same moment."""
FIRST = -10
PASSING = frozenset({"image_size", "file_transfer", "attribute_update", "generic"})
"""Events that are repeated and change no state: the last one in each file is enough."""
MOST_FACTS = 150_000
"""Facts kept, about 1 kB each; those of jobs that ended first are dropped."""
KEPT_PERCENT = 99
"""The part that is kept when facts are dropped: dropping few at a time delays nothing."""
MOST_OF_JOB = 300
"""Facts of one job that are kept from one file: each log of a job has this limit for itself."""
MOST_SUBMISSIONS = 10_000
"""How many submit files are kept that name a trace but no job: those that were read last."""

Shifts = Mapping[str, tuple[Nanos, int]]
"""How far the times of a file without a zone are from UTC, and the moment that showed it."""

_IN_FILE = attrgetter("source", "rotation", "part", "offset")


def in_order(facts: Iterable[CondorFact], shifts: Shifts) -> list[CondorFact]:
    """Facts by time, once each has a time; those of each file stay in the order of the file.

    One without a time follows the one before it in its file.
    """
    latest: dict[str, Nanos] = {}
    placed = []
    for fact in sorted(facts, key=_IN_FILE):
        at, rank, fine = condor.time_of(fact), -fact.origin.rank, 0
        if at is not None and fact.is_local:
            # A time without a zone has the zone that is known for its file, else that of this machine
            if (known := shifts.get(fact.source)) is not None:
                at = Nanos(at + known[1])
            elif here := time_of_moment(utc_of(at).replace(tzinfo=None), is_local=True):
                at = Nanos(here + at % SECOND)
        order, last = at, latest.get(fact.source)
        if order is not None and fact.what == "submit":  # nothing is before it; an ad may be a second ahead
            order, rank, fine = Nanos(0), FIRST, order
        if order is None or (last is not None and order < last):
            order = last or Nanos(0)
        latest[fact.source] = order
        if at != fact.at:
            fact = msgspec.structs.replace(fact, at=at, is_local=False)
        placed.append(((order, rank, fine, *_IN_FILE(fact)), fact))
    placed.sort(key=itemgetter(0))
    return _with_their_events(_of_last_job([fact for _, fact in placed]))


def _of_last_job(facts: list[CondorFact]) -> list[CondorFact]:
    """The facts without those of an earlier job: a queue that begins again gives its numbers again."""
    submissions = ((at, fact) for fact in facts if (at := condor.submitted_at(fact)) is not None)
    at, last = max(submissions, key=itemgetter(0), default=(Nanos(0), None))
    if last is None:
        return facts
    log = last.source if last.what == "submit" else None
    return [
        fact
        for fact in facts
        if at - (condor.time_of(fact) or at) < EARLIER_S * SECOND
        or (fact.source == log and _IN_FILE(fact) > _IN_FILE(last))
    ]


def _with_their_events(facts: list[CondorFact]) -> list[CondorFact]:
    """The same, but an ad comes right after the event of its state in its second, if there is one.

    Else one of a job that no longer runs comes after all events of its second: its own may be lost.
    """
    events = [fact for fact in facts if fact.origin is Origin.EVENT and fact.at is not None]
    for ad in [fact for fact in facts if fact.origin is Origin.AD]:
        state, at = condor.AD_STATES.get(ad.values.get("JobStatus", "")), condor.time_of(ad) or 0
        within = [event for event in events if (event.at or 0) // SECOND == at // SECOND]
        own = [event for event in within if condor.STATE_OF.get(event.what, "") == state]
        if event := next(reversed(own or within), None) if own or state in condor.AFTER_RUNS else None:
            facts.remove(ad)
            facts.insert(facts.index(event) + 1, ad)
    return facts


def zones_in(facts: Sequence[CondorFact]) -> Iterator[tuple[str, Nanos, int]]:
    """How far files' times without a zone are from UTC, from moments of one job that another file dates.

    Gives the file, the moment without its zone, and the shift.
    """
    true: dict[str, Nanos] = {}
    for fact in facts:
        if fact.what in ONCE and not fact.is_local and fact.at is not None:
            true[fact.what] = min(fact.at, true.get(fact.what, fact.at))
    queued = (condor.submitted_at(fact) for fact in facts if fact.origin is Origin.AD)
    if (submitted := next(filter(None, queued), None)) is not None:
        true["submit"] = submitted
    for fact in facts:
        if fact.is_local and fact.at is not None and fact.written_at is not None:
            written = zone_shift(fact.written_at - fact.at, WRITTEN_S)
            if written is not None:  # any other moment tells better: it may be a copy
                yield fact.source, Nanos(0), written
        if fact.is_local and fact.at is not None and fact.what in ONCE:
            own = None
            if fact.what == "terminated":
                # The starter notes the end in UTC, or in seconds in the XML and JSON forms
                when = fact.values.get("When", "")
                seconds = time_of_seconds(whole(fact.values.get("ToE.When")))
                own = time_of_iso(when) if when.endswith("Z") else seconds
            at = true.get(fact.what) if own is None else own
            if at is not None and (shift := zone_shift(at - fact.at, SLACK_S)) is not None:
                yield fact.source, fact.at, shift


def first_reports(facts: Iterable[CondorFact]) -> Iterator[tuple[CondorFact, bool]]:
    """The facts of a job in order of time, each with whether no earlier file has the same event."""
    counts: Counter[object] = Counter()
    counts_in: Counter[object] = Counter()
    for fact in facts:
        if fact.origin is not Origin.EVENT or fact.what in PASSING:
            yield fact, True
            continue
        moment = fact.what, fact.text if fact.at is None else fact.at // SECOND
        counts_in[fact.source, fact.rotation, moment] += 1
        count = counts_in[fact.source, fact.rotation, moment]
        yield fact, count > counts[moment]
        counts[moment] = max(count, counts[moment])


class CondorChanges(NamedTuple):
    """The effect of new facts: jobs as they are now, ids that no longer exist, and all changes of state."""

    jobs: tuple[Job, ...] = ()
    gone: frozenset[JobId] = frozenset()
    changes: Mapping[JobId, tuple[StateChange, ...]] = {}


_Key = tuple[int, int, int, str]
_File = dict[_Key, CondorFact]
_ENDS = frozenset({"terminated", "aborted", "completed", "ad"})


class CondorStore:
    """All that is known about jobs of HTCondor. Adding the same fact twice changes nothing. Facts are kept by
    number, such as `7.0`, then by the id that they name and their file. After a new fact all facts of its
    number are judged again. `site_of` gives the site of a file.
    """

    def __init__(self, site_of: Callable[[str], str] = lambda source: "", most: int = MOST_FACTS) -> None:
        self._site_of = site_of
        self._most = most
        self._files_of: dict[str, dict[tuple[str, str], _File]] = {}
        self._in_file: dict[str, dict[str, None]] = defaultdict(dict)  # the garbage collector looks at sets
        self._in_cluster: dict[str, dict[str, None]] = defaultdict(dict)
        self._of_jobsub: set[str] = set()
        self._submissions: dict[str, CondorFact] = {}
        self._shifts: dict[str, tuple[Nanos, int]] = {}
        self._gaps: dict[str, CondorFact] = {}
        self._holes: dict[str, CondorFact] = {}
        self._machines: dict[str, CondorFact] = {}
        self.due: dict[str, None] = {}
        """The numbers of jobs that are to be put together."""
        self._ids: dict[str, tuple[JobId, ...]] = {}
        self._gone: set[JobId] = set()
        self._over: dict[str, None] = {}
        self._count = 0
        self.dropped = 0

    def add(self, facts: Iterable[CondorFact], at_once: int = sys.maxsize) -> CondorChanges:
        """Take in facts of any jobs, in the order in which each file has them, and put jobs together."""
        for fact in facts:
            if fact.job:
                if (gap := self._gaps.get(fact.source)) and _IN_FILE(gap) == _IN_FILE(fact):
                    del self._gaps[fact.source]  # its end is written by now
                    self.due.update(self._in_file[fact.source])
                self._take_of_job(fact)
            elif fact.origin is Origin.SUBMIT:
                trace = fact.values[condor.TRACEPARENT]
                self._submissions.pop(trace, None)
                self._submissions[trace] = fact
                if len(self._submissions) > MOST_SUBMISSIONS:
                    del self._submissions[next(iter(self._submissions))]
                    self.dropped += 1
            elif fact.what == condor.MACHINES:
                self._machines[fact.source] = fact
            elif fact.what == condor.LOG_GAP:
                if (lost := self._gaps.get(fact.source)) is not None:  # one that more follows stays
                    self._holes[fact.source] = max(lost, self._holes.get(fact.source, lost), key=_IN_FILE)
                self._gaps[fact.source] = fact
                self.due.update(self._in_file[fact.source])
        return self.put_together(at_once)

    def put_together(self, at_once: int) -> CondorChanges:
        """The next jobs about which something new is known, until `at_once` facts were checked."""
        jobs: dict[JobId, Job] = {}
        changes: dict[JobId, tuple[StateChange, ...]] = {}
        while self.due and at_once > 0:
            number, _ = self.due.popitem()
            found = self._jobs_of(number)
            at_once -= 1 + sum(map(len, found.values()))
            self._gone.update(job_id for job_id in self._ids.pop(number, ()) if job_id not in found)
            if found:
                self._ids[number] = tuple(found)
            for job_id, own in found.items():
                facts = self._with_gaps(own)
                life = self._life_of(job_id, facts)
                source = min(facts, key=lambda fact: fact.origin.rank).source
                jobs[job_id] = condor.job_of(job_id, life, source)
                by_events = (turn for turn in life.turns if turn.fact.origin is Origin.EVENT)
                changes[job_id] = condor.changes_of(job_id, life, by_events)
        gone, self._gone = frozenset(self._gone - jobs.keys()), set()
        return CondorChanges(tuple(jobs.values()), gone, {**dict.fromkeys(gone, ()), **changes})

    @property
    def notice(self) -> str | None:
        """The note about dropped facts, None if all are here."""
        if not self.dropped:
            return None
        limits = f"at most {self._most:,}, and {MOST_OF_JOB} of a job in one file, are kept"
        return f"{counted(self.dropped, 'fact')} dropped, those of ended jobs first: {limits}"

    def facts_of(self, job_id: JobId) -> tuple[CondorFact, ...]:
        """What files say about a job in order of time; an event that several files have is given once.

        Then the facts about machines.
        """
        own = (fact for fact, is_new in first_reports(self._in_order(job_id)) if is_new)
        return (*own, *self._machines.values())

    def detail(self, job_id: JobId) -> JobDetail | None:
        """All that is known about a job, None if no file has it."""
        facts = self._in_order(job_id)
        return _detail_of(job_id, self._life_of(job_id, facts), facts) if facts else None

    def jobs_of_source(self, source: str) -> tuple[str, ...]:
        return tuple(sorted({job_id for job_id, _ in self._facts_of_source(source)}))

    def traces_named_in(self, source: str) -> dict[str, tuple[str, ...]]:
        found: dict[str, dict[str, None]] = defaultdict(dict)
        submissions = (("", fact) for fact in self._submissions.values() if fact.source == source)
        for job_id, fact in (*self._facts_of_source(source), *submissions):
            if (trace := fact.values.get(condor.TRACEPARENT)) is not None:
                found[trace].update({job_id: None} if job_id else {})
        return {trace: tuple(jobs) for trace, jobs in found.items()}

    def _facts_of_source(self, source: str) -> Iterator[tuple[str, CondorFact]]:
        for number in self._in_file.get(source, ()):
            for job_id, facts in self._jobs_of(number).items():
                yield from ((job_id, fact) for fact in facts if fact.source == source)

    def _jobs_of(self, number: str) -> dict[JobId, list[CondorFact]]:
        """The jobs that have a number, and the facts of each.

        A fact without a schedd is of the one job of its site that has the number and a schedd, if there is
        only one; with several sites it is a job of each site, named by the site.
        """
        jobs: dict[JobId, list[CondorFact]] = {}
        without_schedd: dict[str, list[CondorFact]] = {}
        named: set[tuple[str, JobId]] = set()
        for (job, source), facts in self._files_of.get(number, {}).items():
            site, job_id = self._site_of(source), JobId(job)
            own = without_schedd.setdefault(site, []) if job == number else jobs.setdefault(job_id, [])
            own.extend(facts.values())
            named |= {(site, job_id)} if job != number else set()
        for site, own in without_schedd.items():
            near = {job_id for at, job_id in named if at == site or not (at and site)}
            alone = f"{number}@{site}" if site and len(without_schedd) > 1 else number
            jobs.setdefault(near.pop() if len(near) == 1 else JobId(alone), []).extend(own)
        return jobs

    def _find_hole(self, fact: CondorFact, files: Mapping[tuple[str, str], _File]) -> None:
        """Note that a log lacks an event before this one of a job: there it may lack those of others, too."""
        source = fact.source
        ends = (reversed(own.values()) for (_, name), own in files.items() if name == source)
        last = (next((one for one in end if one.what in condor.STATE_OF), None) for end in ends)
        before = max(filter(None, last), key=_IN_FILE, default=fact)
        if _IN_FILE(before) < _IN_FILE(fact) and before.what in condor.NEVER_AFTER[fact.what]:
            text = f"{source} lacks an event before byte {fact.offset}"
            hole = msgspec.structs.replace(fact, job="", what=condor.LOG_GAP, at=None, text=text, values={})
            self._holes[source] = max(hole, self._holes.get(source, hole), key=_IN_FILE)
            self.due.update(self._in_file[source])

    def _in_order(self, job_id: JobId) -> list[CondorFact]:
        return self._with_gaps(self._jobs_of(_number(job_id)).get(job_id, []))

    def _with_gaps(self, facts: list[CondorFact]) -> list[CondorFact]:
        """The facts of a job in order of time, with the later gaps in its logs."""
        gaps = []
        for source in {fact.source for fact in facts} & (self._holes.keys() | self._gaps.keys()):
            own = [_IN_FILE(fact) for fact in facts if fact.source == source and fact.what != condor.AD_EVENT]
            found = (one[source] for one in (self._holes, self._gaps) if source in one)
            gaps += [gap for gap in found if all(place < _IN_FILE(gap) for place in own)]
        return in_order((*facts, *gaps), self._shifts)

    def _life_of(self, job_id: str, facts: Iterable[CondorFact]) -> CondorLife:
        life = CondorLife(())
        for fact, is_new in first_reports(facts):
            (life.take if is_new else life.merge_event)(fact)
        life.is_jobsub = _cluster(job_id) in self._of_jobsub
        return life

    def _take_of_job(self, fact: CondorFact) -> None:
        number, cluster, source = _number(fact.job), _cluster(fact.job), fact.source
        if fact.what == condor.LOG_GAP and number not in self._files_of:
            return  # it alone makes no job
        own = self._files_of.setdefault(number, {}).setdefault((fact.job, source), {})
        # A repeated event replaces the one before it
        passes = fact.what in PASSING
        key = (0, 0, 0, fact.what) if passes else (fact.rotation, fact.part, fact.offset, fact.what)
        known = own.get(key)
        if known == fact or (known is not None and _IN_FILE(known) > _IN_FILE(fact)):
            return
        if known is None and fact.origin is Origin.EVENT and fact.what in condor.NEVER_AFTER:
            self._find_hole(fact, self._files_of[number])
        own[key] = fact
        self._count += known is None
        self._in_file[source][number] = None
        self._in_cluster[cluster][number] = None
        self.due[number] = None
        if len(own) > MOST_OF_JOB:  # drop from the middle of what one file says
            keys = [key for key, fact in own.items() if fact.what not in PASSING]
            middle = keys[MOST_OF_JOB // 4 : MOST_OF_JOB // 2]
            for one in middle:
                del own[one]
            self._count -= len(middle)
            self.dropped += len(middle)
        if fact.what in _ENDS:
            self._over.setdefault(number)
        if condor.is_of_jobsub(fact) and cluster not in self._of_jobsub:
            self._of_jobsub.add(cluster)
            self.due.update(self._in_cluster[cluster])
        if fact.origin is Origin.AD or fact.what in ONCE or fact.written_at is not None:
            self._learn_zones(number)
        if self._count > self._most:
            self._keep_within()

    def _learn_zones(self, number: str) -> None:
        """Use the zone that the latest moment shows for all times in the file."""
        for facts in self._jobs_of(number).values():
            for source, at, shift in zones_in(facts):
                known = self._shifts.get(source)
                if known is None or (at, shift) > known:
                    self._shifts[source] = at, shift
                    if known is None or known[1] != shift:
                        self.due.update(self._in_file[source])

    def _keep_within(self) -> None:
        """Drop the facts of jobs that ended first, and all facts of a cluster without jobs."""
        goal = self._most * KEPT_PERCENT // 100
        for number in list(islice(self._over or self._files_of, self._count - goal)):
            if self._count <= goal:
                break
            for (_, source), facts in self._files_of.pop(number).items():
                self._in_file[source].pop(number, None)
                self._count -= len(facts)
                self.dropped += len(facts)
            self._over.pop(number, None)
            self.due.pop(number, None)
            self._gone.update(self._ids.pop(number, ()))
            cluster = _cluster(number)
            self._in_cluster[cluster].pop(number, None)
            if not self._in_cluster[cluster]:
                del self._in_cluster[cluster]
                self._of_jobsub.discard(cluster)


def _number(job: str) -> str:
    return job.partition("@")[0]


def _cluster(job: str) -> str:
    return job.partition(".")[0]


_LOST = condor.LOST | {"held"}
_SHOWN = (
    "args", "RequestCpus", "RequestMemory", "RequestDisk", "RequestGPUs", "Requirements", "PeriodicHold",
    "PeriodicRelease", "PeriodicRemove", "SlotName",
)  # fmt: skip
"""Attributes that are shown as written: what a job asks for, and when it is held, released or removed."""


def _detail_of(job_id: JobId, life: CondorLife, facts: Sequence[CondorFact]) -> JobDetail:
    """A job from its life, and from the facts that made it, in order of time, at least one.

    An event in several files is given as one of them has it.
    """
    runs = tuple(life.runs)
    records = [
        {"what": fact.what, "by": fact.origin.value, "source": fact.source, "offset": fact.offset,
         "text": fact.text}
        for fact, is_new in first_reports(facts)
        if is_new
    ]  # fmt: skip
    source = min(facts, key=lambda fact: fact.origin.rank).source
    ads = [fact.values for fact in facts if fact.origin is Origin.AD]
    written = [ads[-1][name] for name in ("Err", "Out") if ads and ads[-1].get(name)]
    return JobDetail(
        job=condor.job_of(job_id, life, source),
        runs=runs,
        history=runs,
        native={"ad": dict(ads[-1]) if ads else None, "told": records},
        path=source,
        changes=condor.changes_of(job_id, life, life.turns),
        facts=tuple(_statements(life, facts)),
        outputs=tuple(posixpath.join(ads[-1].get("Iwd", ""), name) for name in dict.fromkeys(written)),
    )


def _statements(life: CondorLife, facts: Sequence[CondorFact]) -> Iterator[tuple[str, str]]:
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
    yield "source", ", ".join(dict.fromkeys(fact.source for fact in facts))
