import pytest

from jobtui.analysis.traces.failures import study_trace
from jobtui.model.clock import Nanos
from jobtui.render.traces import trace_lines
from jobtui.render.waterfall import span_time
from tests.tracing import a_span, a_trace, captured


@pytest.mark.parametrize(
    ("nanos", "text"),
    [
        (None, "–"), (0, "0"), (999, "999ns"), (12_345, "12.3µs"), (187_000, "187µs"), (1_500_000, "1.5ms"),
        (845_000_000, "845ms"), (2_900_000_000, "2.9s"), (83_000_000_000, "1m23s"), (-5_000_000, "-5.0ms"),
    ],
)  # fmt: skip
def test_times_are_in_the_unit_that_says_most(nanos: int | None, text: str) -> None:
    assert span_time(nanos) == text


def test_what_failed_stands_before_the_waterfall() -> None:
    lines = list(trace_lines(study_trace(captured("job-fail")), ("a note",), 80, False))
    assert lines[:2] == [
        "212c891717bfbac28a34dec05b616f14  ✗ hardWork.step step=7: "
        "RuntimeError: fail flag triggered at step 7 of 10",
        "note      a note",
    ]
    said = lines.index("✗ hardWork.step  tracingJob  RuntimeError: fail flag triggered at step 7 of 10")
    assert said < next(at for at, line in enumerate(lines) if line.endswith("took"))


def test_spans_at_both_ends_of_time_are_drawn() -> None:
    spans = [a_span(1, start=1, end=2), a_span(2, 1, (1 << 64) - 1, Nanos(1))]
    assert list(trace_lines(study_trace(a_trace(*spans)), (), 80, True))
