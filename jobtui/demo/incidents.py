"""Known failures as small scripts, each with what a good diagnosis of it has to say.

A script acts on a site through a user's browser and makes one job go wrong. `verdict` is the code that
explaining that job should give, `lead_s` how long before now a live demo begins it, so that it is seen at
once.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

import msgspec

from jobtui.demo import catalog
from jobtui.demo.agents import SIGKILL
from jobtui.demo.browsers import Browser, Simulation, User
from jobtui.demo.catalog import Model
from jobtui.demo.programs import Ending, Plan
from jobtui.demo.rundirs import log_lines
from jobtui.demo.world import World

HEAVY = ("srw", "multiElectronAnimation")
LIGHT = ("srw", "intensityReport")
HOUR_S = 3600.0


class Stage:
    """Where an incident is played: a site and one of its users. `jid` is the job that it is about."""

    def __init__(self, world: World, user: User) -> None:
        self.world = world
        self.user = user
        self.browser: Browser = world.browser(user)
        self.jid: str | None = None

    async def wait(self, seconds: float) -> None:
        """Let time pass."""
        await self.world.kernel.sleep(seconds)

    async def simulation(self, model: tuple[str, str], name: str, *, mode: str | None = None) -> Simulation:
        """Make the simulation that the incident is about."""
        simulation = await self.browser.new(catalog.model(*model), name, mode=mode)
        self.jid = self.browser.jid(simulation)
        return simulation


Script = Callable[[Stage], Awaitable[None]]


class Incident(NamedTuple):
    """One known failure."""

    text: str
    verdict: str
    script: Script
    lead_s: float = 30.0
    on_cluster: bool = False


def good_plan(model: Model, seconds: float) -> Plan:
    """A run that ends well."""
    lines = log_lines(model.app, max(3, int(seconds / 2)))
    return Plan(duration_s=seconds, frames=max(1, int(seconds // 6)), log=lines)


def _bad_plan(model: Model, ending: Ending, seconds: float, error: str) -> Plan:
    return msgspec.structs.replace(good_plan(model, seconds), ending=ending, error=error)


async def healthy(stage: Stage) -> None:
    """Nothing goes wrong: a run, its frames, a download."""
    simulation = await stage.simulation(("elegant", "animation"), "tracking A")
    answer = await stage.browser.start(simulation, good_plan(simulation.model, 12))
    answer = await stage.browser.watch(simulation, answer)
    for number in range(3):
        await stage.browser.frame(simulation, number, answer.serial)
    await stage.browser.download(simulation)


async def agent_never_starts(stage: Stage) -> None:
    """The agent that is started for the user is never heard of; the job stays pending."""
    stage.world.mute.add(stage.user.uid)
    await stage.browser.open()
    simulation = await stage.simulation(LIGHT, "Beamline 7 survey")
    await stage.browser.start(simulation, good_plan(simulation.model, 3))


async def program_error(stage: Stage) -> None:
    """The program raises an error after a good run of the same simulation."""
    simulation = await stage.simulation(LIGHT, "Beamline 7 test")
    answer = await stage.browser.start(simulation, good_plan(simulation.model, 2))
    await stage.browser.watch(simulation, answer)
    await stage.wait(4)
    bad = _bad_plan(simulation.model, Ending.RAISES, 1.8, "no such element: crystal3")
    answer = await stage.browser.start(simulation, bad, force=True)
    await stage.browser.watch(simulation, answer)


async def prepare_fails(stage: Stage) -> None:
    """The input cannot be turned into a program; it says why on stderr."""
    simulation = await stage.simulation(("myapp", "heightWeightReport"), "heights")
    bad = _bad_plan(simulation.model, Ending.PREPARE_FAILS, 1, catalog.PREPARE_ERROR)
    answer = await stage.browser.start(simulation, bad)
    await stage.browser.watch(simulation, answer)


async def killed_signal_9(stage: Stage) -> None:
    """The program is killed, most likely for want of memory."""
    simulation = await stage.simulation(("opal", "animation"), "gun 2 emittance")
    bad = _bad_plan(simulation.model, Ending.KILLED, 14, catalog.KILLED)
    answer = await stage.browser.start(simulation, bad)
    await stage.browser.watch(simulation, answer)


async def user_cancel(stage: Stage) -> None:
    """The user presses stop."""
    simulation = await stage.simulation(HEAVY, "NSLS-II CHX beamline")
    answer = await stage.browser.start(simulation, good_plan(simulation.model, 900))
    answer = await stage.browser.watch(simulation, answer, for_s=12)
    await stage.browser.cancel(simulation)
    await stage.browser.poll(simulation)


async def time_limit(stage: Stage) -> None:
    """A report that does not end runs into its time limit."""
    simulation = await stage.simulation(("zgoubi", "twissReport"), "RHIC e-cooler")
    answer = await stage.browser.start(simulation, good_plan(simulation.model, 10 * HOUR_S))
    await stage.browser.watch(simulation, answer)


async def waiting_for_slot(stage: Stage) -> None:
    """Every place for parallel runs is taken by others."""
    world = stage.world
    while world.supervisor.drivers.free_slots("parallel"):
        browser = world.browser(world.add_user())
        head = await browser.new(catalog.model("genesis", "animation"), "fel scan 12")
        plan = good_plan(head.model, HOUR_S)
        world.play(lambda b=browser, s=head, p=plan: _run(b, s, p))  # type: ignore[misc]
        await stage.wait(2)
    simulation = await stage.simulation(HEAVY, "Doubler")
    answer = await stage.browser.start(simulation, good_plan(simulation.model, 60))
    await stage.browser.watch(simulation, answer)


async def _run(browser: Browser, simulation: Simulation, plan: Plan) -> None:
    await browser.watch(simulation, await browser.start(simulation, plan))


async def waiting_op_slot(stage: Stage) -> None:
    """The user's own other run has to end first."""
    head = await stage.browser.new(catalog.model("genesis", "animation"), "fel scan 11")
    plan = good_plan(head.model, HOUR_S)
    stage.world.play(lambda: _run(stage.browser, head, plan))
    await stage.wait(5)
    simulation = await stage.simulation(HEAVY, "Tabulated Undulator")
    await _run(stage.browser, simulation, good_plan(simulation.model, 60))


async def agent_death(stage: Stage) -> None:
    """The agent is killed while it runs the job."""
    simulation = await stage.simulation(HEAVY, "LCLS-II SXR 800 eV")
    answer = await stage.browser.start(simulation, good_plan(simulation.model, 900))
    answer = await stage.browser.watch(simulation, answer, for_s=10)
    for agent in list(stage.world.agents):
        if (agent.identity.uid, agent.identity.kind) == (stage.user.uid, "parallel"):
            agent.die(SIGKILL)
    await stage.browser.watch(simulation, answer)


async def supervisor_restart(stage: Stage) -> None:
    """The supervisor is restarted while the job runs; the next poll finds it canceled."""
    simulation = await stage.simulation(HEAVY, "SNS linac")
    answer = await stage.browser.start(simulation, good_plan(simulation.model, 900))
    answer = await stage.browser.watch(simulation, answer, for_s=10)
    await stage.world.restart()
    await stage.wait(2)
    await stage.browser.watch(simulation, await stage.browser.poll(simulation))


async def stale_record(stage: Stage) -> None:
    """The supervisor is restarted while the job runs, and the browser is closed: nobody asks any more."""
    simulation = await stage.simulation(HEAVY, "thesis fig 4")
    answer = await stage.browser.start(simulation, good_plan(simulation.model, 900))
    await stage.browser.watch(simulation, answer, for_s=10)
    await stage.world.restart()


async def sbatch_login_needed(stage: Stage) -> None:
    """The user has not logged in to the cluster, and closes the window that asks for it."""
    simulation = await stage.simulation(HEAVY, "EIC cooling 41 GeV", mode="sbatch")
    await stage.browser.attempt(simulation, good_plan(simulation.model, 300))


async def sbatch_queued(stage: Stage) -> None:
    """The cluster has no room yet."""
    simulation = await stage.simulation(HEAVY, "undulator gap 7.2 mm", mode="sbatch")
    plan = msgspec.structs.replace(good_plan(simulation.model, 300), queued_s=2 * HOUR_S)
    await _run(stage.browser, simulation, plan)


async def sbatch_failed(stage: Stage) -> None:
    """The program fails on the cluster."""
    simulation = await stage.simulation(HEAVY, "Laser-Plasma stage 2", mode="sbatch")
    bad = _bad_plan(simulation.model, Ending.RAISES, 8, catalog.OTHER_ERROR)
    await _run(stage.browser, simulation, bad)


async def run_dir_gone(stage: Stage) -> None:
    """The run directory of a finished job was removed; the next download finds that out."""
    simulation = await stage.simulation(("madx", "animation"), "booster ring v4")
    await _run(stage.browser, simulation, good_plan(simulation.model, 5))
    await stage.browser.download(simulation)
    stage.world.run_dirs.remove(stage.browser.run_dir(simulation))
    await stage.browser.download(simulation)


async def never_run(stage: Stage) -> None:
    """A simulation was looked at, and never run."""
    simulation = await stage.simulation(LIGHT, "Young's Double Slit")
    await stage.browser.poll(simulation)


INCIDENTS: Mapping[str, Incident] = {
    "healthy": Incident("nothing goes wrong", "completed", healthy),
    "agent-never-starts": Incident("an agent is never heard of", "agent_never_started", agent_never_starts),
    "program-error": Incident("the program raises an error", "program_failed", program_error),
    "prepare-fails": Incident("the input makes no sense", "prepare_failed", prepare_fails),
    "killed-signal-9": Incident("the program is killed", "killed_by_signal", killed_signal_9),
    "user-cancel": Incident("the user presses stop", "canceled_by_user", user_cancel),
    "time-limit": Incident("a report runs into its limit", "timed_out", time_limit, lead_s=352),
    "waiting-for-slot": Incident(
        "all parallel slots are taken", "waiting_cpu_slot", waiting_for_slot, lead_s=90
    ),
    "waiting-op-slot": Incident("the user's other run is first", "waiting_op_slot", waiting_op_slot),
    "agent-death": Incident("the agent is killed", "agent_lost", agent_death),
    "supervisor-restart": Incident("the supervisor is restarted", "supervisor_restarted", supervisor_restart),
    "stale-record": Incident("restarted, and nobody asks", "stale_record", stale_record, lead_s=120),
    "sbatch-login-needed": Incident(
        "no login to the cluster", "sbatch_login_needed", sbatch_login_needed, on_cluster=True
    ),
    "sbatch-queued": Incident("the cluster is full", "sbatch_queued", sbatch_queued, 60, on_cluster=True),
    "sbatch-failed": Incident("the program fails there", "sbatch_failed", sbatch_failed, 60, on_cluster=True),
    "run-dir-gone": Incident("the run directory was removed", "run_dir_gone", run_dir_gone),
    "never-run": Incident("looked at, never run", "never_run", never_run),
}
"""By the name that `--incident` takes."""


def play(world: World, name: str) -> Stage:
    """Let an incident happen to a new user from now on. Raises KeyError for an unknown name."""
    incident = INCIDENTS[name]
    stage = Stage(world, world.add_user(on_cluster=incident.on_cluster))
    world.play(lambda: _play(incident, stage))
    return stage


async def _play(incident: Incident, stage: Stage) -> None:
    await incident.script(stage)
