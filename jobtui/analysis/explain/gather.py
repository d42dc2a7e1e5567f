"""The case of a job out of what a store knows. Does no input or output; names what should be read for it."""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from jobtui.analysis.explain.case import Case, Coverage
from jobtui.analysis.explain.flow import Mark, mark_of
from jobtui.analysis.flapping import Flapping, Flaps
from jobtui.analysis.run_lengths import usual_length, usual_steps
from jobtui.model.alarms import KIND as ALARM
from jobtui.model.clock import Nanos
from jobtui.model.health import SourceHealth, SourceState, unread
from jobtui.model.heard import Heard
from jobtui.model.ids import JobId, split_jid
from jobtui.model.jobs import Job, Run
from jobtui.model.ops import Agent, Component, Op, Step
from jobtui.model.verdicts import Usual

RECORD_KINDS = frozenset({"sirepo_db"})
"""Kinds of sources that hold job records."""


class Knows(Protocol):
    """What is asked of correlation. `analysis.correlate.Correlator` is one."""

    @property
    def heard(self) -> Heard:
        """Whose lines were read."""
        ...

    def ops_of(self, job_id: JobId) -> tuple[Op, ...]:
        """The ops of a job, oldest first."""
        ...

    def agents(self) -> tuple[Agent, ...]:
        """Every agent that is known."""
        ...

    def restarted_ops(self, job_id: JobId) -> Mapping[int, Step]:
        """Those ops of a job that are older than a restart of their supervisor, by key: the restart."""
        ...

    def runs_like(self, model: str, driver: str | None) -> tuple[Op, ...]:
        """The latest runs of a model on a driver that have ended."""
        ...


def case_from(
    knows: Knows,
    sources: Iterable[SourceHealth],
    job_id: JobId,
    now: Nanos,
    job: Job | None,
    runs: Sequence[Run] | None,
    behind: Mapping[tuple[str, int], str] | None = None,
) -> Case:
    """The case of a job out of all that is known now. See `gather` for `behind`."""
    ops = knows.ops_of(job_id)
    alike = _alike(knows, job_id, ops)
    return gather(
        job_id,
        now,
        coverage_of(knows.heard, sources),
        job=job,
        runs=runs,
        ops=ops,
        agents=knows.agents(),
        behind=behind,
        restarted_ops=knows.restarted_ops(job_id),
        usual=usual_steps(alike),
        length=usual_length(alike),
    )


def _alike(knows: Knows, job_id: JobId, ops: Sequence[Op]) -> tuple[Op, ...]:
    """Earlier runs of the same model on the same driver, those of the job itself among them."""
    parts = split_jid(job_id)
    run = next((op for op in reversed(ops) if op.name == "run"), None)
    return () if parts is None or run is None else knows.runs_like(parts.model, run.driver)


def coverage_of(heard: Heard, sources: Iterable[SourceHealth]) -> Coverage:
    """What was read of each kind, and what is wrong with any source."""
    sources = tuple(source for source in sources if source.kind != ALARM)
    return Coverage(
        has_records=any(s.kind in RECORD_KINDS and s.state is not SourceState.DOWN for s in sources),
        has_supervisor=not heard.components.isdisjoint({Component.SUPERVISOR, Component.DRIVER}),
        has_server=Component.SERVER in heard.components,
        has_agent=not heard.components.isdisjoint({Component.AGENT, Component.JOB_CMD}),
        supervisor_end=heard.supervisor_end,
        faults=tuple(unread(sources)),
        begun=tuple((_short(s.name), s.begins_at) for s in sources if s.begins_at is not None),
        behind=tuple(_short(s.name) for s in sources if s.is_behind),
        writers=heard.writers,
        damaged=heard.damaged,
    )


def _short(name: str) -> str:
    """The last part of a path; other names as they are."""
    return name.rpartition("/")[2] if name.startswith("/") else name


def gather(
    job_id: JobId,
    now: Nanos,
    coverage: Coverage,
    *,
    job: Job | None,
    runs: Sequence[Run] | None,
    ops: Sequence[Op],
    agents: Iterable[Agent],
    behind: Mapping[tuple[str, int], str] | None = None,
    restarted_ops: Mapping[int, Step] = MappingProxyType({}),
    usual: Mapping[Mark, Usual] | None = None,
    length: Usual | None = None,
    flaps: Flaps | None = None,
) -> Case:
    """The case of a job. `behind` holds the whole records of the lines that `lines_wanted` names."""
    own = {prefix for op in ops for prefix in (op.agent, op.assigned_agent) if prefix}
    known = tuple(agents)
    return Case(
        job_id=job_id,
        now=now,
        coverage=coverage,
        job=job,
        runs=None if runs is None else tuple(runs),
        ops=tuple(ops),
        agents=tuple(agent for agent in known if agent.agent in own),
        flapping=_flapping(flaps or Flaps(known), known, ops, job, now),
        behind=behind or {},
        restarted_ops=restarted_ops,
        usual=usual or {},
        length=length,
    )


def _flapping(
    flaps: Flaps, agents: Sequence[Agent], ops: Sequence[Op], job: Job | None, now: Nanos
) -> Flapping | None:
    """Whether the agent of the latest run flapped up to its end, or does so now."""
    run = next((op for op in reversed(ops) if op.name == "run"), None)
    wanted = None if run is None else run.agent or run.assigned_agent
    agent = next((agent for agent in reversed(agents) if agent.agent == wanted), None)
    ended = job.ended_at if job is not None and not job.status.is_live else None
    return None if agent is None else flaps.around(agent, ended if ended is not None else now)


def lines_wanted(ops: Sequence[Op]) -> tuple[Step, ...]:
    """The steps of the latest run whose whole record helps: one that continues over several lines."""
    run = next((op for op in reversed(ops) if op.name == "run"), None)
    steps = () if run is None else run.steps
    return tuple(step for step in steps if mark_of(step) in (Mark.STDERR, Mark.REFUSED))[-2:]
