"""Browsers: what users do, through the API server, and what that server logs of it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec

from jobtui.demo.catalog import AGENT_TEXT, Model
from jobtui.demo.kernel import Future
from jobtui.demo.messages import Answer, Request
from jobtui.demo.output import Process
from jobtui.demo.programs import Plan

if TYPE_CHECKING:
    from jobtui.demo.world import World

HANDLE_S = (0.001, 0.008)
NETWORK_S = (0.0003, 0.002)
RETRY_S = 3.0
"""How long a browser waits before it asks again when the server could not answer."""


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
        self.process = process

    def start(self) -> None:
        """Say that it is there."""
        self.process.log("server_listening", self._world.settings.server_port)

    async def call(self, address: str, uid: str, uri: str, request: Request, proto: str) -> Answer:
        """Serve one call of a browser."""
        world, process = self._world, self.process
        began = process.clock
        process.log("route_start", address, uri, proto, AGENT_TEXT)
        await world.kernel.sleep(world.rng.uniform(*HANDLE_S))
        if request.api != "api_runStatus" or world.is_old:
            process.log("api", request.api, request.run_dir)
        done: Future[Answer] = Future(world.kernel)
        world.kernel.later(world.rng.uniform(*NETWORK_S), lambda: world.deliver(request, done))
        answer = await done
        await world.kernel.sleep(world.rng.uniform(*NETWORK_S))
        ms = (process.clock - began) / 1e6
        process.log("route_end", address, uri, f"li-{uid}", 200 if answer.ok else 500, ms)
        return answer

    def page(self, address: str, uid: str, uri: str, ms: float) -> None:
        """Serve a call that has nothing to do with jobs."""
        self.process.log("route_start", address, uri, "POST", AGENT_TEXT)
        self.process.log("route_end", address, uri, f"li-{uid}", 200, ms)


class Browser:
    """One window of one user."""

    def __init__(self, world: World, user: User) -> None:
        self._world = world
        self.user = user
        self._address = f"127.0.0.1:{world.next_port()}"

    async def open(self) -> None:
        """Open the list of simulations, which gets the user's agent started. The answer is not waited for."""
        uri = "/simulation-list"
        self._world.server.page(self._address, self.user.uid, "/auth-state", 3.1)
        if self._world.is_old:
            return
        request = Request(api="api_beginSession", uid=self.user.uid, plan=self.user.plan)
        self._world.tasks.spawn(lambda: self._call(uri, request))
        await self._pause(0.05)

    async def new(self, model: Model, name: str, *, mode: str | None = None) -> Simulation:
        """Make a simulation."""
        self._world.server.page(self._address, self.user.uid, "/new-simulation", 5.2)
        await self._pause(0.05)
        return Simulation(
            id=self._world.names.simulation(),
            name=name,
            model=model,
            mode=mode or ("parallel" if model.parallel else "sequential"),
        )

    def jid(self, simulation: Simulation) -> str:
        """The id of its job."""
        return f"{self.user.uid}-{simulation.id}-{simulation.model.name}"

    def run_dir(self, simulation: Simulation) -> str:
        """Where its job runs."""
        root, model = self._world.settings.root, simulation.model
        return f"{root}/user/{self.user.uid}/{model.app}/{simulation.id}/{model.name}"

    def request(self, api: str, simulation: Simulation, *, full: bool = True) -> Request:
        """A request about a simulation. Only runs and their polls say how it is run."""
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

    async def start(self, simulation: Simulation, plan: Plan, *, force: bool = False) -> Answer:
        """Press the button, and log in to the cluster when that is asked for (once)."""
        answer = await self.attempt(simulation, plan, force=force)
        if answer.login_needed:
            await self.login(simulation, good=self._world.rng.random() < 0.7)
            answer = await self.attempt(simulation, plan, force=force)
        return answer

    async def attempt(self, simulation: Simulation, plan: Plan, *, force: bool = False) -> Answer:
        """Press the button, and do nothing more."""
        self._world.set_plan(self.jid(simulation), plan)
        request = msgspec.structs.replace(self.request("api_runSimulation", simulation), force=force)
        return await self._call("/run-simulation", request)

    async def login(self, simulation: Simulation, *, good: bool) -> Answer:
        """Log in to the cluster; a wrong password is followed by the right one."""
        request = self.request("api_sbatchLogin", simulation)
        answer = await self._call("/sbatch-login", msgspec.structs.replace(request, password_ok=good))
        if answer.login_needed:
            right = msgspec.structs.replace(request, password_ok=True)
            answer = await self._call("/sbatch-login", right)
        return answer

    async def poll(self, simulation: Simulation, serial: int = 0) -> Answer:
        """Ask once what became of it."""
        request = msgspec.structs.replace(self.request("api_runStatus", simulation), serial=serial)
        answer = await self._call("/run-status", request)
        if answer.login_needed:
            await self.login(simulation, good=True)
            answer = await self._call("/run-status", request)
        return answer

    async def watch(self, simulation: Simulation, answer: Answer, *, for_s: float | None = None) -> Answer:
        """Ask until the run is over, or for a while."""
        kernel = self._world.kernel
        end = None if for_s is None else kernel.now + for_s * 1e9
        while (answer.live or not answer.ok) and (end is None or kernel.now < end):
            await self._pause(answer.next_s if answer.ok else RETRY_S)
            answer = await self.poll(simulation)
        return answer

    async def cancel(self, simulation: Simulation) -> Answer:
        """Press stop."""
        return await self._call("/run-cancel", self.request("api_runCancel", simulation))

    async def frame(self, simulation: Simulation, number: int, serial: int) -> Answer:
        """Ask for one frame of a result."""
        parts = (number, simulation.model.name, simulation.id, simulation.model.app, "HashIsUnused", serial)
        uri = "/simulation-frame/" + "*".join(map(str, parts))
        request = self.request("api_simulationFrame", simulation, full=False)
        return await self._call(uri, request, "GET")

    async def download(self, simulation: Simulation) -> Answer:
        """Ask for a file of the run directory."""
        model = simulation.model
        name = "api_downloadDataFile" if self._world.is_old else "api_downloadRunFile"
        uri = f"/download-run-file/{model.app}/{simulation.id}/{model.name}/-1"
        return await self._call(uri, self.request(name, simulation, full=False), "GET")

    async def compute(self, app: str, method: str) -> Answer:
        """Ask for a small computation that belongs to no simulation."""
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

    async def _call(self, uri: str, request: Request, proto: str = "POST") -> Answer:
        server = self._world.server
        return await server.call(self._address, self.user.uid, quote(uri, safe="/*"), request, proto)

    async def _pause(self, seconds: float) -> None:
        await self._world.kernel.sleep(seconds)
