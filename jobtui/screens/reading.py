"""A screen to read something long on: a whole log line, the full text of an error."""

from collections.abc import Iterable

from textual.app import ComposeResult

from jobtui.actions import Place, hints_at
from jobtui.screens.base import Board, LiveScreen, Taken, bindings_at
from jobtui.store.store import Changes
from jobtui.widgets.header import Header
from jobtui.widgets.key_line import KeyLine
from jobtui.widgets.row_view import Move
from jobtui.widgets.rule_line import RuleLine
from jobtui.widgets.source_strip import SourceStrip
from jobtui.widgets.text_pane import Paragraph, TextPane


class ReadingScreen(LiveScreen):
    """Paragraphs that are safe to show. They stay as they are while data goes on."""

    PLACE = Place.READING
    BINDINGS = bindings_at(Place.READING)

    def __init__(
        self, board: Board, title: str, paragraphs: Iterable[Paragraph], taken: Taken | None = None
    ) -> None:
        super().__init__(board)
        self._paragraphs = tuple(paragraphs)
        self._taken = taken or Taken("")
        self._title = title
        self._header = Header(board.now, board.title)
        self._strip = SourceStrip(board.now)
        self._text = TextPane(self._paragraphs)

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield self._header
        yield self._strip
        yield RuleLine()
        yield self._text
        yield RuleLine()
        yield KeyLine(hints_at(Place.READING))

    def on_mount(self) -> None:
        """Show how old the data is."""
        self.tick()

    def show_trail(self) -> None:
        """Say where one is."""
        self._header.set_title(self.titled(self._title))

    def take(self, changes: Changes) -> None:
        """It does not change."""

    def tick(self) -> None:
        """Let the clock and the age of the data go on."""
        self._strip.set_sources(self.board.store.sources())
        self._header.repaint()

    def move_list(self, move: Move) -> None:
        """Scroll."""
        self._text.move(move)

    async def taken(self) -> Taken | None:
        """All of it, and what it was read from."""
        return self._taken._replace(block="\n".join(part.text for part in self._paragraphs))

    def action_copy(self) -> None:
        """Copy all of it."""
        self.copy("\n".join(part.text for part in self._paragraphs))
