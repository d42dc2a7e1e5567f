"""Two runs beside each other: which one to compare with, what differs, and where the time went."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import unified_diff
from typing import NamedTuple

from jobtui.analysis.last_good import last_good, last_good_like
from jobtui.analysis.run_steps import StepPair, step_pairs
from jobtui.analysis.time_words import duration
from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, JobStatus, Run
from jobtui.model.ops import Agent, Op
from jobtui.model.secrets import mask_document, mask_text
from jobtui.model.slurm import SYSTEM as SLURM

DIFF_LINES = 200
"""Lines of a difference of files that are shown."""
EVERYDAY = frozenset({"agent start", "waits for the agent", "agent alive"})
"""Steps that a run has or lacks by whether its user's agent was there already: they part no two runs."""


class Side(NamedTuple):
    """One of the two: a run of a job, with the ops of that run and its agent."""

    job: Job
    run: Run | None
    ops: tuple[Op, ...]
    agent: Agent | None = None

    @property
    def host(self) -> str | None:
        """Where it ran, as far as the logs tell."""
        return self.agent.host if self.agent is not None else None

    @property
    def title(self) -> str:
        """How it is called."""
        return self.job.id if self.run is None else f"{self.job.id} run {self.run.number}"


class FactPair(NamedTuple):
    """A fact of both sides; "" where it is not known."""

    name: str
    left: str
    right: str

    @property
    def differs(self) -> bool:
        """Whether both are known, and not the same."""
        return bool(self.left) and bool(self.right) and self.left != self.right


class FileDiff(NamedTuple):
    """How a file of two run directories differs, as lines of a unified diff, or `note`: why there is none."""

    name: str
    lines: tuple[str, ...] = ()
    left_out: int = 0
    note: str = ""


class Comparison(NamedTuple):
    """What comparing gives."""

    left: Side
    right: Side
    why: str
    facts: tuple[FactPair, ...]
    steps: tuple[StepPair, ...]
    files: tuple[FileDiff, ...]

    @property
    def first_difference(self) -> StepPair | None:
        """The step at which the two part."""
        return next((pair for pair in self.steps if pair.parts), None)

    @property
    def slowest(self) -> StepPair | None:
        """The step that took most longer in the first than in the second."""
        slower = [pair for pair in self.steps if pair.component is not None and lost_s(pair) > 0]
        return max(slower, key=lost_s, default=None)


class Choice(NamedTuple):
    """What to compare with: a run of the same job, or another job; and why that one."""

    job_id: JobId
    number: int | None
    why: str


def lost_s(pair: StepPair) -> float:
    """How many seconds more a step took in the first of two runs."""
    left, right = (took.seconds if took is not None else None for took in (pair.left, pair.right))
    return 0.0 if left is None or right is None else left - right


def choose(job: Job, runs: Sequence[Run], jobs: Iterable[Job]) -> Choice | None:
    """What to compare a job with: its own last good run, else one of its model and user, else of it."""
    if runs and (own := last_good(runs, runs[-1].number)) is not None:
        return Choice(job.id, own.number, "the last good run of the same job")
    if job.system == SLURM:
        like = last_good_like(job, jobs)
        return None if like is None else Choice(like.id, None, "the last good job of the same name and user")
    good = [
        one
        for one in jobs
        if one.id != job.id
        and one.status is JobStatus.COMPLETED
        and (one.system, one.app, one.model, one.mode) == (job.system, job.app, job.model, job.mode)
    ]
    same_user = [one for one in good if one.owner == job.owner]
    newest = max(same_user or good, key=lambda one: one.ended_at or 0, default=None)
    if newest is None:
        return None
    whose = "the same user" if same_user else "another user"
    return Choice(newest.id, None, f"the last good run of {job.model or job.app} by {whose}")


def compare(left: Side, right: Side, why: str, now: Nanos, files: Iterable[FileDiff] = ()) -> Comparison:
    """Two runs beside each other."""
    steps = _parted(step_pairs(left.ops, right.ops, now))
    return Comparison(left, right, why, tuple(_facts(left, right)), steps, tuple(files))


def _parted(pairs: Sequence[StepPair]) -> tuple[StepPair, ...]:
    """The pairs with the first difference that tells something marked as such."""
    telling = (at for at, pair in enumerate(pairs) if pair.is_in_one and pair.text not in EVERYDAY)
    place = next(telling, next((at for at, pair in enumerate(pairs) if pair.parts), None))
    return tuple(pair._replace(parts=at == place) for at, pair in enumerate(pairs))


def _facts(left: Side, right: Side) -> Iterator[FactPair]:
    pairs = zip(_facts_of(left), _facts_of(right), strict=True)
    for (name, one), (_, two) in pairs:
        if one or two:
            yield FactPair(name, one, two)


def _facts_of(side: Side) -> Iterator[tuple[str, str]]:
    run, job = side.run, side.job
    op = next((op for op in reversed(side.ops) if op.name == "run"), None)
    yield "state", (run.status if run is not None else job.status).value
    yield "error", (run.error if run is not None else job.error) or ""
    yield "user", job.owner
    yield "driver", (op.driver if op is not None else None) or ""
    yield "host", side.host or job.host or ""
    yield "agent", (op.agent if op is not None else None) or ""
    yield "container", (side.agent.container if side.agent is not None else None) or ""
    yield "image", (side.agent.image if side.agent is not None else None) or ""
    yield "mode", (run.mode if run is not None else None) or job.mode
    yield "waited", _between(_times(side)[0], _times(side)[1])
    yield "ran", _between(_times(side)[1], _times(side)[2])


def _times(side: Side) -> tuple[Nanos | None, Nanos | None, Nanos | None]:
    of: Run | Job = side.run if side.run is not None else side.job
    return of.queued_at, of.started_at, of.ended_at


def _between(begin: Nanos | None, end: Nanos | None) -> str:
    return "" if begin is None or end is None else duration(seconds_between(begin, end))


def diff_files(name: str, left: str, right: str) -> FileDiff:
    """How two texts differ, secrets masked; JSON is compared by its content and not its layout."""
    one, two = (_readable(name, text) for text in (left, right))
    if one == two:
        return FileDiff(name, note="the same")
    lines = list(unified_diff(two, one, f"{name} (good)", f"{name} (this)", n=1, lineterm=""))
    return FileDiff(name, tuple(lines[:DIFF_LINES]), max(0, len(lines) - DIFF_LINES))


def _readable(name: str, text: str) -> list[str]:
    if name.endswith(".json"):
        try:
            document: Mapping[str, object] = json.loads(text)
            return json.dumps(mask_document(document), indent=1, sort_keys=True).splitlines()
        except (ValueError, RecursionError):
            pass
    return mask_text(text).splitlines()
