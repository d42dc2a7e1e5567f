"""A screen to choose one of several things that may have been meant."""

from collections.abc import Callable, Sequence

from textual.app import ComposeResult

from jobtui.actions import Place, hints_at
from jobtui.render.text import show
from jobtui.screens.base import Board, LiveScreen, Taken, bindings_at
from jobtui.screens.jumping import Goal
from jobtui.store.store import Changes
from jobtui.widgets.choice_list import Choice, ChoiceList
from jobtui.widgets.header import Header
from jobtui.widgets.key_line import KeyLine
from jobtui.widgets.row_view import Move
from jobtui.widgets.rule_line import RuleLine
from jobtui.widgets.source_strip import SourceStrip


class ChoosingScreen(LiveScreen):
    """Goals, likeliest first. The chosen one is handed on, and this screen left."""

    PLACE = Place.CHOOSING
    BINDINGS = bindings_at(Place.CHOOSING)

    def __init__(
        self, board: Board, asked: str, goals: Sequence[Goal], follow: Callable[[Goal], None]
    ) -> None:
        super().__init__(board)
        self._goals = tuple(goals)
        self._follow = follow
        self._asked = asked
        self._header = Header(board.now, board.title)
        self._strip = SourceStrip(board.now)
        self._list = ChoiceList([Choice(show(goal.words), show(goal.why)) for goal in self._goals])

    def compose(self) -> ComposeResult:
        """From top to bottom."""
        yield self._header
        yield self._strip
        yield RuleLine()
        yield self._list
        yield RuleLine()
        yield KeyLine(hints_at(Place.CHOOSING))

    def on_mount(self) -> None:
        """Show how old the data is."""
        self.tick()

    def show_trail(self) -> None:
        """Say where one is."""
        self._header.set_title(self.titled(f"{show(self._asked)} may mean"))

    def take(self, changes: Changes) -> None:
        """The choice stays as it is."""

    def tick(self) -> None:
        """Let ages go on."""
        self._strip.set_sources(self.board.store.sources())
        self._header.repaint()

    def move_list(self, move: Move) -> None:
        """Move the cursor."""
        self._list.move(move)

    def action_open(self) -> None:
        """Go to the one under the cursor."""
        goal = self._goals[self._list.cursor]
        self.app.pop_screen()
        self._follow(goal)

    async def taken(self) -> Taken | None:
        """All of them, and the command that finds the same."""
        # Imported here, as the first paint does not need it
        from jobtui.screens.taking import jobtui_command

        lines = "\n".join(f"{show(goal.words)}  {show(goal.why)}" for goal in self._goals)
        return Taken(lines, jobtui_command(self.board, "find", self._asked))

    def action_copy(self) -> None:
        """Copy the id under the cursor."""
        goal = self._goals[self._list.cursor]
        self.copy(goal.job or goal.words)
