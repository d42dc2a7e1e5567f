"""The full text of an error, over the screen it belongs to."""

from textual.app import ComposeResult
from textual.containers import Container

from jobtui.actions import Place, hints_at
from jobtui.model.secrets import mask_text
from jobtui.render.text import safe
from jobtui.screens.base import Board, Taken
from jobtui.screens.reading import ReadingScreen
from jobtui.widgets.key_line import KeyLine
from jobtui.widgets.rule_line import RuleLine
from jobtui.widgets.text_pane import Paragraph

FRAME_ROWS = 3
"""Rules and keys."""


class ErrorScreen(ReadingScreen):
    """Rises from the bottom as far as the text needs; scrolled and copied like all that is read."""

    DEFAULT_CSS = """
    ErrorScreen, ErrorScreen:ansi { background: #000000 0%; align: left bottom; }
    ErrorScreen #sheet { background: $background; width: 100%; height: 100%; max-height: 80%; }
    ErrorScreen SourceStrip { display: none; }
    ErrorScreen.-low SourceStrip { display: block; }
    ErrorScreen.-low #sheet, ErrorScreen.-flat #sheet { max-height: 100%; }
    """

    def __init__(self, board: Board, title: str, text: str, taken: Taken | None = None) -> None:
        lines = [Paragraph(safe(line)) for line in mask_text(text).splitlines()]
        super().__init__(board, title, lines, taken)
        self._modal = True

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        with Container(id="sheet"):
            yield self._strip
            yield RuleLine(self._title)
            yield self._text
            yield RuleLine()
            yield KeyLine(hints_at(Place.READING))

    def tick(self) -> None:
        """Let the age of the data go on, where the screen below does not show it."""
        self._strip.set_sources(self.board.store.sources())

    def on_resize(self) -> None:
        """Take as many lines as the text needs at this width."""
        self.call_after_refresh(self._fit)

    def _fit(self) -> None:
        self.query_one("#sheet").styles.height = self._text.count + FRAME_ROWS
