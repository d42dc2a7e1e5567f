"""The supervisor process: takes requests, keeps jobs in memory and on disk, and owns the drivers."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING

from jobtui.demo.driver_kinds import Drivers
from jobtui.demo.handlers import HANDLERS
from jobtui.demo.jobs import Job
from jobtui.demo.kernel import Future, Kernel, Timer
from jobtui.demo.messages import Answer, Message, Order, Request
from jobtui.demo.names import Names
from jobtui.demo.ops import Fault, LoginNeeded, Op
from jobtui.demo.output import Process
from jobtui.demo.records import Record, read_back, to_bytes
from jobtui.demo.settings import Settings
from jobtui.demo.truth import Witness
from jobtui.model.clock import SECOND, Nanos

if TYPE_CHECKING:
    from jobtui.demo.sockets import Socket
    from jobtui.demo.world import World

JOB_CACHE_SECS = 300
"""After how long a job without ops is forgotten and read back from disk when asked for."""

_STACK = """Traceback (most recent call last):
  File "{path}sirepo/job_supervisor.py", line 257, in receive
    return await getattr(
           ^^^^^^^^^^^^^^
  File "{path}sirepo/job_supervisor.py", line 1106, in _send
    if not await op.prepare_send() or op.is_destroyed:
           ^^^^^^^^^^^^^^^^^^^^^^^
{error}
"""


class Supervisor:
    """One supervisor, from its start to its stop."""

    handlers: Mapping[str, Callable[[Supervisor, Request], Awaitable[Answer]]] = HANDLERS
    op_class: type[Op] = Op
    job_class: type[Job] = Job

    def __init__(self, world: World, process: Process) -> None:
        self.world = world
        self.process = process
        self.kernel: Kernel = world.kernel
        self.settings: Settings = world.settings
        self.names: Names = world.names
        self.witness: Witness = world.witness
        self.rng: random.Random = world.rng
        self.jobs: dict[str, Job] = {}
        self.drivers = Drivers(self)
        self._active: Counter[str] = Counter()
        self._open: dict[Future[Answer], None] = {}

    @property
    def seconds(self) -> int:
        """Whole epoch seconds of its own clock."""
        return self.process.clock // SECOND

    def start(self) -> None:
        """Say that it is there."""
        self.process.log("modules", self.drivers.modules)
        self.process.log("listening", self.settings.supervisor_port)

    def later(self, delay_s: float, action: Callable[[], Coroutine[object, None, object]]) -> Timer:
        """Run a coroutine of the supervisor after `delay_s` seconds."""
        return self.kernel.later(delay_s, lambda: self.process.tasks.spawn(action))

    def save(self, record: Record) -> None:
        """Write a job's record."""
        if self.process.alive:
            self.world.save(self._path(record["computeJid"]), self.written(record))

    @staticmethod
    def written(record: Record) -> bytes:
        """A record as its file holds it."""
        return to_bytes(record)

    @staticmethod
    def read(data: bytes) -> Record:
        """A record out of its file."""
        return read_back(data)

    def request(self, request: Request, done: Future[Answer]) -> None:
        """Serve a request; the answer goes into `done`, one that says it failed when the supervisor ends."""
        self._open[done] = None
        self.process.tasks.spawn(lambda: self._serve(request, done))

    async def _serve(self, request: Request, done: Future[Answer]) -> None:
        began = self.process.clock
        answer = await self._receive(request)
        ms = (self.process.clock - began) / 1e6 + self.rng.random() * 2
        self.process.log(
            "access",
            "INFO" if answer.ok else "ERROR",
            200 if answer.ok else 500,
            "POST /job-api-request",
            ms,
        )
        self._open.pop(done, None)
        done.set(answer)

    async def _receive(self, request: Request) -> Answer:
        if request.api != "api_runStatus":
            self.process.log("request", request)
        handler = self.handlers[request.api]
        self._active[request.jid or ""] += 1
        try:
            return await handler(self, request)
        except LoginNeeded as error:
            self.process.log("request_error", request, error)
            return Answer(login_needed=True)
        except Fault as error:
            self.process.log("request_error", request, error)
            self.process.log("incoming_fault", error, "<sirepo.pkcli.job_supervisor._ServerReq>", "{}")
            self.process.log("incoming_stack", self.stack(str(error)))
            return Answer(ok=False)
        finally:
            self._active[request.jid or ""] -= 1

    def job(self, request: Request) -> Job:
        """The job a request is about: from memory, from disk, or new."""
        assert request.jid is not None
        job = self.jobs.get(request.jid)
        if job is None:
            data = self.world.disk.read(self._path(request.jid))
            job = self.jobs[request.jid] = self.job_class(self, request, self.read(data) if data else None)
            self._forget_later(job)
            if job.live and job.record["jobRunMode"] != "sbatch":
                self.process.log("reload", job.jid, request.api)
                job.update_status(status="canceled")
        return job

    def accept(self) -> None:
        """An agent opens a socket."""
        self.process.log("access", "INFO", 101, "GET /job-agent-websocket", 0.3 + self.rng.random())
        self.process.log("socket_open")

    def receive(self, message: Message, socket: Socket) -> None:
        """Take in what came through an agent's socket."""
        driver = self.drivers.by_agent.get(message.agent_id)
        if driver is None:
            self.process.log("unknown_agent", message)
            socket.order(Order(op_id=None, name="kill"))
            return
        self.witness.received(message.agent_id, message.name, message.op_id, message.jid)
        driver.receive(message, socket)

    def update(self, message: Message) -> None:
        """Take in news of a run."""
        job = self.jobs.get(message.jid or "")
        if job is None:
            self.process.log("inactive_job", message.jid, message)
        else:
            job.receive(message)

    def stack(self, error: str) -> str:
        """A traceback that ends in this error."""
        return _STACK.format(path=self.settings.agent_site_packages, error=error)

    async def stop(self) -> None:
        """End every agent, one after the other, then itself, as it does when told to stop."""
        for driver in list(self.drivers.by_agent.values()):
            await driver.kill()
        self.end()

    def end(self) -> None:
        """Be gone at once; agents find out as their sockets close."""
        self.process.end()
        for done in self._open:
            done.set(Answer(ok=False))
        for driver in self.drivers.by_agent.values():
            driver.supervisor_gone()

    def _path(self, jid: str) -> str:
        return f"{self.settings.root}/supervisor-job/{jid}.json"

    def _forget_later(self, job: Job) -> None:
        def forget() -> None:
            if not self.process.alive or self.jobs.get(job.jid) is not job:
                return
            if job.ops or self._active[job.jid]:
                self._forget_later(job)
            else:
                del self.jobs[job.jid]

        self.kernel.at(Nanos(self.kernel.now + JOB_CACHE_SECS * SECOND), forget)
