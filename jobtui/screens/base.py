"""What all screens share: live data a few times a second, keys out of the table of actions, room by size."""

import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import monotonic
from typing import ClassVar

from textual.binding import Binding, BindingType

from jobtui.actions import Place, actions_at
from jobtui.model.clock import Clock, Nanos
from jobtui.model.ids import JobId
from jobtui.model.jobs import JobDetail
from jobtui.render.clipboard import TooLong, clipboard_sequence
from jobtui.render.text import fit, safe
from jobtui.store.store import NO_CHANGES, Changes, Store
from jobtui.widgets.row_view import Move
from jobtui.widgets.wire import LeanScreen

FLUSH_S = 0.25
"""Changes are shown at most this often."""
COPIED_CELLS = 40
"""How much of a copied text is named."""
SOON_S = 0.01
"""The wait before changes after a pause are shown; a timer of none never ends."""
TICK_S = 1.0
"""Ages go on this often."""


@dataclass(slots=True)
class Board:
    """What every screen works with, and what they agree on."""

    store: Store
    clock: Clock
    detail: Callable[[JobId], Awaitable[JobDetail | None]]
    title: str = "jobtui"
    absolute: bool = False
    """Times of day instead of ages."""

    def now(self) -> Nanos:
        """The present time."""
        return self.clock.now()


def bindings_at(place: Place) -> list[BindingType]:
    """The keys of a screen."""
    return [
        Binding(",".join(action.keys), action.call, action.help, show=False) for action in actions_at(place)
    ]


class LiveScreen(LeanScreen, inherit_bindings=False):
    """A screen on the store. Subclasses give `take` to show changes and `tick` to let ages go on."""

    PLACE: ClassVar[Place]
    """Which screen it is in the table of actions."""
    DEFAULT_CSS = """
    LiveScreen.-low RuleLine, LiveScreen.-flat RuleLine { display: none; }
    LiveScreen.-flat SourceStrip, LiveScreen.-flat KeyLine { display: none; }
    """
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (6, "-low"), (16, "-high")]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (70, "-wide")]

    def __init__(self, board: Board, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.board = board
        self._pending = NO_CHANGES
        self._flushed_at = 0.0
        self._flush_is_due = False
        self._unsubscribe: Callable[[], None] = lambda: None

    def take(self, changes: Changes) -> None:
        """Show what changed."""
        raise NotImplementedError

    def tick(self) -> None:
        """Let ages go on."""
        raise NotImplementedError

    def show_all(self) -> None:
        """Show everything anew, as after a change of how times are shown."""

    def caller(self, call: str) -> Callable[[], Awaitable[object]]:
        """What takes an action of the table of actions here."""
        return lambda: self.run_action(call)

    def move_list(self, move: Move) -> None:
        """Move the cursor of the list that has the keys."""

    def action_move(self, move: str) -> None:
        """Move the cursor."""
        self.move_list(Move(move))

    def action_back(self) -> None:
        """Leave the screen."""
        self.app.pop_screen()

    def copy(self, text: str) -> None:
        """Put text on the clipboard of the user's terminal, and say so."""
        try:
            sequence = clipboard_sequence(text, in_tmux=bool(os.environ.get("TMUX")))
        except TooLong as error:
            self.notify(f"not copied: {error}", severity="warning", markup=False)
            return
        if self.app._driver is not None:
            self.app._driver.write(sequence)
        self.notify(f"copied {fit(safe(text), COPIED_CELLS).rstrip()}", timeout=2, markup=False)

    def on_mount(self) -> None:
        """Follow the store."""
        self._unsubscribe = self.board.store.subscribe(self._collect)
        self.set_interval(TICK_S, self._tick)

    def on_unmount(self) -> None:
        """Leave the store alone."""
        self._unsubscribe()

    def on_screen_resume(self) -> None:
        """Show what happened while another screen was in front."""
        self._flush()
        self.tick()

    def _tick(self) -> None:
        if self.is_current:
            self.tick()

    def _collect(self, changes: Changes) -> None:
        self._pending |= changes
        if not self._flush_is_due:
            self._flush_is_due = True
            wait_s = max(SOON_S, self._flushed_at + FLUSH_S - monotonic())
            self.set_timer(wait_s, self._flush)

    def _flush(self) -> None:
        self._flush_is_due = False
        if self._pending == NO_CHANGES or not self.is_current:
            return
        self._flushed_at = monotonic()
        changes, self._pending = self._pending, NO_CHANGES
        self.take(changes)
