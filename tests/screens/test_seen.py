"""What went wrong lately, what was seen before, and the nodes of a cluster."""

from pathlib import Path

import pytest
from textual.pilot import Pilot

from jobtui.memory.database import Memory
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.health import Faults
from jobtui.model.jobs import Job, JobStatus
from jobtui.model.memory import Deviation, Overview
from jobtui.recording.database import RecordingError
from jobtui.screens.choices import ChoosingScreen
from jobtui.screens.incidents import SeenScreen
from jobtui.screens.job import JobScreen
from jobtui.screens.nodes import NODES_EVERY_S, NodesScreen
from jobtui.widgets.record_list import RecordTable
from tests.builders import a_job, ago, job_id
from tests.conftest import NOW
from tests.fakes import batch
from tests.memory.runs import a_run, written
from tests.screens.scene import Scene, read, see
from tests.waiting import wait_until
from tests.widgets.widget_app import press, screen_text, text


def remembered(path: Path) -> Memory:
    begin = NOW // SECOND - 20_758 * 86_400 - 5 * 86_400
    bad = [a_run(begin + at, "no such element: crystal3", host="v7") for at in range(41)]
    other = [a_run(begin + 50 + at, "out of coffee") for at in range(3)]
    return written(path / "memory.jobtui", *bad, *other, *(a_run(begin + 100 + at) for at in range(400)))


async def test_failures_are_listed_filtered_and_copied(tmp_path: Path) -> None:
    scene = Scene()
    scene.app._shared.overview = remembered(tmp_path).overview
    async with read(scene) as (_, pilot):
        await press(pilot, "colon", *"seen", "enter", until=SeenScreen)
        lines = await see(scene.app, pilot, "no such element: crystalN")
        (row,) = (line for line in lines if "crystalN" in line)
        assert row.split()[0] == "41"
        assert "on host v7" in row
        assert "2 failures" in "\n".join(lines)
        assert "host v7: 100 % of 41 failed" in "\n".join(lines)
        await press(pilot, "slash", *"coffee", "enter", until="/coffee")
        assert "crystalN" not in "\n".join(screen_text(scene.app))
        await press(pilot, "escape", "s", "s", until="by trend")


@pytest.mark.parametrize(
    ("answer", "said"),
    [(None, "Nothing is remembered"), (RecordingError("memory.jobtui: damaged"), "memory.jobtui: damaged")],
)
async def test_it_says_why_there_is_nothing(answer: Exception | None, said: str) -> None:
    def asked(now: Nanos) -> Overview:
        assert answer is not None
        raise answer

    scene = Scene()
    scene.app._shared.overview = asked if answer is not None else None
    async with read(scene) as (_, pilot):
        await press(pilot, "colon", *"seen", "enter", until=SeenScreen)
        await see(scene.app, pilot, said)


async def test_a_fault_in_asking_is_counted_and_the_screen_stays(expected_faults: Faults) -> None:
    def asked(now: Nanos) -> Overview:
        raise LookupError("hunter2")

    scene = Scene()
    scene.app._shared.overview = asked
    async with read(scene) as (_, pilot):
        await press(pilot, "colon", *"seen", "enter", until=SeenScreen)
        await wait_until(lambda: expected_faults, pilot)
        assert {fault.stage for fault in expected_faults.all()} >= {"asking the memory"}
        await see(scene.app, pilot, "Nothing is remembered")


async def test_sites_that_deviate_are_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jobtui.screens.alarm.LOOK_S", 0.02)
    monkeypatch.setattr("jobtui.screens.alarm.SITES_S", 0.0)
    asked = 0

    def overview(now: Nanos) -> Overview:
        nonlocal asked
        asked += 1
        sites = [
            Deviation("host", host, "failures", Nanos(NOW - SECOND), 0.31, 0.04) for host in ("v7", "v8")
        ]
        return Overview(sites=tuple(sites[: 1 + asked % 2]))

    scene = Scene()
    scene.app._shared.overview = overview
    told: list[str] = []
    monkeypatch.setattr(scene.app, "notify", lambda words, **how: told.append(words))
    async with read(scene) as (_, pilot):
        await wait_until(lambda: asked > 5, pilot)
    (words,) = told
    assert "v7" in words
    assert "usually 4 %" in words


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
        await see(scene.app, pilot, f"first    {job_id(1)}")
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


NAMED = ("colon", *"nodes", "enter")


def names(scene: Scene) -> list[str]:
    return [one.node.name for one in scene.app.screen.query_one(RecordTable).records]


async def test_clusters_are_asked_while_it_is_open_only() -> None:
    asked: list[float | None] = []
    async with read(Scene()) as (scene, pilot):
        scene.app._shared.ask_for_nodes = asked.append
        await press(pilot, *NAMED, until=NodesScreen)
        await wait_until(lambda: asked[-1:] == [NODES_EVERY_S], pilot)
        assert "no cluster has told of its nodes" in text(scene.app)
        await pilot.press("escape")
        await wait_until(lambda: asked[-1:] == [None], pilot)
