import pytest

from jobtui.render.spans import width_of
from jobtui.widgets.choice_list import Choice
from jobtui.widgets.marked_list import MarkedList
from tests.widgets.stage import Stage, text_of

WIDE, JOINED = "表" * 12, "e\u0301" * 12
CHOICES = [Choice(WIDE, "wide"), Choice(JOINED, "joined"), Choice("plain", "too")]


@pytest.mark.parametrize("columns", [1, 2, 4, 9, 20, 60])
async def test_a_row_takes_what_there_is_and_no_more(columns: int) -> None:
    shown = MarkedList(CHOICES, [0])
    async with Stage(shown).run_test(size=(columns, 3)):
        for index in range(shown.count):
            row = shown.row(index)
            assert width_of(row) == max(3, columns)
            assert all(span.width == width_of([span._replace(cells=-1)]) for span in row)


async def test_a_name_is_cut_only_where_there_is_no_room() -> None:
    shown = MarkedList(CHOICES, [0])
    async with Stage(shown).run_test(size=(40, 3)):
        assert text_of(shown)[:2] == [f" ✓ {WIDE}  wide", f"   {JOINED}        joined"]
