"""The steps an op must pass, as data, and how long each takes here.

Basis: Sirepo's supervisor, drivers and agents of today and of March 2020 (docs/verdicts.md has the flow in
words). An agent's own steps are optional: its log may be on another host, and a supervisor that forwards it
loses lines.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum

from jobtui.analysis.times import duration
from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.ops import Op, Step
from jobtui.model.verdicts import Usual


class Mark(StrEnum):
    """A step of the flow, in the words of verdicts."""

    REQUESTED = "the request"
    CREATED = "the op's creation"
    ASSIGNED = "the driver's assignment"
    AGENT_START = "the agent's start"
    AGENT_WAIT = "the wait for the agent"
    AGENT_ALIVE = "the agent's first message"
    SLOT_WAIT = "the wait for a slot"
    SLOT_GOT = "the slot"
    SENT = "the op's sending"
    REPLY_WAIT = "the wait for the reply"
    ARRIVED = "the op's arrival at the agent"
    STARTED = "the start of job_cmd"
    STDERR = "what job_cmd wrote on stderr"
    EXITED = "the exit of job_cmd"
    REPLIED = "the agent's reply"
    UPDATED = "news of the run"
    FINAL = "the end of the run"
    CANCEL = "the cancel"
    TIME_LIMIT = "the time limit"
    KILLED = "the kill of job_cmd"
    AGENT_TIMEOUT = "the end of the wait for the agent"
    AGENT_GONE = "the loss of the agent"
    RESTARTED = "the supervisor's restart"
    FOUND_GONE = "the cancel after the supervisor's restart"
    REFUSED = "the failure of the request"
    GIVEN_UP = "the op's end without a reply"
    RUN_STATUS = "the answer to run_status"
    NOT_DELIVERED = "the failed sending"
    SBATCH_REFUSED = "sbatch's refusal"


_WORDS: Mapping[Mark, tuple[str, ...]] = {
    Mark.REQUESTED: ("request", "analysis wanted"), Mark.CREATED: ("op created",),
    Mark.ASSIGNED: ("driver assigned",), Mark.AGENT_START: ("agent start",),
    Mark.AGENT_WAIT: ("waits for the agent", "agent start delayed"), Mark.AGENT_ALIVE: ("agent alive",),
    Mark.SLOT_WAIT: ("waits for a slot", "waits for the run dir"), Mark.SLOT_GOT: ("got the slot",),
    Mark.SENT: ("sent",), Mark.REPLY_WAIT: ("waits for the reply",), Mark.ARRIVED: ("arrived",),
    Mark.STARTED: ("job_cmd started",), Mark.STDERR: ("job_cmd wrote", "job_cmd raised"),
    Mark.EXITED: ("job_cmd exited", "job_cmd ended"),
    Mark.KILLED: ("kills job_cmd", "cancels job_cmd", "scancel"), Mark.REPLIED: ("reply",),
    Mark.UPDATED: ("update", "status"), Mark.CANCEL: ("canceled by the user", "canceled", "cancel"),
    Mark.TIME_LIMIT: ("canceled by the time limit", "time limit reached"),
    Mark.AGENT_TIMEOUT: ("agent did not start in time",),
    Mark.AGENT_GONE: ("agent lost", "agent exited", "agent killed"),
    Mark.FOUND_GONE: ("canceled, was live when the supervisor stopped",),
    Mark.RESTARTED: ("supervisor restarted",),
    Mark.REFUSED: ("request failed", "exception in the supervisor", "op failed"),
    Mark.GIVEN_UP: ("destroyed, no reply", "given up before it was sent"),
    Mark.RUN_STATUS: ("run_status result",), Mark.NOT_DELIVERED: ("not delivered",),
    Mark.SBATCH_REFUSED: ("sbatch refused",),
}  # fmt: skip
WORDS: Mapping[str, Mark] = {word: mark for mark, words in _WORDS.items() for word in words}
"""The step of the flow for the words of a timeline. Longer words come before shorter ones."""

FINAL_WORDS: Mapping[str, str] = {
    f"status {word}": word for word in ("completed", "error", "canceled", "missing", "job_run_purged")
}


RUN_FLOW: tuple[tuple[Mark, Mark], ...] = (
    (Mark.CREATED, Mark.REQUESTED),
    (Mark.ASSIGNED, Mark.CREATED),
    (Mark.AGENT_ALIVE, Mark.AGENT_WAIT),
    (Mark.SLOT_GOT, Mark.SLOT_WAIT),
    (Mark.SENT, Mark.ASSIGNED),
    (Mark.REPLIED, Mark.SENT),
    (Mark.FINAL, Mark.REPLIED),
)
"""The steps that a run must pass, in order, each with the one after which it must come.

A step counts only if the one before it was seen.
"""

NEVER_WITHOUT: Mapping[Mark, Mark] = {
    Mark.ASSIGNED: Mark.CREATED,
    Mark.SENT: Mark.ASSIGNED,
    Mark.REPLY_WAIT: Mark.SENT,
    Mark.REPLIED: Mark.REPLY_WAIT,
    Mark.STARTED: Mark.ARRIVED,
    Mark.EXITED: Mark.STARTED,
    Mark.FINAL: Mark.UPDATED,
}
"""Steps that one process writes in this order: if only the later one was read, lines are missing."""

AGENT_START_S: Mapping[str, float] = {"LocalDriver": 5.0, "DockerDriver": 8.0, "SbatchDriver": 15.0}
DEFAULT_AGENT_START_S = 15.0


def mark_of(step: Step) -> Mark | None:
    if step.step in FINAL_WORDS:
        return Mark.FINAL
    exact = WORDS.get(step.step)
    if exact is not None:
        return exact
    # "reply ok", "job_cmd exited -9", "status running": the words before what varies
    first, _, _ = step.step.rpartition(" ")
    return WORDS.get(first) or WORDS.get(first.rpartition(" ")[0])


def missing_mark(op: Op) -> Mark | None:
    """The first step of a run that is overdue; None if there is none.

    A later step proves that an earlier one came, though its line is missing.
    """
    seen = {mark_of(step) for step in op.steps}
    came = max((at for at, (mark, _) in enumerate(RUN_FLOW) if mark in seen), default=-1)
    return next((mark for mark, after in RUN_FLOW[came + 1 :] if after in seen), None)


def gaps(op: Op) -> tuple[str, ...]:
    """The steps of an op that were read without the one that must come before them, in words."""
    seen = {mark_of(step) for step in op.steps}
    return tuple(
        f"{mark.value} without {before.value}"
        for mark, before in NEVER_WITHOUT.items()
        if mark in seen and before not in seen
    )


LEAST_RUNS = 3
"""With fewer runs nothing is said about what is usual."""
TELLING_RUNS = 20
"""With this many runs the longest of them define what is late."""
LEAST_BEYOND_S, BEYOND = 10.0, 0.2
"""A step is late if it takes longer than 99 of 100 by this many seconds and by this share."""


def usual_of(seconds: Sequence[float]) -> Usual | None:
    if len(seconds) < LEAST_RUNS:
        return None
    ordered = sorted(seconds)
    return Usual(len(ordered), _quantile(ordered, 0.5), _quantile(ordered, 0.99))


def is_beyond(seconds: float, usual: Usual | None) -> bool:
    """Whether it takes longer than usual; False if too few runs are known."""
    if usual is None or usual.n < TELLING_RUNS:
        return False
    return seconds > usual.p99_s + max(LEAST_BEYOND_S, BEYOND * usual.p99_s)


def usual_words(usual: Usual) -> str:
    """The usual time as text: "usually 2m (p99 5m, n=34)", or that there are few runs."""
    spread = f"p99 {duration(usual.p99_s)}, n={usual.n}"
    if usual.n < TELLING_RUNS:
        spread = f"n={usual.n}, too few to tell what is late"
    return f"usually {duration(usual.p50_s)} ({spread})"


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, max(0, -(-int(share * 100) * len(ordered) // 100) - 1))]


def usual_steps(runs: Iterable[Op]) -> dict[Mark, Usual]:
    """How long each needed step takes after the one before it, by the mark at its end."""
    taken: dict[Mark, list[float]] = {}
    for run in runs:
        times: dict[Mark, Nanos] = {}
        for step in run.steps:
            mark = mark_of(step)
            if mark is not None and step.at is not None:
                times.setdefault(mark, step.at)
        for mark, after in RUN_FLOW:
            begin, end = times.get(after), times.get(mark)
            if begin is not None and end is not None and end >= begin:
                taken.setdefault(mark, []).append(seconds_between(begin, end))
    return {mark: found for mark, seconds in taken.items() if (found := usual_of(seconds)) is not None}


def usual_length(runs: Iterable[Op]) -> Usual | None:
    taken = [
        seconds_between(run.sent_at, run.ended_at)
        for run in runs
        if run.sent_at is not None
        and run.ended_at is not None
        and run.ended_at >= run.sent_at
        and run.result in (None, "completed", "ok")
    ]
    return usual_of(taken)
