"""What a terminal makes of what it is sent: cells, each with its character, colours and attributes."""

import re
from typing import NamedTuple

from jobtui.terminal.canvas import SEEN_ON_BLANKS

ENDS = {"22": {"1", "2"}, "23": {"3"}, "24": {"4", "21"}, "27": {"7"}, "29": {"9"}}
SEQUENCE = re.compile(
    r"\x1b\[([\d;]*)([A-Za-z])|\x1b\[[?<>=][\d;$]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|([\r\n])"
)
"""What draws, what asks or sets something else, an operating system command, an end of a line."""


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


SPILT = Cell("#", frozenset({"7"}), "31", "42")


class FakeTerminal:
    """A terminal without line wrap; anything it does not know raises."""

    def __init__(self, width: int, height: int, *, erases_in_color: bool = True) -> None:
        self.width = width
        self.erases_in_color = erases_in_color
        self.cells = [[Cell() for _ in range(width)] for _ in range(height)]
        self.attributes: frozenset[str] = frozenset()
        self.colors = {"fg": "", "bg": ""}
        self.x = self.y = 0

    def spill(self) -> None:
        for line in self.cells:
            line[:] = [SPILT] * self.width

    def resize(self, width: int, height: int) -> None:
        """Take another size; what a terminal shows then is anybody's guess."""
        self.width = width
        self.cells = [[SPILT] * width for _ in range(height)]

    def feed(self, text: str) -> None:
        at = 0
        while at < len(text):
            found = SEQUENCE.match(text, at)
            if found is None:
                self._put(text[at])
                at += 1
                continue
            at = found.end()
            if found[3]:
                self.x, self.y = (0, self.y) if found[3] == "\r" else (self.x, self.y + 1)
            elif found[2]:
                self._do(found[2], found[1])

    def seen(self) -> list[list[Cell]]:
        return [[cell.seen() for cell in line] for line in self.cells]

    def text(self) -> list[str]:
        return ["".join(cell.char for cell in line) for line in self.cells]

    def _put(self, char: str) -> None:
        assert char.isprintable(), repr(char)
        # A program may not know yet that it has another size
        if self.y < len(self.cells):
            self.cells[self.y][min(self.x, self.width - 1)] = self._cell(char)
        self.x += 1

    def _cell(self, char: str) -> Cell:
        return Cell(char, self.attributes, self.colors["fg"], self.colors["bg"])

    def _do(self, what: str, parameters: str) -> None:
        numbers = [int(number) for number in parameters.split(";") if number]
        if what == "H":
            self.y, self.x = ([*numbers, 1, 1] if not numbers else [*numbers, 1])[:2]
            self.x, self.y = self.x - 1, self.y - 1
        elif what == "C":
            self.x += numbers[0] if numbers else 1
        elif what == "K":
            assert not parameters
            background = self.colors["bg"] if self.erases_in_color else ""
            if self.y < len(self.cells):
                self.cells[self.y][self.x :] = [Cell(background=background)] * (self.width - self.x)
        else:
            assert what == "m", what
            self._set(parameters.split(";"))

    def _set(self, codes: list[str]) -> None:
        while codes:
            code = codes.pop(0)
            if code in ("0", ""):
                self.attributes = frozenset()
                self.colors = {"fg": "", "bg": ""}
            elif code in ("38", "48"):
                length = 4 if codes[0] == "2" else 2
                self.colors["fg" if code == "38" else "bg"] = ";".join(codes[:length])
                del codes[:length]
            elif code in ("39", "49"):
                self.colors["fg" if code == "39" else "bg"] = ""
            elif code in ENDS:
                self.attributes -= ENDS[code]
            elif int(code) >= 30:
                self.colors["fg" if int(code) % 60 < 40 else "bg"] = code
            else:
                self.attributes |= {code}
