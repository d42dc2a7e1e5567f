"""What the client of the captures provoked (their README says what each is), acted out in the simulation."""

from collections.abc import Awaitable, Callable, Mapping

import msgspec

from jobtui.demo import catalog
from jobtui.demo.agents import SIGKILL
from jobtui.demo.browsers import Browser, Simulation
from jobtui.demo.incidents import Stage
from jobtui.demo.programs import Ending, Plan
from jobtui.demo.settings import Settings
from jobtui.demo.world import World
from jobtui.model.clock import SECOND, Nanos

ANIMATION, REPORT = ("elegant", "animation"), ("myapp", "heightWeightReport")
LONG = Plan(duration_s=500, frames=3)
SHORT = Plan(duration_s=1.2, frames=10)
BAD = msgspec.structs.replace(SHORT, ending=Ending.RAISES, error="a big ugly error")

Act = Callable[[Stage], Awaitable[None]]


async def ok(stage: Stage) -> None:
    await _whole(stage, REPORT, SHORT)


async def anim(stage: Stage) -> None:
    simulation = await stage.simulation(ANIMATION, "anim")
    answer = await _run(stage.browser, simulation, SHORT)
    for number in range(3):
        await stage.browser.frame(simulation, number, answer)


async def error(stage: Stage) -> None:
    await _whole(stage, REPORT, BAD)


async def oom(stage: Stage) -> None:
    await _whole(stage, REPORT, msgspec.structs.replace(BAD, ending=Ending.KILLED, error=catalog.KILLED))


async def nomodel(stage: Stage) -> None:
    await _whole(stage, REPORT, msgspec.structs.replace(BAD, ending=Ending.PREPARE_FAILS))


async def timeout(stage: Stage) -> None:
    await _whole(stage, REPORT, LONG)


async def cancel(stage: Stage) -> None:
    await _canceled(stage, REPORT)


async def cancel_parallel(stage: Stage) -> None:
    await _canceled(stage, ANIMATION)


async def rerun(stage: Stage) -> None:
    simulation = await stage.simulation(REPORT, "Again")
    for plan in (SHORT, BAD, SHORT):
        answer = await stage.browser.start(simulation, plan, force=True)
        await stage.browser.watch(simulation, answer)


async def queue(stage: Stage) -> None:
    other = stage.world.browser(stage.world.add_user())
    head = await other.new(catalog.model(*ANIMATION), "head")
    await other.watch(head, await other.start(head, LONG), for_s=3)
    stage.world.kernel.later(12, lambda: stage.world.play(lambda: _stop(other, head)))
    await _whole(stage, ANIMATION, SHORT)


async def stateless(stage: Stage) -> None:
    await stage.browser.compute("myapp", "global_resources")
    stage.jid = f"{stage.user.uid}-_1_stlss-global_resources"


async def missing(stage: Stage) -> None:
    simulation = await stage.simulation(REPORT, "missing")
    await stage.browser.poll(simulation)


async def download(stage: Stage) -> None:
    simulation = await stage.simulation(ANIMATION, "download")
    await _run(stage.browser, simulation, SHORT)
    await stage.browser.download(simulation)
    stage.world.run_dirs.remove(stage.browser.run_dir(simulation))
    await stage.browser.download(simulation)


async def agentdeath(stage: Stage) -> None:
    simulation = await stage.simulation(REPORT, "agentdeath")
    await _agent_dies(stage, simulation, "sequential")


async def agentdeath_parallel(stage: Stage) -> None:
    simulation = await stage.simulation(ANIMATION, "agentdeath")
    await _agent_dies(stage, simulation, "parallel")


async def restart(stage: Stage) -> None:
    simulation = await stage.simulation(ANIMATION, "restart")
    await stage.browser.start(simulation, LONG)
    await stage.wait(0.3)
    await stage.world.restart()
    await stage.wait(3)
    await stage.browser.poll(simulation)


async def sbatch_nologin(stage: Stage) -> None:
    simulation = await stage.simulation(ANIMATION, "login", mode="sbatch")
    await stage.browser.attempt(simulation, _on_cluster(SHORT))
    await stage.browser.login(simulation, good=False)
    answer = await stage.browser.watch(
        simulation, await stage.browser.attempt(simulation, _on_cluster(SHORT))
    )
    for number in range(2):
        await stage.browser.frame(simulation, number, answer.serial)


async def sbatch_ok(stage: Stage) -> None:
    await _after_login(stage, SHORT)


async def sbatch_error(stage: Stage) -> None:
    await _after_login(stage, BAD)


async def sbatch_cancel(stage: Stage) -> None:
    await _logged_in(stage)
    simulation = await stage.simulation(ANIMATION, "cancel", mode="sbatch")
    answer = await stage.browser.start(simulation, msgspec.structs.replace(LONG, queued_s=3))
    await stage.browser.watch(simulation, answer, for_s=12)
    await _stop(stage.browser, simulation)


async def sbatch_reattach(stage: Stage) -> None:
    await _logged_in(stage)
    simulation = await stage.simulation(ANIMATION, "restart", mode="sbatch")
    answer = await stage.browser.start(simulation, msgspec.structs.replace(LONG, queued_s=3, frames=1))
    await stage.browser.watch(simulation, answer, for_s=12)
    await stage.world.restart()
    await stage.browser.poll(simulation)
    await stage.wait(12)
    await _stop(stage.browser, simulation)


async def _run(browser: Browser, simulation: Simulation, plan: Plan) -> int:
    answer = await browser.watch(simulation, await browser.start(simulation, plan))
    return answer.serial


async def _whole(stage: Stage, model: tuple[str, str], plan: Plan) -> None:
    await _run(stage.browser, await stage.simulation(model, "test"), plan)


async def _stop(browser: Browser, simulation: Simulation) -> None:
    await browser.cancel(simulation)
    await browser.poll(simulation)


async def _canceled(stage: Stage, model: tuple[str, str]) -> None:
    simulation = await stage.simulation(model, "cancel")
    await stage.browser.watch(simulation, await stage.browser.start(simulation, LONG), for_s=4)
    await _stop(stage.browser, simulation)


async def _agent_dies(stage: Stage, simulation: Simulation, kind: str) -> None:
    answer = await stage.browser.watch(simulation, await stage.browser.start(simulation, LONG), for_s=4)
    for agent in [agent for agent in stage.world.agents if agent.identity.kind == kind]:
        agent.die(SIGKILL)
    await stage.browser.watch(simulation, answer)


def _on_cluster(plan: Plan) -> Plan:
    return msgspec.structs.replace(plan, queued_s=0.5)


async def _logged_in(stage: Stage) -> None:
    simulation = await stage.simulation(ANIMATION, "first", mode="sbatch")
    await stage.browser.login(simulation, good=True)


async def _after_login(stage: Stage, plan: Plan) -> None:
    await _logged_in(stage)
    simulation = await stage.simulation(ANIMATION, "test", mode="sbatch")
    await _run(stage.browser, simulation, _on_cluster(plan))


ACTS: Mapping[tuple[str, ...], Act] = {
    ("ok",): ok,
    ("anim",): anim,
    ("error",): error,
    ("oom",): oom,
    ("nomodel",): nomodel,
    ("timeout",): timeout,
    ("cancel",): cancel,
    ("queue-head",): cancel_parallel,
    ("rerun",): rerun,
    ("queue",): queue,
    ("stateless",): stateless,
    ("missing",): missing,
    ("download", "rundir-gone"): download,
    ("agentdeath",): agentdeath,
    ("restart",): restart,
    ("sbatch-nologin", "sbatch-ok"): sbatch_nologin,
    ("sbatch-ok",): sbatch_ok,
    ("sbatch-error",): sbatch_error,
    ("sbatch-cancel",): sbatch_cancel,
    ("sbatch-after-restart", "sbatch-reattach"): sbatch_reattach,
}
"""By what the captures' `asked` says."""


def play(act: Act, settings: Settings, seed: int = 1) -> tuple[World, str]:
    """Act it out on an otherwise idle site, at a slot of each kind; the site afterwards, and the jid."""
    world = World(seed, msgspec.structs.replace(settings, slots_parallel=1, slots_sequential=1))
    world.start()
    user = world.add_user(on_cluster=act.__name__.startswith("sbatch"))
    stage = Stage(world, user)
    finished = []

    async def script() -> None:
        await stage.browser.open()
        await stage.wait(3)
        await act(stage)
        finished.append(True)

    world.play(script)
    world.advance(Nanos(world.kernel.now + 1_000 * SECOND))
    assert finished, act.__name__
    assert stage.jid is not None
    return world, stage.jid
