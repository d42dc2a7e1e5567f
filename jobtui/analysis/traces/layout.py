"""The lines that a waterfall can have, in order, each with all that stands below it.

Made once of a trace; what is folded or filtered away is decided later, by skipping lines.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from jobtui.analysis.traces.findings import Findings
from jobtui.analysis.traces.runs import Run, runs_among, telling_spans
from jobtui.analysis.traces.tree import Tree, end_of, tops_of
from jobtui.analysis.traces.waits import Wait
from jobtui.model.trace_ids import SpanId
from jobtui.model.traces import Span

LineKey = str
"""What tells a line from every other, also when the trace has grown."""


class LineKind(StrEnum):
    """What a line of a waterfall stands for."""

    SPAN = "span"
    RUN = "run"
    MISSING = "missing"
    WAIT = "wait"


class TraceLine(NamedTuple):
    """A line. `span` is that of a line of a span, the first one of a run, the one that a wait ended with.

    `missing` is the id of a parent that was not received.
    """

    kind: LineKind
    depth: int
    key: LineKey
    span: Span | None = None
    run: Run | None = None
    wait: Wait | None = None
    missing: SpanId | None = None


class Layout(NamedTuple):
    """All lines of a trace. `parents` says for each the line it stands below, -1 at the top, `ends` the line
    behind all that is below it, `spans` how many spans that is with its own, `errors` how many of those below
    are errors, `lasts` when the last of all was over.
    """

    lines: Sequence[TraceLine]
    parents: Sequence[int]
    ends: Sequence[int]
    spans: Sequence[int]
    errors: Sequence[int]
    lasts: Sequence[int]
    at: Mapping[LineKey, int]

    def above(self, index: int) -> Iterator[int]:
        """The lines above one, the nearest first."""
        while (index := self.parents[index]) >= 0:
            yield index

    def has_below(self, index: int) -> bool:
        """Whether anything stands below a line."""
        return self.ends[index] > index + 1


def lay_out(found: Findings) -> Layout:
    """The lines of a trace. Takes time in proportion to its spans."""
    telling = telling_spans(found.tree, (failure.span for failure in found.failures))
    waits = {wait.before.span_id: wait for wait in found.waits}
    lines = list(_lines(found.tree, telling, waits))
    return Layout(lines, *_measure(lines), {line.key: at for at, line in enumerate(lines)})


def _lines(tree: Tree, telling: frozenset[SpanId], waits: dict[SpanId, Wait]) -> Iterator[TraceLine]:
    for missing, tops in tops_of(tree):
        depth = 0
        if missing is not None:
            yield TraceLine(LineKind.MISSING, 0, f"missing {missing}", missing=missing)
            depth = 1
        stack = [_of_run(run, depth) for run in reversed([*runs_among(tops, telling)])]
        while stack:
            line = stack.pop()
            assert line.span is not None
            if wait := waits.pop(line.span.span_id, None):
                yield TraceLine(LineKind.WAIT, line.depth, f"wait {line.span.span_id}", line.span, wait=wait)
            yield line
            below: Iterable[TraceLine] = ()
            if line.run is not None:
                below = [_of_span(span, line.depth + 1) for span in line.run.spans]
            elif children := tree.below(line.span):
                below = [_of_run(run, line.depth + 1) for run in runs_among(children, telling)]
            stack.extend(reversed([*below]))


def _of_span(span: Span, depth: int) -> TraceLine:
    return TraceLine(LineKind.SPAN, depth, span.span_id, span)


def _of_run(run: Run, depth: int) -> TraceLine:
    if len(run.spans) == 1:
        return _of_span(run.spans[0], depth)
    return TraceLine(LineKind.RUN, depth, f"run {run.spans[0].span_id}", run.spans[0], run)


def _measure(lines: Sequence[TraceLine]) -> tuple[list[int], list[int], list[int], list[int], list[int]]:
    """What `Layout` tells of each line: its parent; of those below it the end, spans, errors, last end."""
    parents, ends, spans, errors, lasts = ([-1] * len(lines), *([0] * len(lines) for _ in range(4)))
    open_lines: list[int] = []
    for index in range(len(lines) + 1):
        depth = lines[index].depth if index < len(lines) else -1
        while open_lines and lines[open_lines[-1]].depth >= depth:
            at = open_lines.pop()
            ends[at] = index
            span = lines[at].span if lines[at].kind is LineKind.SPAN else None
            if span is not None:
                spans[at] += 1
                lasts[at] = max(lasts[at], end_of(span))
            if open_lines:
                above = open_lines[-1]
                spans[above] += spans[at]
                errors[above] += errors[at] + (span is not None and span.is_error)
                lasts[above] = max(lasts[above], lasts[at])
        if index < len(lines):
            parents[index] = open_lines[-1] if open_lines else -1
            open_lines.append(index)
    return parents, ends, spans, errors, lasts


def closed_at_first(layout: Layout) -> set[LineKey]:
    """What is folded until somebody unfolds it: the runs."""
    return {line.key for line in layout.lines if line.kind is LineKind.RUN}


def shown_lines(
    layout: Layout,
    is_closed: Callable[[LineKey], bool],
    kept: Sequence[bool] | None = None,
    begin: int = 0,
    end: int | None = None,
) -> list[int]:
    """The numbers of the lines that are shown: not those below what is closed, nor those not kept.

    Only of those from `begin` up to `end`, which are all below what is shown.
    """
    shown: list[int] = []
    at, count = begin, len(layout.lines) if end is None else end
    lines, ends = layout.lines, layout.ends
    while at < count:
        if kept is not None and not kept[at]:
            at = ends[at]
            continue
        shown.append(at)
        at = ends[at] if ends[at] > at + 1 and is_closed(lines[at].key) else at + 1
    return shown


def kept_lines(layout: Layout, passes: Callable[[Span], bool]) -> tuple[list[bool], int]:
    """Which lines lead to a span that passes or are one, and how many spans pass."""
    kept = [False] * len(layout.lines)
    count = 0
    for at, line in enumerate(layout.lines):
        if line.kind is LineKind.SPAN and line.span is not None and passes(line.span):
            kept[at] = True
            count += 1
    open_lines: list[int] = []
    for at, is_kept in enumerate(kept):
        while open_lines and layout.ends[open_lines[-1]] <= at:
            open_lines.pop()
        if is_kept:
            for above in reversed(open_lines):
                if kept[above]:
                    break
                kept[above] = True
        if layout.has_below(at):
            open_lines.append(at)
    return kept, count


def kept_of(layout: Layout, keys: Iterable[LineKey]) -> tuple[list[bool], int]:
    """The same where the spans that pass are known. Looks at no line below one that leads to none of them."""
    kept = [False] * len(layout.lines)
    passing = sorted(at for key in keys if (at := layout.at.get(key)) is not None)
    at = 0
    for number in passing:
        while at < number:
            leads_there = layout.ends[at] > number
            kept[at] = kept[at] or leads_there
            at = at + 1 if leads_there else layout.ends[at]
        kept[number] = True
    return kept, len(passing)


def unfolded_above(layout: Layout, index: int) -> Iterator[LineKey]:
    """What must be open for a line to be shown."""
    return (layout.lines[above].key for above in layout.above(index))
