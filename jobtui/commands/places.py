"""Where a job's files and logs are: its record, run directory, agent, and the logs that speak of it.

Looks whether a path exists on this machine, and reads nothing in it.
"""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from jobtui.analysis.agent_logs import AgentLog, log_of
from jobtui.analysis.cluster_paths import Reach
from jobtui.analysis.run_dirs import CLUSTER_MODE, run_dirs_of
from jobtui.commands.reading import Reader
from jobtui.model.clocks import clock_of
from jobtui.model.ids import split_jid
from jobtui.model.jobs import Job, JobDetail
from jobtui.model.ops import Agent, Op

OUTPUTS = ("run.log", "job.out")
"""What the programs of jobs print: Sirepo's, Balsam's."""


class Place(NamedTuple):
    """One place. `exists` tells of this machine, None where that was not looked at."""

    what: str
    where: str
    host: str | None = None
    exists: bool | None = None
    note: str | None = None

    @property
    def described(self) -> str:
        """The place in words."""
        on = f" on {self.host}" if self.host else ""
        missing = " (not on this machine)" if self.exists is False else ""
        return f"{self.where}{on}{missing}{f'; {self.note}' if self.note else ''}"


def places_of(reader: Reader, job: Job, detail: JobDetail | None) -> tuple[Place, ...]:
    """What is known of where to look next."""
    correlation = reader.session.store.correlation
    ops = correlation.ops_of(job.id)
    agent = correlation.agent_of(job.id)
    return (
        *_record(detail),
        *_run_dir(job, detail, ops, reader.context.config.mounts),
        *(_agent(agent, log_of(agent, reader.context.config.hosts, reader.roots)) if agent else ()),
        *_agent_logs(job, detail),
        *_logs(ops),
    )


def _record(detail: JobDetail | None) -> Iterator[Place]:
    if detail and detail.path:
        yield Place("record", detail.path, exists=True)


def _run_dir(
    job: Job, detail: JobDetail | None, ops: Iterable[Op], mounts: Mapping[str, str]
) -> Iterator[Place]:
    """The likeliest directory that is on this machine, else the likeliest one."""
    told = detail.directory if detail else None
    found = run_dirs_of(job, detail.path if detail else None, ops, reach=Reach(mounts), told=told)
    if not found:
        return
    path = next(filter(_exists, found), found[0])
    yield Place("run directory", path, exists=_exists(path))
    for name in OUTPUTS:
        output = os.path.join(path, name)
        if _exists(output):
            yield Place("program output", output, exists=True)


def _root(detail: JobDetail | None) -> str | None:
    """The database root above a record `<root>/supervisor-job/<jid>.json`."""
    return os.path.dirname(os.path.dirname(detail.path)) if detail and detail.path else None


def _agent(agent: Agent, log: AgentLog) -> Iterator[Place]:
    kind = f"{agent.driver} {agent.agent} ({agent.kind}, {agent.state.value.replace('_', ' ')})"
    yield Place("agent", kind, agent.host)
    if agent.container:
        note = f"its log: {log.command}" if log.command else None
        yield Place("container", agent.container, agent.host, note=note)
    if agent.log:
        yield Place("agent log", agent.log, exists=None if clock_of(agent.log) else _exists(agent.log))


def _agent_logs(job: Job, detail: JobDetail | None) -> Iterator[Place]:
    """The copies of a cluster agent's log that the supervisor keeps."""
    root, parts = _root(detail), split_jid(job.id)
    if root and parts and job.mode == CLUSTER_MODE:
        path = os.path.join(root, "user", parts.uid, "agent-sbatch")
        if _exists(path):
            yield Place("agent log copies", path, exists=True)


def _logs(ops: Iterable[Op]) -> Iterator[Place]:
    lines = Counter(step.source for op in ops for step in op.steps)
    for source, count in lines.items():
        yield Place("log", source, exists=True, note=f"{count} lines of its ops")


def _exists(path: str) -> bool:
    try:
        return os.path.exists(path)
    except ValueError:  # a path out of a log can hold anything
        return False
