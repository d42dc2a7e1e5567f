"""A screen to choose which logs are shown in one, by time."""

from collections.abc import Callable, Mapping, Sequence

from jobtui.actions import Place
from jobtui.render.text import show
from jobtui.screens.base import Board, Taken, bindings_at
from jobtui.screens.sheet import SheetScreen
from jobtui.widgets.choice_list import Choice
from jobtui.widgets.marked_list import MarkedList


class LogSetScreen(SheetScreen):
    """The names of logs, those that are shown with a mark."""

    PLACE = Place.LOG_SET
    BINDINGS = bindings_at(Place.LOG_SET)
    FOOT = "lines of the chosen ones, in the order of time"

    def __init__(
        self,
        board: Board,
        labels: Mapping[str, str],
        chosen: Sequence[str],
        follow: Callable[[tuple[str, ...]], None],
    ) -> None:
        self._names = tuple(labels)
        self._follow = follow
        marked = [nth for nth, name in enumerate(self._names) if name in chosen]
        choices = [Choice(label, show(name)) for name, label in labels.items()]
        self._list = MarkedList(choices, marked)
        super().__init__(board, self._list)

    @property
    def chosen(self) -> tuple[str, ...]:
        """The names that are chosen."""
        return tuple(self._names[nth] for nth in self._list.marked)

    def action_mark_all(self) -> None:
        """All of them, or none."""
        self._list.toggle_all()

    def action_open(self) -> None:
        """Show those that are chosen; the one under the cursor when none is."""
        chosen = self.chosen or (self._names[self._list.cursor],)
        self.app.pop_screen()
        self._follow(chosen)

    async def taken(self) -> Taken | None:
        """The names that are chosen."""
        return Taken("\n".join(map(show, self.chosen)))

    def action_copy(self) -> None:
        """Copy the name under the cursor."""
        self.copy(show(self._names[self._list.cursor]))
