"""Words and commands for a shell that is not known: a login shell may be sh, bash, zsh, csh, tcsh or fish.

Quoted so that each of them gives back the same words, whatever is in them. They agree on single quotes around
what is neither a quote, a backslash nor an exclamation mark, and on a backslash before the other two.
"""

import re
from collections.abc import Sequence

_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./-]+", re.ASCII)
_SPECIAL = re.compile(r"(['\\!])")
_SAFE = {"'": '"\'"', "\\": "\\\\", "!": "\\!"}


def quoted(word: str) -> str:
    """One word, so that a shell takes it for exactly this one. Raises ValueError for a NUL in it."""
    if "\0" in word:
        raise ValueError("no program can be given a NUL")
    if _PLAIN.fullmatch(word) and word[0] not in "=%":
        return word
    return "".join(_SAFE.get(piece, f"'{piece}'") for piece in _SPECIAL.split(word) if piece) or "''"


def command_line(words: Sequence[str]) -> str:
    """A command of quoted words. Raises ValueError for a NUL in one."""
    return " ".join(map(quoted, words))
