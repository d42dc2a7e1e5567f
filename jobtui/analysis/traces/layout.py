"""The lines that a waterfall can have, in order, and which of them are shown.

The lines are made once of a trace: spans, runs of like siblings, waits, parents that were not received. Lines
that are folded or do not pass a filter are not shown.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, groupby, takewhile
from string import ascii_lowercase, ascii_uppercase, digits
from typing import NamedTuple

import msgspec

from jobtui.analysis.traces.failures import Findings
from jobtui.analysis.traces.filters import SpanTest
from jobtui.analysis.traces.tree import SpanWait, Tree, end_of, tops_of
from jobtui.model.ids import SpanId
from jobtui.model.traces import Span

MOST = 1_000
"""How many services have a mark of their own."""
OTHER = "·"
"""The sign of services for which no letter is left."""


class ServiceMark(NamedTuple):
    """The mark of a service: one cell, and a number for its colour."""

    letter: str
    number: int


class ServiceMarks:
    def __init__(self) -> None:
        self._marks: dict[str, ServiceMark] = {}
        self._taken: set[str] = set()

    def meet(self, services: Iterable[str]) -> None:
        for service in services:
            self.of(service)

    def of(self, service: str) -> ServiceMark:
        mark = self._marks.get(service)
        if mark is None:
            letter = next((one for one in _letters(service) if one not in self._taken), OTHER)
            mark = ServiceMark(letter, len(self._marks))
            if len(self._marks) < MOST:
                self._taken.add(letter)
                self._marks[service] = mark
        return mark


def _letters(service: str) -> Iterator[str]:
    """The letters that may stand for a service: its first, those its last words begin with, its others, any.

    The first words are the same in many a name: sirepo-server is S, sirepo-agent A, worker-1 is 1.
    """
    words = re.findall("[0-9A-Za-z]+", service)
    name = "".join([*(word[0] for word in (*words[:1], *words[:0:-1])), *(word[1:] for word in words[::-1])])
    yield from name.upper()
    yield from name.lower()
    yield from ascii_uppercase + ascii_lowercase + digits


RUN_LENGTH = 6
"""From this number on, equal spans next to each other share one line."""

_NUMBER = re.compile(r"\d+")


@lru_cache(maxsize=4_096)
def shape(text: str) -> str:
    return _NUMBER.sub("#", text)


class SpanRun:
    """Spans that are alike, in order of their start."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self.spans = tuple(spans)

    @property
    def name(self) -> str:
        """Their common name, or the first and the last if only a number differs."""
        first, last = self.spans[0].name, self.spans[-1].name
        return first if first == last else f"{first} … {last}"

    @cached_property
    def services(self) -> int:
        return len({span.service for span in self.spans})

    @cached_property
    def total_ns(self) -> int:
        return sum(max(0, span.duration_ns or 0) for span in self.spans)

    @cached_property
    def longest(self) -> Span:
        return max(self.spans, key=lambda span: span.duration_ns or 0)

    @cached_property
    def ended_at(self) -> int:
        return self._latest[-1]

    def runs_within(self, low: int, high: int) -> bool:
        before = bisect_left(self._starts, high)
        return before > 0 and (self._latest[before - 1] > low or self._starts[before - 1] >= low)

    @cached_property
    def _starts(self) -> list[int]:
        return [span.started_at for span in self.spans]

    @cached_property
    def _latest(self) -> list[int]:
        return list(accumulate(map(end_of, self.spans), max))


def runs_among(siblings: Iterable[Span], telling: frozenset[SpanId]) -> Iterator[SpanRun]:
    """Siblings as runs, most of one span. `telling` spans are never part of a longer run."""

    def likeness(span: Span) -> tuple[str, ...]:
        if span.span_id in telling:
            return (span.span_id,)
        return (shape(span.name), shape(span.service), span.kind, span.scope)

    siblings = tuple(siblings)
    if len(siblings) < RUN_LENGTH:
        yield from (SpanRun((span,)) for span in siblings)
        return
    for _, alike in groupby(siblings, likeness):
        run = list(alike)
        if len(run) >= RUN_LENGTH:
            yield SpanRun(run)
        else:
            yield from (SpanRun((span,)) for span in run)


def notable_spans(tree: Tree, others: Iterable[Span] = ()) -> frozenset[SpanId]:
    """Spans that are errors or open, those among `others`, and all that are above one of these."""
    found: set[SpanId] = set()
    for span in (*others, *(span for span in tree.spans if span.is_error or span.ended_at is None)):
        at: Span | None = span
        while at is not None and at.span_id not in found:
            found.add(at.span_id)
            at = tree.parent_of(at)
    return frozenset(found)


LineKey = str
"""The identity of a line, which stays when the trace grows."""


class TraceLine(msgspec.Struct):
    """A line. `span` is that of a line of a span, the first one of a run, the one that a wait ended with.

    `missing` is the id of a parent that was not received. `above` is the number of the line it stands below,
    -1 at the top, `end` that of the line after all that are below it. `spans` counts those below and its own,
    `errors` those below that are errors, `last` is when the last of all was over.
    """

    depth: int
    key: LineKey
    span: Span | None = None
    run: SpanRun | None = None
    wait: SpanWait | None = None
    missing: SpanId | None = None
    above: int = -1
    end: int = 0
    spans: int = 0
    errors: int = 0
    last: int = 0

    @property
    def own(self) -> Span | None:
        """The span that the line is for; None if it is for something else."""
        return self.span if self.run is None and self.wait is None else None


class TraceLayout(NamedTuple):
    """All lines of a trace, and the number of each by its key."""

    lines: Sequence[TraceLine]
    at: Mapping[LineKey, int]

    def above(self, index: int) -> Iterator[int]:
        while (index := self.lines[index].above) >= 0:
            yield index

    def has_below(self, index: int) -> bool:
        return self.lines[index].end > index + 1


NO_LINES = TraceLayout((), {})


def lay_out(found: Findings) -> TraceLayout:
    """The lines of a trace. Takes time in proportion to its spans."""
    failed = (failure.span for failure in found.failures)
    telling = notable_spans(found.tree, failed)
    waits = {wait.before.span_id: wait for wait in found.waits}
    lines = list(_lines(found.tree, telling, waits))
    _measure(lines)
    return TraceLayout(lines, {line.key: at for at, line in enumerate(lines)})


def _lines(tree: Tree, telling: frozenset[SpanId], waits: dict[SpanId, SpanWait]) -> Iterator[TraceLine]:
    for missing, tops in tops_of(tree):
        depth = 0
        if missing is not None:
            yield TraceLine(0, f"missing {missing}", missing=missing)
            depth = 1
        stack = list(reversed(_of_runs(tops, depth, telling)))
        while stack:
            line = stack.pop()
            assert line.span is not None
            if wait := waits.pop(line.span.span_id, None):
                yield TraceLine(line.depth, f"wait {line.span.span_id}", line.span, wait=wait)
            yield line
            if line.run is not None:
                below = [_of_span(span, line.depth + 1) for span in line.run.spans]
            else:
                below = _of_runs(tree.below(line.span), line.depth + 1, telling)
            stack.extend(reversed(below))


def _of_span(span: Span, depth: int) -> TraceLine:
    return TraceLine(depth, span.span_id, span)


def _of_runs(siblings: Sequence[Span], depth: int, telling: frozenset[SpanId]) -> list[TraceLine]:
    lines = []
    for run in runs_among(siblings, telling):
        first = run.spans[0]
        if len(run.spans) == 1:
            lines.append(_of_span(first, depth))
        else:
            lines.append(TraceLine(depth, f"run {first.span_id}", first, run))
    return lines


def _measure(lines: Sequence[TraceLine]) -> None:
    """Note for each line what is above it, and what is below it."""
    way: list[int] = []
    for number, line in enumerate(lines):
        while way and lines[way[-1]].depth >= line.depth:
            way.pop()
        line.above = way[-1] if way else -1
        way.append(number)
    for number, line in reversed([*enumerate(lines, 1)]):
        own, line.end = line.own, max(line.end, number)
        if own is not None:
            line.spans += 1
            line.last = max(line.last, end_of(own))
        if line.above >= 0:
            above = lines[line.above]
            above.end = max(above.end, line.end)
            above.spans += line.spans
            above.errors += line.errors + (own is not None and own.is_error)
            above.last = max(above.last, line.last)


def closed_at_first(layout: TraceLayout) -> set[LineKey]:
    return {line.key for line in layout.lines if line.run is not None}


def shown_lines(
    layout: TraceLayout,
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
    while at < count:
        line = layout.lines[at]
        if kept is not None and not kept[at]:
            at = line.end
            continue
        shown.append(at)
        at = line.end if line.end > at + 1 and is_closed(line.key) else at + 1
    return shown


def kept_lines(layout: TraceLayout, passes: Callable[[Span], bool]) -> tuple[list[bool], int]:
    """Which lines are shown with a filter: those whose span passes, and all above; how many pass."""
    kept, count = [False] * len(layout.lines), 0
    for at, line in enumerate(layout.lines):
        if line.own is not None and passes(line.own):
            kept[at] = True
            count += 1
            for above in takewhile(lambda one: not kept[one], layout.above(at)):
                kept[above] = True
    return kept, count


class ShownLines:
    """The lines of a layout that are shown, by their numbers in it."""

    def __init__(self, layout: TraceLayout = NO_LINES) -> None:
        self.layout = layout
        self.numbers: list[int] = []
        self.passing = 0
        """How many spans pass the filter; all without one."""
        self.passes: SpanTest | None = None
        self._closed = closed_at_first(layout)
        self._met = set(self._closed)
        self._kept: list[bool] | None = None
        self._show()

    def set_layout(self, layout: TraceLayout) -> None:
        """The trace has grown: folds stay, and new runs are folded."""
        self.layout = layout
        new = closed_at_first(layout) - self._met
        self._met |= new
        self._closed |= new
        self.set_filter(self.passes)

    def set_filter(self, passes: SpanTest | None) -> None:
        """Show only spans that pass, with what is above them."""
        self.passes = passes
        self._kept, self.passing = (None, 0) if passes is None else kept_lines(self.layout, passes)
        self._show()

    def line(self, index: int) -> TraceLine:
        return self.layout.lines[self.numbers[index]]

    def is_closed(self, key: LineKey) -> bool:
        return key in self._closed

    def index_of(self, key: LineKey) -> int | None:
        """Where a line is shown, or the nearest above it that is; None when the trace has no such line."""
        number = self.layout.at.get(key)
        if number is None:
            return None
        for one in (number, *self.layout.above(number)):
            if (index := self._index(one)) is not None:
                return index
        return None

    def close(self, index: int) -> bool:
        number = self.numbers[index]
        key = self.layout.lines[number].key
        if not self.layout.has_below(number) or key in self._closed:
            return False
        self._closed.add(key)
        end = bisect_left(self.numbers, self.layout.lines[number].end)
        del self.numbers[index + 1 : end]
        return True

    def open(self, index: int) -> bool:
        number = self.numbers[index]
        key = self.layout.lines[number].key
        if key not in self._closed or not self.layout.has_below(number):
            return False
        self._closed.discard(key)
        end = self.layout.lines[number].end
        below = shown_lines(self.layout, self._closed.__contains__, self._kept, number + 1, end)
        self.numbers[index + 1 : index + 1] = below
        return True

    def above(self, index: int) -> int | None:
        shown = (self._index(one) for one in self.layout.above(self.numbers[index]))
        return next((at for at in shown if at is not None), None)

    def reveal(self, key: LineKey) -> int | None:
        """Unfold whatever hides a line, and drop a filter that does. Returns where it is shown then."""
        number = self.layout.at.get(key)
        if number is None:
            return None
        if self._kept is not None and not self._kept[number]:
            self.set_filter(None)
        above = self.layout.above(number)
        self._closed.difference_update(self.layout.lines[one].key for one in above)
        self._show()
        return self._index(number)

    def toggle_all(self) -> None:
        """Fold every line that has lines below it, except at the top; if all are folded, only the runs."""
        lines = [line for at, line in enumerate(self.layout.lines) if self.layout.has_below(at)]
        runs = {line.key for line in lines if line.run is not None}
        folded = {line.key for line in lines if line.depth or line.run is not None}
        self._closed = runs if folded <= self._closed else folded
        self._show()

    def next_of(self, keys: Iterable[LineKey], index: int, step: int) -> LineKey | None:
        """The next of some lines after an index, or before it; the first follows the last."""
        here = self.numbers[index] if self.numbers else 0
        places = sorted(at for key in keys if (at := self.layout.at.get(key)) is not None)
        if not places:
            return None
        ahead = [at for at in places if (at > here if step > 0 else at < here)]
        ordered = ahead or places
        return self.layout.lines[ordered[0] if step > 0 else ordered[-1]].key

    def _index(self, number: int) -> int | None:
        index = bisect_left(self.numbers, number)
        return index if index < len(self.numbers) and self.numbers[index] == number else None

    def _show(self) -> None:
        self.numbers = shown_lines(self.layout, self._closed.__contains__, self._kept)
