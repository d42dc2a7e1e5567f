"""An app that sends few bytes to its terminal, and takes keys in the order in which they were typed.

Output: Textual 8.2.8 sends changed lines from their left end on, sets and resets every colour at every
segment, paints all of the screen several times for a resize or another screen, and waits for a slow terminal.
Over ssh that is most of the traffic. All of this is corrected where an update becomes text.

Input: it passes keys on as they come. What is typed after `:` in the same packet goes to the screen below
before the line that opens has the focus, so that a `q` in it ends the program. Here a key waits until the
effects of the key before it are done. A paste without a line opens one.
"""

import os
from collections import deque
from collections.abc import Mapping, Sequence
from select import select
from time import monotonic
from typing import Any, TypeVar, cast

from rich.color import ColorSystem
from rich.console import Console, RenderableType
from textual import events
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.app import App
from textual.message_pump import MessagePump
from textual.screen import Screen

from jobtui.model.health import FAULTS, contained
from jobtui.terminal.canvas import Canvas
from jobtui.terminal.textual_patches import patch_textual

RESIZED_S = 0.03
"""How long painting is delayed after a resize."""
LOOK_AGAIN_S, LOOK_AT_LEAST_S = 0.005, 0.25
"""How long it is delayed while the terminal accepts nothing: at first, and at most."""
MOST_QUEUED = 6
"""Writes that may wait for the thread that makes them; an update is three."""
ERASING_IN_COLOR = (
    "alacritty", "foot", "gnome", "iterm", "konsole", "linux", "putty", "rxvt", "vte", "wezterm", "xterm",
)  # fmt: skip
"""Beginnings of the names of terminals in which erased cells take the current background."""

ROUNDS = 3
"""How many turns everything from the focused widget up to the app has before the next key: one for the action
of the key, one for its effect, such as a line that closes, one for where that leads, such as a pasted job.
"""
LOOK_S = 0.005
"""How often it is checked whether a line that opens has the keys."""
MOST_LOOKS = 200
"""After so many looks keys go to the present screen."""
LOST_S = 10.0
"""How long a key waits for the effect of the one before it, which a fault may have lost."""

Result = TypeVar("Result")


class LeanUpdate(CompositorUpdate):
    """An update that sends only what it changes on the terminal."""

    def __init__(self, update: LayoutUpdate | ChopsUpdate, canvas: Canvas) -> None:
        self._update = update
        self._canvas = canvas

    def render_segments(self, console: Console) -> str:
        return self._canvas.draw(self._update, console._color_system or ColorSystem.TRUECOLOR)


class TerminalApp(App[Result]):
    """An app that sends few bytes, never more than the terminal takes, and takes keys one after the other.

    Subclasses say when and how an input opens.
    """

    def __init__(self, lowering: Mapping[int, str] | None = None) -> None:
        super().__init__()
        patch_textual()
        self._canvas = Canvas(erases_in_color=erases_in_color(os.environ), lowering=lowering)
        self._has_painted = False
        self._wants_all = False
        self._is_put_off = False
        self._typed: deque[events.Key | events.Paste] = deque()
        self._is_busy = False
        self._took_at = 0.0
        self._looks = 0

    def _handle_exception(self, error: Exception) -> None:
        FAULTS.note(getattr(error, "error", error), "in the dashboard")
        if not self._running:
            self._return_code = 1

    def on_mount(self) -> None:
        self.app_resume_signal.subscribe(self, lambda _: self._start_over())

    def on_resize(self, event: events.Resize) -> None:
        is_answer = event.pixel_size is not None and event.size == self.size
        if self._has_painted and not is_answer:
            self._start_over()

    def _start_over(self) -> None:
        self._canvas.forget()
        self._put_off(RESIZED_S)

    def _put_off(self, wait_s: float) -> None:
        """Paint a little later: that is less than painting every update until then."""
        self._wants_all = True
        if not self._is_put_off:
            self._is_put_off = True
            self.set_timer(wait_s, lambda: self._catch_up(wait_s))

    def _catch_up(self, waited_s: float) -> None:
        if self._is_behind():
            wait_s = min(2 * waited_s, LOOK_AT_LEAST_S)
            self.set_timer(wait_s, lambda: self._catch_up(wait_s))
            return
        self._is_put_off = False
        if self.is_running and self.screen_stack:
            self.screen.refresh()

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        if self.is_headless or not isinstance(renderable, LayoutUpdate | ChopsUpdate):
            super()._display(screen, renderable)
        elif self._batch_count or (self._has_painted and self._must_wait(renderable)):
            self._put_off(LOOK_AGAIN_S)
        else:
            self._has_painted = True
            self._wants_all = False
            super()._display(screen, cast("RenderableType", LeanUpdate(renderable, self._canvas)))

    def _must_wait(self, update: CompositorUpdate) -> bool:
        is_part = isinstance(update, ChopsUpdate)
        return self._is_put_off or (is_part and self._wants_all) or self._is_behind()

    def _is_behind(self) -> bool:
        thread = getattr(self._driver, "_writer_thread", None)
        if thread is None:
            return False
        is_full = not select([], [thread.fileno()], [], 0)[1]
        return is_full or thread._queue.qsize() > MOST_QUEUED

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key | events.Paste) and not event.is_forwarded:
            self._typed.append(event)
            if not self._is_busy or monotonic() - self._took_at > LOST_S:
                self._is_busy = True
                await self._next_typed()
        else:
            await super().on_event(event)

    async def _next_typed(self) -> None:
        """Take what was typed. A fault here costs what was typed so far, and no later key."""
        with contained("taking keys") as taking:
            await self._take_typed()
        if taking.fault is not None:
            self._typed.clear()
            self._is_busy = False

    async def _take_typed(self) -> None:
        self._took_at = monotonic()
        while self._typed and self.screen_stack:
            if self.is_opening_input() and self._looks < MOST_LOOKS:
                self._looks += 1
                self.set_timer(LOOK_S, self._next_typed)
                return
            self._looks = 0
            event, target = self._typed[0], self.focused or self.screen
            with contained("opening the line for commands"):
                pasted = event.text if isinstance(event, events.Paste) else ""
                if pasted.strip() and await self.opens_input(pasted):
                    continue
            self._typed.popleft()
            with contained("taking a key"):
                await super().on_event(event)
            if self.focused is None or not (isinstance(event, events.Key) and event.is_printable):
                await self._settle([*target.ancestors_with_self] * ROUNDS)
                return
        self._is_busy = False

    async def _settle(self, rest: Sequence[MessagePump]) -> None:
        """Let each of these handle its messages, one after the other; then take the next key."""
        with contained("taking keys"):
            for at, pump in enumerate(rest, 1):
                if pump.call_later(self._settle, rest[at:]):
                    return
        await self._next_typed()

    def is_opening_input(self) -> bool:
        """Whether an input is opening that does not have the keys yet."""
        return False

    async def opens_input(self, pasted: str) -> bool:
        """Follow a paste, or open an input for it if there is none. True if that is under way."""
        return False


def erases_in_color(environment: Mapping[str, str]) -> bool:
    """Whether cells that the terminal erases take the current background, and are kept in a copy.

    GNU screen erases in its own background; tmux leaves erased cells out of what it captures.
    """
    is_shared = bool(environment.get("STY") or environment.get("TMUX"))
    return not is_shared and environment.get("TERM", "").startswith(ERASING_IN_COLOR)
