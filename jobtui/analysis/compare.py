"""Compares two runs: which one to compare with, what differs, which steps took longer. All text is masked."""

import json
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher, unified_diff
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from jobtui.analysis.timeline import op_duration_s, ops_in, window_of
from jobtui.analysis.times import duration
from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.ids import JobId
from jobtui.model.jobs import SLURM, Job, JobDetail, JobStatus, Run
from jobtui.model.numbers import read_json
from jobtui.model.ops import Agent, Component, Op
from jobtui.model.secrets import mask_document, mask_text
from jobtui.model.verdicts import Cause, RunHistory, Verdict

if TYPE_CHECKING:
    from jobtui.analysis.scripts import ScriptDiff


def last_good(runs: Sequence[Run], number: int) -> Run | None:
    """Another completed run: the last one before run `number`, else the newest after it."""
    good = [run for run in runs if run.status is JobStatus.COMPLETED and run.number != number]
    before = [run for run in good if run.number < number]
    return next(reversed(before or good), None)


def is_alike(job: Job, one: Job) -> bool:
    """Whether two jobs can be compared: in Slurm they have one name and user, else one model.

    Tasks of one array are no two jobs: they have one script.
    """
    if job.system == SLURM:
        is_of_array = job.id.partition("_")[0] == one.id.partition("_")[0]
        return (job.system, job.owner, job.name) == (one.system, one.owner, one.name) and not is_of_array
    same = job.app == one.app and (job.system, job.model, job.mode) == (one.system, one.model, one.mode)
    return same and job.id != one.id


CLUTTER = frozenset({"run_status", "begin_session"})
"""Ops that only ask for a state or start an agent: hidden by default, and not compared."""
EVERYDAY = frozenset({"agent start", "waits for the agent", "agent alive"})
"""Steps that depend on whether the user's agent was running already: they are no difference."""
SLOWER_S, SLOWER_TIMES = 1.0, 2.0
"""A step is slower if it took this many seconds more and this many times as long."""

T = TypeVar("T")


class StepTime(NamedTuple):
    """A step of an op at its first occurrence: how long after the step before it, and how often it came."""

    seconds: float | None
    times: int = 1


class StepPair(NamedTuple):
    """A step, or an op if there is no `component`, in two runs; None for the run that lacks it.

    `parts`: this is the first difference.
    """

    text: str
    component: Component | None
    left: StepTime | None
    right: StepTime | None
    parts: bool = False

    @property
    def is_in_one(self) -> bool:
        return (self.left is None) != (self.right is None)

    @property
    def lost_s(self) -> float:
        """How many seconds more it took in the first run."""
        left, right = (took.seconds if took else None for took in (self.left, self.right))
        return 0.0 if left is None or right is None else left - right

    @property
    def is_slower(self) -> bool:
        """Whether the first run took much longer for it."""
        longest = self.left.seconds if self.left else None
        return self.lost_s >= SLOWER_S and self.lost_s * SLOWER_TIMES >= (longest or 0.0) * (SLOWER_TIMES - 1)


def step_pairs(left: Sequence[Op], right: Sequence[Op], now: Nanos) -> tuple[StepPair, ...]:
    """The ops of two runs with their steps, in the order of the first run. The first difference is marked.

    It is the first significant step that only one run has, else the first that was much slower in the first.
    """
    mine, theirs = ([op for op in ops if op.name not in CLUTTER] for ops in (left, right))
    paired = _paired(mine, theirs, lambda op: op.name)
    pairs = [pair for ops in paired for pair in _of_ops(*ops, now)]
    # What both have in another order is no difference: lines of one second come as they are written
    lone = {(pair.component, pair.text, pair.left is None) for pair in pairs if pair.is_in_one}
    in_one = [
        at
        for at, pair in enumerate(pairs)
        if pair.is_in_one and (pair.component, pair.text, pair.left is not None) not in lone
    ]
    telling = [at for at in in_one if pairs[at].text not in EVERYDAY]
    slower = [at for at, pair in enumerate(pairs) if pair.component and pair.is_slower]
    for at in (*telling, *in_one, *slower)[:1]:
        pairs[at] = pairs[at]._replace(parts=True)
    return tuple(pairs)


def _of_ops(left: Op | None, right: Op | None, now: Nanos) -> Iterator[StepPair]:
    named = left or right
    assert named is not None
    durations = [StepTime(op_duration_s(op, now)) if op else None for op in (left, right)]
    yield StepPair(named.name, None, durations[0], durations[1])
    mine, other = (_took(op) if op else {} for op in (left, right))
    for one, two in _paired(list(mine), list(other), lambda key: key):
        key = one or two
        assert key is not None
        yield StepPair(key[1], key[0], mine[one] if one else None, other[two] if two else None)


def _took(op: Op) -> Mapping[tuple[Component, str], StepTime]:
    """Each step of an op at its first occurrence: a run that reports has the same step a thousand times."""
    found: dict[tuple[Component, str], StepTime] = {}
    before: Nanos | None = None
    for step in op.steps:
        key = (step.component, step.step)
        if key in found:
            found[key] = found[key]._replace(times=found[key].times + 1)
            continue
        since = None if before is None or step.at is None else seconds_between(before, step.at)
        found[key] = StepTime(None if since is None else max(0.0, since))
        before = step.at if step.at is not None else before
    return found


def _paired(
    left: Sequence[T], right: Sequence[T], key: Callable[[T], Hashable]
) -> Iterator[tuple[T | None, T | None]]:
    """Pairs of equal items of two sequences in order; an item that only one has is paired with None."""
    keys = [key(item) for item in left], [key(item) for item in right]
    matcher = SequenceMatcher(None, *keys, autojunk=False)
    for kind, left_begin, left_end, right_begin, right_end in matcher.get_opcodes():
        if kind == "equal":
            yield from zip(left[left_begin:left_end], right[right_begin:right_end], strict=True)
        else:
            yield from ((item, None) for item in left[left_begin:left_end])
            yield from ((None, item) for item in right[right_begin:right_end])


DIFF_LINES = 200


class RunSide(NamedTuple):
    """One side of a comparison: a run of a job, with its ops and its agent.

    `dirs` are the directories in which its files may be, `detail` is its record, `cause` the line of its
    output that says why the run failed, where these are known.
    """

    job: Job
    run: Run | None
    ops: tuple[Op, ...]
    agent: Agent | None = None
    dirs: tuple[str, ...] = ()
    detail: JobDetail | None = None
    cause: Cause | None = None

    @property
    def host(self) -> str | None:
        return self.agent.host if self.agent is not None else None

    @property
    def title(self) -> str:
        return self.job.id if self.run is None else f"{self.job.id} run {self.run.number}"


class FactPair(NamedTuple):
    """A fact of both sides; "" if it is not known."""

    name: str
    left: str
    right: str

    @property
    def differs(self) -> bool:
        return bool(self.left) and bool(self.right) and self.left != self.right


class FileDiff(NamedTuple):
    """The unified diff of a file in two run directories, or `note`: why there is none."""

    name: str
    lines: tuple[str, ...] = ()
    left_out: int = 0
    note: str = ""


class Comparison(NamedTuple):
    """The result. `doubts` say why it may be wrong, `blind_spots` what else is not known."""

    left: RunSide
    right: RunSide
    why: str
    facts: tuple[FactPair, ...]
    steps: tuple[StepPair, ...]
    files: tuple[FileDiff, ...]
    doubts: tuple[str, ...] = ()
    blind_spots: tuple[str, ...] = ()

    @property
    def slowest(self) -> StepPair | None:
        """The step with the largest extra time in the first run."""
        slower = [pair for pair in self.steps if pair.component is not None and pair.lost_s > 0]
        return max(slower, key=lambda pair: pair.lost_s, default=None)


class Partner(NamedTuple):
    job_id: JobId
    number: int | None
    why: str


def choose(job: Job, runs: Sequence[Run], jobs: Iterable[Job]) -> Partner | None:
    """What to compare a job with: its last good run, else one of its model and user, else of its model."""
    if runs and (own := last_good(runs, runs[-1].number)) is not None:
        return Partner(job.id, own.number, "the last good run of the same job")
    good = [one for one in jobs if one.status is JobStatus.COMPLETED and is_alike(job, one)]
    same_user = [one for one in good if one.owner == job.owner]
    like = same_user or good
    before = [one for one in like if 0 < (one.ended_at or 0) <= (job.queued_at or 0)]
    newest = max(before or like, key=lambda one: one.ended_at or 0, default=None)
    if newest is None:
        return None
    if job.system == SLURM:
        return Partner(newest.id, None, "the last good job of the same name and user")
    whose = "the same user" if same_user else "another user"
    return Partner(newest.id, None, f"the last good run of {job.model or job.app} by {whose}")


def compare(
    left: RunSide,
    right: RunSide,
    why: str,
    now: Nanos,
    files: Iterable[FileDiff] = (),
    verdicts: Sequence[Verdict] = (),
    source_doubts: Iterable[str] = (),
) -> Comparison:
    """Compare two runs. Doubts about their jobs, or about sources, are doubts about the result."""
    steps = step_pairs(left.ops, right.ops, now)
    doubts = dict.fromkeys((*source_doubts, *_doubts_of(verdicts, lambda verdict: verdict.doubts)))
    spots = dict.fromkeys(_doubts_of(verdicts, lambda verdict: verdict.blind_spots))
    others = tuple(spot for spot in spots if spot not in doubts)
    facts = tuple(_facts(left, right))
    return Comparison(left, right, why, facts, steps, tuple(files), tuple(doubts), others)


def _doubts_of(verdicts: Sequence[Verdict], get: Callable[[Verdict], Iterable[str]]) -> Iterator[str]:
    """The doubts about both, and those about one with its id, unless the text names a source."""
    for verdict in verdicts:
        for text in get(verdict):
            is_own = len(verdicts) > 1 and text.startswith("its ")
            yield f"{verdict.job_id}: {text}" if is_own else text


def _facts(left: RunSide, right: RunSide) -> Iterator[FactPair]:
    for (name, one), (_, two) in zip(_facts_of(left), _facts_of(right), strict=True):
        if one or two:
            yield FactPair(name, one, two)


def _facts_of(side: RunSide) -> Iterator[tuple[str, str]]:
    job, of, agent = side.job, side.run or side.job, side.agent
    op = next((op for op in reversed(side.ops) if op.name == "run"), None)
    yield "state", of.status.value
    yield "error", (of.error or "") if side.cause is None else side.cause.text
    yield "user", job.owner
    yield "driver", (op.driver if op is not None else None) or ""
    yield "host", side.host or job.host or ""
    yield "agent", (op.agent if op is not None else None) or ""
    yield "container", (agent.container if agent is not None else None) or ""
    yield "image", (agent.image if agent is not None else None) or ""
    yield "mode", of.mode or job.mode
    for name, begin, end in (("waited", of.queued_at, of.started_at), ("ran", of.started_at, of.ended_at)):
        yield name, "" if begin is None or end is None else duration(seconds_between(begin, end))


def diff_files(name: str, left: str, right: str) -> FileDiff:
    """The diff of two texts with secrets masked. JSON is compared by content and not by layout."""
    one, two = (_readable(name, text) for text in (left, right))
    if one == two:
        return FileDiff(name, note="the same")
    lines = list(unified_diff(two, one, f"{name} (good)", f"{name} (this)", n=1, lineterm=""))
    return FileDiff(name, tuple(lines[:DIFF_LINES]), max(0, len(lines) - DIFF_LINES))


def _readable(name: str, text: str) -> list[str]:
    if name.endswith(".json"):
        try:
            return json.dumps(mask_document(read_json(text)), indent=1, sort_keys=True).splitlines()
        except (ValueError, RecursionError):
            pass
    return mask_text(text).splitlines()


TELLING_FACTS = frozenset({"user", "driver", "host", "image", "mode"})
"""Facts that may explain why one run failed and another one did not."""
FINAL = ("status ", "reply ", "job_cmd exited", "job_cmd ended")


def history_of(
    job: Job, runs: Sequence[Run], ops: Sequence[Op], like: tuple[Job, tuple[Op, ...]] | None = None
) -> RunHistory | None:
    """How earlier runs of a job, else a good job like it, compare with its last run, which failed."""
    last = runs[-1]
    before = [run for run in runs[:-1] if run.queued_at is not None or run.started_at is not None]
    alike = tuple(run.number for run in before if last.error and run.error == last.error)
    this = RunSide(job, last, ops_in(window_of(runs, last.number), ops))
    if (good := last_good(before, last.number)) is not None:
        other = RunSide(job, good, ops_in(window_of(runs, good.number), ops))
        differs = tuple(map(mask_text, (*_facts_apart(this, other), *_steps_apart(this, other))))
        return RunHistory(alike, good.number, good.ended_at or good.started_at, differs)
    if like is not None:  # the logs of another job may not be read as far back: its steps tell nothing
        differs = tuple(map(mask_text, _facts_apart(this, RunSide(like[0], None, like[1]))))
        return RunHistory(alike, good_at=like[0].ended_at, differs=differs, good_job=like[0].id)
    return RunHistory(alike) if alike else None


def _facts_apart(this: RunSide, good: RunSide) -> Iterator[str]:
    for fact in _facts(this, good):
        if fact.differs and fact.name in TELLING_FACTS:
            yield f"{fact.name} {fact.left}, {fact.right} in the good one"


def _steps_apart(this: RunSide, good: RunSide) -> Iterator[str]:
    mine, theirs = ([s.step for op in one.ops if op.name == "run" for s in op.steps] for one in (this, good))
    for own, other, whose in ((mine, theirs, "this run"), (theirs, mine, "the good one")):
        only = (step for step in own if other and step not in other and step not in EVERYDAY)
        if missing := next((step for step in only if not step.startswith(FINAL)), None):
            yield f"only {whose} has: {missing}"


SCRIPT, ENVIRONMENT = "script", "environment"


def script_files(diff: "ScriptDiff") -> tuple[FileDiff, ...]:
    """The same as diffs of two files. Variables that differ between any two jobs are only counted."""
    note = diff.note
    if diff.folded:
        noise = f"{diff.folded} more differ in dates, ids and ports only"
        note = f"{note}; {noise}" if note else noise
    pairs = ((row.other, row.this) for row in diff.rows if row.differs)
    variables = (
        tuple(None if value is None else f"{one.name}={value}" for value in (one.other, one.this))
        for one in diff.variables
        if one.differs
    )
    return (
        _as_file(SCRIPT, (line for other, this in pairs for line in _changed(other, this)), note),
        _as_file(ENVIRONMENT, (line for other, this in variables for line in _changed(other, this)), ""),
    )


def _changed(other: str | None, this: str | None) -> Iterator[str]:
    if other is not None:
        yield f"-{other}"
    if this is not None:
        yield f"+{this}"


def _as_file(name: str, lines: Iterable[str], note: str) -> FileDiff:
    found = tuple(lines)
    if not found:
        note = f"the same; {note}" if note else "the same"
    return FileDiff(name, found[:DIFF_LINES], max(0, len(found) - DIFF_LINES), note)
