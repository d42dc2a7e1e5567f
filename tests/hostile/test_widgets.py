"""Every widget takes every hostile text: nothing raises, nothing raw is drawn, every line is as wide as it."""

import pkgutil
from collections.abc import Iterator
from importlib import import_module

import pytest
from textual.app import App
from textual.widget import Widget

import jobtui.widgets
from tests.hostile.texts import TEXTS, cells, faults_in
from tests.hostile.widgets import BASES, CASES
from tests.widgets.stage import Stage

SIZES = [(100, 12), (40, 6), (9, 3), (1, 1)]


def all_widgets() -> Iterator[type[Widget]]:
    """Every widget that the package defines."""
    for module in pkgutil.iter_modules(jobtui.widgets.__path__, "jobtui.widgets."):
        for found in vars(import_module(module.name)).values():
            if isinstance(found, type) and issubclass(found, Widget) and found.__module__ == module.name:
                yield found


def test_every_widget_has_a_case() -> None:
    missing = {widget.__name__ for widget in {*all_widgets()} - CASES.keys() - BASES}
    assert not missing, "a new widget needs a case in tests/hostile/widgets.py"
    assert {*CASES} | BASES <= {*all_widgets()}


def test_what_is_raw_is_seen() -> None:
    assert faults_in("plain ✓ é 表") == []
    for text in (
        "\x1b[31m",
        "\x9b1m",
        "a\u202eb",
        "\x00",
        "\t",
        "\ud800",
        "a\u200db",
        "e" + "\u0301" * 9,
        "hunter2",
    ):
        assert faults_in(text), ascii(text)
    assert [cells(text) for text in ("abc", "表", "e\u0301", "Ａ")] == [3, 2, 1, 2]


@pytest.mark.parametrize("widget", CASES, ids=lambda widget: widget.__name__)
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
async def test_a_widget_takes_it(widget: type[Widget], text: str) -> None:
    shown, tell = CASES[widget](text)
    app: App[None] = Stage(shown)
    async with app.run_test(size=SIZES[0]) as pilot:
        await pilot.pause()
        tell()
        assert app.screen.query(widget)
        for size in SIZES:
            await pilot.resize_terminal(*size)
            await pilot.pause()
            for line in lines_of(app):
                assert not faults_in(line), ascii(line)
                assert cells(line) == size[0], ascii(line)


def lines_of(app: App[None]) -> list[str]:
    """What each line of the screen says, blanks included."""
    return [strip.text for strip in app.screen._compositor.render_strips()]
