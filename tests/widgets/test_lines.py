"""Lines that widgets draw: painted when they change, selected, wrapped and scrolled."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from jobtui.render.spans import Line, Paragraph, Piece, rows, width_of
from jobtui.render.text import safe, width, wrapped
from jobtui.theme import DARK
from jobtui.widgets.frame import RuleLine
from jobtui.widgets.lines import STYLE, LineView, TextSelection
from jobtui.widgets.log_view import LogView
from jobtui.widgets.text_pane import SpanPane, TextPane
from tests.builders import HOSTILE
from tests.rows import ROWS
from tests.screens.captured import copied, on_logs, until
from tests.waiting import wait_until
from tests.widgets.widget_app import WidgetApp, press, screen_text, watch


class Numbers(LineView):
    def __init__(self) -> None:
        super().__init__()
        self.values = ["one"] * 10

    def line(self, y: int) -> Line:
        value = self.values[y] if y < len(self.values) else ""
        return (Piece(f"line {y} ", "dim"), Piece(value, "error"), Piece(" end"))


@asynccontextmanager
async def numbers(rows: int = 10, theme: str = DARK.name) -> AsyncIterator[tuple[Numbers, Pilot[None]]]:
    view = Numbers()
    async with WidgetApp(view, theme=theme).run_test(size=(40, rows)) as pilot:
        await pilot.pause()
        yield view, pilot


async def test_only_changed_lines_are_painted_and_all_at_a_resize() -> None:
    async with numbers() as (view, pilot):
        painted = watch(view)
        view.repaint()
        await pilot.pause()
        assert painted == []
        view.values[3] = view.values[7] = "two"
        view.repaint()
        await pilot.pause()
        assert painted == [3, 7]
        assert screen_text(pilot.app)[2:4] == ["line 2 one end", "line 3 two end"]
        painted.clear()
        await pilot.resize_terminal(30, 8)
        await pilot.pause()
        assert set(painted) == set(range(8))


async def test_a_removed_widget_drops_its_drawn_lines() -> None:
    rule = RuleLine("words")
    async with WidgetApp(rule).run_test(size=(40, 3)) as pilot:
        await pilot.pause()
        assert rule._styles_cache._cache
        await rule.remove()
        assert not rule._styles_cache._cache


LINES: list[Line] = [(Piece("alpha ", "dim"), Piece("beta")), (Piece("表 wide"),), (Piece("gamma   "),)]


@pytest.mark.parametrize(("anchor", "end", "text"), ROWS["cell to cell"])
def test_a_selection_goes_from_cell_to_cell_in_either_direction(
    anchor: tuple[int, int], end: tuple[int, int], text: str
) -> None:
    assert TextSelection(anchor, end).text(LINES, 20) == text


def test_selected_text_is_marked_in_place() -> None:
    chosen = TextSelection((0, 6), (1, 1))
    for y, line in enumerate(LINES):
        drawn = chosen.marked(line, y, 20)
        assert "".join(span.text for span in drawn).rstrip() == "".join(span.text for span in line).rstrip()
        marked = "".join(span.text for span in drawn if STYLE in span.style)
        assert marked == ("beta" + " " * 10, "表", "")[y]
        assert width_of(drawn) == (20 if y < 2 else 8)


async def test_lines_of_a_log_are_selected_by_mouse_and_by_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "x.log"
    log.write_text("one\ntwo\nthree\nfour\n")
    async with on_logs(log, size=(80, 24)) as (app, pilot):
        await pilot.press("2")
        await until(app, pilot, "four")
        texts = copied(app, monkeypatch)
        view = app.screen.query_one(LogView)
        await pilot.mouse_down(LogView, offset=(4, 0))
        await pilot.hover(LogView, offset=(5, 2))
        await pilot.mouse_up(LogView, offset=(5, 2))
        await wait_until(lambda: view.selected_text, pilot)
        selected = view.selected_text
        await press(pilot, "y", until=lambda: texts == [selected])
        assert [part.strip() for part in selected.split("\n")][1] == "two"
        await press(pilot, "v", "k", "y", until=lambda: texts[1:] == ["three\nfour"])


def test_a_line_is_broken_after_a_blank_near_the_end_of_a_row() -> None:
    line = (Piece("sbatch "), Piece("--time=10 x", "accent"), Piece("y" * 12))
    broken = ["".join(span.text for span in row) for row in rows(line, 10)]
    assert broken == ["sbatch --t", "ime=10 xyy", "yyyyyyyyyy"]
    assert len(rows((Piece("a b " * 400),), 10, 3)) == 3


async def test_the_wheel_scrolls_as_far_up_as_down() -> None:
    texts, spans = TextPane(), SpanPane()
    async with WidgetApp(texts).run_test(size=(40, 10)) as pilot:
        await pilot.app.mount(spans)
        await pilot.pause()
        texts.set_text(Paragraph(str(number)) for number in range(100))
        spans.set_lines([(Piece(str(number)),) for number in range(100)])
        for pane in (texts, spans):
            pane.scroll_rows(6)
            pane.scroll_rows(-3)
            assert pane.top == 3


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_wrapped_lines_are_never_too_wide(text: str) -> None:
    for cells in (2, 7, 40):
        lines = wrapped(safe(text), cells, hang=3)
        assert all(width(line) <= cells for line in lines)
        assert sum(map(len, lines)) >= len(safe(text).replace(" ", ""))
