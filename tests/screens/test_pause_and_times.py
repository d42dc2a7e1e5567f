"""The dashboard paused, and times as the user wants them."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from jobtui.app import JobtuiApp
from jobtui.model.health import SourceMissing
from jobtui.model.ids import OpPrefix
from jobtui.model.jobs import JobStatus
from jobtui.render.text import Zone
from jobtui.widgets.job_table import JobTable
from tests.builders import a_job, a_step, an_op, job_id
from tests.fakes import batch
from tests.screens.captured import on_logs, until
from tests.screens.scene import FAILED, Scene, jobs, on_jobs, read
from tests.waiting import wait_until
from tests.widgets.widget_app import press, screen_text, text, text_of


@pytest.fixture(autouse=True)
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "XYZ-2")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
    Zone.is_local = False


def top(app: JobtuiApp) -> str:
    return "\n".join(screen_text(app)[:3])


async def test_a_pause_holds_rows_counts_and_clock_and_says_what_waits() -> None:
    async with on_jobs() as (scene, pilot, table):
        await press(pilot, "p", until=lambda: "paused 21:00:00Z, 0 changes waiting" in top(scene.app))
        await pilot.press("j", "j")
        assert table.cursor == 2
        before = text_of(table)
        scene.clock.advance(600)
        scene.db.add(batch(a_job(4, status=JobStatus.FAILED, error="out of memory"), gone=[job_id(3)]))
        await wait_until(lambda: "2 changes waiting" in top(scene.app), pilot)
        assert text_of(table) == before
        assert "21:00:00Z" in screen_text(scene.app)[1]
        await press(pilot, "p", until=lambda: "out of memory" in "\n".join(text_of(table)))
        assert len(table.rows.jobs) == len(jobs()) - 1
        assert "paused" not in top(scene.app)
        await wait_until(lambda: "21:10:00Z" in top(scene.app), pilot)


async def test_a_key_goes_from_utc_to_the_zone_here_on_every_screen() -> None:
    async with read() as (scene, pilot):
        for key in ("1", "6", "question_mark"):
            await press(pilot, key, until=lambda: "21:00:00Z" in top(scene.app))
            await press(pilot, "u", until=lambda: "23:00:00 XYZ" in top(scene.app))
            await press(pilot, "u", until=lambda: "21:00:00Z" in top(scene.app))


async def test_a_time_in_a_filter_is_of_the_zone_that_is_shown() -> None:
    async with read() as (scene, pilot):
        table = scene.app.screen.query_one(JobTable)
        await press(pilot, "u", until=lambda: "23:00:00 XYZ" in top(scene.app))
        await press(pilot, "slash", *"queued<22:57", "enter", until=lambda: len(table.rows) == 1)


async def test_ops_steps_and_sources_stay_in_a_pause() -> None:
    scene = Scene(open_at=FAILED)
    async with scene.app.run_test(size=(120, 40)) as pilot:
        await wait_until(lambda: scene.is_read() and "no such element" in top(scene.app), pilot)
        await wait_until(lambda: "status error" in text(scene.app), pilot)
        await press(pilot, "p", until=lambda: "paused" in top(scene.app))
        before = screen_text(scene.app)
        late = an_op("run", jid=FAILED, op=OpPrefix("l8te"), steps=[a_step("came too late", 50)])
        scene.correlation.put(FAILED, late)
        scene.clock.advance(90)
        scene.log.add(SourceMissing("gone"))
        scene.db.add(batch(a_job(id=FAILED, status=JobStatus.COMPLETED, name="done by now")))
        await wait_until(lambda: "1 change waiting" in top(scene.app), pilot)
        await pilot.press("o")
        await pilot.pause()
        assert screen_text(scene.app)[1:] == before[1:]
        await press(pilot, "6", until="supervisor.log")
        assert "gone" not in text(scene.app)
        await press(pilot, "escape", "p", until="l8te")


async def test_a_log_stays_in_a_pause_and_moves_on_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_text("line 1\nline 2\n")
    async with on_logs(path, size=(80, 24)) as (app, pilot):
        await until(app, pilot, "line 2", "following")
        await press(pilot, "p", until="paused")
        with path.open("a") as file:
            file.write("line 3\n")
        await wait_until(lambda: app._session.store.sources()[0].records == 3, pilot)
        await press(pilot, "k", "G", "j", "6", "2", until="line 2")
        assert "line 3" not in text(app)
        await press(pilot, "p", until="line 3")
