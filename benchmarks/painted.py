"""What a terminal shows of a program's output, cell by cell, and what in it should not have been sent.

Knows the sequences that jobtui writes (moves, colours, modes) and no others: anything else is a stray, also a
control character, a sequence that is cut off, or a clipboard that nobody asked for. So it reads the screen in
benchmarks, and is a witness in tests: outside text did not get through, what differed was sent.
"""

import codecs
import re
from dataclasses import dataclass, field
from typing import NamedTuple

from rich.cells import get_character_cell_size

from jobtui.terminal.canvas import SEEN_ON_BLANKS

MODES = frozenset(
    {"7", "25", "1000", "1002", "1003", "1004", "1006", "1015", "1016", "1049", "2004", "2026", "2048"}
)
"""Private modes: the cursor, the mouse, focus, the other screen, paste, synchronized output."""
QUERIES = frozenset(
    {"\x1b[?2026$p", "\x1b[?2048$p", "\x1b[c", "\x1b[?u", "\x1b[6n", "\x1b[>25u", "\x1b[<u", "\x1b[=1u"}
)
"""What is asked of a terminal at the start, and its keyboard's protocol."""
CLIPBOARD = "\x1b]52;c;"
POINTERS = re.compile(r"\x1b\]22;[a-z-]*(\x07|\x1b\\)")
"""The shape of the mouse pointer, a word of ours."""
STRAYS_KEPT = 50
ENDS = {"22": {"1", "2"}, "23": {"3"}, "24": {"4", "21"}, "27": {"7"}, "29": {"9"}}
"""Which attributes a code ends."""

_TOKEN = re.compile(
    r"\x1b\[(?P<private>[<=>?]?)(?P<numbers>[0-9;:]*)(?P<between>[ -/]*)(?P<final>[@-~])"
    r"|\x1b(?P<string>[\]PX^_])[^\x07\x1b]*(?:\x07|\x1b\\)"
    r"|(?P<plain>[^\x00-\x1f\x7f-\x9f]+)"
    r"|(?P<control>[\x00-\x1a\x1c-\x1f\x7f-\x9f])"
)
_BEGUN = re.compile(r"\x1b(\[[0-9;:<=>?]*[ -/]*|[\]PX^_][^\x07\x1b]*\x1b?)?\Z")
"""A sequence whose rest comes with the next bytes."""


class Cell(NamedTuple):
    char: str = " "
    attributes: frozenset[str] = frozenset()
    foreground: str = ""
    background: str = ""

    def seen(self) -> "Cell":
        """What a person sees of it: of a blank only the background, and lines through and below it."""
        if self.char != " " or self.attributes & SEEN_ON_BLANKS:
            return self
        return Cell(background=self.background)


BLANK = Cell()


@dataclass(slots=True)
class Painted:
    """A screen of so many columns and rows that output is fed into."""

    columns: int
    rows: int
    strays: list[str] = field(default_factory=list)
    """Sequences and control characters that jobtui does not write, the first of them."""
    characters: set[str] = field(default_factory=set)
    """Every character that was ever written on it."""
    copied: list[str] = field(default_factory=list)
    """What was put on the clipboard, as it was sent."""
    erases_in_color: bool = True

    def __post_init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
        self._rest = ""
        self._at = (0, 0)
        self.clear()

    _decoder: codecs.IncrementalDecoder = field(init=False)
    _rest: str = field(init=False)
    _at: tuple[int, int] = field(init=False)
    cells: list[list[Cell]] = field(init=False)
    _pen: Cell = field(init=False, default=BLANK)
    """A blank as it would be written now."""

    def clear(self, cell: Cell = BLANK) -> None:
        self.cells = [[cell] * self.columns for _ in range(self.rows)]

    def feed(self, data: bytes) -> None:
        """Take in output; what of it is no whole sequence yet waits for more."""
        text = self._rest + self._decoder.decode(data)
        position, self._rest = 0, ""
        while position < len(text):
            found = _TOKEN.match(text, position)
            if found is None:
                if _BEGUN.match(text, position):
                    self._rest = text[position:]
                    return
                self._stray(text[position : position + 20])
                position += 1
                continue
            self._take(found)
            position = found.end()

    def lines(self) -> list[str]:
        return ["".join(cell.char for cell in row).rstrip() for row in self.cells]

    def seen(self) -> list[list[Cell]]:
        return [[cell.seen() for cell in row] for row in self.cells]

    def text(self) -> str:
        return "\n".join(self.lines())

    def _take(self, found: re.Match[str]) -> None:
        if plain := found["plain"]:
            self._write(plain)
        elif control := found["control"]:
            self._control(control)
        elif found[0].startswith(CLIPBOARD):
            self.copied = [*self.copied, found[0]][-STRAYS_KEPT:]
        elif POINTERS.fullmatch(found[0]):
            return
        elif found["string"] or not self._sequence(found):
            self._stray(found[0])

    def _sequence(self, found: re.Match[str]) -> bool:
        """Follow a sequence; whether it is one of jobtui's."""
        private, final, numbers = found["private"], found["final"], found["numbers"]
        if found[0] in QUERIES:
            return True
        if found["between"]:
            return False
        if private == "?" and final in "hl":
            if numbers == "1049":
                self.clear()
            return numbers in MODES
        return not private and self._draw(final, numbers)

    def _draw(self, final: str, numbers: str) -> bool:
        if final == "H":
            y, x = (int(number or 1) for number in f"{numbers};;".split(";")[:2])
            self._at = (y - 1, x - 1)
            return 1 <= y <= self.rows and 1 <= x <= self.columns + 1
        y, x = self._at
        if final == "C":
            self._at = (y, x + int(numbers or 1))
        elif final == "K" and not numbers and 0 <= y < self.rows:
            background = self._pen.background if self.erases_in_color else ""
            self.cells[y][x:] = [Cell(background=background)] * (self.columns - x)
        elif final == "J":
            self.clear()
        elif final == "m" and ":" not in numbers:
            self._set(numbers.split(";"))
        else:
            return False
        return True

    def _set(self, codes: list[str]) -> None:
        while codes:
            code = codes.pop(0)
            attributes = self._pen.attributes
            if code in ("0", ""):
                self._pen = BLANK
            elif code in ("38", "48"):
                length = 4 if codes[:1] == ["2"] else 2
                self._set_color(code == "38", ";".join(codes[:length]))
                del codes[:length]
            elif code in ENDS:
                self._pen = self._pen._replace(attributes=attributes - ENDS[code])
            elif int(code) >= 30:
                self._set_color(int(code) % 60 < 40, "" if code in ("39", "49") else code)
            else:
                self._pen = self._pen._replace(attributes=attributes | {code})

    def _set_color(self, is_front: bool, color: str) -> None:
        pen = self._pen
        self._pen = pen._replace(foreground=color) if is_front else pen._replace(background=color)

    def _control(self, char: str) -> None:
        y, x = self._at
        if char == "\n":
            self._at = (y + 1, x)
        elif char == "\r":
            self._at = (y, 0)
        else:
            self._stray(char)

    def _write(self, text: str) -> None:
        self.characters.update(text)
        for char in text:
            y, x = self._at
            size = get_character_cell_size(char)
            if not (0 <= y < self.rows and x >= 0 and x + size <= self.columns):
                self._stray(f"{char!r} written at column {x + 1} of row {y + 1}, off the screen")
                return
            row = self.cells[y]
            if size == 0:
                before = row[max(0, x - 1)]
                row[max(0, x - 1)] = before._replace(char=before.char + char)
                continue
            row[x] = self._pen._replace(char=char)
            row[x + 1 : x + size] = [self._pen._replace(char="")] * (size - 1)
            self._at = (y, x + size)

    def _stray(self, what: str) -> None:
        if len(self.strays) < STRAYS_KEPT:
            self.strays.append(what)
