"""The kinds of drivers: agents as local processes, in containers on other hosts, and on a cluster."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from random import Random
from typing import Any

from jobtui.demo.agents import SIGTERM, Agent, AgentCommand
from jobtui.demo.kernel import Event, Kernel, Lock, Queue, Timer
from jobtui.demo.messages import KILL, Identity, Message, Order
from jobtui.demo.programs import BatchFiles, parallel_status
from jobtui.demo.site import SUPERVISOR_LOG, DriverName, Process, Site, Socket, Stream
from jobtui.demo.supervisor import LIVE, LoginNeeded, Op, RequestFault, Slots, Supervisor
from jobtui.model.clock import Nanos, to_seconds
from jobtui.model.ids import PREFIX_LENGTH

WITHOUT_SLOTS = frozenset({"begin_session", "cancel", "run_status", "sbatch_agent_ready", "sbatch_login"})
WITH_CPU_SLOT = frozenset({"analysis", "run"})
WITH_OP_SLOT = ("analysis", "run", "io")
WITH_RUN_DIR = frozenset({"analysis", "io", "run", "run_status"})
WAITS = {
    "op": "Waiting for another sim op to complete await=op_slot",
    "run_dir": "Waiting for access to sim state await=run_dir_slot",
    "cpu": "Waiting for CPU resources await=cpu_slot",
}
"""What is told of an op that waits for a slot."""
CHUNK = 1000
"""How many bytes the supervisor reads at a time of what a container prints."""
CREATE_S = (0.05, 0.4)
STOP_S = (0.1, 0.6)
FORWARD_S = (0.0003, 0.004)
KILLED_EXIT, TERMINATED_EXIT = 137, 143
SUBMIT_S = (0.35, 0.55)
FIRST_STATUS_S = (0.5, 1.1)
POLL_S = 5.0
LOG_WAIT_S = 5
TAIL_LINES = 200
_NO_SOCKET = "'NoneType' object has no attribute 'write_message'"


def slots(kernel: Kernel, size: int) -> Slots:
    return Queue(kernel, *range(1, size + 1))


class Driver:
    """One agent identity: how its agent is started, reached and ended."""

    name = "Driver"
    starting_secs: int = 5
    untimed = False
    stays = False
    """Whether its agent is kept when it has nothing to do."""

    def __init__(self, supervisor: Supervisor, op: Op, cpu_slots: Slots) -> None:
        self.supervisor = supervisor
        self.log = supervisor.log
        self.site = supervisor.site
        self.kind = op.kind
        self.uid = op.request.uid
        self.cpu_slots = cpu_slots
        self.op_slots: dict[str, Slots] = {name: Queue(supervisor.kernel, 1) for name in WITH_OP_SLOT}
        self.agent_id = self.site.ids.key()
        self.prepared: dict[str | None, Op] = {}
        self.socket: Socket | None = None
        self.ready = Event(supervisor.kernel)
        self._starting: Timer | None = None
        self._lock = Lock(supervisor.kernel)
        self._idle: Timer | None = None
        supervisor.drivers_by_agent[self.agent_id] = self
        self.log("driver", self)

    def __str__(self) -> str:
        ops = ", ".join(map(str, self.prepared.values()))
        prefix = self.agent_id[:PREFIX_LENGTH]
        return f"{self.name}(a={prefix} k={self.kind} u={self.uid[:PREFIX_LENGTH]} [{ops}])"

    @property
    def ready_or_starting(self) -> bool:
        return self.ready.is_set or self._starting is not None

    # what each kind of driver does in its own way

    async def start_agent(self, op: Op) -> None:
        """Start the agent. Raises LoginNeeded."""
        raise NotImplementedError

    async def kill(self) -> None:
        raise NotImplementedError

    def check(self, op: Op) -> None:
        """Make an op fit for this driver. Raises LoginNeeded."""

    def identity(self, exec_dir: str, root: str | None = None) -> Identity:
        return Identity(
            agent_id=self.agent_id,
            uid=self.uid,
            kind=self.kind,
            token=self.site.token_of(self.uid),
            port=self.site.settings.supervisor_port,
            root=root or self.site.settings.root,
            exec_dir=exec_dir,
        )

    # sending

    async def prepare(self, op: Op) -> bool:
        """Wait for agent and slots; False when given up meanwhile. Raises LoginNeeded, RequestFault."""
        self.check(op)
        if not await self._agent_ready(op):
            return False
        if await self._take_slots(op) and (op.is_destroyed or not await self._agent_ready(op)):
            return False
        self.prepared[op.op_id] = op
        return True

    async def _agent_ready(self, op: Op) -> bool:
        if self.ready.is_set:
            return True
        await self._start(op)
        if op.is_destroyed:
            self.log("destroyed_starting", op)
            return False
        self.log("await_agent", self, op)
        await self.ready.wait()
        self.log("agent_there", self, op)
        if op.is_destroyed:
            self.log("destroyed_waiting", op)
        return not op.is_destroyed

    async def _start(self, op: Op) -> None:
        if self._starting:
            return
        try:
            async with self._lock:
                if self.ready_or_starting:
                    return
                self.log("start_agent", self, op)
                self._starting = self.supervisor.later(self.starting_secs, self._not_ready)
                await self.start_agent(op)
        except Exception as error:
            self.log("start_agent_error", self, error, self.supervisor.stack(str(error)))
            self._free_soon("_agent_start")
            raise

    async def _take_slots(self, op: Op) -> bool:
        """Take what the op needs; whether any had to be waited for. Raises RequestFault."""
        if op.name in WITHOUT_SLOTS:
            return False
        wanted = ("op", "run_dir", "cpu") if op.name in WITH_CPU_SLOT else ("op", "run_dir")
        waited = [await op.slot(name).take(WAITS[name]) for name in wanted]
        return any(waited)

    def send(self, op: Op) -> bool:
        """Send an op; whether there was a socket to send it through."""
        self.log("send", self, op, op.run_dir)
        if self.socket is None:
            self.log("send_error", _NO_SOCKET, op, self.supervisor.stack(f"AttributeError: {_NO_SOCKET}"))
            return False
        self.socket.order(op)
        return True

    # receiving

    def receive(self, message: Message, socket: Socket) -> None:
        op_id = message.op_id
        prefix = op_id[:PREFIX_LENGTH] if op_id else None
        if message.is_error:
            self.log("message_error", self, message)
        else:
            self.log("message", self, message.name, prefix)
        if message.name == "alive":
            self._connected(socket)
        elif op_id in self.prepared:
            self.prepared[op_id].reply(message)
        elif op_id is not None:
            self.log("not_prepared", self, message.name, prefix, message)
        elif message.name == "job_cmd_stderr":
            self.log("message_stderr", self, message)
        else:
            self.supervisor.update(message)

    def _connected(self, socket: Socket) -> None:
        self._cancel_starting()
        if self.socket is not None and self.socket is not socket:
            self.socket.close_by_supervisor()
        self.socket = socket
        socket.closed_by_agent = self._socket_closed
        self.ready.set()
        self._watch_idle()

    # ending

    def _socket_closed(self) -> None:
        self.log("socket_closed", self)
        self.socket = None
        self._free_soon("websocket_on_close")

    async def free(self, caller: str) -> None:
        async with self._lock:
            await self.kill()
            self._cancel_starting()
            self.ready.clear()
            if self.socket:
                socket, self.socket = self.socket, None
                socket.close_by_supervisor()
            for op in list(self.prepared.values()):
                op.destroy(internal_error=f"job_driver.free_resources caller={caller}")

    def _free_soon(self, caller: str) -> None:
        self.log("free", self, caller)
        self.supervisor.process.tasks.spawn(lambda: self.free(caller))

    async def _not_ready(self) -> None:
        if self._starting is None or self.ready.is_set:
            return
        self._starting = None
        self.log("not_ready", self, self.starting_secs)
        self._free_soon("_websocket_ready_timeout_handler")

    def _cancel_starting(self) -> None:
        if self._starting:
            self._starting.cancel()
            self._starting = None

    def _watch_idle(self) -> None:
        if not self.stays and self._idle is None:
            self._idle = self.supervisor.later(self.site.settings.idle_check_secs, self._check_idle)

    async def _check_idle(self) -> None:
        self._idle = None
        if self.prepared or self._starting:
            self._watch_idle()
        else:
            self.log("idle", self)
            self._free_soon("_kill_if_idle")


class LocalDriver(Driver):
    """Agents as processes beside the supervisor. One driver per user and kind, for its whole life."""

    name = "LocalDriver"

    def __init__(self, supervisor: Supervisor, op: Op, cpu_slots: Slots) -> None:
        super().__init__(supervisor, op, cpu_slots)
        self._agent: Agent | None = None
        self._exited = Event(supervisor.kernel)

    async def start_agent(self, op: Op) -> None:
        settings = self.site.settings
        exec_dir = f"{settings.root}/user/{self.uid}/agent-local/{self.agent_id}"
        self.log("exec_dir", self, exec_dir)
        identity = self.identity(exec_dir)
        log = SUPERVISOR_LOG if settings.agents_in_supervisor_log else f"agent-{identity.prefix}.log"
        process = self.site.process(self.site.stream(log), agent=True)
        self._agent = Agent(self.site, process, identity, self._on_exit)
        self._agent.start()

    async def kill(self) -> None:
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


class Host:
    """A machine that runs containers."""

    def __init__(self, name: str, cpu_slots: Mapping[str, Slots]) -> None:
        self.name = name
        self.cpu_slots = cpu_slots
        self.drivers: dict[tuple[str, str], DockerDriver] = {}

    def has(self, uid: str) -> bool:
        return any(owner == uid for owner, _ in self.drivers)

    def count(self, kind: str) -> int:
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
        self._output: ContainerOutput | None = None
        host.drivers[self.uid, self.kind] = self

    async def start_agent(self, op: Op) -> None:
        site = self.site
        exec_dir = f"{site.settings.root}/user/{self.uid}/agent-docker/{self._host_name}/{self._container}"
        self.log("exec_dir_docker", self, exec_dir)
        await site.kernel.sleep(site.rng.uniform(*CREATE_S))
        self._container_id = site.ids.hex(64)
        identity = self.identity(exec_dir)
        self._output = ContainerOutput(self, site.stream(f"container-{self._container}.log"))
        process = site.process(self._output, agent=True)
        self._agent = Agent(site, process, identity, self._on_exit)
        self._agent.start()
        self.log("container", self, self._container, self._container_id[:12])

    async def kill(self) -> None:
        if self._host is None:
            return
        shown = self._container_id[:12] if self._container_id and not self._told_to_stop else None
        self._told_to_stop = True
        self.log("kill_docker", self, shown)
        await self.site.kernel.sleep(self.site.rng.uniform(*STOP_S))
        if self._agent is None:
            error = f"Error response from daemon: No such container: {self._container}"
            command = self._docker("stop", "--timeout=3", self._container)
            self.log("docker_failed", "stop", self._container, "non-zero exit=1", command, error)
            return
        self._agent.terminate(SIGTERM)

    async def free(self, caller: str) -> None:
        await super().free(caller)
        if self._host is not None:
            host, self._host = self._host, None
            host.drivers.pop((self.uid, self.kind), None)

    def forward(self, text: str) -> None:
        self.log("forwarded", self._container, text)

    def _on_exit(self, returncode: int) -> None:
        self._agent = None
        if self._output and (rest := self._output.rest()):
            self.log("forwarded_rest", self._container, rest)
        code = {0: 0, SIGTERM: TERMINATED_EXIT}.get(returncode, KILLED_EXIT)
        error = f"non-zero exit={code}" if code else ""
        command = self._docker("start", "--interactive", self._container_id or "")
        self.log("docker_ended", "start", self._container, error, command)

    def _docker(self, *arguments: str) -> tuple[str, ...]:
        tls = f"{self.site.settings.root}/docker_tls/{self._host_name}"
        files = (f"--tls{name}={tls}/{name}.pem" for name in ("cacert", "cert", "key"))
        return ("docker", f"--host=tcp://{self._host_name}:2376", "--tlsverify", *files, *arguments)


class ContainerOutput(Stream):
    """What a container prints: whole in its own log, in pieces in the supervisor's.

    The supervisor reads at most 1000 bytes at a time. When a piece ends in a newline its last line is held
    back and glued, without a newline, to the next piece; a line cut by a piece's end becomes two. So is the
    real one.
    """

    def __init__(self, driver: DockerDriver, whole: Stream) -> None:
        super().__init__(driver.site.kernel)
        self._driver = driver
        self._whole = whole
        self._chance = Random(driver.site.rng.random())  # asked as often as paths are long
        self._pipe = b""
        self._held = ""
        self._reading = False

    def write(self, at: Nanos, text: str) -> None:
        self._whole.write(at, text)
        self._pipe += text.encode() + b"\n"
        if not self._reading:
            self._reading = True
            delay = round(self._chance.uniform(*FORWARD_S) * 1e9)
            self._kernel.at(Nanos(at + delay), self._read)

    def _read(self) -> None:
        piece, self._pipe = self._pipe[:CHUNK], self._pipe[CHUNK:]
        text = self._held + piece.decode("utf-8", "replace")
        lines = text.splitlines()
        self._held = lines.pop() if text.endswith("\n") else ""
        for line in lines:
            self._driver.forward(line)
        if self._pipe:
            self._kernel.soon(self._read)
        else:
            self._reading = False

    def rest(self) -> str:
        held, self._held = self._held, ""
        return held


class SbatchDriver(Driver):
    """The one agent a user has on a cluster, which hands runs to Slurm. It needs a login for each start."""

    name = "SbatchDriver"
    starting_secs = 15
    untimed = True
    stays = True

    def __init__(self, supervisor: Supervisor, op: Op) -> None:
        runs = supervisor.site.settings.slots_run_sbatch
        super().__init__(supervisor, op, slots(supervisor.kernel, 2 + runs))
        self.op_slots["run"] = slots(supervisor.kernel, runs)
        self._password_ok: bool | None = None
        self._root: str | None = None

    @property
    def login(self) -> str:
        return f"u{self.uid[:5].lower()}"

    def check(self, op: Op) -> None:
        """Take the login that comes with an op, and give the op its directory on the cluster.

        Without a login Sirepo asks for one; with a cancel it stumbles over what that op does not have.
        """
        if op.request.password_ok is not None and op.name == "sbatch_login":
            self._password_ok = op.request.password_ok
        if self._root is None:
            if self._password_ok is None and op.name == "cancel":
                raise RequestFault("'PKDict' object has no attribute 'computeModel'")
            if self._password_ok is None:
                raise LoginNeeded("no-creds", op.request)
            self._root = self.site.settings.cluster_root.format(user=self.login)
        if op.name in WITH_RUN_DIR:
            op.run_dir = f"{self._root}/user/{self.uid}/{op.request.app}/{op.request.jid}"

    async def start_agent(self, op: Op) -> None:
        site, root, host = self.site, self._root or "", self.site.settings.cluster_host
        if site.settings.dev:
            self.log("agent_log", root)
        self.log("ssh", f"Opening SSH connection to {host}, port 22")
        self.log("ssh", f"[conn=0] Beginning auth for user {self.login}")
        await site.kernel.sleep(site.rng.uniform(0.01, 0.05))
        good, self._password_ok = self._password_ok, None
        if not good:
            denied = f"Permission denied for user {self.login} on host {host}"
            self.log("ssh", f"[conn=0] Auth failed for user {self.login}")
            self.log("ssh_failed", denied, self.supervisor.stack(f"asyncssh.misc.PermissionDenied: {denied}"))
            self._root = None
            raise LoginNeeded("invalid-creds", op.request)
        self.log("ssh", f"[conn=0] Auth for user {self.login} succeeded")
        self._keep_log("remote-before-start")
        process = site.process(site.cluster_stream(self.login), agent=True)
        ClusterAgent(site, process, self.identity(root, root), lambda _: None).start()
        await site.kernel.sleep(LOG_WAIT_S)
        self._keep_log("remote-after-start")

    def _keep_log(self, kind: str) -> None:
        """Copy the end of the agent's log; in development the copy is echoed into the supervisor's log."""
        site = self.site
        moment = datetime.fromtimestamp(to_seconds(self.supervisor.process.clock), UTC)
        directory = f"{site.settings.root}/user/{self.uid}/agent-sbatch/{site.settings.cluster_host}"
        path = f"{directory}/{moment.strftime('%Y%m%d%H%M%S')}-{kind}.log"
        tail = site.cluster_stream(self.login).tail().splitlines(keepends=True)[-TAIL_LINES:]
        document = {"filename": path, "stderr": "", "stdout": "".join(tail)}
        text = json.dumps(document, indent=4, sort_keys=True)
        site.disk.write(path, text.encode())
        if site.settings.dev:
            self.log("echo", text.replace("\\n", "\n"))

    async def kill(self) -> None:
        if self.socket:
            self.socket.order(KILL)

    async def free(self, caller: str) -> None:
        self._root = None
        await super().free(caller)


class ClusterAgent(Agent):
    """An agent that hands its runs to Slurm and asks it about them."""

    command_kind = "_SbatchRunStatus"
    fastcgi_kind = "_SbatchCmd"
    slurm = True

    def __init__(
        self, site: Site, process: Process, identity: Identity, exited: Callable[[int], None]
    ) -> None:
        super().__init__(site, process, identity, exited)
        self._files: dict[str, BatchFiles] = {}
        """Of the runs it has submitted, by job."""

    def _run(self, order: Order) -> None:
        site, jid, run_dir = self.site, order.request.jid or "", order.run_dir or ""
        for command in [c for c in self.commands if c.jid == jid]:
            self.destroy(command)
        self.process.work(self.rng.uniform(*SUBMIT_S))
        site.run_dirs.prepare(run_dir, order.request, on_cluster=True)
        number = site.slurm.submit(jid, order.serial, self.process.clock, site.plans[jid])
        home = os.path.dirname(site.settings.root)
        self._files[jid] = files = BatchFiles(site.run_dirs, home, number, run_dir, order.serial)
        files.submitted(order.request, self.identity, self.process.clock)
        files.noted("pending", None)
        self._follow(order, "pending")
        self.send(self.reply(order, state="ok"))

    def update(self, command: AgentCommand, state: str, *, error: str | None = None, **told: Any) -> None:
        super().update(command, state, error=error, **told)
        if (files := self._files.get(command.jid)) is not None:
            percent = self.site.slurm.state(command.jid, self.site.kernel.now)[1]
            files.noted(state, command.start)
            files.printed(self.site.plans[command.jid].log, percent, error)

    def _follow(self, order: Order, state: str) -> None:
        detached = Order(None, "run_status", order.request, serial=order.serial)
        command = self.launch(detached, "sbatch_parallel_status", order.run_dir or "", state=state)
        self.process.tasks.spawn(lambda: self._watch(command, order.request.model))

    async def _watch(self, command: AgentCommand, model: str) -> None:
        kernel = self.site.kernel
        await kernel.sleep(self.rng.uniform(*FIRST_STATUS_S))
        known = str(command.state)
        if not command.ended:
            self.update(command, known)
        while not command.ended:
            await kernel.sleep(POLL_S)
            if command.ended:
                return
            job = self.site.slurm.jobs[command.jid]
            state, percent, frames = job.state(kernel.now)
            status = parallel_status(percent, frames, model, self.process.seconds)
            if state in {"running", "completed"} and command.start is None:
                command.start = self.process.seconds
            if state == "error":
                self.update(command, "error", error=job.plan.error)
                self.destroy(command)
                return
            if state != known and state == "running":
                self.update(command, "running")
            if state != known or (state == "running" and job.has_news(frames)):
                self.update(command, state, parallel=status)
            known = state
            if state == "completed":
                await kernel.sleep(self.rng.uniform(0.004, 0.05))
                self.finished(command)
                return

    def unknown_run(self, order: Order) -> Message:
        job = self.site.slurm.jobs.get(order.request.jid or "")
        is_latest = job is not None and job.serial == order.serial
        state = job.state(self.site.kernel.now)[0] if job is not None and is_latest else "canceled"
        if state in LIVE:
            self._follow(order, state)
            return self.reply(order, state="unknown")
        return self.reply(order, state=state)

    def destroy(self, command: AgentCommand, *, terminating: bool = False) -> None:
        live = self.site.slurm.state(command.jid, self.site.kernel.now)[0] in LIVE
        if not command.ended and command.job_cmd != "fastcgi" and live and not terminating:
            job = self.site.slurm.jobs[command.jid]
            job.canceled = True
            self.log("scancel", job.number)
            if (files := self._files.get(command.jid)) is not None:
                files.noted("canceled", command.start)
        super().destroy(command, terminating=terminating)


class SiteDrivers:
    """Every driver of a supervisor."""

    def __init__(self, supervisor: Supervisor) -> None:
        settings, kernel = supervisor.site.settings, supervisor.kernel
        sizes = {"sequential": settings.slots_sequential, "parallel": settings.slots_parallel}

        def of_each_kind() -> dict[str, Slots]:
            return {kind: slots(kernel, size) for kind, size in sizes.items()}

        self.modules = [str(settings.driver), *(["sbatch"] if settings.sbatch_users else [])]
        self._supervisor = supervisor
        self._is_docker = settings.driver is DriverName.DOCKER
        self._local_slots = of_each_kind()
        self._local: dict[tuple[str, str], LocalDriver] = {}
        self._sbatch: dict[str, SbatchDriver] = {}
        self._hosts = [Host(name, of_each_kind()) for name in settings.hosts]

    def free_slots(self, kind: str) -> int:
        if self._is_docker:
            return sum(len(host.cpu_slots[kind]) for host in self._hosts)
        return len(self._local_slots[kind])

    def of(self, op: Op) -> Driver:
        uid, supervisor = op.request.uid, self._supervisor
        if op.mode == "sbatch":
            if uid not in self._sbatch:
                self._sbatch[uid] = SbatchDriver(supervisor, op)
            return self._sbatch[uid]
        if self._is_docker:
            return self._docker(op)
        key = (uid, op.kind)
        if key not in self._local:
            self._local[key] = LocalDriver(supervisor, op, self._local_slots[op.kind])
        return self._local[key]

    def _docker(self, op: Op) -> DockerDriver:
        uid = op.request.uid
        own = [host for host in self._hosts if host.has(uid)]
        if own and (driver := own[0].drivers.get((uid, op.kind))):
            return driver
        host = own[0] if own else min(self._hosts, key=lambda host: host.count(op.kind))
        return DockerDriver(self._supervisor, op, host)
