"""Sites, and the nodes that schedulers give them."""

from collections.abc import Iterator

from textual.widget import Widget

from jobtui.actions import Place
from jobtui.model.servers import labels_of
from jobtui.render.allocations import lines
from jobtui.screens.base import Board, Taken, bindings_at
from jobtui.screens.headed import HeadedScreen
from jobtui.widgets.row_view import Move
from jobtui.widgets.text_pane import Paragraph, TextPane

LEAST_CELLS = 20
BALSAM = "balsam"


class AllocationsScreen(HeadedScreen):
    """All of them in one list; what was not heard of lately stands out."""

    PLACE = Place.ALLOCATIONS
    BINDINGS = bindings_at(Place.ALLOCATIONS)
    DEFAULT_CSS = "AllocationsScreen TextPane { height: 1fr; }"

    def __init__(self, board: Board) -> None:
        super().__init__(board)
        self._text = TextPane()
        self._shown: tuple[Paragraph, ...] = ()

    def body(self) -> Iterator[Widget]:
        """One text."""
        yield self._text

    def on_resize(self) -> None:
        """Lay it out for the width."""
        self.show_all()

    def show_all(self) -> None:
        """Show everything anew; what is the same is not painted again."""
        store = self.board.store
        self._strip.set_sources(store.sources())
        cells = max(LEAST_CELLS, self.size.width - 2)
        labels = labels_of([source.name for source in store.sources() if source.kind == BALSAM])
        spans = lines(store.sites(), store.allocations(), self.board.now(), cells, labels)
        shown = tuple(Paragraph(span.text, span.style) for span in spans)
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
