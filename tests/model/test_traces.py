"""Traces: their ids, how long more of them may come, and lists that miss a part."""

from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.model import traces
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import SpanId, TraceId, find_trace
from tests.offenders import each


@given(st.text(alphabet="0123456789abcdefF-tracepn/: =\"'http", max_size=200) | st.text(max_size=100))
@settings(max_examples=200, deadline=None)
def test_any_text_gives_a_whole_id_or_none(text: str) -> None:
    ref = find_trace(text)
    for one in () if ref is None else (ref.trace_id, *ref.others):
        assert len(one) == 32
        int(one, 16)


@given(st.integers(min_value=1, max_value=(1 << 128) - 1), st.integers(min_value=1, max_value=(1 << 64) - 1))
@settings(max_examples=100, deadline=None)
def test_every_traceparent_is_read_back(trace: int, span: int) -> None:
    ref = find_trace(f"x=00-{trace:032x}-{span:016x}-01 y")
    assert ref is not None
    assert (int(ref.trace_id, 16), ref.span_id, ref.notes) == (trace, f"{span:016x}", ())


ENDED = Nanos(1_795_206_870 * SECOND)
TRACE = TraceId("0af7651916cd43dd8448eb211c80319c")


def trace_of(*spans: tuple[str, str | None, Nanos | None]) -> traces.Trace:
    return traces.Trace(trace_id=TRACE, spans=tuple(span_of(*span) for span in spans))


def span_of(own: str, parent: str | None, end: Nanos | None) -> traces.Span:
    above = SpanId(parent * 16) if parent else None
    return traces.Span(
        TRACE, SpanId(own * 16), above, "job", traces.Resource("fife", {}), Nanos(ENDED - SECOND), end
    )


@each(
    ([], 0, "no span was received"),
    ([("a", "b", ENDED)], 900, "its root was not received"),
    ([("a", None, None)], 900, "its root has not ended"),
    ([("a", None, ENDED), ("b", "c", ENDED)], 900, "1 parent was not received"),
    ([("a", None, ENDED), ("b", "c", ENDED), ("d", "e", ENDED)], 900, "2 parents were not received"),
    ([("a", None, ENDED)], 12, "its last span came 12s ago"),
    ([("a", None, ENDED)], traces.QUIET_S, ""),
)
def test_growing_says_why_more_spans_may_come(
    spans: list[tuple[str, str | None, Nanos | None]], later_s: float, why: str
) -> None:
    trace = trace_of(*spans)
    assert traces.growing(trace, Nanos(ENDED + round(later_s) * SECOND)) == why


def test_a_trace_that_grew_a_moment_ago_is_not_quiet() -> None:
    trace, now = trace_of(("a", None, ENDED)), Nanos(ENDED + 900 * SECOND)
    assert traces.growing(trace, now, Nanos(now - 4 * SECOND)) == "its last span came 4s ago"
    assert traces.is_waited_for(trace, now, Nanos(now - 4 * SECOND))
    assert not traces.is_waited_for(trace, now)


def told(number: int, source: str, spans: int | None = 1) -> traces.TraceSummary:
    return traces.TraceSummary(
        trace_id=TraceId(f"{number:032x}"), source=source, spans=spans, started_at=Nanos(number)
    )


def test_an_awaited_trace_stays_as_it_was_listed() -> None:
    found = traces.TraceList(traces=(told(4, "a"),), awaited=frozenset("b"))
    before = (told(1, "a"), told(2, "b"), told(3, "c"), told(5, "b"))
    assert traces.with_awaited(found, before) == (told(5, "b"), told(4, "a"), told(2, "b"))
    assert traces.with_awaited(found, before, most=2) == (told(5, "b"), told(4, "a"))


def test_the_summary_that_knows_more_of_a_trace_is_listed() -> None:
    found = traces.TraceList(traces=(told(1, "a", 3), told(2, "a", 3)), awaited=frozenset("b"))
    before = (told(1, "b", 7), told(2, "b", 2))
    assert traces.with_awaited(found, before) == (told(2, "a", 3), told(1, "b", 7))
