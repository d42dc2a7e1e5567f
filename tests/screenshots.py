"""Photographs the screens, cell by cell as a terminal shows them, into `screenshots/`.

Most show the demo. What it has not comes out of captures: a trace of a batch job, a bundle, like failures.

    python -m tests.screenshots [NAME ...]

Needs tmux and the DejaVu fonts (scripts/screenshots sees to both). Without names it makes them all.
"""

import argparse
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
from PIL import Image, ImageDraw, ImageFont
from rich.ansi import AnsiDecoder
from rich.cells import cell_len
from rich.color import Color
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import MONOKAI, TerminalTheme

from jobtui.cli import main as run_jobtui
from tests.commands.running import AT, sources_of
from tests.rows import FIXTURES
from tests.terminals import Tmux

PLACE = Path(__file__).parents[1] / "screenshots"
FONTS = Path("/usr/share/fonts/truetype/dejavu")
THEME = MONOKAI
CELL_WIDTH, CELL_HEIGHT, FONT_SIZE = 9, 19, 15
COLOURS = 128
"""In a picture: edges of letters need some, and a third of the bytes is enough."""
BRAILLE = "".join(map(chr, range(0x2800, 0x2900)))
DOTS = ((0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3))
"""Column and row of each bit of a braille character."""
READY = "q quit"
LIVELY_S = 8.0
"""How long the demo runs before its picture is taken, so that something has happened in it."""


class Shot(msgspec.Struct, frozen=True):
    shows: str
    keys: tuple[str, ...] = ()
    run: str = "demo --seed 7"
    size: tuple[int, int] = (120, 40)


SHOTS = msgspec.toml.decode((FIXTURES / "shots.toml").read_bytes(), type=dict[str, Shot])
CAPTURE = "docker"
BUNDLED = "eGO70vz3-COebzySB-heightWeightReport"


@contextmanager
def bundled() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as place:
        bundle = f"{place}/job.jobtui"
        run_jobtui([*sources_of(CAPTURE), "--at", AT, "bundle", BUNDLED, "--output", bundle])
        yield bundle


def take(name: str, shot: Shot, bundle: str) -> Path:
    captured = shlex.join((*sources_of("local"), "--at", AT))
    run = shot.run.format(bundle=bundle, captured=captured, tracing=FIXTURES / "tracing")
    with Tmux([sys.executable, "-m", "jobtui", *shlex.split(run)], *shot.size) as window:
        window.wait_text(READY if shot.size[1] > 1 else shot.shows, timeout_s=30.0)
        time.sleep(LIVELY_S)
        for key in shot.keys:
            window.type(key[1:]) if key.startswith("=") else window.keys(key)
            time.sleep(0.3)
        window.wait_text(shot.shows)
        time.sleep(0.5)  # for the paint that follows the one that shows it
        image = draw(window.styled().rstrip("\n").split("\n"), *shot.size)
    path = PLACE / f"{name}.png"
    image.quantize(COLOURS).save(path, optimize=True)
    return path


def draw(lines: Sequence[str], columns: int, rows: int, theme: TerminalTheme = THEME) -> Image.Image:
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
                if character in BRAILLE:
                    dots(canvas, left, top, ord(character) - ord(BRAILLE[0]), front)
                else:
                    canvas.text((left, top), character, font=fonts[bool(style.bold)], fill=front)
                if style.underline:
                    canvas.line((left, top + CELL_HEIGHT - 2, right, top + CELL_HEIGHT - 2), fill=front)
                column += cells
    return image


def dots(canvas: ImageDraw.ImageDraw, left: int, top: int, bits: int, colour: tuple[int, ...]) -> None:
    for bit, (column, row) in enumerate(DOTS):
        if bits >> bit & 1:
            x, y = left + CELL_WIDTH * (2 * column + 1) // 4, top + CELL_HEIGHT * (2 * row + 1) // 8
            canvas.rectangle((x - 1, y - 1, x + 1, y + 1), fill=colour)


def colours(style: Style, theme: TerminalTheme) -> tuple[tuple[int, ...], tuple[int, ...]]:
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
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("names", nargs="*", metavar="NAME", choices=[*SHOTS, []])
    names = args.parse_args().names
    PLACE.mkdir(exist_ok=True)
    with bundled() as bundle:
        for name in names or SHOTS:
            sys.stderr.write(f"{take(name, SHOTS[name], bundle)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
