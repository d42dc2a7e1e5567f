"""The traces that are known, up to a limit of spans.

When it is full the trace that came first is let go, and this is counted.
"""

from collections import defaultdict
from collections.abc import Iterable

from jobtui.model.clock import Nanos
from jobtui.model.trace_ids import SpanId, TraceId
from jobtui.model.traces import Span, SpanLog, Trace

MOST = 400_000
"""Spans and log records kept."""


class _Pages:
    """What is known of one trace, from where, and when something new of it came."""

    __slots__ = ("changed_at", "logs", "sources", "spans")

    def __init__(self) -> None:
        self.changed_at: Nanos | None = None
        self.sources: set[str] = set()
        self.spans: dict[SpanId, list[Span]] = {}
        self.logs: dict[tuple[int, SpanId | None, str], SpanLog] = {}

    @property
    def size(self) -> int:
        """How many spans and log records it holds."""
        return sum(map(len, self.spans.values())) + len(self.logs)


class TraceBook:
    """Spans and log records by trace. Adding the same twice changes nothing more."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._traces: dict[TraceId, _Pages] = {}
        self._sizes: dict[TraceId, int] = {}
        self.dropped = 0
        """Traces that were let go."""

    def add(
        self, spans: Iterable[Span], logs: Iterable[SpanLog], source: str = "", at: Nanos | None = None
    ) -> frozenset[TraceId]:
        """Take in what a source gave at a time; the traces that are known better now, or were let go.

        A span that comes twice at once is kept so: it was sent twice.
        """
        touched: set[TraceId] = set()
        for (trace_id, span_id), same in _by_id(spans).items():
            known = self._pages(trace_id).spans.setdefault(span_id, [])
            known += [span for span in same if span not in known] if known else same
            touched.add(trace_id)
        for log in logs:
            self._pages(log.trace_id).logs[log.at, log.span_id, log.body] = log
            touched.add(log.trace_id)
        changed = {trace_id for trace_id in touched if self._has_grown(trace_id, source, at)}
        return frozenset(changed.union(self._keep_within()))

    def _has_grown(self, trace_id: TraceId, source: str, at: Nanos | None) -> bool:
        pages = self._traces[trace_id]
        if source:
            pages.sources.add(source)
        before, self._sizes[trace_id] = self._sizes.get(trace_id, 0), pages.size
        if pages.size == before:
            return False
        pages.changed_at = at
        return True

    def trace(self, trace_id: TraceId) -> Trace | None:
        """What is known of a trace."""
        pages = self._traces.get(trace_id)
        if pages is None:
            return None
        spans = tuple(span for same in pages.spans.values() for span in same)
        return Trace(trace_id=trace_id, spans=spans, logs=tuple(pages.logs.values()))

    def ids(self) -> tuple[TraceId, ...]:
        """Every trace, in the order in which they became known."""
        return tuple(self._traces)

    def size(self, trace_id: TraceId) -> int:
        """How many spans and log records of a trace are known: another number when it is known better."""
        return self._sizes.get(trace_id, 0)

    def changed_at(self, trace_id: TraceId) -> Nanos | None:
        """When something new of a trace came last, None where that is not known."""
        pages = self._traces.get(trace_id)
        return pages.changed_at if pages else None

    def sources_of(self, trace_id: TraceId) -> tuple[str, ...]:
        """The names of the sources that gave something of a trace."""
        pages = self._traces.get(trace_id)
        return tuple(sorted(pages.sources)) if pages else ()

    def _pages(self, trace_id: TraceId) -> _Pages:
        return self._traces.setdefault(trace_id, _Pages())

    def _keep_within(self) -> list[TraceId]:
        gone: list[TraceId] = []
        total = sum(self._sizes.values())
        while total > self._most and len(self._traces) > 1:
            oldest = next(iter(self._traces))
            del self._traces[oldest]
            total -= self._sizes.pop(oldest)
            self.dropped += 1
            gone.append(oldest)
        return gone


def _by_id(spans: Iterable[Span]) -> dict[tuple[TraceId, SpanId], list[Span]]:
    found: dict[tuple[TraceId, SpanId], list[Span]] = defaultdict(list)
    for span in spans:
        found[span.trace_id, span.span_id].append(span)
    return found
