"""Rules for jobs of Sirepo that are over: done, failed, canceled, gone."""

import re
from collections.abc import Mapping

from jobtui.analysis.explain.case import CERTAIN, GUESS, LIKELY, NEWER_S, PLAUSIBLE, SURE, Case, Finding, Rule
from jobtui.analysis.explain.flow import Mark, mark_of
from jobtui.analysis.flags import slot_of
from jobtui.analysis.keys import ENDS
from jobtui.analysis.systems.sirepo_live import NOT_SENT, agent_timeout, cancel_unconfirmed, login_needed
from jobtui.analysis.times import age, duration, for_words
from jobtui.model.clock import SECOND, Nanos, seconds_between, since_s, to_rfc3339
from jobtui.model.jobs import JobStatus
from jobtui.model.numbers import whole
from jobtui.model.ops import UNWANTED_ENDS, Op, OpStatus, Step, is_line_before
from jobtui.model.patterns import regex
from jobtui.model.verdicts import BY_ITSELF, MEMORY_SIGNAL, Cause, Code, signal_of

_EXIT = regex(r"\b(?:exit\(|returncode=)(?P<code>-?\d+)|killed by signal (?P<signal>\d+)")
_OUT_OF_MEMORY = regex(r"Terminated Process|ran out of memory|Out of memory|oom.?kill", re.IGNORECASE)
_PREPARE = regex(r"\b_prepare\b|sim_run_dir_prepare|write_parameters|prepare_for_|UserAlert|_do_prepare")
_AGENT_START = regex(r"waiting for agent to start|agent.{0,20}(?:did not|never).{0,10}start", re.IGNORECASE)
_STDERR = regex(r"\bexit=\d+ stderr=\S")
_LIVE_IN_SLURM = regex(r"(?:sbatch status|unexpected state)=(CONFIGURING|COMPLETING|RESIZING|STAGE_OUT)")
AGENT_NOTES = frozenset({"note from the agent", "exception in the agent", "error with job_cmd"})
_RUN_DIR_GONE = "runDirNotFound"
_NOT_SUBMITTED = "error submitting sbatch job error="
BY_WHOM = " (sender unknown; perhaps the kernel, out of memory)"


def completed(case: Case) -> Finding:
    length = case.ran_s
    took = f" in {duration(length)}" if length is not None else ""
    alert = case.job.alert if case.job is not None else None
    note = f", with a warning to its user: {alert}" if alert else ""
    is_known = case.record is not None
    return Finding(
        Code.COMPLETED,
        f"It completed{took}{note}.",
        CERTAIN if is_known and case.ended_in_log is not None else SURE,  # two witnesses, or one
        (case.ended_in_log,),
        doubts=() if is_known else ("its record was not read",),
    )


def agent_failed(case: Case) -> Finding | None:
    """A run that was given up because its agent did not start."""
    if not _AGENT_START.search(_error(case)):
        return None
    return Finding(
        Code.AGENT_NEVER_STARTED,
        "Its agent was started and never answered; the supervisor gave up on the run.",
        SURE,
        (case.last(Mark.AGENT_TIMEOUT), case.last(Mark.REFUSED, Mark.GIVEN_UP)),
        Mark.AGENT_ALIVE,
    )


def killed(case: Case) -> Finding | None:
    error = _error(case)
    found = _EXIT.search(error)
    signal = (whole(found["signal"]) or signal_of(found["code"])) if found else None
    is_memory = bool(_OUT_OF_MEMORY.search(error))
    if case.is_sbatch or not (is_memory or signal):
        return None
    by, killer = f"signal {signal}" if signal else "a signal", case.evidence.killer
    is_known = is_memory or (killer is not None and killer.words)
    why = BY_WHOM if signal == MEMORY_SIGNAL and not is_known else ""
    sentence = f"Its program was killed by {by}{why}: {error}."
    is_code = found is not None and (found["code"] or "-")[0] != "-"
    doubts = (BY_ITSELF,) if is_code and not is_memory else ()
    steps = (case.ended_in_log, case.last(Mark.EXITED))
    return Finding(Code.KILLED_BY_SIGNAL, sentence, LIKELY if doubts else SURE, steps, doubts=doubts)


def prepare_failed(case: Case) -> Finding | None:
    """An input that could not be turned into a program: job_cmd itself raised before it started one."""
    wrote, kept = _on_stderr(case), _cause_of_job_cmd(case)
    if (wrote is None and kept is None) or case.is_sbatch or not _is_short(case):
        return None
    text = "" if wrote is None else case.behind.get((wrote.source, wrote.line), "") or wrote.text
    is_known = bool(_PREPARE.search("\n".join((text, *(() if kept is None else (*kept.above, kept.text))))))
    if (case.behind or wrote is None) and not is_known:
        return None
    doubts = () if is_known else ("the lines of the traceback were not read",)
    return Finding(
        Code.PREPARE_FAILED,
        f"Its input could not be prepared, no program was started: {_error(case) or 'see the traceback'}.",
        CERTAIN if is_known else LIKELY,
        (wrote, case.ended_in_log),
        doubts=doubts,
    )


def _cause_of_job_cmd(case: Case) -> Cause | None:
    """The line that says why job_cmd itself failed, by what its agent kept of its stderr."""
    cause = case.evidence.cause
    return cause if cause is not None and cause.source.endswith("job_cmd.err") else None


def _on_stderr(case: Case) -> Step | None:
    """The line of job_cmd's stderr, else the line of its end if that mentions stderr."""
    steps = case.steps
    line = [step for step in steps if mark_of(step) is Mark.STDERR and "stdout=" not in step.text]
    ended = [step for step in steps if mark_of(step) is Mark.EXITED and _STDERR.search(step.text)]
    return next(reversed(line or ended), None)


def failed_on_cluster(case: Case) -> Finding | None:
    if not case.is_sbatch:
        return None
    error = _error(case)
    if case.run is not None and not case.run.sends and case.run.error:
        return None
    if error == NOT_SENT and (case.run is None or not case.run.sends):
        return Finding(
            Code.SBATCH_LOGIN_NEEDED,
            "It could not be sent to the cluster, most likely because its user is not logged in there.",
            PLAUSIBLE,
            missing=Mark.SENT,
            doubts=("no line of the supervisor about this run was read",),
        )
    refused = case.last(Mark.SBATCH_REFUSED)
    if (state := _LIVE_IN_SLURM.search(error)) is not None:
        words = f"Sirepo took Slurm's state {state[1]} for the end of the job, which may continue."
        return Finding(Code.SBATCH_FAILED, words, SURE, (case.ended_in_log or case.last_step,))
    error = (reason_in(refused.text) if refused is not None else "") or error
    is_refused = refused is not None or error.startswith(_NOT_SUBMITTED)
    how = "Slurm refused it" if is_refused else "It failed on the cluster"
    by_slurm = f" Slurm says: {case.slurm.error}." if case.slurm is not None and case.slurm.error else ""
    sentence = f"{how}: {error.removeprefix(_NOT_SUBMITTED) or 'no reason is given'}.{by_slurm}"
    sure = SURE if error else LIKELY
    return Finding(Code.SBATCH_FAILED, sentence, sure, (refused or case.ended_in_log or case.last_step,))


def program_failed(case: Case) -> Finding:
    error = _error(case)
    run = case.run
    ran = case.ran_s
    length = f" {duration(ran)} after it started" if ran is not None else ""
    has_started = case.job is not None and case.job.started_at is not None
    if run is not None and not run.sends and not has_started:
        return Finding(
            Code.UNKNOWN,
            f"The run was never sent to an agent: {error or 'no reason is given'}.",
            PLAUSIBLE,
            (case.last(Mark.REFUSED, Mark.GIVEN_UP), case.last_step),
            Mark.SENT,
            doubts=("no line says why",) if case.last(Mark.REFUSED, Mark.GIVEN_UP) is None else (),
        )
    exited, wrote = case.last(Mark.EXITED), _on_stderr(case)
    note = next((step for step in reversed(run.steps) if step.step in AGENT_NOTES), None) if run else None
    if exited is None and note is not None and (why := reason_in(note.text)):
        words = f"Its agent could not start it: {why}."
        return Finding(Code.LAUNCH_FAILED, words, SURE, (note, case.ended_in_log))
    is_reason_known = bool(error)
    sent = case.last(Mark.SENT)
    # forwarded lines of an agent may lack an exit; the log of an agent lacks it if the log is cut off
    is_forwarded = sent is not None and case.agent_logs == {sent.source}
    is_seen = case.ended_in_log is not None and is_reason_known and (exited is not None or is_forwarded)
    cause = case.evidence.cause
    kept = _cause_of_job_cmd(case)
    is_caused = has_started and cause is not None and not cause.is_end and kept is None
    is_seen = is_seen or is_caused
    doubts: tuple[str, ...] = () if is_seen else ("no line read says how it failed; its input may be wrong",)
    if wrote or kept or (run is not None and run.wrote_stderr and not is_caused):
        doubts += ("job_cmd wrote on stderr, and what was read of that does not say why",)
    return Finding(
        Code.PROGRAM_FAILED,
        f"Its program failed{length}: {error or 'no reason is given'}.",
        PLAUSIBLE if doubts else SURE if exited is not None or is_caused else LIKELY,
        (sent, wrote, case.ended_in_log, exited),
        doubts=doubts,
        needs_all_lines=_is_short(case) and not is_caused,
        needs_no_line=is_caused and case.record is not None,
    )


def timed_out(case: Case) -> Finding | None:
    limit = case.record.limit_s if case.record is not None else None
    step = case.last(Mark.TIME_LIMIT)
    if limit is None and step is None:
        return None
    length = f" of {age(limit)}" if limit is not None else ""
    sentence = f"It was canceled at its time limit{length}."
    # ops are known by four characters: a line alone may be of another op
    is_known = limit is not None or (case.record is None and case.last(Mark.AGENT_GONE) is None)
    doubts = () if is_known else ("its record names no limit, or its agent was lost first",)
    sure = CERTAIN if is_known else PLAUSIBLE
    return Finding(Code.TIMED_OUT, sentence, sure, (case.last(Mark.SENT), step), limit_s=limit, doubts=doubts)


def canceled_later(case: Case) -> Finding | None:
    """A run that lost its supervisor or agent, was found again, and then canceled by its user."""
    step = case.last(Mark.RESTARTED, Mark.FOUND_GONE, Mark.AGENT_GONE)
    cancels = [op for op in case.later if op.name == "cancel" and op.replies]
    if step is None or not any(is_line_before(step, one) for op in cancels for one in op.steps):
        return None
    return canceled_by_user(case)


def restarted(case: Case) -> Finding | None:
    step = case.last(Mark.FOUND_GONE)
    if step is not None:
        return Finding(
            Code.SUPERVISOR_RESTARTED,
            "The supervisor was restarted while the run was live; at the next request for it, it was gone.",
            CERTAIN,
            (case.last(Mark.AGENT_GONE, Mark.KILLED), case.restart, step),
        )
    if case.run is None or case.run.status is not OpStatus.LOST:
        return None
    return Finding(
        Code.SUPERVISOR_RESTARTED,
        "The supervisor was restarted while the run was live.",
        PLAUSIBLE,
        (case.last(Mark.RESTARTED),),
        doubts=("the line that cancels it was not read",),
    )


def agent_lost(case: Case) -> Finding | None:
    gone, exited = case.last(Mark.AGENT_GONE), case.last(Mark.EXITED)
    answer = case.later_step(Mark.RUN_STATUS)
    cancel = case.last(Mark.CANCEL)
    if cancel is not None or (gone is None and answer is None):
        return None
    if answer is None and exited is not None and gone is not None and is_line_before(exited, gone):
        return None  # its program had ended by then
    is_known = gone is not None and answer is not None
    again = "; a new agent that was asked did not know it" if is_known else ""
    return Finding(
        Code.AGENT_LOST,
        f"Its agent went away while it had the run{again}.",
        CERTAIN if is_known else PLAUSIBLE,
        (gone, answer),
        doubts=() if is_known else ("no line says why it was canceled",),
    )


def _cancel(case: Case) -> Step | None:
    later = (op.steps[0] for op in reversed(case.later) if op.name == "cancel" and op.steps)
    return case.last(Mark.CANCEL) or next(later, None)


def ended_by_slurm(case: Case) -> Finding | None:
    """Somebody canceled its Slurm job, or it reached its time limit there: Sirepo calls both canceled."""
    slurm = case.slurm
    if slurm is None or slurm.status not in ENDS or _cancel(case) is not None:
        return None
    if slurm.status is JobStatus.CANCELED:
        code, how = Code.CANCELED, slurm.message or "canceled"
    elif slurm.native_status == "TIMEOUT":
        code, how = Code.TIMED_OUT, f"ended: {slurm.error}"
    else:
        return None
    sentence = f"Its job in Slurm, {slurm.id}, was {how}; nothing that was read cancels it in Sirepo."
    return Finding(code, sentence, SURE, (case.ended_in_log,))


def canceled_by_user(case: Case) -> Finding:
    cancel = _cancel(case)
    if cancel is None:
        sentence = "It was canceled; no line that was read says by whom."
        return Finding(Code.CANCELED_BY_USER, sentence, GUESS, doubts=("no line about its cancel was read",))
    length = f" after {duration(ran)}" if (ran := case.ran_s) else ""
    wait = case.last(Mark.SLOT_WAIT) if case.run is not None and not case.run.sends else None
    if wait is not None and (found := slot_of(wait.text)) is not None:
        waited = for_words(since_s(wait.at, cancel.at)) if cancel.at is not None else ""
        length = f" after it had waited{waited}: {found[2]}"
    sentence = f"Its user canceled it{length}."
    return Finding(Code.CANCELED_BY_USER, sentence, CERTAIN, (cancel, case.last(Mark.EXITED, Mark.KILLED)))


def run_dir_gone(case: Case) -> Finding | None:
    line = _run_dir_gone_line(case)
    earlier = [run for run in case.runs if run.status is not JobStatus.MISSING]
    has_run = bool(earlier) or (case.job is not None and case.job.runs > 0)
    if line is None and not has_run:
        return None
    last = f" The last run {earlier[-1].status}." if earlier else ""
    sentence = f"It has run, but its run directory is gone, so Sirepo treats it as never run.{last}"
    return Finding(Code.RUN_DIR_GONE, sentence, CERTAIN if line is not None else SURE, (line,))


def never_run(case: Case) -> Finding:
    is_known = case.job is not None and case.evidence.detail is not None
    is_call = case.job is not None and case.job.is_quasi
    what = "is the record of a compute call, not of a simulation" if is_call else "was viewed but never run"
    return Finding(
        Code.NEVER_RUN,
        f"It {what}.",
        CERTAIN if is_known else PLAUSIBLE,
        doubts=() if is_known else ("the history of its record was not read",),
    )


def purged(case: Case) -> Finding:
    return Finding(
        Code.PURGED,
        "Its files were purged, as happens a day after runs of users without a paid plan.",
        CERTAIN,
        tuple(step for op in case.ops for step in op.steps if step.step == "run directory purged")[-1:],
    )


def gone_since(case: Case) -> Finding | None:
    """A completed run whose record was not read, and whose directory was gone when somebody asked for it."""
    line = _run_dir_gone_line(case)
    if line is None or case.record is not None:
        return None
    return Finding(
        Code.RUN_DIR_GONE,
        "It completed; when its files were requested later, its run directory was gone.",
        LIKELY,
        (case.ended_in_log, line),
        doubts=("its record was not read",),
    )


ENDED_RULES: dict[JobStatus, tuple[Rule, ...]] = {
    JobStatus.COMPLETED: (gone_since, completed),
    JobStatus.FAILED: (
        login_needed, agent_failed, agent_timeout, failed_on_cluster, killed, prepare_failed, program_failed,
    ),
    JobStatus.CANCELED: (
        timed_out, canceled_later, restarted, agent_lost, cancel_unconfirmed, ended_by_slurm,
        canceled_by_user,
    ),
    JobStatus.MISSING: (run_dir_gone, never_run),
    JobStatus.PURGED: (purged,),
}  # fmt: skip
"""The rules for a job that is over, by its status, in the order in which they are tried."""


def _error(case: Case) -> str:
    errors = (one.error for one in (case.record, case.run) if one is not None)
    return next(filter(None, errors), "")


def _is_short(case: Case) -> bool:
    """Whether the run reported only its start and its end, and no progress of a program."""
    return sum(step.step == "status running" for step in case.steps) <= 1


def _run_dir_gone_line(case: Case) -> Step | None:
    """The line of an op that found the run directory gone, after the latest run."""
    ops: tuple[Op, ...] = case.later if case.run is not None else case.ops
    steps = (step for op in reversed(ops) for step in op.steps)
    return next((one for one in steps if mark_of(one) is Mark.REPLIED and _RUN_DIR_GONE in one.text), None)


_REASON = regex(r"(?:\b(?:error|exception|stderr)=|reason': ')(?P<why>.+?)(?: stack=|'?,? *$)")
_SERIAL = regex(r"[sS]erial'?[=:] ?(?P<serial>\d{1,10})\b")
_TELLS_WHY = ("docker ", "its start failed", "it ended with code")
"""Beginnings of a line about an agent's end that gives a reason."""
TOUCHED = frozenset(
    {Code.AGENT_LOST, Code.REPLY_LOST, Code.STALE_RECORD, Code.CANCEL_UNCONFIRMED, Code.RUNNING,
     Code.AGENT_NEVER_STARTED}
)  # fmt: skip
"""Verdicts that mention problems of the agent."""
FROM_AFAR: Mapping[str, str] = {
    "lost the supervisor": "Its agent lost the connection to the supervisor{times}",
    "message from an unknown agent": "An agent unknown to the supervisor sent a message about it{times}",
    "did not know Slurm's state": "Its agent did not know a state that Slurm gave{times}",
}
"""The sentence for a step about the connection between agent and supervisor."""
OF_OTHER_RUNS = frozenset(
    {"status of an older run, ignored", "asked for a run that it does not have",
     "asked for a run other than the record's"}
)  # fmt: skip
LATER_OPS = frozenset({"analysis", "io"})
MOST_QUOTED = 160


def reason_in(text: str) -> str:
    """The reason in a line, "" if it has none."""
    found = _REASON.search(text)
    return "" if found is None else found["why"].strip("'\" ")[:MOST_QUOTED]


def noted(case: Case, code: Code) -> str:
    """Other facts of the run: from its agent's log, of the agent, of other runs, of later requests."""
    notes = []
    if code in TOUCHED:
        notes = [_from_afar(case, word) for word in FROM_AFAR]
        agent = case.agent
        if agent is not None and agent.state in UNWANTED_ENDS and agent.why.startswith(_TELLS_WHY):
            notes.append(f"About its agent: {agent.why}")
    notes.append(_other_runs(case))
    failed = [op for op in case.later if op.name in LATER_OPS and op.error]
    if failed and code is Code.COMPLETED:
        error = failed[-1].error or ""
        why = reason_in(error) or error[:MOST_QUOTED]
        notes.append(f"Later requests for it failed {_times(len(failed))} ({failed[-1].name}): {why}")
    return "".join(f" {words}." for words in notes if words)


def _from_afar(case: Case, word: str) -> str:
    same = [step for step in case.steps if step.step == word]
    if not same:
        return ""
    since = case.since(same[0])
    often = "" if len(same) == 1 else f" {len(same)} times"
    times = often if since is None else f"{often}{' since' if often else ''} {age(since)} ago"
    why = reason_in(same[-1].text)
    return f"{FROM_AFAR[word].format(times=times)}{why and ': '}{why}"


def _other_runs(case: Case) -> str:
    same = [step for step in case.steps if step.step in OF_OTHER_RUNS]
    names = []
    for found in _SERIAL.finditer(same[-1].text) if same else ():
        serial = whole(found["serial"], 0)
        at = Nanos(serial * SECOND)  # a run's serial is the time at which it was requested
        name = f"the run of {to_rfc3339(at)[:19]}Z" if serial else "no run"
        for run in case.runs:
            if run.queued_at is not None and abs(seconds_between(run.queued_at, at)) <= NEWER_S:
                name = f"run {run.number}"
                break
        names.append(name)
    if len(names) < 2 or names[0] == names[1]:
        return ""
    return f"Updates or requests of {names[1]} were refused {_times(len(same))}: {names[0]} is current"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
