"""The dashboard: puts session, screens and theme together. What is shown is for screens and widgets."""

import gc
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from traceback import format_exc
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from rich.text import Text
from textual import on
from textual._styles_cache import StylesCache
from textual.app import SystemCommand
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.screen import Screen

from jobtui.action_types import Signs
from jobtui.actions import ACTIONS, Action, Keymap, actions_at
from jobtui.allocator import give_back, share_heaps
from jobtui.driver import TerminalDriver, window_title
from jobtui.model.health import SourceState
from jobtui.model.ids import JobId
from jobtui.model.looks import AUTO, USUAL_LOOKS, Looks
from jobtui.model.trace_ids import TraceRef
from jobtui.render.glyphs import Glyphs, glyphs_for, lowering
from jobtui.render.text import Zone, show
from jobtui.screens.base import Board, LiveScreen
from jobtui.screens.jobs import JobsScreen
from jobtui.screens.places import Places
from jobtui.screens.timed import PLAY_TICK_S, TimedApp
from jobtui.session import Session
from jobtui.store.store import Changes
from jobtui.theme import DARK, PLAIN, THEMES, colors_for, theme_for, with_colors
from jobtui.views import START, Views

if TYPE_CHECKING:
    from textual.command import Provider

    from jobtui.model.clocks import Offsets
    from jobtui.screens.commander import Commander
    from jobtui.widgets.command_bar import CommandBar

READ_AFTER_S = 0.5
"""Reading begins by then, painted or not."""
GIVE_BACK_S = 30.0
"""How often memory that lies free is given back to the system."""
OF_ANOTHER_SIZE = ("COLUMNS", "LINES")
"""Variables that Textual believes more than the terminal; a shell exports what was so when it started."""


def action_provider() -> "type[Provider]":
    """What finds actions for the palette. Imported late, as the first paint does not need it."""
    from jobtui.screens.palette import ActionProvider

    return ActionProvider


def job_provider() -> "type[Provider]":
    """What finds jobs for the palette."""
    from jobtui.screens.palette import JobProvider

    return JobProvider


def id_provider() -> "type[Provider]":
    """What finds ops and agents for the palette."""
    from jobtui.screens.palette import IdProvider

    return IdProvider


class JobtuiApp(TimedApp):
    """The dashboard on a session, opened at a job when one is given."""

    CSS = """
    Toast { padding: 0 1; width: auto; max-width: 90%; margin-top: 0; }
    CommandPalette { background: $background 80%; }
    CommandPalette:ansi { background: #000000 0%; }
    CommandPalette #--container { margin: 0 2; max-width: 110; }
    CommandPalette SearchIcon { display: none; }
    CommandPalette #--input { border: none; padding: 0 1; background: $surface; }
    CommandPalette #--input.--list-visible { border: none; }
    CommandPalette CommandList {
        border: none; background: $surface; max-height: 80vh; text-wrap: nowrap; text-overflow: ellipsis;
        text-style: none; scrollbar-size-vertical: 1; scrollbar-color: $foreground 20%;
        scrollbar-background: $surface;
    }
    CommandPalette CommandList > .option-list--option { text-style: none; }
    CommandPalette CommandList:ansi > .option-list--option-highlighted { text-style: bold underline; }
    """
    TITLE = "jobtui"
    COMMANDS = {action_provider, job_provider, id_provider}

    def __init__(
        self,
        session: Session,
        open_at: JobId | TraceRef | None = None,
        *,
        theme: str | None = None,
        looks: Looks | None = None,
        title: str = "jobtui",
        views: Views | None = None,
        words: Sequence[str] = (),
    ) -> None:
        looks = looks or USUAL_LOOKS
        wanted = glyphs_for(looks.glyphs, os.environ, getattr(sys.__stderr__, "encoding", None) or "ascii")
        super().__init__(lowering(wanted))
        Signs.in_words = wanted is not Glyphs.UNICODE
        Keymap.actions = keymap_of(looks)
        self.window_title = window_title(title, os.environ) if looks.title else ""
        self._session = session
        self._open_at = open_at
        self._known_offsets: Callable[[], Offsets] | None = None
        logs = session.logs(self._offsets)
        self._board = Board(
            session.store, session.clock, session.desk(), title, logs=logs, words=tuple(words), looks=looks
        )
        self._board.hosts, self._board.mounts = session.hosts, session.mounts
        self._board.player = session.player()
        self._board.trace_desk = lambda: session.traces
        self._board.names_of_jobs = session.job_attributes
        if views is not None:
            self._board.views = views
        self._places = Places(self, self._board)
        self._starts_with_view = views is not None
        self._states: dict[str, SourceState] = {}
        self._reads = False
        self.animation_level = "none"
        Zone.is_local = False
        for known in THEMES:
            fitting = colors_for(os.environ) if known is DARK else {}
            self.register_theme(with_colors(known, {**fitting, **looks.colors}))
        self.theme = theme or theme_for(looks.theme, os.environ)
        self._canvas.has_colors = self.theme != PLAIN.name

    def _offsets(self) -> "Offsets":
        if self._known_offsets is None:
            from jobtui.analysis.clock_offset import KnownOffsets

            self._known_offsets = KnownOffsets(lambda after: self._session.store.correlation.ops(after))
        return self._known_offsets()

    def get_driver_class(self) -> type[Driver]:
        """A terminal that ends the program when it is gone, unless another driver is asked for."""
        driver = super().get_driver_class()
        return TerminalDriver if driver is LinuxDriver else driver

    def get_default_screen(self) -> Screen[None]:
        """The jobs are at the bottom of every stack of screens."""
        return JobsScreen(self._board)

    def on_mount(self) -> None:
        """Paint first, then read."""
        if isinstance(self._open_at, TraceRef):
            self.commander().open_trace(self._open_at)
        elif self._open_at is not None:
            self.open_job(self._open_at)
        self._session.store.subscribe(self._watch_sources)
        self.set_timer(READ_AFTER_S, self._read)  # should nothing be painted for so long

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
        """Paint, and begin to read after the first time; what waits for a refresh waits a frame more."""
        super()._display(screen, renderable)
        if not (self._reads or self._batch_count):
            self.call_later(self._read)

    def _read(self) -> None:
        if self._reads:
            return
        self._reads = True
        gc.freeze()  # what a start leaves behind lives to the end
        gc.enable()
        share_heaps()  # before there are threads that read
        self.set_interval(GIVE_BACK_S, self._give_back)
        if self._board.player is not None:
            self.set_interval(PLAY_TICK_S, self.play)
        elif self._session.alarms:
            self._watch_for_trouble()
        if self._starts_with_view and self._board.views.may_have(START):
            self.commander().show_start()
        self.run_worker(self._session.run(), name="session", exit_on_error=True)

    def _watch_for_trouble(self) -> None:
        """Do what the user wants done on new trouble."""
        from jobtui.backends.alarm_command import AlarmCommand
        from jobtui.screens.alarming import Alarm

        wishes = self._session.alarms
        command = AlarmCommand(wishes.command, self._session.store) if wishes.command else None
        Alarm(self, self._board, wishes, command.run if command is not None else None)

    def _give_back(self) -> None:
        """Let go of closed widgets: a cache of textual 8.2.8 keeps a thousand with all they drew."""
        StylesCache.get_inner_outer.cache_clear()
        give_back()

    def open_job(self, job_id: JobId) -> None:
        """Show a job."""
        # Imported here, as the first paint of the jobs does not need it; so are the other screens
        from jobtui.screens.job import JobScreen

        self.push_screen(JobScreen(self._board, job_id))

    def action_go(self, place: str) -> None:
        """Go to a screen, which is as it was left."""
        self._places.go(place)

    def action_command_palette(self) -> None:
        """Offer every action that can be taken here, and every job."""
        from jobtui.screens.palette import Palette

        if isinstance(self.screen, LiveScreen):
            self.push_screen(Palette(placeholder="an action, a job, a filter"))

    def action_keys(self) -> None:
        """Show the keys."""
        from jobtui.screens.help import HelpScreen

        if isinstance(self.screen, LiveScreen) and not isinstance(self.screen, HelpScreen):
            self.push_screen(HelpScreen(self._board, self.screen.PLACE))

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The actions that can be taken here, for the palette."""
        if not isinstance(screen, LiveScreen):
            return
        for action in actions_at(screen.PLACE):
            yield SystemCommand(action.help, action.shown_keys, screen.caller(action.call))

    def commander(self) -> "Commander":
        """What follows commands."""
        # Imported here, as the first paint does not need it
        from jobtui.screens.commander import Commander

        return Commander(self, self._board)

    def action_jump(self, text: str) -> None:
        """Go to what a text names."""
        self.commander().jump(text)

    @on(LiveScreen.Pasted)
    def _jump(self, message: LiveScreen.Pasted) -> None:
        self.commander().jump(message.text)

    async def on_command_bar_given(self, message: "CommandBar.Given") -> None:
        """Follow a command; one with a mistake stays to be mended."""
        if message.text is None or not message.text.strip():
            await message.bar.remove()
            return
        if isinstance(self.screen, LiveScreen) and self.screen.follow(message.text):
            await message.bar.remove()
            return
        mistake = await self.commander().run(message.text)
        if mistake is None:
            await message.bar.remove()
        else:
            message.bar.set_mistake(mistake)

    def _fatal_error(self) -> None:
        """End after an error of our own. Textual would print all variables, and what secrets they hold."""
        self._exit_renderables.append(Text("\n".join(map(show, format_exc().splitlines()))))
        self._close_messages_no_wait()

    def _watch_sources(self, changes: Changes) -> None:
        """One toast when a source goes down after it was up, or comes back."""
        self._board.note(changes)
        if not changes.sources:
            return
        for source in self._session.store.sources():
            before = self._states.get(source.name, SourceState.STARTING)
            self._states[source.name] = source.state
            was_up = before in (SourceState.OK, SourceState.PARTIAL)
            if source.state is SourceState.DOWN and was_up:
                self.notify(
                    show(f"{source.name}: {source.reason}"),
                    title="source down",
                    severity="error",
                    markup=False,
                )
            elif before is SourceState.DOWN and source.state is not SourceState.DOWN:
                self.notify(show(source.name), title="source is back", markup=False)


def keymap_of(looks: Looks) -> tuple[Action, ...]:
    """The actions with the keys that the user wants."""
    if not looks.keys:
        return ACTIONS
    from jobtui.keymap import with_wishes  # most have the usual keys

    return with_wishes(looks.keys)


def run_app(
    session: Session,
    open_at: JobId | TraceRef | None = None,
    *,
    title: str = "jobtui",
    profile: str | None = None,
    words: Sequence[str] = (),
    looks: Looks | None = None,
) -> int:
    """Run the dashboard until the user quits; the exit code."""
    looks = looks or USUAL_LOOKS
    for name in OF_ANOTHER_SIZE:
        os.environ.pop(name, None)
    if looks.theme != AUTO:
        os.environ.pop("NO_COLOR", None)  # what is asked for in particular counts for more
    app = JobtuiApp(session, open_at, title=title, views=Views(profile=profile), words=words, looks=looks)
    app.run(mouse=looks.takes_mouse(os.environ))
    return app.return_code or 0
