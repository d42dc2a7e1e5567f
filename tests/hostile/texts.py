"""The texts, and how to see that one got through."""

import json
import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache

from tests.rows import FIXTURES

TEXTS: Mapping[str, str] = {
    name: "".join(text * times for text, times in zip(parts[::2], parts[1::2], strict=True))
    for name, parts in json.loads((FIXTURES / "hostile_texts.json").read_text()).items()
}

FEW = (
    "markup", "csi", "osc", "c1", "bidi", "nul", "whitespace", "cjk", "combining", "surrogates", "long",
    "empty", "secret", "everything",
)  # fmt: skip
"""Those that are tried where each takes its time; the others would tell nothing more there."""

SECRET = "hunter2"

_WIDE = frozenset("WF")


@cache
def is_raw(char: str) -> bool:
    """Whether a character should not reach a terminal; by Unicode, not by what jobtui thinks of it."""
    category = unicodedata.category(char)
    return category in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") and char != "\ufffd"


def cells(text: str) -> int:
    """Cells a terminal takes for text without raw characters, by Unicode's own tables."""
    return len(text) if text.isascii() else sum(map(_size, text))


@cache
def _size(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in _WIDE else 1


def piles_in(text: str) -> Iterator[str]:
    """Runs of more than five combining marks, which climb into other lines."""
    run = ""
    for char in "" if text.isascii() else f"{text} ":
        if _size(char) == 0:
            run += char
        else:
            if len(run) > 5:
                yield run
            run = ""


def faults_in(line: str) -> list[str]:
    raw = sorted(filter(is_raw, {*line}))
    return [
        *(f"raw {char!a}" for char in raw),
        *(f"a pile of {len(pile)} marks" for pile in piles_in(line)),
        *(["a secret"] if SECRET in line else []),
    ]
