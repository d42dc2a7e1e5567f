"""A simulated site with all that acts on it: supervisor, API server, and users in their browsers.

    world = World(seed=7, settings=Settings(users=6))
    world.start()
    world.play(script)                      # what somebody does, a coroutine
    world.advance(until)
    world.log("supervisor.log"), world.records()

Deterministic: the same seed and settings give the same bytes.
"""

from __future__ import annotations

import random
from urllib.parse import quote

import msgspec

from jobtui.demo.drivers import SiteDrivers
from jobtui.demo.kernel import Future, Start
from jobtui.demo.messages import SHORT_ID, AgentAnswer, Record, Request, read_record
from jobtui.demo.programs import Disk, Model, Plan
from jobtui.demo.site import SERVER_LOG, SUPERVISOR_LOG, Process, Settings, Site
from jobtui.demo.supervisor import Supervisor
from jobtui.model.clock import Nanos

FIRST_PORT = 44_292
HANDLE_S = (0.001, 0.008)
NETWORK_S = (0.0003, 0.002)
RETRY_S = 3.0
"""How long a browser waits before it asks again when the server could not answer."""
PLANS = ("basic", "basic", "basic", "trial", "premium", "premium", "enterprise")
AGENT_TEXT = "Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0"


class User(msgspec.Struct, frozen=True, kw_only=True):
    """Someone with an account."""

    uid: str
    plan: str
    on_cluster: bool = False


class Simulation(msgspec.Struct, frozen=True, kw_only=True):
    """A simulation and the model of it that is run."""

    id: str
    name: str
    model: Model
    mode: str


class Server:
    """The API server: passes requests on, and logs their start and end."""

    def __init__(self, world: World, process: Process) -> None:
        self._world = world
        self._process = process

    def start(self) -> None:
        self._process.log("server_listening", self._world.settings.server_port)

    async def call(self, address: str, uri: str, request: Request, proto: str) -> AgentAnswer:
        """Serve one call of a browser; refused when there is no supervisor."""
        world, process = self._world, self._process
        began = process.clock
        process.log("route_start", address, uri, proto, AGENT_TEXT)
        await world.kernel.sleep(world.rng.uniform(*HANDLE_S))
        if request.api != "api_runStatus":
            process.log("api", request.api, request.run_dir)
        done: Future[AgentAnswer] = Future(world.kernel)
        world.kernel.later(world.rng.uniform(*NETWORK_S), lambda: self._deliver(request, done))
        answer = await done
        await world.kernel.sleep(world.rng.uniform(*NETWORK_S))
        ms = (process.clock - began) / 1e6
        process.log("route_end", address, uri, f"li-{request.uid}", 200 if answer.ok else 500, ms)
        return answer

    def _deliver(self, request: Request, done: Future[AgentAnswer]) -> None:
        if self._world.supervisor.process.alive:
            self._world.supervisor.request(request, done)
        else:
            done.set(AgentAnswer(ok=False))

    def page(self, address: str, uid: str, uri: str, ms: float) -> None:
        self._process.log("route_start", address, uri, "POST", AGENT_TEXT)
        self._process.log("route_end", address, uri, f"li-{uid}", 200, ms)


class Browser:
    """One window of one user."""

    def __init__(self, world: World, user: User, port: int) -> None:
        self._world = world
        self.user = user
        self._address = f"127.0.0.1:{port}"

    async def open(self) -> None:
        uri = "/simulation-list"
        self._world.server.page(self._address, self.user.uid, "/auth-state", 3.1)
        request = Request(api="api_beginSession", uid=self.user.uid, plan=self.user.plan)
        self._world.tasks.spawn(lambda: self._call(uri, request))
        await self._pause(0.05)

    async def new(self, model: Model, name: str, *, mode: str | None = None) -> Simulation:
        self._world.server.page(self._address, self.user.uid, "/new-simulation", 5.2)
        await self._pause(0.05)
        return Simulation(
            id=self._world.ids.draw(SHORT_ID),
            name=name,
            model=model,
            mode=mode or ("parallel" if model.parallel else "sequential"),
        )

    def jid(self, simulation: Simulation) -> str:
        return f"{self.user.uid}-{simulation.id}-{simulation.model.name}"

    def run_dir(self, simulation: Simulation) -> str:
        root, model = self._world.settings.root, simulation.model
        return f"{root}/user/{self.user.uid}/{model.app}/{simulation.id}/{model.name}"

    def request(self, api: str, simulation: Simulation, *, full: bool = True) -> Request:
        return Request(
            api=api,
            uid=self.user.uid,
            plan=self.user.plan,
            jid=self.jid(simulation),
            app=simulation.model.app,
            simulation=simulation.id,
            model=simulation.model.name,
            name=simulation.name,
            run_dir=self.run_dir(simulation),
            is_parallel=simulation.model.parallel and full,
            mode=simulation.mode if full else "",
        )

    async def start(self, simulation: Simulation, plan: Plan, *, force: bool = False) -> AgentAnswer:
        answer = await self.attempt(simulation, plan, force=force)
        if answer.login_needed:
            await self.login(simulation, good=self._world.rng.random() < 0.7)
            answer = await self.attempt(simulation, plan, force=force)
        return answer

    async def attempt(self, simulation: Simulation, plan: Plan, *, force: bool = False) -> AgentAnswer:
        self._world.plans[self.jid(simulation)] = plan
        request = msgspec.structs.replace(self.request("api_runSimulation", simulation), force=force)
        return await self._call("/run-simulation", request)

    async def login(self, simulation: Simulation, *, good: bool) -> AgentAnswer:
        request = self.request("api_sbatchLogin", simulation)
        answer = await self._call("/sbatch-login", msgspec.structs.replace(request, password_ok=good))
        if answer.login_needed:
            right = msgspec.structs.replace(request, password_ok=True)
            answer = await self._call("/sbatch-login", right)
        return answer

    async def poll(self, simulation: Simulation, serial: int = 0) -> AgentAnswer:
        request = msgspec.structs.replace(self.request("api_runStatus", simulation), serial=serial)
        answer = await self._call("/run-status", request)
        if answer.login_needed:
            await self.login(simulation, good=True)
            answer = await self._call("/run-status", request)
        return answer

    async def watch(
        self, simulation: Simulation, answer: AgentAnswer, *, for_s: float | None = None
    ) -> AgentAnswer:
        kernel = self._world.kernel
        end = None if for_s is None else kernel.now + for_s * 1e9
        while (answer.live or not answer.ok) and (end is None or kernel.now < end):
            await self._pause(answer.next_s if answer.ok else RETRY_S)
            answer = await self.poll(simulation)
        return answer

    async def cancel(self, simulation: Simulation) -> AgentAnswer:
        return await self._call("/run-cancel", self.request("api_runCancel", simulation))

    async def frame(self, simulation: Simulation, number: int, serial: int) -> AgentAnswer:
        parts = (number, simulation.model.name, simulation.id, simulation.model.app, "HashIsUnused", serial)
        uri = "/simulation-frame/" + "*".join(map(str, parts))
        request = self.request("api_simulationFrame", simulation, full=False)
        return await self._call(uri, request, "GET")

    async def download(self, simulation: Simulation) -> AgentAnswer:
        model = simulation.model
        uri = f"/download-run-file/{model.app}/{simulation.id}/{model.name}/-1"
        request = self.request("api_downloadRunFile", simulation, full=False)
        return await self._call(uri, request, "GET")

    async def compute(self, app: str, method: str) -> AgentAnswer:
        request = Request(
            api="api_statelessCompute",
            uid=self.user.uid,
            plan=self.user.plan,
            jid=f"{self.user.uid}-_1_stlss-{method}",
            app=app,
            simulation="_1_stlss",
            model=method,
            mode="sequential",
            method=method,
        )
        return await self._call("/stateless-compute", request)

    async def _call(self, uri: str, request: Request, proto: str = "POST") -> AgentAnswer:
        return await self._world.server.call(self._address, quote(uri, safe="/*"), request, proto)

    async def _pause(self, seconds: float) -> None:
        await self._world.kernel.sleep(seconds)


class World(Site):
    """One site, and how it is made to act. Logs are kept by file name until taken."""

    supervisor: Supervisor

    def __init__(
        self,
        seed: int,
        settings: Settings | None = None,
        *,
        disk: Disk | None = None,
        keep_run_dirs: bool = False,
    ) -> None:
        super().__init__(seed, settings or Settings(), disk or Disk(), keep_run_dirs=keep_run_dirs)
        self._restarting = False
        self._port = FIRST_PORT
        self.server = Server(self, self.process(self.stream(SERVER_LOG)))
        self.supervisor = self.new_supervisor()
        self.users: list[User] = []
        self._user_rng = random.Random(f"{seed}/users")
        for number in range(self.settings.users + self.settings.sbatch_users):
            self.add_user(on_cluster=number >= self.settings.users)

    def new_supervisor(self) -> Supervisor:
        return Supervisor(self, self.process(self.stream(SUPERVISOR_LOG)), SiteDrivers)

    def add_user(self, *, on_cluster: bool = False) -> User:
        user = User(uid=self.ids.draw(SHORT_ID), plan=self._user_rng.choice(PLANS), on_cluster=on_cluster)
        self.users.append(user)
        return user

    def browser(self, user: User) -> Browser:
        self._port += 2
        return Browser(self, user, self._port)

    def start(self) -> None:
        self.server.start()
        self.supervisor.start()

    def play(self, script: Start) -> None:
        self.tasks.spawn(script)

    def advance(self, until: Nanos) -> None:
        self.kernel.run(until)

    async def restart(self, *, crash: bool = False, down_s: float = 2.0) -> None:
        """Stop the supervisor (in good order, or not) and start another one, unless that is under way."""
        if self._restarting:
            return
        self._restarting = True
        old = self.supervisor
        if crash:
            old.end()
        else:
            stopped: Future[None] = Future(self.kernel)

            async def stop() -> None:
                await old.stop()
                stopped.set(None)

            self.tasks.spawn(stop)
            await stopped
        await self.kernel.sleep(down_s)
        self.supervisor = self.new_supervisor()
        self.supervisor.start()
        self._restarting = False

    def records(self) -> dict[str, Record]:
        found = [read_record(data) for path in self.record_paths if (data := self.disk.read(path))]
        return {str(record["computeJid"]): record for record in found}

    def take_saved(self) -> list[Record]:
        saved, self.saved = self.saved, {}
        return [read_record(data) for data in saved.values()]
