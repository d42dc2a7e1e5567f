"""What all screens share: live data a few times a second, keys out of the table of actions, room by size."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from time import monotonic
from typing import ClassVar

from textual import events, on
from textual.binding import Binding, BindingsMap, BindingType
from textual.message import Message
from textual.screen import Screen
from textual.widget import Widget

from jobtui.actions import ACTIONS, Action, Keymap, Place, actions_at
from jobtui.screens.board import Board as Board
from jobtui.screens.board import Taken as Taken
from jobtui.store.store import NO_CHANGES, Changes
from jobtui.views import ViewsError
from jobtui.widgets.filter_bar import FilterBar
from jobtui.widgets.header import TRAIL
from jobtui.widgets.key_line import KeyLine
from jobtui.widgets.lines import LineView
from jobtui.widgets.notice_line import NoticeLine
from jobtui.widgets.row_view import Move

FLUSH_S = 0.25
"""Changes are shown at most this often."""
TINY_ROWS = 3
"""Up to this height there is no room for more than the worst."""
TICK_S = 1.0
"""Ages go on this often."""


def bindings_at(place: Place) -> list[BindingType]:
    """The usual keys of a screen."""
    return [*_bindings(action for action in ACTIONS if place in action.places)]


def _bindings(actions: Iterable[Action]) -> Iterator[Binding]:
    for action in actions:
        if action.keys:
            yield Binding(",".join(action.keys), action.call, action.help, show=False)


class LiveScreen(Screen[None], inherit_bindings=False):
    """A screen on the store. Subclasses give `take` to show changes and `tick` to let ages go on."""

    class Pasted(Message):
        """Something was pasted that names a job."""

        def __init__(self, text: str) -> None:
            self.text = text
            super().__init__()

    ALLOW_SELECT = False  # our lines select for themselves, see LineView
    PLACE: ClassVar[Place]
    """Which screen it is in the table of actions."""
    DEFAULT_CSS = """
    LiveScreen { overflow: hidden hidden; }
    LiveScreen.-low RuleLine, LiveScreen.-flat RuleLine { display: none; }
    LiveScreen.-flat SourceStrip, LiveScreen.-flat KeyLine { display: none; }
    LiveScreen.-tiny FilterBar { dock: bottom; }
    LiveScreen.-line Header { display: none; }
    """
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (6, "-low"), (16, "-high")]
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (70, "-wide")]

    def __init__(self, board: Board, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.board = board
        if Keymap.actions is not ACTIONS:
            self._bindings = BindingsMap(_bindings(actions_at(self.PLACE)))
        self._pending = NO_CHANGES
        self._due = NO_CHANGES
        """What changed before a pause and is to be shown in it, when one comes back here."""
        self._flushed_at = 0.0
        self._flush_is_due = False
        self._unsubscribe: Callable[[], None] = lambda: None
        self._notice: NoticeLine | None = None
        self._missed_pause = False

    @property
    def is_current(self) -> bool:
        """Whether it can be seen. Textual takes the one below for seen, too, where nothing shines through."""
        top = self.app.screen if super().is_current else None
        return top is self or (top is not None and top.styles.background.a < 1)

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

    def selected_text(self) -> str:
        """What was selected with the mouse, "" when nothing is; safe to show."""
        return next((view.selected_text for view in self.query(LineView) if view.selected_text), "")

    def forget_selected(self) -> None:
        """Let nothing be selected with the mouse."""
        for view in self.query(LineView):
            view.forget_selected()

    def action_move(self, move: str) -> None:
        """Move the cursor."""
        self.forget_selected()
        self.move_list(Move(move))

    def action_back(self) -> None:
        """Leave the screen."""
        self.app.pop_screen()

    async def action_command(self) -> None:
        """Let a command be typed."""
        # Imported here, as the first paint does not need it
        from jobtui.screens.command_table import complete_command
        from jobtui.widgets.command_bar import CommandBar

        if self.query(FilterBar):
            return
        known = self.known_values()
        bar = CommandBar(
            history=self.board.commands,
            completer=lambda text, cursor: complete_command(text, cursor, known),
        )
        await self.mount(bar, before=next(iter(self.query(KeyLine)), None))

    def known_values(self) -> Mapping[str, Sequence[str]]:
        """Values to complete with."""
        from jobtui.screens.command_table import known_values

        try:
            views = self.board.views.names()
        except ViewsError:
            views = []
        return known_values(self.board.store.jobs.values(), views)

    def follow(self, command: str) -> bool:
        """Do what is said behind `:` if only this screen understands it; whether it is done."""
        return False

    @property
    def crumb(self) -> str:
        """What it is called in the trail of screens; safe to show."""
        return str(self.PLACE)

    @property
    def trail(self) -> tuple[str, ...]:
        """The screens between the jobs and this one, the nearest last."""
        below: list[str] = []
        for screen in self.app.screen_stack[1:]:
            if screen is self:
                break
            if isinstance(screen, LiveScreen):
                below.append(screen.crumb)
        return tuple(below)

    def titled(self, name: str) -> str:
        """The words that say where one is: the program, the trail, and this screen."""
        return TRAIL.join((self.board.title, *self.trail, name))

    def show_trail(self) -> None:
        """Say where one is: it was come to from elsewhere."""

    async def taken(self) -> Taken | None:
        """What can be taken along from under the cursor."""
        return None

    def copy(self, text: str) -> None:
        """Put text where the user can paste it from, and say where that is."""
        # Imported here, as the first paint does not need it
        from jobtui.screens.copying import copy

        copy(self, text)

    def on_mount(self) -> None:
        """Follow the store."""
        self._unsubscribe = self.board.live.subscribe(self._collect)
        self.set_interval(TICK_S, self._tick)
        self.show_pause()

    def on_unmount(self) -> None:
        """Leave the store alone, and let go of what was drawn, as widgets do."""
        self._unsubscribe()
        self._styles_cache.clear()

    def on_screen_suspend(self) -> None:
        """Let go of what was drawn, a kilobyte each line; it is drawn anew when it is seen again."""
        for widget in self.walk_children(Widget):
            widget._styles_cache.clear()

    def on_screen_resume(self) -> None:
        """Show what happened while another screen was in front."""
        self.show_trail()
        self.show_pause()
        if self.board.paused_at is None:
            self._go_on()
        elif self._due != NO_CHANGES:
            due, self._due = self._due, NO_CHANGES
            self.take(due)

    def show_pause(self) -> None:
        """Say that all is paused, or that it no longer is."""
        words = self.board.notice()
        if words is not None and self._notice is None:
            self._notice = NoticeLine(words)
            self.mount(self._notice)
        elif words is not None and self._notice is not None:
            self._notice.set_words(words)
        elif self._notice is not None:
            self._notice.remove()
            self._notice = None

    def pause_begins(self) -> None:
        """Show what changed up to now, where one looks; keep it apart where one may come back to."""
        if self.is_current:
            self._flush()
        else:
            self._due, self._pending = self._pending, NO_CHANGES

    def pause_ended(self) -> None:
        """Show everything that waited: at once where one looks, later where one comes back to."""
        self._pending, self._due = self._due | self._pending, NO_CHANGES
        self._missed_pause = True
        if self.is_current:
            self.show_pause()
            self._go_on()

    def _go_on(self) -> None:
        self._flush()
        if self._missed_pause:
            self._missed_pause = False
            self.show_all()
        self.tick()

    @on(events.Resize)
    def _measure(self, event: events.Resize) -> None:
        """Below the rules by height there is one for a few lines, in which only the worst is said."""
        self.set_class(event.size.height <= TINY_ROWS, "-tiny")
        self.set_class(event.size.height == 1, "-line")
        self.show_pause()

    def _tick(self) -> None:
        if not self.is_current:
            return
        if self.board.paused_at is None:
            self.tick()
        if self.board.notice() is not None:
            self.show_pause()

    def _collect(self, changes: Changes) -> None:
        self._pending |= changes
        if not self._flush_is_due and self.board.paused_at is None:
            self._flush_is_due = True
            wait_s = self._flushed_at + FLUSH_S - monotonic()
            if wait_s > 0:
                self.set_timer(wait_s, self._flush)
            else:
                self.call_later(self._flush)

    def _flush(self) -> None:
        self._flush_is_due = False
        if self._pending == NO_CHANGES or not self.is_current or self.board.paused_at is not None:
            return
        self._flushed_at = monotonic()
        changes, self._pending = self._pending, NO_CHANGES
        self.take(changes)
