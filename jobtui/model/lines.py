"""A line of a file as it stands there, and how lines are numbered before those ahead of them are counted."""

import msgspec

UNCOUNTED = 1 << 40
"""What is taken off the number of a line when the lines before reading began are not counted yet."""


class RawLine(msgspec.Struct, frozen=True, gc=False):
    """One physical line, without its newline.

    `line` is its 1-based number, None where that is not known; `offset` the byte where it begins. `text` is
    decoded with errors replaced: not masked, not safe for a terminal. `cut` says that only a part is given.
    """

    line: int | None
    offset: int
    text: str
    cut: bool = False


def provisional(nth: int) -> int:
    """The number of the `nth` line (1-based) from where reading began, the lines before it being uncounted.

    Such numbers are negative and grow from line to line as true ones do.
    """
    return nth - UNCOUNTED


def settled(line: int, lines_before: int) -> int:
    """The true number of a line, given how many lines stand before the place where reading began."""
    return line if line > 0 else line + UNCOUNTED + lines_before
