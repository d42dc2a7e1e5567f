"""Screens with a line in which a filter is typed, and lists that are also sorted by their columns."""

from typing import ClassVar

from textual import on

from jobtui.analysis.filter_syntax import FilterError
from jobtui.render.text import show
from jobtui.screens.base import Board, LiveScreen
from jobtui.widgets.filter_bar import FilterBar, Mistake
from jobtui.widgets.history import History
from jobtui.widgets.rule_line import RuleLine


class FilteringScreen(LiveScreen):
    """A screen of what passes a filter, which is typed above its rule."""

    def __init__(self, board: Board) -> None:
        super().__init__(board)
        self._filters = History()
        self._rule = RuleLine()

    def filter_bar(self) -> FilterBar:
        """The line in which the filter is typed, with the one that holds."""
        raise NotImplementedError

    def set_filter(self, text: str) -> Mistake | None:
        """Filter by this text, or by nothing when something is wrong with it: what it is."""
        raise NotImplementedError

    def preview_filter(self, text: str) -> Mistake | None:
        """Show what a filter does while it is typed: what is wrong with it."""
        return self.set_filter(text)

    async def action_filter(self) -> None:
        """Let a filter be typed."""
        if not self.query(FilterBar):
            await self.mount(self.filter_bar(), before=self._rule)

    @on(FilterBar.Edited)
    def _preview(self, message: FilterBar.Edited) -> None:
        """Show at once what the filter does; a mistake is shown at its place, and filters nothing."""
        message.bar.set_mistake(self.preview_filter(message.text))

    @on(FilterBar.Closed)
    async def _close_filter(self, message: FilterBar.Closed) -> None:
        """Keep the filter, or the one before; one with a mistake stays to be mended."""
        mistake = self.set_filter(message.text)
        if mistake is None:
            await message.bar.remove()
        else:
            message.bar.set_mistake(mistake)


class FilteredList(FilteringScreen):
    """A list of what passes a filter, sorted by one of its columns; `show_all` shows it anew."""

    SORT_KEYS: ClassVar[tuple[str, ...]]
    """The keys of the columns."""

    def __init__(self, board: Board) -> None:
        super().__init__(board)
        self._filter_text = ""
        self._sorted_by: str | None = None
        self._reverse = False

    def let_pass(self, text: str) -> None:
        """Let only pass what this filter means. Raises FilterError, and changes nothing then."""
        raise NotImplementedError

    def set_filter(self, text: str) -> Mistake | None:
        """Filter by this text, or by nothing when something is wrong with it: what it is."""
        mistake = None
        try:
            self.let_pass(text)
        except FilterError as error:
            mistake, text = Mistake(error.start, error.end, show(str(error))), ""
            self.let_pass(text)
        self._filter_text = text.strip()
        self.show_all()
        return mistake

    def action_sort(self) -> None:
        """Sort by the next column."""
        keys = (None, *self.SORT_KEYS)
        self._sorted_by = keys[(keys.index(self._sorted_by) + 1) % len(keys)]
        self.show_all()

    def action_reverse(self) -> None:
        """Sort the other way round."""
        self._reverse = not self._reverse
        self.show_all()

    def action_back(self) -> None:
        """End the filter, then leave the screen."""
        if self._filter_text:
            self.set_filter("")
        else:
            super().action_back()

    @property
    def _order_words(self) -> str:
        """By what it is sorted, where that is not as usual."""
        return f"by {self._sorted_by}{', reversed' * self._reverse}" if self._sorted_by else ""
