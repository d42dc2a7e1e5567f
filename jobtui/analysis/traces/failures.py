"""What failed in a trace, where that began, and what else is found in it.

A root cause is an error span with no error below it: an exception marks every span that it passes through. An
error above which a span went on well was handled there. A job may fail without any error span: a call that
says so in what it returned, a process that ended with a status, one that was killed and never sent its end.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from jobtui.analysis.traces.tree import SpanWait, Tree, end_of, skew_ns, waits_of
from jobtui.model.ids import SpanId
from jobtui.model.traces import Span, SpanEvent, SpanLog, Trace

EXCEPTION = "exception"
"""The name of the event with which an exception is noted (OpenTelemetry's semantic conventions)."""
RETURNS = "returns"
GOOD_RETURNS: Mapping[tuple[str, str], str] = {("jobsub_lite", "submit"): "True"}
"""What a successful call returns, by scope and name of its span: jobsub_lite notes return values."""
EXIT_CODES = ("process.exit.code", "process.exit_code", "exit_code", "exit.status")
"""Attributes that hold the exit status of a process."""


class RootCause(NamedTuple):
    """Where something failed. `top` is the highest error span above it, or itself.

    `is_handled` when the span above that went on without being an error. `logs` are the log records of the
    span and of those below it.
    """

    span: Span
    message: str
    exception: SpanEvent | None
    logs: tuple[SpanLog, ...]
    is_handled: bool
    top: Span


class FailureKind(StrEnum):
    """How something failed without an error span."""

    RETURNED = "returned"
    EXIT_STATUS = "exit_status"
    UNFINISHED = "unfinished"


class Failure(NamedTuple):
    """A failure that no span reports as an error. `span` is the one that shows it, or the last that ended.

    `is_last` when nothing in the trace came after it.
    """

    kind: FailureKind
    span: Span
    text: str
    is_last: bool = True


def error_spans(tree: Tree) -> tuple[Span, ...]:
    return tuple(span for span in tree.spans if span.is_error)


def deepest_errors(tree: Tree) -> tuple[Span, ...]:
    above: set[SpanId] = set()
    for span in error_spans(tree):
        parent = tree.parent_of(span)
        while parent is not None and parent.span_id not in above:
            above.add(parent.span_id)
            parent = tree.parent_of(parent)
    return tuple(span for span in error_spans(tree) if span.span_id not in above)


def root_causes(tree: Tree) -> tuple[RootCause, ...]:
    """Where things failed: unhandled failures first, the latest of them before others."""
    tops: dict[SpanId, Span] = {}
    causes = [_cause(tree, span, _top(tree, span, tops)) for span in deepest_errors(tree)]
    return tuple(sorted(causes, key=lambda cause: (cause.is_handled, -end_of(cause.span))))


def _top(tree: Tree, span: Span, known: dict[SpanId, Span]) -> Span:
    """The highest error span above one with only error spans between."""
    way = [span]
    while way[-1].span_id not in known:
        parent = tree.parent_of(way[-1])
        if parent is None or not parent.is_error:
            break
        way.append(parent)
    top = known.get(way[-1].span_id, way[-1])
    known.update((one.span_id, top) for one in way)
    return top


def _cause(tree: Tree, span: Span, top: Span) -> RootCause:
    parent = tree.parent_of(top)
    is_handled = parent is not None and parent.ended_at is not None and end_of(parent) >= end_of(top)
    exception = next((event for event in reversed(span.events) if event.name == EXCEPTION), None)
    message = span.message
    if not message and exception is not None:
        said = (exception.attributes.get(key) for key in ("exception.type", "exception.message"))
        message = ": ".join(str(word) for word in said if word)
    return RootCause(span, message, exception, logs_of(tree, span), is_handled, top)


def logs_of(tree: Tree, span: Span) -> tuple[SpanLog, ...]:
    if not tree.logs:
        return ()
    found: list[SpanLog] = []
    stack = [span]
    while stack:
        one = stack.pop()
        found += tree.logs_by_span.get(one.span_id, ())
        stack += tree.below(one)
    return tuple(sorted(found, key=lambda log: log.at))


def failures(tree: Tree) -> tuple[Failure, ...]:
    return tuple(sorted((*_reported(tree), *_unfinished(tree)), key=lambda failure: failure.span.started_at))


def _reported(tree: Tree) -> Iterator[Failure]:
    for span in tree.spans:
        if span.is_error:
            continue
        good = GOOD_RETURNS.get((span.scope, span.name))
        returned = span.attributes.get(RETURNS)
        if good is not None and returned is not None and str(returned) != good:
            yield Failure(FailureKind.RETURNED, span, f"{span.name} returned {returned} and not {good}")
        status = next((span.attributes[key] for key in EXIT_CODES if key in span.attributes), None)
        if status is not None and str(status) not in ("0", "0.0", ""):
            yield Failure(FailureKind.EXIT_STATUS, span, f"{span.name} ended with status {status}")


def _unfinished(tree: Tree) -> Iterator[Failure]:
    """Processes of which only inner spans were received: they were killed, or still run. One each."""
    orphans = {span.span_id for spans in tree.missing.values() for span in spans}
    tops: dict[int, list[Span]] = {}
    sent: dict[int, list[Span]] = {}
    owners = _owners(tree)
    for span in tree.spans:
        owner = owners[span.span_id]
        sent.setdefault(owner, []).append(span)
        parent = tree.parent_of(span)
        if parent is None or owners[parent.span_id] != owner:
            tops.setdefault(owner, []).append(span)
    newest = tree.ended_at
    for owner, spans in sent.items():
        if tops.get(owner) and all(span.span_id in orphans for span in tops[owner]):
            last = max(spans, key=end_of)
            text = f"the end of {last.service or 'a process'} was not received: killed, or still running"
            is_last = newest is not None and end_of(last) >= newest
            yield Failure(FailureKind.UNFINISHED, last, f"{text}; {last.name} ended last", is_last)


def _owners(tree: Tree) -> dict[SpanId, int]:
    """A number for the process of each span, which is its resource; equal resources are one."""
    numbers: dict[str, int] = {}
    known: dict[int, int] = {}
    owners: dict[SpanId, int] = {}
    for span in tree.spans:
        key = id(span.resource)
        if key not in known:
            attributes = sorted(span.resource.attributes.items(), key=lambda item: item[0])
            known[key] = numbers.setdefault(repr((span.resource.service, attributes)), len(numbers))
        owners[span.span_id] = known[key]
    return owners


class Findings(NamedTuple):
    """What was found in a trace.

    `skewed` are spans that begin before their parent, with nanoseconds; `unplaced` are log records of no
    span, or of one that was not received: a process that was killed sends its logs and not its spans.
    """

    tree: Tree
    causes: tuple[RootCause, ...]
    failures: tuple[Failure, ...]
    waits: tuple[SpanWait, ...]
    skewed: tuple[tuple[Span, int], ...]
    unplaced: tuple[SpanLog, ...]

    @property
    def has_failed(self) -> bool:
        said = any(failure.kind is not FailureKind.UNFINISHED for failure in self.failures)
        return said or any(not cause.is_handled for cause in self.causes)

    @property
    def failed_at(self) -> Mapping[SpanId, bool]:
        """The spans at which something failed, errors or not; for each whether it was handled."""
        said = (one for one in self.failures if one.kind is not FailureKind.UNFINISHED)
        return {
            **{failure.span.span_id: False for failure in said},
            **{cause.span.span_id: cause.is_handled for cause in self.causes},
        }

    @property
    def is_unfinished(self) -> bool:
        open_ends = (one for one in self.failures if one.kind is FailureKind.UNFINISHED)
        return not self.tree.spans or any(one.is_last for one in open_ends)


def study_trace(trace: Trace) -> Findings:
    tree = Tree(trace)
    early = ((span, skew_ns(tree, span)) for span in tree.spans)
    return Findings(
        tree,
        root_causes(tree),
        failures(tree),
        waits_of(tree),
        tuple((span, nanos) for span, nanos in early if nanos),
        tuple(log for log in tree.logs if log.span_id not in tree.by_id),
    )
