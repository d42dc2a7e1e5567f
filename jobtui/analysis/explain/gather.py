"""The case of a job out of what a store knows. Does no input or output; names what should be read for it."""

from collections.abc import Iterable, Mapping, Sequence

from jobtui.analysis.explain.case import Case, Coverage
from jobtui.analysis.explain.flow import Mark, mark_of
from jobtui.analysis.heard import SUPERVISING, Heard
from jobtui.model.clock import Nanos
from jobtui.model.health import SourceHealth, SourceState
from jobtui.model.ids import JobId
from jobtui.model.jobs import Job, Run
from jobtui.model.ops import Agent, Component, Op, Step
from jobtui.model.verdicts import Usual

RECORD_KINDS = frozenset({"sirepo_db"})
"""Kinds of sources that hold job records."""


def coverage_of(heard: Heard, sources: Iterable[SourceHealth]) -> Coverage:
    """What was read of each kind, and what is wrong with any source."""
    sources = tuple(sources)
    return Coverage(
        has_records=any(s.kind in RECORD_KINDS and s.state is not SourceState.DOWN for s in sources),
        has_supervisor=heard.has(*SUPERVISING),
        has_server=heard.has(Component.SERVER),
        has_agent=heard.has(Component.AGENT, Component.JOB_CMD),
        supervisor_end=heard.supervisor_end,
        faults=tuple(f"{s.name} cannot be read: {s.error}" for s in sources if s.state is SourceState.DOWN),
    )


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
    restarted_ops: frozenset[int] = frozenset(),
    usual: Mapping[Mark, Usual] | None = None,
) -> Case:
    """The case of a job. `behind` holds the whole records of the lines that `lines_wanted` names."""
    own = {prefix for op in ops for prefix in (op.agent, op.assigned_agent) if prefix}
    return Case(
        job_id=job_id,
        now=now,
        coverage=coverage,
        job=job,
        runs=None if runs is None else tuple(runs),
        ops=tuple(ops),
        agents=tuple(agent for agent in agents if agent.agent in own),
        behind=behind or {},
        restarted_ops=restarted_ops,
        usual=usual or {},
    )


def lines_wanted(ops: Sequence[Op]) -> tuple[Step, ...]:
    """The steps of the latest run whose whole record helps: one that continues over several lines."""
    run = next((op for op in reversed(ops) if op.name == "run"), None)
    steps = () if run is None else run.steps
    return tuple(step for step in steps if mark_of(step) in (Mark.STDERR, Mark.REFUSED))[-2:]
