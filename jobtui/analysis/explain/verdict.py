"""The verdict on a job of any system, and the contradictions between its sources.

A rule in the file of the job's system gives the verdict and its confidence. This module lowers the
confidence if the evidence cannot be trusted now: if a source is down, quiet, not read to its end or has a
wrong clock, or if sources disagree. The sentence then says so first. It does not say which source is right.
"""

import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping
from time import perf_counter

from msgspec.structs import replace

from jobtui.analysis.explain.case import GUESS, LIKELY, SETTLED_S, SURE, Evidence, record_fact
from jobtui.analysis.explain.pending import history_words, pending_by, with_history
from jobtui.analysis.flags import differing
from jobtui.analysis.keys import POLLED_S, sirepo_of
from jobtui.analysis.systems import system_of
from jobtui.analysis.systems.sirepo import SELF_EVIDENT
from jobtui.analysis.times import age, capital
from jobtui.backends.registry import BALSAM as BALSAM_SERVER
from jobtui.backends.registry import Gives, of_kind
from jobtui.model.clock import SECOND, Nanos, seconds_between
from jobtui.model.health import QUIET_S, SourceHealth, SourceState
from jobtui.model.ids import JobId
from jobtui.model.jobs import NOT_READ, Job
from jobtui.model.ops import WritersRead
from jobtui.model.verdicts import Cause, Code, Concern, Contradiction, Fact, Killer, Verdict, doubt_words


def contradictions(evidence: Evidence) -> tuple[Contradiction, ...]:
    """Every disagreement between the sources of a job; empty if they agree or there is only one."""
    job = evidence.job
    if job is None:
        return ()
    found, detail = [], evidence.detail
    for other in differing(job) or (differing(detail.job) if detail is not None else ()):
        about = f"the record in {job.source} says {job.status}, and that in {other.source} {other.status}"
        if other.status is job.status:
            about += " of another run" if other.queued_at != job.queued_at else ", but they differ"
        found.append(Contradiction(about, record_fact(job), record_fact(other)))
    return (*found, *system_of(job).contradictions(evidence))


REST = Nanos(round((SETTLED_S + 1) * SECOND))
"""How long after its last change a job is checked: by then late sources have caught up."""
LATER = Nanos(round((POLLED_S + 1) * SECOND))
"""How long after that a job that runs through Slurm is checked again."""
BUDGET_S = 0.004


IsDisputed = Callable[[JobId, tuple[Job, ...]], bool]
"""Whether sources disagree about a job. It may run as one of these jobs of Slurm."""


class Disputes:
    """Checks each changed job for contradictions once it has not changed for a while.

    Jobs that run through Slurm are checked once more, when both sources had time to learn of the change.
    """

    def __init__(self) -> None:
        self._due: dict[JobId, Nanos] = {}
        self._later: dict[JobId, Nanos] = {}
        self._slurm: dict[JobId, JobId] = {}
        self._found: set[JobId] = set()

    def __contains__(self, job_id: object) -> bool:
        return job_id in self._found

    def note(self, changed: Iterable[JobId], now: Nanos) -> None:
        """Note that these jobs changed. Each is checked later, once."""
        for job_id in changed:
            _put_off(self._due, job_id, Nanos(now + REST))

    def look(
        self, jobs: Mapping[JobId, Job], now: Nanos, is_disputed: IsDisputed, budget_s: float = BUDGET_S
    ) -> set[JobId]:
        """Check the jobs that are due. Returns those for which the result changed."""
        end = perf_counter() + budget_s
        turned = set()
        for due in (self._due, self._later):
            while due and perf_counter() < end and due[job_id := next(iter(due))] <= now:
                del due[job_id]
                if due is self._due:
                    self._join(jobs.get(job_id), now)
                slurm = jobs.get(self._slurm[job_id]) if job_id in self._slurm else None
                disagree = job_id in jobs and is_disputed(job_id, (slurm,) if slurm is not None else ())
                if disagree != (job_id in self._found):
                    turned.add(job_id)
                    (self._found.add if disagree else self._found.discard)(job_id)
        return turned

    def _join(self, job: Job | None, now: Nanos) -> None:
        """Check a job of Sirepo again some time after it, or the Slurm job that it runs as, has changed."""
        if job is None:
            return
        submitter = sirepo_of(job)
        if submitter is not None:
            self._slurm[submitter] = job.id
        if submitter is not None or job.id in self._slurm:
            _put_off(self._later, submitter or job.id, Nanos(now + LATER))


def _put_off(due: dict[JobId, Nanos], job_id: JobId, until: Nanos) -> None:
    """Plan a check of a job. All checks of one queue wait equally long, so the queue stays in order."""
    due.pop(job_id, None)
    due[job_id] = until


MOST_QUOTED = 200
SAY_WHY = frozenset({Code.PROGRAM_FAILED, Code.SBATCH_FAILED, Code.POSTPROCESS_FAILED})
"""Verdicts whose first sentence ends with the reason in the record, if it has one."""
CLOCK_S = 60.0
"""How far the times of a source may differ from its known clock without a doubt."""
AHEAD_S = 15.0
"""How far in the future news may be if no clock is measured: a clock that is ahead hides late news."""
TELL_OF_DISPUTE = frozenset(
    {Code.STALE_RECORD, Code.REPLY_LOST, Code.AGENT_LOST, Code.CANCEL_UNCONFIRMED, Code.SUPERVISOR_RESTARTED,
     Code.SBATCH_QUEUED}
)  # fmt: skip
"""Verdicts that say themselves that two sources disagree, and which of them is late."""


def explain(evidence: Evidence) -> Verdict:
    job = evidence.job
    found = system_of(job).explain(evidence)
    pending = found.pending or (pending_by(found.code, job) if job is not None else None)
    if pending is not None:
        pending = with_history(pending, evidence)
        sentence = f"{found.sentence}{history_words(pending, evidence.reasons)}"
        found = replace(found, pending=pending, sentence=sentence)
    history, runs = None, evidence.detail.runs if evidence.detail is not None else ()
    if job is not None and runs and found.concern is Concern.FAILED:
        from jobtui.analysis.compare import history_of  # most jobs have not failed

        history = history_of(job, runs, evidence.ops, evidence.good)
    found = replace(found, contradictions=contradictions(evidence), history=history)
    sources = tuple(dict.fromkeys(map(evidence.origin_of, _named(found, evidence))))
    found = _with_killer(_with_cause(found, evidence.cause), evidence.killer)
    found = replace(found, evidence=(*found.evidence, *evidence.last_lines), remembered=evidence.remembered)
    return _in_view_of_doubts(found, evidence, sources)


def _in_view_of_doubts(found: Verdict, evidence: Evidence, sources: tuple[str, ...]) -> Verdict:
    """The verdict with what makes it doubtful, and as sure as its sources allow."""
    job = evidence.job
    doubts = tuple(dict.fromkeys(_doubts(found, evidence, sources)))
    is_live = job is not None and job.status.is_live
    read = (one for one in evidence.sources if one.name in sources and one.read_at is not None)
    # The sources of a live job show their lag by what they give that is new
    is_lag_known = not is_live or all(one.news_late or BALSAM_SERVER.made(one) for one in read)
    most = found.confidence if is_lag_known else SURE
    if evidence.unread and found.concern is Concern.FAILED:  # its exit code says that, its record perhaps why
        most = LIKELY
    elif job is None or is_live:
        doubts = doubts or evidence.unread
    others = (one for one in found.blind_spots if not any(doubt.startswith(one) for doubt in doubts))
    left_out = () if found.code is Code.PREPARE_FAILED else evidence.left_out  # no program ran
    found = replace(
        found,
        rests_on=sources,
        confidence=min(found.confidence, most),
        blind_spots=tuple(dict.fromkeys((*doubts, *others, *evidence.unread, *left_out))),
    )
    if not doubts:
        return found
    sentence = f"{found.sentence}{doubt_words(doubts)}"
    return replace(found, sentence=sentence, confidence=min(found.confidence, GUESS), doubts=doubts)


def _with_cause(verdict: Verdict, cause: Cause | None) -> Verdict:
    """The verdict of a failure with the line of the program's output that says why; others unchanged."""
    if cause is None or verdict.concern is not Concern.FAILED or verdict.code is Code.RUN_DIR_GONE:
        return verdict
    where = posixpath.basename(cause.source) + ("" if cause.line is None else f":{cause.line}")
    words = f"{cause.text[:MOST_QUOTED].rstrip('.')} ({where})"
    first, *rest = verdict.sentence.rstrip(".").split(". ")
    head, _, _ = first.partition(": ")
    others = "".join(f" {one}." for one in rest if one not in cause.text)  # a reason may be two sentences
    is_why = verdict.code in SAY_WHY
    sentence = f"{head}: {words}.{others}" if is_why else f"{verdict.sentence} Its output says: {words}."
    own = Fact(
        text=cause.text, source=cause.source, what="program output", line=cause.line or 0, above=cause.above
    )
    return replace(verdict, sentence=sentence, cause=cause, evidence=(own, *verdict.evidence))


KILLED = frozenset(
    {Code.KILLED_BY_SIGNAL, Code.PROGRAM_FAILED, Code.AGENT_LOST, Code.SBATCH_FAILED, Code.OUT_OF_MEMORY,
     Code.ALLOCATION_KILLED, Code.NODE_FAILED}
)  # fmt: skip
"""Verdicts on programs that something else may have killed."""
NAMELESS = frozenset({Code.KILLED_BY_SIGNAL, Code.AGENT_LOST})
"""Verdicts that add that no message says who did it."""
OF_KILLS = frozenset({"signal", "memory", "mpi", "scheduler", "time", "elsewhere"})
"""Families of causes in the output of a program that may have been killed."""


def may_be_killed(verdict: Verdict, cause: Cause | None) -> bool:
    """Whether something may have killed it; not a program whose output gives another reason."""
    is_open = verdict.code is Code.AGENT_LOST or cause is None or cause.family in OF_KILLS
    return verdict.code in KILLED and is_open


def _with_killer(verdict: Verdict, killer: Killer | None) -> Verdict:
    """The verdict with what killed the program, or that this is not known.

    A message that is only near in time is shown, and does not change the confidence.
    """
    if killer is None or verdict.code not in KILLED:
        return verdict
    unknown = (killer.doubt,) if killer.doubt and verdict.code in NAMELESS else ()
    verdict = replace(
        verdict,
        evidence=(*killer.tied, *verdict.evidence, *killer.near),
        blind_spots=(*verdict.blind_spots, *unknown),
    )
    if not killer.words:
        return verdict
    sentence = f"{capital(killer.words)}. {verdict.sentence}"
    sure = max(verdict.confidence, killer.confidence)
    return replace(verdict, sentence=sentence, confidence=sure)


def _named(verdict: Verdict, evidence: Evidence) -> Iterator[str]:
    """The sources that a verdict rests on. For a live job these include the ones that are silent about it."""
    job = evidence.job
    yield from verdict.rests_on
    if job is not None:
        yield job.source
        if verdict.code in SELF_EVIDENT and job.needs_logs:
            return
    yield from (fact.source for fact in verdict.evidence)
    yield from (fact.source for fact in evidence.facts)
    if job is None or (job.needs_logs and job.status.is_live):
        yield from evidence.writers_read.writers


def _doubts(verdict: Verdict, evidence: Evidence, sources: tuple[str, ...]) -> Iterator[str]:
    is_live = evidence.job is None or evidence.job.status.is_live or bool(verdict.rests_on)
    for health in evidence.sources:
        if health.name in sources:
            yield from _state_doubts(health, evidence.writers_read, evidence.now)
            needed = (one for one in health.failing if system_of(evidence.job).needs(evidence, one.name))
            yield from (f"{health.name}: its {one.words}" for one in needed)
            if is_live:
                times = _times_of(health, verdict, evidence)
                yield from _clock_doubts(health, evidence.now, times, is_set=evidence.is_now_set)
    if evidence.detail is not None:
        yield from (text for name, text in evidence.detail.facts if name == NOT_READ)
    if verdict.code not in TELL_OF_DISPUTE or (evidence.job is not None and differing(evidence.job)):
        yield from (f"its sources disagree: {one.about}" for one in verdict.contradictions)


def source_doubts(sources: Iterable[SourceHealth], writers_read: WritersRead, now: Nanos) -> Iterator[str]:
    for health in sources:
        if of_kind(health.kind).gives & (Gives.JOBS | Gives.LOGS):
            yield from _state_doubts(health, writers_read, now)
            yield from (f"{health.name}: its {one.words}" for one in health.failing)
            yield from _clock_doubts(health, now)


def _state_doubts(health: SourceHealth, writers_read: WritersRead, now: Nanos) -> Iterator[str]:
    lag_s = health.lag_s(now)
    last = "" if lag_s is None else f" (last read {age(lag_s)} ago)"
    writer = writers_read.writers.get(health.name)
    is_old = writer is not None and writer.end is not None and seconds_between(writer.end, now) > QUIET_S
    if health.state is SourceState.DOWN:
        yield f"{health.name} cannot be read: {health.reason}{last}"
    elif health.is_quiet(now):
        yield f"{health.name} does not answer{last}"
    elif health.is_first_read or (health.is_behind and is_old):
        # of a log that grows, only one whose newest line read is old
        yield f"{health.name} is still being read"


def _times_of(health: SourceHealth, verdict: Verdict, evidence: Evidence) -> Iterator[Nanos]:
    job = evidence.job
    times = [fact.at for fact in verdict.evidence if evidence.origin_of(fact.source) == health.name]
    if job is not None and job.source == health.name:
        times += [job.queued_at, job.started_at, job.updated_at, job.written_at]
        mine = (one for one in evidence.allocations if job.allocation.startswith(f"{one.id} "))
        times += [one.heartbeat_at for one in mine if one.source == health.name]
    return (at for at in times if at is not None)


def _clock_doubts(
    health: SourceHealth, now: Nanos, times: Iterable[Nanos] = (), *, is_set: bool = False
) -> Iterator[str]:
    """Doubts about impossible times: later than now, which may be set, or already old when they came."""
    there = health.now_at(now)
    ahead_s = max((seconds_between(there, at) for at in times), default=0.0)
    late_s = min(health.news_late, default=None)  # negative if its clock is ahead
    most_s = CLOCK_S if BALSAM_SERVER.made(health) else AHEAD_S
    if ahead_s > most_s and is_set:
        yield f"{health.name} was read later: it gives times {age(ahead_s)} after --at"
    elif ahead_s > most_s:
        yield f"the clock of {health.name} is ahead: it gives times {age(ahead_s)} in the future"
    elif late_s is not None and late_s > CLOCK_S:
        yield f"{health.name} is late, or its clock is behind: its records arrive {age(late_s)} late"
    elif late_s is not None and late_s < -most_s:
        yield f"the clock of {health.name} is {age(-late_s)} ahead"
