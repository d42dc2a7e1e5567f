"""An app with one widget on it, in our theme, whose painting is watched."""

from collections.abc import Callable, Iterable
from typing import Any

from rich.style import Style
from textual._context import visible_screen_stack
from textual.app import App, ComposeResult
from textual.containers import Vertical
from textual.pilot import Pilot
from textual.screen import Screen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Input

from jobtui.terminal.textual_patches import patch_textual
from jobtui.theme import DARK, LAYOUT, THEMES
from jobtui.widgets.filter_bar import CommandBar, FilterBar
from jobtui.widgets.lines import LineView
from tests.waiting import wait_until


class WidgetApp(App[None]):
    """Shows a widget, and keeps the messages of ours that reach it."""

    CSS = LAYOUT

    def __init__(self, *widgets: Widget, theme: str = DARK.name) -> None:
        patch_textual()
        super().__init__()
        self._widgets = widgets
        for known in THEMES:
            self.register_theme(known)
        self.theme = theme

    def compose(self) -> ComposeResult:
        yield from self._widgets


def text_of(widget: LineView) -> list[str]:
    return ["".join(span.text for span in widget.line(y)).rstrip() for y in range(widget.size.height)]


def screen_text(app: App[None]) -> list[str]:
    # As Textual does before it paints: what follows a sheet would else be that of the paint before
    visible_screen_stack.set(app._background_screens)
    strips: list[Strip] = app.screen._compositor.render_strips()
    return [strip.text.rstrip() for strip in strips]


def watch(widget: LineView) -> list[int]:
    painted: list[int] = []
    render = widget.render_line

    def noted(y: int) -> Strip:
        painted.append(y)
        return render(y)

    widget.render_line = noted  # type: ignore[method-assign]
    return painted


def text(app: App[None]) -> str:
    return "\n".join(screen_text(app))


async def press(
    pilot: Pilot[Any], *keys: str, until: str | type[Screen[Any]] | Callable[[], object]
) -> list[str]:
    """Press keys, then wait for a text or a kind of screen, or until something holds; what is shown then."""
    await pilot.press(*keys)
    if isinstance(until, type):
        await wait_until(lambda: isinstance(pilot.app.screen, until) and pilot.app.screen.is_mounted, pilot)
        await pilot.pause()
    else:
        holds = (lambda: until in text(pilot.app)) if isinstance(until, str) else until
        await wait_until(lambda: holds() and (keys[-1:] != ("enter",) or is_taken(pilot.app)), pilot)
    return screen_text(pilot.app)


def is_taken(app: App[Any]) -> bool:
    """Whether what was typed is: a filter is previewed before, and its line closes, or says what is wrong.

    A key that is pressed while a line is being closed, which still has the focus, is lost.
    """
    bars, has_line = app.screen.query(FilterBar), isinstance(app.focused, Input)
    return bool(bars or not has_line) and all(bar.mistake or isinstance(bar, CommandBar) for bar in bars)


class Stack(WidgetApp):
    """One widget below the other, each in a frame of this number of rows."""

    def __init__(self, widgets: Iterable[Widget], rows: int) -> None:
        super().__init__(*(Vertical(widget) for widget in widgets))
        self._rows = rows

    def on_mount(self) -> None:
        for frame in self.screen.query(Vertical):
            if frame.parent is self.screen:
                frame.styles.height = self._rows


LOOKS = [
    Style.null(),
    Style(color="red"),
    Style(color="#aabbcc", bgcolor="#112233"),
    Style(color="#ddbbcc", bgcolor="#112233"),
    Style(bold=True, color="#aabbcc", bgcolor="#112233"),
    Style(bold=True, underline=True),
    Style(dim=True, italic=True, strike=True, bgcolor="#112233"),
    Style(reverse=True, bgcolor="blue"),
    Style(color="default", bgcolor="default"),
]
