from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.analysis.traces.axis import Axis
from jobtui.analysis.traces.waits import Wait
from jobtui.model.clock import Nanos
from tests.tracing import a_span

SPAN = a_span(1)


def a_wait(start: int, end: int) -> Wait:
    return Wait(Nanos(start), Nanos(end), SPAN, SPAN)


def test_without_waits_all_is_to_scale() -> None:
    axis = Axis(1_000, 2_000, 50)
    assert [axis.half(at) for at in (0, 1_000, 1_500, 1_999, 2_000, 9_000)] == [0, 0, 50, 99, 100, 100]
    assert [axis.time(half) for half in (0, 50, 100)] == [1_000, 1_500, 2_000]
    assert not list(axis.squeezed)


def test_a_long_wait_has_few_cells_and_the_rest_is_to_scale() -> None:
    axis = Axis(0, 10_200, 48, [a_wait(100, 10_100)], wait_cells=8)
    assert [tuple(one) for one in axis.squeezed] == [(20, 8, 10_000)]
    assert [axis.half(at) for at in (0, 50, 100, 10_100, 10_150, 10_200)] == [0, 20, 40, 56, 76, 96]


def test_a_wait_that_is_short_on_the_screen_is_to_scale() -> None:
    assert not list(Axis(0, 1_000, 50, [a_wait(100, 200)], wait_cells=8).squeezed)


def test_waits_never_take_more_than_half_of_the_cells() -> None:
    waits = [a_wait(10_000 * nth + 10, 10_000 * nth + 9_000 + nth) for nth in range(10)]
    axis = Axis(0, 100_000, 16, waits, wait_cells=1)
    assert [one.duration_ns for one in axis.squeezed] == [8_990 + nth for nth in range(2, 10)]


def test_ticks_are_round_and_begin_anew_after_what_is_squeezed() -> None:
    second = 10**9
    axis = Axis(0, 110 * second, 60, [a_wait(10 * second, 100 * second)], wait_cells=8)
    assert [tuple(tick) for tick in axis.ticks(0, 10)] == [
        (0, 0, 0),
        (13, 5 * second, 0),
        (34, 0, 100 * second),
        (47, 5 * second, 100 * second),
    ]


times = st.integers(0, 10**15)


@settings(max_examples=100)
@given(st.lists(times, min_size=2, max_size=12, unique=True), st.integers(1, 200), st.integers(1, 9))
def test_a_later_time_is_never_further_left(marks: list[int], cells: int, wait_cells: int) -> None:
    marks.sort()
    waits = [a_wait(start, end) for start, end in zip(marks[1::2], marks[2::2], strict=False)]
    axis = Axis(marks[0], marks[-1], cells, waits, wait_cells)
    halves = [axis.half(at) for at in marks]
    assert halves == sorted(halves)
    assert (halves[0], halves[-1]) == (0, 2 * axis.cells)
    back = [axis.time(half) for half in range(2 * cells + 1)]
    assert back == sorted(back)
    assert all(0 <= tick.cell < cells for tick in axis.ticks(marks[0], 10))
