"""What a curve does in a stretch of time, against looking at every point."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.analysis.curves import BLOCK, MINUTE, Curve, curve_turns, rate, rate_at, rate_width, steps
from jobtui.analysis.series import Series
from jobtui.analysis.turns import at_once
from jobtui.model.clock import SECOND, Nanos

HOUR = 3_600 * SECOND


def curve(*points: tuple[int, float]) -> Curve:
    """A curve of points in seconds."""
    x, y = [Nanos(at * SECOND) for at, _ in points], [value for _, value in points]
    return at_once(curve_turns(Series("s", "jobs", x, y)))


values = st.lists(st.integers(-5, 5), min_size=1, max_size=3 * BLOCK)


@settings(max_examples=50, deadline=None)
@given(values, st.integers(-10, 800), st.integers(0, 800))
def test_a_step_has_all_values_of_its_stretch(values: list[int], since: int, length: int) -> None:
    made = curve(*((at, float(value)) for at, value in enumerate(values)))
    until = since + length
    step = made.step(Nanos(since * SECOND), Nanos(until * SECOND))
    first = float(values[min(since, len(values) - 1)]) if since >= 0 else 0.0
    all_values = [first, *(float(one) for one in values[max(0, since + 1) : max(0, until)])]
    assert step == (first, min(all_values), max(all_values), all_values[-1])


def test_what_is_not_known_yet_is_not_drawn() -> None:
    made = curve((0, 1.0))
    assert len(steps(made, Nanos(0), Nanos(100 * SECOND), Nanos(49 * SECOND), 10)) == 5


def test_the_rate_of_an_even_sum_is_even() -> None:
    made = curve(*((at * 60, float(at * 2)) for at in range(61)))
    told = rate(made, Nanos(0), Nanos(HOUR), Nanos(HOUR), 60)
    assert set(told.y[1:]) == {2.0}
    assert all(at % MINUTE == 0 for at in told.x)
    assert rate_at(made, Nanos(HOUR), 10 * MINUTE) == 2.0


def test_a_stretch_that_has_just_begun_is_not_told() -> None:
    made = curve(*((at, float(at)) for at in range(3_700)))
    end = Nanos(62 * MINUTE + 5 * SECOND)
    told = rate(made, Nanos(0), Nanos(2 * HOUR), end, 12)
    assert told.x[-1] == 50 * MINUTE


@pytest.mark.parametrize(
    ("hours", "most", "width"), [(1, 60, MINUTE), (6, 60, 10 * MINUTE), (10_000, 10, 1_000 * HOUR)]
)
def test_rates_are_told_for_stretches_that_people_count_in(hours: int, most: int, width: int) -> None:
    assert rate_width(hours * HOUR, most) == width
