"""The filter languages for spans and for traces of a list: the grammar of that for jobs, with other fields.

`service:worker dur>=10ms error:yes name:getToken -kind:client`; a word is found in name, service, message and
the values of attributes. Any other field is an attribute of the span or of what sent it: `host.name:w03`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from operator import eq, ge, gt, le, lt
from typing import NamedTuple

from jobtui.analysis import filter_syntax
from jobtui.analysis.filter_syntax import YES_NO_WORDS
from jobtui.analysis.times import parse_duration
from jobtui.analysis.traces.failures import study_trace
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.traces import Span, Trace, TraceSummary, growing, is_waited_for

SpanTest = Callable[[Span], bool]

DURATION, ERROR = "dur", "error"
_ORDER: Mapping[str, Callable[[int, int], bool]] = {
    "<": lt, "<=": le, ">": gt, ">=": ge, "=": eq, ":": ge, "!=": lambda one, other: one != other,
}  # fmt: skip
"""`dur:10ms` means at least 10 ms."""
_DOTTED = re.compile(r"(\w+(?:[.-]\w+)+)([:=])(.+)", re.DOTALL)
"""An attribute with a value, which the grammar takes for a word: no field of jobs has a dot."""


def known_test(passes: SpanTest, spans: Iterable[Span]) -> SpanTest:
    """The same test with these answers; it tests every other span once."""
    known = {span.span_id: passes(span) for span in spans}

    def test(span: Span) -> bool:
        if (passed := known.get(span.span_id)) is None:
            passed = known[span.span_id] = passes(span)
        return passed

    return test


def nanos_of(value: filter_syntax.Value) -> int:
    """A length of time as people write it, `10ms` or `1m30s`, in nanoseconds. Raises FilterError."""
    seconds = parse_duration(value.text, in_order=False)
    if seconds is None:
        raise filter_syntax.FilterError(value.start, value.end, f"{value.text} is not a duration", "10ms")
    return round(seconds * SECOND)


def _word(node: filter_syntax.Word) -> SpanTest:
    if named := _DOTTED.fullmatch(node.value.text):
        return filter_syntax.text_test(_attribute(named[1]), named[2], [named[3].lower()])
    return filter_syntax.word_test(node, _texts)


def _texts(span: Span) -> Iterator[str]:
    yield from (span.name, span.service, span.message, span.span_id)
    yield from (str(value) for value in span.attributes.values())
    for event in span.events:
        yield event.name
        yield from (str(value) for value in event.attributes.values())


def _attribute(name: str) -> filter_syntax.Texts[Span]:
    def texts(span: Span) -> Iterator[str]:
        for held in (span.attributes, span.resource.attributes):
            if name in held:
                yield str(held[name])

    return texts


def duration_test(
    node: filter_syntax.FieldComparison, length: Callable[[filter_syntax.Record], int | None]
) -> filter_syntax.Test[filter_syntax.Record]:
    """A test of a length in nanoseconds; something without a length never passes."""
    compare = _ORDER.get(node.op)
    if compare is None:
        raise filter_syntax.FilterError(
            node.field.end, node.values[0].start, f"{node.op} does not apply to dur", "dur>="
        )
    wanted = [nanos_of(value) for value in node.values]

    def test(record: filter_syntax.Record) -> bool:
        nanos = length(record)
        return nanos is not None and any(compare(nanos, one) for one in wanted)

    return test


def error_test(
    node: filter_syntax.FieldComparison, is_error: Callable[[filter_syntax.Record], bool]
) -> filter_syntax.Test[filter_syntax.Record]:
    filter_syntax.check_text_op(node, node.field.text)
    value = node.values[0]
    wanted = YES_NO_WORDS.get(value.text.lower())
    if wanted is None:
        raise filter_syntax.FilterError(value.start, value.end, f"{value.text} is neither yes nor no", "yes")
    is_same = node.op != "!="
    return lambda record: (is_error(record) == wanted) == is_same


SPAN_FIELDS: filter_syntax.TextFields[Span] = filter_syntax.TextFields("spans", {
    "name": lambda span: (span.name,),
    "service": lambda span: (span.service,),
    "kind": lambda span: (span.kind.value,),
    "scope": lambda span: (span.scope,),
    "message": lambda span: (span.message,),
    "event": lambda span: (event.name for event in span.events),
    "id": lambda span: (span.span_id,),
}, {
    DURATION: lambda node: duration_test(node, lambda span: span.duration_ns),
    ERROR: lambda node: error_test(node, lambda span: span.is_error),
}, _word, _attribute)  # fmt: skip


class TraceState(StrEnum):
    """The state of a trace. `incomplete`: something is missing that will not come.

    `failed`: complete, and it shows a failure, even if no span says so itself.
    """

    GROWING = "growing"
    COMPLETE = "complete"
    FAILED = "failed"
    INCOMPLETE = "incomplete"
    UNKNOWN = "unknown"


class TraceJudgement(NamedTuple):
    """The state of a trace, its first failure, and who sent it, as far as its spans say."""

    standing: TraceState = TraceState.UNKNOWN
    failed: str = ""
    user: str = ""


class ListedTrace(NamedTuple):
    summary: TraceSummary
    judged: TraceJudgement = TraceJudgement()
    jobs: tuple[str, ...] = ()
    """The jobs that its spans name, as they are written there."""

    @property
    def standing(self) -> TraceState:
        return self.judged.standing

    @property
    def duration_ns(self) -> int | None:
        """Nanoseconds from its first start to its last end, None where that is not known."""
        if self.summary.started_at is None or self.summary.ended_at is None:
            return None
        return self.summary.ended_at - self.summary.started_at


USERS = ("enduser.id", "user.name", "user.id", "process.owner")
"""Attributes that name the user, by OpenTelemetry's conventions."""


def judged(trace: Trace | None, now: Nanos) -> TraceJudgement:
    if trace is None or not trace.spans:
        return TraceJudgement()
    found = study_trace(trace)
    said = next((cause for cause in found.causes if not cause.is_handled), None)
    text = f"{said.span.name}: {said.message}".removesuffix(": ") if said else ""
    failed = text or next((one.text for one in found.failures if found.has_failed), "")
    senders = {id(span.resource): span.resource.attributes for span in trace.spans}.values()
    held = (*(span.attributes for span in found.tree.roots), *senders)
    user = next((str(its[key]) for key in USERS for its in held if its.get(key)), "")
    if is_waited_for(trace, now):
        return TraceJudgement(TraceState.GROWING, failed, user)
    if growing(trace, now):
        return TraceJudgement(TraceState.INCOMPLETE, failed, user)
    return TraceJudgement(TraceState.FAILED if found.has_failed else TraceState.COMPLETE, failed, user)


TRACE_FIELDS: filter_syntax.TextFields[ListedTrace] = filter_syntax.TextFields("traces", {
    "name": lambda listed: (listed.summary.name,),
    "service": lambda listed: (listed.summary.service, *listed.summary.services),
    "job": lambda listed: listed.jobs,
    "user": lambda listed: (listed.judged.user,),
    "failed": lambda listed: (listed.judged.failed,),
    "id": lambda listed: (listed.summary.trace_id,),
    "source": lambda listed: (listed.summary.source,),
    "state": lambda listed: (listed.standing.value,),
}, {
    DURATION: lambda node: duration_test(node, lambda listed: listed.duration_ns),
    ERROR: lambda node: error_test(node, lambda listed: bool(listed.summary.errors)),
})  # fmt: skip
