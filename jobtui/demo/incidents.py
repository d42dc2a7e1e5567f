"""What happens at a site: arriving jobs, and known failures as small scripts."""

import random
from collections import Counter
from collections.abc import Mapping

import msgspec

from jobtui.demo import programs
from jobtui.demo.agents import SIGKILL
from jobtui.demo.kernel import Start
from jobtui.demo.messages import TABLES, AgentAnswer
from jobtui.demo.programs import Model, Plan, ProgramEnd, log_lines
from jobtui.demo.world import Browser, Simulation, User, World
from jobtui.model.clock import Nanos
from jobtui.model.tables import tables_of

SIMULATION_NAMES, STATELESS_METHODS = TABLES["simulation_names"], TABLES["stateless_methods"]
HOSTILE_NAMES = TABLES["hostile_names"]
HOSTILE_SHARE = 0.04
AGAIN_SHARE = 0.45
CANCEL_SHARE = 0.08
FRAMES_SHARE = 0.8
DOWNLOAD_SHARE = 0.15
COMPUTE_SHARE = 0.12
PARALLEL_SHARES = (0.45, 0.13)
"""The share of long parallel runs: in quiet times, and when it is busy."""
IMPATIENT_SHARE = 0.06
"""The chance that a user starts another long run while one is running."""
LONGEST_S = 5_400.0
WINDOW_OPEN_S = 40.0
"""How long people watch a long run in quiet times before they come back for its result."""
LOG_LINES_PER_S = 0.5
ERRORS: Mapping[ProgramEnd, str | None] = {
    ProgramEnd.COMPLETED: None,
    ProgramEnd.KILLED: programs.KILLED,
    ProgramEnd.PREPARE_FAILS: programs.PREPARE_ERROR,
}
ENDINGS = {ProgramEnd.COMPLETED: 80, ProgramEnd.RAISES: 12, ProgramEnd.KILLED: 3, ProgramEnd.PREPARE_FAILS: 2}


class Arrivals:
    """Lets jobs arrive: every `early_s` seconds on average up to `busy_from`, from then on every `busy_s`."""

    def __init__(self, world: World, *, busy_from: Nanos, early_s: float, busy_s: float) -> None:
        self._world = world
        self._rng = random.Random(f"{world.seed}/life")
        self._users = tuple(world.users)
        self._busy_from = busy_from
        self._pauses = (early_s, busy_s)
        apps = sorted({model.app for model in programs.MODELS})
        self._apps = {user.uid: self._rng.sample(apps, 2) for user in self._users}
        self._known: dict[str, list[Simulation]] = {}
        self._long_runs: Counter[str] = Counter()

    async def arrivals(self) -> None:
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

        async def cancel() -> None:
            await self._world.kernel.sleep(plan.duration_s * rng.uniform(0.2, 0.9) + 1)
            await browser.cancel(simulation)

        if rng.random() < CANCEL_SHARE:
            self._world.play(cancel)
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
        seconds = whole_s if ending is ProgramEnd.COMPLETED else whole_s * rng.uniform(0.05, 0.9)
        error = ERRORS.get(ending)
        if ending is ProgramEnd.RAISES:
            own = [text for app, text in programs.RAISED if app == model.app]
            error = rng.choice(own) if own else programs.OTHER_ERROR
        return Plan(
            ending=ending,
            duration_s=seconds,
            error=error,
            frames=max(1, int(whole_s // 6)),
            whole_s=whole_s,
            queued_s=rng.uniform(5, 120),
            log=log_lines(model.app, max(3, int(whole_s * LOG_LINES_PER_S))),
        )


class DemoIncident(msgspec.Struct, frozen=True, kw_only=True):
    """One known failure, as its table describes it."""

    text: str = ""
    verdict: str = ""
    model: tuple[str, str]
    name: str
    steps: tuple[str, ...]
    error: str | None = None
    queued_s: float = 10.0
    lead_s: float = 30.0
    on_cluster: bool = False


INCIDENTS: Mapping[str, DemoIncident] = msgspec.convert(
    tables_of("jobtui.demo", "incidents"), dict[str, DemoIncident]
)
"""By the name that `--incident` takes."""


def good_plan(model: Model, seconds: float) -> Plan:
    lines = log_lines(model.app, max(3, int(seconds / 2)))
    return Plan(duration_s=seconds, frames=max(1, int(seconds // 6)), log=lines)


class Scenario:
    """The place of an incident: a site and one of its users. `jid` is its job."""

    def __init__(self, world: World, user: User) -> None:
        self.world = world
        self.user = user
        self.browser: Browser = world.browser(user)
        self.jid: str | None = None
        self.others: list[tuple[Browser, Simulation]] = []
        """Runs of others that its own run waits for."""
        self._simulation: Simulation | None = None
        self._answer = AgentAnswer()

    async def play(self, incident: DemoIncident) -> None:
        self._incident = incident
        for step in incident.steps:
            name, *words = step.split()
            await getattr(self, name)(*(float(word) if word[0].isdigit() else word for word in words))

    async def simulation(self, model: tuple[str, str], name: str, *, mode: str | None = None) -> Simulation:
        simulation = await self.browser.new(programs.model(*model), name, mode=mode)
        self.jid = simulation.jid
        return simulation

    async def own(self) -> Simulation:
        """The simulation of the incident, made when it is first needed."""
        if self._simulation is None:
            mode = "sbatch" if self.user.on_cluster else None
            self._simulation = await self.simulation(self._incident.model, self._incident.name, mode=mode)
        return self._simulation

    def plan(self, model: Model, seconds: float, ending: str) -> Plan:
        incident, ends = self._incident, ProgramEnd(ending)
        error = ERRORS.get(ends, incident.error)
        plan = good_plan(model, seconds)
        return msgspec.structs.replace(plan, ending=ends, error=error, queued_s=incident.queued_s)

    async def wait(self, seconds: float) -> None:
        await self.world.kernel.sleep(seconds)

    async def open(self) -> None:
        await self.browser.open()

    async def attempt(self, seconds: float, ending: str = "completed") -> None:
        own = await self.own()
        self._answer = await self.browser.attempt(own, self.plan(own.model, seconds, ending))

    async def start(self, seconds: float, ending: str = "completed") -> None:
        own = await self.own()
        has_run = self._answer.serial > 0
        self._answer = await self.browser.start(own, self.plan(own.model, seconds, ending), force=has_run)

    async def watch(self, seconds: float | None = None) -> None:
        self._answer = await self.browser.watch(await self.own(), self._answer, for_s=seconds)

    async def run(self, seconds: float, ending: str = "completed") -> None:
        await self.start(seconds, ending)
        await self.watch()

    async def poll(self) -> None:
        self._answer = await self.browser.poll(await self.own())

    async def cancel(self) -> None:
        await self.browser.cancel(await self.own())

    async def frames(self, count: float) -> None:
        for number in range(int(count)):
            await self.browser.frame(await self.own(), number, self._answer.serial)

    async def download(self) -> None:
        await self.browser.download(await self.own())

    async def remove_run_dir(self) -> None:
        self.world.run_dirs.remove((await self.own()).run_dir)

    async def run_other(self, browser: Browser | None = None) -> None:
        """Begin a run that takes a slot for which its own run waits."""
        browser = browser or self.browser
        other = await browser.new(programs.model("genesis", "animation"), "fel scan 12")
        self.others.append((browser, other))
        self.world.play(lambda: browser.run(other, good_plan(other.model, 3600)))

    async def fill(self) -> None:
        while any(host.cpu_slots["parallel"] for host in self.world.supervisor.hosts):
            await self.run_other(self.world.browser(self.world.add_user()))
            await self.wait(2)

    async def mute(self) -> None:
        """Let agents that are started for the user never report."""
        self.world.mute.add(self.user.uid)

    async def kill_agent(self, kind: str) -> None:
        for agent, end in list(self.world.agents.items()):
            if (agent.uid, agent.kind) == (self.user.uid, kind):
                end(SIGKILL)

    async def restart(self) -> None:
        await self.world.restart()


def play(world: World, name: str) -> Scenario:
    """Let an incident happen to a new user from now on. Raises KeyError for an unknown name."""
    incident = INCIDENTS[name]
    scenario = Scenario(world, world.add_user(on_cluster=incident.on_cluster))
    world.play(lambda: scenario.play(incident))
    return scenario
