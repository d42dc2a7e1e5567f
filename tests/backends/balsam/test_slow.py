"""A Balsam server that takes its time: its answers are held until the test lets them go."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from threading import Event

import httpx
import pytest

from jobtui.backends.balsam.client import BalsamClient
from jobtui.backends.balsam.source import Balsam
from jobtui.model.clock import FixedClock
from jobtui.model.health import SourceHealth, SourceState
from jobtui.model.ids import JobId
from jobtui.session import Session
from tests.analysis.balsam_data import nanos
from tests.balsam_http import served
from tests.balsam_server import TOKEN, Record, RecordedBalsam
from tests.waiting import wait_until

NOW = nanos("2026-11-20T19:30:00")
EARLY = nanos("2026-11-20T17:00:00")


class Held:
    """Two served Balsams that are polled; the answers of the first are held while `holding()`."""

    def __init__(self, urls: tuple[str, str], slow: "Slow", other: RecordedBalsam, patience_s: float) -> None:
        self.slow, self.other, self.clock = slow, other, FixedClock(NOW)
        self.sources = [
            Balsam(
                BalsamClient(url, lambda: TOKEN, label=label, patience_s=patience),
                since=EARLY,
                clock=self.clock,
            )
            for url, label, patience in zip(urls, ("slow", "other"), (patience_s, 40.0), strict=True)
        ]
        self.session = Session(self.sources, self.clock, strict=True)

    def health(self, number: int = 0) -> SourceHealth:
        return self.session.store.sources()[number]

    def seen(self) -> tuple[dict[JobId, str], list[int]]:
        """The states of jobs, and the ids of events, of the first server."""
        store, name = self.session.store, self.sources[0].name
        jobs = {job.id: job.native_status for job in store.jobs.values() if job.source == name}
        return jobs, sorted(one.id for one in store.changes.all() if one.source == name)

    def truth(self) -> tuple[dict[JobId, str], list[int]]:
        jobs = {JobId(f"balsam@slow/{row['id']}"): row["state"] for row in self.slow.jobs}
        return jobs, sorted(row["id"] for row in self.slow.events)


class Slow(RecordedBalsam):
    """Holds every answer while it is told to; `held` is set as soon as one is."""

    def __init__(self) -> None:
        super().__init__()
        self.free, self.held = Event(), Event()
        self.free.set()

    def answer(self, request: httpx.Request) -> httpx.Response:
        if not self.free.is_set():
            self.held.set()
            assert self.free.wait(30), "the test never let it go"
        return super().answer(request)

    @contextmanager
    def holding(self) -> Iterator[None]:
        self.held.clear()
        self.free.clear()
        try:
            yield
        finally:
            self.free.set()


@asynccontextmanager
async def polled(monkeypatch: pytest.MonkeyPatch, patience_s: float = 40.0) -> AsyncIterator[Held]:
    """Both servers, polled without a pause, once everything is known."""
    monkeypatch.setattr("jobtui.store.poller.PERIOD_S", 0.01)
    slow, other = Slow(), RecordedBalsam()
    with served(slow) as url, served(other) as other_url:
        held = Held((url, other_url), slow, other, patience_s)
        try:
            async with held.session as session:
                await session.catch_up()
                task = asyncio.create_task(session.run())
                yield held
                task.cancel()
        finally:
            slow.free.set()


def move_on(balsam: RecordedBalsam, number: int) -> None:
    """One more change on a server."""
    row = next(row for row in balsam.jobs if row["state"] == "RUNNING")
    row["state"], row["last_update"] = "RUN_DONE", "2026-11-20T19:29:59+00:00"
    event: Record = {
        "id": number, "job_id": row["id"], "timestamp": "2026-11-20T19:29:58", "from_state": "RUNNING",
        "to_state": "RUN_DONE", "data": {},
    }  # fmt: skip
    balsam.events.append(event)


async def test_an_answer_that_takes_long_is_waited_for_and_holds_up_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with polled(monkeypatch) as held:
        with held.slow.holding():
            await wait_until(held.slow.held.is_set)
            move_on(held.slow, 90_001)
            move_on(held.other, 90_002)
            held.clock.advance(30)
            await wait_until(lambda: 90_002 in {one.id for one in held.session.store.changes.all()})
            assert held.health(1).read_at == held.clock.now()
            # Not down, and it is told how old it is
            assert held.health().state is SourceState.OK
            assert held.health().lag_s(held.clock.now()) == 30
        await wait_until(lambda: held.seen() == held.truth())
        assert held.health().lag_s(held.clock.now()) == 0


async def test_one_that_takes_too_long_is_told_with_the_last_good_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with polled(monkeypatch, patience_s=0.2) as held:
        read_at = held.health().read_at
        held.clock.advance(60)
        with held.slow.holding():
            await wait_until(lambda: held.health().state is SourceState.DOWN)
            assert "no answer within 0.2 s" in (held.health().error or "")
            move_on(held.slow, 90_001)
            assert held.health(1).state is SourceState.OK
        assert read_at is not None
        await wait_until(lambda: held.health().state is SourceState.OK)
        await wait_until(lambda: held.seen() == held.truth())


async def test_a_job_can_be_opened_while_a_poll_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    async with polled(monkeypatch) as held:
        first = held.slow.answer
        with held.slow.holding():
            await wait_until(held.slow.held.is_set)
            monkeypatch.setattr(
                held.slow, "answer", lambda request: RecordedBalsam.answer(held.slow, request)
            )
            detail = await held.sources[0].detail(JobId("balsam@slow/7"))
            assert detail is not None
            monkeypatch.setattr(held.slow, "answer", first)


async def test_an_answer_that_only_trickles_comes_to_an_end() -> None:
    """Each part comes in time, and the whole never does."""

    ended = asyncio.Event()

    async def trickle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100000\r\n\r\n")
        try:
            while True:
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.01)
        except OSError:
            writer.close()
            ended.set()

    server = await asyncio.start_server(trickle, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    client = BalsamClient(f"http://127.0.0.1:{port}", lambda: TOKEN, patience_s=0.1)
    source = Balsam(client, since=EARLY, clock=FixedClock(NOW))
    async with Session([source], FixedClock(NOW), strict=True) as session:
        await session.catch_up()
        (health,) = session.store.sources()
        assert health.state is SourceState.DOWN
        assert "no answer within" in (health.error or "")
    server.close()
    await ended.wait()
    await server.wait_closed()
