"""What to type next: commands that look, or that a person decides about; to be copied, never run."""

import shlex
from collections.abc import Callable, Mapping, Sequence

import msgspec

from jobtui.analysis.explain.case import Case
from jobtui.analysis.explain.finding import Finding
from jobtui.analysis.explain.flow import Mark
from jobtui.model.clock import SECOND, Nanos, to_rfc3339
from jobtui.model.ops import Agent
from jobtui.model.verdicts import Code, NextStep, Verdict

Suggestion = Callable[[Case], NextStep | None]

TAIL_LINES = 50
AROUND = 120 * SECOND
OURS = "jobtui "
"""What the commands of this program begin with."""


def next_steps(case: Case, finding: Finding) -> tuple[NextStep, ...]:
    """What helps with this verdict, the most useful first."""
    found = (suggest(case) for suggest in SUGGESTIONS.get(finding.code, ()))
    return tuple(step for step in found if step is not None)


def on_sources(verdict: Verdict, flags: Sequence[str]) -> Verdict:
    """The same verdict; the commands of this program get the flags with which it reads the same."""
    return msgspec.structs.replace(verdict, next=tuple(_with_flags(step, flags) for step in verdict.next))


def _with_flags(step: NextStep, flags: Sequence[str]) -> NextStep:
    if not flags or not step.command.startswith(OURS):
        return step
    return step._replace(command=f"{OURS}{shlex.join(flags)} {step.command.removeprefix(OURS)}")


def _timeline(case: Case) -> NextStep:
    return NextStep("see every step with its time", f"jobtui timeline {shlex.quote(case.job_id)}")


def _logs(case: Case) -> NextStep:
    return NextStep("read all lines about it", f"jobtui logs {shlex.quote(case.job_id)}")


def _agent_log(case: Case) -> NextStep | None:
    agent = _agent(case)
    if agent is None:
        return None
    return NextStep(
        "read what its agent wrote", f"jobtui logs {shlex.quote(case.job_id)} --agent {agent.agent}"
    )


def _container(case: Case) -> NextStep | None:
    agent = _agent(case)
    if agent is None or agent.container is None:
        return None
    inspect = f"docker inspect {shlex.quote(agent.container)}"
    return NextStep("see whether its container is there", _on(agent, inspect))


def _run_log(case: Case) -> NextStep | None:
    run_dir = case.run.run_dir if case.run is not None else None
    if run_dir is None:
        return None
    return NextStep(
        "read what its program wrote", f"tail -n {TAIL_LINES} {shlex.quote(f'{run_dir}/run.log')}"
    )


def _input(case: Case) -> NextStep | None:
    run_dir = case.run.run_dir if case.run is not None else None
    return (
        None
        if run_dir is None
        else NextStep("look at its input", f"less {shlex.quote(f'{run_dir}/in.json')}")
    )


def _compare(case: Case) -> NextStep:
    return NextStep("compare with the last good run", f"jobtui compare {shlex.quote(case.job_id)}")


def _memory(case: Case) -> NextStep | None:
    command = f"journalctl -k --grep oom-kill{_around(case, Mark.AGENT_GONE, Mark.FINAL)}"
    return NextStep("see whether the kernel killed it for memory", _on(_agent(case), command))


def _queue(case: Case) -> NextStep:
    if case.slurm is not None:
        return NextStep("see what Slurm knows of it", f"jobtui show {shlex.quote(case.slurm.id)}")
    return NextStep("see its place in Slurm's queue", "squeue --me --start")


def _slurm(case: Case) -> NextStep | None:
    return _queue(case) if case.slurm is not None else None


def _supervisor_unit(case: Case) -> NextStep:
    around = _around(case, Mark.RESTARTED, Mark.FOUND_GONE)
    return NextStep(
        "see why the supervisor was restarted",
        f"journalctl -u sirepo_job_supervisor{around or ' -n 100'} --no-pager",
    )


def _ask_user(case: Case) -> NextStep | None:
    if case.job is None or not case.job.owner:
        return None
    return NextStep(
        "the next look at the job by its user, in a browser, sets its record right",
        f"jobtui show {shlex.quote(case.job_id)}",
    )


def _agents(case: Case) -> NextStep:
    return NextStep("see who holds the slots", "jobtui agents")


SUGGESTIONS: Mapping[Code, tuple[Suggestion, ...]] = {
    Code.RUNNING: (_timeline, _run_log),
    Code.WAITING_OP_SLOT: (_agents, _timeline),
    Code.WAITING_RUN_DIR_SLOT: (_agents, _timeline),
    Code.WAITING_CPU_SLOT: (_agents, _timeline),
    Code.AGENT_STARTING: (_timeline,),
    Code.AGENT_NEVER_STARTED: (_agent_log, _container, _timeline),
    Code.AGENT_LOST: (_agent_log, _container, _memory, _timeline),
    Code.SUPERVISOR_RESTARTED: (_supervisor_unit, _timeline),
    Code.TIMED_OUT: (_run_log, _compare),
    Code.CANCELED_BY_USER: (_timeline,),
    Code.PROGRAM_FAILED: (_run_log, _compare, _input, _logs),
    Code.KILLED_BY_SIGNAL: (_memory, _run_log, _compare),
    Code.PREPARE_FAILED: (_logs, _input, _compare),
    Code.SBATCH_LOGIN_NEEDED: (_ask_user, _timeline),
    Code.SBATCH_QUEUED: (_queue, _timeline),
    Code.SBATCH_FAILED: (_slurm, _run_log, _logs, _compare),
    Code.RUN_DIR_GONE: (_timeline,),
    Code.STALE_RECORD: (_ask_user, _supervisor_unit, _timeline),
    Code.REPLY_LOST: (_agent_log, _run_log, _timeline),
    Code.CANCEL_UNCONFIRMED: (_agent_log, _agents, _timeline),
    Code.UNKNOWN: (_logs, _timeline),
}
"""What helps with each verdict."""


def _on(agent: Agent | None, command: str) -> str:
    """A command on the host of an agent. What ssh is given is read once more by a shell there."""
    if agent is None or not agent.host:
        return command
    return f"ssh -- {shlex.quote(agent.host)} {shlex.quote(command)}"


def _around(case: Case, *marks: Mark) -> str:
    """The flags with which journalctl shows some minutes around a step, else around the end of the run."""
    step = case.last(*marks)
    at = step.at if step is not None else None
    if at is None and case.job is not None:
        at = case.job.ended_at or case.job.written_at
    if at is None:
        return ""
    begin, end = (to_rfc3339(Nanos(at // SECOND * SECOND + shift)) for shift in (-AROUND, AROUND))
    since, until = (f"{text[:10]} {text[11:19]} UTC" for text in (begin, end))
    return f' --since "{since}" --until "{until}"'


def _agent(case: Case) -> Agent | None:
    """The agent of the latest run."""
    run = case.run
    wanted = None if run is None else run.agent or run.assigned_agent
    return next((agent for agent in reversed(case.agents) if agent.agent == wanted), None)
