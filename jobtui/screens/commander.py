"""Runs `:` commands and goes to what was pasted."""

from jobtui.analysis.times import parse_moment
from jobtui.model.spelling import nearest
from jobtui.render.text import show
from jobtui.screens.base import mistake_of
from jobtui.screens.choices import Guide, trace_goals
from jobtui.screens.command_table import COLUMN_KEYS, CommandError, parse_command
from jobtui.screens.jobs import JobsScreen
from jobtui.views import START, ViewsError
from jobtui.widgets.filter_bar import Mistake


class Commander(Guide):
    """Commands on an app whose lowest screen shows the jobs."""

    async def run(self, text: str) -> Mistake | None:
        try:
            said = parse_command(text)
        except CommandError as error:
            if await self.seek(text):
                return None
            return mistake_of(error)
        call = said.command.call
        try:
            if call.startswith("app."):
                await self._app.run_action(call.removeprefix("app."))
            elif (waited := getattr(self, f"_{call}")(said.rest, said.start)) is not None:
                await waited
        except CommandError as error:
            return mistake_of(error)
        except ViewsError as error:
            return Mistake(0, len(text), show(str(error)))
        return None

    def jobs(self) -> JobsScreen:
        screen = self.lowest()
        assert isinstance(screen, JobsScreen)
        return screen

    async def _at(self, rest: str, start: int) -> None:
        """Go to a typed time, such as 20:34, or 15m before the present position."""
        if (player := self._shared.player) is None:
            raise CommandError(
                0, start, "this is live; to go to a time, open a recording: jobtui replay FILE"
            )
        if (moment := parse_moment(rest)) is None:
            wrong = f"{rest} is not a time; such as 20:34, 2026-11-20T20:34:30Z, 15m"
            raise CommandError(start, start + len(rest), wrong)
        await player.go(moment.span(player.at).start)

    def _filter(self, rest: str, start: int) -> None:
        jobs = self.jobs()
        mistake = jobs.set_filter(rest)
        if mistake is not None:
            raise CommandError(start + mistake.start, start + mistake.end, mistake.words)
        jobs.filters.add(rest)

    def _sort(self, rest: str, start: int) -> None:
        key = rest.removeprefix("-")
        if key and key not in COLUMN_KEYS:
            end, near = start + len(rest), nearest(key, COLUMN_KEYS)
            others = "" if near else f"; expected one of {', '.join(COLUMN_KEYS)}"
            raise CommandError(end - len(key), end, f"no column {key}{others}", near)
        self.jobs().sort_by(key or None, reverse=rest.startswith("-"))

    async def _columns(self, rest: str, start: int) -> None:
        await self.jobs().run_action("columns")

    def _save(self, rest: str, start: int) -> None:
        screen = self._app.screen_stack[0]
        assert isinstance(screen, JobsScreen)
        self._shared.views.save(rest or START, screen.view())
        what = f"kept as view {rest}" if rest else "kept for the next start"
        self._app.notify(show(f"{what} in {self._shared.views.path}"), markup=False)

    def _view(self, rest: str, start: int) -> None:
        view = self._shared.views.get(rest or START)
        if view is None:
            raise self._no_view(rest, start)
        self.jobs().show_view(view)

    def _forget(self, rest: str, start: int) -> None:
        if not self._shared.views.forget(rest or START):
            raise self._no_view(rest, start)
        self._app.notify(show(f"removed view {rest or START}"), markup=False)

    def _no_view(self, rest: str, start: int) -> CommandError:
        names = self._shared.views.names()
        near = nearest(rest, names)
        others = f"; those kept: {', '.join(names)}" if names and not near else ""
        return CommandError(start, start + len(rest), f"no view {rest or START} was kept{others}", near)

    async def _goto(self, rest: str, start: int) -> None:
        if not await self.seek(rest):
            raise CommandError(start, start + len(rest), f"nothing is known about {rest}")

    def _trace(self, rest: str, start: int) -> None:
        goals = tuple(trace_goals(rest, self._shared.store))
        if not goals:
            raise CommandError(start, start + len(rest), "no trace id, TRACEPARENT or address in that")
        self.choose(rest, goals, is_clear=len(goals) == 1)
