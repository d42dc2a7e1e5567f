"""The kinds of drivers, and which one an op goes to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobtui.demo.agents import SIGTERM, Agent
from jobtui.demo.cluster import SbatchDriver
from jobtui.demo.containers import DockerDriver, Host
from jobtui.demo.drivers import Driver
from jobtui.demo.kernel import Event
from jobtui.demo.ops import Op
from jobtui.demo.settings import DriverName
from jobtui.demo.slots import Slots

if TYPE_CHECKING:
    from jobtui.demo.supervisor import Supervisor

KINDS = ("sequential", "parallel")


class LocalDriver(Driver):
    """Agents as processes beside the supervisor. One driver per user and kind, for its whole life."""

    name = "LocalDriver"
    starting_secs = 5

    def __init__(self, supervisor: Supervisor, op: Op, cpu_slots: Slots) -> None:
        super().__init__(supervisor, op, cpu_slots)
        self._agent: Agent | None = None
        self._exited = Event(supervisor.kernel)

    @property
    def exec_dir(self) -> str:
        """Where its agent runs; holds the full agent id."""
        return f"{self.supervisor.settings.root}/user/{self.uid}/agent-local/{self.agent_id}"

    async def start_agent(self, op: Op) -> None:
        """Start the process."""
        world = self.supervisor.world
        self.log("exec_dir", self, self.exec_dir)
        identity = self.identity(self.exec_dir)
        process = world.agent_process(identity.prefix)
        self._agent = world.agent_class(world, process, identity, self._on_exit)
        world.agents[self._agent] = None
        self._agent.start(never_connects=world.agent_is_mute(self.uid))

    async def kill(self) -> None:
        """Tell the process to end, and wait for that."""
        if self._agent is None:
            return
        self.log("kill_local", self, self._agent.process.pid)
        self._agent.terminate(SIGTERM)
        await self._exited.wait()
        self._exited.clear()

    def _on_exit(self, returncode: int) -> None:
        self._exited.set()
        self._agent = None
        self.log("agent_exited", self, returncode)


class Drivers:
    """Every driver of a supervisor."""

    def __init__(self, supervisor: Supervisor) -> None:
        settings, kernel = supervisor.settings, supervisor.kernel
        self.by_agent: dict[str, Driver] = {}
        self._supervisor = supervisor
        sizes = (settings.slots_sequential, settings.slots_parallel)
        self._local_slots = {kind: Slots(kernel, size) for kind, size in zip(KINDS, sizes, strict=True)}
        self._local: dict[tuple[str, str], LocalDriver] = {}
        self._sbatch: dict[str, SbatchDriver] = {}
        self._hosts = [
            Host(name, {kind: Slots(kernel, size) for kind, size in zip(KINDS, sizes, strict=True)})
            for name in settings.hosts
        ]

    @property
    def modules(self) -> list[str]:
        """The kinds that are configured."""
        sbatch = ["sbatch"] if self._supervisor.settings.sbatch_users else []
        return [str(self._supervisor.settings.driver), *sbatch]

    def free_slots(self, kind: str) -> int:
        """How many more runs of a kind could start now."""
        if self._supervisor.settings.driver is DriverName.DOCKER:
            return sum(len(host.cpu_slots[kind]) for host in self._hosts)
        return len(self._local_slots[kind])

    def of(self, op: Op) -> Driver:
        """The driver for an op: the user's own, made when there is none."""
        uid = op.request.uid
        if op.mode == "sbatch":
            if uid not in self._sbatch:
                self._sbatch[uid] = SbatchDriver(self._supervisor, op)
            return self._sbatch[uid]
        if self._supervisor.settings.driver is DriverName.DOCKER:
            return self._docker(op)
        key = (uid, op.kind)
        if key not in self._local:
            self._local[key] = LocalDriver(self._supervisor, op, self._local_slots[op.kind])
        return self._local[key]

    def _docker(self, op: Op) -> DockerDriver:
        """Both containers of a user are on one host: the one with the fewest."""
        uid = op.request.uid
        own = [host for host in self._hosts if host.has(uid)]
        if own and (driver := own[0].drivers.get((uid, op.kind))):
            return driver
        host = own[0] if own else min(self._hosts, key=lambda host: host.count(op.kind))
        return DockerDriver(self._supervisor, op, host)
