"""The times below a chart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.model.clock import SECOND, Nanos
from jobtui.render.chart import axis_lines, axis_ticks
from tests.conftest import NOW

LEFT = 3
MINUTE = 60 * SECOND


@pytest.mark.parametrize("span", [30, 180, 1_000])
def test_the_day_is_told(span: int) -> None:
    """Of the first time, and of the first one after midnight."""
    since = Nanos(NOW + 100 * MINUTE)
    _, (_, times) = axis_lines(since, Nanos(since + span * MINUTE), LEFT, 100, None)
    days = [word for word in times.text.split() if "-" in word]
    assert days == {30: ["11-20"], 180: ["11-20", "11-21"], 1_000: ["11-21"]}[span]


@given(st.integers(0, 10**9), st.integers(1, 10**8), st.integers(1, 200), st.integers(1, 8))
def test_times_never_overlap(since_s: int, span_s: int, columns: int, left: int) -> None:
    """Each that is told is one of those at the ticks, whole, and has a blank around it."""
    since, until = Nanos(since_s * SECOND), Nanos((since_s + span_s) * SECOND)
    (_, axis, *_), (_, times) = axis_lines(since, until, left, columns, None)
    assert len(axis.text) == len(times.text) == columns
    told = [words for _, words in axis_ticks(since, until, columns)]
    rest = f" {times.text} "
    for words in told:
        rest = rest.replace(f" {words} ", "  ", 1)
    assert not rest.strip(), (told, times.text)
