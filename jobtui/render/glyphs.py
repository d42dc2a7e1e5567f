"""Signs for terminals that cannot show all of ours: of each character one, of the same width, that they can.

The Linux console has a font of 256 or 512 signs. What nearly all of its fonts have (those of the kernel, and
of Debian's console-setup for Latin scripts) is Latin-1, light lines, and the blocks of VT100 and CP437.
"""

import unicodedata
from collections.abc import Mapping
from enum import StrEnum

from rich.cells import get_character_cell_size


class Glyphs(StrEnum):
    """What a terminal can show."""

    UNICODE = "unicode"
    CONSOLE = "console"
    ASCII = "ascii"


ASCII_FOR: Mapping[str, str] = {
    "●": "*", "○": "o", "✓": "+", "✗": "x", "⊘": "-", "◆": "#", "■": "#", "·": ".", "…": "~", "–": "-",
    "—": "-", "‐": "-",
    "─": "-", "━": "=", "╌": "-", "┄": "-", "╸": "=", "╺": "=", "│": "|", "┊": ":", "┬": "+",
    "┤": "+", "├": "+",
    "└": "`", "╰": "`", "╯": "'", "┌": "+", "┐": "+", "┘": "+", "┴": "+", "┼": "+", "╭": "+", "╮": "+",
    "›": ">", "‹": "<", "▸": ">", "▾": "v", "▶": ">", "◀": "<", "◂": "<", "▲": "^", "▼": "v",
    "▌": "|", "▐": "|",
    "←": "<", "→": ">", "↑": "^", "↓": "v", "↵": "<", "±": "~", "×": "x", "µ": "u", "⁄": "/",
    "▁": "_", "▂": ".", "▃": "-", "▄": "=", "▅": "+", "▆": "*", "▇": "%", "█": "#", "▀": "'",
    "░": ".", "▒": ":", "▓": "%", "◊": "?", "␦": "?", "�": "?",
    "‘": "'", "’": "'", "“": '"', "”": '"', "•": "*",
}  # fmt: skip
"""For the signs we draw with, and some that logs are full of."""
CONSOLE_FOR: Mapping[str, str] = {
    "●": "*", "○": "o", "◆": "#", "■": "#", "━": "─", "╌": "-", "┄": "-", "╸": "─", "╺": "─", "┊": "│",
    "╰": "└", "╯": "┘", "╭": "┌", "╮": "┐", "▁": "_", "▂": "_", "▃": "▄", "▅": "▄", "▆": "▄", "▇": "█",
}  # fmt: skip
"""What the console shows better than ASCII does."""
_OF_CONSOLE = frozenset("─│┌┐└┘├┤┬┴┼█▄▀▌▐░▒▓") | set(map(chr, range(0xA0, 0x100)))
_BRAILLE = range(0x2800, 0x2900)
_DENSITY = " .:-=+*%#"
"""For braille of so many dots."""


class Lowering(dict[int, str]):
    """A table for `str.translate`, made as it is used: what stands for each character."""

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__()
        self._shown = _OF_CONSOLE if glyphs is Glyphs.CONSOLE else frozenset()
        self._known = {**ASCII_FOR, **(CONSOLE_FOR if glyphs is Glyphs.CONSOLE else {})}

    def __missing__(self, code: int) -> str:
        self[code] = found = self._lowered(chr(code))
        return found

    def _lowered(self, char: str) -> str:
        if char.isascii() or char in self._shown:
            return char
        if ord(char) in _BRAILLE:
            return _DENSITY[(ord(char) - _BRAILLE.start).bit_count()]
        cells = get_character_cell_size(char)
        base = unicodedata.normalize("NFKD", char)[:1]
        if cells == 1 and char not in self._known and base.isascii() and base.isprintable():
            return base
        return self._known.get(char, "?" * cells)


def lowering(glyphs: Glyphs) -> Lowering | None:
    """What to put text through on its way to a terminal that shows these; None where it shows all."""
    return None if glyphs is Glyphs.UNICODE else Lowering(glyphs)


def glyphs_for(wish: str, environment: Mapping[str, str], encoding: str) -> Glyphs:
    """What a terminal shows, as the user says, else as locale, encoding of the output and TERM tell.

    Python takes the locale C for UTF-8, and most terminals that nobody told a locale show UTF-8; where one
    was named that has no more than ASCII, that is believed.
    """
    if wish in set(Glyphs):
        return Glyphs(wish)
    if environment.get("TEXTUAL_DRIVER"):
        return Glyphs.UNICODE  # in a browser, which has all signs
    locale = environment.get("LC_ALL") or environment.get("LANG") or ""
    said_ascii = locale in ("C", "POSIX")
    if said_ascii or encoding.lower().replace("-", "").replace("_", "") != "utf8":
        return Glyphs.ASCII
    return Glyphs.CONSOLE if environment.get("TERM") == "linux" else Glyphs.UNICODE
