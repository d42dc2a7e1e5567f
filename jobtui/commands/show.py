"""`show ID`: one job, its record, its runs, and where its files and logs are."""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from jobtui.analysis.explain.verdict import explain
from jobtui.analysis.flags import differing
from jobtui.analysis.keys import CLUSTER_MODE, slurm_words
from jobtui.analysis.paths import OUTPUT_NAMES, AgentLog, log_of, output_dirs, run_dirs_of
from jobtui.commands.find import FoundJob, print_not_found, resolve
from jobtui.commands.jobs import print_jobs
from jobtui.commands.printing import Report, first
from jobtui.commands.reader import Reader
from jobtui.commands.streams import Exit, complain
from jobtui.grammar import DASHBOARD
from jobtui.model.clock import Nanos, clock_of
from jobtui.model.health import contained
from jobtui.model.ids import split_jid
from jobtui.model.jobs import Job, JobDetail
from jobtui.model.numbers import counted
from jobtui.model.ops import Agent
from jobtui.model.verdicts import Code, Concern, Verdict
from jobtui.render.columns import TimeLook, printed
from jobtui.render.facts import cluster_words, job_facts
from jobtui.render.json_output import fields_of, history_records, stored_record
from jobtui.render.runs import RUN_COLUMNS
from jobtui.render.spans import Piece
from jobtui.render.styles import GLYPHS, STATUS_STYLES
from jobtui.render.table import fact_lines, paint
from jobtui.render.text import show
from jobtui.session.evidence import Gatherer


class Location(NamedTuple):
    """Where one thing of a job is. `exists` is for this machine, None if that was not checked."""

    what: str
    where: str
    host: str | None = None
    exists: bool | None = None
    note: str | None = None

    @property
    def described(self) -> str:
        on = f" on {self.host}" if self.host else ""
        missing = " (not on this machine)" if self.exists is False else ""
        return f"{self.where}{on}{missing}{f'; {self.note}' if self.note else ''}"


def locations_of(reader: Reader, job: Job, detail: JobDetail | None) -> Iterator[Location]:
    """The known locations of its record, run directory, output, agent and logs."""
    correlation, reach = reader.session.store.correlation, reader.session.reach
    ops, agent = correlation.ops_of(job.id), correlation.agent_of(job.id)
    if record := detail.path if detail else None:
        yield Location("record", record, exists=True)
    if found := run_dirs_of(job, detail, ops, reach):
        run_dir = next(filter(os.path.exists, found), found[0])
        yield Location("run directory", run_dir, exists=os.path.exists(run_dir))
        names = () if detail and detail.outputs else OUTPUT_NAMES
        for output in filter(os.path.exists, (os.path.join(run_dir, name) for name in names)):
            yield Location("program output", output, exists=True)
    for name, directories in output_dirs(detail, reach).items():
        paths = [os.path.join(directory, name) for directory in directories]
        path = next(filter(os.path.exists, paths), paths[0])  # the likeliest that is on this machine
        yield Location("program output", path, exists=os.path.exists(path))
    if agent is not None:
        yield from _of_agent(agent, log_of(agent, reach))
    if record and (parts := split_jid(job.id)) and job.mode == CLUSTER_MODE:
        root = os.path.dirname(os.path.dirname(record))
        if os.path.exists(copies := os.path.join(root, "user", parts.uid, "agent-sbatch")):
            yield Location("agent log copies", copies, exists=True)
    for source, count in Counter(step.source for op in ops for step in op.steps).items():
        yield Location("log", source, exists=True, note=f"{counted(count, 'line')} of its ops")


def _of_agent(agent: Agent, log: AgentLog) -> Iterator[Location]:
    kind = f"{agent.driver} {agent.agent} ({agent.kind}, {agent.state.value.replace('_', ' ')})"
    yield Location("agent", kind, agent.host)
    if agent.container:
        note = f"its log: {log.command}" if log.command else None
        yield Location("container", agent.container, agent.host, note=note)
    if agent.log:
        exists = None if clock_of(agent.log) else os.path.exists(agent.log)
        yield Location("agent log", agent.log, exists=exists)


async def run(reader: Reader) -> Exit:
    """FAILED if the job failed, ATTENTION if it needs a person."""
    found = await resolve(reader, reader.context.words[0])
    if found.jobs and reader.context.invocation.command is DASHBOARD:
        return await print_jobs(reader, filter(None, map(reader.session.store.job, found.jobs)))
    if found.job is None:
        return print_not_found({"job": None, "history": []}, found, reader, "show")
    job, noted, slurm, locations = found.job, None, None, list[Location]()
    if (detail := found.detail) is not None:
        detail = msgspec.structs.replace(detail, runs=first(detail.runs, reader.context, from_end=True))
    with contained("looking for locations"):
        await reader.read_logs(found.detail)
        job = reader.session.store.with_agent(job)
        noted = await Gatherer.of(reader.session).noted(job)
        slurm = await reader.slurm_of(job, noted)
        locations += locations_of(reader, job, detail)
        if noted is not None:
            locations.append(Location("on the cluster", noted.directory, note=cluster_words(noted.status)))
        if slurm is not None:
            locations.append(Location("in Slurm", slurm.id, note=slurm_words(slurm)))
    code = await judge(reader, found)  # which may read more of its system, such as allocations
    job = reader.session.store.with_agent(job)
    record, now = reader.record_of(job), reader.now_of(job)
    return Report(
        lambda: {
            "job": record | stored_record(detail),
            "history": history_records(detail.history if detail else ()),
            "runs": history_records(detail.runs if detail else ()),
            "places": [one._asdict() for one in locations],
            "cluster": noted
            and fields_of(noted.status, "slurm_id state submitted_at started_at percent")
            | fields_of(noted, "directory"),
            "slurm": reader.record_of(slurm) if slurm else None,
        },
        list(record),
        lambda: [record],
        lambda width: _lines(job, now, detail, locations, width),
        command="show",
    ).answer(reader, code)


def _lines(
    job: Job, now: Nanos, detail: JobDetail | None, found: Sequence[Location], width: int | None
) -> Iterator[str]:
    yield headline(job)
    facts = (*job_facts(job, now), *(detail.facts if detail else ()))
    styles = {"error": "error"}
    yield from fact_lines(((name, Piece(show(text), styles.get(name, ""))) for name, text in facts), width)
    if detail and detail.runs:
        yield ""
        yield from printed(RUN_COLUMNS, detail.runs, TimeLook(now), width)
    if found:
        yield ""
        # Whole: they are there to be copied
        yield from fact_lines(((place.what, Piece(show(place.described))) for place in found), None)


def headline(job: Job) -> str:
    state = f"{GLYPHS[job.status]} {job.status.value}"
    native = "" if job.native_status in ("", job.status.value, "error") else f" ({show(job.native_status)})"
    return f"{paint(show(job.id), 'heading')}  {paint(state, STATUS_STYLES[job.status])}{native}"


EXITS = {Concern.FAILED: Exit.FAILED, Concern.STUCK: Exit.ATTENTION}
"""The exit codes of what is wrong with a job; anything else is FINE."""


def exit_of(verdict: Verdict) -> Exit:
    """FAILED if it failed; ATTENTION if it is stuck, or if the verdict cannot be trusted now."""
    return Exit.ATTENTION if verdict.doubts else EXITS.get(verdict.concern, Exit.FINE)


async def judged(reader: Reader, found: FoundJob) -> Verdict:
    assert found.job is not None
    with contained("explaining") as explaining:
        return explain(await reader.gather(found.job, found.detail))
    said = f"explaining it failed: {explaining.words}"
    return Verdict(job_id=found.job.id, code=Code.UNKNOWN, sentence=said, confidence=0.0)


async def judge(reader: Reader, found: FoundJob) -> Exit:
    """The same exit code as of `explain`; stderr says why if it is not FINE."""
    verdict = await judged(reader, found)
    code, job = exit_of(verdict), found.job
    if code is not Exit.FINE:
        complain(f"{verdict.job_id}: {show(verdict.sentence)}")
    if job is not None and differing(job) and job.needs_logs:
        complain("to see one of its records alone, read only its source (--srdb DIR)")
    return code
