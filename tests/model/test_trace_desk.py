"""A list of traces of which a part is yet to come."""

from jobtui.model.clock import Nanos
from jobtui.model.trace_desk import TraceList, TraceSummary, with_awaited
from jobtui.model.trace_ids import TraceId


def told(number: int, source: str, spans: int | None = 1) -> TraceSummary:
    return TraceSummary(
        trace_id=TraceId(f"{number:032x}"), source=source, spans=spans, started_at=Nanos(number)
    )


def test_what_is_awaited_stands_as_it_was_told_before() -> None:
    found = TraceList(traces=(told(4, "a"),), awaited=frozenset("b"))
    before = (told(1, "a"), told(2, "b"), told(3, "c"), told(5, "b"))
    assert with_awaited(found, before) == (told(5, "b"), told(4, "a"), told(2, "b"))
    assert with_awaited(found, before, most=2) == (told(5, "b"), told(4, "a"))


def test_of_two_that_tell_of_one_trace_the_one_that_knows_more_stands() -> None:
    found = TraceList(traces=(told(1, "a", 3), told(2, "a", 3)), awaited=frozenset("b"))
    before = (told(1, "b", 7), told(2, "b", 2))
    assert with_awaited(found, before) == (told(2, "a", 3), told(1, "b", 7))


def test_when_all_have_answered_nothing_stands_that_was_not_found() -> None:
    assert with_awaited(TraceList(traces=(told(1, "a"),)), (told(2, "b"),)) == (told(1, "a"),)
