"""A screen to choose the columns of the job table, their order, and by which one the jobs are sorted."""

from collections.abc import Callable

from jobtui.actions import Place
from jobtui.render.columns import JOB_COLUMNS
from jobtui.screens.base import Board, Taken, bindings_at
from jobtui.screens.jobs import usual_columns
from jobtui.screens.sheet import SheetScreen
from jobtui.views import View
from jobtui.widgets.column_list import ColumnList


class ColumnsScreen(SheetScreen):
    """Columns with a mark, in their order."""

    PLACE = Place.COLUMNS
    BINDINGS = bindings_at(Place.COLUMNS)
    FOOT = "kept until the end; for the next start by :save"

    def __init__(self, board: Board, view: View, follow: Callable[[View], None]) -> None:
        self._list = ColumnList(JOB_COLUMNS, view.columns)
        super().__init__(board, self._list)
        self._follow = follow
        self._view = view
        self._list.sort, self._list.reverse = view.sort, view.reverse

    def action_shift(self, steps: int) -> None:
        """Put the column elsewhere."""
        self._list.shift(steps)

    def action_sort(self) -> None:
        """Sort by the column."""
        self._list.sort_here()

    def action_usual(self) -> None:
        """The usual columns."""
        self._list.set_shown([column.key for column in usual_columns(self.board)])

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
