"""Lines as text. Styles are names, and become escape sequences, which printing removes if there is no colour
(`unpainted`). Names and values are made safe here; the caller masks them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

from jobtui.render.spans import Piece
from jobtui.render.text import fit, safe, width

GAP = "  "
SMALLEST = 4
"""Cells below which no value is cut."""

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


def paint(text: str, style: str) -> str:
    """A text in a style. Blanks at its end have none, so that they can be cut off."""
    code, shown = _SGR.get(style), text.rstrip()
    return f"\x1b[{code}m{shown}{_RESET}{text[len(shown) :]}" if code and shown else text


def painted(line: Iterable[Piece]) -> str:
    return "".join(paint(span.text, span.style) for span in line).rstrip()


def unpainted(line: str) -> str:
    return _PAINTED.sub("", line) if "\x1b" in line else line


def fact_lines(facts: Iterable[tuple[str, Piece | str]], cells: int | None) -> Iterator[str]:
    """Names and values below each other; a long value is cut if there is a limit."""
    known = list(facts)
    column = max((width(name) for name, _ in known), default=0)
    for name, value in known:
        piece = value if isinstance(value, Piece) else Piece(value)
        text = safe(piece.text)
        if cells is not None:
            text = fit(text, max(SMALLEST, cells - column - len(GAP))).rstrip()
        yield f"{paint(fit(name, column), 'settled')}{GAP}{paint(text, piece.style)}".rstrip()
