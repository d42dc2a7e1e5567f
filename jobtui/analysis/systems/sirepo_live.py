"""Rules for jobs of Sirepo that wait or run."""

import re
from collections.abc import Callable

from jobtui.analysis.explain.case import CERTAIN, GUESS, LIKELY, PLAUSIBLE, SURE, Case, Finding, Rule
from jobtui.analysis.explain.flow import MOST_START_S, START_S, Mark, is_beyond, mark_of, usual_words
from jobtui.analysis.flags import AGENT_START_S, LIMIT_GRACE_S, STALE_S, limit_s, slot_of
from jobtui.analysis.keys import ENDS, is_polled
from jobtui.analysis.times import age, ago_words, for_words, waits_words
from jobtui.model.clock import DAY, SECOND, Nanos, since_s
from jobtui.model.jobs import Category, JobStatus
from jobtui.model.numbers import real
from jobtui.model.ops import OpStatus, Step
from jobtui.model.patterns import regex
from jobtui.model.slurm import reason_of
from jobtui.model.verdicts import Code

GRACE_S = 2.0
"""How long after its limit a line may come."""
NOT_SENT = "exception during send"
"""The words in the record of a run that could not be sent to its cluster."""
_TIMEOUT = regex(r"timeout=(?P<seconds>[\d.]+)")
_LOGIN = regex(r"sbatchLogin|no-creds|sbatch.?login", re.IGNORECASE)


def restarted(case: Case) -> Finding | None:
    """A live record whose supervisor was restarted after the run was asked for."""
    restart = case.restart
    if case.run is None or case.is_record_old or restart is None:
        return None
    if any(op.name == "run_status" and op.sends for op in case.later):
        return None
    where = (
        "the job may continue on the cluster, and is seen again when its user logs in"
        if case.is_sbatch
        else "nothing runs, and the record changes when somebody requests the job"
    )
    sentence = (
        f"The supervisor was restarted after this run was requested, and its record still says "
        f"{case.status}: {where}."
    )
    return Finding(Code.STALE_RECORD, sentence, SURE, (case.last(Mark.SENT, Mark.CREATED), restart))


def login_needed(case: Case) -> Finding | None:
    run = case.run
    if run is None or run.sends or not run.error or not _LOGIN.search(run.error):
        return None
    # the record is written when a run is refused: a record without it is of another run
    is_agreed = case.record is not None and case.record.error == NOT_SENT
    return Finding(
        Code.SBATCH_LOGIN_NEEDED,
        "The run was refused because its user is not logged in to the cluster; it was never sent.",
        CERTAIN if is_agreed else PLAUSIBLE,
        (case.last(Mark.REFUSED),),
        Mark.SENT,
        doubts=() if is_agreed else (f'no record says "{NOT_SENT}": there may be a later run',),
    )


def slot(case: Case) -> Finding | None:
    wait = case.last(Mark.SLOT_WAIT)
    is_logged = wait is not None and case.last(Mark.SLOT_WAIT, Mark.SLOT_GOT, Mark.SENT) is wait
    message = case.record.message if case.record is not None else None
    text = (wait.text if is_logged and wait is not None else "") or message or ""
    found = slot_of(text)
    if found is None or (wait is not None and not is_logged):
        return None
    waited = case.since(wait) if is_logged else _pending_s(case)
    return Finding(
        Code[f"WAITING_{found[0].upper()}"],
        f"The run {waits_words(for_words(waited))}: {found[2]}.",
        SURE if is_logged else LIKELY if (waited or 0.0) * SECOND < DAY else PLAUSIBLE,
        (wait,) if is_logged else (),
        Mark.SLOT_GOT,
        doubts=() if is_logged else ("no line of the supervisor about this wait was read",),
    )


def agent_timeout(case: Case) -> Finding | None:
    """An agent that did not answer in time, as a line says."""
    timeout = case.last(Mark.AGENT_TIMEOUT)
    if timeout is None or case.last(Mark.SENT) is not None:
        return None
    if case.last(Mark.AGENT_ALIVE, Mark.AGENT_TIMEOUT) is not timeout:
        return None
    found = _TIMEOUT.search(timeout.text)
    limit = (real(found["seconds"]) if found else None) or _agent_limit_s(case)
    return Finding(
        Code.AGENT_NEVER_STARTED,
        f"Its agent was started and never answered: the supervisor gave up after {age(limit)}, and the "
        f"run stays {case.status} forever.",
        CERTAIN,
        (case.last(Mark.AGENT_START, Mark.AGENT_WAIT), timeout),
        Mark.AGENT_ALIVE,
        limit,
    )


def agent_start(case: Case) -> Finding | None:
    """A run whose agent is being started, or should have answered long ago."""
    wait = case.last(Mark.AGENT_WAIT, Mark.AGENT_START, Mark.ASSIGNED)
    if wait is None or case.last(Mark.AGENT_ALIVE, Mark.SENT, Mark.SLOT_WAIT) is not None:
        return None
    limit = _agent_limit_s(case)
    waited = case.since(wait)
    waited = _pending_s(case) if waited is None else waited
    if waited is not None and waited <= limit + GRACE_S:
        sentence = f"Its agent is being started{for_words(waited)}; it has up to {age(limit)}."
        return Finding(Code.AGENT_STARTING, sentence, SURE, (wait,), Mark.AGENT_ALIVE, limit)
    # a start is followed by the wait for the agent at once: without that line others may be lost, too
    begun = case.last(Mark.AGENT_WAIT, *([Mark.AGENT_START] if case.record is not None else []))
    return Finding(
        Code.AGENT_NEVER_STARTED,
        f"Its agent was started{ago_words(waited)} and no answer of it was read; it has {age(limit)}.",
        LIKELY if begun is not None and (waited is None or waited > AGENT_START_S) else PLAUSIBLE,
        (wait,),
        Mark.AGENT_ALIVE,
        limit,
        ("the line that ends the wait for the agent was not read, or its site gives agents more time",),
        silent_since=wait,
        needs_all_lines=True,
    )


def ended_in_slurm(case: Case) -> Finding | None:
    """A live record whose Slurm job ended some time ago, which nobody noticed."""
    slurm = case.slurm
    if case.job is None or slurm is None or slurm.status not in ENDS:
        return None
    if not is_polled(case.job, slurm, case.now):
        return None
    why = f": {slurm.error or slurm.message}" if slurm.error or slurm.message else ""
    return Finding(
        Code.REPLY_LOST,
        f"Its job in Slurm, {slurm.id}, ended as {slurm.status.value}{why}; its record does not know that.",
        SURE,
        (case.last(Mark.SENT), case.last(Mark.UPDATED)),
        doubts=("it is seen again when its user logs in to the cluster and looks at it",),
    )


def ended_unwritten(case: Case) -> Finding | None:
    ended = case.ended_in_log
    if ended is None or case.job is None:
        return None
    sentence = (
        f'The supervisor logged "{ended.step}"{case.ago(ended)}, and the record still says {case.status}.'
    )
    is_news = (case.since(ended) or 0.0) <= NEWS_S
    doubts = ("the record may just be being written",) if is_news else ()
    return Finding(Code.STALE_RECORD, sentence, LIKELY if is_news else SURE, (ended,), doubts=doubts)


def queued_on_cluster(case: Case) -> Finding | None:
    """A run that was submitted to Slurm and has not started."""
    if not case.is_sbatch:
        return None
    slurm = case.slurm
    if slurm is not None and slurm.status.is_live:
        code, steps = Code.SBATCH_QUEUED, (case.last(Mark.SENT), case.last(Mark.UPDATED))
        if slurm.status is not JobStatus.PENDING:
            sentence = f"Slurm runs it as {slurm.id}; its record does not know that yet."
        elif slurm.alert is not None:
            code = Code.HELD if reason_of(slurm.reason).category is Category.HELD else Code.NEVER_STARTS
            what = f"It is {slurm.id} in Slurm's queue and will not start by itself"
            sentence = f"{what}: it waits for {slurm.alert}."
        else:
            waits = waits_words(for_words(_pending_s(case)))
            sentence = f"It is {slurm.id} in Slurm's queue and {waits} for {slurm.message}."
        return Finding(code, sentence, CERTAIN, steps)
    step = case.last(Mark.UPDATED, Mark.REPLIED)
    if step is None:
        doubt = "a login that is missing, or an agent that does not answer, would look the same"
        sentence = f"It is pending{for_words(_pending_s(case))}, most likely in Slurm's queue."
        return None if case.run else Finding(Code.SBATCH_QUEUED, sentence, GUESS, doubts=(doubt,))
    if case.last(Mark.AGENT_GONE) is not None:
        return None
    sentence = f"The run is in Slurm's queue{for_words(_pending_s(case))} and has not started."
    steps, is_alone = (case.last(Mark.SENT), step), case.record is None
    return Finding(Code.SBATCH_QUEUED, sentence, SURE, steps, Mark.UPDATED, needs_all_lines=is_alone)


def sent_without_answer(case: Case) -> Finding | None:
    sent = case.last(Mark.SENT)
    if sent is None or case.last(Mark.REPLIED) is not None:
        return None
    waited = case.since(sent)
    if waited is not None and waited < MOST_START_S:
        words = f"It was sent to its agent{ago_words(waited)}."
        return Finding(Code.RUNNING, words, SURE, (sent,), Mark.REPLIED)
    # the agent answered for a run that it started, and a run in Slurm's queue changes no record
    has_begun = case.is_sbatch or case.last(Mark.STARTED) is not None
    has_begun = has_begun or (case.job is not None and case.job.started_at is not None)
    doubts = () if case.agent_logs else ("the agent's log was not available",)
    return Finding(
        Code.REPLY_LOST,
        f"It was sent to its agent{ago_words(waited)}, which has not answered.",
        PLAUSIBLE if has_begun else LIKELY,
        (sent, case.last(Mark.REPLY_WAIT)),
        Mark.REPLIED,
        MOST_START_S,
        (*doubts, "it seems to have started: its answer may not have been read") if has_begun else doubts,
        silent_since=sent,
        needs_all_lines=True,
    )


def by_record(case: Case) -> Finding | None:
    waited = _pending_s(case)
    limit = _agent_limit_s(case)
    if waited is not None and waited <= limit + GRACE_S:
        return Finding(Code.AGENT_STARTING, f"It was requested{ago_words(waited)}.", PLAUSIBLE, limit_s=limit)
    return Finding(
        Code.AGENT_NEVER_STARTED,
        f"It is pending{for_words(waited)} without saying why: most likely its agent never answered.",
        PLAUSIBLE,
        missing=Mark.AGENT_ALIVE,
        limit_s=limit,
        doubts=("no line of the supervisor about this run was read",),
    )


WAITING_RULES: tuple[Rule, ...] = (
    ended_in_slurm, ended_unwritten, login_needed, agent_timeout, restarted, slot, agent_start,
    queued_on_cluster, sent_without_answer, by_record,
)  # fmt: skip
"""The rules for a pending job, in the order in which they are tried."""


def _agent_limit_s(case: Case) -> float:
    driver = case.run.driver if case.run is not None else None
    return START_S.get(driver or "", MOST_START_S)


def _pending_s(case: Case) -> float | None:
    if case.record is not None and case.record.queued_at is not None:
        return since_s(case.record.queued_at, case.now)
    return since_s(case.run.created_at if case.run is not None else None, case.now)


NEWS_S = 10.0
"""How long the end of a program may take to become known."""
CANCEL_S = 30.0
"""How long a cancel may take: an agent first asks the program to end, then kills it."""
QUIET_S = 60.0
"""Older news do not prove that a run lives. A sequential run reports its start and its end only."""
_TERMINATED = "returncode=-15"


def agent_gone(case: Case) -> Finding | None:
    """A run whose agent was lost while it had the run, which the record does not say yet."""
    gone, answer = case.last(Mark.AGENT_GONE), case.later_step(Mark.RUN_STATUS)
    if gone is not None and answer is not None and "canceled" in answer.step:
        again = "a new agent that was asked did not know it"
        sentence = f"Its agent went away{case.ago(gone)} while it had the run; {again}."
        return Finding(Code.AGENT_LOST, sentence, CERTAIN, (gone, answer))
    asked = [op for op in case.later if op.name == "run_status"]
    is_asked_about = any(op.replies or op.result not in (None, "error") for op in asked)
    if gone is None or case.is_sbatch or is_asked_about:
        return None
    doubts = [words for words, applies in LOSS_DOUBTS if applies(case, gone)]
    return Finding(
        Code.AGENT_LOST,
        f"Its agent went away{case.ago(gone)} while it had the run; the record still says {case.status}, "
        "until somebody requests the job.",
        PLAUSIBLE if case.restart is not None or len(doubts) > 1 else LIKELY if doubts else SURE,
        (case.last(Mark.SENT), gone),
        Mark.FINAL,
        doubts=tuple(doubts),
        needs_all_lines=bool(doubts),
    )


LOSS_DOUBTS: tuple[tuple[str, Callable[[Case, Step], bool]], ...] = (
    ("its supervisor was restarted, too", lambda case, gone: case.restart is not None),
    (
        "it ended its program first, as when its supervisor is stopped",
        lambda case, gone: case.last(Mark.KILLED) is not None or _TERMINATED in gone.text,
    ),
    (
        "no later line of the same supervisor was read: it may have been stopped, and its agent with it",
        lambda case, gone: not case.supervisor_wrote_after(gone),
    ),
)
"""Signs that the supervisor was stopped, and not that an agent was lost."""


def cancel_unconfirmed(case: Case) -> Finding | None:
    cancel = next((op for op in reversed(case.later) if op.name == "cancel"), None)
    if cancel is None or cancel.replies or cancel.status is OpStatus.ENDED:
        return None
    if case.run is not None and not case.run.sends and case.last(Mark.SLOT_WAIT, Mark.SLOT_GOT) is not None:
        return None  # it waited for a slot when it was canceled: there is nothing to stop
    asked = cancel.steps[0] if cancel.steps else None
    waited = case.since(asked)
    is_over = any(mark_of(step) is Mark.EXITED for step in (*case.steps, *cancel.steps))
    if is_over or (waited is not None and waited < CANCEL_S):
        return None
    how = "was sent to the agent and" if cancel.sends else "never left the supervisor:"
    is_heard = bool(case.agent_logs) and cancel.sends > 0 and waited is not None
    held = [one for agent in case.evidence.agents.values() for one in agent.ops if one.jid == cancel.jid]
    still_waits = {mark_of(step) for step in cancel.steps} & {Mark.AGENT_WAIT, Mark.GIVEN_UP}
    is_known = still_waits or any((one.op, one.name) == (cancel.op, cancel.name) for one in held)
    return Finding(
        Code.CANCEL_UNCONFIRMED,
        f"Its cancel{case.ago(asked)} {how} nothing confirms it; the program may still run in its slot.",
        PLAUSIBLE if not is_known else SURE if is_heard else LIKELY,
        (asked, cancel.steps[-1] if cancel.steps else None),
        Mark.REPLIED,
        CANCEL_S,
        () if is_known else ("no line says that it still waits: one that confirms it may be missing",),
        silent_since=asked,
        needs_all_lines=True,
    )


def reply_lost(case: Case) -> Finding | None:
    """A program that has ended, which the supervisor does not know."""
    exited = case.last(Mark.EXITED)
    if exited is None or case.ended_in_log is not None:
        return None
    waited = case.since(exited)
    if waited is None or waited < NEWS_S:
        return None
    signal = exited.step.partition(" -")[2] if case.last(Mark.KILLED) is None else ""
    who = f"What runs its program, job_cmd, was killed by signal {signal}" if signal else "Its program ended"
    rest = " The program may run on." if signal else ""
    return Finding(
        Code.REPLY_LOST,
        f"{who}{case.ago(exited)} according to its agent; the supervisor was never told.{rest}",
        LIKELY if signal else SURE,
        (case.last(Mark.SENT), exited),
        Mark.FINAL,
        NEWS_S,
        silent_since=exited,
        needs_all_lines=True,
    )


def silent(case: Case) -> Finding | None:
    job = case.job
    if job is None:
        return None
    limit, ran = limit_s(job), case.ran_s
    if limit is not None and ran is not None and ran > limit + LIMIT_GRACE_S:
        return Finding(
            Code.STALE_RECORD,
            f"Its record says it runs for {age(ran)}, but such runs are canceled after {age(limit)}: "
            "whatever wrote the record has most likely ended.",
            PLAUSIBLE if case.run is None else LIKELY,
            (case.last_step,),
            Mark.FINAL,
            limit,
        )
    quiet = _quiet_s(case)
    if quiet is not None and quiet > STALE_S.get(job.mode, float("inf")):
        sentence = f"No update for {age(quiet)}: whatever wrote the record has most likely ended."
        return Finding(Code.STALE_RECORD, sentence, PLAUSIBLE, (case.last_step,), Mark.UPDATED)
    return None


def runs(case: Case) -> Finding:
    step = case.last(Mark.UPDATED, Mark.REPLIED, Mark.STARTED, Mark.SENT)
    quiet = _quiet_s(case)
    ran = case.ran_s
    limit = limit_s(case.job) if case.job is not None else None
    usual = "" if limit is None else f" of at most {age(limit)}"
    if ran is not None and case.length is not None:
        usual = f", {'longer than ' if is_beyond(ran, case.length) else ''}{usual_words(case.length)}"
    length = "" if ran is None else f" for {age(ran)}{usual}"
    percent = "" if case.job is None or case.job.percent is None else f", {case.job.percent:.0f} % done"
    word = "" if quiet is None else f"; last update {age(quiet)} ago"
    number = f" as {case.slurm.id}" if case.slurm is not None else ""
    sentence = f"It runs{number}{length}{percent}{word}."
    if step is None:
        doubts: tuple[str, ...] = ("no line about this run was read: the record alone says so",)
        return Finding(Code.RUNNING, sentence, PLAUSIBLE, doubts=doubts)
    is_alive = quiet is not None and quiet <= QUIET_S
    killed = case.last(Mark.KILLED)
    doubts = () if is_alive else ("its last update is old",)
    if killed is not None:
        doubts += (f"its agent wrote that it {killed.step}",)
    # neither it nor its supervisor wrote anything since: neither is known to live
    is_all_silent = not case.supervisor_wrote_after(step, QUIET_S)
    over_s = -1.0 if limit is None or ran is None else ran - limit
    is_due = over_s >= 0 and (quiet is None or quiet >= over_s)  # it may have been canceled by now
    is_alone = case.is_log_behind or is_all_silent or case.record is None
    is_unsure = killed is not None or is_due or (not is_alive and is_alone)
    return Finding(
        Code.RUNNING,
        sentence,
        PLAUSIBLE if is_unsure else LIKELY if case.is_log_behind or not is_alive else SURE,
        (case.last(Mark.SENT), step),
        doubts=doubts,
        needs_all_lines=not is_alive,
    )


RUNNING_RULES: tuple[Rule, ...] = (
    ended_in_slurm, ended_unwritten, restarted, agent_gone, cancel_unconfirmed, reply_lost,
    sent_without_answer, silent, runs,
)  # fmt: skip
"""The rules for a running job, in the order in which they are tried."""


def _quiet_s(case: Case) -> float | None:
    job = case.job
    record = (job.written_at, job.updated_at, job.started_at) if job is not None else ()
    steps = case.run.steps if case.run is not None else ()
    times: list[Nanos] = [at for at in (*record, *(step.at for step in steps)) if at is not None]
    return since_s(max(times, default=None), case.now)
