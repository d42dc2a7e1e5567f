"""The supervisor: takes requests, keeps jobs in memory and on disk, and sends ops to agents by its drivers.

An op takes up to three slots before it is sent; what an op waits for goes into its job's record and the log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

import msgspec

from jobtui.demo.kernel import Future, Queue, Start, Timer
from jobtui.demo.messages import (
    KILL,
    AgentAnswer,
    Message,
    Order,
    Record,
    Request,
    new_record,
    read_record,
    record_bytes,
)
from jobtui.demo.site import Process, Site, Socket
from jobtui.model.clock import SECOND, Nanos, to_seconds

LIVE = frozenset({"pending", "running"})
PAID_PLANS = frozenset({"premium", "enterprise"})
JOB_CACHE_SECS = 300
"""After how long a job without ops is forgotten and read back from disk when asked for."""
CANCELED = AgentAnswer(state="canceled")
_STACK = """Traceback (most recent call last):
  File "{path}sirepo/job_supervisor.py", line 257, in receive
    return await getattr(
           ^^^^^^^^^^^^^^
  File "{path}sirepo/job_supervisor.py", line 1106, in _send
    if not await op.prepare_send() or op.is_destroyed:
           ^^^^^^^^^^^^^^^^^^^^^^^
{error}
"""


class RequestFault(Exception):
    """A fault in the supervisor that ends a request."""


class LoginNeeded(Exception):
    """The user has to log in to the cluster first. `reason` is Sirepo's word for why."""

    def __init__(self, reason: str, request: Request) -> None:
        params = {
            "isModal": True,
            "isSbatchLogin": True,
            "reason": reason,
            "computeModel": request.model,
            "simulationId": request.simulation,
        }
        super().__init__(f"SRException(params={params},routeName=sbatchLogin)")


Slots = Queue[int]
"""Slots of one kind: the numbers of those that are free."""


class Slot:
    """One op's claim to one of the slots."""

    def __init__(self, op: Op, slots: Slots) -> None:
        self._op = op
        self._slots = slots
        self._number: int | None = None

    async def take(self, situation: str) -> bool:
        """Get it; whether it had to be waited for. The op may have been given up meanwhile."""
        if self._number is not None:
            return False
        if len(self._slots):
            self._number = await self._slots.get()
            return False
        op = self._op
        op.log("enter", op, situation, op.owner)
        op.tell(situation)
        self._number = await self._slots.get()
        op.log("exit", op, situation, op.owner)
        if op.is_destroyed:
            self.free()
        op.tell(None)
        return True

    def free(self) -> None:
        if self._number is not None:
            number, self._number = self._number, None
            self._slots.put(number)


class Op(Order):
    """An op, from its making to its end. `job` is None for those of no simulation and for cancels."""

    def __init__(
        self,
        supervisor: Supervisor,
        name: str,
        request: Request,
        *,
        kind: str,
        mode: str,
        job: Job | None = None,
        job_cmd: str | None = None,
        cancels: tuple[str | None, str | None] = (None, None),
    ) -> None:
        super().__init__(supervisor.site.ids.key(), name, request, job_cmd)
        self.cancel_jid, self.cancel_op = cancels
        self.supervisor = supervisor
        self.log = supervisor.log
        self.kind = kind
        self.mode = mode
        self.job = job
        self.is_destroyed = False
        self.driver: Driver | None = None
        self.max_run_secs = 0.0
        self._internal_error: str | None = None
        self._timer: Timer | None = None
        self._replies: Queue[Message | None] = Queue(supervisor.kernel)
        self._slots: dict[str, Slot] = {}
        if job is not None:
            self.run_dir = request.run_dir
            self._slots["run_dir"] = Slot(self, job.run_dir_slots)
        self.log("op", self, self.run_dir)

    def __str__(self) -> str:
        dead = "DESTROYED, " if self.is_destroyed else ""
        error = f", internal_error={self._internal_error}" if self._internal_error else ""
        return f"_Op({dead}{self.name}, {self.prefix}{error})"

    @property
    def owner(self) -> str:
        return str(self.job) if self.job else f"_Supervisor(api={self.request.api} uid={self.request.uid})"

    def tell(self, situation: str | None) -> None:
        if self.name == "run" and self.job is not None:
            self.job.update(jobStatusMessage=situation)

    def assign(self) -> Driver:
        self.driver = self.supervisor.drivers.of(self)
        return self.driver

    async def prepare(self) -> bool:
        """Get driver, agent and slots; False when given up. Raises LoginNeeded, RequestFault."""
        if self.driver is None:
            driver = self.assign()
            self.log("assigned", driver, self)
            self._slots["cpu"] = Slot(self, driver.cpu_slots)
            if self.name in driver.op_slots:
                self._slots["op"] = Slot(self, driver.op_slots[self.name])
            self.max_run_secs = self._limit(driver)
        assert self.driver is not None
        return await self.driver.prepare(self)

    def slot(self, name: str) -> Slot:
        """Its claim to a slot: `op`, `run_dir` or `cpu`. Raises RequestFault when it was given up meanwhile.

        The fault is Sirepo's: an op cancelled while it waits for its first slot stumbles over the next.
        """
        if name not in self._slots:
            raise RequestFault(f"'_Op' object has no attribute '{name}_slot'")
        return self._slots[name]

    def send(self) -> bool:
        assert self.driver is not None
        if self.max_run_secs:
            self._timer = self.supervisor.later(self.max_run_secs, self._time_out)
        return self.driver.send(self)

    def reply(self, message: Message) -> None:
        self._replies.put(message)

    async def answer(self) -> Message | None:
        """The agent's answer, None when the op is given up before one comes."""
        self.log("await_reply", self)
        message = await self._replies.get()
        if message is None:
            self.log("no_reply", self)
        return message

    def destroy(self, internal_error: str | None = None) -> None:
        """End it: who waits for the answer gets none, slots are given back. May be called twice."""
        if self.is_destroyed:
            return
        self.is_destroyed = True
        self._internal_error = internal_error
        self._replies.put(None)
        for name in ("cpu", "op", "run_dir"):
            if slot := self._slots.pop(name, None):
                slot.free()
        if self._timer:
            self._timer.cancel()
        if self.job:
            self.job.forget(self)
        if self.driver:
            self.driver.prepared.pop(self.op_id, None)

    def _limit(self, driver: Driver) -> float:
        settings = self.supervisor.site.settings
        if driver.untimed or self.name == "cancel":
            return 0.0
        if self.name in {"analysis", "io"}:
            return settings.max_secs_analysis
        if self.kind == "sequential":
            return settings.max_secs_sequential
        paid = self.request.plan in PAID_PLANS
        return settings.max_secs_parallel_paid if paid else settings.max_secs_parallel

    async def _time_out(self) -> None:
        self.log("max_run_secs", self, _plain(self.max_run_secs))
        if self.job is not None and not self.is_destroyed:
            await self.job.cancel(timed_out=self)


def _plain(seconds: float) -> float:
    return int(seconds) if seconds == int(seconds) else seconds


class Job:
    """One computeJid in the supervisor's memory: its record, the ops under way, how a run's state changes."""

    def __init__(self, supervisor: Supervisor, request: Request, record: Record | None) -> None:
        self.supervisor = supervisor
        self.log = supervisor.log
        self.ops: list[Op] = []
        self.run_dir_slots: Slots = Queue(supervisor.kernel, 1)
        self.status_op: Op | None = None
        self.record = record or {}
        if record is None:
            self.reset(request)
            self.update_status(status="missing")

    def __str__(self) -> str:
        record = self.record
        ops = ", ".join(map(str, self.ops))
        return f"_ComputeJob({record['computeJid']} u={record['uid']} {record['status']} [{ops}])"

    @property
    def jid(self) -> str:
        return str(self.record["computeJid"])

    @property
    def live(self) -> bool:
        return self.record["status"] in LIVE

    def is_meant(self, request: Request) -> bool:
        return not request.serial or self.record["computeJobSerial"] == request.serial

    def reset(self, request: Request) -> None:
        hash_text = "HashIsUnused" if request.is_parallel else None
        if not request.is_parallel and request.api != "api_statelessCompute":
            hash_text = self.supervisor.site.ids.hex(32)
        self.record = new_record(request, self.record or None, hash_text)

    def update(self, **changes: Any) -> None:
        self.record.update(changes)
        self.record["dbUpdateTime"] = round(to_seconds(self.supervisor.process.clock), 6)
        self.supervisor.save(self.record)

    def update_status(self, **changes: Any) -> None:
        if changes["status"] not in LIVE and self.status_op:
            self.status_op.destroy()
        self.update(**changes)

    def forget(self, op: Op) -> None:
        if op in self.ops:
            self.ops.remove(op)
        if self.status_op is op:
            self.status_op = None

    def create_op(self, name: str, request: Request, job_cmd: str | None = None) -> Op:
        """Make an op of this job. Analysis runs on the sequential agent even for parallel jobs."""
        parallel = self.record["isParallel"] and name != "analysis"
        kind = "parallel" if parallel else "sequential"
        mode = request.mode or self.record["jobRunMode"]
        op = Op(self.supervisor, name, request, kind=kind, mode=mode, job=self, job_cmd=job_cmd)
        op.serial = self.record["computeJobSerial"]
        self.ops.append(op)
        return op

    async def exchange(
        self, name: str, request: Request, job_cmd: str | None = None
    ) -> tuple[Op, Message | None]:
        """Send an op and get its answer, None when it was given up. Raises LoginNeeded and RequestFault."""
        op = self.create_op(name, request, job_cmd)
        if name in {"run", "run_status"}:
            self.status_op = op
        message = None
        try:
            if await op.prepare() and not op.is_destroyed and op.send():
                message = await op.answer()
        except Exception as error:
            op.destroy(internal_error=f"_send_with_reply exception={error}")
            raise
        if message is None:
            op.destroy()
        elif message.reply is not None and message.reply.get("runDirNotFound"):
            self.missing(request)
            op.destroy()
            return op, msgspec.structs.replace(message, reply={"state": "missing"})
        elif self.status_op is op:
            op.slot("run_dir").free()
        return op, message

    async def ask(self, name: str, request: Request, job_cmd: str | None = None) -> Message | None:
        op, message = await self.exchange(name, request, job_cmd)
        op.destroy()
        return message

    async def analyze(self, request: Request, job_cmd: str) -> Message | None:
        self.log("analysis", request, job_cmd, request.method)
        return await self.ask("analysis", request, job_cmd)

    def missing(self, request: Request) -> None:
        self.reset(request)
        self.update_status(status="missing")

    def receive(self, message: Message) -> None:
        record = self.record
        if record["computeJobSerial"] != message.serial:
            self.log("serial_differs", self, record["computeJobSerial"], message.serial)
            return
        changes: dict[str, Any] = {"alert": None}
        if record["status"] in {"canceled", "completed", "error"}:
            self.log("already_exited", message.state, record["status"], message)
            changes["status"] = record["status"]
        else:
            if message.state == "error":
                changes["error"] = message.error or "<unknown error>"
            name = "same_status" if record["status"] == message.state else "new_status"
            self.log(name, message.state, self)
            changes["status"] = message.state
        if record["isParallel"] and changes["status"] != "pending":
            changes["queueState"] = None
        if message.start:
            changes["computeJobStart"] = message.start
        changes["lastUpdateTime"] = self.supervisor.process.seconds
        if message.parallel:
            record["parallelStatus"].update(message.parallel)
            changes["lastUpdateTime"] = message.parallel["lastUpdateTime"]
        self.update_status(**changes)

    async def cancel(self, timed_out: Op | None = None) -> None:
        """Give up the run (or with `timed_out`, what its time-out stops) and tell the agent."""
        stops_run = timed_out is None or timed_out.name in {"run", "run_status"}
        changes: dict[str, Any] = {"status": "canceled", "queuedState": None}
        args = {"jid": self.jid} if stops_run else {}
        op_id = timed_out.op_id if timed_out else None
        if timed_out:
            args["opId"] = str(op_id)
            if stops_run:
                changes["canceledAfterSecs"] = _plain(timed_out.max_run_secs)
            timed_out.destroy()
        self.update_status(**changes)
        self.log("cancel", self, args)
        await self._tell_agent(timed_out, (self.jid if stops_run else None, op_id))

    async def _tell_agent(self, timed_out: Op | None, cancels: tuple[str | None, str | None]) -> None:
        kind = timed_out.kind if timed_out else "parallel" if self.record["isParallel"] else "sequential"
        record, name = self.record, "cancel"
        request = Request(api="None", uid=record["uid"], plan=record["activePlan"], jid=self.jid)
        op = Op(self.supervisor, name, request, kind=kind, mode=record["jobRunMode"], cancels=cancels)
        op.driver = timed_out.driver if timed_out else None
        try:
            if not await op.prepare() or op.is_destroyed:
                self.log("cancel_failed", self, op)
            elif op.send():
                await op.answer()
        except (RequestFault, LoginNeeded) as error:
            self.log("cancel_exception", error, self.supervisor.stack(str(error)))
        finally:
            op.destroy()


class Driver(Protocol):
    """What ops and the supervisor know of a driver: the way to one agent."""

    cpu_slots: Slots
    op_slots: dict[str, Slots]
    prepared: dict[str | None, Op]
    socket: Socket | None
    untimed: bool

    @property
    def ready_or_starting(self) -> bool: ...
    async def prepare(self, op: Op) -> bool: ...
    def send(self, op: Op) -> bool: ...
    def receive(self, message: Message, socket: Socket) -> None: ...
    async def kill(self) -> None: ...


class Drivers(Protocol):
    """Finds or makes the driver of an op."""

    modules: list[str]
    """The kinds that are configured."""

    def of(self, op: Op) -> Driver: ...
    def free_slots(self, kind: str) -> int: ...


class Supervisor:
    """One supervisor, from its start to its stop."""

    def __init__(self, site: Site, process: Process, drivers: Callable[[Supervisor], Drivers]) -> None:
        self.site = site
        self.process = process
        self.kernel = site.kernel
        self.jobs: dict[str, Job] = {}
        self.drivers_by_agent: dict[str, Driver] = {}
        self.drivers = drivers(self)
        self._active: Counter[str] = Counter()
        self._open: dict[Future[AgentAnswer], None] = {}

    def start(self) -> None:
        self.log("modules", self.drivers.modules)
        self.log("listening", self.site.settings.supervisor_port)

    def log(self, name: str, *values: object) -> None:
        self.process.log(name, *values)

    def later(self, delay_s: float, action: Start) -> Timer:
        return self.kernel.later(delay_s, lambda: self.process.tasks.spawn(action))

    def save(self, record: Record) -> None:
        if self.process.alive:
            self.site.save(self._path(record["computeJid"]), record_bytes(record))

    def stack(self, error: str) -> str:
        return _STACK.format(path=self.site.settings.agent_site_packages, error=error)

    def job(self, request: Request) -> Job:
        assert request.jid is not None
        job = self.jobs.get(request.jid)
        if job is None:
            data = self.site.disk.read(self._path(request.jid))
            job = self.jobs[request.jid] = Job(self, request, read_record(data) if data else None)
            self._forget_later(job)
            if job.live and job.record["jobRunMode"] != "sbatch":
                self.log("reload", job.jid, request.api)
                job.update_status(status="canceled")
        return job

    def _path(self, jid: str) -> str:
        return f"{self.site.settings.root}/supervisor-job/{jid}.json"

    def _forget_later(self, job: Job) -> None:
        def forget() -> None:
            if not self.process.alive or self.jobs.get(job.jid) is not job:
                return
            if job.ops or self._active[job.jid]:
                self._forget_later(job)
            else:
                del self.jobs[job.jid]

        self.kernel.at(Nanos(self.kernel.now + JOB_CACHE_SECS * SECOND), forget)

    # agents

    def accept(self) -> None:
        self.log("access", "INFO", 101, "GET /job-agent-websocket", 0.3 + self.site.rng.random())
        self.log("socket_open")

    def receive(self, message: Message, socket: Socket) -> None:
        driver = self.drivers_by_agent.get(message.agent_id)
        if driver is None:
            self.log("unknown_agent", message)
            socket.order(KILL)
        else:
            driver.receive(message, socket)

    def update(self, message: Message) -> None:
        job = self.jobs.get(message.jid or "")
        if job is None:
            self.log("inactive_job", message.jid, message)
        else:
            job.receive(message)

    # requests

    def request(self, request: Request, done: Future[AgentAnswer]) -> None:
        """Serve a request; the answer goes into `done`, one that says it failed when the supervisor ends."""
        self._open[done] = None
        self.process.tasks.spawn(lambda: self._serve(request, done))

    async def _serve(self, request: Request, done: Future[AgentAnswer]) -> None:
        began = self.process.clock
        answer = await self._receive(request)
        ms = (self.process.clock - began) / 1e6 + self.site.rng.random() * 2
        level, code = ("INFO", 200) if answer.ok else ("ERROR", 500)
        self.log("access", level, code, "POST /job-api-request", ms)
        self._open.pop(done, None)
        done.set(answer)

    async def _receive(self, request: Request) -> AgentAnswer:
        if request.api != "api_runStatus":
            self.log("request", request)
        self._active[request.jid or ""] += 1
        try:
            return await HANDLERS[request.api](self, request)
        except LoginNeeded as error:
            self.log("request_error", request, error)
            return AgentAnswer(login_needed=True)
        except RequestFault as error:
            self.log("request_error", request, error)
            self.log("incoming_fault", error, "<sirepo.pkcli.job_supervisor._ServerReq>", "{}")
            self.log("incoming_stack", self.stack(str(error)))
            return AgentAnswer(ok=False)
        finally:
            self._active[request.jid or ""] -= 1

    async def begin_session(self, request: Request) -> AgentAnswer:
        op = Op(self, "begin_session", request, kind="sequential", mode="sequential")
        try:
            await op.prepare()
        finally:
            op.destroy()
        return AgentAnswer()

    async def run_simulation(self, request: Request) -> AgentAnswer:
        """Start a run, unless one is under way or its result is there. Raises LoginNeeded, RequestFault."""
        job = self.job(request)
        if job.live:
            if not job.is_meant(request) or request.force:
                return AgentAnswer(state="error")
            return _status(job, request)
        if not request.force and job.is_meant(request) and job.record["status"] == "completed":
            return await self.run_status(request)
        return await self._run(job, request)

    async def _run(self, job: Job, request: Request) -> AgentAnswer:
        job.reset(request)
        second = self.process.seconds
        job.update_status(
            computeJobQueued=second,
            computeJobSerial=second,
            computeModel=request.model,
            jobRunMode=request.mode,
            simName=request.name,
            status="pending",
        )
        written = job.record["dbUpdateTime"]
        try:
            op, message = await job.exchange("run", request, "compute")
        except Exception as error:
            if job.record["dbUpdateTime"] == written:
                self.log("run_exception", job, error)
                job.update_status(status="error", error="exception during send", queuedState=None)
            else:
                self.log("run_fault", job, error)
            raise
        if message is None:
            return CANCELED
        state = message.reply.get("state") if message.reply else None
        if state != "ok":
            if job.record["dbUpdateTime"] == written:
                job.update_status(status=state)
            op.destroy()
            return AgentAnswer(state=str(state))
        if job.status_op is not op:
            self.log("run_op_changed", job)
            op.destroy()
            return CANCELED
        return await self.run_status(request)

    async def run_status(self, request: Request) -> AgentAnswer:
        """What became of a run. Asks the agent when no op follows it, and for a result that is there."""
        job = self.job(request)
        if job.live and not job.status_op:
            await self._ask_agent(job, request)
        answer = _status(job, request)
        if job.record["isParallel"] or answer.state != "completed":
            return answer
        message = await job.analyze(request, "sequential_result")
        if message and message.reply and message.reply.get("state") == "error":
            job.missing(request)
            return AgentAnswer(state="missing")
        return answer

    async def _ask_agent(self, job: Job, request: Request) -> None:
        record = job.record
        written = record["dbUpdateTime"]
        asked = msgspec.structs.replace(
            request,
            api="api_runStatus",
            plan=record["activePlan"],
            is_parallel=record["isParallel"],
            mode=record["jobRunMode"],
        )
        op, message = await job.exchange("run_status", asked)
        if message is None or message.reply is None:
            return
        reply = dict(message.reply)
        if job.status_op is not op:
            self.log("status_op_changed", job, reply)
            op.destroy()
        elif job.record["dbUpdateTime"] != written:
            self.log("status_db_updated", job, reply)
            op.destroy()
        elif reply["state"] == "unknown":
            self.log("sbatch_unknown", job, reply)
        else:
            self.log("status_change", job, reply)
            job.update_status(status=reply["state"])
            op.destroy()

    async def simulation_frame(self, request: Request) -> AgentAnswer:
        return _answer(await self.job(request).analyze(request, "get_simulation_frame"))

    async def stateless_compute(self, request: Request) -> AgentAnswer:
        return _answer(await self.job(request).analyze(request, "stateless_compute"))

    async def download_run_file(self, request: Request) -> AgentAnswer:
        return _answer(await self.job(request).ask("io", request, "download_run_file"))

    async def run_cancel(self, request: Request) -> AgentAnswer:
        job = self.job(request)
        if not job.is_meant(request) or not job.live:
            self.log("cancel_ignored", job)
        else:
            await job.cancel()
        return CANCELED

    async def sbatch_login(self, request: Request) -> AgentAnswer:
        """Log in to the cluster, unless the agent there is up. Raises LoginNeeded."""
        job = self.job(request)
        check = job.create_op("sbatch_agent_ready", request)
        try:
            ready = check.assign().ready_or_starting
        finally:
            check.destroy()
        if not ready:
            await job.ask("sbatch_login", request)
        return AgentAnswer(state="ok")

    # the end

    async def stop(self) -> None:
        for driver in list(self.drivers_by_agent.values()):
            await driver.kill()
        self.end()

    def end(self) -> None:
        """Be gone at once; agents find out as their sockets close."""
        self.process.end()
        for done in self._open:
            done.set(AgentAnswer(ok=False))
        for driver in self.drivers_by_agent.values():
            if driver.socket:
                driver.socket.close_by_stop()


def _status(job: Job, request: Request) -> AgentAnswer:
    record = job.record
    if not job.is_meant(request):
        return AgentAnswer(state="missing")
    serial, next_s = record["computeJobSerial"], record["nextRequestSeconds"]
    return AgentAnswer(state=record["status"], serial=serial, next_s=next_s)


def _answer(message: Message | None) -> AgentAnswer:
    if message is None or message.reply is None:
        return CANCELED
    return AgentAnswer(state=str(message.reply.get("state")))


HANDLERS: Mapping[str, Callable[[Supervisor, Request], Awaitable[AgentAnswer]]] = {
    "api_beginSession": Supervisor.begin_session,
    "api_downloadRunFile": Supervisor.download_run_file,
    "api_runCancel": Supervisor.run_cancel,
    "api_runSimulation": Supervisor.run_simulation,
    "api_runStatus": Supervisor.run_status,
    "api_sbatchLogin": Supervisor.sbatch_login,
    "api_simulationFrame": Supervisor.simulation_frame,
    "api_statelessCompute": Supervisor.stateless_compute,
}
"""What serves each kind of request."""
