"""A Balsam server as a source: jobs, how they went from state to state, allocations and sites.

Never asks without a filter, and polls with one request at a time; what a person asks for goes beside it.
Each poll asks for the jobs that were changed since the last, by the server's own clock; only where there are
some, for the newest events. Events come late and out of order: that question goes back `OVERLAP_S` behind the
newest event, once in a while further, and a job in a state that no known event explains is asked about by its
id. What is known already is dropped by id. Where ids come again for other events, everything is read anew.
"""

import asyncio
from collections.abc import Callable

import msgspec

from jobtui.backends.balsam.asking import OVERLAP_S, Questions, Step
from jobtui.backends.balsam.cache import EventCache
from jobtui.backends.balsam.client import BalsamClient
from jobtui.backends.balsam.detail import fetch_detail
from jobtui.backends.balsam.lookout import clock, note_of
from jobtui.backends.balsam.recall import Recall
from jobtui.backends.balsam.rows import number_of
from jobtui.backends.base import Batch, SourceError
from jobtui.model.clock import SECOND, Clock, Nanos, SystemClock
from jobtui.model.ids import JobId
from jobtui.model.jobs import JobDetail

WINDOW_S = 24 * 3600
"""How far back events and ended jobs are read at first."""
RESYNC_S = 3600
"""How far back is looked once in a while."""
COMMIT_S = 5
"""How long a change may take to be seen after its time was noted."""
FRAME_EVERY, RESYNC_EVERY = 8, 150
"""After how many polls allocations, sites and launchers are asked for, and late events and deleted jobs."""

Notice = Callable[[Nanos], str | None]


def _silent(now: Nanos) -> str | None:
    """Says nothing."""


class Balsam:
    """One server. `owner` is whose jobs these are: a token shows those of its user only.

    `notice` is what is to be said of the login. `cache` keeps its events between runs.
    """

    kind = "balsam"

    def __init__(
        self,
        client: BalsamClient,
        *,
        owner: str = "",
        since: Nanos | None = None,
        clock: Clock | None = None,
        notice: Notice = _silent,
        cache: EventCache | None = None,
    ) -> None:
        self.name = client.name
        self.client = client
        self._owner = owner
        self._since = since
        self._clock = clock or SystemClock()
        self._notice = notice
        self._issued = 0
        self._last: Batch | None = None
        self._closed = False
        self._back_at: Nanos | None = None
        self._recall = Recall(cache)
        self._reset()

    def _reset(self) -> None:
        now = self._clock.now()
        since = self._since if self._since is not None else Nanos(now - WINDOW_S * SECOND)
        self._questions = Questions(self.client, self._owner, since, self._clock, self._recall)
        self._polls = 0

    async def poll(self, cursor: str | None) -> Batch:
        """What is new; the first polls read the window, a page each. Raises SourceError.

        A cursor is good for one batch back: with that before the last the same batch comes again.
        """
        if self._closed:
            raise SourceError(f"{self.name}: this source is closed")
        if cursor != str(self._issued):
            if self._last is not None and cursor == str(self._issued - 1):
                return self._last
            self._reset()
        due = self._questions.due
        if not due:
            self._polls += 1
            due.extend(self._next_steps())
        batch = await due[0]()
        if not batch.more:
            due.popleft()
        if self._questions.begin_again_if_back():
            self._back_at = self._clock.now()
        self._issued += 1
        self._last = msgspec.structs.replace(
            batch, cursor=str(self._issued), more=bool(due), note=self._note()
        )
        return self._last

    def _next_steps(self) -> list[Step]:
        questions = self._questions
        steps = [questions.jobs(_before(questions.updated, COMMIT_S))]
        if self._polls % FRAME_EVERY == 0:
            steps += [questions.frame, questions.events(_before(questions.newest, OVERLAP_S))]
        if self._polls % RESYNC_EVERY == 0:
            steps += [questions.live_jobs(), questions.events(_before(questions.newest, RESYNC_S))]
        return steps

    def _note(self) -> str:
        now = self._clock.now()
        note = note_of(self._questions.frame_now, self._notice(now), now, self.client.ahead_s)
        back = ""
        if self._back_at is not None:
            seen = f"seen at {clock(self._back_at)}"
            back = f"event ids went back, {seen}: a backup, or set up anew? all was read anew"
        return "; ".join(filter(None, (note, back, self._recall.fault)))

    async def changed(self, timeout_s: float) -> None:
        """Nothing tells of a change: polls are due one after the other."""
        await asyncio.sleep(timeout_s)

    async def detail(self, job_id: JobId) -> JobDetail | None:
        """The record of a job with its runs and events, None when there is none. Raises SourceError."""
        number = number_of(job_id, self.client.system)
        return None if number is None else await fetch_detail(self.client, number, self._owner)

    async def aclose(self) -> None:
        """Close the connection."""
        self._closed = True
        await self._recall.aclose()
        await self.client.aclose()


def _before(at: Nanos, seconds: int) -> Nanos:
    return Nanos(at - seconds * SECOND)
