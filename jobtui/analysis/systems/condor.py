"""Verdicts on jobs of HTCondor and jobsub, out of what event logs, job ads and the jobs' own output say.

The state that a job is in decides which rule is asked. What the files do not agree on is said, and makes a
verdict less sure: the event log knows best what HTCondor did, the job's wrapper how its program ended.
"""

import operator
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from jobtui.analysis.explain.case import CERTAIN, LIKELY, PLAUSIBLE, SURE, Evidence, Said
from jobtui.analysis.explain.pending import sentence_of
from jobtui.analysis.times import age, ago_words, duration, for_words
from jobtui.backends.registry import CONDOR_LOG
from jobtui.formats.causes import load_kills
from jobtui.model import condor, condor_life
from jobtui.model.clock import Nanos, seconds_between, since_s
from jobtui.model.commands import Command
from jobtui.model.health import SourceHealth, unread
from jobtui.model.jobs import Category, Job, JobStatus, Pending
from jobtui.model.numbers import counted, real, whole
from jobtui.model.secret_words import MASK
from jobtui.model.tables import tables_of
from jobtui.model.verdicts import Code, Contradiction, Fact, NextStep, Verdict

SYSTEMS = frozenset({condor_life.CONDOR, condor_life.JOBSUB})
MOST_EVIDENCE = 6
SILENT_S = 7 * 86_400
"""A live job of which nothing was told for so long may be over."""
TIMEOUT_STATUS = "124"
"""What `timeout`, with which jobsub runs a program for so long at most, ends with."""
ASKED = ("RequestCpus", "RequestMemory", "RequestDisk", "RequestGPUs", "Requirements")
"""Attributes of a job ad that say what a machine must have, as they are written."""
MACHINES_LAST_S = 900.0
"""A collector drops the ad of a machine that was not heard of for so long (CLASSAD_LIFETIME)."""
MOST_DEPTH = 20
LONGEST_CONDITION = 200
UNDEFINED = "undefined"
_WORDS = frozenset({"true", "false", UNDEFINED})
_IDENTITY = frozenset({"=?=", "=!=", "is", "isnt"})
_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "=?=": operator.eq, "is": operator.eq, "!=": operator.ne, "=!=": operator.ne,
    "isnt": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_TOKEN = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|&&|\|\||=[?!]=|[?()\[\]{}]""", re.DOTALL)
_COMPARISON = re.compile(
    r"(?P<scope>TARGET\.)?(?P<name>[a-z_]\w*)(?:\s*(?P<sign>=[?!]=|[<>]=?|[=!]=|\bis\b|\bisnt\b)\s*"
    r"""(?P<value>"[^"\\]*"|[-+]?\d[\d.]*(?:e[-+]?\d+)?|(?:MY\.)?[a-z_]\w*))?""",
    re.ASCII | re.IGNORECASE,
)
WORDS: Mapping[str, str] = {
    **{kind.name: kind.words for kind in condor_life.EVENTS.values()},
    **tables_of("jobtui.model", "condor")["words"],
}  # fmt: skip
"""What a fact tells, in words."""
PASSING = frozenset({"image_size", "job_id", "names_trace", "ad_information", "file_transfer", "submit_file"})


class CondorCase(NamedTuple):
    """One job and all that files say of it."""

    job: Job
    life: condor_life.CondorLife
    facts: Sequence[condor.CondorFact]
    now: Nanos
    machines: Sequence[condor.CondorFact] = ()

    def last(self, *whats: str) -> condor.CondorFact | None:
        return next((fact for fact in reversed(self.facts) if fact.what in whats), None)

    def has(self, teller: condor.Teller) -> bool:
        return any(fact.teller is teller for fact in self.facts)

    @property
    def waited_s(self) -> float | None:
        """How long it has been in its state, None where no file tells since when."""
        at = self.life.turns[-1].fact.at if self.life.turns else None
        return since_s(at, self.now)

    @property
    def since(self) -> str:
        return for_words(self.waited_s)

    def ago(self, fact: condor.CondorFact | None) -> str:
        return ago_words(since_s(fact.at if fact is not None else None, self.now))


def explain_condor(evidence: Evidence) -> Verdict:
    job, facts = evidence.job, [fact for fact in evidence.facts if fact.what != condor.MACHINES]
    assert job is not None
    machines = [fact for fact in evidence.facts if fact.what == condor.MACHINES]
    matter = CondorCase(job, condor_life.CondorLife(facts), facts, evidence.now_at(job.source), machines)
    said = _in_view_of_gaps(_in_state(matter), matter)
    last = matter.life.turns[-1].fact if matter.life.turns else None
    trace = NextStep("see where it failed in its trace", Command("jobtui", "trace", about=[job.id]))
    of_trace = (trace,) if job.trace else ()
    is_by_output = last is not None and last.teller is condor.Teller.OUTPUT
    timeline = NextStep("see every state with its time", Command("jobtui", "timeline", about=[job.id]))
    return Verdict(
        job_id=job.id,
        code=said.code,
        sentence=said.sentence,
        confidence=said.confidence,
        last_step=WORDS.get(last.what, last.what) if last is not None else None,
        last_at=last.at if last is not None else job.updated_at,
        waited_s=matter.waited_s if job.status.is_live else None,
        evidence=_evidence(matter),
        next=(*said.next, *of_trace, timeline),
        blind_spots=(*said.doubts, *_blind_spots(matter, evidence.sources)),
        pending=said.pending if job.status is JobStatus.PENDING else None,
        # files that are silent about it may know better than its own output
        rests_on=tuple(one.name for one in evidence.sources if is_by_output and CONDOR_LOG.made(one)),
    )


def _pending(matter: CondorCase, category: Category, words: str, **more: Any) -> Pending:
    turn = matter.life.turns[-1].fact if matter.life.turns else None
    since = turn.at if turn is not None else matter.job.queued_at
    return Pending(category=category, reason=matter.life.state, words=words, since=since, **more)


def _for_machine(matter: CondorCase) -> Pending:
    """That it waits for a machine: the negotiator's word, what it asks for, and how many slots meet that."""
    ad, words, needs = matter.last("ad"), "a machine; none has taken it yet", list[tuple[str, str]]()
    said = ad.values if ad is not None else {}
    asked = ", ".join(f"{name} = {said[name]:.{LONGEST_CONDITION}}" for name in ASKED if name in said)
    rejected = said.get("LastRejMatchReason", "").strip()
    notes = [f"the negotiator last said: {rejected}"] if rejected else []
    notes += [f"it asks for {asked}"] if asked else []
    if "Requirements" in said and matter.machines:
        machines, *others = matter.machines
        slots, old_s = f"{machines.text} in {machines.source}", since_s(machines.at, matter.now)
        if others or old_s is None or old_s > MACHINES_LAST_S:
            why = "are in several files" if others else f"in {machines.source} are too old"
            notes.append(f"no condition is judged, as machine ads {why}")
        else:
            found, unmet = requirements_of(said, machines), []
            for text, met, drained in found:
                would = f" ({drained} would if drained)" if drained and not met else ""
                unmet += [f"{text}{would}"] if met == 0 else []
                needs.append((text, "not judged" if met is None else f"{met} of the {slots}{would}"))
            if unmet:
                words = f"a machine with {' and '.join(unmet)}, which none of the {slots} has now"
            judged = sum(met is not None for _, met, _ in found)
            notes.append(f"{judged} of its {counted(len(found), 'condition')} were judged")
    return _pending(matter, Category.MACHINE, words, note="; ".join(notes), needs=tuple(needs))


Requirement = tuple[str, int | None, int | None]
"""A condition of a job as written, how many slots meet it, and how many would if they were drained.

None where it is more than a comparison, or where a slot's attribute is an expression.
"""


def requirements_of(ad: Mapping[str, str], machines: condor.CondorFact) -> list[Requirement]:
    """The conditions that a slot must meet by a job's ad: those that fewest meet, then those not judged."""
    slots: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for told, count in machines.values.items():
        name, _, literal = told.partition("=")
        # a recording masks the one or the other
        slots[name]["" if MASK in literal + count else literal] = whole(count, 1)
    total = sum(slots["mytype"].values())
    slots |= {"true": {"true": total}, "false": {"false": total}}
    own = {name.lower(): value for name, value in ad.items()}

    def requirement(text: str) -> Requirement:
        found = _COMPARISON.fullmatch(text)
        if found is None or (not found["scope"] and found["name"].lower() in own):
            return text[:LONGEST_CONDITION], None, None
        name, sign, value = found["name"].lower(), (found["sign"] or "==").lower(), found["value"] or "true"
        mine = own.get(value.lower().removeprefix("my."))
        wanted = value if mine is None else mine.lstrip('"')  # a text of an ad has lost its quotes
        words = text if wanted == value else f"{text} (= {wanted})"
        met, drained = (_met(slots[one], total, sign, wanted) for one in (name, f"totalslot{name}"))
        return words[:LONGEST_CONDITION], met, drained

    found = [requirement(text) for text in dict.fromkeys(conditions(own.get("requirements", "true")))]
    return sorted(found, key=lambda one: total + 1 if one[1] is None else one[1])


def conditions(text: str, depth: int = 0) -> Iterator[str]:
    """The conditions of an expression that must all hold, also those in brackets."""
    text, level, cuts, closed = text.strip(), 0, [0], 0
    for token in _TOKEN.finditer(text):
        sign = token[0]
        level += (sign in "([{") - (sign in ")]}")
        if level == 0 and sign in ("||", "?"):
            yield text
            return
        if level == 0 and sign == "&&":
            cuts += token.span()
        elif level == 0 and sign in ")]}":
            closed = closed or token.end()
    if len(cuts) > 1:
        for begin, end in zip(cuts[::2], [*cuts[1::2], len(text)], strict=True):
            yield from conditions(text[begin:end], depth)
    elif text[:1] == "(" and closed == len(text) and depth < MOST_DEPTH:
        yield from conditions(text[1:-1], depth + 1)
    else:
        yield text


def _met(slots: Mapping[str, int], total: int, sign: str, wanted: str) -> int | None:
    """How many slots meet a comparison, by how many have which value; the others have none."""
    wanted = wanted if wanted[:1] == '"' else wanted.lower()
    met, limit, is_order = 0, real(wanted), sign in ("<", "<=", ">", ">=")
    if limit is None and wanted[:1] != '"' and wanted not in _WORDS:
        return None
    for has, count in (*slots.items(), (UNDEFINED, total - sum(slots.values()))):
        number, is_same_kind = real(has), has[:1] == wanted[:1] == '"' or {has, wanted} <= _WORDS
        if sign not in _IDENTITY and UNDEFINED in (has, wanted):
            continue  # that is undefined, and so not met
        if sign not in _IDENTITY and number is not None and limit is not None:
            met += count * _COMPARED[sign](number, limit)
        elif not is_order and (is_same_kind or (has and UNDEFINED in (has, wanted))):
            both = (has, wanted) if sign in _IDENTITY else (has.lower(), wanted.lower())
            met += count * _COMPARED[sign](*both)
        elif count:
            return None
    return met


def _in_view_of_gaps(said: Said, matter: CondorCase) -> Said:
    """What became of a live job may be in a part of its log that is gone, or that was never written."""
    gap, last = matter.life.gap, max((fact.at for fact in matter.facts if fact.at is not None), default=None)
    silent_s = 0.0 if last is None else seconds_between(last, matter.now)
    if not matter.job.status.is_live or (gap is None and silent_s < SILENT_S):
        return said
    gone = "" if gap is None else f"{gap.text.strip()}: what became of it since may be there"
    doubt = gone or f"nothing tells of it for {age(silent_s)}: it may be over, and its log lost or cut off"
    return said._replace(
        sentence=f"{doubt[0].upper()}{doubt[1:]}. {said.sentence}",
        confidence=min(said.confidence, PLAUSIBLE),
        doubts=(*said.doubts, doubt),
    )


def exit_contradictions(evidence: Evidence) -> tuple[Contradiction, ...]:
    told = sorted(condor_life.CondorLife(evidence.facts).said_exits.items(), key=lambda said: said[0].rank)

    def fact_of(teller: condor.Teller, end: condor_life.CondorExit) -> Fact:
        found = (one for one in reversed(evidence.facts) if one.teller is teller and one.what in _ENDS)
        fact = next(found)
        return Fact(text=str(end), source=fact.source, at=fact.at, line=fact.line)

    found = []
    for teller, end in told[1:]:
        first, best = told[0]
        # a wrapper that a signal ends has a status of its own
        is_same = best == end or (end.signal and not best.is_good) or not (end.status or end.signal)
        if not is_same:
            both = fact_of(first, best), fact_of(teller, end)
            found.append(Contradiction("how its program ended", *both))
    return tuple(found)


_ENDS = frozenset({"terminated", "ad", condor.END, condor.SIGNAL})


def _idle(matter: CondorCase) -> Said:
    """It waits for a machine, for the first time or again."""
    turn = matter.life.turns[-1]
    analyze = _condor(matter, "see which machines would take it", "condor_q -better-analyze")
    if turn.fact.what in condor.LOST:
        if (end := condor_life.exit_before_retry(turn.fact)) is not None:
            sentence = f"Its program ended with {end}; it waits{matter.since} to run again, as it is retried."
            return Said(Code.REQUEUED, sentence, CERTAIN, (analyze,))
        why = turn.fact.values.get("Reason") or WORDS[turn.fact.what]
        sentence = f"Its run was lost ({why}); it waits{matter.since} to run again."
        return Said(Code.REQUEUED, sentence, CERTAIN, (analyze,))
    pending = _for_machine(matter)
    sentence = sentence_of(pending, matter.since, "It was released. " if turn.fact.what == "released" else "")
    starts = whole(turn.fact.values.get("NumJobStarts"), 0)
    if turn.fact.teller is condor.Teller.AD and starts > 0:
        sentence = f"It was started {counted(starts, 'time')}, and waits{matter.since} to run again."
        return Said(Code.REQUEUED, sentence, SURE, (analyze,))
    doubts = () if _is_told(matter) else (_NO_EVENTS,)
    if turn.fact.what == "submit" and not matter.has(condor.Teller.AD):
        doubts = (_ON_HOLD,)
    sure = PLAUSIBLE if doubts == (_NO_EVENTS,) else LIKELY if doubts else SURE
    return Said(Code.IDLE, sentence, sure, (analyze,), doubts, pending)


def _running(matter: CondorCase) -> Said:
    where = f" on {matter.life.host}" if matter.life.host else ""
    begun = matter.last(condor.BEGIN)
    if not _is_told(matter):
        sentence = f"It began{where}{matter.ago(begun)} and did not end since, as far as its output tells."
        return Said(Code.RUNNING, sentence, PLAUSIBLE, (), (_NO_EVENTS, _KILLED))
    if matter.life.is_disconnected:
        cut = matter.last("disconnected")
        sentence = (
            f"It ran{where} when the connection was lost{matter.ago(cut)}; HTCondor tries to reconnect."
        )
        return Said(Code.RUNNING, sentence, LIKELY, (), ("whether it still runs is not known",))
    return Said(Code.RUNNING, f"It runs{where}{matter.since}.", SURE)


def _held(matter: CondorCase) -> Said:
    code = f" (hold code {matter.life.hold_code})" if matter.life.hold_code else ""
    why = (matter.life.reason or condor_life.NO_REASON).rstrip(".")
    steps = (
        _condor(matter, "see why it is held", "condor_q -hold"),
        _condor(matter, "let it go on when the cause is mended", "condor_release"),
    )
    by = load_kills().hold_codes.get(matter.life.hold_code, "")
    words = f"{why}{code}{by and ', '}{by}"
    pending = _pending(matter, Category.HELD, words, is_stuck=True)
    return Said(Code.HELD, f"It is held{matter.since}: {words}.", CERTAIN, steps, pending=pending)


def _completed(matter: CondorCase) -> Said:
    end, last = matter.life.exit, matter.life.turns[-1].fact
    sure = CERTAIN if last.teller is not condor.Teller.OUTPUT else SURE
    doubts = () if last.teller is not condor.Teller.OUTPUT else (_UNSAID if _is_told(matter) else _NO_EVENTS,)
    if end is None or end == condor_life.CondorExit():
        return Said(Code.COMPLETED, "It is over; how its program ended is not said.", PLAUSIBLE, (), doubts)
    if last.teller is condor.Teller.EVENT and not matter.has(condor.Teller.AD) and not end.signal:
        # Not what the job calls success: only its ad holds that
        sure, doubts = SURE, _NO_AD
    if end.signal:
        lost = matter.last("shadow_exception")
        before = f"; before that: {lost.values.get('Reason') or WORDS[lost.what]}" if lost is not None else ""
        return Said(Code.KILLED_BY_SIGNAL, f"Its program was {end}{before}.", sure, (), doubts)
    if matter.life.is_good(end):
        length = matter.job.elapsed_s(matter.now)
        took = f" in {duration(length)}" if length is not None else ""
        how = "" if end.is_good else f" with {end}, which it calls success"
        return Said(Code.COMPLETED, f"It completed{took}{how}.", sure, (), doubts)
    if end.status == TIMEOUT_STATUS:
        sentence = f"Its program ended with {end}: that is what a time limit of its own ends with."
        return Said(Code.TIMED_OUT, sentence, LIKELY, (), doubts)
    tries = matter.last("retries_exceeded")
    looked = f"; {tries.text.strip()}" if tries is not None else ""
    return Said(Code.PROGRAM_FAILED, f"Its program ended with {end}{looked}.", sure, (), doubts)


def _in_state(matter: CondorCase) -> Said:
    state = matter.life.state
    if state in RULES:
        return RULES[state](matter)
    if state == condor.SUSPENDED:
        return Said(Code.RUNNING, f"It has a machine, and is suspended there{matter.since}.", SURE)
    if state == condor.TRANSFERRING:
        return Said(Code.STAGING, f"Its program is done; its output is fetched{matter.since}.", SURE)
    if state == condor.REMOVED:
        ago = matter.ago(matter.life.turns[-1].fact)
        why = (matter.life.reason or condor_life.NO_REASON).rstrip(".")
        return Said(Code.CANCELED, f"It was removed{ago}: {why}.", CERTAIN)
    what = f'Its state is "{state}", which jobtui does not know.' if state else "No file tells its state."
    return Said(Code.UNKNOWN, what, 0.3)


RULES: Mapping[str, Callable[[CondorCase], Said]] = {
    condor.IDLE: _idle, "UNEXPANDED": _idle, condor.RUNNING: _running, condor.HELD: _held,
    condor.COMPLETED: _completed,
}  # fmt: skip

_NO_AD = ("an event log does not hold which exit status the job calls success; its job ad does",)
_NO_EVENTS = "neither an event log nor a job ad of it was read"
_ON_HOLD = "no event tells of a job that was submitted on hold; condor_q and a job ad do"
_UNSAID = "its wrapper says that it ended, and HTCondor has not said so yet"
_KILLED = "a job that is killed writes no last line"


def _is_told(matter: CondorCase) -> bool:
    return matter.has(condor.Teller.EVENT) or matter.has(condor.Teller.AD)


def _blind_spots(matter: CondorCase, sources: Iterable[SourceHealth]) -> Iterator[str]:
    yield from unread(sources)
    for source, skipped in ((s.name, s.skipped) for s in sources if s.skipped):
        if any(fact.source == source for fact in matter.facts):
            yield f"{skipped} pieces of {source} made no sense"


def _evidence(matter: CondorCase) -> tuple[Fact, ...]:
    facts = [one for one in matter.facts if one.what not in PASSING][-MOST_EVIDENCE:]
    facts += matter.machines if matter.life.state == condor.IDLE else ()
    words = ((one, WORDS.get(one.what, one.what)) for one in facts)
    return tuple(
        Fact(text=_text(one), source=one.source, what=what, at=one.at, line=one.line) for one, what in words
    )


def _text(fact: condor.CondorFact) -> str:
    """A fact in one line: of an event its head and its reason, of a job ad how it stands there."""
    if fact.what == "ad":
        names = ("JobStatus", "ExitCode", "ExitBySignal", "ExitSignal", "HoldReason", "RemoveReason")
        return ", ".join(f"{name} = {fact.values[name]}" for name in names if name in fact.values)
    lines = [line.strip() for line in fact.text.strip().split("\n")]
    if fact.teller is not condor.Teller.EVENT:
        return lines[0]
    told = [line for line in lines[1:] if line and not line.startswith(("Usr ", "Partitionable", "<"))]
    return " | ".join((lines[0], *told[:2]))


def _condor(matter: CondorCase, why: str, command: str) -> NextStep:
    job_id = matter.job.id
    known = condor.condor_id(job_id)
    is_named = any(fact.job == job_id for fact in matter.facts)  # else what follows may be the name of a site
    name = ("-name", known.schedd) if known is not None and known.schedd and is_named else ()
    number = known.number if known is not None else job_id
    return NextStep(why, Command(*command.split(), *name, about=[number]))
