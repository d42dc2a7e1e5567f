"""Lines of styled spans, and which of their cells changed. Styles are names that the theme explains."""

from collections.abc import Iterable
from typing import NamedTuple

from rich.cells import cell_len


class Span(NamedTuple):
    """Some text in one style, or in several with blanks between their names.

    `cells` is the width of the text where it is known, -1 where it is not. The text is safe to show.
    """

    text: str
    style: str = ""
    cells: int = -1

    @property
    def width(self) -> int:
        """Cells it takes."""
        return self.cells if self.cells >= 0 else cell_len(self.text)


Line = tuple[Span, ...]


class Difference(NamedTuple):
    """Cells that differ between two lines: from `start` up to `stop`."""

    start: int
    stop: int


def width_of(line: Iterable[Span]) -> int:
    """Cells a line takes."""
    return sum(span.width for span in line)


def difference(before: Line, after: Line) -> Difference | None:
    """Which cells of a line must be painted again, None when none."""
    if before == after:
        return None
    same = 0
    start = 0
    for old, new in zip(before, after, strict=False):
        if old != new:
            break
        same += 1
        start += new.width
    old_width, new_width = width_of(before), width_of(after)
    stop = max(old_width, new_width)
    if old_width == new_width:
        for old, new in zip(reversed(before[same:]), reversed(after[same:]), strict=False):
            if old != new:
                break
            stop -= new.width
    return Difference(start, stop)


def styled(line: Line, style: str) -> Line:
    """The line with one more style on every span."""
    return tuple(span._replace(style=f"{span.style} {style}".strip()) for span in line)


def padded(line: Line, cells: int, style: str = "") -> Line:
    """The line with blanks behind it up to `cells`; unchanged when it is that wide already."""
    missing = cells - width_of(line)
    return (*line, Span(" " * missing, style, missing)) if missing > 0 else line


def spread(left: Iterable[Span], right: Iterable[Span], cells: int, style: str = "") -> Line:
    """`left` and `right` at the two ends of a line; `right` is left out when both do not fit."""
    kept = fitting(left, cells)
    end = tuple(right)
    if width_of(kept) + width_of(end) > cells:
        end = ()
    return (*padded(kept, cells - width_of(end), style), *end)


def fitting(spans: Iterable[Span], cells: int) -> Line:
    """As many of the first spans as fit whole into `cells`."""
    kept: list[Span] = []
    for span in spans:
        cells -= span.width
        if cells < 0:
            break
        kept.append(span)
    return tuple(kept)
