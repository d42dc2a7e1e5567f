"""What differs between two traces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.analysis.traces.compare import ChangeKind, StepChange, step_changes, those_that_differ
from jobtui.analysis.traces.tree import Tree
from jobtui.render.traces import CHANGE_COLUMNS, change_words
from tests.rows import ROWS
from tests.tracing import a_span, a_trace, captured

WHOLE = 1_000_000


def words(this: Tree, other: Tree) -> list[str]:
    steps = tuple(step_changes(this, other))
    by_key = {column.key: column for column in CHANGE_COLUMNS}
    keys = ("change", "step", "longer")
    return [" ".join(by_key[key].cell(step, None) for key in keys) for step in those_that_differ(steps)]


@pytest.mark.parametrize(("this", "other", "said"), ROWS["traces compared"])
def test_captured_traces_beside_good_ones(this: str, other: str, said: list[str]) -> None:
    assert words(Tree(captured(this)), Tree(captured(other))) == said


def test_longer_steps_are_reported_when_they_matter() -> None:
    def tree(*took: int) -> Tree:
        root = a_span(1, start=0, end=WHOLE, name="root")
        steps = (a_span(n, 1, 5, 5 + length, name=f"s{'ab'[n - 2]}") for n, length in enumerate(took, 2))
        return Tree(a_trace(root, *steps))

    same = "  same root +0"
    assert words(tree(200_000, 10), tree(100_000, 1)) == [same, "▲ slower   sa +100µs"]
    assert words(tree(100_000, 1), tree(200_000)) == [same, "▼ faster   sa -100µs", "+ new   sb –"]


SPANS = st.lists(st.tuples(st.integers(0, 7), st.sampled_from("abc1"), st.booleans()), max_size=12).map(
    lambda rows: Tree(
        a_trace(
            *(
                a_span(nth + 1, parent or None, nth, nth + 9, name=name, error=error)
                for nth, (parent, name, error) in enumerate(rows)
            )
        )
    )
)


@given(SPANS, SPANS)
def test_each_span_counts_once_and_a_trace_has_no_difference_from_itself(this: Tree, other: Tree) -> None:
    assert not words(this, this)
    steps = tuple(step_changes(this, other))
    in_both = [step for step in steps if step.change not in (ChangeKind.NEW, ChangeKind.MISSING)]
    for side, tree in (("this", this), ("other", other)):
        told = [span.span_id for step in steps for span in getattr(step, side)]
        assert len(told) == len(set(told))
        if len(in_both) == len(steps):
            assert set(told) == {span.span_id for span in tree.spans}
    kept = list(those_that_differ(steps))
    assert [step for step in steps if step.change is not ChangeKind.SAME or step in kept] == kept
    assert change_words(steps) == "no difference" or kept
    assert all(isinstance(step, StepChange) and step.span for step in kept)
