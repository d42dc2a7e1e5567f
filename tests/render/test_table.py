"""Tables as text: aligned by cells, safe whatever is in them, and never wider than they may be."""

import re

from hypothesis import given
from hypothesis import strategies as st

from jobtui.render.table import Cell, Head, fact_lines, paint, table_lines
from jobtui.render.text import width
from tests.builders import HOSTILE

ESCAPE = re.compile(r"\x1b\[[\d;]*m")
HEADS = (
    Head("N", "right"),
    Head("NAME", least=4),
    Head("EXTRA", least=6, drop=2),
    Head("WHY", least=4, drop=1),
)


def lines(rows: list[tuple[str, ...]], cells: int | None) -> list[str]:
    return list(table_lines(HEADS, [[Cell(text) for text in row] for row in rows], cells))


def test_columns_are_as_wide_as_their_widest_cell() -> None:
    assert lines([("1", "表格", "", "x"), ("23", "a", "e", "")], None) == [
        " N  NAME  EXTRA  WHY",
        " 1  表格         x",
        "23  a     e",
    ]


def test_a_narrow_table_squeezes_and_then_drops() -> None:
    row = ("1", "n" * 20, "e" * 20, "w" * 20)
    assert lines([row], 60)[1] == f"1  {'n' * 17}…  {'e' * 17}…  {'w' * 16}…"
    assert lines([row], 18)[0].split() == ["N", "NAME", "WHY"]
    assert lines([row], 8)[0].split() == ["N", "NAME"]


@given(
    rows=st.lists(st.tuples(*[st.text(max_size=30) | st.sampled_from(HOSTILE)] * 4), max_size=5),
    cells=st.integers(20, 100),
)
def test_no_line_is_wider_than_it_may_be_nor_drives_a_terminal(
    rows: list[tuple[str, ...]], cells: int
) -> None:
    for line in lines(rows, cells):
        assert width(line) <= cells
        assert line.isprintable()


def test_colour_adds_escapes_and_nothing_else() -> None:
    rows = [[Cell("1", "error"), Cell("a", "no such style"), Cell(""), Cell("x")]]
    plain = [*table_lines(HEADS, rows, None)]
    painted = [*table_lines(HEADS, rows, None, colour=True)]
    assert [ESCAPE.sub("", line).rstrip() for line in painted] == plain
    assert any("\x1b[31m" in line for line in painted)
    assert paint("", "error", True) == ""


def test_facts_stand_under_each_other() -> None:
    facts = [("a", Cell("x" * 30)), ("long", Cell("")), ("evil", Cell("\x1b[2J"))]
    assert [*fact_lines(facts, 20)] == [f"a     {'x' * 13}…", "long", "evil  ␛[2J"]
    assert next(fact_lines(facts, None)) == f"a     {'x' * 30}"
