"""Few bytes on the wire: updates that send changed cells only, and colours only where they change.

Textual 8.2.8 sends a changed line from its left end on, and sets and resets every colour at every segment.
Over ssh that is most of the traffic. Both are put right where the update becomes text; what is drawn is the
same. This leans on insides of the textual version that pyproject.toml pins, all of them in this file.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

from rich.color import ColorSystem
from rich.console import Console
from rich.control import Control
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, Compositor, LayoutUpdate
from textual.screen import Screen
from textual.strip import Strip

RESET = "\x1b[0m"
DEFAULT_FOREGROUND = "39"
DEFAULT_BACKGROUND = "49"
OFF: Mapping[str, str] = {
    "1": "22",
    "2": "22",
    "3": "23",
    "4": "24",
    "5": "25",
    "6": "25",
    "7": "27",
    "8": "28",
    "9": "29",
    "21": "24",
    "51": "54",
    "52": "54",
    "53": "55",
}
"""What ends each attribute."""


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


class Codes(NamedTuple):
    """A style as SGR parameters."""

    attributes: frozenset[str]
    foreground: str
    background: str


@lru_cache(4096)
def transition(before: Style, after: Style, colors: ColorSystem) -> str:
    """The escape sequence from one style to another, as short as it gets."""
    old, new = codes_of(before, colors), codes_of(after, colors)
    if old == new:
        return ""
    if new == codes_of(Style.null(), colors):
        return RESET
    off = {OFF[attribute] for attribute in old.attributes - new.attributes}
    on = {
        attribute for attribute in new.attributes if attribute not in old.attributes or OFF[attribute] in off
    }
    wanted = sorted(off) + sorted(on)
    if old.foreground != new.foreground:
        wanted.append(new.foreground or DEFAULT_FOREGROUND)
    if old.background != new.background:
        wanted.append(new.background or DEFAULT_BACKGROUND)
    anew = ["0", *sorted(new.attributes), *filter(None, new[1:])]
    return min((f"\x1b[{';'.join(codes)}m" for codes in (wanted, anew)), key=len)


@lru_cache(4096)
def codes_of(style: Style, colors: ColorSystem) -> Codes:
    """What sets a style on a terminal that has none set."""
    plain = Style(color=style.color, bgcolor=style.bgcolor)
    attributes = Strip.render_ansi(style, colors).removesuffix(Strip.render_ansi(plain, colors))
    return Codes(
        frozenset(filter(None, attributes.split(";"))),
        Strip.render_ansi(Style(color=style.color), colors),
        Strip.render_ansi(Style(bgcolor=style.bgcolor), colors),
    )


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
