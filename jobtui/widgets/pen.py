"""The escape sequences between texts, as few and as short as they get: where to write, in which colours."""

from functools import lru_cache
from typing import NamedTuple

from rich.color import ColorSystem
from rich.style import Style
from textual.strip import Strip

RESET = "\x1b[0m"
DEFAULT_FOREGROUND = "39"
DEFAULT_BACKGROUND = "49"
OFF = {
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
SEEN_ON_BLANKS = frozenset({"4", "7", "9", "21", "51", "52", "53"})
"""Attributes that are seen where there is nothing but a blank."""


class Codes(NamedTuple):
    """A style as SGR parameters; an empty colour is the terminal's own."""

    attributes: frozenset[str]
    foreground: str
    background: str


PLAIN = Codes(frozenset(), "", "")


@lru_cache(4096)
def codes_of(style: Style, colors: ColorSystem | None) -> Codes:
    """What sets a style on a terminal that has none set; without colours where none are wanted."""
    if colors is None:
        return codes_of(style.without_color, ColorSystem.STANDARD)
    plain = Style(color=style.color, bgcolor=style.bgcolor)
    attributes = Strip.render_ansi(style, colors).removesuffix(Strip.render_ansi(plain, colors))
    foreground = Strip.render_ansi(Style(color=style.color), colors)
    background = Strip.render_ansi(Style(bgcolor=style.bgcolor), colors)
    return Codes(
        frozenset(filter(None, attributes.split(";"))),
        "" if foreground == DEFAULT_FOREGROUND else foreground,
        "" if background == DEFAULT_BACKGROUND else background,
    )


@lru_cache(4096)
def transition(before: Codes, after: Codes) -> str:
    """The escape sequence from one style to another, as short as it gets."""
    if before == after:
        return ""
    if after == PLAIN:
        return RESET
    off = {OFF[attribute] for attribute in before.attributes - after.attributes}
    on = {
        attribute
        for attribute in after.attributes
        if attribute not in before.attributes or OFF[attribute] in off
    }
    wanted = sorted(off) + sorted(on)
    if before.foreground != after.foreground:
        wanted.append(after.foreground or DEFAULT_FOREGROUND)
    if before.background != after.background:
        wanted.append(after.background or DEFAULT_BACKGROUND)
    anew = ["0", *sorted(after.attributes), *filter(None, after[1:])]
    return min((f"\x1b[{';'.join(codes)}m" for codes in (wanted, anew)), key=len)


@lru_cache(4096)
def on_blanks(codes: Codes) -> Codes:
    """What of a style is seen on blanks."""
    return codes if codes.attributes & SEEN_ON_BLANKS else Codes(frozenset(), "", codes.background)


class Pen:
    """Writes texts to places."""

    def __init__(self, colors: ColorSystem | None) -> None:
        self.colors = colors
        self._codes = PLAIN
        self._at: tuple[int, int] | None = None
        self._out: list[str] = []

    def move(self, x: int, y: int) -> None:
        """Go on at another place."""
        if (x, y) != self._at:
            self._out.append(_way(self._at, x, y))
            self._at = (x, y)

    def write(self, text: str, codes: Codes) -> None:
        """Write text of which each character takes one cell."""
        self._set(codes, is_blank=not text.strip(" "))
        self._out.append(text)
        if self._at is not None:
            self._at = (self._at[0] + len(text), self._at[1])

    def write_odd(self, text: str, style: Style) -> None:
        """Write text of which a terminal may have its own idea how wide it is, or a link."""
        if style._link:
            shown = style if self.colors is not None else style.without_color
            self._out.append(RESET + Strip.render_style(shown, text, self.colors or ColorSystem.STANDARD))
            self._codes = PLAIN
        else:
            self._set(codes_of(style, self.colors), is_blank=False)
            self._out.append(text)
        self._at = None

    def erase(self, codes: Codes) -> None:
        """Blanks up to the end of the line, with the background of a style."""
        self._set(codes, is_blank=True)
        self._out.append("\x1b[K")

    def text(self) -> str:
        """All of it, with the terminal's own colours set again."""
        self._out.append(transition(self._codes, PLAIN))
        self._codes = PLAIN
        return "".join(self._out)

    def _set(self, codes: Codes, *, is_blank: bool) -> None:
        if is_blank and not codes.attributes & SEEN_ON_BLANKS:
            # The colour of what is not there may stay what it is
            kept = self._codes
            codes = Codes(kept.attributes - SEEN_ON_BLANKS, kept.foreground, codes.background)
        if codes != self._codes:
            self._out.append(transition(self._codes, codes))
            self._codes = codes


def _way(at: tuple[int, int] | None, x: int, y: int) -> str:
    """From one place to another."""
    if at is not None and at[1] == y and at[0] < x:
        return "\x1b[C" if x == at[0] + 1 else f"\x1b[{x - at[0]}C"
    if at is not None and x == 0 and at[1] == y - 1:
        return "\r\n"
    return f"\x1b[{y + 1}H" if x == 0 else f"\x1b[{y + 1};{x + 1}H"
