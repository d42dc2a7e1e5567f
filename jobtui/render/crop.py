"""Parts of lines by cells: cut out of a line that is wider than the screen, or broken into rows.

A wide character is never split: where only half of it is in a part, blanks stand for it in a cut, and it goes
to the next row in a break. Combining marks stay with the character before them.
"""

from collections.abc import Iterator

from rich.cells import get_character_cell_size

from jobtui.render.spans import Line, Span


def crop(line: Line, start: int, cells: int) -> Line:
    """The cells from `start` on, at most `cells` of them."""
    kept: list[Span] = []
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


def _part(span: Span, start: int, stop: int) -> Span:
    if start == 0 and stop >= span.width:
        return span
    if span.width == len(span.text) and span.text.isascii():
        return Span(span.text[start:stop], span.style, stop - start)
    parts: list[str] = []
    at = 0
    for char in span.text:
        size = get_character_cell_size(char)
        if start <= at and at + size <= stop and (size or parts):
            parts.append(char)
        elif size and at < stop and at + size > start:
            parts.append(" " * (min(stop, at + size) - max(start, at)))
        at += size
        if at > stop:
            break
    return Span("".join(parts), span.style, stop - start)


def rows(line: Line, cells: int, most: int) -> list[Line]:
    """The line broken into rows of at most `cells`; at most `most` of them, the rest is left out."""
    broken: list[Line] = []
    row: list[Span] = []
    left = cells
    for piece in _pieces(line, cells):
        if piece.width > left:
            broken.append(tuple(row))
            row, left = [], cells
            if len(broken) == most:
                return broken
        row.append(piece)
        left -= piece.width
    return [*broken, tuple(row)]


def _pieces(line: Line, cells: int) -> Iterator[Span]:
    """The line in spans that are cut where rows end."""
    left = cells
    for span in line:
        text = span.text
        if not text.isascii():
            for part in _characters(span):
                left = (left if part.width <= left else cells) - part.width
                yield part
            continue
        while text:
            if left == 0:
                left = cells
            yield Span(text[:left], span.style, min(left, len(text)))
            taken = min(left, len(text))
            text, left = text[taken:], left - taken


def _characters(span: Span) -> Iterator[Span]:
    """Each character with its combining marks."""
    held = ""
    size = 0
    for char in span.text:
        char_size = get_character_cell_size(char)
        if char_size and held:
            yield Span(held, span.style, size)
            held, size = "", 0
        held += char
        size += char_size
    if held:
        yield Span(held, span.style, size)
