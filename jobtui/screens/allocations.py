"""Sites, and the nodes that schedulers give them."""

from jobtui.actions import Place
from jobtui.backends.registry import BALSAM
from jobtui.model.ids import labels_of
from jobtui.render.allocations import lines
from jobtui.screens.base import HeadedScreen, bindings_at
from jobtui.screens.shared import Shared
from jobtui.widgets.text_pane import Paragraph, TextPane

LEAST_CELLS = 20


class AllocationsScreen(HeadedScreen):
    """Sites and allocations in one list; stale ones stand out."""

    PLACE = Place.ALLOCATIONS
    BINDINGS = bindings_at(Place.ALLOCATIONS)
    DEFAULT_CSS = "AllocationsScreen TextPane { height: 1fr; }"

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._main = self._text = TextPane()
        self._shown: tuple[Paragraph, ...] = ()

    def on_resize(self) -> None:
        self.show_all()

    def show_all(self) -> None:
        super().show_all()
        store = self.shared.store
        cells = max(LEAST_CELLS, self.size.width - 2)
        labels = labels_of([source.name for source in store.sources() if BALSAM.made(source)])
        now = self.shared.now()
        clocks = {source.name: source.now_at(now) for source in store.sources()}
        spans = lines(store.sites(), store.allocations(), now, cells, labels, clocks)
        shown = tuple(Paragraph(span.text, span.style) for span in spans)
        if shown != self._shown:
            self._shown = shown
            self._text.set_text(shown)

    def paragraphs(self) -> tuple[Paragraph, ...]:
        return self._shown
