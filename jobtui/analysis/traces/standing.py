"""Recent traces as a table has them: what is told of each, and whether more of it may come."""

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import NamedTuple

from jobtui.analysis.filter_nodes import Test, check_text_op, compile_node, text_test, word_test
from jobtui.analysis.filter_syntax import Comparison, FilterError, parse_nodes
from jobtui.analysis.near import nearest
from jobtui.analysis.traces.span_filter import DURATION, ERROR, duration_test, error_test
from jobtui.model.clock import Nanos
from jobtui.model.trace_desk import TraceSummary
from jobtui.model.trace_growth import growing, is_waited_for
from jobtui.model.traces import Trace


class Standing(StrEnum):
    """Whether more of a trace may come; `incomplete` is one that lacks something that will not come."""

    GROWING = "growing"
    COMPLETE = "complete"
    INCOMPLETE = "incomplete"
    UNKNOWN = "unknown"


class ListedTrace(NamedTuple):
    """A trace of a list, and how it stands."""

    told: TraceSummary
    standing: Standing = Standing.UNKNOWN

    @property
    def duration_ns(self) -> int | None:
        """Nanoseconds from its first start to its last end, None where that is not known."""
        if self.told.started_at is None or self.told.ended_at is None:
            return None
        return self.told.ended_at - self.told.started_at


def standing_of(trace: Trace | None, now: Nanos) -> Standing:
    """How a trace stands of which the spans are known."""
    if trace is None or not trace.spans:
        return Standing.UNKNOWN
    if is_waited_for(trace, now):
        return Standing.GROWING
    return Standing.INCOMPLETE if growing(trace, now) else Standing.COMPLETE


TraceTest = Callable[[ListedTrace], bool]


def _services(listed: ListedTrace) -> Iterator[str]:
    yield listed.told.service
    yield from listed.told.services


_TEXTS: dict[str, Callable[[ListedTrace], tuple[str, ...]]] = {
    "name": lambda listed: (listed.told.name,),
    "service": lambda listed: tuple(_services(listed)),
    "id": lambda listed: (listed.told.trace_id,),
    "source": lambda listed: (listed.told.source,),
    "state": lambda listed: (listed.standing.value,),
}
FIELD_NAMES = (*_TEXTS, DURATION, ERROR)
"""The fields of the filter of traces, as they are written."""


def parse_trace_filter(text: str) -> TraceTest:
    """What tells whether a trace of a list passes. Raises FilterError and nothing else."""
    return compile_node(parse_nodes(text), lambda word: word_test(word, _said), _comparison)


def _said(listed: ListedTrace) -> Iterator[str]:
    """All that a word is looked for in."""
    for texts in _TEXTS.values():
        yield from texts(listed)


def _comparison(node: Comparison) -> Test[ListedTrace]:
    name = node.field.text.lower()
    if name == DURATION:
        return duration_test(node, lambda listed: listed.duration_ns)
    check_text_op(node, node.field.text)
    if name == ERROR:
        return error_test(node, lambda listed: bool(listed.told.errors))
    texts = _TEXTS.get(name)
    if texts is None:
        message = f"traces have no field {node.field.text}"
        raise FilterError(node.field.start, node.field.end, message, nearest(name, FIELD_NAMES))
    return text_test(texts, node.op, [value.text.lower() for value in node.values])
