"""Outside text made fit for a terminal, and measured in its cells; times and durations in words.

Nothing that jobtui did not write itself reaches a terminal but through `safe` or `show`.

What `safe` does with a character that is not plainly visible: C0 controls and DEL become their control
pictures (U+2400 on) and tabs a space; C1 controls become U+2426; characters that direct, join or hide others
(bidi, zero width, variation selectors, skin tones, fillers) become U+25CA, because terminals disagree on
their width and they can make a text look like another; what has no meaning (surrogates, private use,
unassigned) becomes U+FFFD; every kind of space a space. Characters of ambiguous width are taken as narrow.
"""

import re
import time
import unicodedata
from functools import lru_cache
from typing import Literal

from jobtui.analysis.times import NONE, age, duration
from jobtui.model.clock import MONTHS, SECOND, Nanos, shown_seconds
from jobtui.model.secrets import mask_text

__all__ = ["NONE", "age", "duration"]  # from here too

Align = Literal["left", "right"]

ELLIPSIS = "…"
MAX_MARKS = 4
"""Combining marks kept on one character; living languages use up to three."""
_HIDDEN = "\u25ca"
_MEANINGLESS = "\ufffd"

_FILLERS = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f")
_VARIATION_SELECTORS = frozenset(
    map(chr, (*range(0x180B, 0x1810), *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
)
_SKIN_TONES = frozenset(map(chr, range(0x1F3FB, 0x1F400)))
_UNSETTLED_WIDTHS = frozenset(
    chr(code)
    for first, last in ((0x2630, 0x2637), (0x268A, 0x268F), (0x3248, 0x324F), (0x1D300, 0x1D376))
    for code in range(first, last + 1)
)
"""Signs whose width changed between versions of Unicode."""
_ALWAYS_HIDDEN = _FILLERS | _VARIATION_SELECTORS | _SKIN_TONES | _UNSETTLED_WIDTHS
_ASCII = {code: chr(0x2400 + code) for code in range(32)} | {0x7F: "\u2421", ord("\t"): " "}
"""Control pictures; a tab is a space."""
_BY_CATEGORY = {
    "Cf": _HIDDEN, "Zl": _HIDDEN, "Zp": _HIDDEN, "Zs": " ", "Cs": _MEANINGLESS, "Co": _MEANINGLESS,
    "Cn": _MEANINGLESS,
}  # fmt: skip


def show(text: str) -> str:
    """Outside text with its secrets masked and nothing in it that could drive a terminal."""
    return safe(mask_text(text))


def safe(text: str) -> str:
    """`text` as one line of visible characters. Masks nothing. Applying it twice changes nothing more."""
    if text.isascii():
        return text if text.isprintable() else text.translate(_ASCII)
    distinct = set(text)
    table = {ord(char): symbol for char in distinct if (symbol := _symbol(char)) != char}
    if table:
        text = text.translate(table)
    return _limit_marks(text) if any(_is_mark(char) for char in distinct) else text


def width(text: str) -> int:
    """How many cells `safe(text)` takes."""
    text = safe(text)
    return len(text) if text.isascii() else sum(map(cells_of, text))


def fit(text: str, cells: int, *, align: Align = "left", ellipsis: str = ELLIPSIS) -> str:
    """`safe(text)` in exactly `cells` cells: filled with spaces, or cut with an ellipsis at its end.

    A wide character or one with its combining marks is kept or left out as a whole. `ellipsis` takes one
    cell, or none when it is "".
    """
    text = safe(text)
    if text.isascii():
        taken = len(text)
        if taken > cells:
            return text[: cells - bool(ellipsis)] + ellipsis if cells > 0 else ""
    else:
        text, taken = _cut(text, cells, ellipsis)
    filling = " " * (cells - taken)
    return text + filling if align == "left" else filling + text


def telling(text: str, cells: int) -> str:
    """`safe(text)` cut to these cells, before the words that say how it ended, else in its middle."""
    text = safe(text)
    if width(text) <= cells:
        return text
    found = _TELLING.search(text)
    if found is not None and width(text[: found.end()]) <= 2 * cells // 3:
        return fit(text, cells)
    tail = text[found.start() if found is not None else len(text) - cells // 2 :]
    while found is None and width(tail) > cells // 2:
        tail = tail[1:]
    room = min(width(tail), cells - cells // 3)
    return fit(text, cells - room).rstrip() + fit(tail, room).rstrip()


def gist(text: str, cells: int, *, keeps_ends: bool = False) -> str:
    """`safe(text)`, without the class of its exception if both do not fit: its words tell more."""
    if keeps_ends:
        return telling(text, cells)
    text = safe(text)
    return text if width(text) <= cells else _CLASS.sub("", text, count=1)


SEPARATOR = " · "
"""Between facts in a line, the most useful first."""


def fit_facts(text: str, cells: int) -> str:
    """`safe(text)` in these cells at most. A path that comes first is cut in its middle, all else at its end.

    A fact of which only a few letters would be left is left out, and a number that would be cut.
    """
    first = safe(text).partition(SEPARATOR)[0]
    if first.startswith("/") and width(first) > cells:
        return telling(first, cells)
    return re.sub(r" ·?…$| · (?:[^·]{1,7}|[^·]*\d\S{0,3})…$", f" {ELLIPSIS}", fit(text, cells).rstrip())


def ends_of(job_id: str) -> str:
    """User and model of an id of Sirepo, which tell most; any other id as it is."""
    first, _, rest = job_id.partition("-")
    middle, _, last = rest.rpartition("-")
    return f"{first}…{last}" if middle else job_id


_TELLING = re.compile(
    r"\b(?:error|exception|returncode|exit|stderr|timeout|reply|state|status|situation|await|cancel|opName)="
    r"|\b[Cc]annot|\b[Ff]ailed|\bkilled|\bdenied|\b\w*Error: "
)
_CLASS = re.compile(r"\b[A-Za-z_][\w.]*(?:Error|Exception): (?=\S+ )")


def _cut(text: str, cells: int, ellipsis: str) -> tuple[str, int]:
    """A safe text cut to `cells` cells, with an ellipsis if it is cut, and its width."""
    if cells <= 0:
        return "", 0
    taken = kept = kept_taken = 0
    signs = 1 if ellipsis else 0
    for index, char in enumerate(text):
        size = cells_of(char)
        if size and taken <= cells - signs:
            kept, kept_taken = index, taken
        taken += size
        if taken > cells:
            return text[:kept] + ellipsis, kept_taken + signs
    return text, taken


@lru_cache(maxsize=4096)
def cells_of(char: str) -> int:
    """How many cells a character takes. Rich is loaded for what is not ASCII only."""
    from rich.cells import get_character_cell_size

    return get_character_cell_size(char)


@lru_cache(maxsize=4096)
def _symbol(char: str) -> str:
    code = ord(char)
    if code < 0x80:
        return _ASCII.get(code, char)
    if code < 0xA0:
        return "\u2426"
    if char in _ALWAYS_HIDDEN:
        return _HIDDEN
    return _BY_CATEGORY.get(unicodedata.category(char), char)


@lru_cache(maxsize=4096)
def _is_mark(char: str) -> bool:
    """Whether a character takes no cell of its own, once it is safe."""
    return cells_of(_symbol(char)) == 0


def _limit_marks(text: str) -> str:
    parts: list[str] = []
    marks = 0
    for char in text:
        if not _is_mark(char):
            marks = 0
        elif not parts:
            parts.append("\u25cc")  # carries a mark that has no character before it
            marks = 1
        else:
            marks += 1
        if marks <= MAX_MARKS:
            parts.append(char)
    return "".join(parts)


class Zone:
    """How the reader of this process wants times written: in UTC until the dashboard sets another zone.
    Output for other programs is always in UTC.
    """

    is_local = False

    @classmethod
    def mark(cls) -> str:
        """The zone to put after a time: "Z", or " CET"."""
        if not cls.is_local:
            return "Z"
        return f" {fit(safe(time.strftime('%Z', time.localtime())), 5).rstrip()}"

    @classmethod
    def offset_s(cls, at: Nanos) -> int:
        """How many seconds the zone is ahead of UTC at a time."""
        return _broken_down(at).tm_gmtoff if cls.is_local else 0


def clock_time(at: Nanos | None, now: Nanos | None = None, *, millis: bool = False) -> str:
    """Time of day in the zone of `Zone`, "14:20:31" or "14:20:31.204", after its date where that is not the
    date of `now`; "–" for None.
    """
    if at is None:
        return NONE
    if now is not None and date_of(at) != date_of(now):
        return date_time(at)
    text = time.strftime("%H:%M:%S", _broken_down(at))
    return f"{text}.{at % SECOND // 1_000_000:03d}" if millis else text


def date_time(at: Nanos, *, local: bool | None = None) -> str:
    """Date and time of day, "2026-11-20 14:20:31"; the zone is that of `Zone` unless `local` says."""
    return time.strftime("%Y-%m-%d %H:%M:%S", _broken_down(at, local))


def date_of(at: Nanos) -> str:
    return date_time(at).partition(" ")[0]


def short_time(at: Nanos, now: Nanos) -> str:
    """A time in at most six cells: "14:20" today, "Nov 20" this year, else the year."""
    then, today = _broken_down(at), _broken_down(now)
    if then[:3] == today[:3]:
        return time.strftime("%H:%M", then)
    return f"{MONTHS[then.tm_mon - 1]} {then.tm_mday}" if then.tm_year == today.tm_year else f"{then.tm_year}"


def _broken_down(at: Nanos, local: bool | None = None) -> time.struct_time:
    local = Zone.is_local if local is None else local
    seconds = shown_seconds(at)
    return time.localtime(seconds) if local else time.gmtime(seconds)


def wrapped(text: str, cells: int, *, hang: int = 0) -> list[str]:
    """A safe text in lines of at most this many cells, broken at blanks where there are any, and among wide
    characters, as their languages write none.

    Lines after the first begin with `hang` blanks, unless that would take more than half of the width; the
    same holds for the blanks that the text itself begins with.
    """
    from rich.cells import chop_cells

    indent = " " * (hang if 2 * hang <= cells else 0)
    words = text.lstrip(" ")
    lead = len(text) - len(words)
    lines: list[str] = []
    line = " " * (lead if 2 * lead <= cells else 0)
    for word in words.split(" "):
        joined = f"{line} {word}" if line.strip() else line + word
        if width(joined) <= cells:
            line = joined
            continue
        is_label = width(line) < len(indent)  # the next line would begin no further to the left
        if line.strip() and (is_label or (width(word) > len(word) and width(line) + 3 <= cells)):
            line += " "
        elif line.strip():
            lines.append(line)
            line = indent
        first = (chop_cells(word, cells - width(line)) or [""])[0]
        parts = chop_cells(word[len(first) :], cells - len(indent)) if len(first) < len(word) else ()
        *full, line = (line + first, *(indent + part for part in parts))
        lines += full
    return [*lines, line]
