"""A screen as text that a person can read in a diff: what it says, and in which style each cell is."""

from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import repeat
from string import ascii_letters, digits

from rich.cells import get_character_cell_size
from rich.style import Style
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode
from syrupy.location import PyTestLocation
from syrupy.types import SnapshotIndex
from textual._compositor import LayoutUpdate
from textual.app import App

USUAL = "."
"""The sign of the style that most cells have."""
SIGNS = [*ascii_letters, *digits]


class TextFile(SingleFileSnapshotExtension):
    _write_mode = WriteMode.TEXT
    _file_extension = "txt"

    @classmethod
    def get_snapshot_name(cls, *, test_location: PyTestLocation, index: SnapshotIndex = 0) -> str:
        """`test[case-index]`: one file for each picture that a case takes."""
        name = test_location.snapshot_name
        return f"{name.removesuffix(']')}{'-' if '[' in name else '['}{index}]"


class Picture:
    def __init__(self, app: App[None]) -> None:
        update = app.screen._compositor.render_update(full=True, screen_stack=app._background_screens)
        assert isinstance(update, LayoutUpdate)
        lines = [[segment for strip in strips for segment in strip] for strips in update.strips]
        self.text = ["".join(text for text, _, _ in line).rstrip() for line in lines]
        self._styles = [
            [
                words
                for text, style, _ in line
                for words in repeat(words_of(style), sum(map(get_character_cell_size, text)))
            ]
            for line in lines
        ]

    def styles(self) -> Iterable[str]:
        counted = Counter(words for line in self._styles for words in line)
        usual = counted.most_common(1)[0][0]
        rest = [words for words in dict.fromkeys(w for line in self._styles for w in line) if words != usual]
        signs: Mapping[str, str] = {usual: USUAL, **dict(zip(rest, SIGNS, strict=False))}
        for line in self._styles:
            yield "".join(signs[words] for words in line).rstrip(USUAL)
        yield from (f"{sign} = {words}" for words, sign in signs.items())


def words_of(style: Style | None) -> str:
    if style is None:
        return "plain"
    names = ("bold", "dim", "italic", "underline", "reverse", "strike")
    attributes = [name for name in names if getattr(style, name)]
    front = style.color.name if style.color else "default"
    back = style.bgcolor.name if style.bgcolor else "default"
    return " ".join((*attributes, front, "on", back))


def document(pictures: Mapping[str, Picture]) -> str:
    parts = ["\n".join(next(iter(pictures.values())).text)]
    parts += ["\n".join((f"--- {theme}", *picture.styles())) for theme, picture in pictures.items()]
    return "\n".join(parts) + "\n"
