"""The hits of the palette: actions of this screen and others, and jobs as the filter finds them."""

from asyncio import Queue, gather, sleep
from collections.abc import Coroutine, Iterator
from functools import partial
from itertools import islice
from typing import Any

from textual import on
from textual.command import CommandList, CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.widgets import Input

from jobtui.actions import Action, Keymap, ScreenName, Topic, actions_at
from jobtui.analysis.filter import FilterError, parse
from jobtui.analysis.flags import JobContext
from jobtui.model.health import contained
from jobtui.render.text import show
from jobtui.screens.base import LiveScreen
from jobtui.screens.shared import open_screen, screen_at

MOST_JOBS = 50
SLICE = 4096
"""Jobs looked at between two keys."""
JOB_SCORE = 0.4
"""Actions whose words fit come before jobs."""
BEGINS_SCORE = 100.0
"""An action whose words begin with the query comes before any other, one of another screen next."""
ID_SCORE = 0.5
"""The thing that an id names comes before jobs."""
LEAST_ID = 4
"""Characters of an id at least: the least by which logs name an op."""
MOST_IDS = 20
KEY_CELLS = 12


class LiveProvider(Provider):
    """Finds things on our own screens: the palette opens on no other."""

    @property
    def live(self) -> LiveScreen:
        assert isinstance(self.screen, LiveScreen)
        return self.screen


class ActionProvider(LiveProvider):
    """The actions of the screen below the palette; a search also finds those of other screens."""

    def _actions(self) -> Iterator[Action]:
        replays = self.live.shared.player is not None
        yield from (one for one in actions_at(self.live.NAME) if replays or one.topic is not Topic.REPLAY)

    def _actions_elsewhere(self) -> Iterator[tuple[Action, ScreenName]]:
        """Actions that are only on other screens, with one that can be gone to from here."""
        calls = {one.call for one in Keymap.actions}
        screens = [screen for screen in ScreenName if f"app.go('{screen}')" in calls]
        screens += [ScreenName.JOB] if self.live.chosen_jobs() else []
        known = {action.help for action in actions_at(self.live.NAME)}
        for action in Keymap.actions:
            screen = next((screen for screen in screens if screen in action.screens), None)
            if screen is not None and action.help not in known:
                known.add(action.help)
                yield action, screen

    async def _act_at(self, name: ScreenName, call: str) -> None:
        if name is ScreenName.JOB:
            await self.app.push_screen(screen_at(name, self.live.shared, self.live.chosen_jobs()[0]))
        else:
            await self.app.run_action(f"go('{name}')")
        screen = self.app.screen
        screen.call_later(screen.run_action, call)

    async def discover(self) -> Hits:
        for action in self._actions():
            shown = shown_action(action, Content(action.help))
            act = partial(self.live.run_action, action.call)
            yield DiscoveryHit(shown, act, text=action.help)

    async def search(self, query: str) -> Hits:
        matcher, asked = self.matcher(query), query.lower().strip()

        def score(action: Action) -> float:
            found = max(matcher.match(action.help), matcher.match(action.found_by))
            words = (action.name.removeprefix("go-").removeprefix("tab-"), *action.found_by.split())
            begun = (action.help.lower(), *(word for word in words if len(asked) > 2 or word == asked))
            named = any(word.startswith(asked) for word in begun)
            return found + named * BEGINS_SCORE if found > 0 else 0.0

        for action in self._actions():
            if (found := score(action)) > 0:
                shown = shown_action(action, matcher.highlight(action.help))
                yield Hit(found, shown, partial(self.live.run_action, action.call), text=action.help)
        for action, screen in self._actions_elsewhere():
            if (found := score(action)) > BEGINS_SCORE:
                words = Content.assemble(matcher.highlight(action.help), (f" ({screen})", "$text-muted"))
                act = partial(self._act_at, screen, action.call)
                yield Hit(found - BEGINS_SCORE / 2, shown_action(action, words), act, text=action.help)


def shown_action(action: Action, words: Content) -> Content:
    return Content.assemble((f"{action.shown_keys:<{KEY_CELLS}}", "$primary"), words)


class JobProvider(LiveProvider):
    """The jobs that the query filters, or one that it names."""

    async def search(self, query: str) -> Hits:
        shared = self.live.shared
        try:
            chosen = parse(query)
        except FilterError:
            return
        found, test = 0, chosen.test(JobContext(time_of=partial(shared.store.now_at, now=shared.now())))
        jobs = tuple(shared.store.jobs.values())
        for at in range(0, len(jobs), SLICE):
            for job in filter(test, jobs[at : at + SLICE]):
                words = f"{show(job.name or '')}  {show(job.id)}".strip()
                go = partial(open_screen, self.app, ScreenName.JOB, shared, job.id)
                yield Hit(JOB_SCORE, Content(words), go, text=words)
                found += 1
                if found >= MOST_JOBS:
                    return
            await sleep(0)


class IdProvider(LiveProvider):
    """Ops, agents and containers by their ids, as far as those are shown anywhere."""

    async def search(self, query: str) -> Hits:
        asked, correlation = query.strip(), self.live.shared.store.correlation
        if len(asked) < LEAST_ID:
            return
        ops = (op for op in correlation.ops() if asked == op.op or (op.op_id or "").startswith(asked))
        for op in islice((op for op in ops if op.jid), MOST_IDS):
            words = show(f"op {op.op}, {op.name} of {op.jid}")
            yield Hit(ID_SCORE, Content(words), self._jump_to(op.jid or ""), text=words)
        named = (agent for agent in correlation.agents() if asked in (agent.agent, agent.container))
        for agent in islice(named, MOST_IDS):
            words = show(f"agent {agent.agent} {agent.container or ''}").rstrip()
            yield Hit(ID_SCORE, Content(words), self._jump_to(asked), text=words)

    def _jump_to(self, text: str) -> partial[Coroutine[Any, Any, bool]]:
        return partial(self.app.run_action, f"jump({text!r})")


class Palette(CommandPalette):
    """Textual's palette with a cursor that does not blink: each blink would be sent over the line."""

    def __init__(self) -> None:
        providers = (ActionProvider, JobProvider, IdProvider)
        super().__init__(providers, placeholder="an action, a job, a filter")

    def on_mount(self) -> None:
        self.query_one(Input).cursor_blink = False

    @on(Input.Submitted)
    async def _find_all(self) -> None:
        """Wait for the search before the first hit is taken: hits may be of what was typed before."""
        searches = [one.wait() for one in self.workers if one.group == self._GATHER_COMMANDS_GROUP]
        await gather(*searches, return_exceptions=True)

    def _watch__list_visible(self) -> None:
        if self.query(CommandList):  # none once it is closed, while commands are still found
            super()._watch__list_visible()

    @staticmethod
    async def _consume(hits: Hits, commands: Queue[DiscoveryHit | Hit]) -> None:
        """Offer what a provider finds. One that raises does not stop the others."""
        with contained("searching from the palette"):
            await CommandPalette._consume(hits, commands)
