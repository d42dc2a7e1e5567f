"""What a trace spent its time on: the chain of spans that ends with the root's end.

Jaeger's way: from the end of the root backwards, go into the child that finishes last, then into the one that
ended before that one began; time between belongs to the parent. Children are cut to the time of their parent,
those outside of it are dropped (https://github.com/jaegertracing/jaeger-ui, TracePage/CriticalPath).

For a job this ends with its submission. The whole path lets a span last until the last span below it ends,
and calls what lies beyond its own end a wait.
"""

from collections.abc import Mapping
from typing import NamedTuple

from jobtui.analysis.traces.tree import Tree, end_of
from jobtui.model.ids import SpanId
from jobtui.model.traces import Span


class PathSegment(NamedTuple):
    """A stretch of time that belongs to one span; nanoseconds since the trace began.

    `is_wait` is set if the span was over and what it had started had not begun.
    """

    span: Span
    from_ns: int
    to_ns: int
    is_wait: bool = False


class _Visit(NamedTuple):
    """A span to be visited, within these times; or a stretch of it that is done."""

    span: Span
    low: int
    high: int
    is_settled: bool = False


def jaeger_path(tree: Tree) -> tuple[PathSegment, ...]:
    """The critical path as Jaeger has it, in order of time."""
    return _path(tree, {span.span_id: int(end_of(span)) for span in tree.spans})


def whole_path(tree: Tree) -> tuple[PathSegment, ...]:
    """The path to the end of the last thing that the root led to, in order of time, with its waits."""
    return _path(tree, last_ends(tree))


def last_ends(tree: Tree) -> dict[SpanId, int]:
    order: list[Span] = []
    stack = [*tree.roots, *tree.loops]
    while stack:
        span = stack.pop()
        order.append(span)
        stack.extend(tree.below(span))
    ends: dict[SpanId, int] = {}
    for span in reversed(order):
        ends[span.span_id] = max(int(end_of(span)), *(ends[child.span_id] for child in tree.below(span)), 0)
    return ends


def _path(tree: Tree, ends: Mapping[SpanId, int]) -> tuple[PathSegment, ...]:
    root, start = tree.root, tree.started_at
    if root is None or start is None:
        return ()
    backwards: list[PathSegment] = []
    stack = [_Visit(root, root.started_at, ends[root.span_id])]
    while stack:
        visit = stack.pop()
        if visit.is_settled:
            own_end = min(max(end_of(visit.span), visit.low), visit.high)
            if own_end < visit.high:
                backwards.append(PathSegment(visit.span, own_end - start, visit.high - start, is_wait=True))
            if own_end > visit.low:
                backwards.append(PathSegment(visit.span, visit.low - start, own_end - start))
        else:
            stack.extend(reversed(_parts(tree, visit, ends)))
    return tuple(reversed(backwards))


def _parts(tree: Tree, visit: _Visit, ends: Mapping[SpanId, int]) -> list[_Visit]:
    parts: list[_Visit] = []
    cursor = visit.high
    children = tree.below(visit.span)
    if len(children) > 1:
        children = tuple(sorted(children, key=lambda child: ends[child.span_id], reverse=True))
    for child in children:
        low, high = max(child.started_at, visit.low), min(ends[child.span_id], visit.high)
        if low >= high or high > cursor:
            continue
        if high < cursor:
            parts.append(_Visit(visit.span, high, cursor, is_settled=True))
        parts.append(_Visit(child, low, high, is_settled=not tree.below(child)))
        cursor = low
    if cursor > visit.low:
        parts.append(_Visit(visit.span, visit.low, cursor, is_settled=True))
    return parts
