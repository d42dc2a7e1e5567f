"""The abilities of a terminal, and ways to copy to it."""

import unicodedata
from base64 import b64encode
from collections.abc import Mapping
from enum import StrEnum

from jobtui.model.settings import AUTO
from jobtui.model.tables import tables_of
from jobtui.render.text import cells_of


class Glyphs(StrEnum):
    UNICODE = "unicode"
    CONSOLE = "console"
    ASCII = "ascii"


_OF_CONSOLE = frozenset("─│┌┐└┘├┤┬┴┼█▄▀▌▐░▒▓") | set(map(chr, range(0xA0, 0x100)))
_BRAILLE = range(0x2800, 0x2900)


def signs(terminal: str) -> dict[str, str]:
    known: dict[str, str] = tables_of("jobtui.render", "terminal")[terminal]
    return known


class Lowering(dict[int, str]):
    """A table for `str.translate` that is filled as it is used: the replacement of each character."""

    def __init__(self, glyphs: Glyphs) -> None:
        super().__init__()
        self._shown = _OF_CONSOLE if glyphs is Glyphs.CONSOLE else frozenset()
        self._known = signs("ascii") | (signs("console") if glyphs is Glyphs.CONSOLE else {})

    def __missing__(self, code: int) -> str:
        self[code] = found = self._lowered(chr(code))
        return found

    def _lowered(self, char: str) -> str:
        if char.isascii() or char in self._shown:
            return char
        if ord(char) in _BRAILLE:
            return " .:-=+*%#"[(ord(char) - _BRAILLE.start).bit_count()]  # by the number of its dots
        cells = cells_of(char)
        base = unicodedata.normalize("NFKD", char)[:1]
        if cells == 1 and char not in self._known and base.isascii() and base.isprintable():
            return base
        return self._known.get(char, "?" * cells)


def lowering(glyphs: Glyphs) -> Lowering | None:
    """The translation of text for a terminal with these abilities; None if it shows all."""
    return None if glyphs is Glyphs.UNICODE else Lowering(glyphs)


def glyphs_for(wish: str, environment: Mapping[str, str], encoding: str) -> Glyphs:
    """What a terminal shows, as the user says, else by locale, encoding of the output and TERM. Python takes
    the locale C for UTF-8, and most terminals without a locale show UTF-8; a named locale that is limited to
    ASCII is followed.
    """
    if wish in set(Glyphs):
        return Glyphs(wish)
    if environment.get("TEXTUAL_DRIVER"):
        return Glyphs.UNICODE  # in a browser, which has all signs
    locale = environment.get("LC_ALL") or environment.get("LANG") or ""
    is_ascii = locale in ("C", "POSIX")
    if is_ascii or encoding.lower().replace("-", "").replace("_", "") != "utf8":
        return Glyphs.ASCII
    return Glyphs.CONSOLE if environment.get("TERM") == "linux" else Glyphs.UNICODE


MAX_ENCODED = 74_994
"""Encoded bytes that every terminal takes; some drop a longer sequence silently."""
SCREEN_PART = 240
"""How many bytes GNU screen passes on at once."""
WITHOUT = frozenset({"linux", "dumb", "vt100", "vt220"})
"""Terminals that have no clipboard, or would show the sequence."""


class CopyWay(StrEnum):
    OSC52 = "osc52"
    TMUX = "tmux"
    FILE = "file"
    OFF = "off"


class TooLong(Exception):
    """The text is more than a terminal takes through OSC 52."""


def way_for(wish: str, environment: Mapping[str, str]) -> CopyWay:
    """How to copy: as the user says, else through tmux inside tmux, or to a file without a terminal."""
    if wish != AUTO:
        return CopyWay(wish)
    if environment.get("TMUX"):
        return CopyWay.TMUX
    return CopyWay.FILE if environment.get("TERM", "") in WITHOUT else CopyWay.OSC52


def clipboard_sequence(text: str, environment: Mapping[str, str]) -> str:
    """What to write to the terminal so that a text is in the clipboard. Raises TooLong."""
    encoded = b64encode(text.encode("utf-8", "replace")).decode("ascii")
    if len(encoded) > MAX_ENCODED:
        raise TooLong(f"{len(encoded):,} encoded bytes, at most {MAX_ENCODED:,} go through a terminal")
    return through(f"\x1b]52;c;{encoded}\x07", environment)


def notification_sequence(text: str, environment: Mapping[str, str]) -> str:
    """What to write to the terminal so that the desktop shows a text, which is safe to show.

    OSC 9, which terminals without notifications ignore, or OSC 777 for those that only know that.
    """
    way = "777;notify;jobtui;" if environment.get("TERM", "").startswith(("foot", "rxvt")) else "9;"
    return through(f"\x1b]{way}{text}\x07", environment)


def through(sequence: str, environment: Mapping[str, str]) -> str:
    """A sequence wrapped so that tmux or GNU screen, if it runs in one, passes it on."""
    if environment.get("TMUX"):
        inner = sequence.replace("\x1b", "\x1b\x1b")
        return f"\x1bPtmux;{inner}\x1b\\"
    if environment.get("STY"):
        parts = (sequence[at : at + SCREEN_PART] for at in range(0, len(sequence), SCREEN_PART))
        return "".join(f"\x1bP{part}\x1b\\" for part in parts)
    return sequence
