"""Sites, and the nodes that schedulers give them."""

from textual.app import ComposeResult

from jobtui.actions import Place, hints_at
from jobtui.render.allocations import lines
from jobtui.screens.base import Board, LiveScreen, Taken, bindings_at
from jobtui.store.store import Changes
from jobtui.widgets.header import Header
from jobtui.widgets.key_line import KeyLine
from jobtui.widgets.row_view import Move
from jobtui.widgets.rule_line import RuleLine
from jobtui.widgets.source_strip import SourceStrip
from jobtui.widgets.text_pane import Paragraph, TextPane

LEAST_CELLS = 20


class AllocationsScreen(LiveScreen):
    """All of them in one list; what was not heard of lately stands out."""

    PLACE = Place.ALLOCATIONS
    BINDINGS = bindings_at(Place.ALLOCATIONS)
    DEFAULT_CSS = "AllocationsScreen TextPane { height: 1fr; }"

    def __init__(self, board: Board) -> None:
        super().__init__(board)
        self._header = Header(board.now, board.title)
        self._strip = SourceStrip(board.now)
        self._text = TextPane()
        self._shown: tuple[Paragraph, ...] = ()

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield self._header
        yield self._strip
        yield RuleLine()
        yield self._text
        yield RuleLine()
        yield KeyLine(hints_at(Place.ALLOCATIONS))

    def on_mount(self) -> None:
        """Show what is known already."""
        self.show_all()

    def on_resize(self) -> None:
        """Lay it out for the width."""
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

    def show_all(self) -> None:
        """Show everything anew; what is the same is not painted again."""
        store = self.board.store
        self._strip.set_sources(store.sources())
        cells = max(LEAST_CELLS, self.size.width - 2)
        shown = tuple(
            Paragraph(span.text, span.style)
            for span in lines(store.sites(), store.allocations(), self.board.now(), cells)
        )
        if shown != self._shown:
            self._shown = shown
            self._text.set_text(shown)

    def move_list(self, move: Move) -> None:
        """Scroll."""
        self._text.move(move)

    async def taken(self) -> Taken | None:
        """All of it."""
        return Taken("\n".join(part.text for part in self._shown))

    def action_copy(self) -> None:
        """Copy all of it."""
        self.copy("\n".join(part.text for part in self._shown))
