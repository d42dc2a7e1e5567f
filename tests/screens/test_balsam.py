"""A Balsam server on the screens: its jobs, one of them from its events, its sites and allocations."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from textual.pilot import Pilot

from jobtui.app import JobtuiApp
from jobtui.backends.balsam.client import BalsamClient
from jobtui.backends.balsam.source import Balsam
from jobtui.model.clock import FixedClock
from jobtui.model.ids import JobId
from jobtui.session import Session
from tests.analysis.balsam_data import nanos
from tests.balsam_server import TOKEN, RecordedBalsam
from tests.carried import carried, timed
from tests.waiting import wait_until
from tests.widgets.widget_app import press, screen_text

NOW = nanos("2026-11-20T19:30:00")


@asynccontextmanager
async def dashboard(balsam: RecordedBalsam, open_at: JobId | None = None) -> AsyncIterator[Pilot[None]]:
    clock = FixedClock(NOW)
    client = carried(BalsamClient("http://balsam.test", lambda: TOKEN), balsam.transport)
    source = timed(Balsam(client, owner="operator"), clock)
    async with Session([source], clock) as session:
        app = JobtuiApp(session, open_at)
        async with app.run_test(size=(120, 40)) as pilot:
            await wait_until(lambda: len(session.store.jobs) == len(balsam.jobs), pilot)
            yield pilot


def shows(pilot: Pilot[None], *words: str) -> bool:
    text = "\n".join(screen_text(pilot.app))
    return all(word in text for word in words)


async def test_of_a_job_without_events_no_log_is_said_to_be_missing() -> None:
    balsam = RecordedBalsam()
    balsam.events.clear()
    async with dashboard(balsam, open_at=JobId("balsam/99")) as pilot:
        await wait_until(lambda: shows(pilot, "balsam has told of no change of its state"), pilot)
        assert not shows(pilot, "No log is read")


async def test_a_job_is_told_by_its_events() -> None:
    balsam = RecordedBalsam()
    failed = next(row for row in balsam.events if row["to_state"] == "RUN_ERROR")
    async with dashboard(balsam, JobId(f"balsam/{failed['job_id']}")) as pilot:
        await wait_until(lambda: shows(pilot, "RUN_ERROR"), pilot)
        assert shows(pilot, "balsam", "site", "launcher", "PREPROCESSED")
        assert not shows(pilot, "supervisor")
        await press(pilot, "r", until=lambda: shows(pilot, "workdir", "tags "))
        await press(pilot, "h", until=lambda: shows(pilot, f"return code {failed['data']['returncode']}"))


async def test_an_event_that_comes_is_a_step_more() -> None:
    balsam = RecordedBalsam()
    row = next(row for row in balsam.jobs if row["state"] == "RUNNING")
    async with dashboard(balsam, open_at=JobId(f"balsam/{row['id']}")) as pilot:
        await wait_until(lambda: shows(pilot, "RUNNING"), pilot)
        row["state"], row["last_update"] = "RUN_DONE", "2026-11-20T19:29:59+00:00"
        balsam.events.append(
            {
                "id": 99_999, "job_id": row["id"], "timestamp": "2026-11-20T19:29:58",
                "from_state": "RUNNING", "to_state": "RUN_DONE", "data": {},
            }
        )  # fmt: skip
        await wait_until(lambda: shows(pilot, "RUN_DONE"), pilot)


async def test_its_jobs_sites_and_allocations() -> None:
    async with dashboard(RecordedBalsam()) as pilot:
        await wait_until(lambda: shows(pilot, "post", "running", "parent job", "demo-"), pilot)
        await press(pilot, "8", until=lambda: shows(pilot, "demo-site", "running"))
        await wait_until(lambda: shows(pilot, "~", "submit_failed", "finished", "allocations"), pilot)
        await press(pilot, "escape", until=lambda: not shows(pilot, "SITES"))
