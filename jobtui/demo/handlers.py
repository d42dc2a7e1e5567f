"""What the supervisor does for each kind of request."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from jobtui.demo.jobs import Job
from jobtui.demo.messages import Answer, Message, Request
from jobtui.demo.ops import Op

if TYPE_CHECKING:
    from jobtui.demo.supervisor import Supervisor

CANCELED = Answer(state="canceled")


async def begin_session(supervisor: Supervisor, request: Request) -> Answer:
    """A user opened a page: get the agent started. The op is never sent."""
    op = Op(supervisor, "begin_session", request, kind="sequential", mode="sequential", api=request.api)
    try:
        await op.prepare()
    finally:
        op.destroy()
    return Answer()


async def run_simulation(supervisor: Supervisor, request: Request) -> Answer:
    """Start a run, unless one is under way or its result is there. Raises LoginNeeded and Fault."""
    job = supervisor.job(request)
    if job.live:
        if not is_valid(job, request) or request.force:
            return Answer(state="error")
        return job_status(job, request)
    if not request.force and is_valid(job, request) and job.record["status"] == "completed":
        return await run_status(supervisor, request)
    return await _run(supervisor, job, request)


async def _run(supervisor: Supervisor, job: Job, request: Request) -> Answer:
    job.reset(request)
    second = supervisor.seconds
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
        op, message = await job.exchange("run", request, job_cmd="compute", api=request.api)
    except Exception as error:
        if job.record["dbUpdateTime"] == written:
            job.log("run_exception", job, error)
            job.update_status(status="error", error="exception during send", queuedState=None)
        else:
            job.log("run_fault", job, error)
        raise
    if message is None:
        return CANCELED
    state = message.reply.get("state") if message.reply else None
    if state != "ok":
        if job.record["dbUpdateTime"] == written:
            job.update_status(status=state)
        op.destroy()
        return Answer(state=str(state))
    if job.status_op is not op:
        job.log("run_op_changed", job)
        op.destroy()
        return CANCELED
    return await run_status(supervisor, request)


async def run_status(supervisor: Supervisor, request: Request) -> Answer:
    """What became of a run. Asks the agent when no op follows the run, and for a result that is there."""
    job = supervisor.job(request)
    if job.live and not job.status_op:
        await _ask_agent(job, request)
    answer = job_status(job, request)
    if job.record["isParallel"] or answer.state != "completed":
        return answer
    message = await _analyze(job, request, "sequential_result")
    if message and message.reply and message.reply.get("state") == "error":
        job.missing(request)
        return Answer(state="missing")
    return answer


async def _ask_agent(job: Job, request: Request) -> None:
    written = job.record["dbUpdateTime"]
    asked = Request(
        api="api_runStatus",
        uid=request.uid,
        plan=job.record["activePlan"],
        jid=job.jid,
        app=request.app,
        simulation=request.simulation,
        model=request.model,
        run_dir=request.run_dir,
        is_parallel=job.record["isParallel"],
        mode=job.record["jobRunMode"],
    )
    op, message = await job.exchange("run_status", asked)
    if message is None or message.reply is None:
        return
    if job.status_op is not op:
        job.log("status_op_changed", job, dict(message.reply))
        op.destroy()
    elif job.record["dbUpdateTime"] != written:
        job.log("status_db_updated", job, dict(message.reply))
        op.destroy()
    elif message.reply["state"] == "unknown":
        job.log("sbatch_unknown", job, dict(message.reply))
    else:
        job.log("status_change", job, dict(message.reply))
        job.update_status(status=message.reply["state"])
        op.destroy()


async def simulation_frame(supervisor: Supervisor, request: Request) -> Answer:
    """One frame of a parallel run's result."""
    return plain_answer(await _analyze(supervisor.job(request), request, "get_simulation_frame"))


async def stateless_compute(supervisor: Supervisor, request: Request) -> Answer:
    """A small computation that belongs to no simulation."""
    return plain_answer(await _analyze(supervisor.job(request), request, "stateless_compute"))


async def analysis_job(supervisor: Supervisor, request: Request) -> Answer:
    """An analysis of a result by the simulation's own code."""
    return plain_answer(await _analyze(supervisor.job(request), request, "analysis_job"))


async def download_run_file(supervisor: Supervisor, request: Request) -> Answer:
    """A file out of the run directory."""
    job = supervisor.job(request)
    op, message = await job.exchange("io", request, job_cmd="download_run_file", api=request.api)
    op.destroy()
    return plain_answer(message)


async def run_cancel(supervisor: Supervisor, request: Request) -> Answer:
    """Stop a run."""
    job = supervisor.job(request)
    if not is_valid(job, request) or not job.live:
        job.log("cancel_ignored", job)
    else:
        await job.cancel()
    return CANCELED


async def sbatch_login(supervisor: Supervisor, request: Request) -> Answer:
    """Log in to the cluster, unless the agent there is up. Raises LoginNeeded."""
    job = supervisor.job(request)
    check = job.create_op("sbatch_agent_ready", request, api=request.api)
    try:
        ready = check.assign().ready_or_starting
    finally:
        check.destroy()
    if ready:
        return Answer(state="ok")
    op, _ = await job.exchange("sbatch_login", request, api=request.api)
    op.destroy()
    return Answer(state="ok")


async def _analyze(job: Job, request: Request, job_cmd: str) -> Message | None:
    job.log("analysis", request, job_cmd, request.method)
    op, message = await job.exchange("analysis", request, job_cmd=job_cmd, api=request.api)
    op.destroy()
    return message


def is_valid(job: Job, request: Request) -> bool:
    """Whether a request is about the job's latest run."""
    return not request.serial or job.record["computeJobSerial"] == request.serial


def job_status(job: Job, request: Request) -> Answer:
    """What a browser is told of a job."""
    record = job.record
    if not is_valid(job, request):
        return Answer(state="missing")
    frames = record.get("parallelStatus", {}).get("frameCount", 0)
    return Answer(
        state=record["status"],
        serial=record["computeJobSerial"],
        next_s=record["nextRequestSeconds"],
        frames=frames,
    )


def plain_answer(message: Message | None) -> Answer:
    """What a browser is told of an op that has one answer."""
    if message is None or message.reply is None:
        return CANCELED
    return Answer(state=str(message.reply.get("state")))


HANDLERS: Mapping[str, Callable[[Supervisor, Request], Awaitable[Answer]]] = {
    "api_analysisJob": analysis_job,
    "api_beginSession": begin_session,
    "api_downloadRunFile": download_run_file,
    "api_runCancel": run_cancel,
    "api_runSimulation": run_simulation,
    "api_runStatus": run_status,
    "api_sbatchLogin": sbatch_login,
    "api_simulationFrame": simulation_frame,
    "api_statelessCompute": stateless_compute,
}
"""By the name of the API."""
