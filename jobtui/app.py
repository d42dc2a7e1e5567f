"""The dashboard: puts session, screens and theme together. What is shown is for screens and widgets."""

import gc
import os
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from rich.console import RenderableType
from textual import events, on, work
from textual._styles_cache import StylesCache
from textual.app import SuspendNotSupported
from textual.driver import Driver
from textual.drivers.linux_driver import LinuxDriver
from textual.screen import Screen

from jobtui.actions import ACTIONS, Keymap, ScreenName, with_wishes
from jobtui.allocator import give_back, share_heaps
from jobtui.model.clock import SECOND, Nanos, Offsets
from jobtui.model.health import SourceState
from jobtui.model.ids import JobFilter, JobId, TraceRef
from jobtui.model.settings import AUTO, USUAL_LOOKS, Appearance
from jobtui.render.sources import labels
from jobtui.render.terminal import Glyphs, glyphs_for, lowering
from jobtui.render.text import Zone, show
from jobtui.screens.base import LiveScreen
from jobtui.screens.jobs import JobsScreen
from jobtui.screens.shared import CopyTarget, Shared, in_thread, open_screen, screen_at, start
from jobtui.session import Session
from jobtui.store.store import Changes
from jobtui.terminal.app import TerminalApp
from jobtui.terminal.driver import TerminalDriver, window_title
from jobtui.terminal.textual_patches import kept_up
from jobtui.theme import DARK, LAYOUT, PLAIN, THEMES, colors_for, theme_for, with_colors
from jobtui.views import START, Views, ViewsError
from jobtui.widgets.filter_bar import CommandBar, FilterBar, Mistake

if TYPE_CHECKING:
    from jobtui.recording.replay import ReplayPlayer
    from jobtui.screens.commander import Commander

READ_AFTER_S = 0.5
"""Reading begins after this, painted or not; after as long again, modules that no row needs are imported."""
PLAY_TICK_S = 0.25
"""How often a replay moves its time on."""
NO_REPLAY = "only a recording has other times: jobtui replay FILE"
NOTHING_HERE = "nothing to copy here"
PASSING = frozenset({ScreenName.READING, ScreenName.CHOOSING, ScreenName.COLUMNS, ScreenName.LOG_SET})
"""Screens that close when the user goes elsewhere."""
GIVE_BACK_S = 30.0
"""How often free memory is returned to the system."""
OF_ANOTHER_SIZE = ("COLUMNS", "LINES")
"""Variables that Textual trusts more than the terminal; a shell exports what was true at its start."""


class JobtuiApp(TerminalApp[None]):
    """The dashboard on a session, opened at a job if one is given."""

    CSS = LAYOUT
    TITLE = "jobtui"

    def __init__(
        self,
        session: Session,
        open_at: JobId | TraceRef | JobFilter | None = None,
        *,
        theme: str | None = None,
        looks: Appearance | None = None,
        title: str = "jobtui",
        views: Views | None = None,
        words: Sequence[str] = (),
    ) -> None:
        looks = looks or USUAL_LOOKS
        wanted = glyphs_for(looks.glyphs, os.environ, getattr(sys.__stderr__, "encoding", None) or "ascii")
        super().__init__(lowering(wanted))
        Keymap.in_words = wanted is not Glyphs.UNICODE
        Keymap.actions = with_wishes(looks.keys) if looks.keys else ACTIONS
        self.window_title = window_title(title, os.environ) if looks.title else ""
        self._session = session
        self._open_at = open_at
        self._known_offsets: Callable[[], Offsets] | None = None
        self._shared = self._share(title, tuple(words), looks)
        if views is not None:
            self._shared.views = views
        self._kept: dict[str, LiveScreen] = {}
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

    def _share(self, title: str, words: tuple[str, ...], looks: Appearance) -> Shared:
        session = self._session
        logs, reader = session.logs(self._offsets), session.job_reader()
        shared = Shared(session.store, session.clock, reader, logs, title, words=words, looks=looks)
        shared.reach = session.reach
        shared.player, shared.overview = session.player(), session.overview()
        shared.trace_client = lambda: session.traces
        shared.ask_for_nodes = session.ask_for_nodes
        return shared

    def _offsets(self) -> "Offsets":
        if self._known_offsets is None:
            from jobtui.analysis.clock_offset import KnownOffsets

            self._known_offsets = KnownOffsets(lambda after: self._session.store.correlation.ops(after))
        return self._known_offsets()

    def get_driver_class(self) -> type[Driver]:
        driver = super().get_driver_class()
        return TerminalDriver if driver is LinuxDriver else driver

    def get_default_screen(self) -> Screen[None]:
        return JobsScreen(self._shared)

    def on_mount(self) -> None:
        if isinstance(self._open_at, TraceRef):
            self.commander().open_trace(self._open_at)
        elif isinstance(self._open_at, JobFilter):
            self.commander().lowest().set_filter(self._open_at.text)
        elif self._open_at is not None:
            open_screen(self, ScreenName.JOB, self._shared, self._open_at)
        self._session.store.subscribe(self._watch_sources)
        self.set_timer(READ_AFTER_S, self._read)  # if nothing is painted for that long

    def _display(self, screen: Screen[Any], renderable: RenderableType | None) -> None:
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
        if self._shared.player is not None:
            self.set_interval(PLAY_TICK_S, self.play)
        else:
            self.set_timer(READ_AFTER_S, partial(self._begin_alarm, self._shared.clock.now()))
        if self._starts_with_view:
            self._show_start()
        polling: Any = partial(kept_up, self, "polling", self._session.run)
        self.run_worker(polling, name="session")

    def _begin_alarm(self, began: Nanos) -> None:
        from jobtui.screens.alarm import Alarm

        Alarm(self, self._shared, self._session.alarms, began)
        start(self, partial(in_thread, import_inputs), group="imports")

    def _show_start(self) -> None:
        try:
            view = self._shared.views.get(START)
        except ViewsError as error:
            self.notify(show(str(error)), severity="warning", markup=False)
        else:
            if view is not None:
                self.commander().jobs().show_view(view)

    def _give_back(self) -> None:
        """Drop closed widgets: a cache of textual 8.2.8 keeps a thousand with all they drew."""
        StylesCache.get_inner_outer.cache_clear()
        give_back()

    def action_go(self, name: str) -> None:
        if name not in self._kept and name != ScreenName.JOBS:
            self._kept[name] = screen_at(name, self._shared)
            # An installed screen is not removed when another takes its place
            self.install_screen(self._kept[name], name)
        screen = self.screen_stack[0] if name == ScreenName.JOBS else self._kept[name]
        if screen in self.screen_stack:
            while self.screen is not screen:
                self.pop_screen()
            return
        while isinstance(top := self.screen, LiveScreen) and top.NAME in PASSING:
            self.pop_screen()
        # It replaces the screen gone to before, and all screens opened from that
        before = [one for one in self.screen_stack if one in self._kept.values()]
        while before and self.screen is not before[0]:
            self.pop_screen()
        go = self.switch_screen if before else self.push_screen
        go(screen)

    def action_command_palette(self) -> None:
        from jobtui.screens.palette import Palette

        if isinstance(self.screen, LiveScreen):
            self.push_screen(Palette(self.screen))

    def action_keys(self) -> None:
        from jobtui.screens.text import HelpScreen

        if isinstance(self.screen, HelpScreen):
            self.pop_screen()
        elif isinstance(self.screen, LiveScreen):
            self.push_screen(HelpScreen(self._shared, self.screen.NAME))

    def commander(self) -> "Commander":
        from jobtui.screens.commander import Commander

        return Commander(self, self._shared)

    @on(LiveScreen.Pasted)
    def _jump(self, message: LiveScreen.Pasted) -> None:
        self.action_jump(message.text)

    def action_jump(self, text: str) -> None:
        commander = self.commander()
        if commander.asks_servers(text):
            self.run_worker(commander.seek(text), group="jump", exclusive=True)
        else:
            commander.jump(text)

    @on(FilterBar.Closed)
    async def _command_given(self, message: FilterBar.Closed) -> None:
        if not isinstance(message.bar, CommandBar):
            return
        if message.text is None or not message.text.strip():
            await message.bar.remove()
            return
        wrong = self.screen.follow(message.text) if isinstance(self.screen, LiveScreen) else None
        running = self._run_command(message.bar, message.text, wrong)
        if wrong is None and (work := self.commander().work_for(message.text)):
            message.bar.set_note(f"{work} …")
            # In a worker, which ends if the line is closed
            message.bar.run_worker(running, group="command", exclusive=True)
        else:
            await running

    async def _run_command(self, bar: CommandBar, text: str, wrong: str | None) -> None:
        mistake = await self.commander().run(text) if wrong is None else Mistake(0, len(text), wrong)
        if mistake is None or not mistake.words:
            bar.remove()  # not awaited: it ends the bar's own workers, of which this may be one
        else:
            bar.set_mistake(mistake)

    def is_opening_input(self) -> bool:
        if self.screen.is_modal:  # one in which nothing can be focused reads them itself
            return self.focused is None and (not self.screen.is_mounted or bool(self.screen.focus_chain))
        return any(not bar.had_keys for bar in self.screen.query(FilterBar))

    async def opens_input(self, pasted: str) -> bool:
        screen = self.screen
        if self.focused is not None or not isinstance(screen, LiveScreen) or screen.query(FilterBar):
            return False
        if self.commander().jump(pasted, guesses=False):
            return False
        await screen.action_command()
        return bool(screen.query(FilterBar))

    async def on_event(self, event: events.Event) -> None:
        if isinstance(event, events.Key | events.MouseDown):
            self._shared.new_failures = 0  # the user looks
        await super().on_event(event)

    async def action_copy(self) -> None:
        screen = self.screen
        if not isinstance(screen, LiveScreen):
            return
        if text := screen.selected_text():
            screen.copy(text)
            screen.forget_selected()
        else:
            await screen.run_action("copy")

    def action_next_theme(self) -> None:
        names = [known.name for known in THEMES]
        self.theme = names[(names.index(self.theme) + 1) % len(names)]
        self._canvas.has_colors = self.theme != PLAIN.name

    async def action_copy_block(self) -> None:
        if (taken := await self._copy_target()) is not None:
            self._copy(taken.block, NOTHING_HERE)

    async def action_copy_command(self) -> None:
        if (taken := await self._copy_target()) is not None:
            self._copy(taken.command, "no command shows this")

    def _copy(self, text: str, missing: str) -> None:
        if text and isinstance(self.screen, LiveScreen):
            self.screen.copy(text)
        else:
            self.notify(missing, severity="warning")

    async def action_page(self) -> None:
        from jobtui.screens.export import pager_call

        await self._open_outside(pager_call)

    async def action_edit(self) -> None:
        from jobtui.screens.export import editor_call

        await self._open_outside(editor_call)

    async def _copy_target(self) -> CopyTarget | None:
        taken = await self.screen.taken() if isinstance(self.screen, LiveScreen) else None
        if taken is None:
            self.notify(NOTHING_HERE, severity="warning")
        return taken

    async def _open_outside(self, make: Callable[[Mapping[str, str], str, int], Sequence[str]]) -> None:
        from jobtui.screens import export

        taken = await self._copy_target()
        if taken is None:
            return
        try:
            if not taken.path:
                raise export.NotStarted("no file holds this")
            export.check_file(taken.path)
            words = make(os.environ, taken.path, taken.line)
            with self.suspend():
                export.run_program(words, os.environ)
        except (export.NotStarted, SuspendNotSupported) as error:
            self.notify(show(str(error)), severity="warning", markup=False)

    def action_mouse(self) -> None:
        if isinstance(self._driver, TerminalDriver):
            is_used = self._driver.toggle_mouse()
            self.notify("mouse on" if is_used else "mouse off: the terminal selects text")

    def action_times(self) -> None:
        self._shared.absolute = not self._shared.absolute
        self.show_all_again()

    def action_zone(self) -> None:
        self.action_set_zone(not Zone.is_local)

    def action_set_zone(self, local: bool) -> None:
        Zone.is_local = local
        self.show_all_again()

    def show_all_again(self) -> None:
        if isinstance(self.screen, LiveScreen):
            self.screen.show_pause()
            self.screen.show_all()
            self.screen.tick()

    def action_pause(self) -> None:
        if self._shared.player is not None:
            self._shared.player.play()
            self.show_all_again()
            return
        if self._shared.paused_at is None:
            self._shared.pause()
            if isinstance(self.screen, LiveScreen):
                self.screen.pause_begins()
            return
        self._shared.resume()
        stack = [screen for screen in self.screen_stack if isinstance(screen, LiveScreen)]
        for screen in (*stack, *(kept for kept in self._kept.values() if kept not in stack)):
            screen.pause_ended()

    def action_step(self, seconds: float) -> None:
        self._go_in_time(lambda player: player.go(Nanos(player.at + round(seconds * SECOND))))

    def action_change(self, forward: bool) -> None:
        self._go_in_time(lambda player: player.go_to_change(forward=forward))

    @work(group="replay")
    async def _go_in_time(self, go: "Callable[[ReplayPlayer], Awaitable[None]]") -> None:
        if self._shared.player is None:
            self.notify(NO_REPLAY, severity="warning")
            return
        await go(self._shared.player)
        self.show_all_again()

    def play(self) -> None:
        if (player := self._shared.player) is not None and player.speed:
            player.tick(PLAY_TICK_S)
            self.show_all_again()

    def _watch_sources(self, changes: Changes) -> None:
        self._shared.note(changes)
        if not changes.sources:
            return
        sources = self._session.store.sources()
        for label, source in zip(labels(sources), sources, strict=True):
            before = self._states.get(source.name, SourceState.STARTING)
            self._states[source.name] = source.state
            was_up = before in (SourceState.OK, SourceState.PARTIAL)
            if source.state is SourceState.DOWN and was_up:
                self.notify(f"{label} is down: {show(source.reason)}", severity="error", markup=False)
            elif before is SourceState.DOWN and source.state is not SourceState.DOWN:
                self.notify(f"{label} is up again", markup=False)


def import_inputs() -> None:
    """Import what the first key of a filter, a command or the palette needs."""
    from jobtui.screens import command_table, palette  # noqa: F401
    from jobtui.widgets import filter_input  # noqa: F401


def run_app(
    session: Session,
    open_at: JobId | TraceRef | JobFilter | None = None,
    *,
    title: str = "jobtui",
    profile: str | None = None,
    words: Sequence[str] = (),
    looks: Appearance | None = None,
) -> int:
    """Run the dashboard until the user quits; the exit code."""
    looks = looks or USUAL_LOOKS
    for name in OF_ANOTHER_SIZE:
        os.environ.pop(name, None)
    if looks.theme != AUTO:
        os.environ.pop("NO_COLOR", None)  # the more specific setting wins
    app = JobtuiApp(session, open_at, title=title, views=Views(profile=profile), words=words, looks=looks)
    app.run(mouse=looks.takes_mouse(os.environ))
    return app.return_code or 0
