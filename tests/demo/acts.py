"""What the client of the captures provoked (their README says what each is), acted out in the simulation."""

from collections.abc import Awaitable, Callable, Mapping

import msgspec

from jobtui.demo import programs
from jobtui.demo.agents import SIGKILL
from jobtui.demo.incidents import Scenario
from jobtui.demo.programs import Ending, Plan
from jobtui.demo.site import Settings
from jobtui.demo.world import Browser, Simulation
from jobtui.model.clock import SECOND, Nanos
from tests.demo.workload import WatchedWorld

ANIMATION, REPORT = ("elegant", "animation"), ("myapp", "heightWeightReport")
LONG = Plan(duration_s=500, frames=3)
SHORT = Plan(duration_s=1.2, frames=10)
BAD = msgspec.structs.replace(SHORT, ending=Ending.RAISES, error="a big ugly error")

Act = Callable[[Scenario], Awaitable[None]]


async def ok(scenario: Scenario) -> None:
    await _whole(scenario, REPORT, SHORT)


async def anim(scenario: Scenario) -> None:
    simulation = await scenario.simulation(ANIMATION, "anim")
    answer = await _run(scenario.browser, simulation, SHORT)
    for number in range(3):
        await scenario.browser.frame(simulation, number, answer)


async def error(scenario: Scenario) -> None:
    await _whole(scenario, REPORT, BAD)


async def oom(scenario: Scenario) -> None:
    await _whole(scenario, REPORT, msgspec.structs.replace(BAD, ending=Ending.KILLED, error=programs.KILLED))


async def nomodel(scenario: Scenario) -> None:
    await _whole(scenario, REPORT, msgspec.structs.replace(BAD, ending=Ending.PREPARE_FAILS))


async def timeout(scenario: Scenario) -> None:
    await _whole(scenario, REPORT, LONG)


async def cancel(scenario: Scenario) -> None:
    await _canceled(scenario, REPORT)


async def cancel_parallel(scenario: Scenario) -> None:
    await _canceled(scenario, ANIMATION)


async def rerun(scenario: Scenario) -> None:
    simulation = await scenario.simulation(REPORT, "Again")
    for plan in (SHORT, BAD, SHORT):
        answer = await scenario.browser.start(simulation, plan, force=True)
        await scenario.browser.watch(simulation, answer)


async def queue(scenario: Scenario) -> None:
    other = scenario.world.browser(scenario.world.add_user())
    head = await other.new(programs.model(*ANIMATION), "head")
    await other.watch(head, await other.start(head, LONG), for_s=3)
    scenario.world.kernel.later(12, lambda: scenario.world.play(lambda: _stop(other, head)))
    await _whole(scenario, ANIMATION, SHORT)


async def stateless(scenario: Scenario) -> None:
    await scenario.browser.compute("myapp", "global_resources")
    scenario.jid = f"{scenario.user.uid}-_1_stlss-global_resources"


async def missing(scenario: Scenario) -> None:
    simulation = await scenario.simulation(REPORT, "missing")
    await scenario.browser.poll(simulation)


async def download(scenario: Scenario) -> None:
    simulation = await scenario.simulation(ANIMATION, "download")
    await _run(scenario.browser, simulation, SHORT)
    await scenario.browser.download(simulation)
    scenario.world.run_dirs.remove(scenario.browser.run_dir(simulation))
    await scenario.browser.download(simulation)


async def agentdeath(scenario: Scenario) -> None:
    simulation = await scenario.simulation(REPORT, "agentdeath")
    await _agent_dies(scenario, simulation, "sequential")


async def agentdeath_parallel(scenario: Scenario) -> None:
    simulation = await scenario.simulation(ANIMATION, "agentdeath")
    await _agent_dies(scenario, simulation, "parallel")


async def restart(scenario: Scenario) -> None:
    simulation = await scenario.simulation(ANIMATION, "restart")
    await scenario.browser.start(simulation, LONG)
    await scenario.wait(0.3)
    await scenario.world.restart()
    await scenario.wait(3)
    await scenario.browser.poll(simulation)


async def sbatch_nologin(scenario: Scenario) -> None:
    simulation = await scenario.simulation(ANIMATION, "login", mode="sbatch")
    await scenario.browser.attempt(simulation, _on_cluster(SHORT))
    await scenario.browser.login(simulation, good=False)
    answer = await scenario.browser.watch(
        simulation, await scenario.browser.attempt(simulation, _on_cluster(SHORT))
    )
    for number in range(2):
        await scenario.browser.frame(simulation, number, answer.serial)


async def sbatch_ok(scenario: Scenario) -> None:
    await _after_login(scenario, SHORT)


async def sbatch_error(scenario: Scenario) -> None:
    await _after_login(scenario, BAD)


async def sbatch_cancel(scenario: Scenario) -> None:
    await _logged_in(scenario)
    simulation = await scenario.simulation(ANIMATION, "cancel", mode="sbatch")
    answer = await scenario.browser.start(simulation, msgspec.structs.replace(LONG, queued_s=3))
    await scenario.browser.watch(simulation, answer, for_s=12)
    await _stop(scenario.browser, simulation)


async def sbatch_reattach(scenario: Scenario) -> None:
    await _logged_in(scenario)
    simulation = await scenario.simulation(ANIMATION, "restart", mode="sbatch")
    answer = await scenario.browser.start(simulation, msgspec.structs.replace(LONG, queued_s=3, frames=1))
    await scenario.browser.watch(simulation, answer, for_s=12)
    await scenario.world.restart()
    await scenario.browser.poll(simulation)
    await scenario.wait(12)
    await _stop(scenario.browser, simulation)


async def _run(browser: Browser, simulation: Simulation, plan: Plan) -> int:
    answer = await browser.watch(simulation, await browser.start(simulation, plan))
    return answer.serial


async def _whole(scenario: Scenario, model: tuple[str, str], plan: Plan) -> None:
    await _run(scenario.browser, await scenario.simulation(model, "test"), plan)


async def _stop(browser: Browser, simulation: Simulation) -> None:
    await browser.cancel(simulation)
    await browser.poll(simulation)


async def _canceled(scenario: Scenario, model: tuple[str, str]) -> None:
    simulation = await scenario.simulation(model, "cancel")
    await scenario.browser.watch(simulation, await scenario.browser.start(simulation, LONG), for_s=4)
    await _stop(scenario.browser, simulation)


async def _agent_dies(scenario: Scenario, simulation: Simulation, kind: str) -> None:
    answer = await scenario.browser.watch(simulation, await scenario.browser.start(simulation, LONG), for_s=4)
    for agent in [agent for agent in scenario.world.agents if agent.identity.kind == kind]:
        agent.die(SIGKILL)
    await scenario.browser.watch(simulation, answer)


def _on_cluster(plan: Plan) -> Plan:
    return msgspec.structs.replace(plan, queued_s=0.5)


async def _logged_in(scenario: Scenario) -> None:
    simulation = await scenario.simulation(ANIMATION, "first", mode="sbatch")
    await scenario.browser.login(simulation, good=True)


async def _after_login(scenario: Scenario, plan: Plan) -> None:
    await _logged_in(scenario)
    simulation = await scenario.simulation(ANIMATION, "test", mode="sbatch")
    await _run(scenario.browser, simulation, _on_cluster(plan))


ACTS: Mapping[tuple[str, ...], Act] = {
    ("ok",): ok, ("anim",): anim, ("error",): error, ("oom",): oom, ("nomodel",): nomodel,
    ("timeout",): timeout, ("cancel",): cancel, ("queue-head",): cancel_parallel, ("rerun",): rerun,
    ("queue",): queue, ("stateless",): stateless, ("missing",): missing,
    ("download", "rundir-gone"): download, ("agentdeath",): agentdeath, ("restart",): restart,
    ("sbatch-nologin", "sbatch-ok"): sbatch_nologin, ("sbatch-ok",): sbatch_ok,
    ("sbatch-error",): sbatch_error, ("sbatch-cancel",): sbatch_cancel,
    ("sbatch-after-restart", "sbatch-reattach"): sbatch_reattach,
}  # fmt: skip
"""By what the captures' `asked` says."""


def play(act: Act, settings: Settings, seed: int = 1) -> tuple[WatchedWorld, str]:
    """Act it out on an otherwise idle site, at a slot of each kind; the site afterwards, and the jid."""
    world = WatchedWorld(seed, msgspec.structs.replace(settings, slots_parallel=1, slots_sequential=1))
    world.start()
    user = world.add_user(on_cluster=act.__name__.startswith("sbatch"))
    scenario = Scenario(world, user)
    finished = []

    async def script() -> None:
        await scenario.browser.open()
        await scenario.wait(3)
        await act(scenario)
        finished.append(True)

    world.play(script)
    world.advance(Nanos(world.kernel.now + 1_000 * SECOND))
    assert finished, act.__name__
    assert scenario.jid is not None
    return world, scenario.jid
