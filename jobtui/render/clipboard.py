"""Ways to a clipboard: the escape sequence for it (OSC 52), and which way fits a terminal."""

from base64 import b64encode
from collections.abc import Mapping
from enum import StrEnum

from jobtui.model.looks import AUTO

MAX_ENCODED = 74_994
"""Encoded bytes that every terminal takes; some drop a longer sequence silently."""
SCREEN_PART = 240
"""Bytes that GNU screen hands on at once."""
WITHOUT = frozenset({"linux", "dumb", "vt100", "vt220"})
"""Terminals that have no clipboard, or would show the sequence."""


class Way(StrEnum):
    """How text is copied."""

    OSC52 = "osc52"
    TMUX = "tmux"
    FILE = "file"
    OFF = "off"


class TooLong(Exception):
    """The text is more than a terminal takes through OSC 52."""


def way_for(wish: str, environment: Mapping[str, str]) -> Way:
    """How to copy as the user says, else as fits: in tmux through itself, where there is none to a file."""
    if wish != AUTO:
        return Way(wish)
    if environment.get("TMUX"):
        return Way.TMUX
    return Way.FILE if environment.get("TERM", "") in WITHOUT else Way.OSC52


def clipboard_sequence(text: str, environment: Mapping[str, str]) -> str:
    """What to write to the terminal. Raises TooLong.

    Inside tmux and GNU screen the sequence is wrapped, so that they hand it on to the terminal outside.
    """
    encoded = b64encode(text.encode("utf-8", "replace")).decode("ascii")
    if len(encoded) > MAX_ENCODED:
        raise TooLong(f"{len(encoded):,} encoded bytes, at most {MAX_ENCODED:,} go through a terminal")
    sequence = f"\x1b]52;c;{encoded}\x07"
    if environment.get("TMUX"):
        inner = sequence.replace("\x1b", "\x1b\x1b")
        return f"\x1bPtmux;{inner}\x1b\\"
    if environment.get("STY"):
        parts = (sequence[at : at + SCREEN_PART] for at in range(0, len(sequence), SCREEN_PART))
        return "".join(f"\x1bP{part}\x1b\\" for part in parts)
    return sequence
