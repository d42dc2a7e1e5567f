"""Texts in lines of a width."""

from rich.cells import chop_cells

from jobtui.render.text import width


def wrapped(text: str, cells: int, *, hang: int = 0) -> list[str]:
    """A safe text in lines of at most so many cells, broken at blanks where there are any.

    Lines after the first begin with `hang` blanks, unless that would take more than half of the width; the
    same holds for the blanks that the text itself begins with.
    """
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
        if line.strip():
            lines.append(line)
        *full, last = chop_cells(word, cells - len(indent)) or [""]
        lines += [indent + part for part in full]
        line = indent + last
    return [*lines, line]
