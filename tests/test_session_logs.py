"""A session over real logs: read later, read back, followed on."""

import asyncio
from pathlib import Path

import pytest

from jobtui.backends.base import Announced, Batch, SourceError
from jobtui.backends.file_blocks import Limits
from jobtui.backends.log_start import TailBytes
from jobtui.backends.logfile import LogFile
from jobtui.model.clock import FixedClock, Nanos
from jobtui.model.ids import JobId
from jobtui.model.job_desk import Reached
from jobtui.session import Session
from jobtui.store import rereading
from jobtui.store.poller import Poller
from jobtui.store.store import Store
from tests.fakes import FakeCorrelation, ScriptedSource

CAPTURE = Path(__file__).parent / "fixtures/sirepo/local"
FIRST_JOB = JobId("hZk95g40-4u2Pj0fB-heightWeightReport")
LAST_JOB = JobId("hZk95g40-7hdJ64j8-activityAnimation")


def short_tail(path: Path) -> LogFile:
    return LogFile(path, "supervisor", start=TailBytes(8_000))


async def test_reaching_back_finds_what_lies_before_the_tail() -> None:
    async with Session([short_tail(CAPTURE / "supervisor.log")], strict=True) as session:
        await session.catch_up()
        assert session.store.correlation.ops_of(FIRST_JOB) == ()
        assert await session.reach_back(Nanos(0))
        assert [op.name for op in session.store.correlation.ops_of(FIRST_JOB)] == ["run", "analysis"]


async def test_reaching_back_does_nothing_when_the_log_was_read_from_before() -> None:
    async with Session([LogFile(CAPTURE / "supervisor.log", "supervisor")], strict=True) as session:
        await session.catch_up()
        correlation = session.store.correlation
        assert not await session.reach_back(Nanos(0))
        assert session.store.correlation is correlation


async def test_reading_back_tells_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    path = CAPTURE / "supervisor.log"
    source = LogFile(path, "supervisor", start=TailBytes(8_000), limits=Limits(block=4_096, batch=16_384))
    told: list[Reached] = []
    async with Session([source], strict=True) as session:
        await session.catch_up()
        assert await session.reach_back(Nanos(0), told.append)
        assert session.store.correlation.ops_of(FIRST_JOB)
    size = path.stat().st_size
    assert {reached.size for reached in told} == {size}, "the log did not grow"
    read = [reached.read for reached in told]
    assert read == sorted(read)
    assert read[0] < size
    assert read[-1] == size
    assert told[-1].records == path.read_bytes().count(b"\n")


async def test_too_much_is_not_read_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rereading, "REACHED_BYTES", 20_000)
    async with Session([short_tail(CAPTURE / "supervisor.log")], strict=True) as session:
        await session.catch_up()
        before = session.store.correlation
        with pytest.raises(SourceError, match="would have to be read"):
            await session.reach_back(Nanos(0))
        assert session.store.correlation is before


async def test_a_source_without_a_size_is_waited_for_only_so_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rereading, "REACHED_RECORDS", 300)
    script = [Batch(cursor=str(number), count=100, more=True) for number in range(50)]
    source = ScriptedSource(script, name="journal", kind="journald")
    store = Store(FakeCorrelation(), FixedClock(Nanos(0)))
    told: list[Reached] = []
    await rereading.read_again([Poller(source, store)], store, told.append)
    assert source.polls == 3
    assert told[-1] == Reached(0, 0, 300)


async def test_a_log_is_followed_on_after_reaching_back(tmp_path: Path) -> None:
    lines = (CAPTURE / "supervisor.log").read_bytes().splitlines(keepends=True)
    log = tmp_path / "supervisor.log"
    log.write_bytes(b"".join(lines[:-60]))
    async with Session([short_tail(log)], strict=True) as session:
        seen = asyncio.Event()
        running = asyncio.create_task(session.run())
        session.store.subscribe(lambda changes: seen.set())
        async with asyncio.timeout(20):
            await seen.wait()
            assert await session.reach_back(Nanos(0))
            before = session.store.correlation.ops_of(LAST_JOB)
            with log.open("ab") as file:
                file.writelines(lines[-60:])
            while session.store.correlation.ops_of(LAST_JOB) == before:
                seen.clear()
                await seen.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        assert session.store.correlation.ops_of(FIRST_JOB)


async def test_an_announced_source_is_named_at_once_and_read_when_asked_for() -> None:
    path = CAPTURE / "supervisor.log"
    announced = Announced(str(path), "logfile", lambda: LogFile(path, "supervisor"))
    async with Session([announced], strict=True) as session:
        assert [source.name for source in session.store.sources()] == [str(path)]
        assert session.store.correlation.ops_of(FIRST_JOB) == ()
        heard = asyncio.Event()
        session.store.subscribe(lambda changes: heard.set())
        running = asyncio.create_task(session.run())
        await asyncio.sleep(0)
        assert [source.name for source in session.sources] == [str(path)]
        async with asyncio.timeout(20):
            while not session.store.correlation.ops_of(FIRST_JOB):
                heard.clear()
                await heard.wait()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
