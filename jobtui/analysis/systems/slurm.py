"""Verdicts on jobs of Slurm, from their state, Slurm's own reason and the record.

Slurm itself says why a job waits or how it ended, so a verdict is as sure as its word is clear. Some of its
words are unclear: an exit code above 128 is a signal that the shell saw; a job may be called failed although
a step of it was out of memory, or although it was killed because it took more memory than it had; a job that
slurmd could not start seems to have ended by a real-time signal. Reads nothing.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from jobtui.analysis.explain.case import CERTAIN, GUESS, LIKELY, PLAUSIBLE, SURE, Evidence, Ruling
from jobtui.analysis.explain.next_steps import steps_for
from jobtui.analysis.explain.pending import held_until, refined, sentence_of
from jobtui.analysis.find import is_array
from jobtui.analysis.times import capital, duration, for_words, waits_words
from jobtui.formats.slurm import exit_of
from jobtui.model import slurm
from jobtui.model.clock import Nanos, since_s, time_of_iso
from jobtui.model.health import unread
from jobtui.model.jobs import SLURM, Category, Job, JobStatus, Pending
from jobtui.model.numbers import and_more
from jobtui.model.patterns import regex
from jobtui.model.verdicts import BY_ITSELF, BY_SHELL, MEMORY_SIGNAL, Code, Fact, Verdict, signal_of

EXPLAINING = ("depends on", "time limit", "may start", "requeued", "memory", "over its memory", "not started",
              "output", "errors", slurm.ALSO_LOST)  # fmt: skip
"""Facts of a record that a verdict may rest on."""
OUT_OF_MEMORY_SIGNAL = 125
"""What Slurm writes in place of a signal when the kernel reported running out of memory."""
ENDING = frozenset({6, 9, 11, 15})
"""The signals that end programs most often: such a number as exit code is likely one that lacks 128."""
LAUNCH_REASONS = frozenset({"JobLaunchFailure", "LaunchFailure"})
"""Slurm's words for a job that it could not start."""
OF_REASON: Mapping[str, Code] = {
    "NodeDown": Code.NODE_FAILED, "NodeFail": Code.NODE_FAILED, "OutOfMemory": Code.OUT_OF_MEMORY,
    "RaisedSignal": Code.KILLED_BY_SIGNAL, "TimeLimit": Code.TIMED_OUT,
}  # fmt: skip
"""What a reason of a failed job means that is not about its launch."""
PASSED_S = 120.0
"""A job is no longer said to wait for a time this long after it."""
AT_ONCE_S = 5.0
"""A job that slurmd cannot start is over within this time, also on a busy node."""
LOST = ("FAILED", "OUT_OF_MEMORY", "NODE_FAIL")
PROGRESS = (JobStatus.UNKNOWN, JobStatus.PENDING, JobStatus.RUNNING)
"""States of jobs that have not ended, in their order."""
_NEEDED = regex(r"\d+(?:_\d+)?", re.ASCII)
MOST_LOST = 3
"""Steps that are named."""


class SlurmCase(NamedTuple):
    """One job, the fields of its record by name, its steps with how each ended, and why it waits."""

    job: Job
    now: Nanos
    facts: Mapping[str, str]
    pending: Pending | None = None

    @property
    def steps(self) -> Iterator[tuple[str, str]]:
        steps = (name for name in self.facts if name.startswith("step "))
        return ((name.removeprefix("step "), self.facts[name]) for name in steps)

    def not_started(self, signal: int) -> str | None:
        """Why slurmd started nothing, where the record does not show that something ran."""
        is_told = "exit" in self.facts or any(name.isdecimal() for name, _ in self.steps)
        return self.facts.get("not started") if is_told else slurm.words_of("not_started", signal)

    @property
    def again(self) -> str:
        return f"It was requeued ({self.facts['requeued']}). " if "requeued" in self.facts else ""

    @property
    def words(self) -> dict[str, str]:
        """Words about it for commands, "" where there are none."""
        job, pending, facts = self.job, self.pending, self.facts
        system, _, number = job.id.partition("/")
        has_output = job.started_at is not None and bool({"errors", "output", "own output"} & facts.keys())
        failed = [
            name.removeprefix("task ") for name, text in facts.items()
            if name.startswith("task ") and slurm.STATUSES.get(text.partition(":")[0]) is JobStatus.FAILED
        ]  # fmt: skip
        others = [one.job for one in (*pending.holders, *pending.next)] if pending is not None else []
        needs = pending.needs if pending is not None else ()
        is_stuck = pending is not None and pending.is_stuck
        likely = [name for name, state in needs if state.startswith(("RUNNING", "PENDING")) is not is_stuck]
        needed = likely or [name for name, _ in needs] or _NEEDED.findall(facts.get("depends on", ""))
        first = {
            "task": f"{number}_{failed[0]}" if failed else "",
            "holder": next(iter(others), ""),
            "needed": next(iter(needed), ""),
        }
        return {name: one and f"{system}/{one}" for name, one in first.items()} | {
            "id": job.id,
            "number": number,
            "shown": "" if slurm.KNOWN_BY in facts else number,
            "array": number.partition("_")[0],
            "partition": job.app,
            "nodes": job.host or "",
            "output": job.id if has_output else "",
            "ran": number if job.started_at is not None else "",
            "columns": slurm.STEP_COLUMNS,
        }

    def after(self) -> str:
        if is_array(self.job):
            return ""
        if self.job.started_at is None and not self.job.status.is_live:
            return f" before it started{' again' if 'requeued' in self.facts else ''}"
        seconds = self.job.elapsed_s(self.now)
        return "" if seconds is None else f" after {duration(max(0.0, seconds))}"


def explain_slurm(evidence: Evidence) -> Verdict:
    job, detail = evidence.job, evidence.detail
    assert job is not None
    now = evidence.now_at(job.source)
    if detail is not None and not is_array(detail.job) and _progress(detail.job) >= _progress(job):
        job = detail.job  # it says more: whole exit codes, and whether anything ran
    pending = _pending_of(job, evidence, now) if job.status is JobStatus.PENDING else None
    found = {"own output": evidence.cause.source} if evidence.cause is not None else {}
    matter = SlurmCase(job, now, {**found, **dict(detail.facts)} if detail is not None else {}, pending)
    rule = ENDED.get(job.native_status) or BY_STATUS.get(job.status, _unknown)
    said = rule(matter)
    if is_array(job) and detail is not None and detail.job.mode == "array":
        failed = f" Its {detail.job.error}." if detail.job.error else ""
        tasks = f" Of its {detail.job.model}: {detail.job.native_status}."
        said = said._replace(sentence=f"{said.sentence}{failed}{tasks}")
    if job.message == slurm.LEFT:
        said = said._replace(confidence=GUESS, doubts=(*said.doubts, slurm.LEFT))
    kind = pending.category if pending is not None else job.native_status
    blind = unread(evidence.sources)
    blind += [one.note for one in evidence.sources if one.name == job.source and one.note]
    return said._replace(pending=pending).on(
        job,
        last_step=job.native_status,
        last_at=job.updated_at,
        waited_s=job.waited_s(now) if job.status is JobStatus.PENDING else None,
        limit_s=job.limit_s,
        evidence=tuple(_evidence(matter)),
        next=steps_for(SLURM, said.code, matter.words, kind),
        blind_spots=(*said.doubts, *blind),
    )


def _progress(job: Job) -> tuple[Nanos, int]:
    """How far a job is: its last submission, then its state. What is farther was read later."""
    return job.queued_at or Nanos(0), PROGRESS.index(job.status) if job.status in PROGRESS else len(PROGRESS)


def _pending_of(job: Job, evidence: Evidence, now: Nanos) -> Pending:
    """Why it waits: from its record if that has the same reason, else from the job alone."""
    detail = evidence.detail
    known, facts = (detail.pending, detail.facts) if detail is not None else (None, ())
    if known is None or known.reason != job.reason:
        estimate = time_of_iso(dict(facts).get("may start", ""))
        known = slurm.queued_as(job.native_status, job.reason, job.queued_at, job.app, estimate)
    holders, ahead = (tuple(held_until(one, now) for one in held) for held in (known.holders, known.next))
    return refined(msgspec.structs.replace(known, holders=holders, next=ahead))


def _pending(matter: SlurmCase) -> Ruling:
    job, pending = matter.job, matter.pending
    assert pending is not None
    reason, waited = slurm.reason_of(job.reason), for_words(job.waited_s(matter.now))
    if pending.category is Category.HELD:
        by = reason.words if reason.category is Category.HELD else "a person to release it"
        sentence = f"{matter.again}It is held and {waits_words(waited)} for {by}."
        return Ruling(Code.HELD, sentence, CERTAIN)
    is_dependent = pending.category is Category.DEPENDENCY
    on = f" ({matter.facts['depends on']})" if is_dependent and "depends on" in matter.facts else ""
    sentence = sentence_of(pending, waited, matter.again, on)
    if pending.is_stuck:
        sure = CERTAIN if reason.is_stuck else SURE
        is_known = reason.category is not Category.DEPENDENCY or "depends on" in matter.facts
        doubts = () if is_known else ("which job it depends on was not read",)
        return Ruling(Code.NEVER_STARTS, sentence, sure, doubts)
    code = Code.REQUEUED if matter.again else Code.WAITING_PARENTS if is_dependent else Code.SLURM_QUEUED
    if job.reason and pending.words == job.reason:
        odd = f'"{job.reason}" is a reason that jobtui does not know'
        return Ruling(code, sentence, PLAUSIBLE, (odd,))
    begins_at = pending.eligible_at or pending.scheduler_estimate
    late_s = since_s(begins_at, matter.now) if pending.category is Category.BEGIN_TIME else None
    if (late_s or 0.0) > PASSED_S:
        return Ruling(code, sentence, PLAUSIBLE, ("that time has passed, and it has not started",))
    return Ruling(code, sentence, SURE if job.reason else LIKELY)


def _running(matter: SlurmCase) -> Ruling:
    job = matter.job
    if job.native_status == "COMPLETING":
        sentence = f"Its program has ended, and {job.message}; how it ended is not known yet."
        return Ruling(Code.RUNNING, sentence, SURE)
    phase = f", and {job.message}" if job.message else ""
    length = for_words(job.elapsed_s(matter.now))
    limit = f" of at most {matter.facts['time limit']}" if "time limit" in matter.facts else ""
    where = f" on {job.host}" if job.host else ""
    sentence = f"{matter.again}It runs{where}{length}{limit}{phase}.{_lost_steps(matter)}"
    said = Ruling(Code.RUNNING, sentence, CERTAIN)
    batch = dict(matter.steps).get("batch", "")
    if not batch.startswith((*LOST, "CANCELLED", "COMPLETED")):
        return said
    return said._replace(confidence=PLAUSIBLE, doubts=(f"its script has ended: {batch}",))


def _completed(matter: SlurmCase) -> Ruling:
    return Ruling(Code.COMPLETED, f"It completed{matter.after()}.{_lost_steps(matter)}", CERTAIN)


def _lost_steps(matter: SlurmCase) -> str:
    lost = [f"{name} ({text})" for name, text in matter.steps if text.startswith(LOST)]
    return f" Its step {', '.join(lost[:MOST_LOST])}{and_more(len(lost), MOST_LOST)} failed." if lost else ""


def _canceled(matter: SlurmCase) -> Ruling:
    """Somebody canceled it; or Slurm did, as root, as the prolog failed on a node of it."""
    by = matter.job.message or "canceled"
    _, signal = exit_of(matter.job.exit) or (0, 0)
    if (fault := slurm.words_of("not_started", signal)) is not None:
        return Ruling(Code.LAUNCH_FAILED, f"It never ran: {fault}.", SURE)
    if matter.job.native_status == "REVOKED":
        return Ruling(Code.CANCELED, f"It was {by}.", CERTAIN)
    doubts: tuple[str, ...] = () if " by " in by else ("accounting does not say who canceled it",)
    sentence = f"It was {by}{matter.after()}."
    has_end, sure = any("exit" in text for _, text in matter.steps), SURE if doubts else CERTAIN
    if by.endswith(" root") and matter.facts and matter.job.started_at is not None and not has_end:
        sure, doubts = PLAUSIBLE, ("Slurm 22.05 says so too of a job whose prolog failed on a node",)
    elif doubts and slurm.KNOWN_BY in matter.facts:
        sure, doubts = PLAUSIBLE, (*doubts, "accounting closes a job so too when slurmctld has lost it")
    return Ruling(Code.CANCELED, sentence, sure, doubts)


def _failed(matter: SlurmCase) -> Ruling:
    """Its program ended with an exit code or by a signal, or it did not begin."""
    job = matter.job
    if is_array(job):  # its tasks have the programs
        return Ruling(Code.PROGRAM_FAILED, "It has ended.", SURE)
    if job.started_at is None and not job.exit:
        return Ruling(Code.LAUNCH_FAILED, f"It never ran: {job.error}.", CERTAIN if job.reason else LIKELY)
    code, signal = exit_of(job.exit) or (0, 0)
    is_short = any(text.startswith("OUT_OF_MEMORY") for _, text in matter.steps)
    if is_short or signal == OUT_OF_MEMORY_SIGNAL:
        return _out_of_memory(matter)
    if (fault := matter.not_started(signal)) is not None:
        return _not_started(matter, fault)
    if signal or signal_of(code):
        return _by_signal(matter, code, signal)
    if code:
        sentence = f"Its program ended with exit code {code}{matter.after()}."
        if "128" not in matter.facts.get("exit", "128"):
            return Ruling(Code.PROGRAM_FAILED, sentence, CERTAIN)
        doubts = (f"sacct leaves 128 out of exit codes: it may have been {code + BY_SHELL}",)
        return Ruling(Code.PROGRAM_FAILED, sentence, PLAUSIBLE if code in ENDING else SURE, doubts)
    doubts, word = ("its exit code is not known: accounting was not read",), job.reason.partition(":")[0]
    if word == "NonZeroExitCode" or slurm.words_of("ended", word) is None:
        sentence = f"Its program failed{matter.after()}: {job.error}."
        return Ruling(Code.PROGRAM_FAILED, sentence, LIKELY, doubts)
    if word in LAUNCH_REASONS:  # also where a signal ended the script
        return Ruling(Code.LAUNCH_FAILED, f"It failed: {job.error}.", PLAUSIBLE, doubts)
    return Ruling(OF_REASON.get(word, Code.LAUNCH_FAILED), f"It failed: {job.error}.", SURE)


def _by_signal(matter: SlurmCase, code: int, signal: int) -> Ruling:
    """Its program was ended by a signal, or its exit code says so, as a shell does."""
    number = signal or signal_of(code)
    how, doubts = f"was {matter.job.error}", tuple[str, ...]()
    if not signal:
        how = f"ended with {matter.job.error}"
        doubts = (BY_ITSELF,)
    elif slurm.words_of("not_started", signal):
        how = f"was killed by signal {signal}, a real-time signal"
        doubts = (f"Slurm also writes signal {signal} where it could not start a job",)
    if number == MEMORY_SIGNAL and "over its memory" in matter.facts:
        sentence = f"It was killed{matter.after()}, over its memory: {matter.facts['over its memory']}."
        sender = ("Slurm names only the signal: nothing says who sent it",)
        return Ruling(Code.OUT_OF_MEMORY, sentence, SURE, sender)
    memory = " The kernel does so when memory is short." if number == MEMORY_SIGNAL else ""
    if memory and not any(matter.steps):
        doubts = (*doubts, "how much memory its steps took was not read")
    sentence = f"Its program {how}{matter.after()}.{memory}"
    return Ruling(Code.KILLED_BY_SIGNAL, sentence, LIKELY if doubts else CERTAIN, doubts)


def _not_started(matter: SlurmCase, fault: str) -> Ruling:
    """The error that slurmd reported at once in place of a signal. A program may also end by such a signal:
    only a reason that Slurm itself gives proves that it never ran.
    """
    paths = [f"its {name} {matter.facts[name]}" for name in ("output", "errors") if name in matter.facts]
    which = f" ({', '.join(paths)})" if paths and "output" in fault else ""
    at_once = (matter.job.elapsed_s(matter.now) or 0.0) <= AT_ONCE_S
    is_proven = at_once and matter.job.reason in LAUNCH_REASONS  # a signal may end a program later
    sentence = f"It probably never ran: Slurm's code says that {fault}{which}."
    if is_proven:
        sentence = f"It never ran: {fault}{which}."
    sure = SURE if is_proven else PLAUSIBLE if at_once else GUESS
    doubts = () if is_proven else ("a program that a real-time signal ended would look the same",)
    return Ruling(Code.LAUNCH_FAILED, sentence, sure, doubts)


def _out_of_memory(matter: SlurmCase) -> Ruling:
    step = next((name for name, text in matter.steps if text.startswith("OUT_OF_MEMORY")), None)
    asked = f" It asked for {matter.facts['memory']}." if "memory" in matter.facts else ""
    of = f" in its step {step}" if step is not None else ""
    if matter.job.native_status == "FAILED":
        sentence = f"It failed{matter.after()}, and the kernel killed a program, out of memory{of}.{asked}"
        doubts = ("the program that was out of memory may not be what made it fail",)
        return Ruling(Code.OUT_OF_MEMORY, sentence, SURE, doubts)
    sentence = f"It was killed by the kernel{matter.after()}, out of memory{of}.{asked}"
    return Ruling(Code.OUT_OF_MEMORY, sentence, CERTAIN)


def _node_failed(matter: SlurmCase) -> Ruling:
    where = f" ({matter.job.host})" if matter.job.host else ""
    words = [f"{capital(name)} is {text}" for name, text in matter.facts.items() if _is_node(name)]
    others = [f"Lost with it: {matter.facts[slurm.ALSO_LOST]}"] if slurm.ALSO_LOST in matter.facts else []
    sentence = f"It was lost{matter.after()}: {matter.job.error}{where}"
    doubts = (matter.facts[slurm.NODE_NOT_KNOWN],) if slurm.NODE_NOT_KNOWN in matter.facts else ()
    text = "".join(f"{part}. " for part in (sentence, *words, *others)).rstrip()
    return Ruling(Code.NODE_FAILED, text, CERTAIN, doubts)


def _is_node(name: str) -> bool:
    return name.startswith("node ") and name != slurm.NODE_NOT_KNOWN


def _ended_by_slurm(matter: SlurmCase) -> Ruling:
    job, after = matter.job, matter.after()
    of = f" of {job.limit_s / 60:g} min" if job.limit_s else ""
    code, sentence = {
        "TIMEOUT": (Code.TIMED_OUT, f"It was ended by Slurm at its time limit{of}."),
        "PREEMPTED": (Code.PREEMPTED, f"It was preempted{after}: a job of higher priority took its nodes."),
        "DEADLINE": (Code.TIMED_OUT, f"It was ended by Slurm{after}: its deadline passed."),
    }.get(job.native_status, (Code.LAUNCH_FAILED, f"It never ran: {job.error}."))
    return Ruling(code, sentence, CERTAIN)


def _unknown(matter: SlurmCase) -> Ruling:
    job = matter.job
    if job.message:
        return Ruling(Code.UNKNOWN, f"It was {job.native_status} when last seen: {job.message}.", GUESS)
    said = _failed(matter) if any(exit_of(job.exit) or (0, 0)) else Ruling(Code.UNKNOWN, "", 0.3)
    words = f'Its state is "{job.native_status}", which jobtui does not know. {said.sentence}'
    return said._replace(sentence=words.rstrip(), confidence=min(said.confidence, LIKELY))


Rule = Callable[[SlurmCase], Ruling]

ENDED: Mapping[str, Rule] = {
    "BOOT_FAIL": _ended_by_slurm, "DEADLINE": _ended_by_slurm, "LAUNCH_FAILED": _ended_by_slurm,
    "NODE_FAIL": _node_failed, "OUT_OF_MEMORY": _out_of_memory, "PREEMPTED": _ended_by_slurm,
    "RECONFIG_FAIL": _ended_by_slurm, "TIMEOUT": _ended_by_slurm,
}  # fmt: skip

BY_STATUS: Mapping[JobStatus, Rule] = {
    JobStatus.PENDING: _pending,
    JobStatus.RUNNING: _running,
    JobStatus.FAILED: _failed,
    JobStatus.COMPLETED: _completed,
    JobStatus.CANCELED: _canceled,
}


def _evidence(matter: SlurmCase) -> Iterator[Fact]:
    """Slurm's own words: the state, its reason and its fields, then the end of each step. For a live job they
    are as of the last time that Slurm was read.
    """
    job = matter.job
    words = [f"state: {job.native_status}"]
    words += [f"reason: {job.reason}"] if job.reason else []
    words += [f"exit: {job.exit}"] if job.exit else []
    at = matter.now if job.status.is_live else job.updated_at
    yield Fact(what="slurm", text=", ".join(words), source=job.source, at=at)
    if matter.pending is not None:
        for asked in matter.pending.asked:
            text = f"{asked}; {matter.pending.unread}" if matter.pending.unread else asked
            yield Fact(what="asked for this", text=text, source=job.source, at=at)
    facts = matter.facts.items()
    known = [f"{name}: {text}" for name, text in facts if name in EXPLAINING or _is_node(name)]
    if known:
        yield Fact(what="record", text=", ".join(known), source=job.source, at=at)
    for name, text in matter.steps:
        yield Fact(what=f"step {name}", text=text, source=job.source, at=at)
