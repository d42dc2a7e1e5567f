"""Lines of styled spans, and which of their cells changed. Styles are names that the theme explains."""

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from jobtui.render.text import cells_of

if TYPE_CHECKING:
    from jobtui.analysis.counts import Pace


class Piece(NamedTuple):
    """Some text in one style, or in several with blanks between their names.

    `cells` is the width of the text where it is known, -1 where it is not. The text is safe to show.
    """

    text: str
    style: str = ""
    cells: int = -1

    @property
    def width(self) -> int:
        if self.cells >= 0:
            return self.cells
        if self.text.isascii():
            return len(self.text)
        from rich.cells import cell_len  # what is printed for programs needs none

        return cell_len(self.text)


Line = tuple[Piece, ...]


class Paragraph(NamedTuple):
    """Some text in a style, safe to show; an empty line without text. Further lines begin at `hang`.

    `item` is what it is about. One that is not `whole` is cut at the width instead of wrapped.
    """

    text: str = ""
    style: str = ""
    hang: int = 0
    item: object = None
    whole: bool = True


def width_of(line: Iterable[Piece]) -> int:
    return sum(span.width for span in line)


def words_of(line: Iterable[Piece]) -> str:
    return "".join(span.text for span in line).rstrip()


def difference(before: Line, after: Line) -> range | None:
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
    return range(start, stop)


def styled(line: Line, style: str) -> Line:
    """The line with a style on top; blanks get only that one, as reversed they would show their colour."""
    return tuple(
        span._replace(style=style if span.text.isspace() else f"{span.style} {style}".strip())
        for span in line
    )


def padded(line: Line, cells: int, style: str = "") -> Line:
    """The line with blanks after it up to `cells`; unchanged when it is that wide already."""
    missing = cells - width_of(line)
    return (*line, Piece(" " * missing, style, missing)) if missing > 0 else line


def spread(left: Iterable[Piece], right: Iterable[Piece], cells: int) -> Line:
    """`left` and `right` at the two ends of a line; `right` is left out when both do not fit."""
    kept = fitting(left, cells)
    end = tuple(right)
    if width_of(kept) + width_of(end) > cells:
        end = ()
    return (*padded(kept, cells - width_of(end)), *end)


def fitting(spans: Iterable[Piece], cells: int) -> Line:
    """As many of the first spans as fit whole into `cells`."""
    kept: list[Piece] = []
    for span in spans:
        cells -= span.width
        if cells < 0:
            break
        kept.append(span)
    return tuple(kept)


def crop(line: Line, start: int, cells: int) -> Line:
    """The cells from `start` on, at most `cells` of them."""
    kept: list[Piece] = []
    at = 0
    stop = start + cells
    for span in line:
        width = span.width
        if at + width > start and at < stop:
            kept.append(_part(span, max(0, start - at), min(width, stop - at)))
        at += width
        if at >= stop:
            break
    return tuple(kept)


def _part(span: Piece, start: int, stop: int) -> Piece:
    if start == 0 and stop >= span.width:
        return span
    if span.width == len(span.text) and span.text.isascii():
        return Piece(span.text[start:stop], span.style, stop - start)
    parts: list[str] = []
    at = 0
    for char in span.text:
        size = cells_of(char)
        if start <= at and at + size <= stop and (size or parts):
            parts.append(char)
        elif size and at < stop and at + size > start:
            parts.append(" " * (min(stop, at + size) - max(start, at)))
        at += size
        if at > stop:
            break
    return Piece("".join(parts), span.style, stop - start)


def rows(line: Line, cells: int, most: int | None = None) -> list[Line]:
    """The line broken into rows of at most `cells`, after blanks near their ends; only `most` where given."""
    broken: list[Line] = []
    row: list[Piece] = []
    left = cells
    for span in line:
        text = span.text
        while text:
            at = _room_for(text, left)
            if not at and not row:
                at = 1  # wider than a whole row: it would never end
            if at:
                row.append(Piece(text[:at], span.style))
                left -= row[-1].width
                text = text[at:]
            if text:
                broken.append(tuple(row))
                row, left = [], cells
                if len(broken) == most:
                    return broken
    return [*broken, tuple(row)]


def _room_for(text: str, cells: int) -> int:
    """How many characters fit into the rest of a row: up to a blank if one is near its end."""
    at = cells
    if not text[: cells + 1].isascii():
        ends = accumulate(map(cells_of, text))
        at = next((at for at, end in enumerate(ends) if end > cells), len(text))
    if len(text) <= at:
        return len(text)
    blank = text.rfind(" ", 0, at) + 1
    return blank if blank > at // 2 else at


BARS = "▁▂▃▄▅▆▇█"
"""The first stands for none."""


def pace_line(pace: "Pace", *, with_ends: bool) -> Line:
    """Jobs that came and jobs that ended in the last minutes; empty if there were none.

    Both have bars on one scale, so that a glance tells whether as many end as come.
    """
    if pace.is_still:
        return ()
    flows = [(pace.arrivals, "in")] + ([(pace.ends, "out")] if with_ends else [])
    most = max(count for flow, _ in flows for count in flow.by_minute)
    spans: list[Piece] = []
    for flow, word in flows:
        spans += [
            Piece("   " if not spans else "  "),
            Piece(bars(flow.by_minute, most), "dim", len(flow.by_minute)),
        ]
        spans.append(Piece(f" {flow.per_minute:,} {word}", "" if flow.per_minute else "dim"))
    return (*spans, Piece("/min", "dim", 4))


def bars(counts: Sequence[int], most: int) -> str:
    highest = len(BARS) - 1
    heights = (max(1, round(count / most * highest)) if count > 0 else 0 for count in counts)
    return "".join(BARS[height] for height in heights)
