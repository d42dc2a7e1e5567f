from jobtui.model.clock import Nanos
from jobtui.model.trace_ids import TraceId
from jobtui.model.traces import Span, SpanLog
from jobtui.store.trace_book import TraceBook
from tests.tracing import SERVICE, TRACE_ID, a_span, span_id

LOG = SpanLog(TRACE_ID, span_id(1), Nanos(5), "INFO", "hello", SERVICE)


def spans_in(book: TraceBook) -> list[Span]:
    trace = book.trace(TRACE_ID)
    assert trace is not None
    return list(trace.spans)


def test_adding_the_same_twice_changes_nothing_more() -> None:
    book = TraceBook()
    for _ in range(2):
        book.add([a_span(1), a_span(2)], [LOG])
    assert spans_in(book) == [a_span(1), a_span(2)]
    trace = book.trace(TRACE_ID)
    assert trace is not None
    assert trace.logs == (LOG,)


def test_a_span_that_was_sent_twice_is_kept_twice() -> None:
    book = TraceBook()
    for _ in range(2):
        book.add([a_span(1), a_span(1)], [])
    assert spans_in(book) == [a_span(1)] * 2


def test_another_version_of_a_span_is_kept_beside_it() -> None:
    book = TraceBook()
    book.add([a_span(1, end=None)], [])
    book.add([a_span(1, end=3_000)], [])
    assert spans_in(book) == [a_span(1, end=None), a_span(1, end=3_000)]


def test_the_trace_that_came_first_is_let_go_and_counted() -> None:
    book = TraceBook(most=3)
    ids = [TraceId(f"{n:032x}") for n in range(1, 5)]
    for trace_id in ids:
        book.add([Span(trace_id, span_id(1), None, "", SERVICE, Nanos(1), None)], [])
    assert book.ids() == tuple(ids[1:])
    assert (book.dropped, book.trace(ids[0])) == (1, None)


def test_one_trace_is_kept_however_large() -> None:
    book = TraceBook(most=3)
    book.add([a_span(n) for n in range(1, 10)], [])
    assert (len(spans_in(book)), book.dropped) == (9, 0)


def test_it_tells_what_is_known_better_from_where_and_since_when() -> None:
    book = TraceBook()
    assert book.add([a_span(1)], [], "file", Nanos(7)) == {TRACE_ID}
    assert book.add([a_span(1)], [], "server", Nanos(8)) == set()
    assert (book.changed_at(TRACE_ID), book.sources_of(TRACE_ID)) == (7, ("file", "server"))
    assert book.add([], [LOG], "file", Nanos(9)) == {TRACE_ID}
    assert (book.changed_at(TRACE_ID), book.size(TRACE_ID)) == (9, 2)
