"""The tree of a trace, made of spans that may lack parents, come twice, or be their own ancestors; its waits.

Nothing is left out and no time is changed: an odd span has flags. Works without recursion, as a trace may be
as deep as it has spans. A wait is a stretch in which nothing ran, such as a job in its queue.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple, TypeVar

from jobtui.model.clock import Nanos
from jobtui.model.ids import SpanId
from jobtui.model.traces import Span, SpanLog, Trace

Key = TypeVar("Key")
Item = TypeVar("Item")

SKEW_NS = 1_000
"""How much earlier than its parent a child may begin: Jaeger's times are microseconds."""


class SpanFlag(StrEnum):
    OPEN = "open"
    NEGATIVE = "negative"
    INSTANT = "instant"
    UNTIMED = "untimed"
    TWICE = "twice"
    LOOP = "loop"
    ORPHAN = "orphan"
    SKEWED = "skewed"


class Tree:
    """The spans of a trace by start, each once, and their parents.

    `loops` are the spans at which a circle of parents was cut, `cut` their ids. `twice` are the ids that
    several spans have, of which one counts, and `doubles` is how many do not.
    """

    def __init__(self, trace: Trace) -> None:
        kept: dict[SpanId, Span] = {}
        for span in trace.spans:
            known = kept.setdefault(span.span_id, span)
            if known.ended_at is None and span.ended_at is not None:
                kept[span.span_id] = span  # of several with one id the one that has ended, else the first
        self.trace_id = trace.trace_id
        self.spans = tuple(sorted(kept.values(), key=lambda span: span.started_at))
        self.by_id = {span.span_id: span for span in self.spans}
        self.loops = tuple(_cuts(self.spans, self.by_id))
        self.cut = frozenset(span.span_id for span in self.loops)
        counts = Counter(span.span_id for span in trace.spans)
        self.twice = frozenset(span_id for span_id, count in counts.items() if count > 1)
        self.doubles = len(trace.spans) - len(self.spans)
        self.logs = tuple(sorted(trace.logs, key=lambda log: log.at))

    @cached_property
    def roots(self) -> tuple[Span, ...]:
        """The spans that have no parent, or one that was not received."""
        return tuple(span for span in self.spans if span.parent_id not in self.by_id)

    @cached_property
    def missing(self) -> Mapping[SpanId, tuple[Span, ...]]:
        """The parents that were not received, by id, each with its children."""
        lone = ((span.parent_id, span) for span in self.roots if span.parent_id is not None)
        return dict(sorted(_grouped(lone).items()))

    @cached_property
    def _children(self) -> Mapping[SpanId, tuple[Span, ...]]:
        parents = ((self.parent_of(span), span) for span in self.spans)
        return _grouped((parent.span_id, span) for parent, span in parents if parent is not None)

    @cached_property
    def logs_by_span(self) -> Mapping[SpanId | None, tuple[SpanLog, ...]]:
        return _grouped((log.span_id, log) for log in self.logs)

    @cached_property
    def started_at(self) -> Nanos | None:
        """The first start; None when no span has a time."""
        return min((span.started_at for span in self.spans if span.started_at), default=None)

    @cached_property
    def ended_at(self) -> Nanos | None:
        """The last end, or the last start when that is later."""
        return max((end_of(span) for span in self.spans if span.started_at), default=None)

    @property
    def duration_ns(self) -> int:
        """Nanoseconds from the first start to the last end."""
        return (self.ended_at or 0) - (self.started_at or 0)

    @property
    def services(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(span.service for span in self.spans))

    @property
    def root(self) -> Span | None:
        """The first span without a parent, else the first whose parent was not received."""
        whole = (span for span in self.roots if span.parent_id is None)
        return next(whole, self.roots[0] if self.roots else None)

    def below(self, span: Span) -> tuple[Span, ...]:
        """Its children in order of their start."""
        return self._children.get(span.span_id, ())

    def parent_of(self, span: Span) -> Span | None:
        """The parent of a span that was received; None too where a loop was cut."""
        if span.parent_id is None or span.span_id in self.cut:
            return None
        return self.by_id.get(span.parent_id)


def _grouped(pairs: Iterable[tuple[Key, Item]]) -> dict[Key, tuple[Item, ...]]:
    found: defaultdict[Key, list[Item]] = defaultdict(list)
    for key, item in pairs:
        found[key].append(item)
    return {key: tuple(items) for key, items in found.items()}


def end_of(span: Span) -> Nanos:
    """When a span was over as far as is known: its end, or its start when it is open or ends before that."""
    return max(span.started_at, span.ended_at or Nanos(0))


def _cuts(spans: Iterable[Span], by_id: Mapping[SpanId, Span]) -> Iterator[Span]:
    clear: set[SpanId] = set()
    for span in spans:
        path: dict[SpanId, Span] = {}
        at: Span | None = span
        while at is not None and at.span_id not in clear and at.span_id not in path:
            path[at.span_id] = at
            at = by_id.get(at.parent_id) if at.parent_id is not None else None
        if at is not None and at.span_id in path:
            circle = list(path)[list(path).index(at.span_id) :]
            yield min((by_id[span_id] for span_id in circle), key=lambda one: one.started_at)
        clear.update(path)


def tops_of(tree: Tree) -> Iterator[tuple[SpanId | None, tuple[Span, ...]]]:
    """The top lines by start: a root, or a parent that was not received with its children."""
    tops: list[tuple[Nanos, SpanId | None, tuple[Span, ...]]] = [
        (span.started_at, None, (span,))
        for span in (*(root for root in tree.roots if root.parent_id is None), *tree.loops)
    ]
    tops += [(spans[0].started_at, missing, spans) for missing, spans in tree.missing.items()]
    for _, missing, spans in sorted(tops, key=lambda top: top[0]):
        yield missing, spans


def flags_of_span(tree: Tree, span: Span) -> tuple[SpanFlag, ...]:
    is_cut = span.span_id in tree.cut
    odd = {
        SpanFlag.UNTIMED: not span.started_at,
        SpanFlag.OPEN: span.ended_at is None,
        SpanFlag.NEGATIVE: span.ended_at is not None and span.ended_at < span.started_at,
        SpanFlag.INSTANT: span.ended_at == span.started_at,
        SpanFlag.TWICE: span.span_id in tree.twice,
        SpanFlag.LOOP: is_cut,
        SpanFlag.ORPHAN: not is_cut and span.parent_id is not None and span.parent_id not in tree.by_id,
        SpanFlag.SKEWED: skew_ns(tree, span) > 0,
    }
    return tuple(flag for flag, applies in odd.items() if applies)


def skew_ns(tree: Tree, span: Span) -> int:
    """How long before its parent a span says that it began, nanoseconds; 0 when it did not.

    This is the least by which the clocks of the two differ. A child that begins after its parent's end is
    normal: a job runs long after its submission.
    """
    parent = tree.parent_of(span)
    if parent is None or not span.started_at or not parent.started_at:
        return 0
    early = parent.started_at - span.started_at
    return early if early > SKEW_NS else 0


LEAST_SHARE = 0.05
"""A stretch is listed if it is at least this part of the trace."""
LEAST_NS = 1_000_000_000
"""And if it is at least this long, nanoseconds."""


class SpanWait(NamedTuple):
    """A stretch between the end of one span and the start of the next."""

    start: Nanos
    end: Nanos
    after: Span
    before: Span

    @property
    def duration_ns(self) -> int:
        """How long nothing ran, nanoseconds."""
        return self.end - self.start


def waits_of(tree: Tree) -> tuple[SpanWait, ...]:
    """The stretches that matter, by time. An open span counts up to its start only."""
    least = max(LEAST_NS, int(tree.duration_ns * LEAST_SHARE))
    waits: list[SpanWait] = []
    latest: Span | None = None
    for span in tree.spans:
        if not span.started_at:
            continue
        if latest is not None and span.started_at - end_of(latest) >= least:
            waits.append(SpanWait(end_of(latest), span.started_at, latest, span))
        if latest is None or end_of(span) > end_of(latest):
            latest = span
    return tuple(waits)
