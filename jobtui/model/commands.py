"""Commands of words, for a shell that runs them and for a person who pastes them; the one place that quotes.

A login shell may be sh, bash, zsh, csh, tcsh or fish. Each gives back the same words, whatever is in them:
they agree on single quotes around what is neither a quote, a backslash nor an exclamation mark, and on a
backslash before the other two.
"""

import re
import unicodedata
from collections.abc import Sequence

from jobtui.model.patterns import regex
from jobtui.model.secrets import mask_text

_PLAIN = regex(r"[A-Za-z0-9_@%+=:,./-]+", re.ASCII)
_SPECIAL = regex(r"(['\\!])")
_SAFE = {"'": '"\'"', "\\": "\\\\", "!": "\\!"}
_FREE_IN_DOUBLE = regex(r'[^"$`\\!]*')
"""What no shell changes between double quotes."""
_HOST = regex(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?", re.ASCII)
"""What may come after `ssh`: nothing that could be an option or more than one word."""
_LETTERS = frozenset({"Lu", "Ll", "Lt", "Lo", "Nd"})
_FILLERS = frozenset("\u115f\u1160\u3164\uffa0")
"""Letters that are not visible."""


def quoted(word: str) -> str:
    """A word as a shell reads it back unchanged. Raises ValueError for a NUL in it."""
    if "\0" in word:
        raise ValueError("no program can take a NUL as argument")
    if _PLAIN.fullmatch(word) and word[0] not in "=%":
        return word
    return "".join(_SAFE.get(piece, f"'{piece}'") for piece in _SPECIAL.split(word) if piece) or "''"


def command_line(words: Sequence[str]) -> str:
    """A command of quoted words, to be run. Raises ValueError for a NUL in one."""
    return " ".join(map(quoted, words))


OURS = "jobtui"
"""What the commands of this program begin with."""


class Command(str):
    """A command to type or paste; "" if none can be offered.

    `words` are the program's own. `about` comes from outside: names, ids, paths, which are never read as
    options. The command runs on `host` over ssh, in the directory `within`. None is offered if a word holds a
    secret or an invisible character, as it would not do what it shows: masked text is never quoted, and
    quoted text is never masked.
    """

    __slots__ = ("words",)
    words: tuple[str, ...]

    def __new__(cls, *words: str, about: Sequence[str] = (), host: str = "", within: str = "") -> "Command":
        """The command, "" if it cannot be offered."""
        made = (*words, *about)
        ends_options = words[-1:] == ("--",)
        is_plain = all(map(_is_plain, (*made, host, within)))
        is_operand = ends_options or not any(word.startswith("-") for word in about)
        text = ""
        if is_plain and is_operand and not within.startswith("-") and (not host or _HOST.fullmatch(host)):
            text = " ".join(map(_readable, made))
            text = f"cd {_readable(within)} && {text}" if within else text
            text = f"ssh {host} {_readable(text)}" if host else text
        offered = super().__new__(cls, text if mask_text(text) == text else "")
        offered.words = made if offered and not (host or within) else ()
        return offered


def _readable(word: str) -> str:
    return f'"{word}"' if "'" in word and _FREE_IN_DOUBLE.fullmatch(word) else quoted(word)


def _is_plain(word: str) -> bool:
    """Whether a word is shown unchanged: it has no secret, line break, control or bidi character."""
    if mask_text(word) != word or not word.isprintable():
        return False
    return word.isascii() or all(
        char.isascii() or (unicodedata.category(char) in _LETTERS and char not in _FILLERS) for char in word
    )
