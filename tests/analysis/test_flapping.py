"""Agents that die again and again are told from those that die once, or are stopped."""

import json

import pytest

from jobtui.analysis.explain.native import Beside
from jobtui.analysis.explain.survey import samples
from jobtui.analysis.flapping import FALLS, WITHIN_S, Flaps
from jobtui.analysis.incidents import incidents
from jobtui.backends.sirepo_record import read_detail
from jobtui.demo.agents import SIGKILL
from jobtui.demo.incidents import HEAVY, Stage, good_plan
from jobtui.demo.settings import DriverName, Settings
from jobtui.demo.world import SUPERVISOR_LOG, World
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import JobId
from jobtui.model.ops import Agent
from jobtui.model.verdicts import Code
from tests.analysis.captured import correlate
from tests.builders import ago, an_agent
from tests.conftest import NOW


def fallen(*seconds: float, uid: str = "EPRSqtUW", host: str = "v3.example.org") -> Agent:
    return an_agent(uid=uid, host=host, falls=tuple(ago(one) for one in seconds))


@pytest.mark.parametrize(
    ("agents", "words"),
    [
        ([fallen(10, 20)], None),
        ([fallen(10, 200, 400)], "the parallel agent of user EPRSqtUW ended 3 times within 6m30s"),
        ([fallen(10, 20, WITHIN_S + 1)], None),
        # today's Docker: each start is another agent
        (
            [fallen(10), fallen(20), fallen(30)],
            "the parallel agent of user EPRSqtUW ended 3 times within 20s",
        ),
        (
            [fallen(10, 20), *(fallen(5, 60, uid=f"u{n}serabc") for n in (1, 2))],
            "agents on v3.example.org ended 6 times within 55s",
        ),
        ([fallen(10, 20), *(fallen(5, 60, uid=f"u{n}serabc", host="v9") for n in (1, 2))], None),
    ],
)
def test_so_many_ends_in_so_short_a_time(agents: list[Agent], words: str | None) -> None:
    found = Flaps(agents).around(agents[0], NOW)
    assert (found.words if found is not None else None) == words


def test_what_ended_later_does_not_count() -> None:
    agent = fallen(10, 20, 30)
    assert Flaps([agent]).around(agent, ago(25)) is None


async def dies_again_and_again(stage: Stage, times: int) -> None:
    for number in range(times):
        simulation = await stage.simulation(HEAVY, f"beamline {number}")
        answer = await stage.browser.start(simulation, good_plan(simulation.model, 900))
        answer = await stage.browser.watch(simulation, answer, for_s=10 + 3 * number)
        for agent in list(stage.world.agents):
            if (agent.identity.uid, agent.identity.kind) == (stage.user.uid, "parallel"):
                agent.die(SIGKILL)
        await stage.browser.watch(simulation, answer)


@pytest.mark.parametrize("driver", list(DriverName))
@pytest.mark.parametrize("times", [1, FALLS + 1])
def test_the_jobs_of_an_agent_that_flaps_are_one_incident(driver: DriverName, times: int) -> None:
    world = World(5, Settings(users=0, driver=driver))
    world.start()
    stage = Stage(world, world.add_user())
    world.play(lambda: dies_again_and_again(stage, times))
    world.advance(Nanos(world.kernel.now + 300 * SECOND))
    now = world.kernel.now
    jobs = [
        read_detail(json.dumps(record).encode(), JobId(jid), 0, "db", "record").job
        for jid, record in world.records().items()
    ]
    knows = correlate({SUPERVISOR_LOG: world.log(SUPERVISOR_LOG)})
    explained = list(samples(knows, jobs, [], now, lambda job: Beside()))
    assert {sample.verdict.code for sample in explained} == {Code.AGENT_LOST}
    flaps = [sample for sample in explained if "It flaps" in sample.verdict.sentence]
    assert len(flaps) == max(0, times - FALLS + 1)
    if flaps:
        found = incidents(explained)
        assert any(name == "flapping" for group in found.groups for name, _, _ in group.shared)


def test_agents_that_a_supervisor_stops_do_not_flap() -> None:
    world = World(5, Settings(users=3, ops=60, restarts=0.3, tempo=0.2))
    world.start()
    stage = Stage(world, world.add_user())

    async def restarted() -> None:
        for _ in range(4):
            simulation = await stage.simulation(HEAVY, "ring")
            await stage.browser.start(simulation, good_plan(simulation.model, 900))
            await stage.wait(10)
            await world.restart()

    world.play(restarted)
    world.advance(Nanos(world.kernel.now + 200 * SECOND))
    knows = correlate({SUPERVISOR_LOG: world.log(SUPERVISOR_LOG)})
    assert knows.agents()
    assert not any(agent.falls for agent in knows.agents())
