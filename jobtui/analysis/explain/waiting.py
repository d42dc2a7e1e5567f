"""Rules for jobs that have not begun to run."""

import re

from jobtui.analysis.explain.case import Case
from jobtui.analysis.explain.finding import CERTAIN, GUESS, LIKELY, PLAUSIBLE, SURE, TOLD, Finding, Rule
from jobtui.analysis.explain.flow import AGENT_START_S, DEFAULT_AGENT_START_S, Mark
from jobtui.analysis.explain.on_cluster import ended_in_slurm
from jobtui.analysis.time_words import age
from jobtui.model.clock import seconds_between
from jobtui.model.jobs import Job, JobStatus
from jobtui.model.verdicts import Code

SLOTS: tuple[tuple[str, Code, str], ...] = (
    ("op_slot", Code.WAITING_OP_SLOT, "another op of the same user has the agent's only op slot"),
    ("run_dir_slot", Code.WAITING_RUN_DIR_SLOT, "another op works in its run directory"),
    ("cpu_slot", Code.WAITING_CPU_SLOT, "all CPU slots for such runs are taken"),
    ("another sim", Code.WAITING_OP_SLOT, "another op of the same user has the agent's only op slot"),
    ("op_q", Code.WAITING_OP_SLOT, "another op of the same user has the agent's only op slot"),
    ("sim state", Code.WAITING_RUN_DIR_SLOT, "another op works in its run directory"),
    ("run_dir", Code.WAITING_RUN_DIR_SLOT, "another op works in its run directory"),
    ("cpu", Code.WAITING_CPU_SLOT, "all CPU slots for such runs are taken"),
)
"""What the texts about waiting of all versions of the supervisor mean, by a part of them."""

GRACE_S = 2.0
"""How much later than its limit a line may come."""
NOT_SENT = "exception during send"
"""What the record of a run says that could not be sent to its cluster."""
_TIMEOUT = re.compile(r"timeout=(?P<seconds>[\d.]+)")
_LOGIN = re.compile(r"sbatchLogin|no-creds|sbatch.?login", re.IGNORECASE)


def restarted(case: Case) -> Finding | None:
    """A live record whose supervisor was restarted after the run was asked for."""
    run = case.run
    if run is None or case.is_record_old:
        return None
    restart = case.restart
    if restart is None:
        return None
    if any(op.name == "run_status" and op.sends for op in case.later):
        return None
    where = (
        "the job itself may go on on the cluster, and is seen again when its user logs in"
        if case.is_sbatch
        else "nothing runs any more, and the record changes when somebody asks for the job"
    )
    return Finding(
        Code.STALE_RECORD,
        f"The supervisor was restarted after this run was asked for, and its record still says "
        f"{case.status}: {where}.",
        SURE,
        (case.last(Mark.SENT, Mark.CREATED), restart),
    )


def login_needed(case: Case) -> Finding | None:
    """A run on a cluster that its user is not logged in to."""
    run = case.run
    if run is None or run.sends or not run.error or not _LOGIN.search(run.error):
        return None
    job = case.job if not case.is_record_old else None
    is_agreed = job is None or job.error == NOT_SENT
    return Finding(
        Code.SBATCH_LOGIN_NEEDED,
        "The run was refused because its user is not logged in to the cluster; it was never sent.",
        CERTAIN if is_agreed else LIKELY,
        (case.last(Mark.REFUSED),),
        Mark.SENT,
        doubts=() if is_agreed else (f'the record says other than "{NOT_SENT}": it may be of a later run',),
    )


def slot(case: Case) -> Finding | None:
    """A run that waits for a slot, by its own lines or by what its record says."""
    wait, got = case.last(Mark.SLOT_WAIT), case.last(Mark.SLOT_GOT, Mark.SENT)
    is_logged = wait is not None and (got is None or got.offset < wait.offset)
    message = case.job.message if case.job is not None and not case.is_record_old else None
    text = (wait.text if is_logged and wait is not None else "") or message or ""
    found = next((row for row in SLOTS if row[0] in text.lower()), None)
    if found is None or (wait is not None and not is_logged):
        return None
    waited = case.since(wait) if is_logged else _pending_s(case)
    return Finding(
        found[1],
        f"The run waits{_for(waited)}: {found[2]}.",
        SURE if is_logged else TOLD,
        (wait,) if is_logged else (),
        Mark.SLOT_GOT,
        doubts=() if is_logged else ("no line of the supervisor about this wait was read",),
    )


def agent_timeout(case: Case) -> Finding | None:
    """An agent that did not answer in time, in so many words."""
    timeout = case.last(Mark.AGENT_TIMEOUT)
    if timeout is None or case.last(Mark.SENT) is not None:
        return None
    alive = case.last(Mark.AGENT_ALIVE)
    if alive is not None and alive.offset > timeout.offset:
        return None
    found = _TIMEOUT.search(timeout.text)
    limit = float(found["seconds"]) if found else _agent_limit_s(case)
    return Finding(
        Code.AGENT_NEVER_STARTED,
        f"Its agent was started and never answered: the supervisor gave up after {limit:g} s, and the run "
        f"stays {case.status} for ever.",
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
        return Finding(
            Code.AGENT_STARTING,
            f"Its agent is being started{_for(waited)}; it has up to {limit:g} s.",
            SURE,
            (wait,),
            Mark.AGENT_ALIVE,
            limit,
        )
    return Finding(
        Code.AGENT_NEVER_STARTED,
        f"Its agent was started{_ago(waited)} and no answer of it was read; it has {limit:g} s.",
        LIKELY,
        (wait,),
        Mark.AGENT_ALIVE,
        limit,
        ("the line that ends the wait for the agent was not read",),
    )


def queued_on_cluster(case: Case) -> Finding | None:
    """A run that was handed to Slurm and has not begun."""
    if not case.is_sbatch:
        return None
    if case.slurm is not None and case.slurm.status.is_live:
        return _queued_by_slurm(case, case.slurm)
    step = case.last(Mark.UPDATED, Mark.REPLIED)
    if step is None:
        return None if case.run is not None else _queued_by_record(case)
    if case.last(Mark.AGENT_GONE) is not None:
        return None
    return Finding(
        Code.SBATCH_QUEUED,
        f"Slurm has the run and has not begun it{_for(_pending_s(case))}.",
        SURE,
        (case.last(Mark.SENT), step),
        Mark.UPDATED,
    )


def _queued_by_slurm(case: Case, slurm: Job) -> Finding:
    """What Slurm itself says."""
    if slurm.status is not JobStatus.PENDING:
        sentence = f"Slurm runs it as {slurm.id}; its record does not know that yet."
    elif slurm.alert is not None:
        sentence = (
            f"It is {slurm.id} in Slurm's queue and will not begin by itself: it waits for {slurm.alert}."
        )
    else:
        sentence = f"It is {slurm.id} in Slurm's queue and waits{_for(_pending_s(case))} for {slurm.message}."
    return Finding(Code.SBATCH_QUEUED, sentence, CERTAIN, (case.last(Mark.SENT), case.last(Mark.UPDATED)))


def _queued_by_record(case: Case) -> Finding:
    return Finding(
        Code.SBATCH_QUEUED,
        f"It is pending{_for(_pending_s(case))}, most likely in Slurm's queue.",
        GUESS,
        doubts=("a login that is missing, or an agent that does not answer, would look the same",),
    )


def sent_without_answer(case: Case) -> Finding | None:
    """A run that was sent and that its agent has not answered."""
    sent = case.last(Mark.SENT)
    if sent is None or case.last(Mark.REPLIED) is not None:
        return None
    waited = case.since(sent)
    if waited is not None and waited < DEFAULT_AGENT_START_S:
        return Finding(Code.RUNNING, f"It was sent to its agent{_ago(waited)}.", SURE, (sent,), Mark.REPLIED)
    return Finding(
        Code.REPLY_LOST,
        f"It was sent to its agent{_ago(waited)}, which has not answered.",
        LIKELY,
        (sent, case.last(Mark.REPLY_WAIT)),
        Mark.REPLIED,
        doubts=() if case.agent_seen else ("nothing that its agent wrote was read",),
    )


def by_record(case: Case) -> Finding | None:
    """What is left when only the record tells."""
    waited = _pending_s(case)
    limit = _agent_limit_s(case)
    if waited is not None and waited <= limit + GRACE_S:
        return Finding(Code.AGENT_STARTING, f"It was asked for{_ago(waited)}.", PLAUSIBLE, limit_s=limit)
    return Finding(
        Code.AGENT_NEVER_STARTED,
        f"It is pending{_for(waited)} without saying why: most likely its agent never answered.",
        PLAUSIBLE,
        missing=Mark.AGENT_ALIVE,
        limit_s=limit,
        doubts=("no line of the supervisor about this run was read",),
    )


RULES: tuple[Rule, ...] = (
    ended_in_slurm,
    login_needed,
    agent_timeout,
    restarted,
    slot,
    agent_start,
    queued_on_cluster,
    sent_without_answer,
    by_record,
)
"""For a job that is pending, in the order in which they are asked."""


def _agent_limit_s(case: Case) -> float:
    driver = case.run.driver if case.run is not None else None
    if driver is None:
        driver = "SbatchDriver" if case.is_sbatch else None
    return AGENT_START_S.get(driver or "", DEFAULT_AGENT_START_S)


def _pending_s(case: Case) -> float | None:
    if case.job is not None and case.job.queued_at is not None and not case.is_record_old:
        return max(0.0, seconds_between(case.job.queued_at, case.now))
    created = case.run.created_at if case.run is not None else None
    return None if created is None else max(0.0, seconds_between(created, case.now))


def _for(seconds: float | None) -> str:
    return "" if seconds is None else f" for {age(seconds)}"


def _ago(seconds: float | None) -> str:
    return "" if seconds is None else f" {age(seconds)} ago"
