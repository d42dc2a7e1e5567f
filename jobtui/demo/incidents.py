"""What happens at a site: arriving jobs, and known failures as small scripts."""

import random
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from typing import NamedTuple

import msgspec

from jobtui.demo import programs
from jobtui.demo.agents import SIGKILL
from jobtui.demo.kernel import Start
from jobtui.demo.programs import Ending, Model, Plan, log_lines
from jobtui.demo.world import Browser, Simulation, User, World
from jobtui.model.clock import Nanos
from jobtui.model.tables import tables_of

_TABLES = tables_of("jobtui.demo", "tables")
SIMULATION_NAMES, STATELESS_METHODS = _TABLES["simulation_names"], _TABLES["stateless_methods"]
HOSTILE_NAMES = _TABLES["hostile_names"]
HOSTILE_SHARE = 0.04
AGAIN_SHARE = 0.45
CANCEL_SHARE = 0.08
FRAMES_SHARE = 0.8
DOWNLOAD_SHARE = 0.15
COMPUTE_SHARE = 0.12
PARALLEL_SHARES = (0.45, 0.13)
"""How many of the runs are long parallel ones: in quiet times, and when busy."""
IMPATIENT_SHARE = 0.06
"""How often somebody starts another long run while one is under way."""
LONGEST_S = 5_400.0
WINDOW_OPEN_S = 40.0
"""How long people watch a long run in quiet times before they come back for its result."""
LOG_LINES_PER_S = 0.5
ENDINGS = {Ending.COMPLETED: 80, Ending.RAISES: 12, Ending.KILLED: 3, Ending.PREPARE_FAILS: 2}


class Arrivals:
    """Lets jobs arrive: every `early_s` seconds on average up to `busy_from`, from then on every `busy_s`."""

    def __init__(self, world: World, *, busy_from: Nanos, early_s: float, busy_s: float) -> None:
        self._world = world
        self._rng = random.Random(f"{world.seed}/life")
        self._users = tuple(world.users)
        self._busy_from = busy_from
        self._pauses = (early_s, busy_s)
        self._apps = {
            user.uid: self._rng.sample(sorted({m.app for m in programs.MODELS}), 2) for user in self._users
        }
        self._known: dict[str, list[Simulation]] = {}
        self._long_runs: Counter[str] = Counter()

    def start(self) -> None:
        self._world.play(self._arrivals)

    async def _arrivals(self) -> None:
        rng = self._rng
        while True:
            mean = self._pauses[self._is_busy]
            await self._world.kernel.sleep(min(rng.expovariate(1 / mean), 4 * mean))
            user = rng.choice(self._users)
            free = not self._long_runs[user.uid] or rng.random() < IMPATIENT_SHARE
            parallel = free and (user.on_cluster or rng.random() < PARALLEL_SHARES[self._is_busy])
            if parallel or not user.on_cluster:
                self._world.play(self._visit(user, parallel=parallel))

    @property
    def _is_busy(self) -> bool:
        return self._world.kernel.now >= self._busy_from

    def _visit(self, user: User, *, parallel: bool) -> Start:
        async def visit() -> None:
            browser = self._world.browser(user)
            if self._rng.random() < 0.5:
                await browser.open()
            if not parallel and self._rng.random() < COMPUTE_SHARE:
                method = self._rng.choice(STATELESS_METHODS)
                await browser.compute(self._apps[user.uid][0], method)
                return
            self._long_runs[user.uid] += parallel
            await self._run(browser, parallel=parallel)
            self._long_runs[user.uid] -= parallel

        return visit

    async def _run(self, browser: Browser, *, parallel: bool) -> None:
        rng = self._rng
        simulation, again = await self._simulation(browser, parallel=parallel)
        plan = self._plan(simulation.model)
        cancels = rng.random() < CANCEL_SHARE
        if cancels:
            self._world.play(lambda: self._cancel_later(browser, simulation, plan.duration_s))
        answer = await browser.start(simulation, plan, force=again)
        if not self._is_busy:
            answer = await browser.watch(simulation, answer, for_s=WINDOW_OPEN_S)
            if answer.live:
                await self._world.kernel.sleep(plan.duration_s)
                answer = await browser.poll(simulation)
        answer = await browser.watch(simulation, answer)
        if answer.state != "completed" or not simulation.model.parallel:
            return
        if rng.random() < FRAMES_SHARE:
            for number in range(rng.randint(1, 5)):
                await browser.frame(simulation, number, answer.serial)
        if rng.random() < DOWNLOAD_SHARE:
            await browser.download(simulation)

    async def _cancel_later(self, browser: Browser, simulation: Simulation, duration_s: float) -> None:
        await self._world.kernel.sleep(duration_s * self._rng.uniform(0.2, 0.9) + 1)
        await browser.cancel(simulation)

    async def _simulation(self, browser: Browser, *, parallel: bool) -> tuple[Simulation, bool]:
        rng, user = self._rng, browser.user
        known = [s for s in self._known.get(user.uid, ()) if s.model.parallel == parallel]
        if known and rng.random() < AGAIN_SHARE:
            return rng.choice(known), True
        fitting = [model for model in programs.MODELS if model.parallel == parallel]
        own = [model for model in fitting if model.app in self._apps[user.uid]]
        names = HOSTILE_NAMES if rng.random() < HOSTILE_SHARE else SIMULATION_NAMES
        mode = "sbatch" if user.on_cluster else None
        simulation = await browser.new(rng.choice(own or fitting), rng.choice(names), mode=mode)
        self._known.setdefault(user.uid, []).append(simulation)
        return simulation, False

    def _plan(self, model: Model) -> Plan:
        rng = self._rng
        ending = rng.choices(list(ENDINGS), list(ENDINGS.values()))[0]
        whole_s = min(model.typical_s * rng.lognormvariate(0, 0.6), LONGEST_S)
        seconds = whole_s if ending is Ending.COMPLETED else whole_s * rng.uniform(0.05, 0.9)
        return Plan(
            ending=ending,
            duration_s=seconds,
            error=_error(rng, model, ending),
            frames=max(1, int(whole_s // 6)),
            whole_s=whole_s,
            queued_s=rng.uniform(5, 120),
            log=log_lines(model.app, max(3, int(whole_s * LOG_LINES_PER_S))),
        )


def _error(rng: random.Random, model: Model, ending: Ending) -> str | None:
    if ending is Ending.COMPLETED:
        return None
    if ending is Ending.KILLED:
        return programs.KILLED
    if ending is Ending.PREPARE_FAILS:
        return programs.PREPARE_ERROR
    own = [text for app, text in programs.RAISED if app == model.app]
    return rng.choice(own) if own else programs.OTHER_ERROR


HEAVY = ("srw", "multiElectronAnimation")
LIGHT = ("srw", "intensityReport")
HOUR_S = 3600.0


class Scenario:
    """Where an incident is played: a site and one of its users. `jid` is the job that it is about."""

    def __init__(self, world: World, user: User) -> None:
        self.world = world
        self.user = user
        self.browser: Browser = world.browser(user)
        self.jid: str | None = None

    async def wait(self, seconds: float) -> None:
        await self.world.kernel.sleep(seconds)

    async def simulation(self, model: tuple[str, str], name: str, *, mode: str | None = None) -> Simulation:
        simulation = await self.browser.new(programs.model(*model), name, mode=mode)
        self.jid = self.browser.jid(simulation)
        return simulation


Script = Callable[[Scenario], Coroutine[object, None, None]]


class Incident(NamedTuple):
    """One known failure.

    Its script acts through a user's browser and makes one job go wrong. `verdict` is the code that explaining
    that job should give, `lead_s` how long before now a live demo begins it, so that it is seen at once.
    """

    text: str
    verdict: str
    script: Script
    lead_s: float = 30.0
    on_cluster: bool = False


def good_plan(model: Model, seconds: float) -> Plan:
    lines = log_lines(model.app, max(3, int(seconds / 2)))
    return Plan(duration_s=seconds, frames=max(1, int(seconds // 6)), log=lines)


def _bad_plan(model: Model, ending: Ending, seconds: float, error: str) -> Plan:
    return msgspec.structs.replace(good_plan(model, seconds), ending=ending, error=error)


async def healthy(scenario: Scenario) -> None:
    simulation = await scenario.simulation(("elegant", "animation"), "tracking A")
    answer = await scenario.browser.start(simulation, good_plan(simulation.model, 12))
    answer = await scenario.browser.watch(simulation, answer)
    for number in range(3):
        await scenario.browser.frame(simulation, number, answer.serial)
    await scenario.browser.download(simulation)


async def agent_never_starts(scenario: Scenario) -> None:
    """The agent that is started for the user is never heard of; the job stays pending."""
    scenario.world.mute.add(scenario.user.uid)
    await scenario.browser.open()
    simulation = await scenario.simulation(LIGHT, "Beamline 7 survey")
    await scenario.browser.start(simulation, good_plan(simulation.model, 3))


async def program_error(scenario: Scenario) -> None:
    simulation = await scenario.simulation(LIGHT, "Beamline 7 test")
    answer = await scenario.browser.start(simulation, good_plan(simulation.model, 2))
    await scenario.browser.watch(simulation, answer)
    await scenario.wait(4)
    bad = _bad_plan(simulation.model, Ending.RAISES, 1.8, "no such element: crystal3")
    answer = await scenario.browser.start(simulation, bad, force=True)
    await scenario.browser.watch(simulation, answer)


async def prepare_fails(scenario: Scenario) -> None:
    """The input cannot be turned into a program; it says why on stderr."""
    simulation = await scenario.simulation(("myapp", "heightWeightReport"), "heights")
    bad = _bad_plan(simulation.model, Ending.PREPARE_FAILS, 1, programs.PREPARE_ERROR)
    answer = await scenario.browser.start(simulation, bad)
    await scenario.browser.watch(simulation, answer)


async def killed_signal_9(scenario: Scenario) -> None:
    simulation = await scenario.simulation(("opal", "animation"), "gun 2 emittance")
    bad = _bad_plan(simulation.model, Ending.KILLED, 14, programs.KILLED)
    answer = await scenario.browser.start(simulation, bad)
    await scenario.browser.watch(simulation, answer)


async def user_cancel(scenario: Scenario) -> None:
    simulation = await scenario.simulation(HEAVY, "NSLS-II CHX beamline")
    answer = await scenario.browser.start(simulation, good_plan(simulation.model, 900))
    answer = await scenario.browser.watch(simulation, answer, for_s=12)
    await scenario.browser.cancel(simulation)
    await scenario.browser.poll(simulation)


async def time_limit(scenario: Scenario) -> None:
    simulation = await scenario.simulation(("zgoubi", "twissReport"), "RHIC e-cooler")
    answer = await scenario.browser.start(simulation, good_plan(simulation.model, 10 * HOUR_S))
    await scenario.browser.watch(simulation, answer)


async def waiting_for_slot(scenario: Scenario) -> None:
    world = scenario.world
    while world.supervisor.drivers.free_slots("parallel"):
        browser = world.browser(world.add_user())
        head = await browser.new(programs.model("genesis", "animation"), "fel scan 12")
        plan = good_plan(head.model, HOUR_S)
        world.play(lambda b=browser, s=head, p=plan: _run(b, s, p))  # type: ignore[misc]
        await scenario.wait(2)
    simulation = await scenario.simulation(HEAVY, "Doubler")
    answer = await scenario.browser.start(simulation, good_plan(simulation.model, 60))
    await scenario.browser.watch(simulation, answer)


async def _run(browser: Browser, simulation: Simulation, plan: Plan) -> None:
    await browser.watch(simulation, await browser.start(simulation, plan))


async def waiting_op_slot(scenario: Scenario) -> None:
    head = await scenario.browser.new(programs.model("genesis", "animation"), "fel scan 11")
    plan = good_plan(head.model, HOUR_S)
    scenario.world.play(lambda: _run(scenario.browser, head, plan))
    await scenario.wait(5)
    simulation = await scenario.simulation(HEAVY, "Tabulated Undulator")
    await _run(scenario.browser, simulation, good_plan(simulation.model, 60))


async def agent_death(scenario: Scenario) -> None:
    simulation = await scenario.simulation(HEAVY, "LCLS-II SXR 800 eV")
    answer = await scenario.browser.start(simulation, good_plan(simulation.model, 900))
    answer = await scenario.browser.watch(simulation, answer, for_s=10)
    for agent in list(scenario.world.agents):
        if (agent.identity.uid, agent.identity.kind) == (scenario.user.uid, "parallel"):
            agent.die(SIGKILL)
    await scenario.browser.watch(simulation, answer)


async def supervisor_restart(scenario: Scenario) -> None:
    """The supervisor is restarted while the job runs; the next poll finds it canceled."""
    simulation = await scenario.simulation(HEAVY, "SNS linac")
    answer = await scenario.browser.start(simulation, good_plan(simulation.model, 900))
    answer = await scenario.browser.watch(simulation, answer, for_s=10)
    await scenario.world.restart()
    await scenario.wait(2)
    await scenario.browser.watch(simulation, await scenario.browser.poll(simulation))


async def stale_record(scenario: Scenario) -> None:
    """The supervisor is restarted while the job runs, and the browser is closed: nobody asks any more."""
    simulation = await scenario.simulation(HEAVY, "thesis fig 4")
    answer = await scenario.browser.start(simulation, good_plan(simulation.model, 900))
    await scenario.browser.watch(simulation, answer, for_s=10)
    await scenario.world.restart()


async def sbatch_login_needed(scenario: Scenario) -> None:
    """The user has not logged in to the cluster, and closes the window that asks for it."""
    simulation = await scenario.simulation(HEAVY, "EIC cooling 41 GeV", mode="sbatch")
    await scenario.browser.attempt(simulation, good_plan(simulation.model, 300))


async def sbatch_queued(scenario: Scenario) -> None:
    simulation = await scenario.simulation(HEAVY, "undulator gap 7.2 mm", mode="sbatch")
    plan = msgspec.structs.replace(good_plan(simulation.model, 300), queued_s=2 * HOUR_S)
    await _run(scenario.browser, simulation, plan)


async def sbatch_failed(scenario: Scenario) -> None:
    simulation = await scenario.simulation(HEAVY, "Laser-Plasma stage 2", mode="sbatch")
    bad = _bad_plan(simulation.model, Ending.RAISES, 8, programs.OTHER_ERROR)
    await _run(scenario.browser, simulation, bad)


async def run_dir_gone(scenario: Scenario) -> None:
    """The run directory of a finished job was removed; the next download finds that out."""
    simulation = await scenario.simulation(("madx", "animation"), "booster ring v4")
    await _run(scenario.browser, simulation, good_plan(simulation.model, 5))
    await scenario.browser.download(simulation)
    scenario.world.run_dirs.remove(scenario.browser.run_dir(simulation))
    await scenario.browser.download(simulation)


async def never_run(scenario: Scenario) -> None:
    simulation = await scenario.simulation(LIGHT, "Young's Double Slit")
    await scenario.browser.poll(simulation)


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


def play(world: World, name: str) -> Scenario:
    """Let an incident happen to a new user from now on. Raises KeyError for an unknown name."""
    incident = INCIDENTS[name]
    scenario = Scenario(world, world.add_user(on_cluster=incident.on_cluster))
    world.play(lambda: incident.script(scenario))
    return scenario
