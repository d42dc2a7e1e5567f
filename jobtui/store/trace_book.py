"""The traces that are known, up to a limit of spans.

When it is full the trace that came first is let go, and this is counted.
"""

from collections import defaultdict
from collections.abc import Iterable

from jobtui.model.trace_ids import SpanId, TraceId
from jobtui.model.traces import Span, SpanLog, Trace

MOST = 400_000
"""Spans and log records kept."""


class _Pages:
    """What is known of one trace."""

    __slots__ = ("logs", "spans")

    def __init__(self) -> None:
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

    def add(self, spans: Iterable[Span], logs: Iterable[SpanLog]) -> None:
        """Take in spans and log records. A span that comes twice at once is kept so: it was sent twice."""
        changed: set[TraceId] = set()
        for (trace_id, span_id), same in _by_id(spans).items():
            known = self._pages(trace_id).spans.setdefault(span_id, [])
            known += [span for span in same if span not in known] if known else same
            changed.add(trace_id)
        for log in logs:
            self._pages(log.trace_id).logs[log.at, log.span_id, log.body] = log
            changed.add(log.trace_id)
        for trace_id in changed:
            self._sizes[trace_id] = self._traces[trace_id].size
        self._keep_within()

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

    def _pages(self, trace_id: TraceId) -> _Pages:
        return self._traces.setdefault(trace_id, _Pages())

    def _keep_within(self) -> None:
        total = sum(self._sizes.values())
        while total > self._most and len(self._traces) > 1:
            oldest = next(iter(self._traces))
            del self._traces[oldest]
            total -= self._sizes.pop(oldest)
            self.dropped += 1


def _by_id(spans: Iterable[Span]) -> dict[tuple[TraceId, SpanId], list[Span]]:
    found: dict[tuple[TraceId, SpanId], list[Span]] = defaultdict(list)
    for span in spans:
        found[span.trace_id, span.span_id].append(span)
    return found
