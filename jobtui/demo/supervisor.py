"""The supervisor: takes requests, keeps jobs in memory and on disk, and sends ops to agents by its drivers.

An op takes up to three slots before it is sent; what an op waits for goes into its job's record and the log.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from jobtui.demo import messages
from jobtui.demo.kernel import Future, SimQueue, Slots, Start, Timer
from jobtui.demo.site import Process, SimSite, Socket
from jobtui.model.clock import to_seconds
from jobtui.model.ids import PREFIX_LENGTH

JOB_CACHE_S = 300
"""After how long a job without ops is dropped, and read from disk again at a request."""
SLOTS_WANTED: Mapping[str, list[str]] = messages.TABLES["slots_wanted"]
"""The slots that ops of a name take before they are sent, in this order. Others take none."""
WAITS = messages.TABLES["slot_waits"]
"""The reports about an op that waits for a slot."""


class SimOp(messages.OpRequest):
    """An op, from its creation to its end. `job` is None if it is for no simulation, and for cancels."""

    def __init__(
        self,
        supervisor: Supervisor,
        name: str,
        request: messages.ApiRequest,
        *,
        kind: str,
        mode: str,
        job: SimJob | None = None,
        job_cmd: str | None = None,
    ) -> None:
        super().__init__(supervisor.site.ids.key(), name, request, job_cmd)
        self.supervisor = supervisor
        self.log = supervisor.log
        self.kind = kind
        self.mode = mode
        self.job = job
        self.is_destroyed = False
        self.driver: Driver | None = None
        self.max_run_secs = 0
        self._internal_error: str | None = None
        self._timer: Timer | None = None
        self.replies: SimQueue[messages.DemoMessage | None] = SimQueue(supervisor.kernel)
        self._slots: dict[str, Slots] = {}
        self._held: set[str] = set()
        if job is not None:
            self.run_dir = request.run_dir
            self._slots["run_dir"] = job.run_dir_slots
        self.log("op", self, self.run_dir)

    def __str__(self) -> str:
        dead = "DESTROYED, " if self.is_destroyed else ""
        error = f", internal_error={self._internal_error}" if self._internal_error else ""
        return f"_Op({dead}{self.name}, {self.prefix}{error})"

    def assign(self) -> Driver:
        self.driver = self.supervisor.driver_of(self)
        return self.driver

    async def prepare(self) -> bool:
        """Get driver, agent and slots; False if given up. Raises LoginNeeded, RequestFault."""
        driver = self.driver
        if driver is None:
            driver = self.assign()
            self.log("assigned", driver, self)
            self._slots["cpu"] = driver.cpu_slots
            if self.name in driver.op_slots:
                self._slots["op"] = driver.op_slots[self.name]
            if not driver.untimed and self.name != "cancel":
                is_paid = self.kind == "parallel" and self.request.plan in {"premium", "enterprise"}
                limit = "analysis" if self.name in {"analysis", "io"} else f"{self.kind}{'_paid' * is_paid}"
                self.max_run_secs = getattr(self.supervisor.site.settings, f"max_secs_{limit}")
        return await driver.prepare(self)

    async def take(self, name: str) -> bool:
        """Take one slot. True if it had to wait; the op may have been given up in between.

        The fault is Sirepo's: an op cancelled while it waits for its first slot fails at the next.
        """
        if name not in self._slots:
            raise messages.RequestFault(f"'_Op' object has no attribute '{name}_slot'")
        if name in self._held:
            return False
        slots, reason = self._slots[name], WAITS[name]
        if len(slots):
            await slots.get()
            self._held.add(name)
            return False
        owner = self.job or f"_Supervisor(api={self.request.api} uid={self.request.uid})"
        self.log("enter", self, reason, owner)
        self._announce(reason)
        await slots.get()
        self.log("exit", self, reason, owner)
        if self.is_destroyed:
            slots.put(None)
        else:
            self._held.add(name)
        self._announce(None)
        return True

    def _announce(self, reason: str | None) -> None:
        if self.name == "run" and self.job is not None:
            self.job.update(jobStatusMessage=reason)

    def free(self, name: str) -> None:
        if name in self._held:
            self._held.remove(name)
            self._slots[name].put(None)

    def send(self) -> bool:
        assert self.driver is not None
        if self.max_run_secs:
            self._timer = self.supervisor.later(self.max_run_secs, self._time_out)
        return self.driver.send(self)

    async def answer(self) -> messages.DemoMessage | None:
        """The agent's answer, None if the op is given up before one comes."""
        self.log("await_reply", self)
        message = await self.replies.get()
        if message is None:
            self.log("no_reply", self)
        return message

    def destroy(self, internal_error: str | None = None) -> None:
        """End it: waiters get no answer, slots are released. May be called twice."""
        if self.is_destroyed:
            return
        self.is_destroyed = True
        self._internal_error = internal_error
        self.replies.put(None)
        for name in ("cpu", "op", "run_dir"):
            self.free(name)
        self._slots.clear()
        if self._timer:
            self._timer.cancel()
        if self.job:
            self.job.forget(self)
        if self.driver:
            self.driver.prepared.pop(self.op_id, None)

    async def _time_out(self) -> None:
        self.log("max_run_secs", self, self.max_run_secs)
        if self.job is not None and not self.is_destroyed:
            await self.job.cancel(timed_out=self)


class SimJob:
    """One computeJid in the supervisor's memory: its record, its open ops, the state of its run."""

    def __init__(
        self, supervisor: Supervisor, request: messages.ApiRequest, record: messages.Record | None
    ) -> None:
        self.supervisor = supervisor
        self.log = supervisor.log
        self.ops: list[SimOp] = []
        self.run_dir_slots: Slots = Slots(supervisor.kernel)
        self.status_op: SimOp | None = None
        self.record = record or {}
        if record is None:
            self.missing(request)

    def __str__(self) -> str:
        record = self.record
        ops = ", ".join(map(str, self.ops))
        return f"_ComputeJob({record['computeJid']} u={record['uid']} {record['status']} [{ops}])"

    @property
    def jid(self) -> str:
        return str(self.record["computeJid"])

    @property
    def live(self) -> bool:
        return self.record["status"] in messages.LIVE

    def reset(self, request: messages.ApiRequest) -> None:
        hash_text = "HashIsUnused" if request.is_parallel else None
        if not request.is_parallel and request.api != "api_statelessCompute":
            hash_text = self.supervisor.site.ids.hex(32)
        self.record = messages.new_record(request, self.record or None, hash_text)

    def update(self, **changes: Any) -> None:
        if changes.get("status", "running") not in messages.LIVE and self.status_op:
            self.status_op.destroy()
        self.record.update(changes)
        self.record["dbUpdateTime"] = round(to_seconds(self.supervisor.process.clock), 6)
        self.supervisor.save(self.record)

    def forget(self, op: SimOp) -> None:
        if op in self.ops:
            self.ops.remove(op)
        if self.status_op is op:
            self.status_op = None

    def create_op(self, name: str, request: messages.ApiRequest, job_cmd: str | None = None) -> SimOp:
        """Create an op of this job. Analysis runs on the sequential agent even for parallel jobs."""
        parallel = self.record["isParallel"] and name != "analysis"
        kind = "parallel" if parallel else "sequential"
        mode = request.mode or self.record["jobRunMode"]
        op = SimOp(self.supervisor, name, request, kind=kind, mode=mode, job=self, job_cmd=job_cmd)
        op.serial = self.record["computeJobSerial"]
        self.ops.append(op)
        return op

    async def exchange(
        self, name: str, request: messages.ApiRequest, job_cmd: str | None = None
    ) -> tuple[SimOp, messages.DemoMessage | None]:
        """Send an op and get its answer, None if it was given up. Raises LoginNeeded and RequestFault."""
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
            op.free("run_dir")
        return op, message

    async def ask(
        self, name: str, request: messages.ApiRequest, job_cmd: str | None = None
    ) -> messages.DemoMessage | None:
        op, message = await self.exchange(name, request, job_cmd)
        op.destroy()
        return message

    async def analyze(self, request: messages.ApiRequest, job_cmd: str) -> messages.DemoMessage | None:
        self.log("analysis", request, job_cmd, request.method)
        return await self.ask("analysis", request, job_cmd)

    def missing(self, request: messages.ApiRequest) -> None:
        self.reset(request)
        self.update(status="missing")

    def receive(self, message: messages.DemoMessage) -> None:
        record = self.record
        if record["computeJobSerial"] != message.serial:
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
        self.update(**changes)

    async def cancel(self, timed_out: SimOp | None = None) -> None:
        """Give up the run (with `timed_out` what its time limit stops) and tell the agent."""
        stops_run = timed_out is None or timed_out.name in {"run", "run_status"}
        changes: dict[str, Any] = {"status": "canceled", "queuedState": None}
        args = {"jid": self.jid} if stops_run else {}
        op_id = timed_out.op_id if timed_out else None
        if timed_out:
            args["opId"] = str(op_id)
            if stops_run:
                changes["canceledAfterSecs"] = timed_out.max_run_secs
            timed_out.destroy()
        self.update(**changes)
        self.log("cancel", self, args)
        kind = timed_out.kind if timed_out else "parallel" if self.record["isParallel"] else "sequential"
        record = self.record
        request = messages.ApiRequest(api="None", uid=record["uid"], plan=record["activePlan"], jid=self.jid)
        op = SimOp(self.supervisor, "cancel", request, kind=kind, mode=record["jobRunMode"])
        op.cancel_jid, op.cancel_op = self.jid if stops_run else None, op_id
        op.driver = timed_out.driver if timed_out else None
        try:
            if not await op.prepare() or op.is_destroyed:
                self.log("cancel_failed", self, op)
            elif op.send():
                await op.answer()
        except (messages.RequestFault, messages.LoginNeeded) as error:
            self.log("cancel_exception", error, self.supervisor.stack(str(error)))
        finally:
            op.destroy()


class Driver:
    """One agent identity: how its agent is started, reached and ended."""

    name = "Driver"
    starting_secs: int = 5
    untimed = False
    stays = False
    """Whether its agent is kept while it has no work."""

    def __init__(self, supervisor: Supervisor, op: SimOp, cpu_slots: Slots) -> None:
        self.supervisor = supervisor
        self.log = supervisor.log
        self.site = supervisor.site
        self.kind = op.kind
        self.uid = op.request.uid
        self.cpu_slots = cpu_slots
        self.op_slots: dict[str, Slots] = {name: Slots(supervisor.kernel) for name in SLOTS_WANTED}
        self.agent_id = self.site.ids.key()
        self.prepared: dict[str | None, SimOp] = {}
        self.socket: Socket | None = None
        self.ready: Future[None] = Future(supervisor.kernel)
        self._starting: Timer | None = None
        self._lock = Slots(supervisor.kernel)
        self._idle: Timer | None = None
        supervisor.drivers_by_agent[self.agent_id] = self
        self.log("driver", self)

    def __str__(self) -> str:
        ops = ", ".join(map(str, self.prepared.values()))
        prefix = self.agent_id[:PREFIX_LENGTH]
        return f"{self.name}(a={prefix} k={self.kind} u={self.uid[:PREFIX_LENGTH]} [{ops}])"

    @property
    def ready_or_starting(self) -> bool:
        return self.ready.done or self._starting is not None

    async def start_agent(self, op: SimOp) -> None:
        """Start the agent. Raises LoginNeeded."""
        raise NotImplementedError

    async def kill(self) -> None:
        raise NotImplementedError

    def check(self, op: SimOp) -> None:
        """Prepare an op for this driver. Raises LoginNeeded."""

    def identity(self, exec_dir: str, root: str | None = None) -> messages.Identity:
        return messages.Identity(
            agent_id=self.agent_id,
            uid=self.uid,
            kind=self.kind,
            token=self.site.tokens[self.uid],
            port=self.site.settings.supervisor_port,
            root=root or self.site.settings.root,
            exec_dir=exec_dir,
        )

    async def prepare(self, op: SimOp) -> bool:
        """Wait for agent and slots; False if given up. Raises LoginNeeded, RequestFault."""
        self.check(op)
        if not await self._agent_ready(op):
            return False
        waited = [await op.take(name) for name in SLOTS_WANTED.get(op.name, ())]
        if any(waited) and (op.is_destroyed or not await self._agent_ready(op)):
            return False
        self.prepared[op.op_id] = op
        return True

    async def _agent_ready(self, op: SimOp) -> bool:
        if self.ready.done:
            return True
        await self._start(op)
        self.log("await_agent", self, op)
        await self.ready
        self.log("agent_there", self, op)
        if op.is_destroyed:
            self.log("destroyed_waiting", op)
        return not op.is_destroyed

    async def _start(self, op: SimOp) -> None:
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

    def send(self, op: SimOp) -> bool:
        """Send an op. True if there was a socket for it."""
        self.log("send", self, op, op.run_dir)
        if self.socket is None:
            error = "'NoneType' object has no attribute 'write_message'"
            self.log("send_error", error, op, self.supervisor.stack(f"AttributeError: {error}"))
            return False
        self.socket.order(op)
        return True

    def receive(self, message: messages.DemoMessage, socket: Socket) -> None:
        op_id = message.op_id
        prefix = op_id[:PREFIX_LENGTH] if op_id else None
        if message.name == "error" or (message.reply or {}).get("state") == "error":
            self.log("message_error", self, message)
        else:
            self.log("message", self, message.name, prefix)
        if message.name == "alive":
            self._cancel_starting()
            if self.socket is not None and self.socket is not socket:
                self.socket.close()
            self.socket = socket
            socket.lost_by_agent = self._socket_closed
            self.ready.set(None)
            self._watch_idle()
        elif op_id in self.prepared:
            self.prepared[op_id].replies.put(message)
        elif op_id is not None:
            self.log("not_prepared", self, message.name, prefix, message)
        elif message.name == "job_cmd_stderr":
            self.log("message_stderr", self, message)
        else:
            self.supervisor.update(message)

    def _socket_closed(self) -> None:
        self.log("socket_closed", self)
        self.socket = None
        self._free_soon("websocket_on_close")

    async def free(self, caller: str) -> None:
        async with self._lock:
            await self.kill()
            self._cancel_starting()
            if self.ready.done:
                self.ready = Future(self.supervisor.kernel)
            if self.socket:
                self.socket.close()
                self.socket = None
            for op in list(self.prepared.values()):
                op.destroy(internal_error=f"job_driver.free_resources caller={caller}")

    def _free_soon(self, caller: str) -> None:
        self.log("free", self, caller)
        self.supervisor.process.tasks.spawn(lambda: self.free(caller))

    async def _not_ready(self) -> None:
        if self._starting is None or self.ready.done:
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


class Supervisor:
    modules: Sequence[str]

    def driver_of(self, op: SimOp) -> Driver:
        raise NotImplementedError

    def __init__(self, site: SimSite, process: Process) -> None:
        self.site = site
        self.process = process
        self.kernel = site.kernel
        self.jobs: dict[str, SimJob] = {}
        self.drivers_by_agent: dict[str, Driver] = {}
        self._active: Counter[str] = Counter()
        self._open: dict[Future[messages.AgentAnswer], None] = {}

    def start(self) -> None:
        self.log("modules", self.modules)
        self.log("listening", self.site.settings.supervisor_port)

    def log(self, name: str, *values: object) -> None:
        self.process.log(name, *values)

    def later(self, delay_s: float, action: Start) -> Timer:
        return self.kernel.later(delay_s, lambda: self.process.tasks.spawn(action))

    def save(self, record: messages.Record) -> None:
        if self.process.alive:
            data = json.dumps(record, separators=(",", ":")).encode("ascii")
            self.site.save(self._path(record["computeJid"]), data)

    def stack(self, error: str) -> str:
        return str(messages.TABLES["stack"]).format(path=self.site.settings.agent_site_packages, error=error)

    def job(self, request: messages.ApiRequest) -> SimJob:
        assert request.jid is not None
        job = self.jobs.get(request.jid)
        if job is None:
            data = self.site.disk.read(self._path(request.jid))
            job = self.jobs[request.jid] = SimJob(self, request, messages.read_record(data) if data else None)
            self._forget_later(job)
            if job.live and job.record["jobRunMode"] != "sbatch":
                self.log("reload", job.jid, request.api)
                job.update(status="canceled")
        return job

    def _path(self, jid: str) -> str:
        return f"{self.site.settings.root}/supervisor-job/{jid}.json"

    def _forget_later(self, job: SimJob) -> None:
        def forget() -> None:
            if not self.process.alive or self.jobs.get(job.jid) is not job:
                return
            if job.ops or self._active[job.jid]:
                self._forget_later(job)
            else:
                del self.jobs[job.jid]

        self.kernel.later(JOB_CACHE_S, forget)

    def accept(self) -> None:
        self.log("access", "INFO", 101, "GET /job-agent-websocket", 0.3 + self.site.rng.random())
        self.log("socket_open")

    def receive(self, message: messages.DemoMessage, socket: Socket) -> None:
        driver = self.drivers_by_agent.get(message.agent_id)
        if driver is None:
            self.log("unknown_agent", message)
            socket.order(messages.KILL)
        else:
            driver.receive(message, socket)

    def update(self, message: messages.DemoMessage) -> None:
        if (job := self.jobs.get(message.jid or "")) is not None:
            job.receive(message)

    def request(self, request: messages.ApiRequest, done: Future[messages.AgentAnswer]) -> None:
        """Serve a request. The answer is set in `done`: a failure if the supervisor ends."""
        if not self.process.alive:
            done.set(messages.AgentAnswer(ok=False))
            return
        self._open[done] = None
        self.process.tasks.spawn(lambda: self._serve(request, done))

    async def _serve(self, request: messages.ApiRequest, done: Future[messages.AgentAnswer]) -> None:
        began = self.process.clock
        answer = await self._receive(request)
        ms = (self.process.clock - began) / 1e6 + self.site.rng.random() * 2
        level, code = ("INFO", 200) if answer.ok else ("ERROR", 500)
        self.log("access", level, code, "POST /job-api-request", ms)
        self._open.pop(done, None)
        done.set(answer)

    async def _receive(self, request: messages.ApiRequest) -> messages.AgentAnswer:
        if request.api != "api_runStatus":
            self.log("request", request)
        self._active[request.jid or ""] += 1
        try:
            return await self._answer(request)
        except messages.LoginNeeded as error:
            self.log("request_error", request, error)
            return messages.AgentAnswer(login_needed=True)
        except messages.RequestFault as error:
            self.log("request_error", request, error)
            self.log("incoming_fault", error, "<sirepo.pkcli.job_supervisor._ServerReq>", "{}")
            self.log("incoming_stack", self.stack(str(error)))
            return messages.AgentAnswer(ok=False)
        finally:
            self._active[request.jid or ""] -= 1

    async def _answer(self, request: messages.ApiRequest) -> messages.AgentAnswer:
        match request.api:
            case "api_beginSession":
                op = SimOp(self, "begin_session", request, kind="sequential", mode="sequential")
                try:
                    await op.prepare()
                finally:
                    op.destroy()
                return messages.AgentAnswer()
            case "api_runSimulation":
                return await self.run_simulation(request)
            case "api_runStatus":
                return await self.run_status(request)
            case "api_runCancel":
                job = self.job(request)
                if job.live:
                    await job.cancel()
                else:
                    self.log("cancel_ignored", job)
                message = None
            case "api_sbatchLogin":
                return await self.sbatch_login(request)
            case "api_simulationFrame":
                message = await self.job(request).analyze(request, "get_simulation_frame")
            case "api_statelessCompute":
                message = await self.job(request).analyze(request, "stateless_compute")
            case _:
                message = await self.job(request).ask("io", request, "download_run_file")
        reply = message.reply if message is not None else None
        return messages.AgentAnswer(state="canceled" if reply is None else str(reply.get("state")))

    async def run_simulation(self, request: messages.ApiRequest) -> messages.AgentAnswer:
        """Start a run, unless one is running or there is a result. Raises LoginNeeded, RequestFault."""
        job = self.job(request)
        if job.live:
            return messages.AgentAnswer(state="error") if request.force else _status(job)
        if not request.force and job.record["status"] == "completed":
            return await self.run_status(request)
        return await self._run(job, request)

    async def _run(self, job: SimJob, request: messages.ApiRequest) -> messages.AgentAnswer:
        job.reset(request)
        second = self.process.seconds
        job.update(
            computeJobQueued=second,
            computeJobSerial=second,
            computeModel=request.model,
            jobRunMode=request.mode,
            simName=request.name,
            status="pending",
        )
        written = job.record["dbUpdateTime"]
        try:
            _, message = await job.exchange("run", request, "compute")
        except Exception as error:
            if job.record["dbUpdateTime"] == written:
                self.log("run_exception", job, error)
                job.update(status="error", error="exception during send", queuedState=None)
            else:
                self.log("run_fault", job, error)
            raise
        if message is None:
            return messages.AgentAnswer(state="canceled")
        return await self.run_status(request)

    async def run_status(self, request: messages.ApiRequest) -> messages.AgentAnswer:
        """The state of a run. Asks the agent if no op follows it, and for its result."""
        job = self.job(request)
        record = job.record
        if job.live and not job.status_op:
            asked = msgspec.structs.replace(
                request,
                api="api_runStatus",
                plan=record["activePlan"],
                is_parallel=record["isParallel"],
                mode=record["jobRunMode"],
            )
            op, message = await job.exchange("run_status", asked)
            reply = dict(message.reply or {}) if message is not None else {}
            if reply.get("state") == "unknown":
                self.log("sbatch_unknown", job, reply)
            elif reply:
                self.log("status_change", job, reply)
                job.update(status=reply["state"])
                op.destroy()
        answer = _status(job)
        if job.record["isParallel"] or answer.state != "completed":
            return answer
        await job.analyze(request, "sequential_result")
        return answer

    async def sbatch_login(self, request: messages.ApiRequest) -> messages.AgentAnswer:
        """Log in to the cluster, unless its agent is connected. Raises LoginNeeded."""
        job = self.job(request)
        check = job.create_op("sbatch_agent_ready", request)
        try:
            ready = check.assign().ready_or_starting
        finally:
            check.destroy()
        if not ready:
            await job.ask("sbatch_login", request)
        return messages.AgentAnswer(state="ok")

    async def stop(self) -> None:
        for driver in list(self.drivers_by_agent.values()):
            await driver.kill()
        self.end()

    def end(self) -> None:
        """End at once; agents notice when their sockets close."""
        self.process.end()
        for done in self._open:
            done.set(messages.AgentAnswer(ok=False))
        for driver in self.drivers_by_agent.values():
            if driver.socket:
                driver.socket.close()


def _status(job: SimJob) -> messages.AgentAnswer:
    record = job.record
    serial, next_s = record["computeJobSerial"], record["nextRequestSeconds"]
    return messages.AgentAnswer(state=record["status"], serial=serial, next_s=next_s)
