"""Like siblings beside each other: hundreds of `process_event` are one line until somebody wants them all."""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, groupby

from jobtui.analysis.traces.tree import Tree, end_of
from jobtui.model.trace_ids import SpanId
from jobtui.model.traces import Span

RUN_LENGTH = 6
"""So many like spans beside each other, or more, are one line."""

_NUMBER = re.compile(r"\d+")


@lru_cache(maxsize=4_096)
def _shape(text: str) -> str:
    """A text whatever its numbers are."""
    return _NUMBER.sub("#", text)


class Run:
    """Spans that are alike, in order of their start."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self.spans = tuple(spans)

    @property
    def name(self) -> str:
        """What they are called: one name, or the first and the last where only a number differs."""
        first, last = self.spans[0].name, self.spans[-1].name
        return first if first == last else f"{first} … {last}"

    @cached_property
    def services(self) -> int:
        """Of how many services they are."""
        return len({span.service for span in self.spans})

    @cached_property
    def total_ns(self) -> int:
        """What all of them took, nanoseconds."""
        return sum(max(0, span.duration_ns or 0) for span in self.spans)

    @cached_property
    def longest(self) -> Span:
        """The one that took longest."""
        return max(self.spans, key=lambda span: span.duration_ns or 0)

    @cached_property
    def ended_at(self) -> int:
        """When the last of them was over."""
        return self._latest[-1]

    def runs_within(self, low: int, high: int) -> bool:
        """Whether any of them went on at a time from `low` up to `high`."""
        before = bisect_left(self._starts, high)
        return before > 0 and (self._latest[before - 1] > low or self._starts[before - 1] >= low)

    @cached_property
    def _starts(self) -> list[int]:
        return [span.started_at for span in self.spans]

    @cached_property
    def _latest(self) -> list[int]:
        """The latest end of each span and those before it."""
        return list(accumulate(map(end_of, self.spans), max))


def runs_among(siblings: Iterable[Span], telling: frozenset[SpanId]) -> Iterator[Run]:
    """Siblings as runs, most of one span. Of `telling` spans there is more to say than of others."""

    def likeness(span: Span) -> tuple[str, ...]:
        if span.span_id in telling:
            return (span.span_id,)
        return (_shape(span.name), _shape(span.service), span.kind, span.scope)

    siblings = tuple(siblings)
    if len(siblings) < RUN_LENGTH:
        yield from (Run((span,)) for span in siblings)
        return
    for _, alike in groupby(siblings, likeness):
        run = list(alike)
        if len(run) >= RUN_LENGTH:
            yield Run(run)
        else:
            yield from (Run((span,)) for span in run)


def telling_spans(tree: Tree, others: Iterable[Span] = ()) -> frozenset[SpanId]:
    """Spans that are errors or open, those among `others`, and all that are above one of these."""
    found: set[SpanId] = set()
    for span in (*others, *(span for span in tree.spans if span.is_error or span.ended_at is None)):
        at: Span | None = span
        while at is not None and at.span_id not in found:
            found.add(at.span_id)
            at = tree.parent_of(at)
    return frozenset(found)
