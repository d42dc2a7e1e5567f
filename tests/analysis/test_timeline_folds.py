"""Steps that repeat are folded: each row belongs to one fold at most, and nothing that went wrong to any."""

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.analysis.timeline import LEAST_TIMES, MOST_TOGETHER, Fold, folds_in, timeline_rows
from tests.builders import a_step, an_op
from tests.conftest import NOW


def folds(*steps: str, every_s: float = 1.0) -> list[Fold]:
    op = an_op(steps=[a_step(step, nth * every_s) for nth, step in enumerate(steps)])
    return list(folds_in(timeline_rows(op, NOW)))


PAIR = ["update", "status running"]


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        ([], []),
        (["a"] * 3, []),
        (["a"] * 4, [Fold(0, 3, 1, 4, 1.0)]),
        (["sent", *PAIR * 214, "reply ok"], [Fold(1, 428, 2, 214, 1.0)]),
        (["sent", *PAIR * 5, "update"], [Fold(1, 10, 2, 5, 1.0)]),
        (["status running", *PAIR * 5], [Fold(0, 9, 2, 5, 1.0)]),
        ([*PAIR * 3, "reply ok", *PAIR * 3], []),
        ([*PAIR * 4, "reply ok", *PAIR * 4], [Fold(0, 7, 2, 4, 1.0), Fold(9, 16, 2, 4, 1.0)]),
        (["a", "b", "c"] * 4, [Fold(0, 11, 3, 4, 1.0)]),
        (["status error"] * 9, []),
        (["update", "status error"] * 9, []),
    ],
)
def test_what_repeats_is_found(steps: Sequence[str], found: list[Fold]) -> None:
    assert folds(*steps) == found


def test_the_longest_wait_is_known_and_none_where_no_line_has_a_time() -> None:
    assert [fold.longest_s for fold in folds(*["a"] * 5, every_s=7)] == [7.0]
    op = an_op(steps=[a_step("a", at=None) for _ in range(5)])
    assert [fold.longest_s for fold in folds_in(timeline_rows(op, NOW))] == [None]


@settings(deadline=None, max_examples=150)
@given(st.lists(st.sampled_from(["a", "b", "c", "error"]), max_size=40))
def test_folds_hold_what_they_say(steps: list[str]) -> None:
    end = -1
    for fold in folds(*steps):
        assert fold.first > end
        end = fold.last
        assert 1 <= fold.together <= MOST_TOGETHER
        assert fold.times >= LEAST_TIMES
        assert steps[fold.first : end + 1] == steps[fold.first : fold.first + fold.together] * fold.times
        assert "error" not in steps[fold.first : end + 1]
    assert end < len(steps)
