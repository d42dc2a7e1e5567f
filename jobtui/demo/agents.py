"""Agents: processes that run programs for one user and report to the supervisor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from jobtui.demo.kernel import SimQueue
from jobtui.demo.messages import TABLES, ApiRequest, DemoMessage, Identity, OpRequest
from jobtui.demo.programs import Plan, ProgramEnd, parallel_status
from jobtui.demo.site import SimSite, Sink, Socket
from jobtui.model.clock import SECOND, Nanos

SIGKILL, SIGTERM = -9, -15


@dataclass(eq=False)
class AgentCommand:
    """A command that an agent has started. `state` is that of a run, None for others."""

    agent: str
    pid: int
    order: OpRequest
    jid: str
    job_cmd: str
    run_dir: str
    kind: str
    state: str | None = None
    start: int | None = None
    ended: bool = False

    def __str__(self) -> str:
        return (
            f"{self.kind}(a={self.agent} jid={self.jid} o={self.order.prefix} job_cmd={self.job_cmd}"
            f" run_dir={self.run_dir})"
        )

    def process_text(self, *, killed: bool = False) -> str:
        """Its process as log lines write it, without the pid once it was killed."""
        return f"_Process(pid={None if killed else self.pid} cmd={self})"


class SimAgent:
    """A local or container agent. `exited` gets its return code."""

    command_kind = "_Cmd"
    fastcgi_kind = "_FastCgiCmd"
    slurm = False

    def __init__(
        self, site: SimSite, stream: Sink, identity: Identity, exited: Callable[[int], None]
    ) -> None:
        self.site = site
        self.process = site.process(stream, agent=True)
        self.log = self.process.log
        self.identity = identity
        self.commands: list[AgentCommand] = []
        self._exited = exited
        self._socket: Socket | None = None
        self._fastcgi: AgentCommand | None = None
        self._work: SimQueue[OpRequest] = SimQueue(site.kernel)

    def start(self) -> None:
        self.site.agents[self.identity] = self.die
        never_connects = self.identity.uid in self.site.mute

        async def begin() -> None:
            await self.site.pause("agent_start")
            if never_connects:
                return
            self.log("agent", str(TABLES["agent"]).format(**msgspec.structs.asdict(self.identity)))
            await self.site.pause("agent_connect")
            await self._connect()

        self.process.tasks.spawn(begin)

    async def _connect(self) -> None:
        while not self.site.supervisor.process.alive:
            await self.site.kernel.sleep(1)
        self._socket = Socket(self.site, self.process, self.take, self.socket_lost)
        self.site.supervisor.accept()
        self.send(DemoMessage(agent_id=self.identity.agent_id, name="alive"))

    def send(self, message: DemoMessage) -> None:
        """Send to the supervisor; lost without a connection."""
        if self._socket is not None and self.process.alive:
            self._socket.message(message)

    def reply(self, order: OpRequest, name: str = "ok", **reply: object) -> DemoMessage:
        return DemoMessage(agent_id=self.identity.agent_id, name=name, op_id=order.op_id, reply=reply)

    def update(self, command: AgentCommand, state: str, **fields: Any) -> None:
        """Send a status with its details: `error`, `parallel`."""
        command.state = state
        self.send(
            DemoMessage(
                agent_id=self.identity.agent_id,
                name="run_status_update",
                jid=command.jid,
                serial=command.order.serial,
                state=state,
                start=command.start,
                **fields,
            )
        )

    def take(self, order: OpRequest) -> None:
        self.log("arrived", order.name, order.prefix, order.run_dir)
        match order.name:
            case "run":
                self._run(order)
            case "analysis" | "io":
                self._analyze(order)
            case "cancel":
                for command in list(self.commands):
                    is_op = order.cancel_op is not None and command.order.op_id == order.cancel_op
                    if is_op or command.jid == order.cancel_jid:
                        self.destroy(command)
                self.send(self.reply(order, state="canceled"))
            case "run_status":
                found = next((c for c in self.commands if c.jid == order.request.jid and c.state), None)
                message = self.reply(order, state=found.state) if found else self.unknown_run(order)
                self.log("run_status", message, order.request.jid)
                self.send(message)
            case "sbatch_login":
                self.send(self.reply(order, loginSuccess=True))
            case "kill":
                self.terminate(0)

    def _run(self, order: OpRequest) -> None:
        request = order.request
        self._destroy_others(order)
        command = self.launch(order, "compute", order.run_dir or "", state="running")
        self.site.run_dirs.prepare(order.run_dir or "", request)
        self.send(self.reply(order, state="ok"))
        self.process.tasks.spawn(lambda: self._compute(command, request))

    def _destroy_others(self, order: OpRequest) -> None:
        for command in [command for command in self.commands if command.jid == order.request.jid]:
            self.destroy(command)

    def launch(
        self, order: OpRequest, job_cmd: str, run_dir: str, *, kind: str = "", state: str | None = None
    ) -> AgentCommand:
        key = self.site.ids.draw()
        known = msgspec.structs.asdict(self.identity) | {"run_dir": run_dir, "key": key}
        known["slurm"] = "export SIREPO_MPI_IN_SLURM='1'\n" if self.slurm else ""
        known["cores"] = 4 if self.identity.kind == "parallel" else 1
        self.log("program", "('/bin/bash', '-l')", str(TABLES["stdin"]).rstrip("\n").format(**known))
        command = AgentCommand(
            self.identity.prefix,
            self.site.next_pid(),
            order,
            jid=order.request.jid or "",
            job_cmd=job_cmd,
            run_dir=run_dir,
            kind=kind or self.command_kind,
            state=state,
        )
        self.commands.append(command)
        return command

    def _analyze(self, order: OpRequest) -> None:
        if order.run_dir in self.site.run_dirs.gone:
            self.send(self.reply(order, "error", runDirNotFound=True))
            return
        if self._fastcgi is None:
            self._fastcgi = self.launch(order, "fastcgi", self.identity.exec_dir, kind=self.fastcgi_kind)
            self._work = SimQueue(self.site.kernel)
            fastcgi, work = self._fastcgi, self._work
            self.process.tasks.spawn(lambda: self._serve(fastcgi, work))
        self._work.put(order)
        self._fastcgi.order = order

    async def _serve(self, fastcgi: AgentCommand, work: SimQueue[OpRequest]) -> None:
        await self.site.pause("fastcgi_start")
        while not fastcgi.ended:
            order = await work.get()
            slow_s = self.site.slow.get(order.request.jid or "")
            await self.site.kernel.sleep(slow_s or self.site.delay("analysis"))
            if fastcgi.ended:
                self.log("fastcgi_closed", {"opId": order.op_id, "opName": order.name})
                return
            if order.job_cmd == "stateless_compute" and order.request.model == "global_resources":
                self.send(self.reply(order, error="500 Server Error: Internal Server Error", state="error"))
            else:
                self.send(self.reply(order, state="ok" if order.name == "io" else "completed"))

    def unknown_run(self, order: OpRequest) -> DemoMessage:
        return self.reply(order, state="canceled")

    # a run, from its start to its end, unless it is killed

    async def _compute(self, command: AgentCommand, request: ApiRequest) -> None:
        plan = self.site.plans[command.jid]
        kernel, started = self.site.kernel, self.process.clock
        command.start = self.process.seconds
        self.update(command, "running")
        if plan.ending is ProgramEnd.PREPARE_FAILS:
            await self._fail_to_prepare(command, request, plan)
            return
        written = 0
        if request.is_parallel:
            for step in plan.progress():
                await kernel.sleep_until(Nanos(started + round(step.at_s * SECOND)))
                if command.ended:
                    return
                written = self.site.run_dirs.log(command.run_dir, plan, written, step.percent)
                self._progress(command, request, step.percent, step.frames)
        await kernel.sleep_until(Nanos(started + round(plan.duration_s * SECOND)))
        if command.ended:
            return
        last = plan.after(plan.duration_s)
        self.site.run_dirs.log(command.run_dir, plan, written, last.percent)
        self.site.run_dirs.result(command.run_dir, request, plan)
        if request.is_parallel:
            self._progress(command, request, last.percent, last.frames)
            await kernel.sleep(0.001)
            if command.ended:
                return
        state = "completed" if plan.ending is ProgramEnd.COMPLETED else "error"
        self.update(command, state, error=plan.error)
        await self.site.pause("exit")
        self.finished(command)

    def _progress(self, command: AgentCommand, request: ApiRequest, percent: float, frames: int) -> None:
        status = parallel_status(percent, frames, request.model, self.process.seconds)
        self.update(command, "running", parallel=status)

    async def _fail_to_prepare(self, command: AgentCommand, request: ApiRequest, plan: Plan) -> None:
        kernel = self.site.kernel
        await self.site.pause("prepare")
        if command.ended:
            return
        process = self.site.process(Sink(self.site.kernel), agent=True, pid=command.pid)
        error = f"UserAlert(error={plan.error})"
        stack = f"Traceback (most recent call last):\nsirepo.util.UserAlert: {error}"
        text = process.log("job_cmd_failed", error, request.app, stack) + "\n"
        self.log("program_stderr", command, f"b'{text}'")
        self.send(DemoMessage(agent_id=self.identity.agent_id, name="job_cmd_stderr", stderr=text))
        await kernel.sleep(0.3)
        if command.ended:
            return
        self.update(command, "error", error=plan.error)
        await self.site.pause("exit")
        self.finished(command)
        self.log("program_waited", command, 0, text.rstrip("\n"))

    def destroy(self, command: AgentCommand, *, terminating: bool = False) -> None:
        if command.ended:
            return
        command.ended = True
        if command is self._fastcgi:
            self._fastcgi = None
        self.log("program_killed", command.process_text())
        self.commands.remove(command)
        if not terminating:
            killed = command.process_text(killed=True)
            self.site.later("killed", lambda: self.log("program_exited", killed, SIGKILL))

    def finished(self, command: AgentCommand) -> None:
        if not command.ended:
            command.ended = True
            self.commands.remove(command)
            self.log("program_exited", command.process_text(), 0)

    def terminate(self, returncode: int = SIGTERM) -> None:
        if not self.process.alive:
            return
        for command in list(self.commands):
            self.destroy(command, terminating=True)
        self.die(returncode)

    def die(self, returncode: int = SIGKILL) -> None:
        if not self.process.alive:
            return
        self.process.end()
        self.site.agents.pop(self.identity, None)
        if self._socket is not None:
            self._socket.close_by_agent()
        self.site.later("agent_exit", lambda: self._exited(returncode))

    def socket_lost(self) -> None:
        if self.process.alive:
            self._socket = None
            self.log("socket_lost", None, None)
            self.process.tasks.spawn(self._connect)
