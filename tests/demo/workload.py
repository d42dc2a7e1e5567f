"""Watched sites for tests: users who do all that can happen, in random order, and the truth of what happened.

The truth is noted as things happen inside the supervisor, not read from its log.
"""

import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from jobtui.demo import incidents, programs
from jobtui.demo.agents import SIGKILL
from jobtui.demo.drivers import SiteSupervisor
from jobtui.demo.kernel import Future
from jobtui.demo.messages import DemoMessage
from jobtui.demo.programs import Model, Plan, ProgramEnd
from jobtui.demo.site import SUPERVISOR_LOG, Process, SimSite, Sink, Socket
from jobtui.demo.supervisor import Driver, SimOp
from jobtui.demo.world import Browser, Simulation, User
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import PREFIX_LENGTH
from tests.demo.sites import AnySupervisor, World
from tests.demo.sites import Settings as SiteSettings

WINDOWS = 2
"""How many windows each user has open."""
GIVE_UP_S = 400
"""After how long a user closes a window that does not answer, and does something else."""
GRACE_S = 600
SETTLE_S = 10
"""How long a site is left alone after its users have gone."""
SLOW_ANALYSIS = 0.003
ENDLESS_RUN = 0.004
PIECE_GAP_S = (0.0005, 0.004)
"""How long after the first piece of a torn record the second is written."""
SEQUENTIAL = tuple(model for model in programs.MODELS if not model.parallel)
PARALLEL = tuple(model for model in programs.MODELS if model.parallel)


class Settings(SiteSettings, frozen=True, kw_only=True):
    """A site and what befalls it.

    `ops` is when users stop, `restarts`, `crashes` and `agent_deaths` are chances per thing that a user does,
    `torn_records` is the share of multi-line records that are written in two pieces.
    """

    ops: int = 200
    restarts: float = 0.0
    crashes: float = 0.0
    agent_deaths: float = 0.0
    torn_records: float = 0.0


@dataclass(slots=True)
class TrueOp:
    """One op as it was. `agent` is the prefix of the agent it was sent to; updates count for its run."""

    op_id: str
    name: str
    jid: str | None
    api: str | None = None
    job_cmd: str | None = None
    agent: str | None = None
    sends: int = 0
    replies: int = 0
    updates: int = 0

    @property
    def op(self) -> str:
        return self.op_id[:PREFIX_LENGTH]


class Witness:
    """Notes the newest ops, and counts all. With `kept` it forgets older ones."""

    def __init__(self, kept: int | None = None) -> None:
        self.count = 0
        self.agents: set[str] = set()
        self._kept = kept
        self._ops: dict[str, TrueOp] = {}
        self._owners: dict[str, TrueOp] = {}

    @property
    def ops(self) -> tuple[TrueOp, ...]:
        return tuple(self._ops.values())

    def of_job(self, jid: str | None) -> tuple[TrueOp, ...]:
        return tuple(op for op in self._ops.values() if op.jid == jid)

    def created(self, op: TrueOp) -> None:
        self.count += 1
        self._ops[op.op_id] = op
        if op.jid is not None and op.name in {"run", "run_status"}:
            self._owners[op.jid] = op
        while self._kept is not None and len(self._ops) > self._kept:
            oldest = self._ops.pop(next(iter(self._ops)))
            if oldest.jid is not None and self._owners.get(oldest.jid) is oldest:
                del self._owners[oldest.jid]

    def sent(self, op_id: str, agent_id: str) -> None:
        if (op := self._ops.get(op_id)) is not None:
            op.sends += 1
            op.agent = agent_id[:PREFIX_LENGTH]

    def received(self, op_id: str | None, name: str, jid: str | None) -> None:
        if op_id in self._ops:
            self._ops[op_id].replies += 1
        if name == "run_status_update" and jid in self._owners:
            self._owners[jid].updates += 1


class WatchedSupervisor(AnySupervisor):
    def __init__(self, world: "WatchedWorld", process: Process) -> None:
        self._witness = world.witness
        super().__init__(world, process)

    def log(self, name: str, *values: object) -> None:
        match name, values:
            case "op", (SimOp() as op, _):
                api = None if op.name in {"run_status", "cancel"} else op.request.api
                self._witness.created(TrueOp(op.op_id or "", op.name, op.request.jid, api, op.job_cmd))
            case "send", (Driver() as driver, SimOp() as op, _):
                self._witness.sent(op.op_id or "", driver.agent_id)
        super().log(name, *values)

    def receive(self, message: DemoMessage, socket: Socket) -> None:
        if message.agent_id in self.drivers_by_agent:
            self._witness.agents.add(message.agent_id[:PREFIX_LENGTH])
            self._witness.received(message.op_id, message.name, message.jid)
        super().receive(message, socket)


class TearingProcess(Process):
    """A process that writes some of its multi-line records in two pieces."""

    def __init__(self, site: SimSite, stream: Sink, *, agent: bool = False, pid: int | None = None) -> None:
        super().__init__(site, stream, agent=agent, pid=pid)
        self.torn = site.load.torn_records if isinstance(site, WatchedWorld) else 0.0

    def emit(self, text: str) -> None:
        if self.torn and "\n" in text and self._rng.random() < self.torn:
            lines = text.split("\n")
            cut = self._rng.randrange(1, len(lines))
            super().emit("\n".join(lines[:cut]))
            self.work(self._rng.uniform(*PIECE_GAP_S))
            text = "\n".join(lines[cut:])
        super().emit(text)


class WatchedWorld(World):
    process_class = TearingProcess

    def __init__(
        self, seed: int, settings: SiteSettings | None = None, witness: Witness | None = None, **more: object
    ) -> None:
        self.witness = witness or Witness()
        self.load = settings if isinstance(settings, Settings) else Settings()
        super().__init__(seed, settings, **more)

    def new_supervisor(self) -> SiteSupervisor:
        return WatchedSupervisor(self, self.process(self.stream(SUPERVISOR_LOG)))


class Workload:
    def __init__(self, world: WatchedWorld) -> None:
        self._world = world
        self._rng = random.Random(f"{world.seed}/workload")
        self._windows = 0
        self._deadline: int | None = None
        self._known: dict[str, list[Simulation]] = {}

    def start(self) -> None:
        for user in self._world.users:
            for _ in range(WINDOWS):
                self._windows += 1
                self._world.play(lambda user=user: self._window(user))  # type: ignore[misc]

    @property
    def enough(self) -> bool:
        return self._world.witness.count >= (self._world.load.ops)

    @property
    def done(self) -> bool:
        if not self.enough:
            return False
        if self._deadline is None:
            self._deadline = self._world.kernel.now + GRACE_S * SECOND
        return self._windows == 0 or self._world.kernel.now > self._deadline

    async def _window(self, user: User) -> None:
        kernel, rng = self._world.kernel, self._rng
        await kernel.sleep(rng.random() * 3)
        browser = self._world.browser(user)
        await browser.open()
        while not self.enough:
            await kernel.sleep(rng.uniform(0.2, 2.5))
            await self._act(browser)
        self._windows -= 1

    async def _act(self, browser: Browser) -> None:
        done: Future[None] = Future(self._world.kernel)
        action = self._choose(browser.user)

        async def act() -> None:
            await action(browser)
            done.set(None)

        self._world.tasks.spawn(act)
        self._world.kernel.later(GIVE_UP_S, lambda: done.set(None))
        self._mishap()
        await done

    def _choose(self, user: User) -> Callable[[Browser], Awaitable[None]]:
        actions: list[tuple[float, Callable[[Browser], Awaitable[None]]]] = [
            (5, self._report),
            (4, self._animation),
            (1.2, self._cancel),
            (1.2, self._again),
            (1, self._download),
            (0.8, self._compute),
            (0.5, self._look),
        ]
        if user.on_cluster:
            actions = [(4, self._animation), (1, self._cancel), (0.5, self._again)]
        weights = [weight for weight, _ in actions]
        return self._rng.choices([action for _, action in actions], weights)[0]

    def _mishap(self) -> None:
        settings = self._world.load
        chance = self._rng.random()
        if chance < settings.restarts:
            self._world.tasks.spawn(self._world.restart)
        elif chance < settings.restarts + settings.crashes:
            self._world.tasks.spawn(lambda: self._world.restart(crash=True))
        elif chance < settings.restarts + settings.crashes + settings.agent_deaths and self._world.agents:
            self._rng.choice(list(self._world.agents.values()))(SIGKILL)

    def _plan(self, model: Model) -> Plan:
        rng = self._rng
        if rng.random() < ENDLESS_RUN:
            return Plan(duration_s=30_000)
        seconds = rng.uniform(0.4, 3) if not model.parallel else rng.uniform(1, 18)
        ending = rng.choices(list(ProgramEnd), (8, 2, 0.5, 0.5))[0]
        queued = rng.uniform(0, 25)
        error = incidents.ERRORS.get(ending, rng.choice(programs.RAISED)[1])
        frames = rng.randint(1, 20)
        return Plan(ending=ending, duration_s=seconds, error=error, frames=frames, queued_s=queued)

    async def _new(self, browser: Browser, models: tuple[Model, ...]) -> Simulation:
        rng = self._rng
        mode = "sbatch" if browser.user.on_cluster else None
        simulation = await browser.new(rng.choice(models), rng.choice(incidents.SIMULATION_NAMES), mode=mode)
        self._known.setdefault(browser.user.uid, []).append(simulation)
        return simulation

    async def _report(self, browser: Browser) -> None:
        simulation = await self._new(browser, SEQUENTIAL)
        await browser.run(simulation, self._plan(simulation.model))

    async def _animation(self, browser: Browser) -> None:
        simulation = await self._new(browser, PARALLEL)
        answer = await browser.run(simulation, self._plan(simulation.model))
        if answer.state == "completed":
            await self._frames(browser, simulation, answer.serial)

    async def _frames(self, browser: Browser, simulation: Simulation, serial: int) -> None:
        for number in range(self._rng.randint(1, 8)):
            if self._rng.random() < SLOW_ANALYSIS:
                self._world.slow[simulation.jid] = 500
            await browser.frame(simulation, number, serial)
            self._world.slow.pop(simulation.jid, None)

    async def _cancel(self, browser: Browser) -> None:
        models = PARALLEL if browser.user.on_cluster or self._rng.random() < 0.6 else SEQUENTIAL
        simulation = await self._new(browser, models)
        plan = Plan(duration_s=120, queued_s=self._rng.uniform(0, 15))
        started: Future[None] = Future(self._world.kernel)

        async def start() -> None:
            await browser.start(simulation, plan)
            started.set(None)

        self._world.tasks.spawn(start)
        await self._world.kernel.sleep(self._rng.uniform(0.05, 12))
        await browser.cancel(simulation)
        await started
        await browser.watch(simulation, await browser.poll(simulation))

    async def _again(self, browser: Browser) -> None:
        if known := self._known.get(browser.user.uid):
            simulation = self._rng.choice(known)
            answer = await browser.start(simulation, self._plan(simulation.model), force=True)
            await browser.watch(simulation, answer)

    async def _download(self, browser: Browser) -> None:
        simulation = await self._new(browser, PARALLEL)
        plan = Plan(duration_s=self._rng.uniform(1, 4))
        if (await browser.run(simulation, plan)).state != "completed":
            return
        await browser.download(simulation)
        if self._rng.random() < 0.4:
            self._world.run_dirs.remove(simulation.run_dir)
            await browser.download(simulation)

    async def _compute(self, browser: Browser) -> None:
        await browser.compute(self._rng.choice(SEQUENTIAL).app, self._rng.choice(incidents.STATELESS_METHODS))

    async def _look(self, browser: Browser) -> None:
        simulation = await browser.new(self._rng.choice(SEQUENTIAL), "never run")
        await browser.poll(simulation)


def simulate(seed: int, settings: Settings | None = None) -> WatchedWorld:
    """Run a whole site to its end: its users work until there are as many ops as asked for, then leave."""
    world = WatchedWorld(seed, settings or Settings())
    world.start()
    workload = Workload(world)
    workload.start()
    while not workload.done:
        world.advance(Nanos(world.kernel.now + 5 * SECOND))
    world.advance(Nanos(world.kernel.now + SETTLE_S * SECOND))
    return world
