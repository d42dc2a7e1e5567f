"""Jobs as the supervisor holds them: the record, the ops under way, and how a run's state changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from jobtui.demo.messages import Message, Request
from jobtui.demo.ops import Fault, LoginNeeded, Op
from jobtui.demo.records import Record, new_record
from jobtui.demo.slots import Slots
from jobtui.model.clock import to_seconds

if TYPE_CHECKING:
    from jobtui.demo.supervisor import Supervisor

LIVE = frozenset({"pending", "running"})
ENDED = frozenset({"canceled", "completed", "error"})


class Job:
    """One computeJid in the supervisor's memory."""

    def __init__(self, supervisor: Supervisor, request: Request, record: Record | None) -> None:
        self.supervisor = supervisor
        self.ops: list[Op] = []
        self.run_dir_slots = Slots(supervisor.kernel, 1)
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
        """The job's id."""
        return str(self.record["computeJid"])

    @property
    def live(self) -> bool:
        """Whether a run waits or runs, as far as the record knows."""
        return self.record["status"] in LIVE

    def log(self, name: str, *values: object) -> None:
        """Write a line of the supervisor."""
        self.supervisor.process.log(name, *values)

    def reset(self, request: Request) -> None:
        """Begin a new record, the present one goes to its history. Not yet written."""
        previous = self.record or None
        self.record = new_record(request, previous, self._hash(request))

    def _hash(self, request: Request) -> str | None:
        if request.api == "api_statelessCompute":
            return None
        return "HashIsUnused" if request.is_parallel else self.supervisor.names.hex(32)

    def update(self, **changes: Any) -> None:
        """Change fields of the record and write it."""
        self.record.update(changes)
        self.record["dbUpdateTime"] = round(to_seconds(self.supervisor.process.clock), 6)
        self.supervisor.save(self.record)

    def update_status(self, **changes: Any) -> None:
        """As `update`, and a run that is over lets its op go."""
        if changes["status"] not in LIVE and self.status_op:
            self.status_op.destroy()
        self.update(**changes)

    def forget(self, op: Op) -> None:
        """An op was given up."""
        if op in self.ops:
            self.ops.remove(op)
        if self.status_op is op:
            self.status_op = None

    def create_op(
        self,
        name: str,
        request: Request,
        *,
        job_cmd: str | None = None,
        api: str | None = None,
        cancels: tuple[str | None, str | None] = (None, None),
    ) -> Op:
        """Make an op of this job. Analysis runs on the sequential agent even for parallel jobs."""
        parallel = self.record["isParallel"] and name != "analysis"
        op = self.supervisor.op_class(
            self.supervisor,
            name,
            request,
            kind="parallel" if parallel else "sequential",
            mode=request.mode or self.record["jobRunMode"],
            job=self,
            run_dir=request.run_dir,
            job_cmd=job_cmd,
            api=api,
            jid=self.jid,
            cancels=cancels,
        )
        op.serial = self.record["computeJobSerial"]
        self.ops.append(op)
        return op

    async def exchange(
        self, name: str, request: Request, *, job_cmd: str | None = None, api: str | None = None
    ) -> tuple[Op, Message | None]:
        """Send an op and get its answer, None when it was given up. Raises LoginNeeded and Fault."""
        op = self.create_op(name, request, job_cmd=job_cmd, api=api)
        if name in {"run", "run_status"}:
            self.status_op = op
        try:
            message = await self._exchange(op)
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

    async def _exchange(self, op: Op) -> Message | None:
        if not await op.prepare() or op.is_destroyed or not op.send():
            return None
        return await op.answer()

    def missing(self, request: Request) -> None:
        """Its run directory is gone: the record begins anew."""
        self.reset(request)
        self.update_status(status="missing")

    def receive(self, message: Message) -> None:
        """Take in an update on its run."""
        record = self.record
        if record["computeJobSerial"] != message.serial:
            self.log("serial_differs", self, record["computeJobSerial"], message.serial)
            return
        changes: dict[str, Any] = {"alert": None}
        if record["status"] in ENDED:
            self.log("already_exited", message.state, record["status"], message)
            changes["status"] = record["status"]
        else:
            if message.state == "error":
                changes["error"] = message.error or "<unknown error>"
            name = "same_status" if record["status"] == message.state else "new_status"
            self.log(name, message.state, self)
            changes["status"] = message.state
        self.update_status(**changes, **self._details(message, str(changes["status"])))

    def _details(self, message: Message, status: str) -> dict[str, Any]:
        changes: dict[str, Any] = {}
        if self.record["isParallel"] and status != "pending":
            changes["queueState"] = None
        if message.start:
            changes["computeJobStart"] = message.start
        if message.parallel:
            self.record["parallelStatus"].update(message.parallel)
            changes["lastUpdateTime"] = message.parallel["lastUpdateTime"]
        else:
            changes["lastUpdateTime"] = self.supervisor.seconds
        return changes

    async def cancel(self, timed_out: Op | None = None) -> None:
        """Give up the run (or with `timed_out`, what its time-out stops) and tell the agent."""
        op_id = timed_out.op_id if timed_out else None
        stops_run = timed_out is None or timed_out.name in {"run", "run_status"}
        changes: dict[str, Any] = {"status": "canceled", "queuedState": None}
        args = {"jid": self.jid} if stops_run else {}
        if timed_out:
            args["opId"] = timed_out.op_id
            if stops_run:
                limit = timed_out.max_run_secs
                changes["canceledAfterSecs"] = int(limit) if limit == int(limit) else limit
            timed_out.destroy()
        self.update_status(**changes)
        self.log("cancel", self, args)
        await self._tell_agent(timed_out, (self.jid if stops_run else None, op_id))

    async def _tell_agent(self, timed_out: Op | None, cancels: tuple[str | None, str | None]) -> None:
        kind = timed_out.kind if timed_out else "parallel" if self.record["isParallel"] else "sequential"
        request = Request(api="None", uid=self.record["uid"], plan=self.record["activePlan"])
        op = Op(
            self.supervisor,
            "cancel",
            request,
            kind=kind,
            mode=self.record["jobRunMode"],
            jid=self.jid,
            cancels=cancels,
        )
        op.driver = timed_out.driver if timed_out else None
        try:
            if not await op.prepare() or op.is_destroyed:
                self.log("cancel_failed", self, op)
            elif op.send():
                await op.answer()
        except (Fault, LoginNeeded) as error:
            self.log("cancel_exception", error, self.supervisor.stack(str(error)))
        finally:
            op.destroy()
