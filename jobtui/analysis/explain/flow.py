"""The steps an op must pass, as data, and how long each takes here.

Basis: Sirepo's supervisor, drivers and agents of today and of March 2020 (docs/verdicts.md has the flow in
words). An agent's own steps are optional: its log may be on another host, and a supervisor loses lines of it.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Self

from jobtui.analysis.times import duration
from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.ops import Op, Step
from jobtui.model.verdicts import UsualTime


class Mark(StrEnum):
    """A step of the flow, in the words of verdicts, and the words of a timeline that mean it."""

    _value_: str
    words: tuple[str, ...]

    def __new__(cls, value: str, *words: str) -> Self:
        mark = str.__new__(cls, value)
        mark._value_, mark.words = value, words
        return mark

    REQUESTED = "the request", "request", "analysis requested"
    CREATED = "the op's creation", "op created"
    ASSIGNED = "the driver's assignment", "driver assigned"
    AGENT_START = "the agent's start", "agent start"
    AGENT_WAIT = "the wait for the agent", "waits for the agent", "agent start delayed"
    AGENT_ALIVE = "the agent's first message", "agent alive"
    SLOT_WAIT = "the wait for a slot", "waits for a slot", "waits for the run dir"
    SLOT_GOT = "the slot", "got the slot"
    SENT = "the op's sending", "sent"
    REPLY_WAIT = "the wait for the reply", "waits for the reply"
    ARRIVED = "the op's arrival at the agent", "arrived"
    STARTED = "the start of job_cmd", "job_cmd started"
    STDERR = "what job_cmd wrote on stderr", "job_cmd wrote", "job_cmd raised"
    EXITED = "the exit of job_cmd", "job_cmd exited", "job_cmd ended"
    REPLIED = "the agent's reply", "reply"
    UPDATED = "an update of the run", "update", "status"
    FINAL = "the end of the run"
    CANCEL = "the cancel", "canceled by the user", "canceled", "cancel"
    TIME_LIMIT = "the time limit", "canceled by the time limit", "time limit reached"
    KILLED = "the kill of job_cmd", "kills job_cmd", "cancels job_cmd", "scancel"
    AGENT_TIMEOUT = "the end of the wait for the agent", "agent did not start in time"
    AGENT_GONE = "the loss of the agent", "agent lost", "agent exited", "agent killed"
    RESTARTED = "the supervisor's restart", "supervisor restarted"
    FOUND_GONE = "the cancel after the supervisor's restart", "canceled, was live when the supervisor stopped"
    REFUSED = "the failure of the request", "request failed", "exception in the supervisor", "op failed"
    GIVEN_UP = "the op's end without a reply", "destroyed, no reply", "abandoned before it was sent"
    RUN_STATUS = "the answer to run_status", "run_status result"
    NOT_DELIVERED = "the failed sending", "not delivered"
    SBATCH_REFUSED = "sbatch's refusal", "sbatch refused"


WORDS: Mapping[str, Mark] = {word: mark for mark in Mark for word in mark.words}
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
    Mark.UPDATED: Mark.REPLIED,
    Mark.FINAL: Mark.UPDATED,
}
"""Steps that one process writes in this order: if only the later one was read, lines are missing."""

START_S: Mapping[str, float] = {"LocalDriver": 5.0, "DockerDriver": 8.0}
MOST_START_S = 15.0
"""How long an agent may take to start at a site that does not set it, by its driver, and of any driver."""


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
"""With fewer runs nothing is called usual."""
TELLING_RUNS = 20
"""With this many runs the longest of them define what is late."""
LEAST_BEYOND_S, BEYOND = 10.0, 0.2
"""A step is late if it takes longer than 99 of 100 by this many seconds and by this share."""


def usual_of(seconds: Sequence[float]) -> UsualTime | None:
    if len(seconds) < LEAST_RUNS:
        return None
    ordered = sorted(seconds)
    return UsualTime(len(ordered), _quantile(ordered, 0.5), _quantile(ordered, 0.99))


def is_beyond(seconds: float, usual: UsualTime | None) -> bool:
    """Whether it takes longer than usual; False if too few runs are known."""
    if usual is None or usual.n < TELLING_RUNS:
        return False
    return seconds > usual.p99_s + max(LEAST_BEYOND_S, BEYOND * usual.p99_s)


def usual_words(usual: UsualTime) -> str:
    """The usual time as text: "usually 2m (99 % within 5m, of 34)", or that there are few runs."""
    spread = f"99 % within {duration(usual.p99_s)}, of {usual.n}"
    if usual.n < TELLING_RUNS:
        spread = f"of {usual.n}, too few to say what is late"
    return f"usually {duration(usual.p50_s)} ({spread})"


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, max(0, -(-int(share * 100) * len(ordered) // 100) - 1))]


def usual_steps(runs: Iterable[Op]) -> dict[Mark, UsualTime]:
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


def usual_length(runs: Iterable[Op]) -> UsualTime | None:
    taken = [
        seconds_between(run.sent_at, run.ended_at)
        for run in runs
        if run.sent_at is not None
        and run.ended_at is not None
        and run.ended_at >= run.sent_at
        and run.result in (None, "completed", "ok")
    ]
    return usual_of(taken)
