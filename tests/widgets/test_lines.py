import pytest
from rich.style import Style

from jobtui.render.spans import Line, Span, width_of
from jobtui.render.text import safe
from jobtui.theme import ANSI, DARK, LIGHT, PLAIN
from jobtui.widgets.lines import LineView
from jobtui.widgets.rule_line import RuleLine
from tests.builders import HOSTILE
from tests.widgets.stage import Stage, screen_text, watch


class Numbers(LineView):
    """Ten lines, each with its number and a value."""

    def __init__(self) -> None:
        super().__init__()
        self.values = ["one"] * 10

    def line(self, y: int) -> Line:
        value = self.values[y] if y < len(self.values) else ""
        return (Span(f"line {y} ", "dim"), Span(value, "error"), Span(" end"))


async def test_nothing_is_painted_when_nothing_changed() -> None:
    view = Numbers()
    async with Stage(view).run_test(size=(40, 10)) as pilot:
        await pilot.pause()
        painted = watch(view)
        view.repaint()
        await pilot.pause()
        assert painted == []


async def test_only_changed_lines_are_painted() -> None:
    view = Numbers()
    async with Stage(view).run_test(size=(40, 10)) as pilot:
        await pilot.pause()
        painted = watch(view)
        view.values[3] = view.values[7] = "two"
        view.repaint()
        await pilot.pause()
        assert painted == [3, 7]
        assert screen_text(pilot.app)[2:4] == ["line 2 one end", "line 3 two end"]


async def test_every_line_has_the_background_up_to_its_end() -> None:
    view = Numbers()
    async with Stage(view).run_test(size=(40, 12)) as pilot:
        await pilot.pause()
        for y in range(12):
            strip = view.render_line(y)
            assert strip.cell_length == 40
            assert all(segment.style and segment.style.bgcolor for segment in strip)


async def test_a_resize_paints_all_anew() -> None:
    view = Numbers()
    async with Stage(view).run_test(size=(40, 10)) as pilot:
        await pilot.pause()
        painted = watch(view)
        await pilot.resize_terminal(30, 8)
        await pilot.pause()
        assert set(painted) == set(range(8))


@pytest.mark.parametrize("theme", [DARK.name, LIGHT.name, ANSI.name, PLAIN.name])
async def test_styles_are_looked_up_in_the_theme(theme: str) -> None:
    view = Numbers()
    async with Stage(view, theme=theme).run_test(size=(40, 10)) as pilot:
        await pilot.pause()
        assert view.look("error") != view.look("")
        assert view.look("no.such.name") == view.look("")
        both = view.look("error cursor")
        assert both.bgcolor == view.look("cursor").bgcolor
        assert both.reverse == view.look("cursor").reverse


async def test_another_theme_changes_the_looks() -> None:
    view = Numbers()
    async with Stage(view).run_test(size=(40, 10)) as pilot:
        await pilot.pause()
        before: Style = view.look("error")
        pilot.app.theme = LIGHT.name
        await pilot.pause()
        assert view.look("error") != before
        assert view.render_line(0)._segments[1].style == view.look("error")


async def test_hostile_text_that_was_made_safe_keeps_the_width() -> None:
    class Hostile(LineView):
        def line(self, y: int) -> Line:
            return (Span(safe(HOSTILE[y])), Span("end")) if y < len(HOSTILE) else ()

    view = Hostile()
    async with Stage(view).run_test(size=(40, len(HOSTILE))) as pilot:
        await pilot.pause()
        for y in range(len(HOSTILE)):
            strip = view.render_line(y)
            assert strip.cell_length == 40
            assert width_of((Span(strip.text),)) == 40
            assert "\x1b" not in strip.text


async def test_what_was_drawn_is_let_go_with_the_widget() -> None:
    rule = RuleLine("words")
    async with Stage(rule).run_test(size=(40, 3)) as pilot:
        await pilot.pause()
        assert rule._styles_cache._cache
        await rule.remove()
        assert not rule._styles_cache._cache
