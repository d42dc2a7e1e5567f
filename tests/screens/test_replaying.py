"""The dashboard on a recording: all of it goes through time together."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot

from jobtui.app import JobtuiApp
from jobtui.backends.base import Batch
from jobtui.backends.recording.codec import What
from jobtui.backends.recording.stage import TapeStage
from jobtui.backends.recording.tape import About
from jobtui.backends.recording.writing import TapeWriter
from jobtui.backends.sirepo_db import SirepoDb
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.jobs import Job, JobStatus
from jobtui.session import Session
from jobtui.widgets.job_table import JobTable
from tests.builders import a_job
from tests.waiting import wait_until
from tests.widgets.stage import screen_text

BEGIN = Nanos(1_795_206_870 * SECOND)  # 2026-11-20 20:34:30 UTC
END_S = 600


def at(second: float) -> Nanos:
    """So long after the beginning."""
    return Nanos(round(BEGIN + second * SECOND))


def a_run(second: float, status: JobStatus) -> tuple[Nanos, Job]:
    """The job as it was from a second on."""
    return at(second), a_job(
        1, name="the one", status=status, native_status=status.value, updated_at=at(second)
    )


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[TapeStage]:
    """A job that waits, runs, fails; beside it one that is done all the time."""
    about = About(version="0", made_at=at(END_S), at=at(END_S), config=None, job_id="x")
    writer = TapeWriter(tmp_path / "r", about, 1 << 20)
    with writer.together():
        writer.put(
            "sirepo_db", "/srv/db", What.BATCH, Batch(cursor="", jobs=(a_job(2, name="other"),)), at(0)
        )
        for when, job in (
            a_run(60, JobStatus.PENDING), a_run(180, JobStatus.RUNNING), a_run(480, JobStatus.FAILED)
        ):  # fmt: skip
            writer.put("sirepo_db", "/srv/db", What.BATCH, Batch(cursor="", jobs=(job,)), when)
    writer.close()
    opened = TapeStage(tmp_path / "r")
    yield opened
    opened.close()


def app_on(stage: TapeStage) -> JobtuiApp:
    """The dashboard on a recording, as `replay` opens it."""
    session = Session([SirepoDb(Path("/srv/db"))], stage.clock, stage=stage)
    return JobtuiApp(session)


def shown(app: JobtuiApp) -> dict[str | None, JobStatus]:
    """The jobs in the table."""
    return {job.name: job.status for job in app.screen.query_one(JobTable).visible_jobs}


async def until(app: JobtuiApp, pilot: Pilot[None], status: JobStatus | None) -> None:
    """Wait until the job is shown so, None for not at all."""
    await wait_until(lambda: "other" in shown(app) and shown(app).get("the one") is status, pilot)


async def test_it_opens_at_the_end_and_goes_back_and_on(stage: TapeStage) -> None:
    app = app_on(stage)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(app, pilot, JobStatus.FAILED)
        assert "replay ■ 20:44:30Z of 20:34:30 to 20:44:30" in "\n".join(screen_text(app))
        await pilot.press("comma", "comma", "comma")
        await until(app, pilot, JobStatus.RUNNING)
        assert "20:41:30Z of" in "\n".join(screen_text(app))
        await pilot.press("less_than_sign")
        await wait_until(lambda: stage.clock.now() == at(180), pilot)
        await pilot.press("less_than_sign")
        await until(app, pilot, JobStatus.PENDING)
        assert stage.clock.now() == at(60)
        await pilot.press("less_than_sign")
        await until(app, pilot, None)
        await pilot.press("less_than_sign", "comma")
        await pilot.pause()
        assert stage.clock.now() == at(0)  # there is nothing before
        await pilot.press("greater_than_sign")
        await until(app, pilot, JobStatus.PENDING)
        await pilot.press("full_stop", "full_stop")
        await until(app, pilot, JobStatus.RUNNING)
        assert stage.clock.now() == at(180)


async def test_a_time_can_be_typed(stage: TapeStage) -> None:
    app = app_on(stage)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(app, pilot, JobStatus.FAILED)
        await pilot.press("colon", *"at 20:38", "enter")
        await until(app, pilot, JobStatus.RUNNING)
        assert stage.clock.now() == at(210)
        await pilot.press("colon", *"at noon", "enter")
        await wait_until(lambda: "noon is no time" in "\n".join(screen_text(app)), pilot)
        assert stage.clock.now() == at(210)


async def test_it_plays_to_the_end_and_stands(stage: TapeStage) -> None:
    app = app_on(stage)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(app, pilot, JobStatus.FAILED)
        await pilot.press("colon", *"at 20:36", "enter")
        await until(app, pilot, JobStatus.PENDING)
        await pilot.press("p", "p", "p", "p")
        await wait_until(lambda: "▶ 600x" in "\n".join(screen_text(app)), pilot)
        await until(app, pilot, JobStatus.FAILED)
        await wait_until(lambda: "replay ■ 20:44:30Z" in "\n".join(screen_text(app)), pilot)
        assert stage.clock.now() == at(END_S)


async def test_other_screens_are_at_the_same_time(stage: TapeStage) -> None:
    app = app_on(stage)
    async with app.run_test(size=(120, 40)) as pilot:
        await until(app, pilot, JobStatus.FAILED)
        await pilot.press("6", "comma", "comma", "comma")
        await wait_until(lambda: "replay ■ 20:41:30Z" in "\n".join(screen_text(app)), pilot)
        await pilot.press("1")
        await until(app, pilot, JobStatus.RUNNING)


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (40, 10)])
async def test_it_says_where_it_is_in_any_size(stage: TapeStage, size: tuple[int, int]) -> None:
    app = app_on(stage)
    async with app.run_test(size=size) as pilot:
        await wait_until(lambda: "replay ■ 20:44:30Z" in "\n".join(screen_text(app)), pilot)
