"""Ops: the messages a supervisor sends to agents, from their making to their end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobtui.demo.kernel import Queue, Timer
from jobtui.demo.messages import Message, Order, Request
from jobtui.demo.slots import Slot
from jobtui.demo.truth import OpNote
from jobtui.model.ids import PREFIX_LENGTH

if TYPE_CHECKING:
    from jobtui.demo.drivers import Driver
    from jobtui.demo.jobs import Job
    from jobtui.demo.supervisor import Supervisor

WITHOUT_SLOTS = frozenset({"begin_session", "cancel", "run_status", "sbatch_agent_ready", "sbatch_login"})
WITH_CPU_SLOT = frozenset({"analysis", "run"})
WITH_OP_SLOT = ("analysis", "run", "io")
UNTIMED = frozenset({"cancel"})
PAID_PLANS = frozenset({"premium", "enterprise"})


class Fault(Exception):
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


class Op:
    """One op. `job` is None for those that concern no simulation and for cancels."""

    def __init__(
        self,
        supervisor: Supervisor,
        name: str,
        request: Request,
        *,
        kind: str,
        mode: str,
        job: Job | None = None,
        run_dir: str | None = None,
        job_cmd: str | None = None,
        api: str | None = None,
        jid: str | None = None,
        cancels: tuple[str | None, str | None] = (None, None),
    ) -> None:
        self.supervisor = supervisor
        self.name = name
        self.request = request
        self.kind = kind
        self.mode = mode
        self.job = job
        self.run_dir = run_dir
        self.job_cmd = job_cmd
        self.cancel_jid, self.cancel_op = cancels
        self.serial = 0
        self.is_destroyed = False
        self.driver: Driver | None = None
        self.op_id = supervisor.names.key()
        self.max_run_secs = 0.0
        self._internal_error: str | None = None
        self._timer: Timer | None = None
        self._replies: Queue[Message | None] = Queue(supervisor.kernel)
        self._slots: dict[str, Slot] = {}
        if job is not None:
            self._slots["run_dir"] = Slot(self, job.run_dir_slots)
        self._born()
        note = OpNote(self.op_id, name, jid, request.uid, api, job_cmd, supervisor.process.clock)
        supervisor.witness.created(note)
        self.log("op", self, run_dir)

    def __str__(self) -> str:
        dead = "DESTROYED, " if self.is_destroyed else ""
        error = f", internal_error={self._internal_error}" if self._internal_error else ""
        return f"_Op({dead}{self.name}, {self.op_id[:PREFIX_LENGTH]}{error})"

    def _born(self) -> None:
        """What happens before it is logged."""

    @property
    def owner(self) -> str:
        """The job as lines show it, or the request when there is none."""
        return str(self.job) if self.job else f"_Supervisor(api={self.request.api} uid={self.request.uid})"

    def log(self, name: str, *values: object) -> None:
        """Write a line of the supervisor."""
        self.supervisor.process.log(name, *values)

    def _set_situation(self, situation: str | None) -> None:
        """Note in the job's record what a run waits for."""
        if self.name == "run" and self.job is not None:
            self.job.update(jobStatusMessage=situation)

    def assign(self) -> Driver:
        """Find or make the driver that this op goes to."""
        self.driver = self.supervisor.drivers.of(self)
        return self.driver

    async def prepare(self) -> bool:
        """Get a driver, an agent and the slots; False when the op was given up. Raises LoginNeeded, Fault."""
        if self.driver is None:
            driver = self.assign()
            self.log("assigned", driver, self)
            self._claim(driver)
        assert self.driver is not None
        return await self.driver.prepare(self)

    def _claim(self, driver: Driver) -> None:
        self._slots["cpu"] = Slot(self, driver.cpu_slots)
        if self.name in driver.op_slots:
            self._slots["op"] = Slot(self, driver.op_slots[self.name])
        self.max_run_secs = self._limit(driver)

    def waits(self, situation: str) -> None:
        """It has to wait for a slot."""
        self.log("enter", self, situation, self.owner)
        self._set_situation(situation)

    def goes_on(self, situation: str) -> None:
        """It has got the slot."""
        self.log("exit", self, situation, self.owner)

    def settles(self) -> None:
        """It waits no more."""
        self._set_situation(None)

    def slot(self, name: str) -> Slot:
        """Its claim to a slot: `op`, `run_dir` or `cpu`. Raises Fault when it was given up meanwhile.

        The fault is Sirepo's: an op cancelled while it waits for its first slot stumbles over the next.
        """
        if name not in self._slots:
            raise Fault(f"'_Op' object has no attribute '{name}_slot'")
        return self._slots[name]

    def send(self) -> bool:
        """Send it; whether that went well. Its time begins now."""
        assert self.driver is not None
        if self.max_run_secs:
            self._timer = self.supervisor.later(self.max_run_secs, self._time_out)
        return self.driver.send(self)

    def reply(self, message: Message) -> None:
        """Take in what the agent answered."""
        self._replies.put(message)

    async def answer(self) -> Message | None:
        """The agent's answer, None when the op is given up before one comes."""
        self.log("await_reply", self)
        message = await self._replies.get()
        if message is None:
            self.log("no_reply", self)
        return message

    def order(self) -> Order:
        """The op as it goes to the agent."""
        return Order(
            op_id=self.op_id,
            name=self.name,
            request=self.request,
            job_cmd=self.job_cmd,
            run_dir=self.run_dir,
            serial=self.serial,
            cancel_jid=self.cancel_jid,
            cancel_op=self.cancel_op,
        )

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
            self.driver.forget(self)

    def _limit(self, driver: Driver) -> float:
        settings = self.supervisor.settings
        if driver.untimed or self.name in UNTIMED:
            return 0.0
        if self.name in {"analysis", "io"}:
            return settings.max_secs_analysis
        if self.kind == "sequential":
            return settings.max_secs_sequential
        paid = self.request.plan in PAID_PLANS
        return settings.max_secs_parallel_paid if paid else settings.max_secs_parallel

    async def _time_out(self) -> None:
        limit = self.max_run_secs
        self.log("max_run_secs", self, int(limit) if limit == int(limit) else limit)
        if self.job is not None and not self.is_destroyed:
            await self.job.cancel(timed_out=self)
