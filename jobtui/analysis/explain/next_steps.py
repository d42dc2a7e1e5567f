"""What to type next: commands to copy, which only read or which a person decides about. None is run."""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import msgspec

from jobtui.analysis.explain.case import Case
from jobtui.analysis.explain.flow import Mark
from jobtui.model.clock import SECOND, Nanos, to_rfc3339
from jobtui.model.commands import OURS, Command
from jobtui.model.patterns import regex
from jobtui.model.slurm import STEP_COLUMNS
from jobtui.model.tables import tables_of
from jobtui.model.verdicts import Code, NextStep, Verdict

_NAMED = regex(r"\{(\w+)\}", re.ASCII)
AROUND = 120 * SECOND
MOST = 4
"""How many steps are offered: the first ones are the most useful."""


def steps_for(system: str, code: Code, words: Mapping[str, str], kind: str = "") -> tuple[NextStep, ...]:
    """The steps for a verdict on a job, which is in a state or in a kind of wait. `words` are those about it
    that commands may have, "" where there are none.
    """
    tables = tables_of("jobtui.analysis.explain", "next_steps")
    table, known, found = tables[system], defaultdict(str, words), []
    for name in (*table.get(f"{code} {kind}", table.get(code, ())), *table.get("any", ())):
        why, line, *place = tables["steps"][name]
        if all(known[word] for word in _NAMED.findall(line)):
            own = [part.format_map(known) for part in line.split() if part[0] != "{"]
            about = [part.format_map(known) for part in line.split() if part[0] == "{"]
            at = "".join(place).format_map(known)
            host, within = (at[1:], "") if at[:1] == "@" else ("", at)
            found.append(NextStep(why, Command(*own, about=about, host=host, within=within)))
    return tuple(step for step in found if step.command)


def words_of(case: Case) -> dict[str, str]:
    """Words about a job of Sirepo for commands, "" where there are none."""
    job_id, evidence, slurm, restart = case.job_id, case.evidence, case.slurm, _restart_words(case)
    has_lines, lacks = bool(evidence.ops) or evidence.cause is not None, evidence.lacks_good
    words = {
        "id": job_id,
        "lines": job_id if has_lines else "",
        "good": job_id if lacks is False else "",
        "perhaps_good": job_id if lacks is None else "",
        "columns": STEP_COLUMNS,
    }
    if (agent := case.agent) is not None:
        words |= {"agent": agent.agent, "container": agent.container or ""}
        words["container_host"] = agent.host or ""
    if case.run is not None and (run_dir := case.run.run_dir) is not None:
        words |= {"input": f"{run_dir}/in.json", "run_log": "" if evidence.cause else f"{run_dir}/run.log"}
    if slurm is not None:
        words |= {"slurm": slurm.id, "ran": slurm.id.rpartition("/")[2]}
        if slurm.source.startswith("ssh://"):
            words["slurm_host"] = slurm.source.rpartition("@")[2].removeprefix("ssh://")
    return words | restart


def _restart_words(case: Case) -> dict[str, str]:
    """The log around the restart of the supervisor, if it has times; the log can be read from here."""
    if (step := case.last(Mark.RESTARTED, Mark.FOUND_GONE)) is None:
        return {}
    log = step.source.rpartition("/")[2]
    if (at := step.at) is None:
        return {"log_without_times": log}
    begin, end = (to_rfc3339(Nanos(at // SECOND * SECOND + shift)) for shift in (-AROUND, AROUND))
    return {"restart_log": log, "restart_begin": begin, "restart_end": end}


def on_sources(
    verdict: Verdict,
    flags: Sequence[str],
    seen: Callable[[str], str | None] = lambda path: path,
    typed: Callable[[Command], Command] = lambda command: command,
    has_traces: bool = True,
    has_lines: bool = True,
) -> Verdict:
    """The verdict with at most MOST steps. jobtui's own commands have these flags, and something to read.

    `seen` gives the path of a file on this machine, `typed` another program's command as it can be typed
    here; a file without a path, and a command that cannot be typed, are not offered.
    """
    offered = {}
    for step in verdict.next:
        words = list(step.command.words)
        if words[:1] == [OURS]:
            is_empty = (words[1] == "trace" and not has_traces) or (words[1:-1] == ["logs"] and not has_lines)
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
