"""The failures in the memory: how often, since when, what goes with them."""

import asyncio
from collections.abc import Iterator
from time import monotonic

from jobtui.actions import Place
from jobtui.model.faults import contained
from jobtui.model.memory import Overview, Seen
from jobtui.model.numbers import counted
from jobtui.model.source_errors import SourceError
from jobtui.render.columns import sort_records
from jobtui.render.memory import SEEN_COLUMNS, place_words, seen_words, sites_words
from jobtui.render.text import show
from jobtui.screens.base import TableScreen, bindings_at
from jobtui.screens.export import jobtui_command
from jobtui.screens.shared import Shared, Taken, start
from jobtui.store.store import Changes
from jobtui.widgets.filter_bar import Completion
from jobtui.widgets.record_list import RecordTable

RENEW_S = 60.0
"""How often the memory is read again."""
NOTHING = ("Nothing is remembered.", "`jobtui remember`, beside this, keeps how runs end.")


class SeenScreen(TableScreen):
    """Failures, the most frequent of the last days first."""

    PLACE = Place.SEEN
    BINDINGS = bindings_at(Place.SEEN)
    COLUMNS = SEEN_COLUMNS
    PLACEHOLDER = "words of a failure"

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._found, self._problem, self._words = Overview(), "", ""
        self._due_at = 0.0
        self._main = self._table = RecordTable[Seen](SEEN_COLUMNS, self.look, lambda seen: seen.signature)

    def on_mount(self) -> None:
        self.tick()

    def take(self, changes: Changes) -> None:
        self._strip.sources = self.shared.store.sources()

    def tick(self) -> None:
        self._header.repaint()
        if monotonic() >= self._due_at:
            self._due_at = monotonic() + RENEW_S
            start(self, self._ask, group="seen", exclusive=True)

    async def _ask(self) -> None:
        if self.shared.overview is not None:
            with contained("asking the memory"):
                try:
                    self._found = await asyncio.to_thread(self.shared.overview, self.shared.now())
                    self._problem = ""
                except SourceError as error:
                    self._problem = str(error)
        self.show_all()

    def show_all(self) -> None:
        words = self._words.casefold()
        passing = [one for one in self._found.signatures if words in one.signature.casefold()]
        column = next((one for one in SEEN_COLUMNS if one.key == self._sorted_by), None)
        self._table.set_empty((show(self._problem),) if self._problem else NOTHING)
        ordered = passing if column is None else sort_records(passing, column, reverse=self._reverse)
        self.show_records(self._table, ordered)

    def words(self) -> Iterator[str]:
        yield counted(len(self._found.signatures), "failure")
        if self._found.sites:
            yield sites_words(self._found.sites)
        yield from map(place_words, self._found.places)

    def action_copy(self) -> None:
        if (seen := self._table.record) is not None:
            self.copy(show(seen.signature))

    async def taken(self) -> Taken | None:
        if (seen := self._table.record) is None:
            return None
        block = "\n".join((show(seen.signature), show(seen.example), seen_words(seen, self.shared.now())))
        return Taken(block, jobtui_command(self.shared, "seen", about=[seen.signature]))

    def complete(self, text: str, cursor: int) -> Completion:
        return Completion(cursor, cursor, ())

    def let_pass(self, text: str) -> None:
        self._words = text
