"""The escape sequence that puts text on the clipboard of the terminal's user (OSC 52)."""

from base64 import b64encode

MAX_ENCODED = 74_994
"""Encoded bytes that every terminal takes; some drop a longer sequence silently."""


class TooLong(Exception):
    """The text is more than a terminal takes through OSC 52."""


def clipboard_sequence(text: str, *, in_tmux: bool) -> str:
    """What to write to the terminal. Raises TooLong.

    Inside tmux the sequence is wrapped so that tmux hands it on to the terminal outside.
    """
    encoded = b64encode(text.encode("utf-8", "replace")).decode("ascii")
    if len(encoded) > MAX_ENCODED:
        raise TooLong(f"{len(encoded):,} encoded bytes, at most {MAX_ENCODED:,} go through a terminal")
    sequence = f"\x1b]52;c;{encoded}\x07"
    if not in_tmux:
        return sequence
    inner = sequence.replace("\x1b", "\x1b\x1b")
    return f"\x1bPtmux;{inner}\x1b\\"
