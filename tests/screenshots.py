"""Photographs the screens of the demo, cell by cell as a terminal shows them, into `screenshots/`.

    python -m tests.screenshots [NAME ...]

Needs tmux and the DejaVu fonts (scripts/screenshots sees to both). Without names it makes them all.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from PIL import Image, ImageDraw, ImageFont
from rich.ansi import AnsiDecoder
from rich.cells import cell_len
from rich.color import Color
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import MONOKAI, TerminalTheme

from tests.tmux import Tmux

PLACE = Path(__file__).parents[1] / "screenshots"
FONTS = Path("/usr/share/fonts/truetype/dejavu")
THEME = MONOKAI
CELL_WIDTH, CELL_HEIGHT, FONT_SIZE = 9, 19, 15
COLOURS = 128
"""In a picture: edges of letters need some, and a third of the bytes is enough."""
READY = "q quit"
LIVELY_S = 8.0
"""How long the demo runs before its picture is taken, so that something has happened in it."""


class Shot(NamedTuple):
    """One picture: its size in cells, the keys that lead there, and a text that shows it is there.

    A key that begins with `=` stands for typing what follows it.
    """

    name: str
    columns: int
    rows: int
    shows: str
    keys: tuple[str, ...] = ()
    words: tuple[str, ...] = ()


FAILED = ("/", "=status:failed", "Enter")

RAN_OFTEN = ("/", "=M1rmjvRL-d7ysz2FV", "Enter", "Enter")
"""To a job of the demo with good and bad runs."""

SHOTS: tuple[Shot, ...] = (
    Shot("jobs", 120, 40, "STATE"),
    Shot("job", 120, 40, "OPS", (*FAILED, "Enter")),
    Shot("job-logs", 120, 40, "lines of", (*RAN_OFTEN, "l")),
    Shot("history", 120, 40, "here they part", (*RAN_OFTEN, "h")),
    Shot("files", 120, 40, "in.json", (*RAN_OFTEN, "f", "j")),
    Shot("script", 120, 40, "#SBATCH", ("/", "=mode:sbatch", "Enter", "Enter", "s")),
    Shot("raw", 80, 24, "computeJid", (*RAN_OFTEN, "r")),
    Shot("error", 80, 24, "esc back", (*FAILED, "Enter", "e")),
    Shot("logs", 120, 40, "of ", ("2", "/", "=_ComputeJob(", "Enter")),
    Shot("agents", 120, 40, "AGENT", ("3", "j", "j")),
    Shot("filter", 80, 24, "status:failed", FAILED),
    Shot("columns", 80, 24, "state", ("c",)),
    Shot("palette", 80, 24, "All jobs", ("C-p",)),
    Shot("sources", 120, 40, "sirepo_db", ("6",)),
    Shot("help", 120, 40, "All jobs", ("?",)),
    Shot("jobs-40x10", 40, 10, "q quit"),
    Shot("job-40x10", 40, 10, "esc", (*FAILED, "Enter")),
    Shot("logs-40x10", 40, 10, "following", ("2",)),
    Shot("jobs-60x1", 60, 1, "●"),
)


def take(shot: Shot) -> Path:
    """Take one picture; gives its file."""
    command = [sys.executable, "-m", "jobtui", "demo", "--seed", "7", *shot.words]
    with Tmux(command, shot.columns, shot.rows) as window:
        window.wait_text(READY if shot.rows > 1 else shot.shows, timeout_s=30.0)
        time.sleep(LIVELY_S)
        for key in shot.keys:
            window.type(key[1:]) if key.startswith("=") else window.keys(key)
            time.sleep(0.3)
        window.wait_text(shot.shows)
        time.sleep(0.5)  # for the paint that follows the one that shows it
        image = draw(window.styled().rstrip("\n").split("\n"), shot.columns, shot.rows)
    path = PLACE / f"{shot.name}.png"
    image.quantize(COLOURS).save(path, optimize=True)
    return path


def draw(lines: Sequence[str], columns: int, rows: int, theme: TerminalTheme = THEME) -> Image.Image:
    """A picture of styled lines."""
    image = Image.new("RGB", (columns * CELL_WIDTH, rows * CELL_HEIGHT), tuple(theme.background_color))
    canvas = ImageDraw.Draw(image)
    fonts = {
        bold: ImageFont.truetype(str(FONTS / f"DejaVuSansMono{'-Bold' if bold else ''}.ttf"), FONT_SIZE)
        for bold in (False, True)
    }
    console = Console(width=columns * 2, force_terminal=True, color_system="truecolor")
    decoder = AnsiDecoder()  # a style goes on over the end of a line
    for row, line in enumerate(lines[:rows]):
        column = 0
        for segment in decoder.decode_line(line).render(console):
            style = segment.style or Style()
            front, back = colours(style, theme)
            for character in segment.text.rstrip("\n"):
                cells = cell_len(character)
                left, top = column * CELL_WIDTH, row * CELL_HEIGHT
                right = left + max(cells, 1) * CELL_WIDTH - 1
                canvas.rectangle((left, top, right, top + CELL_HEIGHT - 1), fill=back)
                canvas.text((left, top), character, font=fonts[bool(style.bold)], fill=front)
                if style.underline:
                    canvas.line((left, top + CELL_HEIGHT - 2, right, top + CELL_HEIGHT - 2), fill=front)
                column += cells
    return image


def colours(style: Style, theme: TerminalTheme) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Foreground and background of a style."""

    def resolved(color: Color | None, otherwise: tuple[int, ...], foreground: bool) -> tuple[int, ...]:
        return otherwise if color is None else tuple(color.get_truecolor(theme, foreground=foreground))

    front = resolved(style.color, tuple(theme.foreground_color), True)
    back = resolved(style.bgcolor, tuple(theme.background_color), False)
    if style.reverse:
        front, back = back, front
    if style.dim:
        front = tuple((a + b) // 2 for a, b in zip(front, back, strict=True))
    return front, back


def main() -> int:
    """Take the pictures that are asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", choices=[*(shot.name for shot in SHOTS), []])
    names = parser.parse_args().names
    PLACE.mkdir(exist_ok=True)
    for shot in SHOTS:
        if not names or shot.name in names:
            sys.stderr.write(f"{take(shot)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
