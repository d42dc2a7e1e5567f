"""What the palette finds: the actions that can be taken on the screen, and jobs, as the filter finds them."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from jobtui.analysis.filter import FilterError, parse
from jobtui.model.jobs import Job
from jobtui.render.text import show
from jobtui.screens.base import LiveScreen
from jobtui.screens.job import JobScreen

MOST_JOBS = 50
"""Jobs offered at most."""
SLICE = 1024
"""Jobs looked at between two keys."""
JOB_SCORE = 0.4
"""Actions whose words fit come before jobs."""
BEGINS_SCORE = 100.0
"""An action whose words begin with the query comes before any other."""
KEY_CELLS = 12


class ActionProvider(Provider):
    """The actions of the screen the palette was called on."""

    async def discover(self) -> Hits:
        """All of them."""
        for title, keys, callback, *_ in self.app.get_system_commands(self.screen):
            yield DiscoveryHit(_with_keys(Content(title), keys), callback, text=title)

    async def search(self, query: str) -> Hits:
        """Those whose words fit."""
        matcher = self.matcher(query)
        for title, keys, callback, *_ in self.app.get_system_commands(self.screen):
            if (score := matcher.match(title)) > 0:
                begins = title.lower().startswith(query.lower().strip())
                yield Hit(
                    score + begins * BEGINS_SCORE,
                    _with_keys(matcher.highlight(title), keys),
                    callback,
                    text=title,
                )


class JobProvider(Provider):
    """The jobs that the query filters, or one that it names."""

    async def search(self, query: str) -> Hits:
        """The first that pass."""
        if not isinstance(self.screen, LiveScreen):
            return
        board = self.screen.board
        async for job in self._passing(query):
            words = f"{show(job.name or '')}  {show(job.id)}".strip()
            go = partial(self.app.push_screen, JobScreen(board, job.id))
            yield Hit(JOB_SCORE, Content(words), go, text=words)

    async def _passing(self, query: str) -> AsyncIterator[Job]:
        assert isinstance(self.screen, LiveScreen)
        board = self.screen.board
        try:
            chosen = parse(query)
        except FilterError:
            return
        found = 0
        jobs = list(board.store.jobs.values())
        for at in range(0, len(jobs), SLICE):
            for job in chosen.select(jobs[at : at + SLICE], board.now()):
                yield job
                found += 1
                if found >= MOST_JOBS:
                    return
            await asyncio.sleep(0)


def _with_keys(title: Content, keys: str) -> Content:
    """A title with its keys before it, in a column."""
    return Content.assemble((f"{keys:<{KEY_CELLS}}", "$primary"), title)
