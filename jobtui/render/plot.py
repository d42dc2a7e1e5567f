"""Lines of dots, drawn by plotext: the only place that knows it. No axes, no colours, no words.

plotext is imported where it draws, as that takes 150 ms; it has one figure for all of a process, and takes
up to 300 ms for a large picture full of noise. Draw in a thread, which this makes safe.
"""

import re
import threading
from collections.abc import Sequence
from typing import NamedTuple

MARKER = "braille"
DOTS_WIDE, DOTS_HIGH = 2, 4
"""Dots of one cell."""

_drawing = threading.Lock()
_COLOUR = re.compile(r"\x1b\[(?:38;5;(\d+)|[\d;]*)m")


class Dots(NamedTuple):
    """One line: the column and the row of dots of each of its points, from the left end and the bottom."""

    x: Sequence[float]
    y: Sequence[float]


class Cell(NamedTuple):
    """A character of the picture, and the number of the line it shows, -1 for none."""

    text: str
    line: int


def draw(lines: Sequence[Dots], width: int, height: int) -> list[list[Cell]]:
    """The lines in a picture of so many cells; where they meet the last one is seen."""
    drawn = [(number, line) for number, line in enumerate(lines) if line.x]
    if not drawn or width < 1 or height < 1:
        return [[Cell(" ", -1)] * width for _ in range(height)]
    with _drawing:
        picture = _draw(drawn, width, height)
    return [_cells(row, width) for row in picture.split("\n")[:height]]


def _draw(lines: Sequence[tuple[int, Dots]], width: int, height: int) -> str:
    import plotext

    plotext.terminal.limit(False, False)
    figure = plotext.figure
    figure.clear()
    figure.plot_size(width, height)
    figure.axes(False)
    figure.canvas("default")
    for axis, dots in (("x", width * DOTS_WIDE), ("y", height * DOTS_HIGH)):
        figure.ruler(axis).alignment(lim="edge")
        figure.ruler(axis).ticks([], [])
        figure.ruler(axis).lim(0, dots)
    for number, line in lines:
        marker = plotext.marker(MARKER, number + 1)
        # A dot is in the middle of its place
        x, y = [at + 0.5 for at in line.x], [at + 0.5 for at in line.y]
        figure.draw(figure.signal(x, y, marker=marker).lines())
    picture: str = figure.build().string()
    figure.clear()
    return picture


def _cells(row: str, width: int) -> list[Cell]:
    """A row of the picture; the colour of a character is the number of its line."""
    cells: list[Cell] = []
    line, at = -1, 0
    for found in _COLOUR.finditer(row):
        cells += [Cell(char, line) for char in row[at : found.start()]]
        line, at = int(found[1]) - 1 if found[1] else -1, found.end()
    cells += [Cell(char, line) for char in row[at:]]
    cells = [Cell(" ", -1) if cell.text == " " else cell for cell in cells[:width]]
    return cells + [Cell(" ", -1)] * (width - len(cells))
