import pytest

from jobtui.analysis.traces.findings import study_trace
from jobtui.model.clock import Nanos
from jobtui.render.trace_view import BAR_CELLS, span_time, trace_lines
from tests.tracing import EXPECTED, a_span, a_trace, captured


@pytest.mark.parametrize(
    ("nanos", "text"),
    [
        (None, "–"), (0, "0"), (999, "999ns"), (12_345, "12.3µs"), (187_000, "187µs"), (1_500_000, "1.5ms"),
        (845_000_000, "845ms"), (2_900_000_000, "2.9s"), (83_000_000_000, "1m23s"), (-5_000_000, "-5.0ms"),
    ],
)  # fmt: skip
def test_times_are_in_the_unit_that_says_most(nanos: int | None, text: str) -> None:
    assert span_time(nanos) == text


def test_of_a_large_trace_what_matters_is_drawn() -> None:
    trace = captured("big-5000")
    lines = list(trace_lines(study_trace(trace), (), None, False, most=60))
    note = next(line for line in lines if "--plain has all" in line)
    rows = lines[lines.index(note) + 2 :]
    assert note.startswith(f"{len(rows)} of ")
    assert len(rows) <= 60
    assert sum(line.endswith("root cause") for line in rows) == 1
    assert sum(line.endswith(" error") for line in rows) == 2
    whole = list(trace_lines(study_trace(trace), (), None, False, most=None))
    assert len(whole) > 1_000


def test_like_spans_beside_each_other_are_one_row() -> None:
    spans = [
        a_span(1, end=99_000),
        *(a_span(n, 1, n * 1_000, n * 1_000 + 500, name="event") for n in range(2, 22)),
    ]
    lines = list(trace_lines(study_trace(a_trace(*spans)), (), None, False))
    assert [line.split()[-3:] for line in lines if "event" in line] == [["event", "x", "20"]]
    assert "10.0µs" in next(line for line in lines if "event" in line)


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("cells", [20, 40, 60, 80, 120])
def test_no_line_of_the_waterfall_is_wider_than_the_terminal(name: str, cells: int) -> None:
    lines = list(trace_lines(study_trace(captured(name)), (), cells, False))
    start = next(index for index, line in enumerate(lines) if line.strip().startswith("FROM"))
    assert max(map(len, lines[start:])) <= max(cells, 56)
    for line in lines[start + 1 :] if cells == 120 else ():
        assert len(line[16 : 16 + BAR_CELLS]) <= BAR_CELLS


def test_a_trace_without_any_time_is_drawn() -> None:
    lines = list(trace_lines(study_trace(a_trace(a_span(1, start=0, end=None))), (), 80, False))
    assert any("without a time, open" in line for line in lines)


def test_a_trace_of_one_moment_is_drawn() -> None:
    lines = list(trace_lines(study_trace(a_trace(a_span(1, start=5, end=5))), (), 80, False))
    assert "│" in lines[-1]


def test_spans_at_both_ends_of_time_are_drawn() -> None:
    spans = [a_span(1, start=1, end=2), a_span(2, 1, (1 << 64) - 1, Nanos(1))]
    assert list(trace_lines(study_trace(a_trace(*spans)), (), 80, True))


def test_a_very_deep_trace_is_drawn_with_its_levels() -> None:
    spans = [a_span(n, n - 1 or None, n, 900 - n) for n in range(1, 101)]
    lines = list(trace_lines(study_trace(a_trace(*spans)), (), None, False))
    assert lines[-1].rstrip().endswith("[99] s100")
