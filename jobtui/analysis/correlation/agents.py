"""Agents by the lines of the supervisor's drivers: which process is which, and the ops that each holds."""

import re
from collections import Counter
from collections.abc import Callable, Iterator

from jobtui.model.bounded import Bounded
from jobtui.model.clock import Nanos
from jobtui.model.ids import PREFIX_LENGTH, AgentPrefix, ContainerName, Uid, split_container
from jobtui.model.logs import LogRecord
from jobtui.model.ops import UNWANTED_ENDS, Agent, AgentFacts, AgentState, HeldOp

AGENTS_KEPT = 10_000
PROCESSES_KEPT = 10_000
CONTAINER_ID_LENGTH = 12
"""How many digits of a container's id Docker shows, and writes into a journal as CONTAINER_ID."""
WHY_LENGTH = 300
CLUSTER_LOG = "job_agent.log"

_EXEC_DIR = re.compile(
    r"/user/(\w{8})/agent-(?:docker/(?P<host>[^/]+)/(?P<container>[^/]+)|local/\w+)/?$", re.ASCII
)
_HOST = re.compile(r"--host=tcp://(?P<host>[^:\s']+)")
_NAME = re.compile(r"--name=(?P<container>srj-[sp]-\w{8})\b", re.ASCII)
_IMAGE = re.compile(r" (?:create|run) (?:-\S+ )*(?P<image>[\w][\w./:@-]*)(?: |$)", re.ASCII)
_COPY = re.compile(r"/user/(?P<uid>\w{8})/agent-sbatch/(?P<host>[^/]+)", re.ASCII)
"""The path of a copy of a cluster agent's log, which the supervisor keeps."""

FALLS_KEPT = 12
_UNKNOWN = AgentState.UNKNOWN

_BETWEEN = re.compile(r"\(a=| [ku]=")
"""What is between driver, agent, kind and user where a driver's line names its agent."""


class AgentTrack(AgentFacts, eq=False, kw_only=True):
    """One agent while lines about it still come in.

    `life` numbers the lives of its supervisor: each restart begins a new one.
    """

    life: int
    held: str = ""

    def learn_exec_dir(self, text: str) -> None:
        """Learn user, host and container from the directory it is started in; the id in it is not kept."""
        if found := _EXEC_DIR.search(text):
            self.uid = found[1]
            self.host = found["host"] or self.host
            if found["container"]:
                self.container = ContainerName(found["container"])

    def learn_command(self, text: str) -> None:
        if found := _HOST.search(text):
            self.host = found["host"]
        if found := _NAME.search(text):
            self._learn_name(found["container"])
        if found := _IMAGE.search(text):
            self.image = found["image"]

    def _learn_name(self, container: str) -> None:
        self.container = ContainerName(container)
        self.learn_user(user_of_container(container) or "")

    def learn_container(self, name: str, container_id: str) -> None:
        self._learn_name(name)
        self.container_id = container_id[:CONTAINER_ID_LENGTH]

    def learn_cluster_dir(self, run_dir: str) -> None:
        """Learn where its log is on a cluster from a run directory there: next to the users' directory."""
        root, user, _ = run_dir.partition("/user/")
        if user and self.cluster_log is None:
            self.cluster_log = f"{root}/{CLUSTER_LOG}"

    def learn_user(self, uid: str) -> None:
        if len(uid) > len(self.uid) and uid.startswith(self.uid):
            self.uid = uid

    def learn_log(self, source: str, offset: int) -> None:
        """Learn where its own lines begin. The path of a copy of a cluster's log names user and host too."""
        found = _COPY.search(source)
        is_second_hand = source == self.supervisor or found is not None
        # what the supervisor forwarded, or a copy, gives way to the log itself
        was_second_hand = self.log == self.supervisor or _COPY.search(self.log or "") is not None
        if self.log is None or not is_second_hand or self.log == source or was_second_hand:
            self.log, self.log_at = source, offset
        if found:
            self.learn_user(found["uid"])
            self.host = found["host"]

    def enter(self, state: AgentState, at: Nanos | None, why: str = "") -> None:
        if state is not self.state:
            self.state, self.since = state, at
        self.explain(why)

    def fall(self, state: AgentState, at: Nanos | None, why: str) -> None:
        """Note its end. An end that nobody asked for counts as a fall."""
        self.enter(state, at, why)
        if at is not None and state in UNWANTED_ENDS:
            self.falls = (*self.falls, at)[-FALLS_KEPT:]

    def speaks(self) -> None:
        """Note that it is connected: messages are exchanged, perhaps since before reading began."""
        if self.state is _UNKNOWN:
            self.enter(AgentState.CONNECTED, None)

    def explain(self, why: str) -> None:
        self.why = why[:WHY_LENGTH] or self.why

    def freeze(self, ops: tuple[HeldOp, ...] = (), before: int = 0) -> Agent:
        """The record of the agent now, with the ops it holds and the number of agents that it replaced."""
        is_idle = self.state is AgentState.CONNECTED and not ops
        same = {name: getattr(self, name) for name in AgentFacts.__struct_fields__}
        if is_idle:
            same |= {"state": AgentState.IDLE, "since": self.last_message_at or self.since}
        return Agent(**same, restarts=max(0, self.starts - 1) + before, ops=ops)


class Agents:
    """Every known agent, and its process. `origin` gives the log of which another one is a copy."""

    def __init__(self, origin: Callable[[str], str]) -> None:
        self._origin = origin
        self._tracks = Bounded[str, AgentTrack](AGENTS_KEPT)
        """By how a driver's line names its agent, `LocalDriver(a=3jJv k=sequential u=hZk9`."""
        self._by_process = Bounded[tuple[str, str | None, int | None], AgentPrefix](PROCESSES_KEPT)
        self._logs = Bounded[tuple[AgentPrefix, str], tuple[str, int]](PROCESSES_KEPT)
        self._lives: dict[str, int] = {}

    def take_in(self, other: "Agents") -> None:
        """Add the agents and processes that are not known here, or only from a later time on."""
        theirs = {
            key: track
            for key, track in other._tracks.items()
            if (own := self._tracks.get(key)) is None or own.messages < track.messages
        }
        for key in theirs:
            self._tracks.pop(key, None)
        self._tracks.put_before(theirs)
        self._by_process.put_before(other._by_process)
        self._logs.put_before(other._logs)

    def of_driver(self, record: LogRecord) -> AgentTrack:
        fields = record.fields
        key = fields.get("agent") or ""
        if "driver" in fields:  # the parts of the name, in a recording of an earlier jobtui
            key = "{driver}(a={a} k={k} u={u}".format_map(fields)
        track = self._tracks.get(key) or self._begun(key, record.source)
        track.held = fields["held"] or ""
        return track

    def _begun(self, key: str, source: str) -> AgentTrack:
        driver, agent, kind, uid = (*_BETWEEN.split(key), "", "", "")[:4]
        life = self._lives.get(self._origin(source), 0)
        track = self._tracks[key] = AgentTrack(
            agent=AgentPrefix(agent), driver=driver, kind=kind, uid=uid, supervisor=source, life=life
        )
        for (known, user), log in self._logs.items():
            if known == agent and (not user or user.startswith(uid)):
                track.learn_log(*log)
        return track

    def with_prefix(self, agent: AgentPrefix, uid: str = "") -> AgentTrack | None:
        alike = (t for t in reversed(self._tracks.values()) if t.agent == agent)
        return next((t for t in alike if uid.startswith(t.uid[:PREFIX_LENGTH]) or not uid), None)

    def in_container(self, container: str) -> AgentTrack | None:
        return next((t for t in reversed(self._tracks.values()) if t.container == container), None)

    def all(self) -> Iterator[tuple[AgentTrack, int]]:
        """Every agent, and how many of the same container and supervisor came before it."""
        counts: Counter[tuple[str | None, str | None, str, int]] = Counter()
        for track in self._tracks.values():
            holder = track.host, track.container, self._origin(track.supervisor), track.life
            yield track, 0 if track.container is None else counts[holder]
            counts[holder] += 1

    def supervisor_restarted(self, record: LogRecord) -> None:
        """Mark the agents of the supervisor's former process as lost: the new process does not know them."""
        source = self._origin(record.source)
        self._lives[source] = self._lives.get(source, 0) + 1
        for track in self._tracks.values():
            if self._origin(track.supervisor) == source and track.state.is_live:
                track.enter(AgentState.LOST, record.at, "the supervisor was restarted")

    def learn_process(self, record: LogRecord, agent: AgentPrefix) -> None:
        """Note the agent of a process. Pids are reused: the newest line decides."""
        if record.pid is not None:
            self._by_process[record.source, record.container, record.pid] = agent

    def learn_start(self, record: LogRecord, agent: AgentPrefix) -> None:
        """Take in an agent's own start line, also if no driver has named it yet."""
        self.learn_process(record, agent)
        copy = _COPY.search(record.source)
        uid = user_of_container(record.container) or (copy["uid"] if copy else "")
        if track := self.with_prefix(agent, uid):
            track.learn_log(record.source, record.offset)
        else:
            self._logs[agent, uid] = record.source, record.offset

    def of_process(self, record: LogRecord) -> AgentPrefix | None:
        """The agent whose process wrote a line, if its start line or another one names it."""
        return self._by_process.get((record.source, record.container, record.pid))


def user_of_container(container: str | None) -> Uid | None:
    parts = split_container(container) if container else None
    return parts.uid if parts else None
