import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.analysis.traces.failures import study_trace
from jobtui.analysis.traces.layout import RUN_LENGTH, ShownLines, lay_out
from jobtui.model.traces import Resource, Span, Trace
from jobtui.render.text import width
from jobtui.render.traces import BAR_CELLS, MOST_ROWS, waterfall_lines
from tests.tracing import EXPECTED, a_span, a_trace, captured

MS, SECOND = 10**6, 10**9


def drawn(trace: Trace, cells: int | None = None, most: int | None = MOST_ROWS) -> list[str]:
    """The lines without their headings."""
    _, *lines = waterfall_lines(study_trace(trace), cells, False, most)
    return lines


def cells_of(line: str) -> list[str]:
    """What stands in the columns of a line, without the bar's cells that are blank."""
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def work(*spans: Span) -> Trace:
    return a_trace(a_span(1, start=MS, end=99 * MS), *spans)


def events(first: int, count: int, *, bad: int | None = None, open_: int | None = None) -> list[Span]:
    return [
        a_span(n, 1, n * MS, None if n == open_ else n * MS + MS // 2, name="event", error=n == bad)
        for n in range(first, first + count)
    ]


def test_like_spans_beside_each_other_are_one_row() -> None:
    *_, row = drawn(work(*events(2, 20)))
    assert cells_of(row) == ["1.0ms", "10ms", "━━━━━━━", "work", "event", "× 20"]


def test_spans_with_others_below_them_are_one_row_too() -> None:
    inside = [a_span(100 + n, n, n * MS, n * MS + 1, name="read") for n in range(2, 22)]
    assert len(drawn(work(*events(2, 20), *inside))) == 2


def test_a_few_like_spans_stay_apart() -> None:
    assert len(drawn(work(*events(2, RUN_LENGTH - 1)))) == RUN_LENGTH


@pytest.mark.parametrize(("trouble", "said"), [("bad", "handled"), ("open_", "open")])
def test_what_failed_or_is_open_stands_alone_among_its_like(trouble: str, said: str) -> None:
    _, before, alone, after = drawn(work(*events(2, 20, **{trouble: 10})))
    assert (cells_of(before)[-1], cells_of(after)[-1]) == ("× 8", "× 11")
    assert said in cells_of(alone)


def test_a_run_is_of_several_services() -> None:
    spans = [
        a_span(n, 1, n * MS, n * MS + 1, name="event", service=Resource(f"worker-{n % 3}", {}))
        for n in range(2, 10)
    ]
    assert cells_of(drawn(work(*spans))[-1])[-3:] == ["3 services", "event", "× 8"]


def test_without_a_limit_each_of_like_spans_has_its_row() -> None:
    rows = drawn(work(*events(2, 20)), most=None)
    assert [cells_of(row)[-1] for row in rows[1:3]] == ["× 20", "event"]
    assert len(rows) == 22


def test_a_wait_is_a_row_with_its_length() -> None:
    spans = [
        a_span(1, start=SECOND, end=2 * SECOND),
        a_span(2, 1, SECOND, 2 * SECOND),
        a_span(3, 1, 90 * SECOND, 91 * SECOND),
    ]
    rows = [cells_of(row) for row in drawn(a_trace(*spans), 80)]
    assert rows[2] == ["1s", "1m28s", "┄┄┄", "┄┄ nothing ran ┄┄"]


def test_a_parent_that_was_not_received_stands_above_its_children() -> None:
    rows = drawn(a_trace(a_span(1), a_span(2, 77, 1_500, 1_600)))
    assert cells_of(rows[1]) == ["000000000000004d", "not received"]
    assert rows[2].index("s2") == rows[1].index("0000") + 2


def test_root_cause_passed_on_and_handled_errors_are_told_apart() -> None:
    spans = [
        a_span(1, start=MS, end=9 * MS, error=True),
        a_span(2, 1, 2 * MS, 3 * MS, error=True),
        a_span(3, 1, 4 * MS, 8 * MS),
        a_span(4, 3, 5 * MS, 6 * MS, error=True),
    ]
    notes = [cells_of(row)[-1] for row in drawn(a_trace(*spans))]
    assert notes == ["error", "root cause", "s3", "handled"]


def test_a_span_that_failed_by_what_it_says_is_marked_though_it_is_no_error() -> None:
    spans = [a_span(2, 1, 2 * MS, 3 * MS, attributes={"exit_code": 2}), a_span(3, 1, 4 * MS, 8 * MS)]
    notes = [cells_of(row)[-1] for row in drawn(a_trace(a_span(1, start=MS, end=9 * MS), *spans))]
    assert notes == ["s1", "root cause", "s3"]
    assert cells_of(drawn(captured("jobsub-fail-condor"))[-1])[-2:] == ["submit", "root cause"]


def test_colours_are_for_what_failed_and_for_words_that_want_care() -> None:
    spans = [a_span(2, 1, 2 * MS, 3 * MS, error=True, name="bad"), a_span(3, 1, 4 * MS, 4 * MS, name="good")]
    _, root, bad, good = waterfall_lines(study_trace(work(*spans)), 80, True, MOST_ROWS)
    assert "\x1b[33m" in bad
    assert "\x1b" not in root + good


def test_what_is_open_is_told_from_what_failed_by_its_colour() -> None:
    rows = waterfall_lines(study_trace(work(a_span(2, 1, 2 * MS, None))), 80, True, MOST_ROWS)
    assert "\x1b[32mopen" in list(rows)[-1].replace("\x1b[32m ", "\x1b[32m")


def test_of_a_large_trace_what_matters_is_drawn() -> None:
    found = study_trace(captured("big-5000"))
    note, _, *rows = waterfall_lines(found, None, False, most=14)
    assert note == "14 of 28 rows, those that lead to errors or took the time; --plain has all"
    assert len(rows) == 14
    assert sum(line.endswith("root cause") for line in rows) == 1
    assert sum(line.endswith(" error") for line in rows) == 2
    assert sum("nothing ran" in line for line in rows) == 1
    assert sum("× 371" in line for line in rows) == 1
    assert len(list(waterfall_lines(found, None, False, most=None))) > 5_000


def test_of_a_large_trace_open_spans_and_parents_that_did_not_come_are_drawn() -> None:
    many = [a_span(n, 1, n * MS, n * MS + 1, name="ab"[n % 2]) for n in range(10, 60)]
    late = [a_span(2, 99, 2 * MS, 3 * MS, error=True), a_span(3, 1, 95 * MS, None, name="hangs")]
    _, _, *rows = waterfall_lines(study_trace(work(*many, *late)), None, False, most=5)
    assert [cells_of(row)[-1] for row in rows if "not received" in row] == ["not received"]
    assert any("hangs" in row for row in rows)
    assert len(rows) == 5


SPANS = st.lists(
    st.tuples(
        st.integers(1, 40),
        st.none() | st.integers(1, 6),
        st.integers(0, 50),
        st.none() | st.integers(0, 60),
        st.booleans(),
        st.sampled_from(("event", "work")),
    ),
    max_size=30,
).map(
    lambda rows: [
        a_span(n, parent, start, end, error=error, name=f"{name} {n}")
        for n, parent, start, end, error, name in rows
    ]
)


@given(SPANS, st.integers(1, 40))
@settings(max_examples=100, deadline=None)
def test_its_rows_are_the_lines_of_the_screen(spans: list[Span], most: int) -> None:
    trace = a_trace(*spans)
    shown = ShownLines(lay_out(study_trace(trace)))
    if spans:
        assert len(drawn(trace)) == len(shown.numbers)
        assert len(drawn(trace, most=None)) == len(shown.layout.lines)
        limited = drawn(trace, most=most)
        assert len(limited) <= max(most + 1, 2) or len(shown.numbers) <= most


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("cells", [20, 40, 60, 80, 120])
def test_no_row_is_wider_than_the_terminal(name: str, cells: int) -> None:
    lines = list(waterfall_lines(study_trace(captured(name)), cells, False, MOST_ROWS))
    assert max(map(width, lines)) <= max(cells, 56)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_bar_has_its_cells_and_no_more(name: str) -> None:
    heading, *lines = waterfall_lines(study_trace(captured(name)), None, False, MOST_ROWS)
    first = heading.index("TOOK") + 6
    for line in lines:
        assert set(line[first : first + BAR_CELLS]) <= set(" ━╸╺│┊┄›✗")
        assert line[first + BAR_CELLS : first + BAR_CELLS + 2].strip() == ""


def test_a_trace_without_any_time_is_drawn() -> None:
    (row,) = drawn(a_trace(a_span(1, start=0, end=None)), 80)
    assert cells_of(row) == ["–", "open", "work", "s1", "without a time"]


def test_a_trace_of_one_moment_is_drawn() -> None:
    (row,) = drawn(a_trace(a_span(1, start=5, end=5)), 80)
    assert "│" in row


@pytest.mark.parametrize(("cells", "name"), [(None, "[99] s100"), (120, "[99] s100"), (80, "[99] s100")])
def test_what_is_very_deep_is_drawn_with_its_level(cells: int | None, name: str) -> None:
    spans = [a_span(n, n - 1 or None, n, 900 - n) for n in range(1, 101)]
    assert drawn(a_trace(*spans), cells)[-1].endswith(name)
