"""Few bytes on the wire: updates that send changed cells only, and colours only where they change.

Textual 8.2.8 sends a changed line from its left end on, and sets and resets every colour at every segment.
Over ssh that is most of the traffic. Both are put right where the update becomes text; what is drawn is the
same. This leans on `Compositor`, `ChopsUpdate` and `LayoutUpdate` of the textual version that pyproject.toml pins.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache

from rich.color import ColorSystem
from rich.console import Console
from rich.control import Control
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, Compositor, LayoutUpdate
from textual.screen import Screen
from textual.strip import Strip

RESET = "\x1b[0m"
DEFAULTS = ("39", "49")
"""What sets foreground and background to those of the terminal."""


class LeanChops(ChopsUpdate):
    """Some spans of some lines."""

    def render_segments(self, console: Console) -> str:
        """What to write to the terminal."""
        pen = Pen(console)
        for y, start, stop in self.spans:
            for end, (x, strip) in zip(self.chop_ends[y], self.chops[y].items(), strict=False):
                if strip is None or x >= stop or end <= start:
                    continue
                pen.move(max(x, start), y)
                pen.write(strip.crop(max(0, start - x), min(end, stop) - x))
        return pen.text()


class LeanLayout(LayoutUpdate):
    """The whole screen."""

    def render_segments(self, console: Console) -> str:
        """What to write to the terminal."""
        pen = Pen(console)
        for y, strips in enumerate(self.strips, self.region.y):
            pen.move(self.region.x, y)
            for strip in strips:
                pen.write(strip)
        return pen.text()


class Pen:
    """Writes strips, and the escape sequences between them that are needed."""

    def __init__(self, console: Console) -> None:
        self._colors = console._color_system or ColorSystem.TRUECOLOR
        self._style = Style.null()
        self._out: list[str] = []

    def move(self, x: int, y: int) -> None:
        """Go on at another place."""
        self._out.append(Control.move_to(x, y).segment.text)

    def write(self, segments: Iterable[Segment]) -> None:
        """Write segments where the pen is."""
        for text, style, _ in segments:
            style = style or Style.null()
            if style._link:
                self._out.append(RESET + Strip.render_style(style, text, self._colors))
                self._style = Style.null()
                continue
            if style is not self._style:
                self._out.append(transition(self._style, style, self._colors))
                self._style = style
            self._out.append(text)

    def text(self) -> str:
        """All of it, with the terminal's own colours set again."""
        self._out.append(transition(self._style, Style.null(), self._colors))
        return "".join(self._out)


@lru_cache(4096)
def transition(before: Style, after: Style, colors: ColorSystem) -> str:
    """The escape sequence from one style to another, as short as it gets."""
    old, new = _codes(before, colors), _codes(after, colors)
    if old == new:
        return ""
    if new == ("", "", ""):
        return RESET
    if old[0] != new[0]:
        return f"\x1b[{';'.join(('0', *filter(None, new)))}m"
    wanted = (code or DEFAULTS[place] for place, code in _changed(old[1:], new[1:]))
    return f"\x1b[{';'.join(wanted)}m"


def _changed(old: tuple[str, ...], new: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    return ((place, code) for place, (was, code) in enumerate(zip(old, new, strict=True)) if was != code)


@lru_cache(4096)
def _codes(style: Style, colors: ColorSystem) -> tuple[str, str, str]:
    """Attributes, foreground and background of a style as SGR parameters."""
    plain = Style(color=style.color, bgcolor=style.bgcolor)
    both = Strip.render_ansi(style, colors)
    attributes = both.removesuffix(Strip.render_ansi(plain, colors)).rstrip(";")
    foreground = Strip.render_ansi(Style(color=style.color), colors)
    background = Strip.render_ansi(Style(bgcolor=style.bgcolor), colors)
    return attributes, foreground, background


class LeanCompositor(Compositor):
    """A compositor with such updates."""

    def render_partial_update(self) -> ChopsUpdate | None:
        """What changed since the last update."""
        update = super().render_partial_update()
        return update and LeanChops(update.chops, update.spans, update.chop_ends)

    def render_full_update(self, simplify: bool = False) -> LayoutUpdate:
        """The whole screen."""
        update = super().render_full_update(simplify)
        return LeanLayout(update.strips, update.region)


class LeanScreen(Screen[None]):
    """A screen that is sent to the terminal with few bytes."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._compositor = LeanCompositor()
