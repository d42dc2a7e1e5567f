"""Two traces side by side: which steps one lacks, which are new, which failed or took longer.

Steps are matched by the names of all above them, digits aside, and their service. Those below one parent with
the same name are one step, so that ten of twelve like calls show as such.
"""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import chain
from typing import NamedTuple

from jobtui.analysis.traces.layout import shape
from jobtui.analysis.traces.tree import Tree, tops_of
from jobtui.model.traces import Span

SLOWER = 1.2
"""A step is slower if it took this many times as long, and its extra time is LEAST_SHARE of the trace."""
LEAST_SHARE = 0.01


class ChangeKind(StrEnum):
    MISSING = "missing"
    NEW = "new"
    FAILED = "failed"
    SLOWER = "slower"
    FASTER = "faster"
    SAME = "same"


class StepChange(NamedTuple):
    """A step, `depth` steps below the top: its spans in both traces."""

    depth: int
    this: Sequence[Span]
    other: Sequence[Span]
    change: ChangeKind

    @property
    def span(self) -> Span:
        return (self.this or self.other)[0]

    @property
    def longer_ns(self) -> int:
        """How much longer it took in this trace, nanoseconds."""
        return took_ns(self.this) - took_ns(self.other)


def took_ns(spans: Sequence[Span]) -> int:
    return sum(max(0, span.duration_ns or 0) for span in spans)


Pair = tuple[Sequence[Span], Sequence[Span]]


def step_changes(this: Tree, other: Tree) -> Iterator[StepChange]:
    """All steps of both, parents before children. Children of a step that only one trace has are left out."""
    least_ns = int(max(this.duration_ns, other.duration_ns) * LEAST_SHARE)
    tops = ([span for _, spans in tops_of(tree) for span in spans] for tree in (this, other))
    stack = [(0, pair) for pair in reversed(_pairs(this, other, *tops))]
    while stack:
        depth, (ours, theirs) = stack.pop()
        yield StepChange(depth, ours, theirs, _change(ours, theirs, least_ns))
        if ours and theirs:
            ours_below = chain.from_iterable(map(this.below, ours))
            theirs_below = chain.from_iterable(map(other.below, theirs))
            stack += [(depth + 1, pair) for pair in reversed(_pairs(this, other, ours_below, theirs_below))]


def _pairs(this: Tree, other: Tree, ours: Iterable[Span], theirs: Iterable[Span]) -> list[Pair]:
    found: dict[tuple[str, str], tuple[list[Span], list[Span]]] = {}
    for nth, spans in enumerate((ours, theirs)):
        for span in spans:
            found.setdefault((shape(span.name), span.service), ([], []))[nth].append(span)
    return sorted(found.values(), key=lambda pair: _begins(this, pair[0]) or _begins(other, pair[1]))


def _begins(tree: Tree, spans: Sequence[Span]) -> int:
    """Nanoseconds from the start of a trace to the first of these spans."""
    return min((span.started_at for span in spans), default=0) - (tree.started_at or 0) if spans else 0


def _change(this: Sequence[Span], other: Sequence[Span], least_ns: int) -> ChangeKind:
    if not this:
        return ChangeKind.MISSING
    if not other:
        return ChangeKind.NEW
    if any(span.is_error for span in this) and not any(span.is_error for span in other):
        return ChangeKind.FAILED
    ours, theirs = took_ns(this), took_ns(other)
    if abs(ours - theirs) >= max(1, least_ns):
        if ours > theirs * SLOWER:
            return ChangeKind.SLOWER
        if theirs > ours * SLOWER:
            return ChangeKind.FASTER
    return ChangeKind.SAME


def those_that_differ(steps: Sequence[StepChange]) -> Iterator[StepChange]:
    wanted = 0
    kept: list[StepChange] = []
    for step in reversed(steps):
        if step.change is not ChangeKind.SAME or step.depth < wanted:
            kept.append(step)
            wanted = step.depth
        elif step.depth == 0:
            wanted = 0
    return reversed(kept)
