"""The Docker driver: agents in containers on other hosts, whose output reaches the supervisor's log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobtui.demo.agents import SIGTERM, Agent
from jobtui.demo.drivers import Driver
from jobtui.demo.kernel import Kernel
from jobtui.demo.ops import Op
from jobtui.demo.output import Stream
from jobtui.demo.slots import Slots
from jobtui.model.clock import Nanos

if TYPE_CHECKING:
    from jobtui.demo.supervisor import Supervisor

CHUNK = 1000
"""How many bytes the supervisor reads at a time of what a container prints."""
CREATE_S = (0.05, 0.4)
STOP_S = (0.1, 0.6)
FORWARD_S = (0.0003, 0.004)
KILLED_EXIT = 137
TERMINATED_EXIT = 143


class Host:
    """A machine that runs containers."""

    def __init__(self, name: str, cpu_slots: dict[str, Slots]) -> None:
        self.name = name
        self.cpu_slots = cpu_slots
        self.drivers: dict[tuple[str, str], DockerDriver] = {}

    def has(self, uid: str) -> bool:
        """Whether a container of this user is here."""
        return any(owner == uid for owner, _ in self.drivers)

    def count(self, kind: str) -> int:
        """How many containers of a kind are here."""
        return sum(of == kind for _, of in self.drivers)


class DockerDriver(Driver):
    """One container. When its agent is replaced, a new driver (with a new agent id) takes over."""

    name = "DockerDriver"
    starting_secs = 8

    def __init__(self, supervisor: Supervisor, op: Op, host: Host) -> None:
        super().__init__(supervisor, op, host.cpu_slots[op.kind])
        self._host: Host | None = host
        self._host_name = host.name
        self._container = f"srj-{self.kind[0]}-{self.uid}"
        self._container_id: str | None = None
        self._told_to_stop = False
        self._agent: Agent | None = None
        self._output: Output | None = None
        host.drivers[self.uid, self.kind] = self

    async def start_agent(self, op: Op) -> None:
        """Create the container, then start it."""
        world = self.supervisor.world
        exec_dir = f"{world.settings.root}/user/{self.uid}/agent-docker/{self._host_name}/{self._container}"
        self.log("exec_dir_docker", self, exec_dir)
        self.log("run_docker", self, self._run_command())
        await world.kernel.sleep(world.rng.uniform(*CREATE_S))
        self._container_id = world.names.hex(64)
        identity = self.identity(exec_dir)
        self._output = Output(world.kernel, self, world.container_stream(self._container))
        process = world.agent_process(identity.prefix, self._output)
        self._agent = world.agent_class(world, process, identity, self._on_exit)
        world.agents[self._agent] = None
        self._agent.start(never_connects=world.agent_is_mute(self.uid))
        self.log("container", self, self._container, self._container_id[:12])

    async def kill(self) -> None:
        """Stop the container."""
        if self._host is None:
            return
        shown = self._container_id[:12] if self._container_id and not self._told_to_stop else None
        self._told_to_stop = True
        self.log("kill_docker", self, shown)
        await self.supervisor.kernel.sleep(self.supervisor.rng.uniform(*STOP_S))
        if self._agent is None:
            error = f"Error response from daemon: No such container: {self._container}"
            command = self._docker("stop", "--timeout=3", self._container)
            self.log("docker_failed", "stop", self._container, "non-zero exit=1", command, error)
            return
        self._agent.terminate(SIGTERM)

    async def free(self, caller: str) -> None:
        """End the container and leave the host."""
        await super().free(caller)
        if self._host is not None:
            host, self._host = self._host, None
            host.drivers.pop((self.uid, self.kind), None)

    def forward(self, text: str) -> None:
        """Put one line of the container's output into the supervisor's log."""
        self.log("forwarded", self._container, text)

    def _on_exit(self, returncode: int) -> None:
        self._agent = None
        if self._output and (rest := self._output.rest()):
            self.log("forwarded_rest", self._container, rest)
        code = {0: 0, SIGTERM: TERMINATED_EXIT}.get(returncode, KILLED_EXIT)
        error = f"non-zero exit={code}" if code else ""
        command = self._docker("start", "--interactive", self._container_id or "")
        self.log("docker_ended", "start", self._container, error, command)

    def _run_command(self) -> str:
        options = ("--init", "--interactive", "--rm", "--network=host", f"--name={self._container}")
        return " ".join(self._docker("run", *options, "radiasoft/sirepo:prod", "/bin/bash", "-l"))

    def _docker(self, *arguments: str) -> tuple[str, ...]:
        """A command line of the docker client."""
        tls = f"{self.supervisor.settings.root}/docker_tls/{self._host_name}"
        return (
            "docker",
            f"--host=tcp://{self._host_name}:2376",
            "--tlsverify",
            *(f"--tls{name}={tls}/{name}.pem" for name in ("cacert", "cert", "key")),
            *arguments,
        )


class Output(Stream):
    """What a container prints: whole in its own log, in pieces in the supervisor's.

    The supervisor reads at most 1000 bytes at a time. When a piece ends in a newline its last line is held
    back and glued, without a newline, to the next piece; a line cut by a piece's end becomes two. So is the
    real one.
    """

    def __init__(self, kernel: Kernel, driver: DockerDriver, whole: Stream) -> None:
        super().__init__(kernel)
        self._driver = driver
        self._whole = whole
        self._pipe = b""
        self._held = ""
        self._reading = False

    def write(self, at: Nanos, text: str) -> None:
        """One record of the agent."""
        self._whole.write(at, text)
        self._pipe += text.encode() + b"\n"
        if not self._reading:
            self._reading = True
            delay = round(self._driver.supervisor.rng.uniform(*FORWARD_S) * 1e9)
            self._kernel.at(Nanos(at + delay), self._read)

    def _read(self) -> None:
        piece, self._pipe = self._pipe[:CHUNK], self._pipe[CHUNK:]
        self._split(piece.decode("utf-8", "replace"))
        if self._pipe:
            self._kernel.soon(self._read)
        else:
            self._reading = False

    def _split(self, piece: str) -> None:
        text = self._held + piece
        lines = text.splitlines()
        self._held = lines.pop() if text.endswith("\n") else ""
        for line in lines:
            self._driver.forward(line)

    def rest(self) -> str:
        """What was held back to the end."""
        held, self._held = self._held, ""
        return held
