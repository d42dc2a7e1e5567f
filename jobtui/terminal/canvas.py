"""What the terminal shows now, so that an update sends only the cells that it changes.

A line in which a character may not take exactly one cell is not remembered, as terminals differ on that; it
is always sent as a whole.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from rich.color import ColorSystem
from rich.segment import Segment
from rich.style import Style
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.strip import Strip

RESET = "\x1b[0m"
DEFAULT_FOREGROUND = "39"
DEFAULT_BACKGROUND = "49"
OFF = {
    "1": "22", "2": "22", "3": "23", "4": "24", "5": "25", "6": "25", "7": "27",
    "8": "28", "9": "29", "21": "24", "51": "54", "52": "54", "53": "55",
}  # fmt: skip
"""The code that ends each attribute."""
SEEN_ON_BLANKS = frozenset({"4", "7", "9", "21", "51", "52", "53"})


class Codes(NamedTuple):
    """A style as SGR parameters; an empty colour is the terminal's own."""

    attributes: frozenset[str]
    foreground: str
    background: str


PLAIN = Codes(frozenset(), "", "")


@lru_cache(4096)
def codes_of(style: Style, colors: ColorSystem | None) -> Codes:
    """The codes that set a style on a terminal without one; without colours if none are wanted."""
    if colors is None:
        return codes_of(style.without_color, ColorSystem.STANDARD)
    plain = Style(color=style.color, bgcolor=style.bgcolor)
    attributes = Strip.render_ansi(style, colors).removesuffix(Strip.render_ansi(plain, colors))
    foreground = Strip.render_ansi(Style(color=style.color), colors)
    background = Strip.render_ansi(Style(bgcolor=style.bgcolor), colors)
    return Codes(
        frozenset(filter(None, attributes.split(";"))),
        "" if foreground == DEFAULT_FOREGROUND else foreground,
        "" if background == DEFAULT_BACKGROUND else background,
    )


@lru_cache(4096)
def transition(before: Codes, after: Codes) -> str:
    """The escape sequence from one style to another, as short as it gets."""
    if before == after:
        return ""
    if after == PLAIN:
        return RESET
    off = {OFF[attribute] for attribute in before.attributes - after.attributes}
    on = {
        attribute
        for attribute in after.attributes
        if attribute not in before.attributes or OFF[attribute] in off
    }
    wanted = sorted(off) + sorted(on)
    if before.foreground != after.foreground:
        wanted.append(after.foreground or DEFAULT_FOREGROUND)
    if before.background != after.background:
        wanted.append(after.background or DEFAULT_BACKGROUND)
    anew = ["0", *sorted(after.attributes), *filter(None, after[1:])]
    return min((f"\x1b[{';'.join(codes)}m" for codes in (wanted, anew)), key=len)


@lru_cache(4096)
def on_blanks(codes: Codes) -> Codes:
    return codes if codes.attributes & SEEN_ON_BLANKS else Codes(frozenset(), "", codes.background)


class CanvasPainter:
    def __init__(self, colors: ColorSystem | None) -> None:
        self.colors = colors
        self._codes = PLAIN
        self._at: tuple[int, int] | None = None
        self._out: list[str] = []

    def move(self, x: int, y: int) -> None:
        at, self._at = self._at, (x, y)
        if at == (x, y):
            return
        if at is not None and at[1] == y and at[0] < x:
            way = "\x1b[C" if x == at[0] + 1 else f"\x1b[{x - at[0]}C"
        elif at is not None and x == 0 and at[1] == y - 1:
            way = "\r\n"
        else:
            way = f"\x1b[{y + 1}H" if x == 0 else f"\x1b[{y + 1};{x + 1}H"
        self._out.append(way)

    def write(self, text: str, codes: Codes) -> None:
        self._set(codes, is_blank=not text.strip(" "))
        self._out.append(text)
        if self._at is not None:
            self._at = (self._at[0] + len(text), self._at[1])

    def write_odd(self, text: str, style: Style) -> None:
        if style._link:
            shown = style if self.colors is not None else style.without_color
            self._out.append(RESET + Strip.render_style(shown, text, self.colors or ColorSystem.STANDARD))
            self._codes = PLAIN
        else:
            self._set(codes_of(style, self.colors), is_blank=False)
            self._out.append(text)
        self._at = None

    def erase(self, codes: Codes) -> None:
        self._set(codes, is_blank=True)
        self._out.append("\x1b[K")

    def text(self) -> str:
        self._out.append(transition(self._codes, PLAIN))
        self._codes = PLAIN
        return "".join(self._out)

    def _set(self, codes: Codes, *, is_blank: bool) -> None:
        if is_blank and not codes.attributes & SEEN_ON_BLANKS:
            # The colour of a blank may stay as it is
            kept = self._codes
            codes = Codes(kept.attributes - SEEN_ON_BLANKS, kept.foreground, codes.background)
        if codes != self._codes:
            self._out.append(transition(self._codes, codes))
            self._codes = codes


GAP = 4
"""Up to so many unchanged cells are written again, which is shorter than moving over them."""
ERASED = 4
"""From so many blanks on it is shorter to erase them."""
ONE_CELL = re.compile(
    "[ -~\u00a1-\u00ac\u00ae-\u02ff\u0370-\u0377\u037b-\u037f\u0384-\u038a\u038e-\u03a1\u03a3-\u0482"
    "\u048a-\u052f\u2010-\u2027\u2030-\u203b\u203d-\u2048\u2190-\u2193\u2295-\u2299\u2500-\u25a9\u25cb-\u25ef"
    "\u2713\u2717\u2800-\u28ff]*"
)
"""Characters that take one cell on every terminal."""
NO_STYLE = Style.null()


class CanvasRow(NamedTuple):
    chars: list[str]
    codes: list[Codes]

    def part(self, start: int, stop: int) -> "CanvasRow":
        return CanvasRow(self.chars[start:stop], self.codes[start:stop])


class Canvas:
    """The cells of the terminal, as far as they are known.

    `erases_in_color` says that erased cells take the current background. Text goes through the table
    `lowering` if the terminal cannot show all signs, and without `has_colors` no colour is sent.
    """

    def __init__(
        self,
        *,
        erases_in_color: bool = False,
        lowering: Mapping[int, str] | None = None,
        has_colors: bool = True,
    ) -> None:
        self.has_colors = has_colors
        self._erases_in_color = erases_in_color
        self._lowering = lowering
        self._width = 0
        self._rows: list[CanvasRow | None] = []

    def forget(self) -> None:
        """The terminal was resized, or something else wrote to it: its content is not known."""
        self._rows = [None] * len(self._rows)

    def draw(self, update: LayoutUpdate | ChopsUpdate, colors: ColorSystem) -> str:
        pen = CanvasPainter(colors if self.has_colors else None)
        if isinstance(update, LayoutUpdate):
            width, height = update.region.size
            if (self._width, len(self._rows)) != (width, height):
                self._width, self._rows = width, [None] * height
            for y, strips in enumerate(update.strips, update.region.y):
                line = self._lowered([segment for strip in strips for segment in strip])
                if not self._put(pen, update.region.x, y, line):
                    self._put_odd(pen, update.region.x, y, line)
        else:
            for x, y, strip, (start, stop) in _parts(update):
                if not self._put(pen, x, y, self._lowered(list(strip))):
                    self._put_odd(pen, x + start, y, self._lowered(list(strip.crop(start, stop))))
        return pen.text()

    def _lowered(self, segments: list[Segment]) -> list[Segment]:
        table = self._lowering
        if table is None:
            return segments
        return [Segment(text.translate(table), style) for text, style, _ in segments]

    def _put_odd(self, pen: CanvasPainter, x: int, y: int, segments: Iterable[Segment]) -> None:
        pen.move(x, y)
        for text, style, _ in segments:
            pen.write_odd(text, style or NO_STYLE)
        if 0 <= y < len(self._rows):
            self._rows[y] = None

    def _put(self, pen: CanvasPainter, x: int, y: int, segments: Sequence[Segment]) -> bool:
        """Write cells of a part of a line that differ, and remember them; False if its width is unknown."""
        new = row_of(segments, pen.colors)
        is_inside = 0 <= y < len(self._rows)
        if new is None:
            return False
        length = len(new.chars)
        old = self._rows[y] if is_inside else None
        changed = [(0, length)] if old is None else _changed(old.part(x, x + length), new)
        for start, stop in changed if length else ():
            pen.move(x + start, y)
            self._write(pen, new.part(start, stop), is_end=x + stop == self._width)
        if old is not None:
            old.chars[x : x + length], old.codes[x : x + length] = new
        elif is_inside and length == self._width:
            self._rows[y] = new
        return True

    def _write(self, pen: CanvasPainter, row: CanvasRow, *, is_end: bool) -> None:
        """Write cells at the pen; blanks at the end of a line are erased if that gives the same."""
        end = len("".join(row.chars).rstrip(" "))
        erased = is_end and len(row.chars) - end >= ERASED and self._may_erase(row.codes[end:])
        written = end if erased else len(row.chars)
        start = 0
        for codes, group in groupby(row.codes[:written]):
            stop = start + sum(1 for _ in group)
            pen.write("".join(row.chars[start:stop]), codes)
            start = stop
        if erased:
            pen.erase(row.codes[-1])

    def _may_erase(self, blanks: Sequence[Codes]) -> bool:
        seen = {on_blanks(codes) for codes in set(blanks)}
        look = seen.pop()
        return not seen and not look.attributes and (self._erases_in_color or not look.background)


def row_of(segments: Sequence[Segment], colors: ColorSystem | None) -> CanvasRow | None:
    """The cells of some segments, None if it is not certain which cell each character takes."""
    row = CanvasRow([], [])
    for text, style, _ in segments:
        if not ONE_CELL.fullmatch(text) or (style is not None and style._link):
            return None
        codes = codes_of(style, colors) if style is not None else PLAIN
        row.chars.extend(text)
        row.codes.extend([codes] * len(text))
    return row


def _parts(update: ChopsUpdate) -> Iterator[tuple[int, int, Strip, tuple[int, int]]]:
    """The parts of lines in which an update changes something: the place, all of it, what may have changed.

    Comparing all of a part takes less time than cutting it first.
    """
    for y, start, stop in update.spans:
        for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
            if strip is not None and x < stop and start < end:
                yield x, y, strip, (max(0, start - x), min(end, stop) - x)


def _changed(before: CanvasRow, after: CanvasRow) -> Iterator[tuple[int, int]]:
    """The ranges in which cells look different; short gaps between them are included."""
    if before == after:
        return
    start = stop = -1
    cells = zip(before.chars, after.chars, before.codes, after.codes, strict=False)
    for at, (old, new, look, wanted) in enumerate(cells):
        if old == new and (look == wanted or (new == " " and on_blanks(look) == on_blanks(wanted))):
            continue
        if start < 0:
            start = at
        elif at - stop > GAP:
            yield start, stop
            start = at
        stop = at + 1
    if start >= 0:
        yield start, stop
