"""Users at work: all that can happen, in random order, until there are as many ops as asked for."""

import random
from collections.abc import Awaitable, Callable

from jobtui.demo import catalog
from jobtui.demo.agents import SIGKILL
from jobtui.demo.browsers import Browser, Simulation, User
from jobtui.demo.catalog import Model
from jobtui.demo.kernel import Future
from jobtui.demo.programs import Ending, Plan
from jobtui.demo.settings import Settings
from jobtui.demo.world import World
from jobtui.model.clock import SECOND, Nanos

WINDOWS = 2
"""How many windows each user has open."""
GIVE_UP_S = 400
"""After how long a user closes a window that does not answer, and does something else."""
GRACE_S = 600
SETTLE_S = 10
"""How long a site is left alone after its users have gone."""
SLOW_ANALYSIS = 0.003
ENDLESS_RUN = 0.004

SEQUENTIAL = tuple(model for model in catalog.MODELS if not model.parallel)
PARALLEL = tuple(model for model in catalog.MODELS if model.parallel)


class Workload:
    """All users of a site, and what befalls it meanwhile."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._rng = random.Random(f"{world.seed}/workload")
        self._windows = 0
        self._deadline: int | None = None
        self._known: dict[str, list[tuple[Browser, Simulation]]] = {}

    def start(self) -> None:
        """Let every user begin."""
        for user in self._world.users:
            for _ in range(WINDOWS):
                self._windows += 1
                self._world.play(lambda user=user: self._window(user))  # type: ignore[misc]

    @property
    def enough(self) -> bool:
        """Whether there are as many ops as asked for."""
        return len(self._world.witness) >= (self._world.settings.ops or 0)

    @property
    def done(self) -> bool:
        """Whether all users have left, or those that remain wait in vain."""
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
            await kernel.sleep(rng.uniform(0.2, 2.5) * self._world.settings.tempo)
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
        if self._world.is_old:
            actions = [action for action in actions if action[1] != self._compute]
        if user.on_cluster:
            actions = [(4, self._animation), (1, self._cancel), (0.5, self._again)]
        weights = [weight for weight, _ in actions]
        return self._rng.choices([action for _, action in actions], weights)[0]

    def _mishap(self) -> None:
        settings: Settings = self._world.settings
        chance = self._rng.random()
        if chance < settings.restarts:
            self._world.tasks.spawn(self._world.restart)
        elif chance < settings.restarts + settings.crashes:
            self._world.tasks.spawn(lambda: self._world.restart(crash=True))
        elif chance < settings.restarts + settings.crashes + settings.agent_deaths and self._world.agents:
            self._rng.choice(list(self._world.agents)).die(SIGKILL)

    def _plan(self, model: Model) -> Plan:
        rng = self._rng
        if rng.random() < ENDLESS_RUN:
            return Plan(duration_s=30_000)
        seconds = rng.uniform(0.4, 3) if not model.parallel else rng.uniform(1, 18)
        ending = rng.choices(list(Ending), (8, 2, 0.5, 0.5))[0]
        queued = rng.uniform(0, 25)
        errors = {
            Ending.COMPLETED: None,
            Ending.RAISES: rng.choice(catalog.RAISED)[1],
            Ending.KILLED: catalog.KILLED,
            Ending.PREPARE_FAILS: catalog.PREPARE_ERROR,
        }
        frames = rng.randint(1, 20)
        return Plan(ending=ending, duration_s=seconds, error=errors[ending], frames=frames, queued_s=queued)

    async def _new(self, browser: Browser, models: tuple[Model, ...]) -> Simulation:
        rng = self._rng
        mode = "sbatch" if browser.user.on_cluster else None
        simulation = await browser.new(rng.choice(models), rng.choice(catalog.SIMULATION_NAMES), mode=mode)
        self._known.setdefault(browser.user.uid, []).append((browser, simulation))
        return simulation

    async def _report(self, browser: Browser) -> None:
        simulation = await self._new(browser, SEQUENTIAL)
        answer = await browser.start(simulation, self._plan(simulation.model))
        await browser.watch(simulation, answer)

    async def _animation(self, browser: Browser) -> None:
        simulation = await self._new(browser, PARALLEL)
        answer = await browser.start(simulation, self._plan(simulation.model))
        answer = await browser.watch(simulation, answer)
        if answer.state == "completed":
            await self._frames(browser, simulation, answer.serial)

    async def _frames(self, browser: Browser, simulation: Simulation, serial: int) -> None:
        jid = browser.jid(simulation)
        for number in range(self._rng.randint(1, 8)):
            if self._rng.random() < SLOW_ANALYSIS:
                self._world.slow[jid] = 500
            await browser.frame(simulation, number, serial)
            self._world.slow.pop(jid, None)

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
        known = self._known.get(browser.user.uid)
        if not known:
            return
        simulation = self._rng.choice(known)[1]
        answer = await browser.start(simulation, self._plan(simulation.model), force=True)
        await browser.watch(simulation, answer)

    async def _download(self, browser: Browser) -> None:
        simulation = await self._new(browser, PARALLEL)
        plan = Plan(duration_s=self._rng.uniform(1, 4))
        answer = await browser.watch(simulation, await browser.start(simulation, plan))
        if answer.state != "completed":
            return
        await browser.download(simulation)
        if self._rng.random() < 0.4:
            self._world.run_dirs.remove(browser.run_dir(simulation))
            await browser.download(simulation)

    async def _compute(self, browser: Browser) -> None:
        await browser.compute(self._rng.choice(SEQUENTIAL).app, self._rng.choice(catalog.STATELESS_METHODS))

    async def _look(self, browser: Browser) -> None:
        simulation = await browser.new(self._rng.choice(SEQUENTIAL), "never run")
        await browser.poll(simulation)


def simulate(seed: int, settings: Settings | None = None) -> World:
    """Run a whole site to its end: its users work until there are as many ops as asked for, then leave."""
    world = World(seed, settings)
    world.start()
    workload = Workload(world)
    workload.start()
    while not workload.done:
        world.advance(Nanos(world.kernel.now + 5 * SECOND))
    world.advance(Nanos(world.kernel.now + SETTLE_S * SECOND))
    return world
