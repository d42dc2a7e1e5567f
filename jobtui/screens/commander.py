"""Runs `:` commands and goes to what was pasted."""

import asyncio

from textual.app import App

from jobtui.analysis.spelling import nearest
from jobtui.model.ids import TraceRef
from jobtui.render.columns import JOB_COLUMNS
from jobtui.render.text import show
from jobtui.screens.choices import (
    NOWHERE,
    ChoosingScreen,
    Goal,
    Jump,
    jump_to,
    may_name_a_job,
    spans_goals,
    trace_goals,
)
from jobtui.screens.command_table import COLUMN_KEYS, CommandError, parse_command
from jobtui.screens.job import JobScreen
from jobtui.screens.jobs import JobsScreen
from jobtui.screens.shared import Shared
from jobtui.views import START, View, ViewsError
from jobtui.widgets.filter_bar import Mistake

ASKED_S = 5.0
"""So long servers of traces may take to say whose spans name a job that was typed."""
COLUMN_BY_KEY = {column.key: column for column in JOB_COLUMNS}


class Commander:
    """Commands on an app whose lowest screen shows the jobs."""

    def __init__(self, app: App[None], shared: Shared) -> None:
        self._app = app
        self._shared = shared

    def asks_servers(self, text: str) -> bool:
        """Whether following a text takes the time in which servers of traces answer."""
        try:
            said = parse_command(text)
        except CommandError:
            return self._may_ask(text)
        return said.command.call == "goto" and self._may_ask(said.rest)

    async def run(self, text: str) -> Mistake | None:
        try:
            said = parse_command(text)
        except CommandError as error:
            if await self.seek(text):
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
        if call.startswith("app."):
            await self._app.run_action(call.removeprefix("app."))
        elif (waited := getattr(self, f"_{call}")(rest, start)) is not None:
            await waited

    def jump(self, text: str) -> bool:
        return self._take(text, self._jump_in_store(text))

    def _jump_in_store(self, text: str) -> Jump:
        return jump_to(text, self._shared.store) if text.strip() else NOWHERE

    def _may_ask(self, text: str) -> bool:
        desk = self._shared.trace_desk
        if desk is None or not desk().asks_servers or not may_name_a_job(text):
            return False
        return not self._jump_in_store(text).is_sure

    async def seek(self, text: str) -> bool:
        jump = self._jump_in_store(text)
        if self._may_ask(text):
            asked = await self._goals_of_servers(text.strip())
            known = {goal.trace for goal in asked}
            others = tuple(goal for goal in jump.goals if goal.trace is None or goal.trace not in known)
            if asked:
                jump = Jump((*asked, *others), len(asked) == 1)
        return self._take(text, jump)

    async def _goals_of_servers(self, job_id: str) -> tuple[Goal, ...]:
        from jobtui.analysis.traces.job_traces import ways_by_attribute

        assert self._shared.trace_desk is not None
        try:
            async with asyncio.timeout(ASKED_S):
                ways = await ways_by_attribute(
                    self._shared.trace_desk(), job_id, self._shared.job_attributes()
                )
        except TimeoutError:
            words = f"no trace of {job_id} was looked for to the end: no answer within {ASKED_S:g} s"
            self._app.notify(show(words), severity="warning", markup=False)
            return ()
        for note in () if ways.found else ways.notes:
            self._app.notify(show(note), severity="warning", markup=False)
        return spans_goals(ways.found)

    def _take(self, text: str, jump: Jump) -> bool:
        if not jump.goals:
            return False
        if jump.is_clear:
            self.go(jump.goals[0])
        else:
            self._app.push_screen(ChoosingScreen(self._shared, text.strip(), jump.goals, self.go))
        return True

    def show_view(self, view: View) -> None:
        jobs = self._jobs()
        jobs.set_columns([COLUMN_BY_KEY[key] for key in view.columns if key in COLUMN_BY_KEY])
        jobs.set_filter(view.filter)
        jobs.sort_by(view.sort if view.sort in COLUMN_BY_KEY else None, reverse=view.reverse)

    def show_start(self) -> None:
        try:
            view = self._shared.views.get(START)
        except ViewsError as error:
            self._app.notify(show(str(error)), severity="warning", markup=False)
            return
        if view is not None:
            self.show_view(view)

    def _jobs(self) -> JobsScreen:
        while len(self._app.screen_stack) > 1:
            self._app.pop_screen()
        screen = self._app.screen
        assert isinstance(screen, JobsScreen)
        return screen

    def go(self, goal: Goal) -> None:
        if goal.job is not None:
            self._app.push_screen(JobScreen(self._shared, goal.job))
        elif goal.trace is not None:
            self.open_trace(goal.trace)
        elif goal.filter is not None:
            self._jobs().set_filter(goal.filter)

    def open_trace(self, ref: TraceRef) -> None:
        from jobtui.screens.trace import TraceScreen

        self._app.push_screen(TraceScreen(self._shared, ref.trace_id, note="; ".join(ref.notes)))

    async def _at(self, rest: str, start: int) -> None:
        from jobtui.screens.shared import go_to

        if self._shared.player is None:
            raise CommandError(
                0, start, "time goes on by itself here; a recording is opened with: jobtui replay FILE"
            )
        if (wrong := await go_to(self._shared.player, rest)) is not None:
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
        self._shared.views.save(rest or START, screen.view())
        what = f"kept as view {rest}" if rest else "kept for the next start"
        self._app.notify(show(f"{what} in {self._shared.views.path}"), markup=False)

    def _view(self, rest: str, start: int) -> None:
        view = self._shared.views.get(rest or START)
        if view is None:
            raise self._no_view(rest, start)
        self.show_view(view)

    def _forget(self, rest: str, start: int) -> None:
        if not self._shared.views.forget(rest or START):
            raise self._no_view(rest, start)
        self._app.notify(show(f"forgot view {rest or START}"), markup=False)

    def _no_view(self, rest: str, start: int) -> CommandError:
        names = self._shared.views.names()
        near = nearest(rest, names)
        hint = f"; did you mean {near}?" if near else f"; there is {', '.join(names) or 'none'}"
        return CommandError(start, start + len(rest), f"no view {rest or START} was kept{hint}")

    async def _goto(self, rest: str, start: int) -> None:
        if not await self.seek(rest):
            raise CommandError(start, start + len(rest), f"nothing is known of {rest}")

    def _trace(self, rest: str, start: int) -> None:
        goals = tuple(trace_goals(rest, self._shared.store))
        if not goals:
            raise CommandError(start, start + len(rest), "no trace id, TRACEPARENT or address is in that")
        if len(goals) == 1:
            self.go(goals[0])
        else:
            self._app.push_screen(ChoosingScreen(self._shared, rest, goals, self.go))
