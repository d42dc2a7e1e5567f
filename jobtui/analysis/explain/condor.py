"""Verdicts on jobs of HTCondor and jobsub, out of what event logs, job ads and the jobs' own output say.

The state that a job is in decides which rule is asked. What the files do not agree on is said, and makes a
verdict less sure: the event log knows best what HTCondor did, the job's wrapper how its program ended.
"""

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from jobtui.analysis.ad_inquiry import NEVER, REQUIREMENTS
from jobtui.analysis.contradictions import Contradiction, Fact
from jobtui.analysis.explain.finding import CERTAIN, LIKELY, PLAUSIBLE, SURE, Said
from jobtui.analysis.time_words import age, duration
from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.condor import (
    BEGIN,
    COMPLETED,
    END,
    EVENTS,
    HELD,
    IDLE,
    LOST,
    REMOVED,
    RUNNING,
    SIGNAL,
    SUSPENDED,
    TRANSFERRING,
)
from jobtui.model.condor_facts import CondorFact, Teller
from jobtui.model.condor_ids import condor_id
from jobtui.model.condor_jobs import CONDOR, JOBSUB, NO_REASON
from jobtui.model.condor_life import CondorLife, Exit
from jobtui.model.health import SourceHealth, unread
from jobtui.model.jobs import Job, JobDetail
from jobtui.model.verdicts import Code, Evidence, NextStep, Verdict

SYSTEMS = frozenset({CONDOR, JOBSUB})
MOST_EVIDENCE = 6
TIMEOUT_STATUS = "124"
"""What `timeout`, with which jobsub runs a program for so long at most, ends with."""
WORDS: Mapping[str, str] = {
    **{kind.name: kind.words for kind in EVENTS.values()},
    BEGIN: "its program begins",
    END: "its program has completed",
    SIGNAL: "a signal was received",
    "retries_exceeded": "a file was not found in time",
    "truncated": "its output was cut",
    "ad": "job ad",
}
"""What a fact tells, in words."""
PASSING = frozenset({"image_size", "job_id", "names_trace", "ad_information", "file_transfer", "submit_file"})


class Matter(NamedTuple):
    """One job and all that files say of it. `never` are the parts of its ad that no machine can fulfil."""

    job: Job
    life: CondorLife
    facts: Sequence[CondorFact]
    now: Nanos
    never: str = ""

    def last(self, *whats: str) -> CondorFact | None:
        """The last fact of some kinds."""
        return next((fact for fact in reversed(self.facts) if fact.what in whats), None)

    def has(self, teller: Teller) -> bool:
        """Whether anything of this kind was read."""
        return any(fact.teller is teller for fact in self.facts)

    @property
    def since(self) -> str:
        """How long it has been in its state, in words that follow others."""
        at = self.life.turns[-1].fact.at if self.life.turns else None
        return "" if at is None else f" for {age(max(0.0, seconds_between(at, self.now)))}"


def explain_condor(
    job: Job,
    facts: Sequence[CondorFact],
    sources: Iterable[SourceHealth],
    now: Nanos,
    detail: JobDetail | None = None,
) -> Verdict:
    """What is the matter with a job of HTCondor. `facts` is what files say of it, in order of time."""
    requires = dict(detail.facts).get(REQUIREMENTS, "") if detail is not None else ""
    never = requires.removeprefix(NEVER) if requires.startswith(NEVER) else ""
    matter = Matter(job, CondorLife(facts), facts, now, never)
    said = RULES.get(matter.life.state, _unknown)(matter)
    disagree = exit_contradictions(matter.life, facts)
    confidence = min(said.confidence, LIKELY) if disagree else said.confidence
    last = matter.life.turns[-1].fact if matter.life.turns else None
    return Verdict(
        job_id=job.id,
        code=said.code,
        sentence=said.sentence,
        confidence=confidence,
        last_step=WORDS.get(last.what, last.what) if last is not None else None,
        last_at=last.at if last is not None else job.updated_at,
        waited_s=_waited_s(matter),
        evidence=_evidence(matter),
        next=(*said.next, *_next_steps(job)),
        blind_spots=(*said.doubts, *_blind_spots(matter, sources)),
    )


def exit_contradictions(life: CondorLife, facts: Sequence[CondorFact]) -> tuple[Contradiction, ...]:
    """Where files tell different ends of the same program."""
    told = sorted(life.said_exits.items(), key=lambda said: said[0].rank)
    if len(told) < 2:
        return ()
    (first, end), *others = told
    return tuple(
        Contradiction("how its program ended", _fact(facts, first, end), _fact(facts, teller, other))
        for teller, other in others
        if not _is_same(end, other)
    )


def _is_same(one: Exit, other: Exit) -> bool:
    """Whether two may tell of one end: a wrapper that a signal ends has a status of its own."""
    return one == other or (bool(other.signal) and not one.is_good) or not (other.status or other.signal)


_ENDS = frozenset({"terminated", "ad", END, SIGNAL})


def _fact(facts: Sequence[CondorFact], teller: Teller, end: Exit) -> Fact:
    fact = next(one for one in reversed(facts) if one.teller is teller and one.what in _ENDS)
    return Fact(str(end), fact.source, fact.at, fact.line)


def _waited_s(matter: Matter) -> float | None:
    at = matter.life.turns[-1].fact.at if matter.life.turns else None
    if at is None or not matter.job.status.is_live:
        return None
    return max(0.0, seconds_between(at, matter.now))


def _idle(matter: Matter) -> Said:
    """It waits for a machine, for the first time or again."""
    turn = matter.life.turns[-1]
    analyze = _condor(matter.job, "see which machines would take it", "condor_q -better-analyze")
    if turn.fact.what in LOST:
        why = turn.fact.values.get("Reason") or WORDS[turn.fact.what]
        sentence = f"Its run was lost ({why}); it waits{matter.since} to run again."
        return Said(Code.REQUEUED, sentence, CERTAIN, (analyze,))
    if matter.never:
        why = f"it requires {matter.never}, which its own ad makes false"
        sentence = f"It waits{matter.since}, and no machine can take it: {why}."
        return Said(Code.IDLE, sentence, SURE, (analyze,))
    if turn.fact.what == "released":
        sentence = f"It was released, and waits{matter.since} for a machine."
    else:
        sentence = f"It waits{matter.since} for a machine; none has taken it yet."
    doubts = () if _is_told(matter) else (_NO_EVENTS,)
    return Said(Code.IDLE, sentence, PLAUSIBLE if doubts else SURE, (analyze,), doubts)


def _running(matter: Matter) -> Said:
    where = f" on {matter.life.host}" if matter.life.host else ""
    begun = matter.last(BEGIN)
    if not _is_told(matter):
        sentence = f"It began{where}{_ago(begun, matter)} and did not end since, as far as its output tells."
        return Said(Code.RUNNING, sentence, PLAUSIBLE, (), (_NO_EVENTS, _KILLED))
    if matter.life.is_disconnected:
        cut = matter.last("disconnected")
        sentence = (
            f"It ran{where} when the connection was lost{_ago(cut, matter)}; HTCondor tries to reconnect."
        )
        return Said(Code.RUNNING, sentence, LIKELY, (), ("whether it still runs is not known",))
    return Said(Code.RUNNING, f"It runs{where}{matter.since}.", SURE)


def _suspended(matter: Matter) -> Said:
    return Said(Code.RUNNING, f"It has a machine, and is suspended there{matter.since}.", SURE)


def _transferring(matter: Matter) -> Said:
    return Said(Code.STAGING, f"Its program is done; its output is fetched{matter.since}.", SURE)


def _held(matter: Matter) -> Said:
    """It waits for a person."""
    code = f" (hold code {matter.life.hold_code})" if matter.life.hold_code else ""
    why = (matter.life.reason or NO_REASON).rstrip(".")
    steps = (
        _condor(matter.job, "see why it is held", "condor_q -hold"),
        _condor(matter.job, "let it go on when the cause is mended", "condor_release"),
    )
    return Said(Code.HELD, f"It is held{matter.since}: {why}{code}.", CERTAIN, steps)


def _removed(matter: Matter) -> Said:
    why = (matter.life.reason or NO_REASON).rstrip(".")
    return Said(Code.CANCELED, f"It was removed{_ago(matter.life.turns[-1].fact, matter)}: {why}.", CERTAIN)


def _completed(matter: Matter) -> Said:
    """It is over: how did its program end?"""
    end, last = matter.life.exit, matter.life.turns[-1].fact
    sure = CERTAIN if last.teller is not Teller.OUTPUT else SURE
    doubts = () if last.teller is not Teller.OUTPUT else (_UNSAID if _is_told(matter) else _NO_EVENTS,)
    if end is None or end == Exit():
        return Said(Code.COMPLETED, "It is over; how its program ended is not said.", PLAUSIBLE, (), doubts)
    if end.signal:
        lost = matter.last("shadow_exception")
        before = f"; before that: {lost.values.get('Reason') or WORDS[lost.what]}" if lost is not None else ""
        return Said(Code.KILLED_BY_SIGNAL, f"Its program was {end}{before}.", sure, (), doubts)
    if end.is_good:
        length = matter.job.elapsed_s(matter.now)
        took = f" in {duration(length)}" if length is not None else ""
        return Said(Code.COMPLETED, f"It completed{took}.", sure, (), doubts)
    if end.status == TIMEOUT_STATUS:
        sentence = f"Its program ended with {end}: that is what a time limit of its own ends with."
        return Said(Code.TIMED_OUT, sentence, LIKELY, (), doubts)
    tries = matter.last("retries_exceeded")
    looked = f"; {tries.text.strip()}" if tries is not None else ""
    return Said(Code.PROGRAM_FAILED, f"Its program ended with {end}{looked}.", sure, (), doubts)


def _unknown(matter: Matter) -> Said:
    state = matter.life.state
    what = f'Its state is "{state}", which jobtui does not know.' if state else "No file tells its state."
    return Said(Code.UNKNOWN, what, 0.3)


RULES: Mapping[str, Callable[[Matter], Said]] = {
    IDLE: _idle,
    "UNEXPANDED": _idle,
    RUNNING: _running,
    SUSPENDED: _suspended,
    TRANSFERRING: _transferring,
    HELD: _held,
    REMOVED: _removed,
    COMPLETED: _completed,
}
"""What is asked of a job in each state."""

_NO_EVENTS = "neither an event log nor a job ad of it was read"
_UNSAID = "its wrapper says that it ended, and HTCondor has not said so yet"
_KILLED = "a job that is killed writes no last line"


def _is_told(matter: Matter) -> bool:
    """Whether HTCondor itself tells of the job."""
    return matter.has(Teller.EVENT) or matter.has(Teller.AD)


def _ago(fact: CondorFact | None, matter: Matter) -> str:
    if fact is None or fact.at is None:
        return ""
    return f" {age(max(0.0, seconds_between(fact.at, matter.now)))} ago"


def _blind_spots(matter: Matter, sources: Iterable[SourceHealth]) -> Iterator[str]:
    """What could not be read, or is not certain."""
    yield from unread(sources)
    for source, skipped in ((s.name, s.skipped) for s in sources if s.skipped):
        if any(fact.source == source for fact in matter.facts):
            yield f"{skipped} pieces of {source} made no sense"


def _evidence(matter: Matter) -> tuple[Evidence, ...]:
    """The lines and events that led here, the last ones."""
    facts = [fact for fact in matter.facts if fact.what not in PASSING]
    return tuple(
        Evidence(
            what=WORDS.get(fact.what, fact.what),
            text=_text(fact),
            source=fact.source,
            at=fact.at,
            line=fact.line,
        )
        for fact in facts[-MOST_EVIDENCE:]
    )


def _text(fact: CondorFact) -> str:
    """A fact in one line: of an event its head and its reason, of a job ad how it stands there."""
    if fact.teller is Teller.AD:
        names = ("JobStatus", "ExitCode", "ExitBySignal", "ExitSignal", "HoldReason", "RemoveReason")
        return ", ".join(f"{name} = {fact.values[name]}" for name in names if name in fact.values)
    lines = [line.strip() for line in fact.text.strip().split("\n")]
    if fact.teller is not Teller.EVENT:
        return lines[0]
    told = [line for line in lines[1:] if line and not line.startswith(("Usr ", "Partitionable", "<"))]
    return " | ".join((lines[0], *told[:2]))


def _next_steps(job: Job) -> Iterator[NextStep]:
    if job.trace:
        yield NextStep("see where it failed in its trace", f"jobtui trace {shlex.quote(job.id)}")
    yield NextStep("see every state with its time", f"jobtui timeline {shlex.quote(job.id)}")


def _condor(job: Job, why: str, command: str) -> NextStep:
    """A command of HTCondor about the job."""
    known = condor_id(job.id)
    name = f" -name {shlex.quote(known.schedd)}" if known is not None and known.schedd else ""
    return NextStep(why, f"{command}{name} {shlex.quote(known.number if known is not None else job.id)}")
