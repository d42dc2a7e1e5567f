"""Jobs of HTCondor, put together from what all files say of them.

A job may be told of by its event log, by job ads and by its own output; files that leave out the schedd are
taken to speak of the one job that has their number. Event logs have times without a zone: it is that which
makes the same moment of what is written with a zone elsewhere, and until that is known this machine's.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import msgspec

from jobtui.model.changes import StateChange
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.condor import COMPLETED, LOST, TRACEPARENT
from jobtui.model.condor_facts import CondorFact, Teller
from jobtui.model.condor_life import CondorLife, Exit, Turn, job_of, time_of
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobDetail
from jobtui.model.state_runs import FAILED

MOST_FACTS = 150_000
"""Facts kept, about 1 kB each; those of jobs that ended first are let go of."""
MOST_OF_JOB = 300
"""Facts kept of one job."""
PASSING = frozenset({"image_size", "file_transfer", "attribute_update", "generic"})
"""What comes again and again, and of which the last one tells enough."""
QUARTER_S = 900
"""Zones differ by quarters of an hour."""
SLACK_S = 120
"""How far two notes of one moment may be apart."""


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
                numbers[_number(fact.job)] = None
        if self._learn_zones(numbers):
            numbers.update((_number(job), None) for job in self._facts)
        news = self._news(numbers, fresh)
        self._keep_within()
        return news

    def facts_of(self, job_id: JobId) -> tuple[CondorFact, ...]:
        """What files say of a job, in order of time."""
        return tuple(_ordered(self._all_of(job_id), self._shifts))

    def detail(self, job_id: JobId) -> JobDetail | None:
        """All that is known of a job, None for one that no file tells of."""
        facts = self.facts_of(job_id)
        if not facts:
            return None
        life = CondorLife(facts)
        runs = tuple(life.runs)
        ads = [fact.values for fact in facts if fact.teller is Teller.AD]
        return JobDetail(
            job=job_of(job_id, life, _source(facts)),
            runs=runs,
            history=runs,
            native={"ad": dict(ads[-1]) if ads else None, "told": [_native(fact) for fact in facts]},
            path=_source(facts),
            changes=_changes(job_id, life.turns),
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
        return _changes(job_id, CondorLife(facts).turns) if facts else None

    def _take(self, fact: CondorFact) -> bool:
        """Put a fact among those of its job; False for one that is known, or of none."""
        if not fact.job:
            if fact.teller is Teller.SUBMIT:
                self._submissions[fact.values[TRACEPARENT]] = fact
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
                for source, shift in _zones_in(self._all_of(job_id)):
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
                life = CondorLife(facts)
                jobs.append(job_of(job_id, life, _source(facts)))
                turns = (turn for turn in life.turns if _key(turn.fact) in fresh)
                changes += _changes(job_id, (turn for turn in turns if turn.fact.teller is Teller.EVENT))
        return News(tuple(jobs), frozenset(gone), tuple(changes))

    def _keep_within(self) -> None:
        """Let go of the facts of jobs that ended first."""
        if self._count <= self._most:
            return
        over = [job for job, own in self._facts.items() if any(f.what in _ENDS for f in own.values())]
        for job in over or list(self._facts):
            if self._count <= self._most * 9 // 10:
                break
            own = self._facts.pop(job)
            self._ids[_number(job)].discard(job)
            self._count -= len(own)
            self.dropped += len(own)


_ENDS = frozenset({"terminated", "aborted", "completed", "ad"})


def _key(fact: CondorFact) -> _Key:
    return fact.source, fact.offset, fact.what


def _number(job: str) -> str:
    return job.partition("@")[0]


def _source(facts: Sequence[CondorFact]) -> str:
    """The file that knows best."""
    return min(facts, key=lambda fact: fact.teller.rank).source


def _ordered(facts: Iterable[CondorFact], shifts: dict[str, int]) -> list[CondorFact]:
    """Facts by time, that of each of them settled; one without a time stays behind the one before it."""
    last: dict[str, Nanos] = {}
    placed: list[tuple[Nanos, int, str, int, CondorFact]] = []
    for fact in sorted(facts, key=lambda one: (one.source, one.offset)):
        at = time_of(fact)
        if at is not None and fact.is_local:
            at = _settled(at, shifts.get(fact.source))
        order = max(at, last.get(fact.source, at)) if at is not None else last.get(fact.source, Nanos(0))
        last[fact.source] = order
        if at != fact.at:
            fact = msgspec.structs.replace(fact, at=at, is_local=False)
        placed.append((order, -fact.teller.rank, fact.source, fact.offset, fact))
    return [fact for *_, fact in sorted(placed, key=lambda one: one[:4])]


def _settled(at: Nanos, shift: int | None) -> Nanos:
    """A time without a zone: in the one that is known for its file, else in that of this machine."""
    if shift is not None:
        return Nanos(at + shift)
    whole, part = divmod(at, SECOND)
    try:
        here = datetime.fromtimestamp(whole, UTC).replace(tzinfo=None).timestamp()
    except (ValueError, OverflowError, OSError):
        return at
    return Nanos(int(here) * SECOND + part)


def _zones_in(facts: Iterable[CondorFact]) -> Iterator[tuple[str, int]]:
    """How far files' times without a zone are from UTC, by moments that are also written with one."""
    known = [fact for fact in facts if fact.at is not None or fact.teller is Teller.AD]
    ads = (fact.values for fact in known if fact.teller is Teller.AD)
    queued = next((at for ad in ads if (at := _seconds(ad.get("QDate")))), None)
    for fact in known:
        if not fact.is_local or fact.at is None or fact.teller is not Teller.EVENT:
            continue
        true = None
        if fact.what == "submit" and queued is not None:
            true = Nanos(queued * SECOND)
        elif fact.what == "terminated" and (when := fact.values.get("When", "")).endswith("Z"):
            true = _instant(when)
        if true is not None and (shift := _rounded(true - fact.at)) is not None:
            yield fact.source, shift


def _seconds(text: str | None) -> int | None:
    return int(text) if text and len(text) < 11 and text.isascii() and text.isdigit() else None


def _instant(text: str) -> Nanos | None:
    try:
        return Nanos(int(datetime.fromisoformat(text).timestamp()) * SECOND)
    except (ValueError, OverflowError):
        return None


def _rounded(difference: int) -> int | None:
    """A difference of clocks in whole quarters of an hour; None when it is none."""
    whole = round(difference / SECOND / QUARTER_S) * QUARTER_S * SECOND
    return whole if abs(difference - whole) <= SLACK_S * SECOND else None


def _changes(job_id: JobId, turns: Iterable[Turn]) -> tuple[StateChange, ...]:
    """The changes of state whose time is known."""
    return tuple(_change(job_id, turn, at) for turn in turns if (at := turn.fact.at) is not None)


def _change(job_id: JobId, turn: Turn, at: Nanos) -> StateChange:
    """A change of state; its id is its line, or its place where lines were not counted.

    What failed has the word for that: HTCondor calls it completed as well.
    """
    fact = turn.fact
    said = {"message": fact.values.get("HoldReason") or fact.values.get("Reason")}
    ended = {
        "returncode": fact.values.get("ReturnValue") or fact.values.get("status"),
        "signal": fact.values.get("TerminatedBySignal") or fact.values.get("signal"),
    }
    is_end = turn.after == COMPLETED
    detail = {"what": fact.what} | {n: text for n, text in (said | (ended if is_end else {})).items() if text}
    how = Exit(detail.get("returncode", ""), detail.get("signal", ""))
    after = turn.after
    if is_end and not how.is_good:
        after, detail["message"] = FAILED, str(how)
    number = fact.line or fact.offset
    return StateChange(number, job_id, at, turn.before, after, fact.source, None, dict(detail))


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
