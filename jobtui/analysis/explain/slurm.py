"""Verdicts on jobs of Slurm, out of their state, Slurm's own reason and what the record tells.

Slurm says itself why a job waits or how it ended, so a verdict is as sure as its word is clear. Two things it
does not say well: an exit code above 128 is a signal that the shell saw, and a job of which a step was out of
memory may be called failed. Reads nothing.
"""

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from jobtui.analysis.explain.finding import CERTAIN, LIKELY, SURE, Said
from jobtui.analysis.time_words import age, duration
from jobtui.model.clock import Nanos
from jobtui.model.health import SourceHealth, unread
from jobtui.model.jobs import Job, JobDetail, JobStatus
from jobtui.model.slurm_reasons import reason_of
from jobtui.model.verdicts import Code, Evidence, NextStep, Verdict

HELD = frozenset(
    {"JobHeldUser", "JobHeldAdmin", "JobHoldMaxRequeue", "launch_failed_requeued_held",
     "job_requeued_in_held_state"}
)  # fmt: skip
"""Reasons of jobs that somebody has to release."""
DEPENDENCY = frozenset({"Dependency", "DependencyNeverSatisfied"})
EXPLAINING = ("depends on", "time limit", "may begin", "requeued", "memory", "output", "errors")
"""Facts of a record that a verdict may rest on."""
BY_SHELL = 128
MEMORY_SIGNAL = 9
"""With this signal the kernel ends a program for which there is no memory."""


class Matter(NamedTuple):
    """One job, what its record tells by name, and its steps with how each ended."""

    job: Job
    now: Nanos
    facts: Mapping[str, str]

    @property
    def steps(self) -> Iterator[tuple[str, str]]:
        """Name and words of each step."""
        return (
            (name.removeprefix("step "), text)
            for name, text in self.facts.items()
            if name.startswith("step ")
        )

    def for_(self) -> str:
        """For how long it waits."""
        seconds = self.job.waited_s(self.now)
        return "" if seconds is None else f" for {age(max(0.0, seconds))}"

    def after(self) -> str:
        """After how long it ended."""
        seconds = self.job.elapsed_s(self.now)
        return "" if seconds is None else f" after {duration(max(0.0, seconds))}"


def explain_slurm(job: Job, detail: JobDetail | None, sources: Iterable[SourceHealth], now: Nanos) -> Verdict:
    """What is the matter with a job of Slurm. `detail` is its whole record where that was read."""
    matter = Matter(job, now, dict(detail.facts) if detail is not None else {})
    rule = ENDED.get(job.native_status) or BY_STATUS.get(job.status, _unknown)
    said = rule(matter)
    blind = unread(sources)
    blind += [one.note for one in sources if one.name == job.source and one.note]
    return Verdict(
        job_id=job.id,
        code=said.code,
        sentence=said.sentence,
        confidence=said.confidence,
        last_step=job.native_status,
        last_at=job.updated_at,
        waited_s=job.waited_s(now) if job.status is JobStatus.PENDING else None,
        limit_s=job.limit_s,
        evidence=tuple(_evidence(matter)),
        next=(*said.next, *_look(matter)),
        blind_spots=(*said.doubts, *blind),
    )


def _pending(matter: Matter) -> Said:
    job = matter.job
    again = f"It was requeued ({matter.facts['requeued']}). " if "requeued" in matter.facts else ""
    if job.native_status == "REQUEUE_HOLD" or job.reason in HELD:
        return _held(matter, again)
    reason = reason_of(job.reason or "None")
    on = (
        f" ({matter.facts['depends on']})"
        if job.reason in DEPENDENCY and "depends on" in matter.facts
        else ""
    )
    if reason.is_stuck:
        sentence = f"{again}It will not begin by itself: it waits{matter.for_()} for {reason.words}{on}."
        return Said(Code.NEVER_STARTS, sentence, CERTAIN, _mend(matter), _on(matter))
    may = f"; Slurm means to start it at {matter.facts['may begin']}" if "may begin" in matter.facts else ""
    code = Code.REQUEUED if again else Code.WAITING_PARENTS if job.reason in DEPENDENCY else Code.SLURM_QUEUED
    sure = SURE if job.reason else LIKELY
    return Said(code, f"{again}It waits{matter.for_()} for {reason.words}{on}{may}.", sure, _queue(matter))


def _held(matter: Matter, again: str) -> Said:
    by = reason_of(matter.job.reason).words if matter.job.reason in HELD else "a person: it is held"
    sentence = f"{again}It is held and waits{matter.for_()} for {by}; it begins when somebody releases it."
    release = NextStep(
        "let it go on, as its owner or an administrator", f"scontrol release {shlex.quote(_number(matter))}"
    )
    return Said(Code.HELD, sentence, CERTAIN, (release,))


def _on(matter: Matter) -> tuple[str, ...]:
    is_known = matter.job.reason not in DEPENDENCY or "depends on" in matter.facts
    return () if is_known else ("which job it depends on was not read",)


def _running(matter: Matter) -> Said:
    job = matter.job
    phase = f", and {job.message}" if job.message else ""
    ran = job.elapsed_s(matter.now)
    length = "" if ran is None else f" for {age(max(0.0, ran))}"
    limit = f" of at most {matter.facts['time limit']}" if "time limit" in matter.facts else ""
    where = f" on {job.host}" if job.host else ""
    return Said(Code.RUNNING, f"It runs{where}{length}{limit}{phase}.", CERTAIN)


def _completed(matter: Matter) -> Said:
    return Said(Code.COMPLETED, f"It completed{matter.after()}.", CERTAIN)


def _canceled(matter: Matter) -> Said:
    by = matter.job.message or "canceled"
    begun = matter.after() if matter.job.started_at is not None else " before it began"
    doubts = () if " by " in by else ("accounting has not told who canceled it",)
    return Said(Code.CANCELED, f"It was {by}{begun}.", CERTAIN if not doubts else SURE, (), doubts)


def _failed(matter: Matter) -> Said:
    """Its program ended with an exit code or by a signal, or it did not begin."""
    job = matter.job
    if _out_of_memory_step(matter) is not None:
        return _out_of_memory(matter)
    code, signal = _exit(job.exit)
    if signal or code > BY_SHELL:
        number = signal or code - BY_SHELL
        memory = " The kernel does so when memory is short." if number == MEMORY_SIGNAL else ""
        return Said(
            Code.KILLED_BY_SIGNAL,
            f"Its program ended{matter.after()}: {job.error}.{memory}",
            CERTAIN if signal else LIKELY,
            _memory(matter) if memory else (),
            () if signal else ("a program may also give such an exit code itself",),
        )
    if code:
        return Said(Code.PROGRAM_FAILED, f"Its program ended with exit code {code}{matter.after()}.", CERTAIN)
    if job.reason and job.reason != "NonZeroExitCode":
        return Said(Code.LAUNCH_FAILED, f"It failed: {job.error}.", SURE)
    doubts = ("its exit code is not known: accounting was not read",)
    return Said(Code.PROGRAM_FAILED, f"Its program failed{matter.after()}: {job.error}.", LIKELY, (), doubts)


def _out_of_memory_step(matter: Matter) -> str | None:
    return next((name for name, text in matter.steps if text.startswith("OUT_OF_MEMORY")), None)


def _out_of_memory(matter: Matter) -> Said:
    step = _out_of_memory_step(matter)
    asked = f" It asked for {matter.facts['memory']}." if "memory" in matter.facts else ""
    of = f" in its step {step}" if step is not None else ""
    sentence = f"It was out of memory{of}{matter.after()}.{asked}"
    return Said(Code.OUT_OF_MEMORY, sentence, CERTAIN, _memory(matter))


def _timeout(matter: Matter) -> Said:
    limit = matter.job.limit_s
    of = f" of {limit / 60:g} min" if limit else ""
    return Said(Code.TIMED_OUT, f"It was ended by Slurm: it ran into its time limit{of}.", CERTAIN)


def _preempted(matter: Matter) -> Said:
    sentence = f"It was ended{matter.after()}, as a job of higher priority took its nodes."
    return Said(Code.PREEMPTED, sentence, CERTAIN)


def _node_failed(matter: Matter) -> Said:
    where = f" ({matter.job.host})" if matter.job.host else ""
    nodes = NextStep("see what is the matter with the nodes", "sinfo --list-reasons")
    return Said(
        Code.NODE_FAILED, f"It was lost{matter.after()}: {matter.job.error}{where}.", CERTAIN, (nodes,)
    )


def _launch_failed(matter: Matter) -> Said:
    return Said(Code.LAUNCH_FAILED, f"It never ran: {matter.job.error}.", CERTAIN)


def _deadline(matter: Matter) -> Said:
    return Said(Code.TIMED_OUT, f"It was ended by Slurm{matter.after()}: its deadline was over.", CERTAIN)


def _unknown(matter: Matter) -> Said:
    job = matter.job
    if job.message:
        return Said(Code.UNKNOWN, f"It was {job.native_status} when last seen: {job.message}.", LIKELY)
    return Said(Code.UNKNOWN, f'Its state is "{job.native_status}", which jobtui does not know.', 0.3)


Rule = Callable[[Matter], Said]

ENDED: Mapping[str, Rule] = {
    "BOOT_FAIL": _launch_failed,
    "CANCELLED": _canceled,
    "COMPLETED": _completed,
    "DEADLINE": _deadline,
    "FAILED": _failed,
    "LAUNCH_FAILED": _launch_failed,
    "NODE_FAIL": _node_failed,
    "OUT_OF_MEMORY": _out_of_memory,
    "PREEMPTED": _preempted,
    "RECONFIG_FAIL": _launch_failed,
    "REVOKED": _canceled,
    "TIMEOUT": _timeout,
}
"""What is asked of a job that ended, by its state."""

BY_STATUS: Mapping[JobStatus, Rule] = {
    JobStatus.PENDING: _pending,
    JobStatus.RUNNING: _running,
    JobStatus.FAILED: _failed,
    JobStatus.COMPLETED: _completed,
    JobStatus.CANCELED: _canceled,
}
"""What is asked of any other job."""


def _exit(text: str) -> tuple[int, int]:
    """Exit code and signal; an array as a whole has none."""
    code, _, signal = text.partition(":")
    return int(code or 0), int(signal or 0)


def _number(matter: Matter) -> str:
    """What Slurm's commands call the job."""
    return matter.job.id.partition("/")[2]


def _queue(matter: Matter) -> tuple[NextStep, ...]:
    return (NextStep("see when it may start", f"squeue --start --job {shlex.quote(_number(matter))}"),)


def _mend(matter: Matter) -> tuple[NextStep, ...]:
    number = shlex.quote(_number(matter))
    return (NextStep("see what it asked for, and change it or cancel it", f"scontrol show job {number}"),)


def _memory(matter: Matter) -> tuple[NextStep, ...]:
    number = shlex.quote(_number(matter))
    return (
        NextStep(
            "see how much memory its steps took", f"sacct -j {number} -o JobID,State,ReqMem,MaxRSS,ExitCode"
        ),
    )


def _look(matter: Matter) -> Iterator[NextStep]:
    for name in ("errors", "output"):
        if matter.job.status is JobStatus.FAILED and name in matter.facts:
            path = shlex.quote(matter.facts[name])
            yield NextStep("read the end of what it printed", f"tail -n 50 -- {path}")
            break
    job_id = shlex.quote(matter.job.id)
    yield NextStep("see its record, its steps and where its output is", f"jobtui show {job_id}")


def _evidence(matter: Matter) -> Iterator[Evidence]:
    """Slurm's own words: the state and why, what of the record it rests on, and how its steps ended."""
    job = matter.job
    words = [f"state: {job.native_status}"]
    words += [f"reason: {job.reason}"] if job.reason else []
    words += [f"exit: {job.exit}"] if job.exit else []
    yield Evidence(what="slurm", text=", ".join(words), source=job.source, at=job.updated_at)
    known = [f"{name}: {matter.facts[name]}" for name in EXPLAINING if name in matter.facts]
    if known:
        yield Evidence(what="record", text=", ".join(known), source=job.source)
    for name, text in matter.steps:
        yield Evidence(what=f"step {name}", text=text, source=job.source)
