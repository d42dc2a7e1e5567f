from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.analysis.traces.findings import study_trace
from jobtui.analysis.traces.layout import Layout, LineKind, kept_lines, kept_of, lay_out, shown_lines
from jobtui.analysis.traces.runs import RUN_LENGTH
from jobtui.analysis.traces.shown import ShownLines
from jobtui.analysis.traces.window import TraceWindow
from jobtui.model.traces import Span
from tests.tracing import a_span, a_trace

SECOND = 10**9


def laid_out(*spans: Span) -> Layout:
    return lay_out(study_trace(a_trace(*spans)))


def names(shown: ShownLines) -> list[str]:
    """What is shown, runs as `name*count`."""
    lines = [shown.line(index) for index in range(len(shown.numbers))]
    return [
        f"{line.run.name}*{len(line.run.spans)}" if line.run else line.span.name if line.span else "missing"
        for line in lines
    ]


def steps(first: int, count: int, parent: int = 1, *, bad: int | None = None) -> list[Span]:
    return [
        a_span(first + nth, parent, 100 * nth, 100 * nth + 50, name=f"step {nth}", error=nth == bad)
        for nth in range(count)
    ]


def test_like_siblings_are_one_line_until_they_are_unfolded() -> None:
    shown = ShownLines(laid_out(a_span(1, start=1, end=9_000), *steps(10, 8)))
    assert names(shown) == ["s1", "step 0 … step 7*8"]
    assert shown.open(1)
    assert names(shown) == ["s1", "step 0 … step 7*8", *(f"step {nth}" for nth in range(8))]
    assert shown.layout.lines[2].depth == 2
    assert shown.close(1)
    assert len(names(shown)) == 2


def test_an_error_is_never_hidden_in_a_run() -> None:
    shown = ShownLines(laid_out(a_span(1, start=1, end=9_000), *steps(10, 12, bad=6)))
    assert names(shown) == ["s1", "step 0 … step 5*6", "step 6", *(f"step {nth}" for nth in range(7, 12))]


def test_a_few_like_siblings_stay_apart() -> None:
    shown = ShownLines(laid_out(a_span(1, start=1, end=9_000), *steps(10, RUN_LENGTH - 1)))
    assert len(names(shown)) == RUN_LENGTH


def test_a_line_counts_what_is_below_it() -> None:
    layout = laid_out(
        a_span(1, end=9_000), a_span(2, 1, 2_000, 3_000), a_span(3, 2, 2_000, 12_000, error=True)
    )
    assert list(layout.spans) == [3, 2, 1]
    assert list(layout.errors) == [1, 1, 0]
    assert list(layout.lasts) == [12_000] * 3
    assert list(layout.ends) == [3, 3, 3]
    assert list(layout.above(2)) == [1, 0]


def test_a_wait_stands_before_the_span_that_ended_it() -> None:
    layout = laid_out(
        a_span(1, start=SECOND, end=2 * SECOND),
        a_span(2, 1, SECOND, 2 * SECOND),
        a_span(3, 1, 90 * SECOND, 91 * SECOND),
    )
    assert [line.kind for line in layout.lines] == [
        LineKind.SPAN,
        LineKind.SPAN,
        LineKind.WAIT,
        LineKind.SPAN,
    ]
    assert [line.depth for line in layout.lines] == [0, 1, 1, 1]


def test_a_filter_keeps_what_is_above_and_counts_what_passes() -> None:
    shown = ShownLines(laid_out(a_span(1), a_span(2, 1), a_span(3, 2, error=True), a_span(4, 1, 1_100)))
    shown.set_filter(lambda span: span.is_error)
    assert (names(shown), shown.passing) == (["s1", "s2", "s3"], 1)
    assert shown.reveal(shown.layout.lines[3].key) == 3
    assert (shown.passes, len(names(shown))) == (None, 4)


def test_what_is_folded_stays_so_while_the_trace_grows_and_new_runs_are_folded() -> None:
    spans = [a_span(1, start=1, end=9_000), a_span(2, 1, 5_000, 6_000), a_span(3, 2, 5_000, 5_500)]
    shown = ShownLines(laid_out(*spans))
    assert shown.close(1)
    shown.set_layout(laid_out(*spans, *steps(10, 7)))
    assert names(shown) == ["s1", "step 0 … step 6*7", "s2"]
    assert shown.index_of(shown.layout.lines[-1].key) == 2
    assert shown.reveal(shown.layout.lines[-1].key) == 3


def test_all_is_folded_and_unfolded_with_one_key() -> None:
    shown = ShownLines(laid_out(a_span(1, start=1, end=9_000), a_span(2, 1), a_span(3, 2), *steps(10, 7)))
    shown.toggle_all()
    assert names(shown) == ["s1", "step 0 … step 6*7", "s2"]
    shown.toggle_all()
    assert names(shown) == ["s1", "step 0 … step 6*7", "s2", "s3"]


def test_the_next_of_some_lines_is_found_both_ways_and_round() -> None:
    shown = ShownLines(
        laid_out(a_span(1), a_span(2, 1, error=True), a_span(3, 1, 1_100), a_span(4, 1, 1_200, error=True))
    )
    keys = {line.key for line in shown.layout.lines if line.span and line.span.is_error}
    places = [shown.layout.at[key] for index in (0, 1, 3) if (key := shown.next_of(keys, index, 1))]
    assert places == [1, 3, 1]
    assert shown.layout.at[shown.next_of(keys, 3, -1) or ""] == 1


def test_what_is_looked_at_stays_when_the_trace_grows() -> None:
    window = TraceWindow()
    window.set_trace(0, 1_000_000)
    window.zoom(window.axis(100, (), 8), 0.5, 500_000)
    axis = window.axis(100, (), 8)
    assert (axis.low, axis.high) == (250_000, 750_000)
    window.set_trace(0, 9_000_000)
    assert window.axis(100, (), 8).high == 750_000
    window.pan(window.axis(100, (), 8), -1.0)
    assert (window.axis(100, (), 8).low, window.is_whole) == (0, False)
    for _ in range(30):
        window.zoom(window.axis(100, (), 8), 2.0, 250_000)
    assert window.is_whole


tree_shapes = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 5_000), st.booleans(), st.sampled_from("abc")), max_size=40
)


@settings(max_examples=60)
@given(tree_shapes, st.lists(st.integers(0, 60), max_size=8))
def test_every_span_has_one_line_and_folding_loses_none(
    shape: list[tuple[int, int, bool, str]], toggled: list[int]
) -> None:
    spans = [
        a_span(nth + 1, parent or None, start + 1, start + 50, error=error and nth % 5 == 0, name=name)
        for nth, (parent, start, error, name) in enumerate(shape)
    ]
    layout = laid_out(*spans)
    own = [line.span for line in layout.lines if line.kind is LineKind.SPAN]
    assert sorted(span.span_id for span in own if span) == sorted(span.span_id for span in spans)
    assert sum(layout.spans[at] for at, line in enumerate(layout.lines) if line.depth == 0) == len(spans)
    shown = ShownLines(layout)
    for index in toggled:
        if index < len(shown.numbers) and not shown.open(index):
            shown.close(index)
        assert shown.numbers == shown_lines(layout, shown.is_closed)
    for line in layout.lines:
        at = shown.reveal(line.key)
        assert at is not None
        assert shown.line(at) == line
    kept, count = kept_lines(layout, lambda span: span.is_error)
    assert count == sum(span.is_error for span in spans)
    assert (kept, count) == kept_of(layout, [span.span_id for span in spans if span.is_error])
    assert all(kept[above] for at, is_kept in enumerate(kept) if is_kept for above in layout.above(at))
