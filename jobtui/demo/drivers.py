"""The kinds of drivers: agents as local processes, in containers on other hosts, and on a cluster."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random
from typing import Any

from jobtui.demo.agents import SIGTERM, AgentCommand, SimAgent
from jobtui.demo.kernel import Slots
from jobtui.demo.messages import KILL, LIVE, DemoMessage, LoginNeeded, OpRequest, RequestFault
from jobtui.demo.programs import ARCHIVE, BatchJob, login_of, parallel_status
from jobtui.demo.site import Process, SimSite, Sink
from jobtui.demo.supervisor import Driver, SimOp, Supervisor
from jobtui.model.clock import Nanos, to_seconds

WITH_RUN_DIR = frozenset({"analysis", "io", "run", "run_status"})
CHUNK = 1000
"""How many bytes of a container's output the supervisor reads at a time."""
TAIL_LINES = 200


class Host:
    """A machine on which agents run, and their drivers, by user and kind."""

    def __init__(self, name: str, supervisor: Supervisor) -> None:
        settings, kernel = supervisor.site.settings, supervisor.kernel
        sizes = {"sequential": settings.slots_sequential, "parallel": settings.slots_parallel}
        self.name = name
        self.cpu_slots: dict[str, Slots] = {kind: Slots(kernel, size) for kind, size in sizes.items()}
        self.drivers: dict[tuple[str, str], Driver] = {}


class DockerDriver(Driver):
    """One container. If its agent is replaced, a new driver (with a new agent id) takes over."""

    name = "DockerDriver"
    starting_secs = 8

    def __init__(self, supervisor: Supervisor, op: SimOp, host: Host) -> None:
        super().__init__(supervisor, op, host.cpu_slots[op.kind])
        self._host = host
        self.container = f"srj-{self.kind[0]}-{self.uid}"
        self._container_id: str | None = None
        self._told_to_stop = self._is_freed = False
        self._agent: SimAgent | None = None
        self._output: ContainerOutput | None = None

    async def start_agent(self, op: SimOp) -> None:
        root, host = self.site.settings.root, self._host.name
        exec_dir = f"{root}/user/{self.uid}/agent-docker/{host}/{self.container}"
        self.log("exec_dir_docker", self, exec_dir)
        await self.site.pause("container_create")
        self._container_id = self.site.ids.hex(64)
        identity = self.identity(exec_dir)
        self._output = ContainerOutput(self)
        self._agent = SimAgent(self.site, self._output, identity, self._on_exit)
        self._agent.start()
        self.log("container", self, self.container, self._container_id[:12])

    async def kill(self) -> None:
        if self._is_freed:
            return
        shown = self._container_id[:12] if self._container_id and not self._told_to_stop else None
        self._told_to_stop = True
        self.log("kill_docker", self, shown)
        await self.site.pause("container_stop")
        if self._agent is None:
            error = f"Error response from daemon: No such container: {self.container}"
            command = self._docker("stop", "--timeout=3", self.container)
            self.log("docker_failed", "stop", self.container, "non-zero exit=1", command, error)
        else:
            self._agent.terminate(SIGTERM)

    async def free(self, caller: str) -> None:
        await super().free(caller)
        if not self._is_freed:
            self._is_freed = True
            self._host.drivers.pop((self.uid, self.kind), None)

    def _on_exit(self, returncode: int) -> None:
        self._agent = None
        if self._output and self._output.held:
            self.log("forwarded_rest", self.container, self._output.held)
            self._output.held = ""
        code = {0: 0, SIGTERM: 143}.get(returncode, 137)
        error = f"non-zero exit={code}" if code else ""
        command = self._docker("start", "--interactive", self._container_id or "")
        self.log("docker_ended", "start", self.container, error, command)

    def _docker(self, *arguments: str) -> tuple[str, ...]:
        tls = f"{self.site.settings.root}/docker_tls/{self._host.name}"
        files = (f"--tls{name}={tls}/{name}.pem" for name in ("cacert", "cert", "key"))
        return ("docker", f"--host=tcp://{self._host.name}:2376", "--tlsverify", *files, *arguments)


class ContainerOutput(Sink):
    """A container's output: whole in its own log, in pieces in the supervisor's.

    The supervisor reads at most 1000 bytes at a time. When a piece ends in a newline its last line is held
    back and glued, without a newline, to the next piece; a line cut there becomes two, as in the real one.
    """

    def __init__(self, driver: DockerDriver) -> None:
        super().__init__(driver.supervisor.kernel)
        self._driver = driver
        self._whole = driver.site.stream(f"container-{driver.container}.log")
        self._chance = Random(driver.site.rng.random())  # it is called for each part of a path
        self._pipe = b""
        self.held = ""
        self._reading = False

    def write(self, at: Nanos, text: str) -> None:
        self._whole.write(at, text)
        self._pipe += text.encode() + b"\n"
        if not self._reading:
            self._reading = True
            delay = round(self._chance.uniform(0.0003, 0.004) * 1e9)
            self._kernel.at(Nanos(at + delay), self._read)

    def _read(self) -> None:
        piece, self._pipe = self._pipe[:CHUNK], self._pipe[CHUNK:]
        text = self.held + piece.decode("utf-8", "replace")
        lines = text.splitlines()
        self.held = lines.pop() if text.endswith("\n") else ""
        for line in lines:
            self._driver.log("forwarded", self._driver.container, line)
        if self._pipe:
            self._kernel.at(self._kernel.now, self._read)
        else:
            self._reading = False


class SbatchDriver(Driver):
    """The only agent of a user on a cluster, which gives runs to Slurm. It needs a login for each start."""

    name = "SbatchDriver"
    starting_secs = 15
    untimed = True
    stays = True

    def __init__(self, supervisor: Supervisor, op: SimOp) -> None:
        runs = supervisor.site.settings.slots_run_sbatch
        super().__init__(supervisor, op, Slots(supervisor.kernel, 2 + runs))
        self.op_slots["run"] = Slots(supervisor.kernel, runs)
        self._login = login_of(self.uid)
        self._log = self.site.stream(f"cluster-{self._login}-job_agent.log", kept=TAIL_LINES)
        self._password_ok: bool | None = None
        self._root: str | None = None

    def check(self, op: SimOp) -> None:
        """Take the login that comes with an op, and give the op its directory on the cluster.

        Without a login Sirepo asks for one; for a cancel it fails, as that op lacks a field.
        """
        if op.request.password_ok is not None and op.name == "sbatch_login":
            self._password_ok = op.request.password_ok
        if self._root is None:
            if self._password_ok is None and op.name == "cancel":
                raise RequestFault("'PKDict' object has no attribute 'computeModel'")
            if self._password_ok is None:
                raise LoginNeeded("no-creds", op.request)
            self._root = self.site.settings.cluster_root.format(user=self._login)
        if op.name in WITH_RUN_DIR:
            op.run_dir = f"{self._root}/user/{self.uid}/{op.request.app}/{op.request.jid}"

    async def start_agent(self, op: SimOp) -> None:
        site, root, user = self.site, self._root or "", f"user {self._login}"
        host = site.settings.cluster_host
        if site.settings.dev:
            self.log("agent_log", root)
        self.log("ssh", f"Opening SSH connection to {host}, port 22")
        self.log("ssh", f"[conn=0] Beginning auth for {user}")
        await site.pause("login")
        good, self._password_ok = self._password_ok, None
        if not good:
            denied = f"Permission denied for {user} on host {host}"
            self.log("ssh", f"[conn=0] Auth failed for {user}")
            self.log("ssh_failed", denied, self.supervisor.stack(f"asyncssh.misc.PermissionDenied: {denied}"))
            self._root = None
            raise LoginNeeded("invalid-creds", op.request)
        self.log("ssh", f"[conn=0] Auth for {user} succeeded")
        self._keep_log("remote-before-start")
        ClusterAgent(site, self._log, self.identity(root, root), lambda _: None).start()
        await site.kernel.sleep(5)
        self._keep_log("remote-after-start")

    def _keep_log(self, kind: str) -> None:
        """Copy the end of the agent's log; in development the copy is echoed into the supervisor's log."""
        settings = self.site.settings
        moment = datetime.fromtimestamp(to_seconds(self.supervisor.process.clock), UTC)
        directory = f"{settings.root}/user/{self.uid}/agent-sbatch/{settings.cluster_host}"
        path = f"{directory}/{moment.strftime('%Y%m%d%H%M%S')}-{kind}.log"
        tail = "".join(f"{text}\n" for text in self._log.newest).splitlines(keepends=True)[-TAIL_LINES:]
        document = {"filename": path, "stderr": "", "stdout": "".join(tail)}
        text = json.dumps(document, indent=4)
        self.site.disk.write(path, text.encode())
        if settings.dev:
            self.log("echo", text.replace("\\n", "\n"))

    async def kill(self) -> None:
        if self.socket:
            self.socket.order(KILL)

    async def free(self, caller: str) -> None:
        self._root = None
        await super().free(caller)


class ClusterAgent(SimAgent):
    """An agent that gives its runs to Slurm and asks it about them."""

    command_kind = "_SbatchRunStatus"
    fastcgi_kind = "_SbatchCmd"
    slurm = True

    def _run(self, order: OpRequest) -> None:
        site = self.site
        self._destroy_others(order)
        self.process.work(site.delay("submit"))
        site.run_dirs.gone.discard(order.run_dir or "")
        jid, at = order.request.jid or "", self.process.clock
        job = BatchJob(site.run_dirs, next(site.batch_numbers), order, site.plans[jid], at)
        site.batch_jobs[jid] = job
        job.submitted(self.identity, at, f"{os.path.dirname(site.settings.root)}/{ARCHIVE}")
        job.noted("pending", None)
        self._follow(order, "pending")
        self.send(self.reply(order, state="ok"))

    def update(self, command: AgentCommand, state: str, *, error: str | None = None, **fields: Any) -> None:
        super().update(command, state, error=error, **fields)
        job = self.site.batch_jobs[command.jid]
        job.noted(state, command.start)
        job.printed(job.state(self.site.kernel.now)[1], error)

    def _follow(self, order: OpRequest, state: str) -> None:
        detached = OpRequest(None, "run_status", order.request, serial=order.serial)
        command = self.launch(detached, "sbatch_parallel_status", order.run_dir or "", state=state)
        self.process.tasks.spawn(lambda: self._watch(command, order.request.model))

    async def _watch(self, command: AgentCommand, model: str) -> None:
        site = self.site
        await site.pause("first_status")
        known = str(command.state)
        if not command.ended:
            self.update(command, known)
        while not command.ended:
            await site.kernel.sleep(5)
            if command.ended:
                return
            job = site.batch_jobs[command.jid]
            state, percent, frames = job.state(site.kernel.now)
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
                await site.pause("batch_exit")
                self.finished(command)
                return

    def unknown_run(self, order: OpRequest) -> DemoMessage:
        job = self.site.batch_jobs.get(order.request.jid or "")
        is_latest = job is not None and job.serial == order.serial
        state = job.state(self.site.kernel.now)[0] if job is not None and is_latest else "canceled"
        if state in LIVE:
            self._follow(order, state)
            return self.reply(order, state="unknown")
        return self.reply(order, state=state)

    def destroy(self, command: AgentCommand, *, terminating: bool = False) -> None:
        job = self.site.batch_jobs.get(command.jid)
        is_run = not command.ended and command.job_cmd != "fastcgi" and not terminating
        if job is not None and is_run and job.state(self.site.kernel.now)[0] in LIVE:
            job.canceled = True
            self.log("scancel", job.number)
            job.noted("canceled", command.start)
        super().destroy(command, terminating=terminating)


class SiteSupervisor(Supervisor):
    def __init__(self, site: SimSite, process: Process) -> None:
        super().__init__(site, process)
        self.modules = ["docker", *(["sbatch"] if site.settings.sbatch_users else [])]
        self.driver_class: Callable[[Supervisor, SimOp, Host], Driver] = DockerDriver
        self.hosts = [Host(name, self) for name in site.settings.hosts]
        self._sbatch: dict[str, SbatchDriver] = {}

    def driver_of(self, op: SimOp) -> Driver:
        uid = op.request.uid
        if op.mode == "sbatch":
            if uid not in self._sbatch:
                self._sbatch[uid] = SbatchDriver(self, op)
            return self._sbatch[uid]
        own = (host for host in self.hosts if any(owner == uid for owner, _ in host.drivers))
        emptiest = min(self.hosts, key=lambda host: sum(kind == op.kind for _, kind in host.drivers))
        host = next(own, emptiest)
        if (uid, op.kind) not in host.drivers:
            host.drivers[uid, op.kind] = self.driver_class(self, op, host)
        return host.drivers[uid, op.kind]
