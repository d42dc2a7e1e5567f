"""Long computations in short turns give what they would give at once."""

from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.analysis import turns
from jobtui.analysis.turns import AT_ONCE, Turns, at_once, sorted_turns


def count_of(steps: Turns[object]) -> int:
    """In how many turns it is done."""
    return sum(1 for _ in steps)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.one_of(st.integers(-(2**70), 2**70), st.just(7)), min_size=0, max_size=300), st.integers(1, 8)
)
def test_what_is_sorted_in_turns_is_sorted(values: list[int], at_once_count: int) -> None:
    before = turns.AT_ONCE
    turns.AT_ONCE = at_once_count
    try:
        assert at_once(sorted_turns(values)) == sorted(values)
    finally:
        turns.AT_ONCE = before


def test_many_floats_close_together_are_sorted_too() -> None:
    values = [1e18 + at % 977 for at in range(30_000)] + [0.0]
    assert at_once(sorted_turns(values)) == sorted(values)


def test_much_is_sorted_in_many_turns() -> None:
    values = [(at * 7_919) % 100_003 for at in range(20 * AT_ONCE)]
    assert count_of(sorted_turns(values)) > 20
