"""Agents: processes that run programs for one user and report to the supervisor."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from jobtui.demo.commands import SHELL, Command, Identity
from jobtui.demo.kernel import Queue
from jobtui.demo.messages import Message, Order, Request
from jobtui.demo.output import Process
from jobtui.demo.runs import run_program
from jobtui.demo.sockets import Socket
from jobtui.model.clock import SECOND
from jobtui.model.ids import PREFIX_LENGTH

if TYPE_CHECKING:
    from jobtui.demo.world import World

START_S = (0.25, 0.9)
FASTCGI_START_S = (0.2, 0.4)
ANALYSIS_S = (0.002, 0.02)
CONNECTION_ATTEMPTS = 10
SIGKILL, SIGTERM = -9, -15


class Agent:
    """A local or container agent. `exited` is told its return code."""

    command_kind = "_Cmd"
    fastcgi_kind = "_FastCgiCmd"
    slurm = False

    def __init__(
        self, world: World, process: Process, identity: Identity, exited: Callable[[int], None]
    ) -> None:
        self.world = world
        self.process = process
        self.identity = identity
        self.commands: list[Command] = []
        self.rng: random.Random = world.rng
        self._exited = exited
        self._socket: Socket | None = None
        self._fastcgi: Command | None = None
        self._work: Queue[Order] = Queue(world.kernel)
        self._attempts = 0

    def start(self, *, never_connects: bool = False) -> None:
        """Begin. With `never_connects` it starts and is never heard of."""
        self.process.tasks.spawn(lambda: self._main(never_connects))

    async def _main(self, never_connects: bool) -> None:
        await self.world.kernel.sleep(self.rng.uniform(*START_S))
        if never_connects:
            return
        self.log("agent", self.identity.start_text())
        await self.world.kernel.sleep(self.rng.uniform(0.004, 0.03))
        await self._connect()

    async def _connect(self) -> None:
        self._attempts = 0
        while self._attempts < CONNECTION_ATTEMPTS:
            supervisor = self.world.supervisor
            if supervisor.process.alive:
                self._socket = Socket(supervisor, self, self.rng)
                supervisor.accept()
                self.send(Message(agent_id=self.identity.agent_id, name="alive"))
                return
            self._attempts += 1
            await self.world.kernel.sleep(1)
        self.log("gave_up", CONNECTION_ATTEMPTS)
        self.terminate(0)

    def log(self, name: str, *values: object) -> str:
        """Write a line of the agent."""
        return self.process.log(name, *values)

    @property
    def seconds(self) -> int:
        """Whole epoch seconds of its own clock."""
        return self.process.clock // SECOND

    def send(self, message: Message) -> None:
        """Send to the supervisor; lost when there is no connection."""
        if self._socket is not None and self.process.alive:
            self._socket.message(message)

    def reply(self, order: Order, name: str = "ok", **reply: object) -> Message:
        """The answer to an op."""
        return Message(agent_id=self.identity.agent_id, name=name, op_id=order.op_id, reply=reply)

    def update(
        self,
        command: Command,
        state: str,
        *,
        error: str | None = None,
        parallel: Mapping[str, object] | None = None,
    ) -> None:
        """Tell the supervisor about a run."""
        command.state = state
        self.send(
            Message(
                agent_id=self.identity.agent_id,
                name="run_status_update",
                jid=command.jid,
                serial=command.serial,
                state=state,
                start=command.start,
                error=error,
                parallel=parallel,
            )
        )

    # orders

    def take(self, order: Order) -> None:
        """Take in an op."""
        prefix = order.op_id[:PREFIX_LENGTH] if order.op_id else None
        self.log("arrived", order.name, prefix, order.run_dir)
        match order.name:
            case "run":
                self._run(order)
            case "analysis" | "io":
                self._analyze(order)
            case "cancel":
                self._cancel(order)
            case "run_status":
                self._run_status(order)
            case "sbatch_login":
                self.send(self.reply(order, loginSuccess=True))
            case "kill":
                self.terminate(0)

    def _run(self, order: Order) -> None:
        request = self._request(order)
        for command in [c for c in self.commands if c.jid == request.jid]:
            self.destroy(command)
        command = self.launch(order, request.jid or "", "compute", order.run_dir or "", state="running")
        self.world.run_dirs.prepare(order.run_dir or "", request)
        self.accepted(order)
        self.process.tasks.spawn(lambda: run_program(self, command, request))

    def accepted(self, order: Order) -> None:
        """Confirm that a run was started."""
        self.send(self.reply(order, state="ok"))

    def launch(
        self, order: Order, jid: str, job_cmd: str, run_dir: str, *, kind: str = "", state: str | None = None
    ) -> Command:
        """Start a command."""
        key = self.world.names.token()
        self.log("program", SHELL, self.identity.stdin_text(run_dir, key, slurm=self.slurm))
        command = Command(
            self.identity,
            self.world.next_pid(),
            jid=jid,
            op_id=order.op_id,
            job_cmd=job_cmd,
            run_dir=run_dir,
            kind=kind or self.command_kind,
            serial=order.serial,
            state=state,
        )
        self.commands.append(command)
        return command

    def _analyze(self, order: Order) -> None:
        if order.run_dir and self.world.run_dirs.is_gone(order.run_dir):
            self.send(self.reply(order, "error", runDirNotFound=True))
            return
        if self._fastcgi is None:
            jid = self._request(order).jid or ""
            self._fastcgi = self.launch(order, jid, "fastcgi", self.identity.exec_dir, kind=self.fastcgi_kind)
            self._work = Queue(self.world.kernel)
            fastcgi, work = self._fastcgi, self._work
            self.process.tasks.spawn(lambda: self._serve(fastcgi, work))
        self._work.put(order)
        self._fastcgi.op_id = order.op_id

    async def _serve(self, fastcgi: Command, work: Queue[Order]) -> None:
        await self.world.kernel.sleep(self.rng.uniform(*FASTCGI_START_S))
        while not fastcgi.ended:
            order = await work.get()
            await self.world.kernel.sleep(self.world.analysis_s(order) or self.rng.uniform(*ANALYSIS_S))
            if fastcgi.ended:
                self.log("fastcgi_closed", {"opId": order.op_id, "opName": order.name})
                return
            if order.job_cmd == "stateless_compute" and self.world.compute_fails(order):
                self.send(self.reply(order, error="500 Server Error: Internal Server Error", state="error"))
            else:
                self.send(self.reply(order, state="ok" if order.name == "io" else "completed"))

    def _cancel(self, order: Order) -> None:
        for command in list(self.commands):
            if command.jid == order.cancel_jid or (order.cancel_op and command.op_id == order.cancel_op):
                self.destroy(command)
        self.send(self.reply(order, state="canceled"))

    def _run_status(self, order: Order) -> None:
        request = self._request(order)
        found = [c for c in self.commands if c.jid == request.jid and c.state]
        message = self.reply(order, state=found[0].state) if found else self.unknown_run(order)
        self.log("run_status", message, request.jid)
        self.send(message)

    def unknown_run(self, order: Order) -> Message:
        """The answer when it is asked about a run it does not know."""
        return self.reply(order, state="canceled")

    # ends

    def destroy(self, command: Command, *, terminating: bool = False) -> None:
        """Kill a command."""
        if command.ended:
            return
        command.ended = True
        if command is self._fastcgi:
            self._fastcgi = None
        self.log("program_killed", command.process_text())
        self.commands.remove(command)
        if not terminating:
            killed = command.process_text(killed=True)
            self.world.kernel.later(
                self.rng.uniform(0.002, 0.04), lambda: self.log("program_exited", killed, SIGKILL)
            )

    def finished(self, command: Command) -> None:
        """A command ended by itself."""
        if not command.ended:
            command.ended = True
            self.commands.remove(command)
            self.log("program_exited", command.process_text(), 0)

    def terminate(self, returncode: int = SIGTERM) -> None:
        """End orderly: every command is killed."""
        if not self.process.alive:
            return
        for command in list(self.commands):
            self.destroy(command, terminating=True)
        self.die(returncode)

    def die(self, returncode: int = SIGKILL) -> None:
        """End at once, with no line."""
        if not self.process.alive:
            return
        self.process.end()
        self.world.agents.pop(self, None)
        if self._socket is not None:
            self._socket.close_by_agent()
        self.world.kernel.later(self.rng.uniform(0.002, 0.06), lambda: self._exited(returncode))

    def socket_lost(self) -> None:
        """The supervisor closed the connection or is gone: try again for a while."""
        if self.process.alive:
            self._socket = None
            self.log("socket_lost", None, None)
            self.process.tasks.spawn(self._connect)

    @staticmethod
    def _request(order: Order) -> Request:
        assert order.request is not None
        return order.request
