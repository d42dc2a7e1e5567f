"""A screen to choose the columns of the job table, their order, and by which one the jobs are sorted."""

from collections.abc import Callable

from textual.app import ComposeResult

from jobtui.actions import Place, hints_at
from jobtui.render.columns import DEFAULT_COLUMNS, JOB_COLUMNS
from jobtui.screens.base import Board, LiveScreen, Taken, bindings_at
from jobtui.store.store import Changes
from jobtui.views import View
from jobtui.widgets.column_list import ColumnList
from jobtui.widgets.header import Header
from jobtui.widgets.key_line import KeyLine
from jobtui.widgets.row_view import Move
from jobtui.widgets.rule_line import RuleLine
from jobtui.widgets.source_strip import SourceStrip


class ColumnsScreen(LiveScreen):
    """The choice is handed on by `enter`; `escape` leaves all as it was."""

    PLACE = Place.COLUMNS
    BINDINGS = bindings_at(Place.COLUMNS)

    def __init__(self, board: Board, view: View, follow: Callable[[View], None]) -> None:
        super().__init__(board)
        self._follow = follow
        self._view = view
        self._header = Header(board.now, board.title)
        self._strip = SourceStrip(board.now)
        self._list = ColumnList(JOB_COLUMNS, view.columns)
        self._list.sort, self._list.reverse = view.sort, view.reverse

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield self._header
        yield self._strip
        yield RuleLine()
        yield self._list
        yield RuleLine("kept until the end; for the next start by :save")
        yield KeyLine(hints_at(Place.COLUMNS))

    def on_mount(self) -> None:
        """Show how old the data is."""
        self.tick()

    def show_trail(self) -> None:
        """Say where one is."""
        self._header.set_title(self.titled(self.crumb))

    def take(self, changes: Changes) -> None:
        """The columns stay as they are."""

    def tick(self) -> None:
        """Let ages go on."""
        self._strip.set_sources(self.board.store.sources())
        self._header.repaint()

    def move_list(self, move: Move) -> None:
        """Move the cursor."""
        self._list.move(move)

    def action_mark(self) -> None:
        """Show the column, or leave it out."""
        self._list.toggle()

    def action_shift(self, steps: int) -> None:
        """Put the column elsewhere."""
        self._list.shift(steps)

    def action_sort(self) -> None:
        """Sort by the column."""
        self._list.sort_here()

    def action_usual(self) -> None:
        """The usual columns."""
        self._list.set_shown([column.key for column in DEFAULT_COLUMNS])

    def action_open(self) -> None:
        """Show the jobs so."""
        chosen = self._list
        self.app.pop_screen()
        self._follow(self._view._replace(columns=chosen.shown, sort=chosen.sort, reverse=chosen.reverse))

    async def taken(self) -> Taken | None:
        """The names of the columns, and the command that shows the jobs."""
        # Imported here, as the first paint does not need it
        from jobtui.screens.taking import jobs_taken

        return jobs_taken(self.board, Taken(" ".join(self._list.shown)), self._view.filter)

    def action_copy(self) -> None:
        """Copy the names of the columns."""
        self.copy(" ".join(self._list.shown))
