"""A screen with one list, of which some things are taken in and others left out."""

from collections.abc import Iterator
from typing import Protocol

from textual.widget import Widget

from jobtui.screens.base import Board
from jobtui.screens.headed import HeadedScreen
from jobtui.widgets.row_view import Move


class Chosen(Protocol):
    """A list with a cursor, whose things can be taken in or left out."""

    def move(self, move: Move) -> None:
        """Move the cursor."""
        ...

    def toggle(self) -> None:
        """Take in what is under the cursor, or leave it out."""
        ...


class SheetScreen(HeadedScreen):
    """The choice is handed on by `enter`; `escape` leaves all as it was."""

    def __init__(self, board: Board, choices: Chosen) -> None:
        super().__init__(board)
        self._choices = choices

    def body(self) -> Iterator[Widget]:
        """The list."""
        assert isinstance(self._choices, Widget)
        yield self._choices

    def show_all(self) -> None:
        """Let the state of the sources go on; what can be chosen stays."""
        self._strip.set_sources(self.board.store.sources())

    def move_list(self, move: Move) -> None:
        """Move the cursor."""
        self._choices.move(move)

    def action_mark(self) -> None:
        """Take in what is under the cursor, or leave it out."""
        self._choices.toggle()
