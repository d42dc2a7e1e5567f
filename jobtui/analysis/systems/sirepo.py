"""Verdicts on jobs of Sirepo: the first rule that applies. Each blind spot lowers the confidence."""

from collections.abc import Callable, Iterator, Mapping

import msgspec

from jobtui.analysis.explain.case import (
    CERTAIN,
    LIKELY,
    PLAUSIBLE,
    SETTLED_S,
    STATUS_WORDS,
    Case,
    Evidence,
    Finding,
    Rule,
    record_fact,
)
from jobtui.analysis.explain.flow import FINAL_WORDS, Mark, mark_of, missing_mark
from jobtui.analysis.explain.next_steps import steps_for, words_of
from jobtui.analysis.explain.pending import by_chain, held_words, pending_by
from jobtui.analysis.flags import slot_of
from jobtui.analysis.keys import ENDS, is_polled
from jobtui.analysis.systems.sirepo_ended import ENDED_RULES, noted
from jobtui.analysis.systems.sirepo_live import RUNNING_RULES, WAITING_RULES
from jobtui.analysis.times import age
from jobtui.model.clock import Nanos, seconds_between, to_rfc3339
from jobtui.model.health import unread
from jobtui.model.jobs import SIREPO, JobStatus, Pending
from jobtui.model.ops import BY_SUPERVISOR, Component, Step
from jobtui.model.patterns import regex
from jobtui.model.secrets import mask_text
from jobtui.model.slurm import queued_as
from jobtui.model.verdicts import Code, Contradiction, Fact, Verdict

MOST_EVIDENCE = 6
"""How many raw lines are shown for a verdict."""
_QUOTED = regex(r"\b(?:exception=|std(?:err|out)=(?!.*\bexception=))..+")
"""The most useful part of a line that quotes another program's output and may be cut off at its end."""

RULES: Mapping[JobStatus, tuple[Rule, ...]] = {
    JobStatus.PENDING: WAITING_RULES,
    JobStatus.RUNNING: RUNNING_RULES,
    **ENDED_RULES,
}

WITHOUT_PART = 0.8
"""Factor on the confidence if the record, or lines of the run, were not read or may be of an earlier run."""
WITHOUT_END = 0.75
"""The same if the supervisor's log ends before the record was last written."""
SELF_EVIDENT = frozenset({Code.NEVER_RUN, Code.PURGED, Code.COMPLETED, Code.TIMED_OUT})
"""Verdicts that the record alone proves, whatever the logs lack."""
WAITED_FOR = frozenset({Mark.AGENT_WAIT, Mark.SLOT_WAIT})
UNTOUCHED_BY_AGENTS = SELF_EVIDENT | {Code.PROGRAM_FAILED, Code.PREPARE_FAILED}


def explain_sirepo(evidence: Evidence) -> Verdict:
    case = Case(evidence)
    words = case.unknown_word or "Neither a record nor an op of it was read"
    unknown = Finding(Code.UNKNOWN, f"{words}.", 0.3, (case.last_step,))
    finding = next(filter(None, (rule(case) for rule in RULES.get(case.status, ()))), unknown)
    last = case.last_step
    missing = finding.missing or (
        missing_mark(case.run) if case.run is not None and case.status.is_live else None
    )
    since = finding.steps[0] if finding.steps else last
    pending = _pending(case, finding)
    held = f" {words}" if (words := held_words(pending)) else ""
    is_by_logs = case.unknown_word and finding.code is not Code.UNKNOWN
    by_logs = f"{case.unknown_word}. By its logs: " if is_by_logs else ""
    flaps = ""
    if case.flapping is not None and finding.code not in UNTOUCHED_BY_AGENTS:
        flaps = f" It flaps: {case.flapping.words}."
    return Verdict(
        job_id=case.job_id,
        code=finding.code,
        sentence=f"{by_logs}{finding.sentence}{held}{flaps}{noted(case, finding.code)}",
        confidence=round(_confidence(case, finding), 2),
        last_step=None if last is None else last.step,
        last_at=None if last is None else last.at,
        missing_step=None if missing is None else missing.value,
        waited_s=case.since(since) if missing is not None else None,
        limit_s=finding.limit_s,
        usual=case.usual.get(missing) if missing is not None else None,
        evidence=_evidence(case, finding),
        next=steps_for(SIREPO, finding.code, words_of(case)),
        blind_spots=_blind_spots(case, finding),
        waits=evidence.chain,
        pending=pending,
    )


def _pending(case: Case, finding: Finding) -> Pending | None:
    """Why it waits: the jobs that have its slot; for a job in Slurm's queue, Slurm's reason."""
    job, slurm = case.job, case.slurm
    if job is None or case.status is not JobStatus.PENDING:
        return None
    if finding.code in (Code.SBATCH_QUEUED, Code.HELD, Code.NEVER_STARTS) and slurm is not None:
        return queued_as(slurm.native_status, slurm.reason, slurm.queued_at, slurm.app, None)
    found = pending_by(finding.code, msgspec.structs.replace(job, status=case.status))
    chained = found and by_chain(found, case.evidence.chain)
    return chained and msgspec.structs.replace(chained, history=tuple(_history(case)))


def _history(case: Case) -> Iterator[tuple[Nanos, str]]:
    """What its latest run waited for, from the logs."""
    for step in case.steps:
        mark = mark_of(step)
        slot = slot_of(f"{step.step} {step.text}") if mark is Mark.SLOT_WAIT else None
        if step.at is not None and mark is not None and mark in WAITED_FOR:
            yield step.at, slot[1] if slot is not None else mark.value


def _confidence(case: Case, finding: Finding) -> float:
    confidence = finding.confidence
    if case.record is None or case.unknown_word:
        confidence *= WITHOUT_PART
    is_self_evident = finding.code in SELF_EVIDENT or finding.needs_no_line
    if case.is_log_behind and not is_self_evident:
        confidence *= WITHOUT_END
    if case.run is not None and case.run.candidates:
        confidence *= WITHOUT_END
    is_incomplete = _is_sending_missing(case) or case.is_run_doubtful
    if is_incomplete and not is_self_evident:
        confidence *= WITHOUT_PART
    is_open = bool(case.begun_late or case.still_read) and not is_self_evident
    is_cut_off = _log_continues_s(case, finding) is not None
    is_damaged = bool(case.gaps or case.damaged)
    if is_open or is_cut_off or (is_damaged and finding.confidence < CERTAIN and not is_self_evident):
        confidence = min(confidence, LIKELY)
    is_alone = case.record is None or case.is_log_behind
    needs_more = finding.needs_all_lines and (is_alone or is_damaged or is_incomplete or is_cut_off)
    can_change = case.status.is_live or finding.code is Code.COMPLETED
    is_overtaken = can_change and case.is_end_open and finding.confidence < CERTAIN
    is_overtaken |= case.status.is_live and bool(case.unknown_word)
    if needs_more or is_overtaken or case.is_clock_off:
        # one of the lines that are lost could change the verdict
        confidence = min(confidence, PLAUSIBLE)
    return confidence


def _log_continues_s(case: Case, finding: Finding) -> float | None:
    """For how many seconds the log is known to continue after the last line; None if that is long enough."""
    step, end = finding.silent_since, case.writers_read.supervisor_end
    if step is None:
        return None
    heard_s = 0.0 if step.at is None or end is None else max(0.0, seconds_between(step.at, end))
    return heard_s if heard_s < (finding.limit_s or 0.0) else None


def _evidence(case: Case, finding: Finding) -> tuple[Fact, ...]:
    """The words of the record and of Slurm, then the lines, oldest first and each once."""
    facts, job, slurm = [], case.job, case.slurm
    if job is not None:
        pairs = (
            ("status", job.native_status),
            ("error", job.error),
            ("alert", job.alert),
            ("waits for", job.message),
            ("canceledAfterSecs", job.limit_s),
        )
        # Masked before other words are in its first line, by which secrets in lines below are known
        told = ((name, mask_text(str(value))) for name, value in pairs if value is not None)
        text = ", ".join(f"{name}: {value}" for name, value in told)
        facts.append(Fact(what="record", text=text, source=job.source, at=job.written_at))
    if slurm is not None:
        words = [f"{slurm.id}: {slurm.native_status}"]
        words += [f"{name}: {one}" for name, one in (("reason", slurm.reason), ("exit", slurm.exit)) if one]
        facts.append(Fact(what="slurm", text=", ".join(words), source=slurm.source, at=slurm.updated_at))
    last = [step for step in reversed(case.steps) if mark_of(step) not in (None, Mark.UPDATED)][:3]
    steps: dict[tuple[str, int, int], Step] = {}
    for step in (*finding.steps, *last):
        if step is not None and mark_of(step) is not Mark.STARTED and len(steps) < MOST_EVIDENCE - 1:
            steps.setdefault((step.source, step.line, step.offset), step)
    for one in sorted(steps.values(), key=lambda one: (one.at or 0, one.offset)):
        quoted = _QUOTED.search(one.text) if mark_of(one) is Mark.STDERR else None
        text = quoted[0] if quoted else one.text
        facts.append(
            Fact(what=one.step, text=text, source=one.source, at=one.at, line=one.line, cursor=one.cursor)
        )
    return tuple(facts)


def _blind_spots(case: Case, finding: Finding) -> tuple[str, ...]:
    found = [words for words, applies in BLIND_SPOTS if applies(case)]
    found += [f"{log} was read from {to_rfc3339(at)} on: the run began before" for log, at in case.begun_late]
    found += [f"{name} is still being read" for name in case.still_read]
    run, end = case.run, case.writers_read.supervisor_end
    if case.is_log_behind and end is not None and case.job is not None and case.job.written_at is not None:
        behind_s = seconds_between(end, case.job.written_at)
        found.append(f"the supervisor's log ends {age(behind_s)} before the record was last written")
    if (heard_s := _log_continues_s(case, finding)) is not None:
        found.append(f"the supervisor's log ends {age(heard_s)} after that: later lines were not read")
    if run is not None and run.candidates:
        found.append(f"its op may also belong to {', '.join(run.candidates)}")
    damaged = (source.rpartition("/")[2] for source in case.damaged)
    found += [f"{source} is damaged near its lines: some cannot be read" for source in damaged]
    found += [f"lines are missing: {gap}" for gap in case.gaps]
    if run is not None and run.dropped_steps:
        found.append(f"steps of its op that are not kept: {run.dropped_steps}")
    return tuple(dict.fromkeys((*finding.doubts, *found, *unread(case.sources))))


def _is_sending_missing(case: Case) -> bool:
    """Whether a run has begun, as its record or its news says, and the logs have no line that it was sent."""
    run, job = case.run, case.job
    if run is None or run.sends:
        return False
    return case.ended_in_log is not None or (job is not None and job.started_at is not None)


BLIND_SPOTS: tuple[tuple[str, Callable[[Case], bool]], ...] = (
    ("no records are read", lambda case: case.job is None and not case.has_records),
    ("no record of the job was read", lambda case: case.job is None and case.has_records),
    ("the lines of its latest run were not read, only those of earlier ones", lambda case: case.is_log_old),
    (
        "the record is older than the newest run in the logs, or a clock is off",
        lambda case: case.is_record_old,
    ),
    ("what came after the end of the supervisor's log was not read", lambda case: case.is_end_open),
    ("no log of the supervisor was read", lambda case: not case.writers_read.components & BY_SUPERVISOR),
    ("no log of the API server was read", lambda case: Component.SERVER not in case.writers_read.components),
    ("lines are missing: the run has started, and no line says that it was sent", _is_sending_missing),
    (
        "the agent's log was not available",
        lambda case: case.run is not None and case.run.sends > 0 and not case.agent_logs,
    ),
    (
        "lines of other runs of it are missing and those read have no times: they may be of an earlier run",
        lambda case: case.is_run_doubtful,
    ),
)
"""Words for what may be missing."""


def log_contradictions(evidence: Evidence) -> tuple[Contradiction, ...]:
    if not evidence.ops and evidence.slurm is None:
        return ()
    case = Case(evidence)
    if case.is_record_old:
        about = "the log has a run that the record lacks: a clock is off"
        steps = case.steps[:1] if case.is_clock_off else ()
        return tuple(Contradiction(about, record_fact(case.job), _line(step)) for step in steps)
    return tuple(found for check in CHECKS if (found := check(case)) is not None)


def _live_but(about: str, step_of: Callable[[Case], Step | None]) -> Callable[[Case], Contradiction | None]:
    """A line that is not new and that a live record does not reflect."""

    def check(case: Case) -> Contradiction | None:
        step = step_of(case)
        since = case.since(step)
        is_new = since is not None and since <= SETTLED_S
        if step is None or not case.status.is_live or is_new:
            return None
        return Contradiction(f"the record is {about}", record_fact(case.job), _line(step))

    return check


def _runs_on(case: Case) -> Step | None:
    steps = case.steps if case.status is JobStatus.PENDING else ()
    return next((step for step in steps if step.step == "status running"), None)


def _other_end(case: Case) -> Contradiction | None:
    last = case.ended_in_log
    if last is None or case.status.is_live or case.job is None:
        return None
    said = STATUS_WORDS[FINAL_WORDS[last.step]]
    later = case.last(Mark.CANCEL, Mark.TIME_LIMIT, Mark.FOUND_GONE)
    if said is case.status or case.status not in (JobStatus.COMPLETED, JobStatus.FAILED) or later is not None:
        return None
    return Contradiction(f"the record says {case.status}, the log {said}", record_fact(case.job), _line(last))


def _slurm(case: Case) -> Contradiction | None:
    """Slurm's state where it contradicts the record.

    A job cannot be failed in Slurm and completed in Sirepo, or over in Slurm and live here.
    """
    job, slurm = case.job, case.slurm
    if job is None or slurm is None or not is_polled(job, slurm, case.now):
        return None
    is_over = slurm.status in ENDS
    is_same_end = (case.status is JobStatus.COMPLETED) == (slurm.status is JobStatus.COMPLETED)
    about = f"the record says {case.status}, Slurm says {slurm.status}"
    if case.status.is_live:
        about = f"the record is {case.status}, Slurm says {slurm.status}"
        if (case.status, slurm.status) == (JobStatus.PENDING, JobStatus.RUNNING):
            about = "the record is pending, Slurm says that it runs"
        elif not is_over:
            return None
    elif case.status not in ENDS or (not slurm.status.is_live and (not is_over or is_same_end)):
        return None
    fact = Fact(text=f"{slurm.id}: {slurm.native_status}", source=slurm.source, at=slurm.updated_at)
    return Contradiction(about, record_fact(job), fact)


CHECKS: tuple[Callable[[Case], Contradiction | None], ...] = (
    _live_but("live, the log says that it ended", lambda case: case.ended_in_log),
    _live_but(
        "live, its agent is gone",
        lambda case: case.last(Mark.AGENT_GONE) if case.last(Mark.SENT) and not case.is_sbatch else None,
    ),
    _live_but(
        "live, its program has exited",
        lambda case: case.last(Mark.EXITED) if case.ended_in_log is None else None,
    ),
    _live_but("pending, the log says that it runs", _runs_on),
    _other_end,
    _live_but(
        "live, its supervisor was restarted",
        lambda case: None if case.is_sbatch or case.later else case.last(Mark.RESTARTED),
    ),
    _slurm,
)


def _line(step: Step) -> Fact:
    return Fact(text=step.step, source=step.source, at=step.at, line=step.line)
