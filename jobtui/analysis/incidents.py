"""Groups the failed and stuck jobs of a window by how they failed, and finds what each group shares."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from jobtui.analysis.explain.case import Case, Evidence
from jobtui.analysis.explain.flow import Mark, mark_of
from jobtui.analysis.signature import failure_text, signature
from jobtui.analysis.statistics import by_chance
from jobtui.model.clock import SECOND, Nanos, to_rfc3339
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobStatus, happened_at
from jobtui.model.memory import Seen
from jobtui.model.ops import Op
from jobtui.model.verdicts import Code, Concern, Verdict

LEAST_SHARE, MOST_OF_GOOD = 0.8, 0.5
"""A fact is reported if at least this share of the group has it, and at most this share of the good jobs."""
FEWEST_COMPARED, MOST_CHANCE = 5, 0.01
"""A fact needs at least this many jobs on either side, and a p-value below this (Fisher's exact test)."""
QUIET_S = 30 * 60
"""An incident without a failure for less than this may be ongoing."""
WIDER_S = (7 * 86_400, 30 * 86_400, 365 * 86_400)
"""Wider windows to try if nothing failed in the first one."""
LEAST = 2
"""Fewer jobs are not a group but single failures."""
ENDED_BADLY = frozenset({JobStatus.FAILED, JobStatus.CANCELED})
ENDED_WELL = frozenset({JobStatus.COMPLETED, JobStatus.PURGED, JobStatus.UNKNOWN})
"""Statuses that need no further check if nothing contradicts them."""
OF_RESTARTS = frozenset({Code.SUPERVISOR_RESTARTED, Code.STALE_RECORD})
"""Verdicts on a run that a restart of its supervisor ended, whether somebody asked for it again or not."""


class Sample(NamedTuple):
    """One job to group: its verdict, its latest run, its host, and the agents that flapped meanwhile.

    `verdict` is None for a good job that nothing contradicts. A job without `is_grouped` is in none, counts
    as usual, and is named if its verdict is in doubt. `restart` is the supervisor's restart that ended it.
    """

    job: Job
    verdict: Verdict | None = None
    run: Op | None = None
    host: str | None = None
    flapping: str | None = None
    restart: str | None = None
    is_grouped: bool = True


def sample_of(job: Job, evidence: Evidence, verdict: Verdict) -> Sample:
    """The sample of an explained job: where it ran, and what ended it together with others."""
    if not job.needs_logs:
        return Sample(job, verdict)
    case, restart = Case(evidence), None
    if verdict.code in OF_RESTARTS and (step := case.restart) is not None:
        name = step.source.rpartition("/")[2]
        where = f"{name}:{step.line}" if step.line else name
        restart = f"{to_rfc3339(step.at)} ({where})" if step.at is not None else where
    return Sample(
        job,
        verdict,
        case.run,
        host=case.agent.host if case.agent is not None else None,
        flapping=case.flapping.what if case.flapping is not None else None,
        restart=restart,
    )


class SharedFact(NamedTuple):
    """A fact that `jobs` jobs of a group have, and `elsewhere` of the `good` jobs for which it is known.

    `good` is 0 for a fact that is the cause itself and is not compared.
    """

    name: str
    value: str
    jobs: int
    elsewhere: int = 0
    good: int = 0


class SharedLine(NamedTuple):
    """The failing line that `jobs` of the `of` jobs with such a line have."""

    text: str
    jobs: int
    of: int


class Incident(NamedTuple):
    """Jobs that failed in the same way, earliest first, and the known `times` of their failures.

    `codes` counts their verdicts, the most frequent first, of which `verdict` is one. `confidence` is the
    lowest of all. `doubtful` counts those in doubt: a source cannot be trusted now, or sources disagree.
    `shape` are the steps of their latest runs. `is_live`: some are stuck now. `text` is why the first failed,
    `seen` what the memory knows of that.
    """

    codes: tuple[tuple[str, int], ...]
    verdict: Verdict
    cause: SharedLine
    error: str
    shape: tuple[Mark, ...]
    jobs: tuple[JobId, ...]
    times: tuple[Nanos, ...]
    shared: tuple[SharedFact, ...]
    confidence: float
    doubtful: int
    is_live: bool
    text: str = ""
    seen: Seen | None = None

    @property
    def first(self) -> JobId:
        return self.jobs[0]

    def is_ongoing(self, now: Nanos) -> bool:
        """Whether it has been quiet for less than QUIET_S, or than its longest pause between two failures."""
        if self.is_live or len(self.times) < LEAST:
            return self.is_live
        longest = max(later - at for at, later in pairwise(self.times))
        return now - self.times[-1] <= max(longest, QUIET_S * SECOND)

    def rate(self, now: Nanos, parts: int) -> list[int]:
        """How many failed in each of several equal parts of the time since the first."""
        counts = [0] * parts
        for at in self.times:
            counts[min(parts - 1, (at - self.times[0]) * parts // max(1, now - self.times[0]))] += 1
        return counts


class Incidents(NamedTuple):
    """The failures in a window: groups, the largest first, and single failures.

    `doubtful` are further jobs whose verdict is in doubt. `blind_spots` name sources not to trust.
    """

    groups: tuple[Incident, ...]
    alone: tuple[Incident, ...]
    looked_at: int
    doubtful: tuple[JobId, ...]
    blind_spots: tuple[str, ...]

    @property
    def is_well(self) -> bool:
        return not (self.groups or self.alone or self.doubtful or self.blind_spots)


FACTS: Mapping[str, Callable[[Sample], str | None]] = {
    "restart": lambda sample: sample.restart,
    "host": lambda sample: sample.host or sample.job.host,
    "driver": lambda sample: sample.run.driver if sample.run is not None else None,
    "flapping": lambda sample: sample.flapping,
    "app": lambda sample: sample.job.app or None,
    "model": lambda sample: sample.job.model or None,
    "user": lambda sample: sample.job.owner or None,
    "mode": lambda sample: sample.job.mode or None,
}
CAUSES = frozenset({"restart", "flapping"})
"""Facts that are the cause itself: they are always reported."""
SHAPELESS = frozenset({Code.SUPERVISOR_RESTARTED, Code.AGENT_LOST})
"""Verdicts of a lost run, for which the step does not matter."""


class IncidentKind(NamedTuple):
    """What makes jobs a group: what ended them all, or how they failed."""

    cause: str
    code: str = ""
    error: str = ""
    shape: tuple[Mark, ...] = ()


class Grouping:
    """Takes samples one by one. Good jobs give the baseline."""

    def __init__(self) -> None:
        self._good: dict[str, Counter[str]] = {name: Counter() for name in FACTS}
        self._groups: defaultdict[IncidentKind, list[tuple[Sample, Verdict]]] = defaultdict(list)
        self._doubtful: list[JobId] = []
        self._looked_at = 0
        self.passed = 0
        """Of how many jobs it was decided whether they belong to the time."""

    def add(self, sample: Sample) -> None:
        self._looked_at += 1
        verdict = sample.verdict
        if verdict is None or (verdict.concern is Concern.FINE and not verdict.doubts):
            for name, fact in FACTS.items():
                if (value := fact(sample)) is not None:
                    self._good[name][value] += 1
        elif sample.is_grouped and verdict.concern in (Concern.FAILED, Concern.STUCK):
            self._groups[_kind(sample, verdict)].append((sample, verdict))
        elif verdict.doubts:
            self._doubtful.append(sample.job.id)

    def found(self, blind_spots: tuple[str, ...] = (), now: Nanos | None = None) -> Incidents:
        """The groups so far; those that are ongoing at `now` come first."""
        alike: defaultdict[str | IncidentKind, list[tuple[Sample, Verdict]]] = defaultdict(list)
        for kind, group in self._groups.items():
            # Jobs with the same failing line are one; those without go with the others of their kind
            said = [one.cause for _, one in group]
            lines = [signature(one.text) if one and not one.is_end else "" for one in said]
            known = set(filter(None, lines)) if not kind.cause else set()
            rest = known.pop() if len(known) == 1 else kind
            for line, one in zip(lines, group, strict=True):
                alike[line or rest if not kind.cause else kind].append(one)
        found = [_incident(group, self._good) for group in alike.values()]
        found.sort(key=lambda one: (now is None or not one.is_ongoing(now), -len(one.jobs), one.times[:1]))
        return Incidents(
            groups=tuple(one for one in found if len(one.jobs) >= LEAST),
            alone=tuple(one for one in found if len(one.jobs) < LEAST),
            looked_at=self._looked_at,
            doubtful=tuple(self._doubtful),
            blind_spots=blind_spots,
        )


def _kind(sample: Sample, verdict: Verdict) -> IncidentKind:
    """One restart loses all runs of a supervisor, whatever each verdict; of agents, those of their host."""
    code, error = verdict.code, signature(sample.job.error or sample.job.alert or "")
    if sample.restart is not None:
        return IncidentKind(sample.restart)
    if sample.flapping is not None:
        return IncidentKind(sample.flapping, code, error)
    if code in SHAPELESS:
        return IncidentKind(sample.host or "", code, error)
    return IncidentKind("", code, error, shape_of(sample.run))


def shape_of(run: Op | None) -> tuple[Mark, ...]:
    """The steps of a run by first occurrence, without the agent's own and without waits before the send.

    These depend on which logs were read and how busy the system was, not on the failure.
    """
    if run is None:
        return ()
    marks = dict.fromkeys(mark_of(step) for step in run.steps)
    beside = _BESIDE | _BEFORE if Mark.SENT in marks else _BESIDE
    return tuple(mark for mark in marks if mark is not None and mark not in beside)


_BESIDE = frozenset({Mark.ARRIVED, Mark.STARTED, Mark.EXITED, Mark.KILLED, Mark.STDERR, Mark.REQUESTED})
_BEFORE = frozenset({Mark.AGENT_START, Mark.AGENT_WAIT, Mark.AGENT_ALIVE, Mark.SLOT_WAIT, Mark.SLOT_GOT})


class EarlierFailures(NamedTuple):
    """How many jobs failed before a time, and a window with the newest; None for all that is known."""

    jobs: int
    window_s: int | None


def failed_before(jobs: Iterable[Job], since: Nanos, now: Nanos) -> EarlierFailures | None:
    """The failures by record before a time; None if there are none."""
    times = [
        at
        for job in jobs
        if job.status is JobStatus.FAILED
        and not job.is_quasi
        and (at := happened_at(job)) is not None
        and at < since
    ]
    if not times:
        return None
    wide = (window for window in WIDER_S if now - window * SECOND <= max(times))
    return EarlierFailures(len(times), next(wide, None))


def _incident(group: Sequence[tuple[Sample, Verdict]], good: Mapping[str, Counter[str]]) -> Incident:
    kind = _kind(*group[0])
    ordered = sorted(group, key=lambda one: happened_at(one[0].job) or 0)
    samples, verdicts = [sample for sample, _ in ordered], [verdict for _, verdict in ordered]
    codes = Counter(verdict.code for verdict in verdicts).most_common()
    return Incident(
        codes=tuple(codes),
        verdict=next(verdict for verdict in verdicts if verdict.code == codes[0][0]),
        cause=_cause(samples, verdicts),
        error=kind.error,
        shape=kind.shape,
        jobs=tuple(sample.job.id for sample in samples),
        times=tuple(at for sample in samples if (at := happened_at(sample.job)) is not None),
        shared=tuple(_shared(samples, good)),
        confidence=min(verdict.confidence for verdict in verdicts),
        doubtful=sum(bool(verdict.doubts) for verdict in verdicts),
        text=failure_text(samples[0].job, verdicts[0]),
        is_live=any(sample.job.status.is_live for sample in samples),
    )


def _cause(samples: Sequence[Sample], verdicts: Sequence[Verdict]) -> SharedLine:
    """The line that most jobs have in common: a failing line, else their error, else the verdict."""
    causes = [one.cause for one in verdicts if one.cause is not None]
    # A line that says no more than how a job ended is common only if all have one
    failing = [one.text for one in causes if not one.is_end or len(causes) == len(verdicts)]
    errors = [text for one in samples if (text := one.job.error or one.job.alert)]
    alike: defaultdict[str, Counter[str]] = defaultdict(Counter)
    lines = failing or errors or [one.claim for one in verdicts]
    for line in lines:
        alike[signature(line)][line] += 1
    common, most = max(alike.items(), key=lambda one: one[1].total())
    return SharedLine(next(iter(most)) if len(most) == 1 else common, most.total(), len(lines))


def _shared(group: Sequence[Sample], good: Mapping[str, Counter[str]]) -> Iterable[SharedFact]:
    for name, fact in FACTS.items():
        value, count = Counter(map(fact, group)).most_common(1)[0]
        if value is None or count < LEAST_SHARE * len(group):
            continue
        elsewhere, known = good[name][value], good[name].total()
        if name in CAUSES:
            yield SharedFact(name, value, count)
        elif (
            min(len(group), known) >= FEWEST_COMPARED
            and elsewhere <= MOST_OF_GOOD * known
            and by_chance(count, len(group), elsewhere, known) < MOST_CHANCE
        ):
            yield SharedFact(name, value, count, elsewhere, known)
