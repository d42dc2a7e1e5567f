"""A screen of one thing under the header and the sources: what such screens have in common."""

from collections.abc import Iterator

from textual.app import ComposeResult
from textual.widget import Widget

from jobtui.actions import hints_at
from jobtui.screens.base import Board, LiveScreen
from jobtui.store.store import Changes
from jobtui.widgets.header import Header
from jobtui.widgets.key_line import KeyLine
from jobtui.widgets.rule_line import RuleLine
from jobtui.widgets.source_strip import SourceStrip


class HeadedScreen(LiveScreen):
    """Header, sources, what `body` gives, keys. `show_all` shows it at every change, and every second."""

    FOOT = ""
    """Words on the line above the keys."""

    def __init__(self, board: Board) -> None:
        super().__init__(board)
        self._header = Header(board.now, board.title)
        self._strip = SourceStrip(board.now)

    def body(self) -> Iterator[Widget]:
        """What is between the sources and the keys."""
        raise NotImplementedError

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield self._header
        yield self._strip
        yield RuleLine()
        yield from self.body()
        yield RuleLine(self.FOOT)
        yield KeyLine(hints_at(self.PLACE))

    def on_mount(self) -> None:
        """Show what is known already."""
        self.show_all()

    def show_trail(self) -> None:
        """Say where one is."""
        self._header.set_title(self.titled(self.crumb))

    def take(self, changes: Changes) -> None:
        """Show how things are now."""
        self.show_all()

    def tick(self) -> None:
        """Let ages go on."""
        self.show_all()
        self._header.repaint()
