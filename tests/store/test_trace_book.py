from jobtui.analysis.late_correlate import LateCorrelator
from jobtui.backends.base import Batch
from jobtui.model.clock import FixedClock, Nanos
from jobtui.model.trace_ids import TraceId
from jobtui.model.traces import Span, SpanLog
from jobtui.store.parts import apply_in_parts
from jobtui.store.store import Store
from jobtui.store.trace_book import TraceBook
from tests.conftest import NOW
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


def test_one_trace_that_fills_the_book_takes_in_no_more_and_that_is_counted() -> None:
    book = TraceBook(most=3)
    book.add([a_span(n) for n in range(1, 10)], [LOG])
    assert (len(spans_in(book)), book.dropped, book.left_out) == (3, 0, 7)
    book.add([Span(TraceId("e" * 32), span_id(1), None, "", SERVICE, Nanos(1), None)], [])
    assert (book.trace(TRACE_ID), book.dropped) == (None, 1)
    assert book.notice == (
        "1 of the traces let go, the most quiet first and 7 spans of too large a trace left out: "
        "at most 3 spans and 256 MB are kept"
    )


def test_the_trace_that_has_not_grown_for_longest_is_let_go() -> None:
    book = TraceBook(most=3)
    ids = [TraceId(f"{n:032x}") for n in range(1, 4)]
    for trace_id, number in ((ids[0], 1), (ids[1], 1), (ids[0], 2), (ids[2], 1)):
        book.add([Span(trace_id, span_id(number), None, "", SERVICE, Nanos(1), None)], [])
    assert book.ids() == (ids[0], ids[2])


def test_memory_is_bounded_too() -> None:
    book = TraceBook(most_bytes=50_000)
    for number in range(1, 100):
        trace_id = TraceId(f"{number:032x}")
        book.add([Span(trace_id, span_id(1), None, "x" * 10_000, SERVICE, Nanos(1), None)], [])
    assert (len(book.ids()), book.dropped) == (4, 95)


def test_a_span_with_rounded_times_is_the_one_that_is_known() -> None:
    fine, rough = a_span(1, start=1_999, end=5_500), a_span(1, start=1_000, end=4_000)
    for first, second in ((fine, rough), (rough, fine)):
        book = TraceBook()
        book.add([first], [])
        book.add([second], [])
        assert spans_in(book) == [first]
    book.add([a_span(1, start=3_000, end=4_000)], [])
    assert len(spans_in(book)) == 2


def test_it_tells_what_is_known_better_from_where_and_since_when() -> None:
    book = TraceBook()
    assert book.add([a_span(1)], [], "file", Nanos(7)) == {TRACE_ID}
    assert book.add([a_span(1)], [], "server", Nanos(8)) == set()
    assert (book.changed_at(TRACE_ID), book.sources_of(TRACE_ID)) == (7, ("file", "server"))
    assert book.add([], [LOG], "file", Nanos(9)) == {TRACE_ID}
    assert (book.changed_at(TRACE_ID), book.size(TRACE_ID)) == (9, 2)


def test_what_was_let_go_is_said_of_the_sources_of_traces() -> None:
    store = Store(LateCorrelator(), FixedClock(NOW))
    store.traces = TraceBook(most=1)
    for name, kind in (("spans.json", "trace_file"), ("db", "sirepo_db")):
        store.add_source(name, kind)
    for number in (1, 2):
        span = Span(TraceId(f"{number:032x}"), span_id(1), None, "", SERVICE, Nanos(1), None)
        store.apply("spans.json", Batch(cursor="", spans=(span,), note="a file"))
    notes = [source.note for source in store.sources()]
    assert notes == [f"a file; {store.traces.notice}", None]


async def test_a_batch_of_many_spans_is_taken_in_a_part_at_a_time() -> None:
    store = Store(LateCorrelator(), FixedClock(NOW))
    store.add_source("spans.json", "trace_file")
    told: list[int] = []
    store.subscribe(lambda _: told.append(store.traces.size(TRACE_ID)))
    spans = (*(a_span(n) for n in range(1, 4_501)), a_span(1))
    await apply_in_parts(store, "spans.json", Batch(cursor="", spans=spans, count=4_501))
    assert store.traces.size(TRACE_ID) == 4_501
    assert len(told) > 2
    assert store.sources()[0].records == 4_501
