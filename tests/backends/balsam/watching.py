"""A recorded Balsam server that is watched, and what it may be made to say."""

from collections.abc import Callable

import httpx

from jobtui.backends.balsam.client import BalsamClient
from jobtui.backends.balsam.source import Balsam
from jobtui.model.clock import FixedClock, Nanos
from jobtui.model.health import SourceHealth
from jobtui.store.poller import Poller
from jobtui.store.store import Store
from tests.analysis.balsam_data import nanos
from tests.balsam_server import TOKEN, Record, RecordedBalsam
from tests.carried import carried, timed
from tests.fakes import FakeCorrelation

NOW = nanos("2026-11-20T19:30:00")
EARLY = nanos("2026-11-20T17:00:00")
URL = "http://balsam.test"


class Watched:
    """A server, the source that watches it, and the store that it fills."""

    def __init__(self, server: RecordedBalsam | None = None, since: Nanos = EARLY) -> None:
        self.server = server or RecordedBalsam()
        client = carried(BalsamClient(URL, lambda: TOKEN), self.server.transport)
        self.source = timed(Balsam(client, owner="operator", since=since), FixedClock(NOW))
        self.store = Store(FakeCorrelation(), FixedClock(NOW))
        self.poller = Poller(self.source, self.store)

    @property
    def health(self) -> SourceHealth:
        (health,) = self.store.sources()
        return health

    async def poll(self, times: int = 1) -> None:
        for _ in range(times):
            await self.poller.poll_once()


async def caught_up() -> Watched:
    watched = Watched()
    await watched.poller.catch_up()
    await watched.poll(20)
    return watched


def answers(status: int, body: bytes = b"", **headers: str) -> Callable[[httpx.Request], httpx.Response]:
    return lambda _: httpx.Response(status, content=body, headers=headers)


def raises(error: Exception) -> Callable[[httpx.Request], httpx.Response]:
    def fail(_: httpx.Request) -> httpx.Response:
        raise error

    return fail


def an_event(number: int, job: int, at: str, before: str, after: str) -> Record:
    return {
        "id": number, "job_id": job, "timestamp": at, "from_state": before, "to_state": after, "data": {}
    }  # fmt: skip


def move_on(server: RecordedBalsam, number: int, at: str = "19:29:58", seen: str = "19:29:59") -> Record:
    """A job that runs has run, as the event with this number tells; the job."""
    job = next(row for row in server.jobs if row["state"] == "RUNNING")
    job.update(state="RUN_DONE", last_update=f"2026-11-20T{seen}+00:00")
    server.events.append(an_event(number, job["id"], f"2026-11-20T{at}", "RUNNING", "RUN_DONE"))
    return job
