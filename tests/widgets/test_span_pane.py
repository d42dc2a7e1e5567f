"""A pane of many lines: folded a part at a time, and in the end as if at once."""

import pytest

from jobtui.render.spans import Line, Span
from jobtui.widgets import text_pane
from jobtui.widgets.row_view import Move
from jobtui.widgets.text_pane import SpanPane, folded
from tests.waiting import wait_until
from tests.widgets.widget_app import WidgetApp

LINES: list[Line] = [(Span(f"{number} "), Span("語x " * number, "accent")) for number in range(200)]


async def test_many_lines_are_folded_in_parts_and_in_the_end_all_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_pane, "AT_ONCE", 100)
    pane = SpanPane()
    async with WidgetApp(pane).run_test(size=(40, 10)) as pilot:
        rows = [row for line in LINES for row in folded(line, 38)]
        pane.set_lines(LINES)
        assert 0 < pane.count < len(rows)
        await wait_until(lambda: pane.count == len(rows), pilot)
        assert [pane.row(index) for index in range(pane.count)] == rows
        pane.move(Move.BOTTOM)
        at_end = pane.top
        pane.set_lines(LINES)
        assert pane.top < at_end
        await wait_until(lambda: pane.top == at_end, pilot)


async def test_what_was_begun_is_given_up_for_other_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_pane, "AT_ONCE", 10)
    pane = SpanPane()
    async with WidgetApp(pane).run_test(size=(40, 10)) as pilot:
        pane.set_lines(LINES)
        pane.set_lines(LINES[:5])
        await wait_until(lambda: pane.count == 5, pilot)
        await pilot.pause()
        assert pane.count == 5


async def test_the_wheel_scrolls_as_far_up_as_down() -> None:
    pane = SpanPane()
    async with WidgetApp(pane).run_test(size=(40, 10)) as pilot:
        pane.set_lines([(Span(str(number)),) for number in range(100)])
        pane.scroll_rows(3)
        pane.scroll_rows(3)
        assert pane.top == 6
        pane.scroll_rows(-3)
        assert pane.top == 3
        await pilot.pause()
