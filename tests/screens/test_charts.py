"""The charts of the dashboard: what counts, what changes, filters, pause, keys."""

import pytest

from jobtui.backends.base import Batch
from jobtui.model.changes import Allocation, StateChange
from jobtui.model.ids import JobId
from tests.builders import a_job, ago
from tests.fakes import batch
from tests.screens.scene import Scene, read
from tests.waiting import wait_until
from tests.widgets.widget_app import press, text

SIZE = (120, 30)


@pytest.fixture(autouse=True)
def no_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobtui.screens.charts.REST_S", 0.0)
    monkeypatch.setattr("jobtui.screens.charts.RESTS", 0)


async def test_the_charts_count_running_jobs_and_go_on() -> None:
    async with read(size=SIZE) as (scene, pilot):
        await press(pilot, "4", until="3 jobs running, 2 jobs waiting")
        scene.store.apply("/srv/db", batch(a_job(77, started_at=ago(5), queued_at=ago(6))))
        await wait_until(lambda: "4 jobs running, 2 jobs waiting" in text(scene.app), pilot)


async def test_balsam_shows_nodes_over_those_that_are_there() -> None:
    job = JobId("balsam/1")
    changes = (
        StateChange(1, job, ago(100), "READY", "PREPROCESSED", "/srv/db"),
        StateChange(2, job, ago(50), "PREPROCESSED", "RUNNING", "/srv/db", 3.0),
    )
    given = Allocation(id=1, source="/srv/db", site_id=1, state="running", nodes=4, start_at=ago(80))
    scene = Scene([Batch(cursor="1", changes=changes, allocations=(given,), count=2)])
    async with read(scene, size=SIZE) as (_, pilot):
        await press(pilot, "4", until="3 of 4 nodes busy, 1 idle, 0 jobs waiting")
        await wait_until(lambda: "┄ nodes available" in text(scene.app), pilot)  # drawn in a thread
