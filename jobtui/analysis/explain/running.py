"""Rules for jobs that are said to run."""

from collections.abc import Callable

from jobtui.analysis.explain.case import Case
from jobtui.analysis.explain.finding import CERTAIN, LIKELY, PLAUSIBLE, STRONG, SURE, Finding, Rule
from jobtui.analysis.explain.flow import Mark
from jobtui.analysis.explain.on_cluster import ended_in_slurm
from jobtui.analysis.explain.waiting import restarted, sent_without_answer
from jobtui.analysis.flags import STALE_S, limit_s
from jobtui.analysis.time_words import age
from jobtui.analysis.usual import is_beyond, usual_words
from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.ops import OpStatus, Step
from jobtui.model.verdicts import Code

NEWS_S = 10.0
"""How long the end of a program may take to become known."""
CANCEL_S = 30.0
"""How long a cancel may take: an agent asks, then kills."""
QUIET_S = 60.0
"""News older than this do not prove that a run lives; a sequential one tells its start and its end only."""
LIMIT_GRACE_S = 60.0
_TERMINATED = "returncode=-15"


def agent_gone(case: Case) -> Finding | None:
    """A run whose agent went away while it had it, and that nobody has asked about since."""
    gone = case.last(Mark.AGENT_GONE)
    if gone is None or case.is_sbatch or _is_asked_about(case):
        return None
    doubts = [words for words, applies in LOSS_DOUBTS if applies(case, gone)]
    return Finding(
        Code.AGENT_LOST,
        f"Its agent went away{_ago(case, gone)} while it had the run; the record still says {case.status}, "
        "until somebody asks for the job.",
        LIKELY if doubts else SURE,
        (case.last(Mark.SENT), gone),
        Mark.FINAL,
        doubts=tuple(doubts),
    )


LOSS_DOUBTS: tuple[tuple[str, Callable[[Case, Step], bool]], ...] = (
    (
        "it ended its program first, as when its supervisor is stopped",
        lambda case, gone: case.last(Mark.KILLED) is not None or _TERMINATED in gone.text,
    ),
    (
        "no later line of the same supervisor was read: it may have been stopped, and its agent with it",
        lambda case, gone: not case.is_supervisor_heard_after(gone),
    ),
)
"""What speaks for a supervisor that was stopped rather than an agent that was lost."""


def cancel_unconfirmed(case: Case) -> Finding | None:
    """A cancel that its agent has not confirmed."""
    cancel = next((op for op in reversed(case.later) if op.name == "cancel"), None)
    if cancel is None or cancel.replies or cancel.status is OpStatus.ENDED:
        return None
    asked = cancel.steps[0] if cancel.steps else None
    waited = case.since(asked)
    if (waited is not None and waited < CANCEL_S) or case.last(Mark.EXITED) is not None:
        return None
    how = "was sent to the agent and" if cancel.sends else "never left the supervisor:"
    is_heard = case.agent_seen and cancel.sends > 0 and waited is not None
    return Finding(
        Code.CANCEL_UNCONFIRMED,
        f"Its cancel{_ago(case, asked)} {how} nothing confirms it; the program may still run and "
        "hold its slot.",
        SURE if is_heard else LIKELY,
        (asked, cancel.steps[-1] if cancel.steps else None),
        Mark.REPLIED,
        CANCEL_S,
        silent_since=asked,
    )


def reply_lost(case: Case) -> Finding | None:
    """A program that has ended without the supervisor knowing."""
    exited = case.last(Mark.EXITED)
    if exited is None or case.ended_in_log is not None:
        return None
    waited = case.since(exited)
    if waited is None or waited < NEWS_S:
        return None
    return Finding(
        Code.REPLY_LOST,
        f"Its program ended{_ago(case, exited)} by what its agent wrote; the supervisor never heard of it.",
        STRONG if not case.is_log_behind else PLAUSIBLE,
        (case.last(Mark.SENT), exited),
        Mark.FINAL,
        NEWS_S,
        silent_since=exited,
    )


def ended_unwritten(case: Case) -> Finding | None:
    """A run whose end the log tells, with a record that still says otherwise."""
    ended = case.ended_in_log
    if ended is None or case.job is None:
        return None
    return Finding(
        Code.STALE_RECORD,
        f'The supervisor logged "{ended.step}"{_ago(case, ended)}, and the record still says {case.status}.',
        LIKELY,
        (ended,),
        doubts=("the record may just be being written",),
    )


def silent(case: Case) -> Finding | None:
    """A run that should have ended, or told something, long ago."""
    job = case.job
    if job is None:
        return None
    limit, ran = limit_s(job), job.elapsed_s(case.now)
    if limit is not None and ran is not None and ran > limit + LIMIT_GRACE_S:
        return Finding(
            Code.STALE_RECORD,
            f"It is said to run for {age(ran)}, though such runs are canceled after {age(limit)}: what wrote "
            "the record is most likely gone.",
            PLAUSIBLE if case.run is None else LIKELY,
            (case.last_step,),
            Mark.FINAL,
            limit,
        )
    quiet = _quiet_s(case)
    if quiet is not None and quiet > STALE_S.get(job.mode, float("inf")):
        return Finding(
            Code.STALE_RECORD,
            f"Nothing was heard of it for {age(quiet)}: what wrote the record is most likely gone.",
            PLAUSIBLE,
            (case.last_step,),
            Mark.UPDATED,
        )
    return None


def runs(case: Case) -> Finding:
    """It runs, as far as can be seen."""
    step = case.last(Mark.UPDATED, Mark.REPLIED, Mark.STARTED, Mark.SENT)
    quiet = _quiet_s(case)
    ran = case.job.elapsed_s(case.now) if case.job is not None else None
    length = "" if ran is None else f" for {age(ran)}{_beside_usual(case, ran)}"
    percent = "" if case.job is None or case.job.percent is None else f", {case.job.percent:.0f} % done"
    word = "" if quiet is None else f"; last news {age(quiet)} ago"
    if step is None:
        doubts: tuple[str, ...] = ("no line about this run was read: the record alone says so",)
        return Finding(Code.RUNNING, f"It runs{length}{percent}{word}.", PLAUSIBLE, doubts=doubts)
    alive = quiet is not None and quiet <= QUIET_S
    return Finding(
        Code.RUNNING,
        f"It runs{length}{percent}{word}.",
        SURE if alive and not case.is_log_behind else LIKELY,
        (case.last(Mark.SENT), step),
        doubts=() if alive else ("its last sign of life is old",),
    )


def _beside_usual(case: Case, ran: float) -> str:
    """How that compares with earlier runs, else with the limit."""
    if case.length is not None:
        late = "longer than " if is_beyond(ran, case.length) else ""
        return f", {late}{usual_words(case.length)}"
    limit = limit_s(case.job) if case.job is not None else None
    return "" if limit is None else f" of at most {age(limit)}"


def asked_again(case: Case) -> Finding | None:
    """The answer to a run_status that has not reached the record."""
    answer = case.later_step(Mark.RUN_STATUS)
    if answer is None or "canceled" not in answer.step:
        return None
    gone = case.last(Mark.AGENT_GONE)
    if gone is None:
        return None
    return Finding(
        Code.AGENT_LOST,
        f"Its agent went away{_ago(case, gone)} while it had the run; asked again, a new agent knew nothing "
        "of it.",
        CERTAIN,
        (gone, answer),
    )


RULES: tuple[Rule, ...] = (
    ended_in_slurm,
    restarted,
    asked_again,
    agent_gone,
    cancel_unconfirmed,
    ended_unwritten,
    reply_lost,
    sent_without_answer,
    silent,
    runs,
)
"""For a job that is running, in the order in which they are asked."""


def _is_asked_about(case: Case) -> bool:
    return any(op.name == "run_status" and (op.replies or op.result) for op in case.later)


def _quiet_s(case: Case) -> float | None:
    """Seconds since anything was heard of the run."""
    job = case.job
    record = (job.written_at, job.updated_at, job.started_at) if job is not None else ()
    steps = case.run.steps if case.run is not None else ()
    times: list[Nanos] = [at for at in (*record, *(step.at for step in steps)) if at is not None]
    return max(0.0, seconds_between(max(times), case.now)) if times else None


def _ago(case: Case, step: Step | None) -> str:
    seconds = case.since(step)
    return "" if seconds is None else f" {age(seconds)} ago"
