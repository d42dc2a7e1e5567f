"""How a program runs under an agent: news on the way, its end, and what it leaves in the run directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from jobtui.demo.commands import Command
from jobtui.demo.messages import Message, Request
from jobtui.demo.programs import Ending, Plan, parallel_status
from jobtui.model.clock import SECOND, Nanos

if TYPE_CHECKING:
    from jobtui.demo.agents import Agent

EXIT_S = (0.004, 0.3)
PREPARE_S = (0.15, 0.4)


async def run_program(agent: Agent, command: Command, request: Request) -> None:
    """Report a run from its start to its end, unless it is killed."""
    plan = agent.world.plan_of(command.jid)
    kernel, started = agent.world.kernel, agent.process.clock
    command.start = agent.seconds
    agent.update(command, "running")
    if plan.ending is Ending.PREPARE_FAILS:
        await _fail_to_prepare(agent, command, request, plan)
        return
    written = 0
    if request.is_parallel:
        for step in plan.progress():
            await kernel.sleep_until(_after(started, step.at_s))
            if command.ended:
                return
            written = agent.world.run_dirs.log(command.run_dir, plan, written, step.percent)
            _progress(agent, command, request, step.percent, step.frames)
    await kernel.sleep_until(_after(started, plan.duration_s))
    if command.ended:
        return
    agent.world.run_dirs.log(command.run_dir, plan, written, plan.after(plan.duration_s).percent)
    await _finish(agent, command, request, plan)


async def _finish(agent: Agent, command: Command, request: Request, plan: Plan) -> None:
    agent.world.run_dirs.result(command.run_dir, request, plan)
    if request.is_parallel:
        last = plan.after(plan.duration_s)
        _progress(agent, command, request, last.percent, last.frames)
        await agent.world.kernel.sleep(0.001)
        if command.ended:
            return
    agent.update(command, plan.state, error=plan.error)
    await agent.world.kernel.sleep(agent.rng.uniform(*EXIT_S))
    agent.finished(command)


def _progress(agent: Agent, command: Command, request: Request, percent: float, frames: int) -> None:
    status = parallel_status(percent, frames, request.model, agent.seconds)
    agent.update(command, "running", parallel=status)


async def _fail_to_prepare(agent: Agent, command: Command, request: Request, plan: Plan) -> None:
    kernel = agent.world.kernel
    await kernel.sleep(agent.rng.uniform(*PREPARE_S))
    if command.ended:
        return
    text = agent.world.stderr_of(command, request, plan)
    agent.log("program_stderr", command, f"b'{text}'")
    agent.send(Message(agent_id=agent.identity.agent_id, name="job_cmd_stderr", stderr=text))
    await kernel.sleep(0.3)
    if command.ended:
        return
    agent.update(command, "error", error=plan.error)
    await kernel.sleep(agent.rng.uniform(*EXIT_S))
    agent.finished(command)
    agent.log("program_waited", command, 0, text.rstrip("\n"))


def _after(started: int, seconds: float) -> Nanos:
    return Nanos(started + round(seconds * SECOND))
