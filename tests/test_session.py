"""What a session does for one question: it reads what is asked for and notes how that went."""

import threading
from pathlib import Path

from jobtui.backends.base import SourceError, SourceMissing
from jobtui.model.clock import FixedClock
from jobtui.model.health import SourceState
from jobtui.model.ids import JobId
from jobtui.model.jobs import JobDetail
from jobtui.session import Session
from tests.builders import a_job, job_id
from tests.fakes import ScriptedSource, batch
from tests.waiting import wait_until


class Failing(ScriptedSource):
    """A source whose details cannot be read."""

    def __init__(self, error: SourceError, name: str) -> None:
        super().__init__(name=name)
        self._error = error

    async def detail(self, job_id: JobId) -> JobDetail | None:
        raise self._error


def a_detail(number: int = 0) -> JobDetail:
    return JobDetail(job=a_job(number), runs=(), history=(), native={})


def with_detail(name: str = "/srv/db") -> ScriptedSource:
    return ScriptedSource(name=name, details={job_id(): a_detail()})


async def test_one_job_is_looked_up_without_a_poll(clock: FixedClock) -> None:
    source = with_detail()
    async with Session([source], clock) as session:
        assert await session.look_up(job_id()) == a_detail()
        assert session.store.job(job_id()) == a_job()
        assert await session.look_up(job_id(7)) is None
        (health,) = session.store.sources()
    assert (health.state, health.records, health.read_at) == (SourceState.OK, 1, clock.now())
    assert (source.polls, source.closed) == (0, 1)


async def test_a_source_that_is_down_is_noted_and_the_next_is_asked(clock: FixedClock) -> None:
    sources = [Failing(SourceMissing("a: gone"), "a"), with_detail("b")]
    async with Session(sources, clock, strict=True) as session:
        assert await session.look_up(job_id()) == a_detail()
        down, up = session.store.sources()
    assert (down.state, down.error) == (SourceState.DOWN, "a: gone")
    assert up.state is SourceState.OK


async def test_a_record_that_is_torn_does_not_take_its_source_down(clock: FixedClock) -> None:
    async with Session([Failing(SourceError("a/x.json: torn"), "a")], clock) as session:
        assert await session.look_up(job_id()) is None
        (health,) = session.store.sources()
    assert (health.state, health.skipped) == (SourceState.PARTIAL, 1)
    assert (health.last_skips[0].where, health.last_skips[0].why) == (job_id(), "a/x.json: torn")


async def test_a_source_can_be_added_later_and_kinds_be_chosen(clock: FixedClock) -> None:
    db = ScriptedSource([batch(a_job(1))], name="db")
    log = ScriptedSource([batch(a_job(2))], name="log", kind="logfile")
    async with Session([db], clock) as session:
        session.add(log)
        await session.catch_up({"logfile"})
        assert (db.polls, log.polls) == (0, 1)
        await session.catch_up()
        assert set(session.store.jobs) == {job_id(1), job_id(2)}
    assert (db.closed, log.closed) == (1, 1)


async def test_a_session_leaves_no_thread_that_read_run_directories(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    async with Session([]) as session:
        assert session.desk() is session.desk()
        await session.desk().list_files(str(tmp_path))
        assert set(threading.enumerate()) > before
    await wait_until(lambda: set(threading.enumerate()) <= before)
