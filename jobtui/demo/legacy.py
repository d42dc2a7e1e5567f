"""Sirepo of March 2020, as far as its logs and records differ from today's.

Each state of a run came as another reply to its run op, which lived until the run's end; ops were with their
driver from their making; agents ran one command for each analysis; nothing was said of a job's changes of
status, of requests that polled, or of what an op got after waiting. Restarts, cancels and time limits are
played; deaths of agents and clusters are not.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from jobtui.demo.agents import Agent
from jobtui.demo.commands import Command
from jobtui.demo.handlers import CANCELED, is_valid, job_status, plain_answer
from jobtui.demo.jobs import ENDED, Job
from jobtui.demo.messages import Answer, Message, Order, Request
from jobtui.demo.ops import Fault, Op
from jobtui.demo.records import Record, read_back, to_bytes
from jobtui.demo.slots import WAIT_CPU, WAIT_OP, WAIT_RUN_DIR
from jobtui.demo.supervisor import Supervisor

if TYPE_CHECKING:
    from jobtui.demo.drivers import Driver

NOT_YET = frozenset(
    (
        "activePlan",
        "dbUpdateTime",
        "jobStatusMessage",
        "queueState",
        "queuedState",
        "internalError",
        "history",
    )
)
ANALYSIS_S = (0.3, 0.9)
PAID = "premium"


class Op2020(Op):
    """An op that is with its driver from the first."""

    def _born(self) -> None:
        driver = self.assign()
        self._claim(driver)
        driver.prepared[self.op_id] = self

    def waits(self, situation: str) -> None:
        """Each kind of slot has a line of its own, and the record does not tell."""
        match situation:
            case str() if situation == WAIT_OP:
                self.log("enter_op", self.driver, self)
            case str() if situation == WAIT_RUN_DIR:
                self.log("enter_run_dir", self.job)
            case str() if situation == WAIT_CPU:
                self.log("enter_cpu", self.driver)

    def settles(self) -> None:
        """Nothing is noted."""


class Job2020(Job):
    """A job whose run op brings every state of the run."""

    async def follow(self, op: Op, request: Request) -> None:
        """Send the run, and take in what comes of it until it is over."""
        try:
            if not await op.prepare() or op.is_destroyed:
                return
            self._note_driver(op.driver)
            op.send()
            while (message := await op.answer()) is not None:
                self._take(message)
                if message.state in ENDED:
                    return
        except Fault:
            return
        finally:
            op.destroy()

    def _note_driver(self, driver: Driver | None) -> None:
        if driver is not None:
            self.record["driverDetails"] = {"type": driver.name}

    def _take(self, message: Message) -> None:
        changes: dict[str, Any] = {"status": message.state, "lastUpdateTime": self.supervisor.seconds}
        if message.state == "error":
            changes["error"] = message.error or "<unknown error>"
        if message.start:
            changes["computeJobStart"] = message.start
        if message.parallel:
            self.record["parallelStatus"].update(message.parallel)
        self.update(**changes)

    async def cancel(self, timed_out: Op | None = None) -> None:
        """A time limit was reached."""
        if timed_out is not None:
            await self.give_up(timed_out.request, timed_out)

    async def give_up(self, request: Request, timed_out: Op | None = None) -> None:
        """Name the ops that are given up, and have the agent stop them."""
        given_up = timed_out or self.status_op
        op = self.create_op(
            "cancel", request, api=None, cancels=(self.jid, given_up.op_id if given_up else None)
        )
        self.log("cancel", self, ", ".join(map(str, self.ops)))
        changes: dict[str, Any] = {"status": "canceled"}
        if timed_out:
            changes["canceledAfterSecs"] = timed_out.max_run_secs
        if given_up:
            given_up.destroy()
        self.update_status(**changes)
        if await op.prepare() and not op.is_destroyed and op.send():
            await op.answer()
        op.destroy()


class Agent2020(Agent):
    """An agent that answers the run op whenever something changes, and runs a command for each analysis."""

    def update(
        self,
        command: Command,
        state: str,
        *,
        error: str | None = None,
        parallel: Mapping[str, object] | None = None,
    ) -> None:
        """Answer the run op once more."""
        command.state = state
        message = Message(
            agent_id=self.identity.agent_id,
            name="run",
            op_id=command.op_id,
            reply={"state": state} | ({"error": error} if error else {}),
            state=state,
            start=command.start,
            error=error,
            parallel=parallel,
        )
        self.send(message)

    def accepted(self, order: Order) -> None:
        """A run that was started is not confirmed by itself."""

    def _analyze(self, order: Order) -> None:
        if order.run_dir and self.world.run_dirs.is_gone(order.run_dir):
            self.send(self.reply(order, "error", runDirNotFound=True))
            return
        jid = self._request(order).jid or ""
        command = self.launch(order, jid, order.job_cmd or "", order.run_dir or "")
        self.process.tasks.spawn(lambda: self._compute(order, command))

    async def _compute(self, order: Order, command: Command) -> None:
        await self.world.kernel.sleep(self.world.analysis_s(order) or self.rng.uniform(*ANALYSIS_S))
        if not command.ended:
            self.send(self.reply(order, order.name, state="completed"))
            self.finished(command)


async def run_simulation(supervisor: Supervisor, request: Request) -> Answer:
    """Start a run and answer at once."""
    job = supervisor.job(request)
    if job.live:
        return job_status(job, request)
    if not request.force and is_valid(job, request) and job.record["status"] == "completed":
        return await run_status(supervisor, request)
    job.reset(request)
    second = supervisor.seconds
    job.update_status(
        computeJobQueued=second,
        computeJobSerial=second,
        jobRunMode=request.mode,
        simName=request.name,
        status="pending",
    )
    op = job.create_op("run", request, job_cmd="compute", api=request.api)
    job.status_op = op
    assert isinstance(job, Job2020)
    supervisor.process.tasks.spawn(lambda: job.follow(op, request))
    return job_status(job, request)


async def run_status(supervisor: Supervisor, request: Request) -> Answer:
    """What the record says, and the result when it is there."""
    job = supervisor.job(request)
    answer = job_status(job, request)
    if not job.record["isParallel"] and answer.state == "completed":
        await _analyze(job, request, "sequential_result")
    return answer


async def simulation_frame(supervisor: Supervisor, request: Request) -> Answer:
    """One frame of a parallel run's result."""
    return plain_answer(await _analyze(supervisor.job(request), request, "get_simulation_frame"))


async def download_data_file(supervisor: Supervisor, request: Request) -> Answer:
    """A file out of the run directory; an analysis then."""
    return plain_answer(await _analyze(supervisor.job(request), request, "get_data_file"))


async def run_cancel(supervisor: Supervisor, request: Request) -> Answer:
    """Stop a run."""
    job = supervisor.job(request)
    if job.live and isinstance(job, Job2020):
        await job.give_up(request)
    return CANCELED


async def _analyze(job: Job, request: Request, job_cmd: str) -> Message | None:
    op, message = await job.exchange("analysis", request, job_cmd=job_cmd, api=request.api)
    op.destroy()
    return message


class Supervisor2020(Supervisor):
    """A supervisor of March 2020."""

    handlers: Mapping[str, Callable[[Supervisor, Request], Awaitable[Answer]]] = {
        "api_downloadDataFile": download_data_file,
        "api_runCancel": run_cancel,
        "api_runSimulation": run_simulation,
        "api_runStatus": run_status,
        "api_simulationFrame": simulation_frame,
    }
    op_class = Op2020
    job_class = Job2020

    @staticmethod
    def written(record: Record) -> bytes:
        """A record with the names of that time."""
        document = _old(record)
        document["history"] = [
            {k: v for k, v in _old(entry).items() if k not in {"computeModel", "driverDetails"}}
            for entry in record["history"]
        ]
        return to_bytes(document)

    @staticmethod
    def read(data: bytes) -> Record:
        """A record out of its file, with today's names."""
        record = read_back(data)
        for entry in (record, *record["history"]):
            entry["canceledAfterSecs"] = entry.pop("cancelledAfterSecs")
            entry["activePlan"] = PAID if entry.pop("isPremiumUser") else "basic"
        return record


def _old(entry: Record) -> Record:
    kept = {key: value for key, value in entry.items() if key not in NOT_YET}
    kept["cancelledAfterSecs"] = kept.pop("canceledAfterSecs")
    kept["isPremiumUser"] = entry["activePlan"] == PAID or None
    return kept
