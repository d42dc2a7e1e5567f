from hypothesis import given
from hypothesis import strategies as st

from jobtui.analysis.counts import MINUTES, Flow, Pace
from jobtui.render.spans import Line, Span, difference, fitting, pace_line, padded, spread, styled, width_of
from tests.builders import text_of

WORDS = st.sampled_from(["", "a", "bb", "表", "ccc", "e\u0301"])
LINES = st.lists(st.builds(Span, WORDS, st.sampled_from(["", "x"]), st.just(-1)), max_size=6).map(tuple)


def cells_of(line: Line) -> list[tuple[str, str]]:
    """Cell by cell: what is in it and in which style; the second half of a wide character is empty."""
    found: list[tuple[str, str]] = []
    for span in line:
        for char in span.text:
            size = width_of((Span(char),))
            if size == 0:
                found[-1] = (found[-1][0] + char, span.style)
                continue
            found += [(char, span.style), *[("", span.style)] * (size - 1)]
    return found


def test_only_the_changed_cells_differ() -> None:
    before = (Span("state  "), Span("41s"), Span("  rest"))
    after = (Span("state  "), Span("42s"), Span("  rest"))
    assert difference(before, after) == (7, 10)


@given(LINES, LINES)
def test_outside_the_difference_both_are_the_same(before: Line, after: Line) -> None:
    changed = difference(before, after)
    if changed is None:
        assert before == after
        return
    old, new = cells_of(before), cells_of(after)
    assert old[: changed.start] == new[: changed.start]
    assert old[changed.stop :] == new[changed.stop :]
    assert changed.stop <= max(len(old), len(new))


@given(LINES, LINES, st.integers(0, 20))
def test_two_ends_fill_the_line(left: Line, right: Line, cells: int) -> None:
    line = spread(left, right, cells)
    assert width_of(line) == cells
    assert fitting(left, cells) == line[: len(fitting(left, cells))]


def test_padding_and_styling() -> None:
    assert width_of(padded((Span("表"),), 5)) == 5
    assert padded((Span("abc"),), 2) == (Span("abc"),)
    assert styled((Span("a"), Span("b", "x")), "y") == (Span("a", "y"), Span("b", "x y"))


def flow(*counts: int, per_minute: int = 0) -> Flow:
    return Flow((0,) * (MINUTES - len(counts)) + counts, per_minute)


def test_bars_and_numbers_of_both_are_on_one_scale() -> None:
    pace = Pace(flow(0, 1, 40, 80, per_minute=1_041), flow(20, 0, per_minute=0))
    assert text_of(pace_line(pace, with_ends=True)) == "   ▁▁▁▁▁▁▁▂▅█ 1,041 in  ▁▁▁▁▁▁▁▁▃▁ 0 out/min"
    assert text_of(pace_line(pace, with_ends=False)) == "   ▁▁▁▁▁▁▁▂▅█ 1,041 in/min"


def test_when_only_ends_are_told_arrivals_are_none() -> None:
    pace = Pace(flow(), flow(5, per_minute=5))
    assert text_of(pace_line(pace, with_ends=False)) == f"   {'▁' * MINUTES} 0 in/min"
