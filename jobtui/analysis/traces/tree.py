"""The tree of a trace, out of spans that may lack parents, come twice, or be their own ancestors; its waits.

Nothing is left out and no time is changed: what is odd of a span is flagged. Works without recursion, as a
trace may be as deep as it has spans. A wait is a stretch in which nothing ran, such as a job in its queue.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from jobtui.model.clock import Nanos
from jobtui.model.ids import SpanId, TraceId
from jobtui.model.traces import Span, SpanLog, Trace

SKEW_NS = 1_000
"""How much earlier than its parent a child may begin: Jaeger's times are microseconds."""


class SpanFlag(StrEnum):
    """An oddity of a span."""

    OPEN = "open"
    NEGATIVE = "negative"
    INSTANT = "instant"
    UNTIMED = "untimed"
    TWICE = "twice"
    LOOP = "loop"
    ORPHAN = "orphan"
    SKEWED = "skewed"


class Tree(NamedTuple):
    """The spans of a trace by start, each once, and how they hang together.

    `roots` have no parent, or one that was not received (`missing`, by id, with its children); `loops` are
    those at which a circle of parents was cut, `cut` their ids. `children` are in order of their start.
    `started_at` is the first start, `ended_at` the last end, or the last start when that is later; None when
    no span has a time.
    """

    trace_id: TraceId
    spans: tuple[Span, ...]
    by_id: Mapping[SpanId, Span]
    children: Mapping[SpanId, tuple[Span, ...]]
    roots: tuple[Span, ...]
    missing: Mapping[SpanId, tuple[Span, ...]]
    loops: tuple[Span, ...]
    cut: frozenset[SpanId]
    doubles: int
    twice: frozenset[SpanId]
    logs: tuple[SpanLog, ...]
    logs_by_span: Mapping[SpanId | None, tuple[SpanLog, ...]]
    started_at: Nanos | None
    ended_at: Nanos | None

    @property
    def duration_ns(self) -> int:
        """Nanoseconds from the first start to the last end."""
        return (self.ended_at or 0) - (self.started_at or 0)

    @property
    def services(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(span.service for span in self.spans))

    @property
    def root(self) -> Span | None:
        """The first span that has no parent; without one the first whose parent was not received."""
        whole = (span for span in self.roots if span.parent_id is None)
        return next(whole, self.roots[0] if self.roots else None)

    def below(self, span: Span) -> tuple[Span, ...]:
        return self.children.get(span.span_id, ())

    def parent_of(self, span: Span) -> Span | None:
        """The parent of a span that was received; None too where a loop was cut."""
        if span.parent_id is None or span.span_id in self.cut:
            return None
        return self.by_id.get(span.parent_id)


def end_of(span: Span) -> Nanos:
    """When a span was over as far as is known: its end, or its start when it is open or ends before that."""
    return max(span.started_at, span.ended_at or Nanos(0))


def build_tree(trace: Trace) -> Tree:
    """The tree of a trace. Takes time in proportion to its spans, but for their sorting."""
    kept: dict[SpanId, Span] = {}
    for span in trace.spans:
        known = kept.setdefault(span.span_id, span)
        if known.ended_at is None and span.ended_at is not None:
            kept[span.span_id] = span  # of several with one id the one that has ended, else the first
    spans = sorted(kept.values(), key=lambda span: span.started_at)
    by_id = {span.span_id: span for span in spans}
    counts = Counter(span.span_id for span in trace.spans)
    loops = tuple(_cuts(spans, by_id))
    cut = frozenset(span.span_id for span in loops)
    children: dict[SpanId, list[Span]] = defaultdict(list)
    missing: dict[SpanId, list[Span]] = defaultdict(list)
    roots: list[Span] = []
    for span in spans:
        if span.parent_id is None:
            roots.append(span)
        elif span.parent_id not in by_id:
            roots.append(span)
            missing[span.parent_id].append(span)
        elif span.span_id not in cut:
            children[span.parent_id].append(span)
    logs = tuple(sorted(trace.logs, key=lambda log: log.at))
    by_span: dict[SpanId | None, list[SpanLog]] = defaultdict(list)
    for log in logs:
        by_span[log.span_id].append(log)
    return Tree(
        trace.trace_id,
        tuple(spans),
        by_id,
        {key: tuple(value) for key, value in children.items()},
        tuple(roots),
        {key: tuple(missing[key]) for key in sorted(missing)},
        loops,
        cut,
        len(trace.spans) - len(spans),
        frozenset(span_id for span_id, count in counts.items() if count > 1),
        logs,
        {key: tuple(value) for key, value in by_span.items()},
        min((span.started_at for span in spans if span.started_at), default=None),
        max((end_of(span) for span in spans if span.started_at), default=None),
    )


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
    none: a job runs when its submission is long over.
    """
    parent = tree.parent_of(span)
    if parent is None or not span.started_at or not parent.started_at:
        return 0
    early = parent.started_at - span.started_at
    return early if early > SKEW_NS else 0


LEAST_SHARE = 0.05
"""A stretch is listed if it is at least this part of the trace."""
LEAST_NS = 1_000_000_000
"""And this long."""


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
    """The stretches that matter, by time. An open span runs on as far as is known only."""
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
