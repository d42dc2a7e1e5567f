"""The history of a job: a run beside the last good one, fact by fact and step by step."""

import asyncio
from typing import Any

import pytest

from jobtui.backends.job_reader import SessionJobReader
from jobtui.model.clock import Nanos
from jobtui.model.ops import OpStatus
from jobtui.screens import job_history
from jobtui.screens.job import JobScreen
from jobtui.screens.text import ReadingScreen
from jobtui.session import Session
from jobtui.widgets.filter_input import FilterInput
from jobtui.widgets.text_pane import TextPane
from tests.builders import a_step, ago, an_op
from tests.screens.scene import FAILED, THREE, Scene, see, with_runs
from tests.waiting import wait_until
from tests.widgets.widget_app import press


async def test_steps_are_compared_and_the_first_difference_is_marked() -> None:
    scene = with_runs(Scene(open_at=FAILED), *THREE)
    steps = [
        a_step("request", -300_000),
        a_step("op created", -299_999),
        a_step("status completed", -299_990),
    ]
    begin, end = ago(300_000), ago(299_990)
    good = an_op("run", steps, jid=FAILED, created_at=begin, ended_at=end, status=OpStatus.ENDED)
    scene.correlation.put(FAILED, good)
    async with scene.app.run_test(size=(120, 30)) as pilot:
        await see(scene.app, pilot, "run 3 of 3")
        lines = await press(pilot, "h", until="first difference")
        (parts,) = (line for line in lines if "first difference" in line)
        assert parts.split()[:2] == ["server", "api_runSimulation"]
        await press(pilot, "tab", "G", until="status completed")
        about = next(pane for pane in scene.app.screen.query(TextPane) if pane.is_active)
        assert about.top > 0
        await press(pilot, "tab", "k", "k", until="run 1 of 3")


async def test_a_late_comparison_takes_no_keys_from_a_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    gate, compared = asyncio.Event(), job_history._compared
    gate.set()

    async def late(*about: Any) -> Any:
        await gate.wait()
        return await compared(*about)

    monkeypatch.setattr(job_history, "_compared", late)
    scene = with_runs(Scene(open_at=FAILED), *THREE)
    async with scene.app.run_test(size=(120, 30)) as pilot:
        await see(scene.app, pilot, "run 3 of 3")
        await press(pilot, "d", until=ReadingScreen)
        await press(pilot, "escape", until=JobScreen)
        gate.clear()
        await pilot.press("d", "colon", *"EP")
        gate.set()
        await wait_until(lambda: all(one.group != "compare" for one in scene.app.workers), pilot)
        await pilot.press(*"RS")
        assert scene.app.screen.query_one(FilterInput).value == "EPRS"


async def test_logs_are_read_back_to_the_good_run_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    reached: list[Nanos] = []

    async def reach_back(self: Session, at: Nanos, progress: object) -> bool:
        reached.append(at)
        return True

    monkeypatch.setattr(Session, "reach_back", reach_back)
    monkeypatch.setattr(SessionJobReader, "begins_after", lambda self, at: at < ago(200_000))
    scene = with_runs(Scene(open_at=FAILED), *THREE)
    async with scene.app.run_test(size=(120, 40)) as pilot:
        await see(scene.app, pilot, "run 3 of 3")
        await press(pilot, "h", until="No op of run 1 in what was read of the logs.")
        await see(scene.app, pilot, "reads them back to run 1")
        assert reached == []
        await press(pilot, "enter", until=lambda: reached)
        assert reached[0] < ago(300_000)
