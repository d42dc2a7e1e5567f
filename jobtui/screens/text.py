"""A screen to read something long on: a whole log line, the full text of an error."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest

from textual.app import ComposeResult
from textual.containers import Container

from jobtui.actions import Action, Keymap, ScreenName, Topic, hints_at
from jobtui.model.commands import Command
from jobtui.model.secrets import mask_text
from jobtui.render import styles
from jobtui.render.spans import Line, Paragraph, Piece, padded, width_of
from jobtui.render.text import safe
from jobtui.screens.base import HeadedScreen
from jobtui.screens.command_table import COMMANDS
from jobtui.screens.shared import CopyTarget, Shared
from jobtui.widgets.frame import KeyLine, RuleLine
from jobtui.widgets.text_pane import TextPane, wrapped_lines


class ReadingScreen(HeadedScreen):
    """Paragraphs, safe to show; they do not change with the data."""

    NAME = ScreenName.READING

    def __init__(
        self, shared: Shared, title: str, paragraphs: Iterable[Paragraph], taken: CopyTarget | None = None
    ) -> None:
        super().__init__(shared)
        self._taken = taken or CopyTarget("")
        self._title = title
        self._main = self._text = TextPane(paragraphs)

    def on_mount(self) -> None:
        self._text.rule = self._rule
        super().on_mount()

    @property
    def heading(self) -> str:
        return self._title

    def paragraphs(self) -> Iterable[Paragraph]:
        return self._text.paragraphs

    async def taken(self) -> CopyTarget | None:
        return self._taken._replace(block=self.block())


class ErrorScreen(ReadingScreen):
    """A sheet at the bottom, as high as its text; scrolled and copied as on other reading screens."""

    def __init__(self, shared: Shared, title: str, text: str, taken: CopyTarget | None = None) -> None:
        lines = [Paragraph(safe(line)) for line in mask_text(text).splitlines()]
        super().__init__(shared, title, lines, taken)
        self._modal = True

    def compose(self) -> ComposeResult:
        with Container(id="sheet"):
            yield self._strip
            yield RuleLine(self._title).add_class("-head")
            yield self._text
            yield self._rule
            yield KeyLine(hints_at(ScreenName.READING))

    def on_resize(self) -> None:
        sheet = self.query_one("#sheet")

        def fit() -> None:
            sheet.styles.height = self._text.count + 3  # rules and keys

        self.call_after_refresh(fit)


KEY_CELLS = 14
COMMON = (Topic.TAKE, Topic.REPLAY, Topic.PROGRAM)
"""Topics that are of no screen."""
COLOURS = ("error", "warning", "good", "accent", "settled")

FILTERS = (
    "status:failed  user:vn9m  app:srw,warp  age<10m  dur>1h  %>=90",
    "words match id, user, name, app and model; -word excludes; or, ( ) group",
)
TWO_COLUMNS_FROM = 118
"""Cells of the text from which on it has two columns."""


class HelpPane(TextPane):
    """Keys beside signs and the rest, where there is room; else the signs are below the screen's own keys."""

    def __init__(self, keys: Sequence[Paragraph], signs: Line, rest: Sequence[Paragraph]) -> None:
        super().__init__((*keys, *(Paragraph(one.text) for one in signs), *rest))
        self._parts = keys, signs, rest

    def _wrapped(self, cells: int) -> Iterator[tuple[Line, object]]:
        keys, signs, rest = self._parts
        if cells >= TWO_COLUMNS_FROM:
            column = cells // 2 - 1
            left, below = ([line for line, _ in wrapped_lines(part, column)] for part in (keys, rest))
            for one, other in zip_longest(left, (*_in_rows(signs, column), *below), fillvalue=()):
                yield (*padded(one, column + 2), *other), None
            return
        here = next((at for at, one in enumerate(keys, 1) if not one.text), 0)
        yield from wrapped_lines(keys[:here], cells)
        yield from ((line, None) for line in _in_rows(signs, cells))
        yield from wrapped_lines((*keys[here:], *rest), cells)


def _in_rows(pieces: Line, cells: int) -> Iterator[Line]:
    """As many in a row as fit, then an empty row."""
    row: Line = ()
    for piece in pieces:
        if width_of(row) + piece.width > cells:
            yield row
            row = ()
        row = (*row, piece)
    yield from (row, ())


class HelpScreen(ReadingScreen):
    def __init__(self, shared: Shared, screen: ScreenName) -> None:
        rest = [*rest_of_help(screen, shared.player is not None)]
        super().__init__(shared, "keys", (), CopyTarget("", Command("jobtui", "--help")))
        self._main = self._text = HelpPane([*key_text(screen)], (*signs(),), rest)


def key_text(screen: ScreenName) -> Iterator[Paragraph]:
    here = [action for action in Keymap.actions if action.is_of(screen)]
    if here:
        yield Paragraph(f"On this screen ({screen})", "title")
        yield from (_paragraph(action, "") for action in here)
        yield Paragraph("")
    for topic in (one for one in Topic if one not in COMMON):
        yield from _topic_text(topic, screen)


def _topic_text(topic: Topic, screen: ScreenName) -> Iterator[Paragraph]:
    if others := [one for one in Keymap.actions if one.topic is topic and not one.is_of(screen)]:
        yield Paragraph(str(topic), "title")
        yield from (_paragraph(action, f" ({action.where})" if action.where else "") for action in others)
        yield Paragraph("")


def signs() -> Iterator[Piece]:
    yield Piece(" Signs and colours  ", "title")
    for status, glyph in styles.GLYPHS.items():
        yield Piece(f" {glyph} {styles.WORDS[status]}  ", styles.STATUS_STYLES[status])
    yield Piece(f" {styles.NEEDS_PERSON_GLYPH} needs a person  ", styles.NEEDS_PERSON_STYLE)
    yield from (Piece(f" {styles.style_names()[style]}  ", style) for style in COLOURS)


def rest_of_help(screen: ScreenName, replays: bool) -> Iterator[Paragraph]:
    for topic in (one for one in COMMON if replays or one is not Topic.REPLAY):
        yield from _topic_text(topic, screen)
    yield Paragraph("Commands, typed after :", "title")
    for command in COMMANDS:
        words = f"{command.name} {command.argument}"
        yield Paragraph(f"{words:<{KEY_CELLS}}{command.help}", hang=KEY_CELLS)
    yield Paragraph("")
    yield Paragraph("Filter", "title")
    yield from map(Paragraph, FILTERS)


def _paragraph(action: Action, where: str) -> Paragraph:
    return Paragraph(f"{action.shown_keys:<{KEY_CELLS}}{action.help}{where}", hang=KEY_CELLS)
