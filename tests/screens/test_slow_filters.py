"""Filters on very many jobs: typing stays quick, and what is slow says so and waits to be asked for."""

from time import perf_counter

import pytest
from textual.pilot import Pilot

from jobtui.analysis.filter import FilterContext
from jobtui.model.ids import JobId
from jobtui.screens import jobs as jobs_screen
from jobtui.screens.job_filter import JobFilter
from jobtui.widgets.filter_bar import FilterBar, MistakeLine
from jobtui.widgets.filter_input import FilterInput
from jobtui.widgets.job_table import JobTable
from jobtui.widgets.rule_line import RuleLine
from tests.builders import a_job
from tests.conftest import NOW
from tests.fakes import batch
from tests.screens.scene import Scene
from tests.waiting import wait_until
from tests.widgets.stage import text_of

MANY = tuple(
    a_job(id=JobId(f"u{at:07}-s{at:07}-animation"), name=f"Beamline {at} survey of things")
    for at in range(20_000)
)


async def opened(scene: Scene, pilot: Pilot[None]) -> JobTable:
    table = scene.app.screen.query_one(JobTable)
    await wait_until(lambda: table.total == len(MANY) and not table.is_sorting, pilot)
    await pilot.press("slash")
    await wait_until(lambda: scene.app.screen.query(FilterInput), pilot)
    field = scene.app.screen.query_one(FilterInput)
    await wait_until(lambda: field.has_focus, pilot)
    return table


def test_what_a_filter_costs_grows_with_what_it_does() -> None:
    chosen = JobFilter(lambda: NOW, FilterContext)
    known = {job.id: job for job in MANY}
    assert 0.0 <= chosen.cost_s("status:failed", known) < chosen.cost_s("bem sur hng", known)
    assert chosen.cost_s("status:", known) == 0.0
    assert chosen.cost_s("x", {}) == 0.0


async def test_a_slow_filter_says_so_and_waits_for_enter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs_screen, "SLOW_S", 0.01)
    monkeypatch.setattr(jobs_screen, "QUICK_S", 0.001)
    scene = Scene([batch(*MANY)])
    async with scene.app.run_test(size=(120, 40)) as pilot:
        table = await opened(scene, pilot)
        await pilot.press(*"bem sur")
        note = scene.app.screen.query_one(FilterBar).query_one(MistakeLine)
        await wait_until(lambda: "looking at every job takes" in text_of(note)[0], pilot)
        assert table.count == len(MANY)
        rule = next(line for line in scene.app.screen.query(RuleLine) if "jobs" in text_of(line)[0])
        await pilot.press("enter")
        await wait_until(lambda: not scene.app.screen.query(FilterBar), pilot)
        await wait_until(lambda: not table.is_sorting and "/bem sur" in text_of(rule)[0], pilot)


async def test_a_filter_that_is_not_quick_is_tried_when_the_keys_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(jobs_screen, "QUICK_S", 0.0)
    scene = Scene([batch(*MANY)])
    async with scene.app.run_test(size=(120, 40)) as pilot:
        table = await opened(scene, pilot)
        await pilot.press(*"1999")
        await wait_until(lambda: table.count == 12, pilot)


async def test_keys_are_answered_while_jobs_are_filtered() -> None:
    scene = Scene([batch(*MANY)])
    async with scene.app.run_test(size=(120, 40)) as pilot:
        await opened(scene, pilot)
        field = scene.app.screen.query_one(FilterInput)
        slowest = 0.0
        for key in "beamline 12":
            begin = perf_counter()
            await pilot.press("space" if key == " " else key)
            slowest = max(slowest, perf_counter() - begin)
        assert field.value == "beamline 12"
        assert slowest < 1.0, "a key waited for a filter"
