"""Agents as the supervisor's drivers speak of them, and which process is which agent."""

import re

from jobtui.model.clock import Nanos
from jobtui.model.ids import AgentPrefix, ContainerName, OpPrefix, Uid, agent_prefix, split_container
from jobtui.model.logs import LogRecord
from jobtui.model.ops import Agent, AgentState

AGENTS_KEPT = 10_000
"""Agent identities kept; the oldest go first."""
PROCESSES_KEPT = 10_000
"""Processes whose agent is known; the oldest go first."""

_HELD = re.compile(r"_Op\((?:DESTROYED, )?\w+, (\w{4})")
_EXEC_DIR = re.compile(r"/user/(\w{8})/agent-(?:docker/(?P<host>[^/]+)/(?P<container>[^/]+)|local/\w+)/?$")
_HOST = re.compile(r"--host=tcp://(?P<host>[^:\s']+)")
_NAME = re.compile(r"--name=(?P<container>srj-[sp]-\w{8})")

AgentKey = tuple[str | None, str | None, str | None, str | None]


class AgentTrack:
    """One agent identity while lines about it still come in."""

    __slots__ = (
        "agent", "connected_at", "container", "driver", "held", "host", "kind", "last_message_at", "messages",
        "source", "started_at", "starts", "state", "uid",
    )  # fmt: skip

    def __init__(self, agent: AgentPrefix, driver: str, kind: str, uid: str) -> None:
        self.agent = agent
        self.driver = driver
        self.kind = kind
        self.uid = uid
        self.state = AgentState.UNKNOWN
        self.host: str | None = None
        self.container: ContainerName | None = None
        self.source: str | None = None
        self.started_at: Nanos | None = None
        self.connected_at: Nanos | None = None
        self.last_message_at: Nanos | None = None
        self.messages = 0
        self.starts = 0
        self.held = ""

    def learn_exec_dir(self, text: str) -> None:
        """User, host and container out of the directory it is started in; the id in it is not kept."""
        if found := _EXEC_DIR.search(text):
            self.uid = found[1]
            self.host = found["host"] or self.host
            if found["container"]:
                self.container = ContainerName(found["container"])

    def learn_command(self, text: str) -> None:
        """Host and container out of a docker command line."""
        if found := _HOST.search(text):
            self.host = found["host"]
        if found := _NAME.search(text):
            self.container = ContainerName(found["container"])

    def freeze(self) -> Agent:
        """The record of what is known now."""
        return Agent(
            agent=self.agent,
            driver=self.driver,
            kind=self.kind,
            uid=self.uid,
            state=self.state,
            host=self.host,
            container=self.container,
            started_at=self.started_at,
            connected_at=self.connected_at,
            last_message_at=self.last_message_at,
            messages=self.messages,
            starts=self.starts,
            ops=tuple(OpPrefix(op) for op in _HELD.findall(self.held)),
            log=self.source,
        )


class Agents:
    """Every agent that is known, and which process it is."""

    def __init__(self) -> None:
        self._tracks: dict[AgentKey, AgentTrack] = {}
        self._by_process: dict[tuple[str, str | None, int], AgentPrefix] = {}

    def all(self) -> tuple[Agent, ...]:
        """Records of all agents, oldest first."""
        return tuple(track.freeze() for track in self._tracks.values())

    def of_driver(self, record: LogRecord) -> AgentTrack:
        """The agent of a line that begins with, or holds, a driver's text."""
        fields = record.fields
        key = (fields["driver"], fields["a"], fields["k"], fields["u"])
        track = self._tracks.get(key)
        if track is None:
            driver, agent, kind, uid = (part or "" for part in key)
            track = self._tracks[key] = AgentTrack(AgentPrefix(agent), driver, kind, uid)
            if len(self._tracks) > AGENTS_KEPT:
                del self._tracks[next(iter(self._tracks))]
        track.held = fields["held"] or ""
        return track

    def with_prefix(self, agent: AgentPrefix, uid: str = "") -> AgentTrack | None:
        """The newest agent with this prefix (of this user)."""
        found = None
        for (_, prefix, _, user), track in self._tracks.items():
            if prefix == agent and (not uid or uid.startswith(user or "")):
                found = track
        return found

    def learn_process(self, record: LogRecord, agent: AgentPrefix) -> None:
        """Remember which agent a process is. Pids are used again: the newest line decides."""
        if record.pid is not None:
            key = (record.source, record.container, record.pid)
            self._by_process.pop(key, None)
            self._by_process[key] = agent
            if len(self._by_process) > PROCESSES_KEPT:
                del self._by_process[next(iter(self._by_process))]

    def of_process(self, record: LogRecord) -> AgentPrefix | None:
        """The agent whose process wrote a line, as far as its own start line or another has told."""
        if record.pid is None:
            return None
        return self._by_process.get((record.source, record.container, record.pid))


def user_of_container(container: str | None) -> Uid | None:
    """The user whose agent runs in a container."""
    parts = split_container(container) if container else None
    return parts.uid if parts else None


def started_agent(record: LogRecord) -> AgentPrefix:
    """The agent prefix in an agent's own start line."""
    return agent_prefix(record.fields["agent_id"] or "")
