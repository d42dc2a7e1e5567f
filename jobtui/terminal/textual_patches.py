"""Patches of Textual, for the version that pyproject pins (8.2.8).

Timers that fire once do so, however busy the machine is. Textual's skip what is already due when they first
look at the clock, even if they are to fire only once: a timer that is delayed for that long while it begins
never fires, and a key, an update or a resize that waits for it is lost. A timer that was due before it began,
as that of a toast which is shown again on another screen, loops forever.

Exceptions cost what raised them. Textual ends the program at the first one in a handler, a timer, a callback
or a worker, and stops the widget of the handler; here each is counted as a fault of jobtui and everything
else goes on. A widget that cannot be drawn says so in its place.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from time import monotonic
from typing import Any

import textual.message_pump
import textual.screen
import textual.widget
from rich.segment import Segment
from rich.style import Style
from textual._callback import invoke as _invoke
from textual._context import NoActiveAppError, active_app
from textual.app import App
from textual.compose import compose
from textual.dom import DOMNode
from textual.geometry import Region
from textual.message import Message
from textual.message_pump import MessagePump
from textual.strip import Strip
from textual.timer import EventTargetGone, Timer
from textual.widget import Widget
from textual.widgets import Static
from textual.worker import Worker

from jobtui.model.health import Fault, contained
from jobtui.render.text import fit

AGAIN_S, STEADY_S = 0.5, 60.0
"""After how long lasting work is first started again; and how long it must last to count as mended."""

_begin = Timer.__init__
_compose = compose
_dispatch = MessagePump._dispatch_message
_render_lines = Widget.render_lines
_run = Worker.run
_run_timer = Timer._run_timer


def patch_textual() -> None:
    textual.screen.UPDATE_PERIOD = 1 / 125  # type: ignore[misc]  # an answer may be painted in two steps
    Timer.__init__ = _begin_patched  # type: ignore[method-assign]
    MessagePump._dispatch_message = _dispatch_contained  # type: ignore[method-assign]
    textual.widget.compose = _compose_contained  # type: ignore[attr-defined, assignment]
    textual.message_pump.invoke = textual.screen.invoke = _invoke_contained  # type: ignore[attr-defined]
    Widget.render_lines = _render_lines_contained  # type: ignore[method-assign]
    Worker.run = _run_contained  # type: ignore[method-assign]
    Timer._run_timer = _run_timer_contained  # type: ignore[method-assign]


async def kept_up(node: DOMNode, stage: str, work: Callable[[], Awaitable[object]]) -> None:
    """Do work that lasts as long as its screen, in a worker; after a fault start again, with back-off."""
    failures, wait_s = 0, AGAIN_S
    while True:
        with contained("reporting a fault"):
            began = monotonic()
            with contained(stage) as working:
                await work()
                return
            failures = 1 if monotonic() - began > STEADY_S else failures + 1
            wait_s = min(AGAIN_S * 2.0 ** min(failures - 1, 16), STEADY_S)
            tell(node, working.fault, f"; started again in {wait_s:g} s")
        await asyncio.sleep(wait_s)


def tell(node: object, fault: Fault | None, then: str = "") -> None:
    """Let the screen of a node say that something is missing because of a fault, and what happens then."""
    if fault is None or not isinstance(node, DOMNode):
        return
    with contained("reporting a fault"):
        if node.is_attached and (say := getattr(node.screen, "say_fault", None)) is not None:
            say(fault, then)


def _begin_patched(
    self: Timer, *given: Any, repeat: int | None = None, skip: bool = True, **named: Any
) -> None:
    _begin(self, *given, repeat=repeat, skip=skip and repeat is None, **named)


async def _run_timer_contained(self: Timer) -> None:
    """Run a timer; an exception in it is counted.

    Textual raises that exception again while the widget closes, and the widget then never closes. It also
    looks for the app in the context that began the timer, where a task of the session has none.
    """
    with contained("running a timer"):
        if active_app.get(None) is None:
            try:
                active_app.set(self.target.app)  # type: ignore[attr-defined]
            except (EventTargetGone, NoActiveAppError):  # its widget was removed
                return
        await _run_timer(self)


async def _invoke_contained(callback: Any, *params: object) -> Any:
    """The function with which Textual calls handlers; one that raises does not stop the others."""
    with contained(f"in {getattr(callback, '__qualname__', type(callback).__name__)}") as calling:
        return await _invoke(callback, *params)
    tell(getattr(callback, "__self__", None), calling.fault)
    return None


async def _dispatch_contained(self: MessagePump, message: Message) -> None:
    with contained(f"{type(message).__name__} for {type(self).__name__}") as handling:
        await _dispatch(self, message)
    tell(self, handling.fault)


def _compose_contained(node: App[Any] | Widget, given: Iterable[Widget] | None = None) -> list[Widget]:
    """The children of a widget; if making them fails, the reason."""
    with contained(f"composing {type(node).__name__}") as composing:
        return _compose(node, given)
    return [Static(f" {composing.words}", markup=False)]


async def _run_contained(self: "Worker[Any]") -> Any:
    with contained(f"working on {self.name if self.group == 'default' else self.group}") as working:
        return await _run(self)
    tell(self._node, working.fault)
    return None


def _render_lines_contained(self: Widget, crop: Region) -> list[Strip]:
    with contained(f"drawing {type(self).__name__}") as drawing:
        return _render_lines(self, crop)
    first = Strip([Segment(fit(f" {drawing.words}", crop.width), Style())], crop.width)
    return [first, *[Strip.blank(crop.width)] * (crop.height - 1)][: crop.height]
