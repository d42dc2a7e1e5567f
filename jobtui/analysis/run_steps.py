"""Two runs of a job beside each other: their ops and steps in pairs, what each took, where they part."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple, TypeVar

from jobtui.analysis.timeline import op_duration_s
from jobtui.model.clock import Nanos, seconds_between
from jobtui.model.ops import Component, Op

CLUTTER = frozenset({"run_status", "begin_session"})
"""Ops that only ask how things are or wake an agent: hidden until asked for, and not compared."""
SLOWER_S, SLOWER_TIMES = 1.0, 2.0
"""A step that took so many seconds more, and so many times as long, is called slower."""

T = TypeVar("T")


class Took(NamedTuple):
    """A step of an op, by when it came first: how long after the step before it, and how often it came."""

    seconds: float | None
    times: int = 1


class StepPair(NamedTuple):
    """A step, or an op where there is no `component`, in two runs; None in the one that lacks it.

    `parts`: here the two first differ.
    """

    text: str
    component: Component | None
    left: Took | None
    right: Took | None
    parts: bool = False

    @property
    def is_in_one(self) -> bool:
        """Whether only one of the runs has it."""
        return (self.left is None) != (self.right is None)

    @property
    def is_slower(self) -> bool:
        """Whether the first run took much longer for it."""
        left, right = (took.seconds if took else None for took in (self.left, self.right))
        if left is None or right is None:
            return False
        return left - right >= SLOWER_S and left >= SLOWER_TIMES * right


def step_pairs(left: Sequence[Op], right: Sequence[Op], now: Nanos) -> tuple[StepPair, ...]:
    """The ops of two runs and the steps of each, in the order of the first; the first difference is marked.

    That is the first step which only one of them has, else the first that took much longer in the first run.
    """
    pairs = [pair for ops in _paired(_plain(left), _plain(right), _name) for pair in _of_ops(*ops, now)]
    found = next((at for at, pair in enumerate(pairs) if pair.is_in_one), None)
    if found is None:
        found = next((at for at, pair in enumerate(pairs) if pair.component and pair.is_slower), None)
    if found is not None:
        pairs[found] = pairs[found]._replace(parts=True)
    return tuple(pairs)


def _plain(ops: Sequence[Op]) -> list[Op]:
    return [op for op in ops if op.name not in CLUTTER]


def _name(op: Op) -> str:
    return op.name


def _of_ops(left: Op | None, right: Op | None, now: Nanos) -> Iterator[StepPair]:
    named = left or right
    assert named is not None
    durations = [Took(op_duration_s(op, now)) if op else None for op in (left, right)]
    yield StepPair(named.name, None, durations[0], durations[1])
    mine, other = (_took(op) if op else {} for op in (left, right))
    for one, two in _paired(list(mine), list(other), lambda key: key):
        key = one or two
        assert key is not None
        yield StepPair(key[1], key[0], mine[one] if one else None, other[two] if two else None)


def _took(op: Op) -> Mapping[tuple[Component, str], Took]:
    """Each step of an op where it came first: a run that reports tells the same step a thousand times."""
    found: dict[tuple[Component, str], Took] = {}
    before: Nanos | None = None
    for step in op.steps:
        key = (step.component, step.step)
        if key in found:
            found[key] = found[key]._replace(times=found[key].times + 1)
            continue
        since = None if before is None or step.at is None else seconds_between(before, step.at)
        found[key] = Took(None if since is None else max(0.0, since))
        before = step.at if step.at is not None else before
    return found


def _paired(
    left: Sequence[T], right: Sequence[T], key: Callable[[T], Hashable]
) -> Iterator[tuple[T | None, T | None]]:
    """What is alike in two sequences beside each other, what only one has alone, both in their order."""
    matcher = SequenceMatcher(
        None, [key(item) for item in left], [key(item) for item in right], autojunk=False
    )
    for kind, left_begin, left_end, right_begin, right_end in matcher.get_opcodes():
        if kind == "equal":
            yield from zip(left[left_begin:left_end], right[right_begin:right_end], strict=True)
        else:
            yield from ((item, None) for item in left[left_begin:left_end])
            yield from ((None, item) for item in right[right_begin:right_end])
