"""How large a dashboard in a browser may be: what a browser asks for is anybody's word."""

SMALLEST, USUAL, LARGEST = (1, 1), (80, 24), (1_000, 500)
"""Columns and lines."""


def size_of(text: str) -> tuple[int, int]:
    """Columns and lines out of `80x24`, within what a screen can have; the usual ones where it is none."""
    columns, _, lines = text.partition("x")
    if not (_is_number(columns) and _is_number(lines)):
        return USUAL
    return bounded(int(columns), int(lines))


def bounded(columns: int, lines: int) -> tuple[int, int]:
    """The nearest size that a screen can have."""
    width, height = (
        min(max(least, asked), most)
        for least, asked, most in zip(SMALLEST, (columns, lines), LARGEST, strict=True)
    )
    return width, height


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 10
