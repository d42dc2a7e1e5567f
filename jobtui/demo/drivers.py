"""Drivers: one agent identity each, how its agent is started, reached and ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobtui.demo.commands import Identity
from jobtui.demo.kernel import Event, Lock, Timer
from jobtui.demo.messages import Message
from jobtui.demo.ops import WITH_CPU_SLOT, WITH_OP_SLOT, WITHOUT_SLOTS, Op
from jobtui.demo.settings import Era
from jobtui.demo.slots import WAIT_CPU, WAIT_OP, WAIT_RUN_DIR, Slots, Taken
from jobtui.model.ids import PREFIX_LENGTH

if TYPE_CHECKING:
    from jobtui.demo.sockets import Socket
    from jobtui.demo.supervisor import Supervisor

_NO_SOCKET = "'NoneType' object has no attribute 'write_message'"


class Driver:
    """What all drivers have in common."""

    name = "Driver"
    starting_secs: int = 5
    untimed = False
    stays = False
    """Whether its agent is kept when it has nothing to do."""

    def __init__(self, supervisor: Supervisor, op: Op, cpu_slots: Slots) -> None:
        self.supervisor = supervisor
        self.kind = op.kind
        self.uid = op.request.uid
        self.cpu_slots = cpu_slots
        self.op_slots = {name: Slots(supervisor.kernel, 1) for name in WITH_OP_SLOT}
        self.agent_id = supervisor.names.key()
        self.prepared: dict[str, Op] = {}
        self.socket: Socket | None = None
        self.ready = Event(supervisor.kernel)
        self._starting: Timer | None = None
        self._lock = Lock(supervisor.kernel)
        self._idle: Timer | None = None
        supervisor.drivers.by_agent[self.agent_id] = self
        supervisor.witness.agent_made(self.agent_id, self.name, self.kind, self.uid)
        self.log("driver", self)

    def __str__(self) -> str:
        ops = ", ".join(map(str, self.prepared.values()))
        prefix = self.agent_id[:PREFIX_LENGTH]
        return f"{self.name}(a={prefix} k={self.kind} u={self.uid[:PREFIX_LENGTH]} [{ops}])"

    def log(self, name: str, *values: object) -> None:
        """Write a line of the supervisor."""
        self.supervisor.process.log(name, *values)

    @property
    def ready_or_starting(self) -> bool:
        """Whether its agent is there or on its way."""
        return self.ready.is_set or self._starting is not None

    # what each kind of driver does in its own way

    async def start_agent(self, op: Op) -> None:
        """Start the agent. Raises LoginNeeded."""
        raise NotImplementedError

    async def kill(self) -> None:
        """End the agent."""
        raise NotImplementedError

    def identity(self, exec_dir: str, root: str | None = None) -> Identity:
        """What its agent is started with."""
        world = self.supervisor.world
        return Identity(
            agent_id=self.agent_id,
            uid=self.uid,
            kind=self.kind,
            token=world.token_of(self.uid),
            port=world.settings.supervisor_port,
            root=root or world.settings.root,
            exec_dir=exec_dir,
            shows_agent=world.settings.era is Era.TODAY,
        )

    def check(self, op: Op) -> None:
        """Make an op fit for this driver. Raises LoginNeeded."""

    def supervisor_gone(self) -> None:
        """The supervisor ended: its end of the socket is closed."""
        if self.socket:
            self.socket.close_by_stop()

    # sending

    async def prepare(self, op: Op) -> bool:
        """Wait for agent and slots; False when the op was given up meanwhile. Raises LoginNeeded, Fault."""
        self.check(op)
        if not await self._agent_ready(op):
            return False
        taken = await self._take_slots(op)
        if taken is Taken.DESTROYED or (taken is Taken.WAITED and not await self._agent_ready(op)):
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
            return False
        return True

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

    async def _take_slots(self, op: Op) -> Taken:
        if op.name in WITHOUT_SLOTS:
            return Taken.AT_ONCE
        wanted = [("op", WAIT_OP), ("run_dir", WAIT_RUN_DIR)]
        if op.name in WITH_CPU_SLOT:
            wanted.append(("cpu", WAIT_CPU))
        result = Taken.AT_ONCE
        for name, situation in wanted:
            slot = op.slot(name)
            taken = await slot.take(situation)
            if taken is Taken.DESTROYED and name == wanted[-1][0]:
                return taken
            if taken is not Taken.AT_ONCE:
                result = taken
        return result

    def send(self, op: Op) -> bool:
        """Send an op; whether there was a socket to send it through."""
        self.log("send", self, op, op.run_dir)
        self.supervisor.witness.sent(op.op_id, self.agent_id)
        if self.socket is None:
            self.log("send_error", _NO_SOCKET, op, self.supervisor.stack(f"AttributeError: {_NO_SOCKET}"))
            return False
        self.socket.order(op.order())
        return True

    def forget(self, op: Op) -> None:
        """An op was given up or is done."""
        self.prepared.pop(op.op_id, None)

    # receiving

    def receive(self, message: Message, socket: Socket) -> None:
        """Take in a message that its agent sent through this socket."""
        op_id = message.op_id
        prefix = op_id[:PREFIX_LENGTH] if op_id else None
        if message.is_error:
            self.log("message_error", self, message)
        else:
            self.log("message", self, message.name, prefix)
        if message.name == "alive":
            self._connected(socket)
        elif op_id is None:
            self._receive_unbound(message)
        elif op_id in self.prepared:
            self.prepared[op_id].reply(message)
        else:
            self.log("not_prepared", self, message.name, prefix, message)

    def _receive_unbound(self, message: Message) -> None:
        if message.name == "job_cmd_stderr":
            self.log("message_stderr", self, message)
        else:
            self.supervisor.update(message)

    def _connected(self, socket: Socket) -> None:
        self._cancel_starting()
        if self.socket is not None and self.socket is not socket:
            self.socket.close_by_supervisor()
        self.socket = socket
        socket.driver = self
        self.ready.set()
        self._watch_idle()

    # ending

    def socket_closed(self) -> None:
        """Its agent's socket was closed from the other side."""
        self.log("socket_closed", self)
        self.socket = None
        self._free_soon("websocket_on_close")

    async def free(self, caller: str) -> None:
        """End the agent and give up what it was to do."""
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
            self._idle = self.supervisor.later(self.supervisor.settings.idle_check_secs, self._check_idle)

    async def _check_idle(self) -> None:
        self._idle = None
        if self.prepared or self._starting:
            self._watch_idle()
        else:
            self.log("idle", self)
            self._free_soon("_kill_if_idle")
