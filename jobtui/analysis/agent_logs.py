"""Where the log of an agent is, and what to type to read it where jobtui cannot.

A local agent writes into the supervisor's own log, a Docker agent into the journal of its docker host, a
cluster's agent into a file there, of whose end the supervisor keeps copies. Decides by names alone: reads
nothing, and knows of no source but by its name. Times in commands are UTC and say so.
"""

import re
import shlex
import time
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import NamedTuple

from jobtui.model.clock import SECOND, Nanos
from jobtui.model.journal import Matches
from jobtui.model.ops import Agent

SLACK = 5 * SECOND
"""How much earlier than its start a container's log may begin: the clocks of two hosts."""
END_SLACK = 60 * SECOND
LAST_LINES = 1_000
"""What a command asks for that has no time to begin with."""

_HOST = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]*[A-Za-z0-9_])?", re.ASCII)
"""What may stand behind `ssh`: nothing that could be an option, or be more than one word."""
_CONTAINER = re.compile(r"[A-Za-z0-9][\w.-]*", re.ASCII)
_FREE_IN_DOUBLE = re.compile(r'[^"$`\\!]*')
"""What a shell leaves alone between double quotes."""


class LogPlace(StrEnum):
    """What kind of place a log is in."""

    SUPERVISOR = "supervisor"
    """The supervisor's own log."""
    READ = "read"
    """A source of its own that is read already."""
    JOURNAL = "journal"
    """A journal that is configured to be read."""
    REMOTE = "remote"
    """The journal of a host that is not configured."""
    CLUSTER = "cluster"
    """A file on a cluster."""
    UNKNOWN = "unknown"


class AgentLog(NamedTuple):
    """Where an agent's log is.

    `name` is the source to read: a log file, or a journal of which `matches` are wanted. `copies` is the
    directory of the supervisor's copies, `path` that of the log on the cluster. `command` shows the log to
    whoever types it; "" where none does. `at` is when the agent began, where that is known. All is outside
    text.
    """

    place: LogPlace
    name: str = ""
    matches: Matches = ()
    at: Nanos | None = None
    copies: str = ""
    path: str = ""
    command: str = ""
    note: str = ""

    @property
    def described(self) -> str:
        """The place in one line, as a table and a document name it."""
        match self.place:
            case LogPlace.SUPERVISOR | LogPlace.READ:
                return self.name
            case LogPlace.JOURNAL:
                return f"{self.name} {words_of(self.matches)}"
            case LogPlace.CLUSTER:
                return self.copies or self.path or self.note
            case _:
                return self.command or self.note


def words_of(matches: Matches) -> str:
    """Matches as journalctl takes them: those of a group together, `+` between groups."""
    return " + ".join(" ".join(f"{field}={value}" for field, value in group) for group in matches)


def log_of(agent: Agent, hosts: Mapping[str, str], roots: Iterable[str] = ()) -> AgentLog:
    """Where an agent's log is. `hosts` are the journals of docker hosts and clusters, as configured, by name
    of the host; `roots` the database roots, in one of which copies are kept.
    """
    if agent.driver == "LocalDriver":
        name = agent.log or agent.supervisor
        return AgentLog(LogPlace.SUPERVISOR, name, at=agent.started_at)
    if agent.driver == "DockerDriver":
        found = _of_container(agent, hosts)
        if agent.log is None or agent.log == agent.supervisor:
            return found
        return found._replace(place=LogPlace.READ, name=agent.log, note="")
    if agent.driver == "SbatchDriver":
        return _on_cluster(agent, hosts, tuple(roots))
    return AgentLog(LogPlace.UNKNOWN, note=f"nothing is known of the logs of a {agent.driver}")


def spec_of_host(host: str, hosts: Mapping[str, str]) -> str | None:
    """The journal configured for a host, by its whole name, else by its name without the domain."""
    return hosts.get(host) or hosts.get(host.partition(".")[0])


def _of_container(agent: Agent, hosts: Mapping[str, str]) -> AgentLog:
    name, host = agent.container, agent.host
    if name is None or _CONTAINER.fullmatch(name) is None:
        return AgentLog(LogPlace.UNKNOWN, note="its container is not known: no line that names it was read")
    group = (
        ("CONTAINER_NAME", str(name)),
        *((("CONTAINER_ID", agent.container_id),) if agent.container_id else ()),
    )
    if host is not None and (spec := spec_of_host(host, hosts)):
        return AgentLog(
            LogPlace.JOURNAL, spec, (group,), agent.started_at, command=_journalctl(agent, host, group)
        )
    if host is None:
        command = shlex.join(_journal_words(agent, group))
        return AgentLog(LogPlace.REMOTE, "", (group,), agent.started_at, command=command,
                        note="on which docker host it runs is not known")  # fmt: skip
    command = _journalctl(agent, host, group)
    note = (
        f"the journal of {host} is not configured: name it under [hosts]"
        if command
        else "its host has an odd name"
    )
    return AgentLog(LogPlace.REMOTE, "", (group,), agent.started_at, command=command, note=note)


def _journalctl(agent: Agent, host: str, group: tuple[tuple[str, str], ...]) -> str:
    return over_ssh(host, _journal_words(agent, group))


def _journal_words(agent: Agent, group: tuple[tuple[str, str], ...]) -> list[str]:
    words = ["journalctl", "--utc", *(f"{field}={value}" for field, value in group)]
    since = agent.started_at or agent.connected_at
    if since is None:
        return [*words, "-n", str(LAST_LINES)]
    words += ["--since", _utc(Nanos(since - SLACK))]
    if not agent.state.is_live and agent.since is not None and agent.since >= since:
        words += ["--until", _utc(Nanos(agent.since + END_SLACK))]
    return words


def _on_cluster(agent: Agent, hosts: Mapping[str, str], roots: tuple[str, ...]) -> AgentLog:
    path, host = agent.cluster_log or "", agent.host or ""
    copies = f"{roots[0].rstrip('/')}/user/{agent.uid}/agent-sbatch" if roots and len(agent.uid) == 8 else ""
    if copies and host and "/" not in host:
        copies += f"/{host}"
    command = over_ssh(host, ["tail", "-n", str(LAST_LINES), path]) if path and host else ""
    note = "" if copies or path else "its log is on the cluster; nothing that was read says where"
    return AgentLog(
        LogPlace.CLUSTER, spec_of_host(host, hosts) or "", (), agent.started_at, copies, path, command, note
    )


def over_ssh(host: str, words: list[str]) -> str:
    """A command that runs words on a host, ready to be typed; "" for what cannot be typed or is no host.

    ssh has a shell there take its arguments apart once more, so that they are quoted for both shells.
    """
    there = shlex.join(words)
    if _HOST.fullmatch(host) is None or not there.isprintable():
        return ""
    return f"ssh {host} {quoted(there)}"


def quoted(text: str) -> str:
    """One word for a shell, in double quotes where that can be read more easily."""
    plain = shlex.quote(text)
    return f'"{text}"' if "'" in text and _FREE_IN_DOUBLE.fullmatch(text) else plain


def _utc(at: Nanos) -> str:
    """A time as journalctl takes it, with its zone."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(max(0, at // SECOND)))
