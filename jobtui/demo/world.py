"""A simulated site with everything that acts on it: supervisor, API server, and users in their browsers.

    world = World(seed=7, settings=Settings(users=6))
    world.start()
    world.play(script)                      # what somebody does, a coroutine
    world.advance(until)
    world.take("supervisor.log"), world.take_saved()

Deterministic: the same seed and settings give the same bytes.
"""

from __future__ import annotations

import random
from urllib.parse import quote

import msgspec

from jobtui.demo.drivers import SiteSupervisor
from jobtui.demo.kernel import Future, Start
from jobtui.demo.messages import SHORT_ID, AgentAnswer, ApiRequest, Record, read_record
from jobtui.demo.programs import Model, Plan
from jobtui.demo.site import SERVER_LOG, SUPERVISOR_LOG, Settings, SimSite
from jobtui.model.clock import Nanos

RETRY_S = 3.0
"""How long a browser waits before it asks again if the server could not answer."""
AGENT_TEXT = "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0"


class User(msgspec.Struct, frozen=True, kw_only=True):
    uid: str
    plan: str
    on_cluster: bool = False


class Simulation(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    model: Model
    mode: str
    jid: str
    run_dir: str


class Browser:
    """One window of one user. Its requests pass through the API server, which logs their start and end."""

    def __init__(self, world: World, user: User, port: int) -> None:
        self._world = world
        self.user = user
        self._address = f"127.0.0.1:{port}"

    async def open(self) -> None:
        self._page("/auth-state", 3.1)
        request = ApiRequest(api="api_beginSession", uid=self.user.uid, plan=self.user.plan)
        self._world.tasks.spawn(lambda: self._call("/simulation-list", request))
        await self._world.kernel.sleep(0.05)

    async def new(self, model: Model, name: str, *, mode: str | None = None) -> Simulation:
        self._page("/new-simulation", 5.2)
        await self._world.kernel.sleep(0.05)
        uid, number = self.user.uid, self._world.ids.draw(SHORT_ID)
        return Simulation(
            id=number,
            name=name,
            model=model,
            mode=mode or ("parallel" if model.parallel else "sequential"),
            jid=f"{uid}-{number}-{model.name}",
            run_dir=f"{self._world.settings.root}/user/{uid}/{model.app}/{number}/{model.name}",
        )

    async def start(self, simulation: Simulation, plan: Plan, *, force: bool = False) -> AgentAnswer:
        answer = await self.attempt(simulation, plan, force=force)
        if answer.login_needed:
            await self.login(simulation, good=self._world.rng.random() < 0.7)
            answer = await self.attempt(simulation, plan, force=force)
        return answer

    async def attempt(self, simulation: Simulation, plan: Plan, *, force: bool = False) -> AgentAnswer:
        self._world.plans[simulation.jid] = plan
        return await self._ask("/run-simulation", "api_runSimulation", simulation, force=force)

    async def login(self, simulation: Simulation, *, good: bool) -> AgentAnswer:
        answer = await self._ask("/sbatch-login", "api_sbatchLogin", simulation, password_ok=good)
        if answer.login_needed:
            answer = await self._ask("/sbatch-login", "api_sbatchLogin", simulation, password_ok=True)
        return answer

    async def poll(self, simulation: Simulation) -> AgentAnswer:
        answer = await self._ask("/run-status", "api_runStatus", simulation)
        if answer.login_needed:
            await self.login(simulation, good=True)
            answer = await self._ask("/run-status", "api_runStatus", simulation)
        return answer

    async def watch(
        self, simulation: Simulation, answer: AgentAnswer, *, for_s: float | None = None
    ) -> AgentAnswer:
        kernel = self._world.kernel
        end = None if for_s is None else kernel.now + for_s * 1e9
        while (answer.live or not answer.ok) and (end is None or kernel.now < end):
            await kernel.sleep(answer.next_s if answer.ok else RETRY_S)
            answer = await self.poll(simulation)
        return answer

    async def run(self, simulation: Simulation, plan: Plan) -> AgentAnswer:
        return await self.watch(simulation, await self.start(simulation, plan))

    async def cancel(self, simulation: Simulation) -> AgentAnswer:
        return await self._ask("/run-cancel", "api_runCancel", simulation)

    async def frame(self, simulation: Simulation, number: int, serial: int) -> AgentAnswer:
        parts = (number, simulation.model.name, simulation.id, simulation.model.app, "HashIsUnused", serial)
        uri = "/simulation-frame/" + "*".join(map(str, parts))
        return await self._get(uri, "api_simulationFrame", simulation)

    async def download(self, simulation: Simulation) -> AgentAnswer:
        model = simulation.model
        uri = f"/download-run-file/{model.app}/{simulation.id}/{model.name}/-1"
        return await self._get(uri, "api_downloadRunFile", simulation)

    async def compute(self, app: str, method: str) -> AgentAnswer:
        uid, number = self.user.uid, "_1_stlss"
        request = ApiRequest(
            api="api_statelessCompute", uid=uid, plan=self.user.plan, jid=f"{uid}-{number}-{method}", app=app,
            simulation=number, model=method, mode="sequential", method=method,
        )  # fmt: skip
        return await self._call("/stateless-compute", request)

    async def _get(self, uri: str, api: str, simulation: Simulation) -> AgentAnswer:
        return await self._ask(uri, api, simulation, proto="GET", is_parallel=False, mode="")

    async def _ask(
        self, uri: str, api: str, simulation: Simulation, *, proto: str = "POST", **said: object
    ) -> AgentAnswer:
        model = simulation.model
        request = ApiRequest(
            api=api, uid=self.user.uid, plan=self.user.plan, jid=simulation.jid, app=model.app,
            simulation=simulation.id, model=model.name, name=simulation.name, run_dir=simulation.run_dir,
            is_parallel=model.parallel, mode=simulation.mode,
        )  # fmt: skip
        return await self._call(uri, msgspec.structs.replace(request, **said), proto)

    async def _call(self, uri: str, request: ApiRequest, proto: str = "POST") -> AgentAnswer:
        world, process, uri = self._world, self._world.server, quote(uri, safe="/*")
        began = process.clock
        process.log("route_start", self._address, uri, proto, AGENT_TEXT)
        await world.pause("handle")
        if request.api != "api_runStatus":
            process.log("api", request.api, request.run_dir)
        done: Future[AgentAnswer] = Future(world.kernel)
        world.later("network", lambda: world.supervisor.request(request, done))
        answer = await done
        await world.pause("network")
        ms = (process.clock - began) / 1e6
        process.log("route_end", self._address, uri, f"li-{request.uid}", 200 if answer.ok else 500, ms)
        return answer

    def _page(self, uri: str, ms: float) -> None:
        server = self._world.server
        server.log("route_start", self._address, uri, "POST", AGENT_TEXT)
        server.log("route_end", self._address, uri, f"li-{self.user.uid}", 200, ms)


class World(SimSite):
    supervisor: SiteSupervisor

    def __init__(self, seed: int, settings: Settings | None = None, *, keep_run_dirs: bool = False) -> None:
        super().__init__(seed, settings or Settings(), keep_run_dirs=keep_run_dirs)
        self.users: list[User] = []
        self._port = 44_292
        self._user_rng = random.Random(f"{seed}/users")
        self._restarting = False
        self.server = self.process(self.stream(SERVER_LOG))
        self.supervisor = self.new_supervisor()
        for number in range(self.settings.users + self.settings.sbatch_users):
            self.add_user(on_cluster=number >= self.settings.users)

    def new_supervisor(self) -> SiteSupervisor:
        return SiteSupervisor(self, self.process(self.stream(SUPERVISOR_LOG)))

    def add_user(self, *, on_cluster: bool = False) -> User:
        plans = ("basic", "basic", "basic", "trial", "premium", "premium", "enterprise")
        user = User(uid=self.ids.draw(SHORT_ID), plan=self._user_rng.choice(plans), on_cluster=on_cluster)
        self.users.append(user)
        return user

    def browser(self, user: User) -> Browser:
        self._port += 2
        return Browser(self, user, self._port)

    def start(self) -> None:
        self.server.log("server_listening", self.settings.server_port)
        self.supervisor.start()

    def play(self, script: Start) -> None:
        self.tasks.spawn(script)

    def advance(self, until: Nanos) -> None:
        self.kernel.run(until)

    async def restart(self, *, crash: bool = False) -> None:
        """Stop the supervisor (orderly, or not) and start another one, unless that has begun."""
        if self._restarting:
            return
        self._restarting = True
        if crash:
            self.supervisor.end()
        else:
            await self.supervisor.stop()
        await self.kernel.sleep(2)
        self.supervisor = self.new_supervisor()
        self.supervisor.start()
        self._restarting = False

    def take_saved(self) -> list[Record]:
        saved, self.saved = self.saved, {}
        return [read_record(data) for data in saved.values()]
