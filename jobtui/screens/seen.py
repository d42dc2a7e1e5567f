"""The failures in the memory: how often, since when, what goes with them."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from time import monotonic

from textual import work

from jobtui.actions import Place
from jobtui.model.commands import Command
from jobtui.model.health import SourceError, contained
from jobtui.model.memory import Overview, Seen
from jobtui.render.memory import SEEN_COLUMNS, place_words, seen_words, sites_words
from jobtui.render.spans import Paragraph
from jobtui.render.text import show
from jobtui.screens.base import TableScreen
from jobtui.screens.shared import Shared

RENEW_S = 60.0
"""How often the memory is read again."""
NOTHING = ("Nothing is remembered.", "`jobtui remember`, beside this, keeps how runs end.")


class SeenScreen(TableScreen[Seen]):
    """Failures, the most frequent of the last days first."""

    PLACE = Place.SEEN
    WHAT = "failure"
    COLUMNS = SEEN_COLUMNS
    KEY = attrgetter("signature")
    PLACEHOLDER = "words of a failure"

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        self._found, self._problem = Overview(), ""
        self._due_at = 0.0

    def on_mount(self) -> None:
        self.tick()

    def tick(self) -> None:
        super().tick()
        if monotonic() >= self._due_at:
            self._due_at = monotonic() + RENEW_S
            self._ask()

    @work(group="seen", exclusive=True)
    async def _ask(self) -> None:
        if self.shared.overview is not None:
            with contained("asking the memory"):
                try:
                    self._found = await asyncio.to_thread(self.shared.overview, self.shared.now())
                    self._problem = ""
                except SourceError as error:
                    self._problem = str(error)
        self.show_all()

    def parsed(self, text: str) -> Callable[[Seen], bool]:
        words = text.casefold()
        return lambda seen: words in seen.signature.casefold()

    def records(self) -> Sequence[Seen]:
        return self._found.signatures

    def silence(self) -> tuple[str, ...]:
        return (show(self._problem),) if self._problem else NOTHING

    def words(self) -> Iterator[str]:
        if self._found.sites:
            yield sites_words(self._found.sites)
        yield from map(place_words, self._found.places)

    def copied(self) -> str:
        return show(self._table.record.signature) if self._table.record is not None else ""

    def paragraphs(self) -> Iterator[Paragraph]:
        if (seen := self._table.record) is not None:
            yield Paragraph(show(seen.signature))
            yield Paragraph(show(seen.example))
            yield Paragraph(seen_words(seen, self.shared.now()))

    def command(self) -> Command:
        seen = self._table.record
        return Command() if seen is None else self.shared.command("seen", about=[seen.signature])
