"""Where files of a job and logs of agents are, and commands that read what jobtui cannot reach.

A local agent writes into the supervisor's log, a Docker agent into the journal of its docker host, and an
agent on a cluster into a file there, of whose end the supervisor keeps copies. This module decides by names
only and reads nothing. Times in commands are UTC and say so.

A path over ssh is written as an address, `ssh://cori/scratch/...`.
"""

import os
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import product
from typing import NamedTuple
from urllib.parse import quote

from jobtui.analysis.keys import CLUSTER_MODE
from jobtui.model.clock import SECOND, Nanos, utc_of
from jobtui.model.commands import Command
from jobtui.model.ids import jid_of_run_dir, split_jid
from jobtui.model.jobs import Job, JobDetail
from jobtui.model.journal import Matches
from jobtui.model.ops import Agent, Op
from jobtui.model.patterns import regex
from jobtui.model.settings import NOWHERE, ClusterAccess

SLACK = 5 * SECOND
"""How much earlier than its start a container's log may begin, as two hosts have two clocks."""
END_SLACK = 60 * SECOND
LAST_LINES = 1_000
"""How many lines a command asks for if no begin is known."""

_CONTAINER = regex(r"[A-Za-z0-9][\w.-]*", re.ASCII)


class LogKind(StrEnum):
    SUPERVISOR = "supervisor"
    READ = "read"
    JOURNAL = "journal"
    """A journal that is configured to be read."""
    REMOTE = "remote"
    """The journal of a host that is not configured."""
    CLUSTER = "cluster"
    UNKNOWN = "unknown"


class AgentLog(NamedTuple):
    """Where an agent's log is.

    `name` is the source to read: a log file, or a journal with `matches`. `copies` is the directory of the
    supervisor's copies, `path` the path of the log on the cluster. `command` shows the log; "" if none does.
    `at` is when the agent began, if that is known. All of it is outside text.
    """

    kind: LogKind
    name: str = ""
    matches: Matches = ()
    at: Nanos | None = None
    copies: str = ""
    path: str = ""
    command: Command = Command()
    note: str = ""

    @property
    def described(self) -> str:
        match self.kind:
            case LogKind.SUPERVISOR | LogKind.READ:
                return self.name
            case LogKind.JOURNAL:
                return f"{self.name} {words_of(self.matches)}"
            case LogKind.CLUSTER:
                return self.copies or self.path or self.note
            case _:
                return self.command or self.note


def words_of(matches: Matches) -> str:
    """Matches as journalctl takes them: those of a group together, `+` between groups."""
    return " + ".join(" ".join(f"{field}={value}" for field, value in group) for group in matches)


def log_of(agent: Agent, reach: ClusterAccess = NOWHERE) -> AgentLog:
    """Where an agent's log is. One root has the copies: the one that its log is in, else the first."""
    if agent.driver == "LocalDriver":
        name = agent.log or agent.supervisor
        return AgentLog(LogKind.SUPERVISOR, name, at=agent.started_at)
    if agent.driver == "DockerDriver":
        found = _of_container(agent, reach.hosts)
        if agent.log is None or agent.log == agent.supervisor:
            return found
        return found._replace(kind=LogKind.READ, name=agent.log, note="")
    if agent.driver != "SbatchDriver":
        return AgentLog(LogKind.UNKNOWN, note=f"it is not known where a {agent.driver} keeps its log")
    path, host, named = agent.cluster_log or "", agent.host or "", agent.log or agent.supervisor
    root = max(reach.roots, key=lambda one: named.startswith(f"{one.rstrip('/')}/"), default=None)
    copies = ""
    if root is not None and len(agent.uid) == 8:
        copies = f"{root.rstrip('/')}/user/{agent.uid}/agent-sbatch"
        copies += f"/{host}" if host and "/" not in host else ""
    command = over_ssh(host, ["tail", "-n", str(LAST_LINES), "--"], path) if path else Command()
    note = "" if copies or path else "its log is on the cluster; nothing that was read says where"
    spec = spec_of_host(host, reach.hosts) or ""
    return AgentLog(LogKind.CLUSTER, spec, (), agent.started_at, copies, path, command, note)


def spec_of_host(host: str, hosts: Mapping[str, str]) -> str | None:
    """The configured journal of a host, by its whole name, else without the domain."""
    return hosts.get(host) or hosts.get(host.partition(".")[0])


def _of_container(agent: Agent, hosts: Mapping[str, str]) -> AgentLog:
    name, host = agent.container, agent.host
    if name is None or _CONTAINER.fullmatch(name) is None:
        return AgentLog(LogKind.UNKNOWN, note="its container is not known: no line that names it was read")
    identity = (("CONTAINER_ID", agent.container_id),) if agent.container_id else ()
    group = (("CONTAINER_NAME", str(name)), *identity)
    words, at = _journal_words(agent, group), agent.started_at
    if host is None:
        note = "its Docker host is not known"
        return AgentLog(LogKind.REMOTE, "", (group,), at, command=Command(*words), note=note)
    command = over_ssh(host, words)
    if spec := spec_of_host(host, hosts):
        return AgentLog(LogKind.JOURNAL, spec, (group,), at, command=command)
    note = f"no journal of {host} is configured: name it under [hosts]"
    if not command:
        note = "the name of its host is not valid"
    return AgentLog(LogKind.REMOTE, "", (group,), at, command=command, note=note)


def _journal_words(agent: Agent, group: tuple[tuple[str, str], ...]) -> list[str]:
    words = ["journalctl", "--utc", *(f"{field}={value}" for field, value in group)]
    since = agent.started_at or agent.connected_at
    if since is None:
        return [*words, "-n", str(LAST_LINES)]
    words += ["--since", _utc(Nanos(since - SLACK))]
    if not agent.state.is_live and agent.since is not None and agent.since >= since:
        words += ["--until", _utc(Nanos(agent.since + END_SLACK))]
    return words


def over_ssh(host: str, words: list[str], *about: str) -> Command:
    """A command that runs words on a host; "" if it cannot be typed or the name is not a host."""
    return Command(*words, about=about, host=host) if host else Command()


def _utc(at: Nanos) -> str:
    return f"{utc_of(at):%Y-%m-%d %H:%M:%S UTC}"


SSH = "ssh://"
ADDRESS = regex(r"https?://")
"""How the address of a directory begins that a server of files keeps."""


def reached(path: str, host: str | None, reach: ClusterAccess, source: str = "") -> Iterator[str]:
    """The paths by which a path on a cluster may be read, likeliest first.

    `source` is the source of the path. If it is read over ssh, so is the path: here it may be another file.
    """
    if ADDRESS.match(path):
        yield path
    if not posixpath.isabs(path) or "\0" in path:
        return
    path = posixpath.normpath(path)
    for there in sorted(reach.mounts, key=len, reverse=True):
        root = posixpath.normpath(there)
        if path == root or path.startswith(f"{root.rstrip('/')}/"):
            yield posixpath.join(reach.mounts[there], posixpath.relpath(path, root))
    if source.startswith(SSH):
        yield f"{SSH}{source.removeprefix(SSH).partition('/')[0]}{quote(path)}"
    yield path
    spec = spec_of_host(host, reach.hosts) if host else None
    if spec is not None and spec.startswith(SSH):
        yield f"{SSH}{spec.removeprefix(SSH).partition('/')[0]}{quote(path)}"


OUTPUT_ENDS = (".log", ".out", ".err")
OUTPUT_NAMES = ("run.log", "job.out")
"""The files with what programs print: Sirepo's, Balsam's."""


def run_dirs_of(
    job: Job | None, detail: JobDetail | None, ops: Iterable[Op], reach: ClusterAccess = NOWHERE
) -> tuple[str, ...]:
    """The possible run directories of a job, likeliest first. A path in a log that is not one is left out.

    What `detail` names is on the machine where it runs, which may be a cluster. The directory of a job of a
    root is `<root>/user/<uid>/<app>/<simulation>/<model>`, except on a cluster; it may be in another now.
    """
    known, host = tuple(ops), job.host if job is not None else None
    given = detail.directory if detail is not None else None
    sent = _dirs_of(known, lambda op: op.sent_dir)
    on_cluster = (path for there in sent for path in reached(there, host, reach))
    named = reached(given, host, reach, job.source if job else "") if given else ()
    roots = (*([job.source] if job else ()), *reach.roots)
    beside, moved = _beside(job, roots) if job else (), _moved(known, roots)
    logged = _dirs_of(known, lambda op: op.run_dir)
    return tuple(dict.fromkeys((*named, *on_cluster, *logged, *beside, *moved)))


def output_dirs(detail: JobDetail | None, reach: ClusterAccess) -> dict[str, list[str]]:
    """The directories in which the files of its output and errors may be read, likeliest first, by name."""
    found: dict[str, list[str]] = {}
    if detail is None:
        return found
    for path in detail.outputs:
        directory, name = posixpath.split(path)
        found.setdefault(name, []).extend(reached(directory, detail.job.host, reach, detail.job.source))
    return found


def _dirs_of(ops: Iterable[Op], dir_of: Callable[[Op], str | None]) -> Iterator[str]:
    """The run directories that ops name, the newest first."""
    for op in reversed(tuple(ops)):
        path = dir_of(op)
        if path and op.jid is not None and jid_of_run_dir(path) == op.jid:
            yield path.rstrip("/")


def _beside(job: Job, roots: Iterable[str]) -> Iterator[str]:
    parts, app = split_jid(job.id), job.app
    is_name = bool(app) and app not in (".", "..") and os.sep not in app and "\0" not in app
    if parts is None or not is_name or job.mode == CLUSTER_MODE or job.is_quasi:
        return
    below = os.path.join("user", parts.uid, job.app, parts.simulation_id, parts.model)
    yield from (os.path.join(root, below) for root in roots)


def _moved(ops: Iterable[Op], roots: Iterable[str]) -> Iterator[str]:
    """The directory of a job on a cluster in a copy of the whole site in a root."""
    for path, root in product(_dirs_of(ops, lambda op: op.sent_dir), roots):
        above, _, below = path.rpartition("/user/")
        names = above.split("/")
        yield from (os.path.join(root, *names[at:], "user", below) for at in range(1, len(names)))
