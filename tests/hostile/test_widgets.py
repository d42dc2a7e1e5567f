"""Every widget takes every hostile text: nothing raises, nothing raw is drawn, no line is too wide."""

import pkgutil
from collections.abc import Iterator
from importlib import import_module

import pytest
from textual.widget import Widget

import jobtui.screens
import jobtui.widgets
from jobtui.widgets.filter_bar import FilterBar
from jobtui.widgets.filter_input import FilterInput
from jobtui.widgets.lines import LineView
from tests.hostile.texts import SECRET, TEXTS, cells, faults_in
from tests.hostile.widgets import BASES, CASES, TraceTable
from tests.widgets.widget_app import Stack

COLUMNS, ROWS = [100, 9], 10


def all_widgets() -> Iterator[type[Widget]]:
    """Every widget of jobtui.widgets, and those of screens that draw lines themselves."""
    for package in (jobtui.widgets, jobtui.screens):
        kind = Widget if package is jobtui.widgets else LineView
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            for found in vars(import_module(module.name)).values():
                if isinstance(found, type) and issubclass(found, kind) and found.__module__ == module.name:
                    yield found


def test_every_widget_has_a_case() -> None:
    missing = {widget.__name__ for widget in {*all_widgets()} - CASES.keys() - BASES}
    assert not missing, "a new widget needs a case in tests/hostile/widgets.py"
    assert ({*CASES} | BASES) - {TraceTable} <= {*all_widgets()}


@pytest.mark.parametrize("widget", CASES, ids=lambda widget: widget.__name__)
async def test_a_widget_takes_every_text(widget: type[Widget]) -> None:
    cases = [CASES[widget](text) for text in TEXTS.values()]
    rows = ROWS * len(cases)
    app = Stack([shown for shown, _ in cases], ROWS)
    async with app.run_test(size=(COLUMNS[0], rows)) as pilot:
        await pilot.pause()
        for _, tell in cases:
            tell()
        assert len(app.screen.query(widget)) == len(cases)
        for columns in COLUMNS:
            await pilot.resize_terminal(columns, rows)
            await pilot.pause()
            await pilot.pause()
            check(widget, columns, [strip.text for strip in app.screen._compositor.render_strips()])


def check(widget: type[Widget], columns: int, lines: list[str]) -> None:
    for number, name in enumerate(TEXTS):
        for line in lines[number * ROWS : (number + 1) * ROWS]:
            typed = issubclass(widget, FilterBar | FilterInput) and name == "secret"
            assert not faults_in(line.replace(SECRET, "") if typed else line), f"{name}: {line!a}"
            assert cells(line) == columns, f"{name}: {line!a}"
