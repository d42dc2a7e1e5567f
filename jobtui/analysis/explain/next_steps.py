"""What to type next: commands to copy, which only read or which a person decides about. None is run."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from jobtui.analysis.explain.case import Case, Finding
from jobtui.analysis.explain.flow import Mark
from jobtui.model.clock import SECOND, Nanos, to_rfc3339
from jobtui.model.commands import OURS, Command
from jobtui.model.slurm import STEP_COLUMNS
from jobtui.model.verdicts import Code, NextStep, Verdict

Suggestion = Callable[[Case], Iterable[NextStep]]

TAIL_LINES = "50"
AROUND = 120 * SECOND
MOST = 4
"""How many steps are offered: the first ones are the most useful."""


def next_steps(case: Case, finding: Finding) -> tuple[NextStep, ...]:
    found = (step for suggest in SUGGESTIONS.get(finding.code, ()) for step in suggest(case))
    return tuple(step for step in found if step.command)


def on_sources(
    verdict: Verdict,
    flags: Sequence[str],
    seen: Callable[[str], str | None] = lambda path: path,
    typed: Callable[[Command], Command] = lambda command: command,
    has_traces: bool = True,
) -> Verdict:
    """The verdict with at most MOST steps. jobtui's own commands have these flags, and something to read.

    `seen` gives the path of a file on this machine, `typed` another program's command as it can be typed
    here; a file without a path, and a command that cannot be typed, are not offered.
    """
    offered = {}
    for step in verdict.next:
        words = list(step.command.words)
        if words[:1] == [OURS]:
            is_empty = words[1] == "trace" and not has_traces
            step = step._replace(command=Command() if is_empty else Command(OURS, *flags, *words[1:]))
        elif words[:1] in (["tail"], ["less"]):
            there = seen(words[-1])
            command = Command() if there is None else Command(*words[:-1], about=[there])
            step = step._replace(command=command)
        elif step.command:
            step = step._replace(command=typed(step.command))
        if step.command:
            offered[step.command] = step
    return msgspec.structs.replace(verdict, next=tuple(offered.values())[:MOST])


def _ours(why: str, verb: str) -> Suggestion:
    return lambda case: (NextStep(why, Command(OURS, verb, about=[case.job_id])),)


_timeline = _ours("see every step with its time", "timeline")
_ask_user = _ours("its record is corrected when its user next opens the job in a browser", "show")
_start_again = _ours("to free it, its user ends the run in a browser and starts it again", "show")


def _logs(case: Case) -> Iterator[NextStep]:
    if case.evidence.ops or case.evidence.cause is not None:
        yield NextStep("read all lines about it", Command(OURS, "logs", about=[case.job_id]))


def _compare(case: Case) -> Iterator[NextStep]:
    if not (lacks := case.evidence.lacks_good):
        where = ", which is looked for in all jobs" if lacks is None else ""
        yield NextStep(f"compare with a good run{where}", Command(OURS, "compare", about=[case.job_id]))


def _agents(case: Case) -> Iterator[NextStep]:
    yield NextStep("see who holds the slots", Command(OURS, "agents"))


def _agent_log(case: Case) -> Iterator[NextStep]:
    if (agent := case.agent) is not None:
        command = Command(OURS, "logs", f"--agent={agent.agent}", about=[case.job_id])
        yield NextStep("read the lines about its agent", command)


def _container(case: Case) -> Iterator[NextStep]:
    if (agent := case.agent) is not None and agent.container is not None:
        inspect = Command("docker", "inspect", about=[agent.container], host=agent.host or "")
        yield NextStep("see whether its container exists", inspect)


def _run_log(case: Case) -> Iterator[NextStep]:
    if case.run is not None and case.run.run_dir is not None and case.evidence.cause is None:
        command = Command("tail", "-n", TAIL_LINES, "--", about=[f"{case.run.run_dir}/run.log"])
        yield NextStep("read what its program wrote", command)


def _input(case: Case) -> Iterator[NextStep]:
    if case.run is not None and case.run.run_dir is not None:
        yield NextStep("look at its input", Command("less", "--", about=[f"{case.run.run_dir}/in.json"]))


def _queue(case: Case) -> Iterator[NextStep]:
    if case.slurm is not None:
        yield NextStep("see what Slurm knows about it", Command(OURS, "show", about=[case.slurm.id]))


def _slurm(case: Case) -> Iterator[NextStep]:
    if case.slurm is not None:
        number, source = case.slurm.id.rpartition("/")[2], case.slurm.source
        host = source.rpartition("@")[2].removeprefix("ssh://") if source.startswith("ssh://") else ""
        command = Command("sacct", STEP_COLUMNS, "-j", about=[number], host=host)
        yield NextStep("see how its steps ended", command)


def _supervisor_log(case: Case) -> Iterator[NextStep]:
    """A command that shows the log around the restart; the log can be read from here."""
    if (step := case.last(Mark.RESTARTED, Mark.FOUND_GONE)) is not None:
        around: tuple[str, ...] = ("-n", "10")
        if (at := step.at) is not None:
            begin, end = (to_rfc3339(Nanos(at // SECOND * SECOND + shift)) for shift in (-AROUND, AROUND))
            around = "--since", begin, "--until", end
        command = Command(OURS, "logs", *around, about=[step.source.rpartition("/")[2]])
        yield NextStep("see why the supervisor was restarted", command)


SUGGESTIONS: Mapping[Code, tuple[Suggestion, ...]] = {
    Code.RUNNING: (_timeline, _run_log), Code.WAITING_OP_SLOT: (_agents, _timeline),
    Code.WAITING_RUN_DIR_SLOT: (_agents, _timeline), Code.WAITING_CPU_SLOT: (_agents, _timeline),
    Code.AGENT_STARTING: (_timeline,),
    Code.AGENT_NEVER_STARTED: (_agent_log, _container, _start_again, _timeline),
    Code.AGENT_LOST: (_agent_log, _container, _timeline),
    Code.SUPERVISOR_RESTARTED: (_supervisor_log, _timeline), Code.TIMED_OUT: (_run_log, _compare, _logs),
    Code.CANCELED_BY_USER: (_timeline,), Code.CANCELED: (_slurm, _timeline),
    Code.PROGRAM_FAILED: (_run_log, _compare, _input, _logs),
    Code.KILLED_BY_SIGNAL: (_run_log, _compare, _logs),
    Code.PREPARE_FAILED: (_logs, _input, _compare),
    Code.SBATCH_LOGIN_NEEDED: (_ask_user, _timeline), Code.SBATCH_QUEUED: (_queue, _timeline),
    Code.NEVER_STARTS: (_queue, _timeline), Code.HELD: (_queue, _timeline),
    Code.SBATCH_FAILED: (_slurm, _run_log, _logs, _compare), Code.RUN_DIR_GONE: (_timeline,),
    Code.STALE_RECORD: (_ask_user, _supervisor_log, _timeline),
    Code.REPLY_LOST: (_agent_log, _run_log, _timeline),
    Code.CANCEL_UNCONFIRMED: (_agent_log, _agents, _timeline), Code.UNKNOWN: (_logs, _timeline),
}  # fmt: skip
