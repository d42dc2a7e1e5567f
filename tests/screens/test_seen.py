"""Failures that were seen before, on a screen of their own, in the why of a job, and one alarm for sites."""

from pathlib import Path

import pytest

from jobtui.memory.database import Memory
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.faults import Faults
from jobtui.model.memory import Deviation, Overview
from jobtui.recording.database import RecordingError
from jobtui.screens.seen import SeenScreen
from tests.conftest import NOW
from tests.memory.runs import a_run, written
from tests.screens.scene import Scene, read, see
from tests.waiting import wait_until
from tests.widgets.widget_app import press, screen_text


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
