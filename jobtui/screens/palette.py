"""What the palette finds: the actions that can be taken on the screen, and jobs, as the filter finds them."""

from asyncio import Queue, sleep
from collections.abc import AsyncIterator, Iterator
from functools import partial
from itertools import islice

from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.widgets import Input

from jobtui.actions import Action, Place, Topic, actions_at
from jobtui.analysis.filter import FilterContext, FilterError, parse
from jobtui.model.faults import contained
from jobtui.model.jobs import Job
from jobtui.render.text import show
from jobtui.screens.base import LiveScreen
from jobtui.screens.shared import open_screen

MOST_JOBS = 50
"""Jobs offered at most."""
SLICE = 1024
"""Jobs looked at between two keys."""
JOB_SCORE = 0.4
"""Actions whose words fit come before jobs."""
BEGINS_SCORE = 100.0
"""An action whose words begin with the query comes before any other."""
ID_SCORE = 0.5
"""What an id names comes before jobs."""
LEAST_ID = 4
"""Characters of an id at least: the least by which logs name an op."""
MOST_IDS = 20
"""Ops and agents offered at most."""
KEY_CELLS = 12


class Palette(CommandPalette):
    """Textual's, with a cursor that does not blink: each blink would be sent over the line."""

    def on_mount(self) -> None:
        self.query_one(Input).cursor_blink = False

    @staticmethod
    async def _consume(hits: Hits, commands: Queue[DiscoveryHit | Hit]) -> None:
        """Offer what a provider finds; one that raises does not silence the others."""
        with contained("searching from the palette"):
            await CommandPalette._consume(hits, commands)


class ActionProvider(Provider):
    """The actions of the screen the palette was called on."""

    def _actions(self) -> Iterator[Action]:
        screen = self.screen
        if isinstance(screen, LiveScreen):
            replays = screen.shared.player is not None
            yield from (one for one in actions_at(screen.PLACE) if replays or one.topic is not Topic.REPLAY)

    def _hit(self, action: Action, title: Content, score: float = 0.0) -> Hit:
        assert isinstance(self.screen, LiveScreen)
        shown = Content.assemble((f"{action.shown_keys:<{KEY_CELLS}}", "$primary"), title)
        return Hit(score, shown, self.screen.caller(action.call), text=action.help)

    async def discover(self) -> Hits:
        for action in self._actions():
            hit = self._hit(action, Content(action.help))
            yield DiscoveryHit(hit.match_display, hit.command, text=action.help)

    async def search(self, query: str) -> Hits:
        matcher, asked = self.matcher(query), query.lower().strip()
        for action in self._actions():
            score = max(matcher.match(action.help), matcher.match(action.found_by))
            if score > 0:
                named = action.help.lower().startswith(asked) or asked in action.found_by.split()
                yield self._hit(action, matcher.highlight(action.help), score + named * BEGINS_SCORE)


class JobProvider(Provider):
    """The jobs that the query filters, or one that it names."""

    async def search(self, query: str) -> Hits:
        if not isinstance(self.screen, LiveScreen):
            return
        shared = self.screen.shared
        async for job in self._passing(query):
            words = f"{show(job.name or '')}  {show(job.id)}".strip()
            go = partial(open_screen, self.app, Place.JOB, shared, job.id)
            yield Hit(JOB_SCORE, Content(words), go, text=words)

    async def _passing(self, query: str) -> AsyncIterator[Job]:
        assert isinstance(self.screen, LiveScreen)
        shared = self.screen.shared
        try:
            chosen = parse(query)
        except FilterError:
            return
        found, context = 0, FilterContext(now_at=shared.store.now_at)
        jobs = list(shared.store.jobs.values())
        for at in range(0, len(jobs), SLICE):
            for job in chosen.select(jobs[at : at + SLICE], shared.now(), context):
                yield job
                found += 1
                if found >= MOST_JOBS:
                    return
            await sleep(0)


class IdProvider(Provider):
    """Ops, agents and containers by their ids, as far as those are shown anywhere."""

    async def search(self, query: str) -> Hits:
        asked = query.strip()
        if len(asked) < LEAST_ID or not isinstance(self.screen, LiveScreen):
            return
        shared = self.screen.shared
        correlation = shared.store.correlation
        ops = (
            op
            for op in correlation.ops()
            if op.jid and (op.op == asked or (op.op_id or "").startswith(asked))
        )
        for op in islice(ops, MOST_IDS):
            words = show(f"op {op.op}, {op.name} of {op.jid}")
            yield Hit(ID_SCORE, Content(words), partial(self._jump, op.jid or ""), text=words)
        named = (agent for agent in correlation.agents() if asked in (agent.agent, agent.container))
        for agent in islice(named, MOST_IDS):
            words = show(f"agent {agent.agent} {agent.container or ''}").rstrip()
            yield Hit(ID_SCORE, Content(words), partial(self._jump, asked), text=words)

    async def _jump(self, text: str) -> None:
        await self.app.run_action(f"jump({text!r})")
