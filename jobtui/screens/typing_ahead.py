"""Keys that come faster than screens and lines open: each goes where the one before it has led.

Textual 8.2.8 hands keys on as they come. What is typed behind `:` in the same packet, as over a slow line, is
on its way to the screen below before the line that opens has the focus, so that a `q` in it ends the program.
Here a key waits until all that the key before it set going has been done. A paste without a line opens one.
"""

from collections import deque
from collections.abc import Mapping, Sequence

from textual import events
from textual.message_pump import MessagePump

from jobtui.screens.base import LiveScreen
from jobtui.widgets.filter_bar import FilterBar
from jobtui.widgets.wire import LeanApp

ROUNDS = 3
"""How often everything from the widget with the keys up to the app has its turn before the next key.

First it does what is bound to the key, then what follows from that, as a line that closes, then where that
leads, as to a job that was pasted.
"""
LOOK_S = 0.005
"""How often it is looked whether a line that opens has the keys."""
MOST_LOOKS = 200
"""After so many looks keys go on to what is there."""


class TypedApp(LeanApp[None]):
    """An app that takes keys and pastes one after the other."""

    def __init__(self, lowering: Mapping[int, str] | None = None) -> None:
        super().__init__(lowering)
        self._typed: deque[events.Key | events.Paste] = deque()
        self._is_busy = False
        self._looks = 0

    async def on_event(self, event: events.Event) -> None:
        """Let keys wait for their turn; all else goes on."""
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            self._typed.append(event)
            if not self._is_busy:
                self._is_busy = True
                await self._next_typed()
        else:
            await super().on_event(event)

    async def _next_typed(self) -> None:
        """Hand on what waits, up to something whose effect is to be waited for."""
        while self._typed and self.screen_stack:
            if self._is_opening() and self._looks < MOST_LOOKS:
                self._looks += 1
                self.set_timer(LOOK_S, self._next_typed)
                return
            self._looks = 0
            event, target = self._typed[0], self.focused or self.screen
            if isinstance(event, events.Paste) and event.text.strip() and await self._opens_line():
                continue
            self._typed.popleft()
            await super().on_event(event)
            if self.focused is None or not (isinstance(event, events.Key) and event.is_printable):
                await self._settle([*target.ancestors_with_self] * ROUNDS)
                return
        self._is_busy = False

    async def _settle(self, rest: Sequence[MessagePump]) -> None:
        """Let each of these do what it has been sent, one after the other; then take the next key."""
        for at, pump in enumerate(rest, 1):
            if pump.call_later(self._settle, rest[at:]):
                return
        await self._next_typed()

    def _is_opening(self) -> bool:
        """Whether a line or the palette is on its way that has not been given the keys yet."""
        if self.screen.is_modal:
            # A sheet in which nothing takes keys reads them itself
            takes_keys = not self.screen.is_mounted or bool(self.screen.focus_chain)
            return takes_keys and self.focused is None
        return any(not bar.had_keys for bar in self.screen.query(FilterBar))

    async def _opens_line(self) -> bool:
        """Open the line for commands if there is no line; whether it is on its way."""
        screen = self.screen
        if self.focused is not None or not isinstance(screen, LiveScreen) or screen.query(FilterBar):
            return False
        await screen.action_command()
        return bool(screen.query(FilterBar))
