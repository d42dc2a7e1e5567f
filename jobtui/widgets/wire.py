"""Few bytes on the wire: what a terminal shows is remembered, and only what changes is sent, when it can be.

Textual 8.2.8 sends changed lines from their left end on, sets and resets every colour at every segment,
paints all of the screen several times for a resize or another screen, and waits for a terminal that is slow.
Over ssh that is most of the traffic. All is put right where an update becomes text. This leans on insides of
the textual version that pyproject.toml pins, all of them here, in `canvas` and in `pen`.
"""

import os
from collections.abc import Mapping
from select import select
from typing import Any, TypeVar, cast

from rich.color import ColorSystem
from rich.console import Console, RenderableType
from textual import events
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate
from textual.app import App
from textual.screen import Screen

from jobtui.widgets.canvas import Canvas
from jobtui.widgets.timers import mend_timers

RESIZED_S = 0.03
"""How long painting is put off after a resize."""
LOOK_AGAIN_S, LOOK_AT_LEAST_S = 0.005, 0.25
"""How long it is put off while the terminal takes nothing: at first, and at most."""
MOST_QUEUED = 6
"""Writes that may wait for the thread that makes them; an update is three."""
ERASING_IN_COLOR = (
    "alacritty",
    "foot",
    "gnome",
    "iterm",
    "konsole",
    "linux",
    "putty",
    "rxvt",
    "vte",
    "wezterm",
    "xterm",
)
"""Beginnings of the names of terminals in which what is erased takes the background that is set."""

Result = TypeVar("Result")


class LeanUpdate(CompositorUpdate):
    """An update that sends only what it changes on the terminal."""

    def __init__(self, update: LayoutUpdate | ChopsUpdate, canvas: Canvas) -> None:
        self._update = update
        self._canvas = canvas

    def render_segments(self, console: Console) -> str:
        """What to write to the terminal."""
        return self._canvas.draw(self._update, console._color_system or ColorSystem.TRUECOLOR)


class LeanApp(App[Result]):
    """An app that sends few bytes, and never more than the terminal takes."""

    def __init__(self, lowering: Mapping[int, str] | None = None) -> None:
        super().__init__()
        mend_timers()
        self._canvas = Canvas(erases_in_color=erases_in_color(os.environ), lowering=lowering)
        self._has_painted = False
        self._wants_all = False
        self._is_put_off = False

    def on_mount(self) -> None:
        """Paint all of it after somebody else had the terminal."""
        self.app_resume_signal.subscribe(self, lambda _: self._start_over())

    def on_resize(self, event: events.Resize) -> None:
        """Paint all of it, once, when the widgets have found their new sizes."""
        is_answer = event.pixel_size is not None and event.size == self.size
        if self._has_painted and not is_answer:
            self._start_over()

    def _start_over(self) -> None:
        self._canvas.forget()
        self._put_off(RESIZED_S)

    def _put_off(self, wait_s: float) -> None:
        """Paint a little later what there is then, which is less than all that is not painted until then."""
        self._wants_all = True
        if not self._is_put_off:
            self._is_put_off = True
            self._look_again(wait_s)

    def _look_again(self, wait_s: float) -> None:
        self.set_timer(wait_s, lambda: self._catch_up(wait_s))

    def _catch_up(self, waited_s: float) -> None:
        """Paint, unless the terminal still takes nothing; then look again, more and more seldom."""
        if self._is_behind():
            self._look_again(min(2 * waited_s, LOOK_AT_LEAST_S))
            return
        self._is_put_off = False
        if self.is_running and self.screen_stack:
            self.screen.refresh()

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        if self.is_headless or not isinstance(renderable, LayoutUpdate | ChopsUpdate):
            super()._display(screen, renderable)
        elif self._batch_count or (self._has_painted and not self._may_paint(renderable)):
            self._put_off(LOOK_AGAIN_S)
        else:
            self._has_painted = True
            self._wants_all = False
            super()._display(screen, cast("RenderableType", LeanUpdate(renderable, self._canvas)))

    def _may_paint(self, update: CompositorUpdate) -> bool:
        is_part = isinstance(update, ChopsUpdate)
        return not (self._is_put_off or (is_part and self._wants_all) or self._is_behind())

    def _is_behind(self) -> bool:
        """Whether the terminal has not taken yet what it was sent before."""
        thread = getattr(self._driver, "_writer_thread", None)
        if thread is None:
            return False
        is_full = not select([], [thread.fileno()], [], 0)[1]
        return is_full or thread._queue.qsize() > MOST_QUEUED


def erases_in_color(environment: Mapping[str, str]) -> bool:
    """Whether what the terminal erases takes the background that is set, and is kept when it is copied.

    GNU screen erases in its own; tmux leaves out of what it captures what was erased.
    """
    is_shared = bool(environment.get("STY") or environment.get("TMUX"))
    return not is_shared and environment.get("TERM", "").startswith(ERASING_IN_COLOR)
