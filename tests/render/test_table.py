"""Tables, lines of spans and axes as text: aligned by cells, safe, never wider than they may be."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from jobtui.analysis.counts import MINUTES, Flow, Pace
from jobtui.model.clock import SECOND, Nanos
from jobtui.render.chart import axis_lines, axis_ticks
from jobtui.render.columns import head, table_lines
from jobtui.render.spans import Line, Piece, difference, fitting, pace_line, padded, spread, styled, width_of
from jobtui.render.table import fact_lines, paint, unpainted
from jobtui.render.text import width
from tests.builders import HOSTILE, text_of
from tests.conftest import NOW
from tests.offenders import each

HEADS = (
    head("N", align="right"),
    head("NAME"),
    replace(head("EXTRA", 6), priority=10),
    replace(head("WHY"), priority=20),
)


def lines(rows: list[tuple[str, ...]], cells: int | None) -> list[str]:
    return list(map(unpainted, table_lines(HEADS, [[Piece(text) for text in row] for row in rows], cells)))


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert lines([("1", "表格", "", "x"), ("23", "a", "e", "")], None) == [
        " N  NAME  EXTRA  WHY",
        " 1  表格         x",
        "23  a     e",
    ]


def test_a_narrow_table_squeezes_and_then_drops() -> None:
    row = ("1", "n" * 20, "e" * 20, "w" * 20)
    assert lines([row], 60)[1] == f"1 {'n' * 17}… {'e' * 20} {'w' * 17}…"
    assert lines([row], 17)[0].split() == ["N", "NAME", "WHY"]
    assert lines([row], 8)[0].split() == ["N", "NAME"]


@given(
    rows=st.lists(st.tuples(*[st.text(max_size=30) | st.sampled_from(HOSTILE)] * 4), max_size=5),
    cells=st.integers(20, 100),
)
def test_no_line_is_too_wide_or_contains_terminal_sequences(rows: list[tuple[str, ...]], cells: int) -> None:
    for line in lines(rows, cells):
        assert width(line) <= cells
        assert line.isprintable()


def test_colour_adds_escapes_and_nothing_else() -> None:
    rows = [[Piece("1", "error"), Piece("a", "no such style"), Piece(""), Piece("x")]]
    painted = [*table_lines(HEADS, rows, None)]
    plain = lines([tuple(piece.text for piece in row) for row in rows], None)
    assert list(map(unpainted, painted)) == plain
    assert any("\x1b[31m" in line for line in painted)
    assert (paint("", "error"), paint("a ", "error")) == ("", "\x1b[31ma\x1b[0m ")


def test_facts_stand_under_each_other() -> None:
    facts = [("a", Piece("x" * 30)), ("long", Piece("")), ("evil", Piece("\x1b[2J"))]
    assert [*map(unpainted, fact_lines(facts, 20))] == [f"a     {'x' * 13}…", "long", "evil  ␛[2J"]
    assert unpainted(next(fact_lines(facts, None))) == f"a     {'x' * 30}"


LEFT = 3
MINUTE = 60 * SECOND


@each(30, 180, 1_000)
def test_the_day_is_shown(span: int) -> None:
    since = Nanos(NOW + 100 * MINUTE)
    _, (_, times) = axis_lines(since, Nanos(since + span * MINUTE), LEFT, 100, None)
    days = [word for word in times.text.split() if "-" in word]
    assert days == {30: ["11-20"], 180: ["11-20", "11-21"], 1_000: ["11-21"]}[span]


@given(st.integers(0, 10**9), st.integers(1, 10**8), st.integers(1, 200), st.integers(1, 8))
def test_times_never_overlap(since_s: int, span_s: int, columns: int, left: int) -> None:
    since, until = Nanos(since_s * SECOND), Nanos((since_s + span_s) * SECOND)
    (_, axis, *_), (_, times) = axis_lines(since, until, left, columns, None)
    assert len(axis.text) == len(times.text) == columns
    told = [words for _, words in axis_ticks(since, until, columns)]
    rest = f" {times.text} "
    for words in told:
        rest = rest.replace(f" {words} ", "  ", 1)
    assert not rest.strip(), (told, times.text)


WORDS = st.sampled_from(["", "a", "bb", "表", "ccc", "e\u0301"])
LINES = st.lists(st.builds(Piece, WORDS, st.sampled_from(["", "x"]), st.just(-1)), max_size=6).map(tuple)


def cells_of(line: Line) -> list[tuple[str, str]]:
    """Cell by cell: what is in it and in which style; the second half of a wide character is empty."""
    found: list[tuple[str, str]] = []
    for span in line:
        for char in span.text:
            size = width_of((Piece(char),))
            if size == 0:
                found[-1] = (found[-1][0] + char, span.style)
                continue
            found += [(char, span.style), *[("", span.style)] * (size - 1)]
    return found


@given(LINES, LINES)
def test_texts_are_equal_outside_the_difference(before: Line, after: Line) -> None:
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


def test_lines_are_padded_and_styled_and_only_changed_cells_differ() -> None:
    assert width_of(padded((Piece("表"),), 5)) == 5
    assert padded((Piece("abc"),), 2) == (Piece("abc"),)
    assert styled((Piece("b", "x"), Piece(" ", "x")), "y") == (Piece("b", "x y"), Piece(" ", "y"))
    before = (Piece("state  "), Piece("41s"), Piece("  rest"))
    after = (Piece("state  "), Piece("42s"), Piece("  rest"))
    assert difference(before, after) == range(7, 10)


def flow(*counts: int, per_minute: int = 0) -> Flow:
    return Flow((0,) * (MINUTES - len(counts)) + counts, per_minute)


def test_both_charts_have_one_scale_also_without_arrivals() -> None:
    pace = Pace(flow(0, 1, 40, 80, per_minute=1_041), flow(20, 0, per_minute=0))
    assert text_of(pace_line(pace, with_ends=True)) == "   ▁▁▁▁▁▁▁▂▅█ 1,041 in  ▁▁▁▁▁▁▁▁▃▁ 0 out/min"
    assert text_of(pace_line(pace, with_ends=False)) == "   ▁▁▁▁▁▁▁▂▅█ 1,041 in/min"
    pace = Pace(flow(), flow(5, per_minute=5))
    assert text_of(pace_line(pace, with_ends=False)) == f"   {'▁' * MINUTES} 0 in/min"
