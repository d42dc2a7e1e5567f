"""The traces that are known, up to a limit of spans and of memory.

When it is full, the trace that has not grown for the longest time is dropped. A trace that fills it alone
gets no more spans. Both are counted.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TypeVar

import msgspec

from jobtui.model.clock import Nanos
from jobtui.model.ids import SpanId, TraceId
from jobtui.model.numbers import counted
from jobtui.model.traces import JOB_ATTRIBUTES, Span, SpanLog, Trace, is_same_job, jobs_named_by

MOST = 400_000
MOST_BYTES = 256 << 20
"""About how much memory they may take."""
SPAN_BYTES = 600
"""What a span takes without its attributes."""
VALUE_BYTES = 100
"""What a value of an attribute takes beside its characters."""
MOST_JOBS = 1_000
"""Jobs that one trace may name: more are not looked for."""
LEAST_NAME = 3
"""The least number of characters of a text that may be the id of a job that spans name."""
MOST_NAMING = 50
ROUNDING_NS = 1_000
"""Times of Jaeger's own JSON are microseconds: a span from there is the one that is known in nanoseconds."""

Item = TypeVar("Item")


class _Pages(msgspec.Struct):
    """What is known about one trace, its sources, and when it last grew. `weight` is in bytes."""

    changed_at: Nanos | None = None
    sources: set[str] = set()
    jobs: dict[str, None] = {}
    spans: dict[SpanId, list[Span]] = {}
    logs: dict[tuple[int, SpanId | None, str], SpanLog] = {}
    size: int = 0
    weight: int = 0


NOTHING = _Pages()


class TraceStore:
    """Spans and log records by trace. Adding the same twice changes nothing more."""

    def __init__(self, most: int = MOST, most_bytes: int = MOST_BYTES) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._traces: dict[TraceId, _Pages] = {}
        self._quiet_first: dict[TraceId, None] = {}
        self._size = 0
        self._weight = 0
        self.job_attributes: tuple[str, ...] = JOB_ATTRIBUTES
        """The attributes in which spans may name a job."""
        self.dropped = 0
        self.left_out = 0
        """Spans and log records that were not taken in, as their trace fills the book alone."""

    def add(
        self, spans: Iterable[Span], logs: Iterable[SpanLog], source: str = "", at: Nanos | None = None
    ) -> frozenset[TraceId]:
        """Add what a source gave at a time. Returns the traces that grew, or were dropped.

        A span that is twice in one answer is kept twice: it was sent twice.
        """
        changed: set[TraceId] = set()
        senders: set[int] = set()
        by_id: dict[tuple[TraceId, SpanId], list[Span]] = defaultdict(list)
        for span in spans:
            by_id[span.trace_id, span.span_id].append(span)
        for (trace_id, span_id), same in by_id.items():
            pages = self._pages(trace_id, source)
            known = pages.spans.get(span_id, [])
            fresh = [span for span in same if not _is_among(span, known)] if known else same
            for index, one in enumerate(known):
                finer = (span for span in same if span != one and _is_among(span, [one]))
                known[index] = max((one, *finer), key=_how_fine)
                if known[index] is not one:
                    changed.add(trace_id)
            for span in self._room_for(pages, fresh):
                pages.spans.setdefault(span_id, []).append(span)
                jobs = jobs_named_by(span, self.job_attributes)
                pages.jobs.update(dict.fromkeys(jobs[: MOST_JOBS - len(pages.jobs)]))
                self._take(pages, _weight_of_span(span, senders))
                changed.add(trace_id)
        for log in logs:
            pages = self._pages(log.trace_id, source)
            key = (log.at, log.span_id, log.body)
            if key not in pages.logs and list(self._room_for(pages, [log])):
                pages.logs[key] = log
                self._take(pages, SPAN_BYTES + len(log.body) + _weight(log.attributes))
                changed.add(log.trace_id)
        for trace_id in changed:
            self._traces[trace_id].changed_at = at
            self._quiet_first.pop(trace_id, None)
            self._quiet_first[trace_id] = None
        return frozenset(changed.union(self._keep_within()))

    def jobs_of(self, trace_id: TraceId) -> tuple[str, ...]:
        return tuple(self._traces.get(trace_id, NOTHING).jobs)

    def naming(self, job_id: str) -> tuple[tuple[TraceId, str], ...]:
        """The traces whose spans name a job, the newest first, each with the name that they use."""
        text = job_id.strip()
        if len(text) < LEAST_NAME:
            return ()
        found = (
            (trace_id, written)
            for trace_id in reversed(self._quiet_first)
            for written in self._traces[trace_id].jobs
            if is_same_job(written, text)
        )
        return tuple(dict(reversed([*islice(found, MOST_NAMING)])).items())[::-1]

    def _room_for(self, pages: _Pages, items: Iterable[Item]) -> Iterator[Item]:
        for item in items:
            if pages.size < self._most and pages.weight < self._most_bytes:
                yield item
            else:
                self.left_out += 1

    def _take(self, pages: _Pages, weight: int) -> None:
        pages.size += 1
        pages.weight += weight
        self._size += 1
        self._weight += weight

    def trace(self, trace_id: TraceId) -> Trace | None:
        if (pages := self._traces.get(trace_id)) is None:
            return None
        spans = tuple(span for same in pages.spans.values() for span in same)
        return Trace(trace_id=trace_id, spans=spans, logs=tuple(pages.logs.values()))

    def ids(self) -> tuple[TraceId, ...]:
        """Every trace, in the order in which they became known."""
        return tuple(self._traces)

    def called(self, text: str) -> Mapping[TraceId, str]:
        """The traces whose id begins with a text, or that have a span of this id; each with which it is."""
        digits = text.strip().lower()
        if len(digits) < LEAST_NAME:
            return {}
        begin = {one: f"its id begins with {digits}" for one in self._traces if one.startswith(digits)}
        return begin or {one: "it has this span" for one, its in self._traces.items() if digits in its.spans}

    def size(self, trace_id: TraceId) -> int:
        """How many spans and log records of a trace are known: the number changes when it grows."""
        return self._traces.get(trace_id, NOTHING).size

    def changed_at(self, trace_id: TraceId) -> Nanos | None:
        """When something new of a trace came last, None where that is not known."""
        return self._traces.get(trace_id, NOTHING).changed_at

    def sources_of(self, trace_id: TraceId) -> tuple[str, ...]:
        return tuple(sorted(self._traces.get(trace_id, NOTHING).sources))

    @property
    def notice(self) -> str | None:
        """The note on traces that were dropped or left out, None if all are here."""
        said = []
        if self.dropped:
            said.append(f"{self.dropped:,} of the traces dropped, the longest unchanged first")
        if self.left_out:
            said.append(f"{counted(self.left_out, 'span')} of too large a trace left out")
        limits = f"at most {self._most:,} spans and {self._most_bytes >> 20} MB are kept"
        return f"{' and '.join(said)}: {limits}" if said else None

    def _pages(self, trace_id: TraceId, source: str) -> _Pages:
        if (pages := self._traces.get(trace_id)) is None:
            pages = self._traces[trace_id] = _Pages()
            self._quiet_first[trace_id] = None
        if source:
            pages.sources.add(source)
        return pages

    def _keep_within(self) -> list[TraceId]:
        gone: list[TraceId] = []
        while (self._size > self._most or self._weight > self._most_bytes) and len(self._traces) > 1:
            quiet = next(iter(self._quiet_first))
            del self._quiet_first[quiet]
            pages = self._traces.pop(quiet)
            self._size -= pages.size
            self._weight -= pages.weight
            self.dropped += 1
            gone.append(quiet)
        return gone


def _is_among(span: Span, known: Iterable[Span]) -> bool:
    return any(span == one or _is_rounded(span, one) or _is_rounded(one, span) for one in known)


def _how_fine(span: Span) -> tuple[bool, int, int]:
    """The sort key of copies of a span that were rounded differently: the greater one is kept."""
    is_fine = bool(span.started_at % ROUNDING_NS or (span.ended_at or 0) % ROUNDING_NS)
    return is_fine, span.started_at, span.ended_at or 0


def _is_rounded(rough: Span, fine: Span) -> bool:
    if rough.started_at % ROUNDING_NS or rough.name != fine.name or rough.status is not fine.status:
        return False
    if rough.ended_at is None or fine.ended_at is None:
        return False
    ends = abs(rough.ended_at - fine.ended_at) < 2 * ROUNDING_NS
    return ends and 0 <= fine.started_at - rough.started_at < ROUNDING_NS


def _weight_of_span(span: Span, senders: set[int]) -> int:
    """About how many bytes a span takes; its sender counts once for all its spans."""
    weight = SPAN_BYTES + len(span.name) + len(span.message) + _weight(span.attributes)
    weight += sum(VALUE_BYTES + len(event.name) + _weight(event.attributes) for event in span.events)
    weight += sum(VALUE_BYTES + _weight(link.attributes) for link in span.links)
    if id(span.resource) not in senders:
        senders.add(id(span.resource))
        weight += _weight(span.resource.attributes)
    return weight


def _weight(value: object) -> int:
    if isinstance(value, str):
        return VALUE_BYTES + len(value)
    if isinstance(value, Mapping):
        return VALUE_BYTES + sum(len(str(key)) + _weight(one) for key, one in value.items())
    if isinstance(value, list | tuple):
        return VALUE_BYTES + sum(map(_weight, value))
    return VALUE_BYTES
