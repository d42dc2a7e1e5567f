import pytest

from jobtui.model.clock import SECOND, Nanos
from jobtui.model.trace_growth import QUIET_S, growing, is_waited_for
from jobtui.model.trace_ids import SpanId, TraceId
from jobtui.model.traces import Resource, Span, Trace

ENDED = Nanos(1_795_206_870 * SECOND)
TRACE = TraceId("0af7651916cd43dd8448eb211c80319c")


def trace_of(*spans: tuple[str, str | None, Nanos | None]) -> Trace:
    return Trace(trace_id=TRACE, spans=tuple(span_of(*span) for span in spans))


def span_of(own: str, parent: str | None, end: Nanos | None) -> Span:
    above = SpanId(parent * 16) if parent else None
    return Span(TRACE, SpanId(own * 16), above, "job", Resource("fife", {}), Nanos(ENDED - SECOND), end)


@pytest.mark.parametrize(
    ("spans", "later_s", "why"),
    [
        ([], 0, "no span was received"),
        ([("a", "b", ENDED)], 900, "its root was not received"),
        ([("a", None, None)], 900, "its root has not ended"),
        ([("a", None, ENDED), ("b", "c", ENDED)], 900, "1 parent was not received"),
        ([("a", None, ENDED), ("b", "c", ENDED), ("d", "e", ENDED)], 900, "2 parents were not received"),
        ([("a", None, ENDED)], 12, "its last span came 12s ago"),
        ([("a", None, ENDED)], QUIET_S, ""),
    ],
)
def test_it_is_said_why_more_may_come(
    spans: list[tuple[str, str | None, Nanos | None]], later_s: float, why: str
) -> None:
    trace = trace_of(*spans)
    assert growing(trace, Nanos(ENDED + round(later_s) * SECOND)) == why


def test_what_was_seen_to_grow_a_moment_ago_is_not_quiet() -> None:
    trace, now = trace_of(("a", None, ENDED)), Nanos(ENDED + 900 * SECOND)
    assert growing(trace, now, Nanos(now - 4 * SECOND)) == "its last span came 4s ago"
    assert is_waited_for(trace, now, Nanos(now - 4 * SECOND))
    assert not is_waited_for(trace, now)
