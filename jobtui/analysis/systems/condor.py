"""Verdicts on jobs of HTCondor and jobsub, from event logs, job ads and the jobs' own output.

The state that a job is in decides which rule is used. If the files disagree, the verdict says so and is less
sure: the event log knows best what HTCondor did, the job's wrapper knows best how its program ended.
"""

import operator
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from itertools import chain
from typing import Any, NamedTuple

from jobtui.analysis.explain.case import CERTAIN, LIKELY, PLAUSIBLE, SURE, Evidence, Ruling
from jobtui.analysis.explain.next_steps import steps_for
from jobtui.analysis.explain.pending import sentence_of
from jobtui.analysis.times import age, ago_words, capital, duration, for_words
from jobtui.backends.registry import CONDOR_LOG
from jobtui.formats.causes import load_kills
from jobtui.formats.condor_events import LITERAL_WORDS, MOST_CHARACTERS, literals
from jobtui.model import condor
from jobtui.model.clock import Nanos, seconds_between, since_s, time_of_seconds
from jobtui.model.health import SourceHealth, unread
from jobtui.model.ids import condor_id
from jobtui.model.jobs import Category, Job, Pending
from jobtui.model.logs import CondorFact, Origin
from jobtui.model.numbers import counted, real, whole
from jobtui.model.secret_words import MASK
from jobtui.model.tables import tables_of
from jobtui.model.verdicts import BY_ITSELF, Code, Contradiction, Fact, Verdict, signal_of

MOST_EVIDENCE = 6
SILENT_S = 7 * 86_400
"""A live job may be over if nothing was reported about it for this long."""
TIMEOUT_STATUS = "124"
"""The exit code of `timeout`, with which jobsub limits how long a program runs."""
OF_SLOTS = ("Cpus", "Memory", "Disk", "GPUs")
"""What a slot with a condition `WithinResourceLimits` must have as much of as a job requests."""
ASKED = (*(f"Request{name}" for name in OF_SLOTS), "Requirements")
"""Attributes of a job ad that say what a machine must have, as they are written."""
ADS_LAST_S = 900.0
"""How long ads tell what is so now, as a collector keeps those of machines (CLASSAD_LIFETIME)."""
MOST_DEPTH = 20
LONGEST_CONDITION, LONGEST_JUDGED = 200, 8_000
MOST_SLOTS, MOST_TRIED = 1 << 20, 100
UNDEFINED = "undefined"
_IDENTITY = frozenset({"=?=", "=!=", "is", "isnt"})
_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq, "=?=": operator.eq, "is": operator.eq, "!=": operator.ne, "=!=": operator.ne,
    "isnt": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_TOKEN = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|&&|\|\||=[?!]=|[?()\[\]{}]""", re.DOTALL)
_OPERAND = r"""("[^"\\]*"|[-+]?\d[\d.]*(?:e[-+]?\d+)?|(?:(?:MY|TARGET)\.)?[a-z_]\w*)"""
_COMPARISON = re.compile(
    rf"{_OPERAND}(?:\s*(=[?!]=|[<>]=?|[=!]=|\bis\b|\bisnt\b)\s*{_OPERAND})?", re.ASCII | re.IGNORECASE
)
WORDS: Mapping[str, str] = {
    **{kind.name: kind.words for kind in condor.EVENTS.values()},
    **tables_of("jobtui.model", "condor")["words"],
}  # fmt: skip
OF_RUNS = frozenset({"image_size", "disconnected", "reconnected"})
"""Events that come only while a job runs."""
_BROUGHT = re.compile(r"(?:queue to transfer|Started transferring) input")
PASSING = frozenset({"image_size", "job_id", "names_trace", "ad_information", "file_transfer", "submit_file"})


class CondorCase(NamedTuple):
    job: Job
    life: condor.CondorLife
    facts: Sequence[CondorFact]
    now: Nanos
    machines: Sequence[CondorFact] = ()

    def last(self, *whats: str) -> CondorFact | None:
        return next((fact for fact in reversed(self.facts) if fact.what in whats), None)

    def has(self, origin: Origin) -> bool:
        return any(fact.origin is origin for fact in self.facts)

    @property
    def waited_s(self) -> float | None:
        """How long it has been in its state, None if no file says since when."""
        return since_s(self.life.turns[-1].fact.at if self.life.turns else None, self.now)

    @property
    def since(self) -> str:
        return for_words(self.waited_s)

    @property
    def words(self) -> dict[str, str]:
        """Words about it for commands, "" where there are none. A site may call the same job otherwise."""
        job, known = self.job, condor_id(self.job.id)
        number, is_named = job.id if known is None else known.number, any(f.job == job.id for f in self.facts)
        schedd = known.schedd if known is not None and is_named else ""
        return {"id": job.id, "output": job.id, "trace": job.id if job.trace else "", "job": number,
                "number": "" if schedd else number, "schedd": schedd}  # fmt: skip

    def ago(self, fact: CondorFact | None) -> str:
        return ago_words(since_s(fact.at if fact is not None else None, self.now))


def explain_condor(evidence: Evidence) -> Verdict:
    job, facts = evidence.job, [fact for fact in evidence.facts if fact.what != condor.MACHINES]
    assert job is not None
    machines = [fact for fact in evidence.facts if fact.what == condor.MACHINES]
    matter = CondorCase(job, condor.CondorLife(facts), facts, evidence.now_at(job.source), machines)
    said = _in_view_of_gaps(_in_state(matter), matter)
    last = matter.life.turns[-1].fact if matter.life.turns else None
    is_by_output = last is not None and last.origin is Origin.OUTPUT
    return said.on(
        job,
        last_step=WORDS.get(last.what, last.what) if last is not None else None,
        last_at=last.at if last is not None else job.updated_at,
        waited_s=matter.waited_s if job.status.is_live else None,
        evidence=_evidence(matter),
        next=steps_for(condor.CONDOR, said.code, matter.words),
        blind_spots=(*said.doubts, *_blind_spots(matter, evidence.sources)),
        # files that are silent about it may know better than its own output
        rests_on=tuple(one.name for one in evidence.sources if is_by_output and CONDOR_LOG.made(one)),
    )


def _pending(matter: CondorCase, category: Category, words: str, **more: Any) -> Pending:
    since = matter.life.turns[-1].fact.at if matter.life.turns else matter.job.queued_at
    return Pending(category=category, reason=matter.life.state, words=words, since=since, **more)


def _for_machine(matter: CondorCase) -> Pending:
    """Why it waits for a machine: its time to start, the negotiator's word, what slots lack."""
    ad, words, needs = matter.last("ad"), "a machine; none has taken it yet", list[tuple[str, str]]()
    said = ad.values if ad is not None else {}
    if (starts_at := time_of_seconds(whole(said.get("DeferralTime"))) or 0) > matter.now:
        return _pending(matter, Category.BEGIN_TIME, "its deferral time", eligible_at=starts_at)
    rejected, judged, unmet = said.get("LastRejMatchReason", "").strip(), "", list[str]()
    if ad is not None and "Requirements" in said and matter.machines:
        machines, *others = matter.machines
        slots, old_s = f"{machines.text} in {machines.source}", since_s(machines.at, matter.now)
        if others or old_s is None or old_s > ADS_LAST_S:
            why = "are in several files" if others else f"in {machines.source} are too old"
            judged = f"no condition is judged, as machine ads {why}"
        else:
            found, every = requirements_of(ad, machines), SlotSets(ad, machines).every
            needs = [(one.text, one.how(machines.text)) for one in found if one.met != every]
            unmet = [f"{one.text}{one.would}" for one in found if not one.may]
            if unmet := unmet or [one.text for one in never_together(found[:MOST_TRIED])]:
                words = f"a machine with {' and '.join(unmet)}, which none of the {slots} has now"
            count = sum(one.met == one.may for one in found)
            judged = f"{count} of its {counted(len(found), 'condition')} were judged, on the {slots}"
    if rejected not in ("", "no match found") and not unmet:  # it says what the job waits for
        words, rejected = f"a machine; the negotiator last said: {rejected}", ""
    shown = (name for name in ASKED if name in said and not (name == "Requirements" and needs))
    asked = ", ".join(f"{name} = {said[name]:.{LONGEST_CONDITION}}" for name in shown)
    notes = (rejected and f"the negotiator last said: {rejected}", asked and f"it asks for {asked}", judged)
    return _pending(matter, Category.MACHINE, words, note="; ".join(filter(None, notes)), needs=tuple(needs))


class Requirement(NamedTuple):
    """A condition of a job as written; the slots that meet it, a bit for each, and those that may meet it."""

    text: str
    met: int
    may: int
    would: str

    def how(self, slots: str) -> str:
        least = "at least " if self.may != self.met else ""
        known = f"{least}{self.met.bit_count()} of the {slots}{self.would}"
        return known if self.met or not self.may else "not judged"


def requirements_of(ad: CondorFact, machines: CondorFact) -> list[Requirement]:
    """The conditions of a job's ad for slots: first those that the fewest meet, last those not judged."""
    own, drained = SlotSets(ad, machines), SlotSets(ad, machines, "totalslot")

    def requirement(text: str) -> Requirement:
        met, is_open = own.meeting(text)
        words = f"{text} (= {value})" if (value := own.value_in(text)) else text
        free = 0 if met else drained.meeting(text)[0].bit_count()
        would = f" ({free} would if drained)" if free else ""
        return Requirement(words[:LONGEST_CONDITION], met, met | is_open, would)

    limits = [f"TARGET.{name} >= Request{name}" for name in OF_SLOTS if own.is_limited]
    asked = (text for text in limits if (real(own.value_in(text)) or 0) > 0)
    found = [requirement(text) for text in dict.fromkeys((*conditions(ad.values["Requirements"]), *asked))]
    judged = sorted((one for one in found if one.met == one.may), key=lambda one: one.met.bit_count())
    return judged + sorted((one for one in found if one.met != one.may), key=lambda one: -one.met.bit_count())


def never_together(found: Sequence[Requirement]) -> Sequence[Requirement]:
    """Conditions that no slot meets together, each needed for this; none if a slot may meet all."""
    kept = list(found)
    for one in reversed(found):  # what most slots meet is left out first
        rest = [other for other in kept if other is not one]
        kept = kept if reduce(operator.and_, (other.may for other in rest), -1) else rest
    return [] if reduce(operator.and_, (one.may for one in found), -1) else kept


def conditions(text: str, depth: int = 0) -> Iterator[str]:
    """The conditions of an expression that must all hold, also those in brackets."""
    sign, parts = split(text)
    if sign != "&&" or depth > MOST_DEPTH:
        return iter([sign.join(parts)])
    return chain.from_iterable(conditions(part, depth + 1) for part in parts)


def split(text: str) -> tuple[str, Sequence[str]]:
    """The operator of an expression and its operands: `?` also if it is too long, "" if it has none."""
    if len(text) > LONGEST_JUDGED:
        return "?", [text]
    for _ in range(MOST_DEPTH):
        text, level, closed = text.strip(), 0, 0
        cuts: dict[str, list[int]] = {"?": [], "||": [], "&&": []}
        for token in _TOKEN.finditer(text):
            sign = token[0]
            level += (sign in "([{") - (sign in ")]}")
            if level == 0 and sign in cuts:
                cuts[sign] += token.span()
            elif level == 0 and sign in ")]}":
                closed = closed or token.end()
        if text[:1] != "(" or closed != len(text):
            break
        text = text[1:-1]
    for sign, at in cuts.items():
        if at:
            ends = [0, *at, len(text)]
            return sign, [text[begin:end] for begin, end in zip(ends[::2], ends[1::2], strict=True)]
    return "", [text]


class SlotSets:
    """Which slots of a pool meet a condition of a job: a bit for each slot.

    With a prefix, attributes of slots that have it, such as TotalSlotMemory, replace those without it.
    """

    def __init__(self, ad: CondorFact, machines: CondorFact, prefix: str = "") -> None:
        self._own = {name: "" if MASK in value else value for name, value in literals(ad.text).items()}
        self._missing = UNDEFINED if self._own and len(ad.text) < MOST_CHARACTERS else ""
        self._prefix = prefix
        self._slots: defaultdict[str, dict[str, int]] = defaultdict(dict)
        for entry, spans in machines.values.items():
            name, _, literal = entry.partition("=")
            bits = 0
            for span in spans.split(","):
                first, last = (whole(number, -1) for number in span.partition("-")[::2])
                if 0 <= first <= last < MOST_SLOTS:
                    bits |= (1 << last + 1) - (1 << first)
            self._slots[name][literal] = bits
        self.every = self._slots["mytype"].get('"Machine"', 0)
        self.is_limited = "withinresourcelimits" in self._slots

    def meeting(self, text: str, depth: int = 0) -> tuple[int, int]:
        """The slots that meet an expression, and those for which it is not judged."""
        sign, parts = split(text)
        if sign == "?" or depth > MOST_DEPTH:
            return 0, self.every
        if not sign:
            return self._compared(parts[0])
        (met, is_open), *others = (self.meeting(part, depth + 1) for part in parts)
        for met_too, open_too in others:
            if sign == "&&":
                may, met = (met | is_open) & (met_too | open_too), met & met_too
                is_open = may & ~met
            else:  # an error on the left is one of the whole
                met, is_open = met | met_too & ~is_open, is_open | open_too & ~met
        return met, is_open

    def value_in(self, text: str) -> str:
        """The value of an attribute of the job that a comparison names; "" for none."""
        found = _COMPARISON.fullmatch(text)
        names = (name.lower().removeprefix("my.") for name in found.group(3, 1) if name) if found else ()
        return next((self._own[name] for name in names if name in self._own), "")

    def _compared(self, text: str) -> tuple[int, int]:
        if (found := _COMPARISON.fullmatch(text)) is None:
            return 0, self.every
        sign, met, is_open = (found[2] or "==").lower(), 0, 0
        one, other = self._values(found[1]), self._values(found[3] or "true")
        if len(one) > 1 < len(other):
            return 0, self.every
        for left, slots in one.items():
            for right, more in other.items():
                is_met = _is_met(left, sign, right)
                met |= slots & more if is_met else 0
                is_open |= slots & more if is_met is None else 0
        return met, is_open

    def _values(self, operand: str) -> Mapping[str, int]:
        """The literals that an operand may be, each with the slots for which it is."""
        scope, _, name = operand.lower().rpartition(".")
        if scope not in ("", "my", "target") or not (name[:1].isalpha() or name[:1] == "_"):
            return {operand: self.every}
        if not scope and name in LITERAL_WORDS:
            return {name: self.every}
        if scope == "my" or (not scope and (name in self._own or not self._missing)):
            return {self._own.get(name, self._missing): self.every}
        known = self._slots.get(f"{self._prefix}{name}") or self._slots.get(name, {})
        if any(MASK in literal for literal in known):  # in a recording, and two may be alike
            return {"": self.every}
        return {**known, UNDEFINED: self.every & ~reduce(operator.or_, known.values(), 0)}


def _is_met(left: str, sign: str, right: str) -> bool | None:
    """Whether a comparison of two literals is true; None where it is not judged."""
    both, numbers = (left, right), (real(left), real(right))
    is_identity, is_equal = sign in _IDENTITY, sign not in ("<", "<=", ">", ">=")
    if "" in both:
        return None
    if not is_identity and UNDEFINED in both:
        return False  # that is undefined, and so not met
    if not is_identity and numbers[0] is not None and numbers[1] is not None:
        return _COMPARED[sign](*numbers)
    is_same_kind = left[0] == right[0] == '"' or {*both} <= LITERAL_WORDS
    if is_equal and (is_same_kind or UNDEFINED in both):
        return _COMPARED[sign](*(both if is_identity else map(str.lower, both)))
    return None


def _in_view_of_gaps(said: Ruling, matter: CondorCase) -> Ruling:
    """A ruling on a live job, less sure if its end may be in a missing or unwritten part of its log."""
    word = matter.life.unknown_word
    doubt = f'its JobStatus is "{word}", which jobtui does not know' if word else _doubt_of_last(matter)
    if not doubt:
        return said
    by = "By its events: " if word and matter.life.state else ""
    return said._replace(
        sentence=f"{capital(doubt)}. {by}{said.sentence}",
        confidence=min(said.confidence, PLAUSIBLE),
        doubts=(*said.doubts, doubt),
    )


def _doubt_of_last(matter: CondorCase) -> str:
    """Why the last event of a live job may not be its last one; "" where nothing says so."""
    gap, timed = matter.life.gap, [fact for fact in matter.facts if fact.at is not None]
    asked_at = time_of_seconds(whole(matter.life.values.get("ServerTime")))
    old_s = since_s(asked_at, matter.now) or 0.0
    newest = gap.written_at if gap is not None else matter.life.updated_at
    is_ad_last = asked_at is not None and newest is not None and asked_at >= newest and old_s <= ADS_LAST_S
    state = condor.AD_STATES.get(matter.life.values.get("JobStatus", ""))
    if not matter.job.status.is_live or (is_ad_last and state == matter.life.state):
        return ""
    if gap is not None:
        what = gap.text.strip() if gap.what == condor.LOG_GAP else _NOT_KNOWN
        return f"{what}: what happened to it since may be there"
    if not matter.has(Origin.EVENT) and old_s > ADS_LAST_S:
        return f"its job ad is of {age(old_s)} before: what happened to it since is not known"
    by_time = sorted(timed, key=lambda fact: (fact.what != "submit", fact.at))
    silent_s = seconds_between(by_time[-1].at or matter.now, matter.now) if by_time else 0.0
    if silent_s >= SILENT_S:
        return f"no event for {age(silent_s)}: it may have ended, and its log may be lost"
    last, sooner = (condor.CondorLife(facts).turns[-1:] for facts in (timed, by_time))
    if [turn.fact.what for turn in last] != [turn.fact.what for turn in sooner]:
        return _OUT_OF_ORDER
    later = timed[timed.index(last[0].fact) :] if last and matter.life.state == condor.IDLE else ()
    return _NO_START if any(fact.what in OF_RUNS for fact in later) else ""


def exit_contradictions(evidence: Evidence) -> tuple[Contradiction, ...]:
    exits = sorted(condor.CondorLife(evidence.facts).exits.items(), key=lambda end: end[0].rank)

    def fact_of(origin: Origin, end: condor.CondorExit) -> Fact:
        fact = next(one for one in reversed(evidence.facts) if one.origin is origin and one.what in _ENDS)
        return Fact(text=str(end), source=fact.source, at=fact.at, line=fact.line)

    return tuple(
        Contradiction("how its program ended", fact_of(*exits[0]), fact_of(origin, end))
        for origin, end in exits[1:]
        # a wrapper that a signal ends has a status of its own
        if exits[0][1] != end and not (end.signal and not exits[0][1].is_good) and (end.status or end.signal)
    )


_ENDS = frozenset({"terminated", "ad", condor.END, condor.SIGNAL})


def _idle(matter: CondorCase) -> Ruling:
    """It waits for a machine, for the first time or again, or for its input there."""
    turn = matter.life.turns[-1]
    later = matter.facts[matter.facts.index(turn.fact) :]
    if (transfer := next((one for one in reversed(later) if one.what == "file_transfer"), None)) is not None:
        is_brought = _BROUGHT.search(transfer.text) or transfer.values.get("Type") in ("1", "2")
        sure, doubts = (SURE, ()) if is_brought else (PLAUSIBLE, (_NO_START,))
        sentence = f"It has a machine, to which its files were transferred{matter.ago(transfer)}."
        return Ruling(Code.STAGING, sentence, sure, doubts)
    begin, again = "It was released. " if turn.fact.what == "released" else "", ""
    starts, sure = whole(matter.life.values.get("NumJobStarts"), 0), CERTAIN
    if (end := condor.exit_before_retry(turn.fact)) is not None:
        again = f"Its program ended with {end}, and is retried. "
    elif turn.fact.what in condor.LOST:
        again = f"Its run was lost ({turn.fact.values.get('Reason') or WORDS[turn.fact.what]}). "
    elif starts > 0 and turn.fact.what in ("ad", "submit"):
        again, sure = f"It was started {counted(starts, 'time')} before. ", SURE
    pending = _for_machine(matter)
    sentence = sentence_of(pending, matter.since, again or begin)
    if again:
        return Ruling(Code.REQUEUED, sentence, sure, pending=pending)
    doubts = () if _is_seen(matter) else (_NO_EVENTS,)
    if turn.fact.what == "submit" and not matter.has(Origin.AD):
        doubts = (_ON_HOLD,)
    sure = PLAUSIBLE if doubts == (_NO_EVENTS,) else LIKELY if doubts else SURE
    return Ruling(Code.IDLE, sentence, sure, doubts, pending)


def _running(matter: CondorCase) -> Ruling:
    where = f" on {matter.life.host}" if matter.life.host else ""
    begun = matter.last(condor.BEGIN)
    if not _is_seen(matter):
        sentence = f"It started{where}{matter.ago(begun)} and has not ended since, by its output."
        return Ruling(Code.RUNNING, sentence, PLAUSIBLE, (_NO_EVENTS, _KILLED))
    if matter.life.is_disconnected:
        ago = matter.ago(matter.last("disconnected"))
        sentence = f"It ran{where} when the connection was lost{ago}; HTCondor tries to reconnect."
        return Ruling(Code.RUNNING, sentence, LIKELY, ("whether it still runs is not known",))
    return Ruling(Code.RUNNING, f"It runs{where}{matter.since}.", SURE)


def _held(matter: CondorCase) -> Ruling:
    code = f" (hold code {matter.life.hold_code})" if matter.life.hold_code else ""
    why = (matter.life.reason or condor.NO_REASON).rstrip(".")
    by = load_kills().hold_codes.get(matter.life.hold_code, "")
    words = f"{why}{code}{by and ', '}{by}"
    pending = _pending(matter, Category.HELD, words, is_stuck=True)
    return Ruling(Code.HELD, f"It is held{matter.since}: {words}.", CERTAIN, pending=pending)


def _completed(matter: CondorCase) -> Ruling:
    end, last = matter.life.exit, matter.life.turns[-1].fact
    sure = CERTAIN if last.origin is not Origin.OUTPUT else SURE
    doubts = () if last.origin is not Origin.OUTPUT else (_UNSAID if _is_seen(matter) else _NO_EVENTS,)
    if end is None or end == condor.CondorExit():
        return Ruling(Code.COMPLETED, "It has ended; how is not known.", PLAUSIBLE, doubts)
    if last.origin is Origin.EVENT and not matter.has(Origin.AD) and not end.signal:
        # Not what the job calls success: only its ad holds that
        sure, doubts = SURE, _NO_AD
    if end.signal:
        lost = matter.last("shadow_exception")
        before = f"; before that: {lost.values.get('Reason') or WORDS[lost.what]}" if lost is not None else ""
        return Ruling(Code.KILLED_BY_SIGNAL, f"Its program was {end}{before}.", sure, doubts)
    if matter.life.is_good(end):
        length = matter.job.elapsed_s(matter.now)
        took = f" in {duration(length)}" if length is not None else ""
        how = "" if end.is_good else f" with {end}, which counts as success"
        return Ruling(Code.COMPLETED, f"It completed{took}{how}.", sure, doubts)
    if end.status == TIMEOUT_STATUS:
        sentence = f"Its program ended with {end}, as timeout(1) does at its limit."
        return Ruling(Code.TIMED_OUT, sentence, LIKELY, doubts)
    tries = matter.last("retries_exceeded")
    if signal := signal_of(end.status):
        sentence = f"Its program ended with {end}: so a shell reports that signal {signal} killed it."
        return Ruling(Code.KILLED_BY_SIGNAL, sentence, min(sure, LIKELY), (*doubts, BY_ITSELF))
    looked = f"; {tries.text.strip()}" if tries is not None else ""
    return Ruling(Code.PROGRAM_FAILED, f"Its program ended with {end}{looked}.", sure, doubts)


def _in_state(matter: CondorCase) -> Ruling:
    state = matter.life.state
    if state in RULES:
        return RULES[state](matter)
    if state == condor.SUSPENDED:
        return Ruling(Code.RUNNING, f"It has a machine, and is suspended there{matter.since}.", SURE)
    if state == condor.TRANSFERRING:
        return Ruling(Code.STAGING, f"Its program has ended; output is being fetched{matter.since}.", SURE)
    if state == condor.REMOVED:
        ago = matter.ago(matter.life.turns[-1].fact)
        why = (matter.life.reason or condor.NO_REASON).rstrip(".")
        return Ruling(Code.CANCELED, f"It was removed{ago}: {why}.", CERTAIN)
    return Ruling(Code.UNKNOWN, "No file has its state.", 0.3)


RULES: Mapping[str, Callable[[CondorCase], Ruling]] = {
    condor.IDLE: _idle, "UNEXPANDED": _idle, condor.RUNNING: _running, condor.HELD: _held,
    condor.COMPLETED: _completed,
}  # fmt: skip

_NO_AD = ("an event log does not say which exit status counts as success; its job ad does",)
_NOT_KNOWN = "its log has an event that jobtui does not know"
_NO_START = "it had an event that only a run has, and no start of that run was read"
_OUT_OF_ORDER = "its events are out of order; by their times it is in another state"
_NO_EVENTS = "neither an event log nor a job ad of it was read"
_ON_HOLD = "no event is written for a job that was submitted on hold; see condor_q or its job ad"
_UNSAID = "its wrapper says that it ended, and HTCondor has not said so yet"
_KILLED = "a job that is killed writes no last line"


def _is_seen(matter: CondorCase) -> bool:
    return matter.has(Origin.EVENT) or matter.has(Origin.AD)


def _blind_spots(matter: CondorCase, sources: Iterable[SourceHealth]) -> Iterator[str]:
    yield from unread(sources)
    for source, skipped in ((source.name, source.skipped) for source in sources if source.skipped):
        if any(fact.source == source for fact in matter.facts):
            yield f"parts of {source} that could not be read: {skipped}"


def _evidence(matter: CondorCase) -> tuple[Fact, ...]:
    facts = [one for one in matter.facts if one.what not in PASSING][-MOST_EVIDENCE:]
    facts += matter.machines if matter.life.state == condor.IDLE else ()
    words = ((one, WORDS.get(one.what, one.what)) for one in facts)
    return tuple(
        Fact(text=_text(one), source=one.source, what=what, at=one.at, line=one.line) for one, what in words
    )


def _text(fact: CondorFact) -> str:
    """A fact in one line: of an event the head and the reason, of a job ad the text as it is there."""
    if fact.what == "ad":
        names = ("JobStatus", "ExitCode", "ExitBySignal", "ExitSignal", "HoldReason", "RemoveReason")
        return ", ".join(f"{name} = {fact.values[name]}" for name in names if name in fact.values)
    lines = [line.strip() for line in fact.text.strip().split("\n")]
    if fact.origin is not Origin.EVENT:
        return lines[0]
    parts = [line for line in lines[1:] if line and not line.startswith(("Usr ", "Partitionable", "<"))]
    return " | ".join((lines[0], *parts[:2]))
