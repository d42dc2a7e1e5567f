"""Sites for tests: also those whose agents are processes beside the supervisor; and all that a site wrote."""

from enum import StrEnum

from jobtui.demo.agents import SIGTERM, SimAgent
from jobtui.demo.drivers import Host, SiteSupervisor
from jobtui.demo.kernel import Future
from jobtui.demo.messages import Record, read_record
from jobtui.demo.site import SUPERVISOR_LOG, Process
from jobtui.demo.site import Settings as SiteSettings
from jobtui.demo.supervisor import Driver, SimOp, Supervisor
from jobtui.demo.world import World as SimulatedWorld


class DriverName(StrEnum):
    """How agents are started."""

    LOCAL = "local"
    DOCKER = "docker"


class Settings(SiteSettings, frozen=True, kw_only=True):
    """`agents_in_supervisor_log` lets local agents write into the supervisor's stream."""

    driver: DriverName = DriverName.LOCAL
    agents_in_supervisor_log: bool = True


class LocalDriver(Driver):
    """Agents as processes beside the supervisor. One driver per user and kind, for its whole life."""

    name = "LocalDriver"

    def __init__(self, supervisor: Supervisor, op: SimOp, host: Host) -> None:
        super().__init__(supervisor, op, host.cpu_slots[op.kind])
        self._agent: SimAgent | None = None
        self._exited: Future[None] = Future(supervisor.kernel)

    async def start_agent(self, op: SimOp) -> None:
        settings = self.site.settings
        exec_dir = f"{settings.root}/user/{self.uid}/agent-local/{self.agent_id}"
        self.log("exec_dir", self, exec_dir)
        identity = self.identity(exec_dir)
        is_apart = isinstance(settings, Settings) and not settings.agents_in_supervisor_log
        log = f"agent-{identity.prefix}.log" if is_apart else SUPERVISOR_LOG
        self._agent = SimAgent(self.site, self.site.stream(log), identity, self._on_exit)
        self._agent.start()

    async def kill(self) -> None:
        if self._agent is not None:
            self.log("kill_local", self, self._agent.process.pid)
            self._agent.terminate(SIGTERM)
            await self._exited
            self._exited = Future(self.supervisor.kernel)

    def _on_exit(self, returncode: int) -> None:
        self._exited.set(None)
        self._agent = None
        self.log("agent_exited", self, returncode)


class AnySupervisor(SiteSupervisor):
    def __init__(self, world: "World", process: Process) -> None:
        super().__init__(world, process)
        if world.driver is DriverName.LOCAL:
            self.modules = ["local", *self.modules[1:]]
            self.driver_class, self.hosts = LocalDriver, [Host("localhost", self)]


class World(SimulatedWorld):
    def __init__(self, seed: int, settings: SiteSettings | None = None, **more: object) -> None:
        settings = settings or Settings()
        self.driver = settings.driver if isinstance(settings, Settings) else DriverName.LOCAL
        self._logs: dict[str, bytearray] = {}
        super().__init__(seed, settings, **more)  # type: ignore[arg-type]

    def new_supervisor(self) -> SiteSupervisor:
        return AnySupervisor(self, self.process(self.stream(SUPERVISOR_LOG)))

    def log(self, name: str) -> bytes:
        self._logs.setdefault(name, bytearray()).extend(self.stream(name).take(everything=True))
        return bytes(self._logs[name])

    def records(self) -> dict[str, Record]:
        found = [read_record(data) for path in self.record_paths if (data := self.disk.read(path))]
        return {str(record["computeJid"]): record for record in found}
