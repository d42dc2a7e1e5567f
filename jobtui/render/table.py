"""Tables as lines of text: aligned by cells, cut to the width of a terminal or not at all.

Cells are made safe here (`text.safe`); masking is for whoever makes them. Styles are names, and become
escape sequences, which who prints takes out again where there is no colour (`unpainted`).
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from jobtui.render.spans import Piece
from jobtui.render.text import NONE, Align, fit, safe, width

GAP = "  "
SMALLEST = 4
"""Cells below which no column is squeezed."""

_RESET = "\x1b[0m"
_PAINTED = re.compile(r"\x1b\[[\d;]*m")
_SGR: Mapping[str, str] = {
    "heading": "1", "settled": "2", "status.running": "36", "status.pending": "33", "status.failed": "31",
    "status.needs_person": "1;31", "status.unknown": "35", "status.canceled": "2", "status.completed": "",
    "status.missing": "2", "status.purged": "2", "warning": "33", "error": "31", "good": "32",
    "accent": "36", "dim": "2", "rule": "2", "source.0": "36", "source.1": "32", "source.2": "33",
    "source.4": "2",
}  # fmt: skip
"""The look of styles: one accent, grey for settled things, bold only where a person must look."""


class Head(NamedTuple):
    """One column. `least` is how narrow it may get; those with the highest `drop` go first, 0 never goes."""

    title: str
    align: Align = "left"
    least: int = SMALLEST
    drop: int = 0


def paint(text: str, style: str) -> str:
    """A text in a style. Blanks at its end stay without, so that they can be cut off."""
    code, shown = _SGR.get(style), text.rstrip()
    return f"\x1b[{code}m{shown}{_RESET}{text[len(shown) :]}" if code and shown else text


def painted(line: Iterable[Piece]) -> str:
    return "".join(paint(span.text, span.style) for span in line)


def unpainted(line: str) -> str:
    return _PAINTED.sub("", line) if "\x1b" in line else line


def table_lines(heads: Sequence[Head], rows: Sequence[Sequence[Piece]], cells: int | None) -> Iterator[str]:
    """The lines of a table: its heads and rows, at most `cells` wide when that is given."""
    kept, widths = _layout(heads, rows, cells)
    yield _line([Piece(heads[i].title, "heading") for i in kept], [heads[i] for i in kept], widths)
    for row in rows:
        yield _line([row[i] for i in kept], [heads[i] for i in kept], widths)


def filled_table(heads: Sequence[Head], rows: Sequence[Sequence[Piece]], cells: int | None) -> Iterator[str]:
    """The lines of a table without the columns in which no row has a value, but for those that never go."""
    used = [
        at
        for at, head in enumerate(heads)
        if head.drop == 0 or any(row[at].text not in ("", NONE) for row in rows)
    ]
    return table_lines([heads[at] for at in used], [[row[at] for at in used] for row in rows], cells)


def fact_lines(facts: Iterable[tuple[str, Piece | str]], cells: int | None) -> Iterator[str]:
    """Names and values under each other; a long value is cut when there is a limit."""
    known = list(facts)
    column = max((width(name) for name, _ in known), default=0)
    for name, value in known:
        piece = value if isinstance(value, Piece) else Piece(value)
        text = safe(piece.text)
        if cells is not None:
            text = fit(text, max(SMALLEST, cells - column - len(GAP))).rstrip()
        yield f"{paint(fit(name, column), 'settled')}{GAP}{paint(text, piece.style)}".rstrip()


def _layout(
    heads: Sequence[Head], rows: Sequence[Sequence[Piece]], cells: int | None
) -> tuple[list[int], list[int]]:
    natural = [
        max(width(head.title), max((width(row[i].text) for row in rows), default=0))
        for i, head in enumerate(heads)
    ]
    kept = list(range(len(heads)))
    if cells is None:
        return kept, natural
    least = [min(size, head.least) for size, head in zip(natural, heads, strict=True)]
    for index in sorted(kept, key=lambda i: -heads[i].drop):
        if _total(least[i] for i in kept) <= cells or heads[index].drop == 0:
            break
        kept.remove(index)
    return kept, _squeezed([natural[i] for i in kept], [least[i] for i in kept], cells)


def _total(widths: Iterable[int]) -> int:
    sizes = list(widths)
    return sum(sizes) + len(GAP) * max(0, len(sizes) - 1)


def _squeezed(widths: list[int], least: list[int], cells: int) -> list[int]:
    """The widths with the widest ones narrowed alike until all fit, or until none can be."""

    def capped(cap: int) -> list[int]:
        return [max(low, min(size, cap)) for size, low in zip(widths, least, strict=True)]

    cap = bisect_right(range(max(widths, default=0)), cells, key=lambda cap: _total(capped(cap))) - 1
    sizes = capped(max(cap, 0)) if _total(widths) > cells else widths
    spare = cells - _total(sizes)
    for index, size in enumerate(sizes):
        if spare > 0 and size < widths[index]:
            sizes[index] += 1
            spare -= 1
    return sizes


def _line(row: Sequence[Piece], heads: Sequence[Head], widths: Sequence[int]) -> str:
    parts = [
        paint(fit(cell.text, size, align=head.align), cell.style)
        for cell, head, size in zip(row, heads, widths, strict=True)
    ]
    return GAP.join(parts).rstrip()
