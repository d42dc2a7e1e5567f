"""What went wrong, grouped: the screen, what it opens, and that it never holds up the keys."""

import pytest
from textual.pilot import Pilot

from jobtui.model.jobs import Job, JobStatus
from jobtui.screens.choices import ChoosingScreen
from jobtui.screens.job import JobScreen
from tests.builders import a_job, ago, job_id
from tests.fakes import batch
from tests.screens.scene import Scene, see
from tests.waiting import wait_until
from tests.widgets.widget_app import press, screen_text


def failed(number: int, ago_s: float, error: str = "no such element: crystal3", **fields: object) -> Job:
    return a_job(number, status=JobStatus.FAILED, error=error, ended_at=ago(ago_s), **fields)


JOBS = (
    *(failed(number, 600 - number, host="v2", owner=f"user{number:04d}") for number in range(1, 6)),
    failed(7, 30, error="out of coffee", host="v4"),
    failed(8, 2 * 86_400, error="long ago"),
    *(a_job(number, status=JobStatus.COMPLETED, ended_at=ago(60), host="v1") for number in range(10, 30)),
)


async def at_incidents(scene: Scene, pilot: Pilot[None]) -> list[str]:
    await wait_until(scene.is_read, pilot)
    await pilot.press("7")
    return await see(scene.app, pilot, "jobs of the last")


async def test_groups_with_what_they_share_open_at_their_first_job_or_list_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("jobtui.screens.incidents.RENEW_S", 0.0)
    scene = Scene([batch(*JOBS)])
    async with scene.app.run_test(size=(120, 40)) as pilot:
        lines = await at_incidents(scene, pilot)
        text = "\n".join(lines)
        assert "1 group, 1 single failure · 26 jobs of the last 24 h" in text
        (group,) = (line for line in lines if line.strip().startswith("5 "))
        assert "program_failed" in group
        assert "host v2" in group
        assert "long ago" not in text
        assert f"first    {job_id(1)}" in text
        await press(pilot, "o", until=ChoosingScreen)
        assert sum("no such element" in line for line in screen_text(scene.app)) == 5
        await press(pilot, "j", "enter", until=JobScreen)
        assert str(job_id(2)) in screen_text(scene.app)[0]
        await press(pilot, "escape", "enter", until=str(job_id(1)))
        await press(pilot, "escape", "w", until="27 jobs of the last 7 days")
        scene.db.add(batch(failed(40, 5, error="disk full")))
        await see(scene.app, pilot, "28 jobs of the last 7 days")


async def test_while_sources_are_read_it_says_so_and_looks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobtui.screens.incidents.EARLY_S", 0.0)
    scene = Scene([batch(*JOBS, more=True), batch(failed(40, 10, error="late one"))])
    scene.db.hold()
    async with scene.app.run_test(size=(120, 40)) as pilot:
        await press(pilot, "7", until="not all is read yet")
        scene.db.go_on()
        await see(scene.app, pilot, "late one")
        await wait_until(lambda: "not all is read" not in "\n".join(screen_text(scene.app)), pilot)
