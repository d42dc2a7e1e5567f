"""A screen to choose which logs are shown in one, by time."""

from collections.abc import Callable, Mapping, Sequence

from textual.app import ComposeResult

from jobtui.actions import Place, hints_at
from jobtui.render.text import show
from jobtui.screens.base import Board, LiveScreen, Taken, bindings_at
from jobtui.store.store import Changes
from jobtui.widgets.choice_list import Choice
from jobtui.widgets.header import Header
from jobtui.widgets.key_line import KeyLine
from jobtui.widgets.marked_list import MarkedList
from jobtui.widgets.row_view import Move
from jobtui.widgets.rule_line import RuleLine
from jobtui.widgets.source_strip import SourceStrip


class LogSetScreen(LiveScreen):
    """The names of logs. The choice is handed on by `enter`; `escape` leaves all as it was."""

    PLACE = Place.LOG_SET
    BINDINGS = bindings_at(Place.LOG_SET)

    def __init__(
        self,
        board: Board,
        labels: Mapping[str, str],
        chosen: Sequence[str],
        follow: Callable[[tuple[str, ...]], None],
    ) -> None:
        super().__init__(board)
        self._names = tuple(labels)
        self._follow = follow
        self._header = Header(board.now, board.title)
        self._strip = SourceStrip(board.now)
        marked = [nth for nth, name in enumerate(self._names) if name in chosen]
        choices = [Choice(label, show(name)) for name, label in labels.items()]
        self._list = MarkedList(choices, marked)

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield self._header
        yield self._strip
        yield RuleLine()
        yield self._list
        yield RuleLine("lines of the chosen ones, in the order of time")
        yield KeyLine(hints_at(Place.LOG_SET))

    def on_mount(self) -> None:
        """Show how old the data is."""
        self.tick()

    def show_trail(self) -> None:
        """Say where one is."""
        self._header.set_title(self.titled(self.crumb))

    def take(self, changes: Changes) -> None:
        """The names stay as they are."""

    def tick(self) -> None:
        """Let ages go on."""
        self._strip.set_sources(self.board.store.sources())
        self._header.repaint()

    def move_list(self, move: Move) -> None:
        """Move the cursor."""
        self._list.move(move)

    @property
    def chosen(self) -> tuple[str, ...]:
        """The names that are chosen."""
        return tuple(self._names[nth] for nth in self._list.marked)

    def action_mark(self) -> None:
        """Take the log in, or leave it out."""
        self._list.toggle()

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
