"""A session over real logs: read later, read back, followed on."""

import asyncio
from pathlib import Path

from jobtui.backends.base import Announced
from jobtui.backends.log_start import TailBytes
from jobtui.backends.logfile import LogFile
from jobtui.model.clock import Nanos
from jobtui.model.ids import JobId
from jobtui.session import Session

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
