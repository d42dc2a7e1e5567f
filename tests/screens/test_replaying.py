"""The dashboard on a recording: all of it goes through time together."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from jobtui.app import JobtuiApp
from jobtui.backends.base import Batch
from jobtui.backends.sirepo.source import SirepoDb
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.jobs import Job, JobStatus
from jobtui.recording.database import About, What
from jobtui.recording.recorder import RecordingWriter
from jobtui.recording.replay import RecordingReplay
from jobtui.session import Session
from jobtui.widgets.job_table import JobTable
from tests.builders import a_job
from tests.waiting import wait_until
from tests.widgets.widget_app import press, text

BEGIN = Nanos(1_795_206_870 * SECOND)  # 2026-11-20 20:34:30 UTC
END_S = 600


def at(second: float) -> Nanos:
    return Nanos(round(BEGIN + second * SECOND))


def a_run(second: float, status: JobStatus) -> tuple[Nanos, Job]:
    """The job as it was from a second on."""
    return at(second), a_job(
        1, name="the one", status=status, native_status=status.value, updated_at=at(second)
    )


@pytest.fixture
def replay(tmp_path: Path) -> Iterator[RecordingReplay]:
    """A job that waits, runs, fails; beside it one that is done all the time."""
    about = About(version="0", made_at=at(END_S), at=at(END_S), config=None, job_id="x")
    writer = RecordingWriter(tmp_path / "r", about, 1 << 20)
    with writer.together():
        writer.put("sirepo_db", "/srv/db", What.BATCH, Batch(jobs=(a_job(2, name="other"),)), at(0))
        for when, job in (
            a_run(60, JobStatus.PENDING), a_run(180, JobStatus.RUNNING), a_run(480, JobStatus.FAILED)
        ):  # fmt: skip
            writer.put("sirepo_db", "/srv/db", What.BATCH, Batch(jobs=(job,)), when)
    writer.close()
    opened = RecordingReplay(tmp_path / "r")
    yield opened
    opened.close()


def shown(app: JobtuiApp) -> dict[str | None, JobStatus]:
    return {job.name: job.status for job in app.screen.query_one(JobTable).visible_jobs}


def shows(app: JobtuiApp, status: JobStatus | None) -> Callable[[], bool]:
    """Whether the job is shown so, None for not at all."""
    return lambda: "other" in shown(app) and shown(app).get("the one") is status


@asynccontextmanager
async def at_the_end(replay: RecordingReplay) -> AsyncIterator[tuple[JobtuiApp, Pilot[None]]]:
    app = JobtuiApp(Session([SirepoDb(Path("/srv/db"))], replay.clock, replay=replay))
    async with app.run_test(size=(120, 40)) as pilot:
        await wait_until(shows(app, JobStatus.FAILED), pilot)
        yield app, pilot


async def test_it_opens_at_the_end_and_goes_back_and_on(replay: RecordingReplay) -> None:
    async with at_the_end(replay) as (app, pilot):
        assert "replay ■ 20:44:30Z of 20:34:30 to 20:44:30" in text(app)
        await press(pilot, "comma", "comma", "comma", until=shows(app, JobStatus.RUNNING))
        assert "20:41:30Z of" in text(app)
        await press(pilot, "less_than_sign", until=lambda: replay.clock.now() == at(180))
        await press(pilot, "less_than_sign", until=shows(app, JobStatus.PENDING))
        assert replay.clock.now() == at(60)
        await press(pilot, "less_than_sign", until=shows(app, None))
        await pilot.press("less_than_sign", "comma")
        await pilot.pause()
        assert replay.clock.now() == at(0)  # there is nothing before
        await press(pilot, "greater_than_sign", until=shows(app, JobStatus.PENDING))
        await press(pilot, "full_stop", "full_stop", until=shows(app, JobStatus.RUNNING))
        assert replay.clock.now() == at(180)


async def test_a_time_can_be_typed_and_it_plays_to_the_end_and_stands(replay: RecordingReplay) -> None:
    async with at_the_end(replay) as (app, pilot):
        await press(pilot, "colon", *"at 20:38", "enter", until=shows(app, JobStatus.RUNNING))
        assert replay.clock.now() == at(210)
        await press(pilot, "colon", *"at noon", "enter", until="noon is no time")
        assert replay.clock.now() == at(210)
        await press(pilot, "escape", "colon", *"at 20:36", "enter", until=shows(app, JobStatus.PENDING))
        await press(pilot, "p", "p", "p", "p", until="▶ 600x")
        await wait_until(shows(app, JobStatus.FAILED), pilot)
        await wait_until(lambda: "replay ■ 20:44:30Z" in text(app), pilot)
        assert replay.clock.now() == at(END_S)


async def test_other_screens_are_at_the_same_time(replay: RecordingReplay) -> None:
    async with at_the_end(replay) as (app, pilot):
        await press(pilot, "6", "comma", "comma", "comma", until="replay ■ 20:41:30Z")
        await press(pilot, "1", until=shows(app, JobStatus.RUNNING))
        await pilot.resize_terminal(40, 10)
        await wait_until(lambda: "replay ■ 20:41:30Z" in text(app), pilot)
