"""Ordinary life at a site: jobs arrive, run, wait for each other, fail now and then. For the live demo."""

import random
from collections import Counter
from collections.abc import Callable, Coroutine

from jobtui.demo import catalog
from jobtui.demo.browsers import Browser, Simulation, User
from jobtui.demo.catalog import Model
from jobtui.demo.programs import Ending, Plan
from jobtui.demo.rundirs import log_lines
from jobtui.demo.world import World
from jobtui.model.clock import Nanos

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


class Life:
    """Lets jobs arrive: every `early_s` seconds on average up to `busy_from`, from then on every `busy_s`."""

    def __init__(self, world: World, *, busy_from: Nanos, early_s: float, busy_s: float) -> None:
        self._world = world
        self._rng = random.Random(f"{world.seed}/life")
        self._users = tuple(world.users)
        self._busy_from = busy_from
        self._pauses = (early_s, busy_s)
        self._apps = {
            user.uid: self._rng.sample(sorted({m.app for m in catalog.MODELS}), 2) for user in self._users
        }
        self._known: dict[str, list[Simulation]] = {}
        self._long_runs: Counter[str] = Counter()

    def start(self) -> None:
        """Begin."""
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

    def _visit(self, user: User, *, parallel: bool) -> Callable[[], Coroutine[object, None, object]]:
        async def visit() -> None:
            browser = self._world.browser(user)
            if self._rng.random() < 0.5:
                await browser.open()
            if not parallel and self._rng.random() < COMPUTE_SHARE:
                method = self._rng.choice(catalog.STATELESS_METHODS)
                await browser.compute(self._apps[user.uid][0], method)
                return
            self._long_runs[user.uid] += parallel
            await self._run(browser, parallel=parallel)
            self._long_runs[user.uid] -= parallel

        return visit

    async def _run(self, browser: Browser, *, parallel: bool) -> None:
        rng = self._rng
        simulation, again = await self._simulation(browser, parallel=parallel)
        plan = self.plan(simulation.model)
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
        fitting = [model for model in catalog.MODELS if model.parallel == parallel]
        own = [model for model in fitting if model.app in self._apps[user.uid]]
        names = catalog.HOSTILE_NAMES if rng.random() < HOSTILE_SHARE else catalog.SIMULATION_NAMES
        mode = "sbatch" if user.on_cluster else None
        simulation = await browser.new(rng.choice(own or fitting), rng.choice(names), mode=mode)
        self._known.setdefault(user.uid, []).append(simulation)
        return simulation, False

    def plan(self, model: Model) -> Plan:
        """What a run of a model will do."""
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
        return catalog.KILLED
    if ending is Ending.PREPARE_FAILS:
        return catalog.PREPARE_ERROR
    own = [text for app, text in catalog.RAISED if app == model.app]
    return rng.choice(own) if own else catalog.OTHER_ERROR
