"""Follows what is said behind `:` and goes to what was pasted."""

from collections.abc import Awaitable, Callable, Mapping

from textual.app import App

from jobtui.analysis.near import nearest
from jobtui.model.trace_ids import TraceRef
from jobtui.render.columns import JOB_COLUMNS
from jobtui.render.text import show
from jobtui.screens.base import Board
from jobtui.screens.choosing import ChoosingScreen
from jobtui.screens.command_table import COLUMN_KEYS, CommandError, parse_command
from jobtui.screens.job import JobScreen
from jobtui.screens.jobs import JobsScreen
from jobtui.screens.jumping import Goal, Jump, jump_to, trace_goals
from jobtui.views import START, View, ViewsError
from jobtui.widgets.filter_bar import Mistake

COLUMN_BY_KEY = {column.key: column for column in JOB_COLUMNS}


class Commander:
    """Commands on an app whose lowest screen shows the jobs."""

    def __init__(self, app: App[None], board: Board) -> None:
        self._app = app
        self._board = board
        self._own: Mapping[str, Callable[[str, int], Awaitable[None] | None]] = {
            "filter": self._filter,
            "sort": self._sort,
            "columns": self._columns,
            "save": self._save,
            "view": self._view,
            "forget": self._forget,
            "goto": self._goto,
            "trace": self._trace,
            "at": self._at,
            "utc": lambda rest, start: self._zone(local=False),
            "local": lambda rest, start: self._zone(local=True),
        }

    async def run(self, text: str) -> Mistake | None:
        """Follow a command, or go to what is pasted in its place; what is wrong, if anything."""
        try:
            said = parse_command(text)
        except CommandError as error:
            if self.jump(text):
                return None
            return Mistake(error.start, error.end, show(str(error)))
        try:
            await self._follow(said.command.call, said.rest, said.start)
        except CommandError as error:
            return Mistake(error.start, error.end, show(str(error)))
        except ViewsError as error:
            return Mistake(0, len(text), show(str(error)))
        return None

    async def _follow(self, call: str, rest: str, start: int) -> None:
        own = self._own.get(call)
        if own is None:
            await self._app.run_action(call.removeprefix("app."))
        elif (waited := own(rest, start)) is not None:
            await waited

    def jump(self, text: str) -> bool:
        """Go to what a text names, or let it be chosen from; whether there is anything."""
        jump: Jump = jump_to(text, self._board.store) if text.strip() else Jump((), False)
        if not jump.goals:
            return False
        if jump.is_clear:
            self.go(jump.goals[0])
        else:
            self._app.push_screen(ChoosingScreen(self._board, text.strip(), jump.goals, self.go))
        return True

    def show_view(self, view: View) -> None:
        """Show the jobs so; columns that are not known any more are left out."""
        jobs = self._jobs()
        jobs.set_columns([COLUMN_BY_KEY[key] for key in view.columns if key in COLUMN_BY_KEY])
        jobs.set_filter(view.filter)
        jobs.sort_by(view.sort if view.sort in COLUMN_BY_KEY else None, reverse=view.reverse)

    def show_start(self) -> None:
        """Show the view that was kept for the start, if one was."""
        try:
            view = self._board.views.get(START)
        except ViewsError as error:
            self._app.notify(show(str(error)), severity="warning", markup=False)
            return
        if view is not None:
            self.show_view(view)

    def _jobs(self) -> JobsScreen:
        """The jobs, in front of everything."""
        while len(self._app.screen_stack) > 1:
            self._app.pop_screen()
        screen = self._app.screen
        assert isinstance(screen, JobsScreen)
        return screen

    def go(self, goal: Goal) -> None:
        """Go to what was chosen."""
        if goal.job is not None:
            self._app.push_screen(JobScreen(self._board, goal.job))
        elif goal.trace is not None:
            self.open_trace(goal.trace)
        elif goal.filter is not None:
            self._jobs().set_filter(goal.filter)

    def open_trace(self, ref: TraceRef) -> None:
        """Show a trace."""
        # Imported here, as the first paint does not need it
        from jobtui.screens.trace import TraceScreen

        self._app.push_screen(TraceScreen(self._board, ref.trace_id, note="; ".join(ref.notes)))

    async def _at(self, rest: str, start: int) -> None:
        from jobtui.screens.replaying import go_to

        if self._board.player is None:
            raise CommandError(
                0, start, "time goes on by itself here; a recording is opened with: jobtui replay FILE"
            )
        if (wrong := await go_to(self._board.player, rest)) is not None:
            raise CommandError(start, start + len(rest), wrong)

    def _filter(self, rest: str, start: int) -> None:
        jobs = self._jobs()
        mistake = jobs.set_filter(rest)
        if mistake is not None:
            raise CommandError(start + mistake.start, start + mistake.end, mistake.words)
        jobs.filters.add(rest)

    def _sort(self, rest: str, start: int) -> None:
        key = rest.removeprefix("-")
        if key and key not in COLUMN_KEYS:
            near = nearest(key, COLUMN_KEYS)
            hint = f"; did you mean {near}?" if near else f"; there is {', '.join(COLUMN_KEYS)}"
            raise CommandError(start + len(rest) - len(key), start + len(rest), f"no column {key}{hint}")
        self._jobs().sort_by(key or None, reverse=rest.startswith("-"))

    async def _columns(self, rest: str, start: int) -> None:
        await self._jobs().run_action("columns")

    def _save(self, rest: str, start: int) -> None:
        screen = self._app.screen_stack[0]
        assert isinstance(screen, JobsScreen)
        self._board.views.save(rest or START, screen.view())
        what = f"kept as view {rest}" if rest else "kept for the next start"
        self._app.notify(show(f"{what} in {self._board.views.path}"), markup=False)

    def _view(self, rest: str, start: int) -> None:
        view = self._board.views.get(rest or START)
        if view is None:
            raise self._no_view(rest, start)
        self.show_view(view)

    def _forget(self, rest: str, start: int) -> None:
        if not self._board.views.forget(rest or START):
            raise self._no_view(rest, start)
        self._app.notify(show(f"forgot view {rest or START}"), markup=False)

    def _no_view(self, rest: str, start: int) -> CommandError:
        names = self._board.views.names()
        near = nearest(rest, names)
        hint = f"; did you mean {near}?" if near else f"; there is {', '.join(names) or 'none'}"
        return CommandError(start, start + len(rest), f"no view {rest or START} was kept{hint}")

    def _goto(self, rest: str, start: int) -> None:
        if not self.jump(rest):
            raise CommandError(start, start + len(rest), f"nothing is known of {rest}")

    def _trace(self, rest: str, start: int) -> None:
        goals = tuple(trace_goals(rest, self._board.store))
        if not goals:
            raise CommandError(start, start + len(rest), "no trace id, TRACEPARENT or address is in that")
        if len(goals) == 1:
            self.go(goals[0])
        else:
            self._app.push_screen(ChoosingScreen(self._board, rest, goals, self.go))

    async def _zone(self, *, local: bool) -> None:
        await self._app.run_action(f"set_zone({local})")
