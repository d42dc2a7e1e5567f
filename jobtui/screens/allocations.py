"""Sites, and the nodes that schedulers give them."""

from collections.abc import Iterator

from textual.widget import Widget

from jobtui.actions import Place
from jobtui.backends.registry import BALSAM
from jobtui.model.changes import Allocation
from jobtui.model.ids import labels_of
from jobtui.render.allocations import ALLOCATION_COLUMNS, ServerLook, in_order, site_lines
from jobtui.render.columns import cells_of
from jobtui.render.spans import Paragraph
from jobtui.screens.base import HeadedScreen
from jobtui.screens.shared import Shared
from jobtui.widgets.record_list import RecordTable
from jobtui.widgets.text_pane import TextPane


class AllocationsScreen(HeadedScreen):
    """The sites, and a table of allocations; stale ones stand out."""

    PLACE = Place.ALLOCATIONS

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._sites = TextPane()
        self._main = self._table = RecordTable[Allocation](
            ALLOCATION_COLUMNS, self.look, lambda one: (one.source, one.id)
        )
        self._table.empty = ("No allocation is known.",)

    def body(self) -> Iterator[Widget]:
        yield self._sites
        yield from super().body()

    def look(self) -> ServerLook:
        store, now = self.shared.store, self.shared.now()
        sources = store.sources()
        return ServerLook(
            now,
            labels_of([source.name for source in sources if BALSAM.made(source)]),
            {source.name: source.now_at(now) for source in sources},
            {(site.source, site.id): site.name for site in store.sites()},
        )

    def show_all(self) -> None:
        super().show_all()
        store, look = self.shared.store, self.look()
        self._sites.set_text(site_lines(store.sites(), look))
        self._sites.styles.height = 1 + max(1, len(store.sites()))
        self._table.set_records(in_order(store.allocations(), look))

    def paragraphs(self) -> Iterator[Paragraph]:
        yield Paragraph(self._sites.text)
        for one in self._table.records:
            row = cells_of(ALLOCATION_COLUMNS, one, self.look())
            yield Paragraph("  ".join(cell.text for cell in row))
