"""Text selected with the mouse: which cells, which text, on live rows and on logs."""

from pathlib import Path

import pytest

from jobtui.render.spans import Line, Span, width_of
from jobtui.widgets.job_table import JobTable
from jobtui.widgets.log_view import LogView
from jobtui.widgets.text_selection import STYLE, TextSelection
from tests.screens.scene import Scene, jobs
from tests.screens.test_logs import app_on, copied, until
from tests.waiting import wait_until

LINES: list[Line] = [
    (Span("alpha ", "dim"), Span("beta")),
    (Span("表 wide"),),
    (Span("gamma   "),),
]


@pytest.mark.parametrize(
    ("anchor", "end", "text"),
    [
        ((0, 6), (0, 7), "be"),
        ((0, 7), (0, 6), "be"),
        ((0, 6), (1, 1), "beta\n表"),
        ((1, 3), (0, 8), "ta\n表 w"),
        ((0, 6), (2, 19), "beta\n表 wide\ngamma"),
        ((2, 7), (2, 7), ""),
    ],
)
def test_it_goes_from_cell_to_cell_in_either_direction(
    anchor: tuple[int, int], end: tuple[int, int], text: str
) -> None:
    assert TextSelection(anchor, end).text(LINES, 20) == text


def test_what_is_selected_is_marked_and_stays_where_it_is() -> None:
    chosen = TextSelection((0, 6), (1, 1))
    for y, line in enumerate(LINES):
        drawn = chosen.marked(line, y, 20)
        assert "".join(span.text for span in drawn).rstrip() == "".join(span.text for span in line).rstrip()
        marked = "".join(span.text for span in drawn if STYLE in span.style)
        assert marked == ("beta" + " " * 10, "表", "")[y]
        assert width_of(drawn) == (20 if y < 2 else 8)


async def test_rows_of_the_table_are_selected_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene()
    async with scene.app.run_test(size=(120, 40)) as pilot:
        table = scene.app.screen.query_one(JobTable)
        await wait_until(lambda: scene.is_read() and table.total == len(jobs()), pilot)
        texts = copied(scene.app, monkeypatch)
        line = "".join(span.text for span in table.line(1))
        start = line.index("Beamline 7")
        await pilot.mouse_down(JobTable, offset=(start, 1))
        await pilot.hover(JobTable, offset=(start + 9, 1))
        await wait_until(lambda: any(STYLE in span.style for span in table._painted[1]), pilot)
        await pilot.mouse_up(JobTable, offset=(start + 9, 1))
        await wait_until(lambda: table.selected_text == "Beamline 7", pilot)
        assert table.cursor == 0, "no row was clicked"
        await pilot.press("y")
        await wait_until(lambda: texts == ["Beamline 7"], pilot)
        assert not any(STYLE in span.style for span in table._painted[1])
        await pilot.press("y")
        await wait_until(lambda: len(texts) == 2, pilot)
        assert texts[1] == table.cursor_id


async def test_lines_of_a_log_are_selected_by_mouse_and_by_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "x.log"
    log.write_text("one\ntwo\nthree\nfour\n")
    app = app_on([log])
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("2")
        await until(app, pilot, "four")
        texts = copied(app, monkeypatch)
        view = app.screen.query_one(LogView)
        await pilot.mouse_down(LogView, offset=(4, 0))
        await pilot.hover(LogView, offset=(5, 2))
        await pilot.mouse_up(LogView, offset=(5, 2))
        await wait_until(lambda: view.selected_text, pilot)
        selected = view.selected_text
        await pilot.press("y")
        await wait_until(lambda: texts == [selected], pilot)
        assert [part.strip() for part in selected.split("\n")][1] == "two"
        await pilot.press("v", "k", "y")
        await wait_until(lambda: texts[1:] == ["three\nfour"], pilot)


async def test_moving_the_cursor_lets_go_of_it() -> None:
    scene = Scene()
    async with scene.app.run_test(size=(120, 40)) as pilot:
        table = scene.app.screen.query_one(JobTable)
        await wait_until(lambda: scene.is_read() and table.total == len(jobs()), pilot)
        await pilot.mouse_down(JobTable, offset=(3, 1))
        await pilot.hover(JobTable, offset=(30, 2))
        await pilot.mouse_up(JobTable, offset=(30, 2))
        await wait_until(lambda: table.selected_text, pilot)
        await pilot.press("j")
        assert table.selected_text == ""
        await pilot.click(JobTable, offset=(3, 4))
        await wait_until(lambda: table.cursor == 3, pilot)
