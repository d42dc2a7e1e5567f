"""The names of styles, and the sign, word and style of each status."""

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise

from jobtui.model.jobs import JobStatus
from jobtui.model.patterns import regex
from jobtui.model.tables import tables_of


def style_names() -> Mapping[str, str]:
    """Every style of the dashboard by its name, and what it is for."""
    names: Mapping[str, str] = tables_of("jobtui", "theme")["names"]
    return names


def signs_of(kind: str) -> dict[str, tuple[str, str]]:
    """The sign and the style of each state of a kind of thing, in the order of the table."""
    return {state: (sign[0], sign[1]) for state, sign in tables_of("jobtui.render", "signs")[kind].items()}


ATTRIBUTES = frozenset({"bold", "dim", "italic", "underline", "reverse"})
COLORS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_NAMED = frozenset(("default", *COLORS, *(f"bright_{color}" for color in COLORS)))
_WORDS = ATTRIBUTES | _NAMED | {"on", "not"}
_AFTER = {"on": _NAMED, "not": ATTRIBUTES}
"""The values that may follow these words."""
_HEX = regex(r"#[0-9A-Fa-f]{6}")


def mistake_in_style(text: str) -> str:
    words = text.lower().split()
    colors = Counter(
        before == "on" for before, word in pairwise(("", *words)) if word in _NAMED or _HEX.fullmatch(word)
    )
    known = all(
        word in _AFTER.get(before, _WORDS) or (before != "not" and _HEX.fullmatch(word) is not None)
        for before, word in pairwise(("", *words))
    )
    if words and known and words[-1] not in _AFTER and max(colors.values(), default=0) <= 1:
        return ""
    return f'"{text}" is not a style; such as "bold red", "#e57373 on black", "underline"'


GLYPHS: Mapping[str, str] = tables_of("jobtui.render", "signs")["jobs"]
"""One cell each, in every font."""
NEEDS_PERSON_GLYPH = "!"

WORDS: Mapping[str, str] = {one.value: one.value for one in JobStatus} | {"completed": "done"}

STATUS_STYLES: Mapping[str, str] = {status.value: f"status.{status.value}" for status in JobStatus}
NEEDS_PERSON_STYLE = "status.needs_person"
CONCERN_STYLES: Mapping[str, str] = tables_of("jobtui.render", "signs")["concerns"]
"""How a verdict is painted; its words say the same."""
