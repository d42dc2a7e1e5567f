"""Ops: the messages a supervisor and its agents exchange about a job, and the steps each has passed."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from jobtui.model.clock import Nanos
from jobtui.model.ids import AgentPrefix, ContainerName, JobId, OpId, OpPrefix, RunDir
from jobtui.model.logs import LogRecord


class Component(StrEnum):
    """Who wrote a line or brought a job into a state; the lanes of a timeline, in the order of `LANES`."""

    SERVER = "server"
    SUPERVISOR = "supervisor"
    DRIVER = "driver"
    AGENT = "agent"
    JOB_CMD = "job_cmd"
    BALSAM = "balsam"
    SITE = "site"
    LAUNCHER = "launcher"
    SLURM = "slurm"
    NODES = "nodes"
    SCHEDD = "schedd"
    EXECUTE = "execute"
    JOB = "job"
    SPAN = "span"
    LOG = "log"


LANES: tuple[tuple[Component, ...], ...] = (
    (Component.SERVER, Component.SUPERVISOR, Component.DRIVER, Component.AGENT, Component.JOB_CMD),
    (Component.BALSAM, Component.SITE, Component.LAUNCHER),
    (Component.SLURM, Component.NODES),
    (Component.SCHEDD, Component.EXECUTE, Component.JOB),
    (Component.SPAN, Component.LOG),
)
"""The components of each system: of Sirepo, of Balsam, of Slurm (itself, the nodes of the job), of HTCondor
(its queue, the host, the job itself), of traces (spans, and the lines of logs beside them)."""


class Certainty(StrEnum):
    """How a line was tied to its op or job, surest first."""

    FULL_ID = "full_id"
    JID = "jid"
    PREFIX = "prefix"
    ADJACENT = "adjacent"

    @property
    def rank(self) -> int:
        """0 for the surest."""
        return _RANK[self]


_RANK = {certainty: rank for rank, certainty in enumerate(Certainty)}


class OpStatus(StrEnum):
    """How far an op has come.

    `created`: no driver yet. `waiting`: for its agent or a slot. `sent`: no reply yet. `replied`: a run whose
    job goes on. `ended`: all that it will do is done. `destroyed`: given up before a reply. `lost`: the
    supervisor that held it was restarted.
    """

    CREATED = "created"
    WAITING = "waiting"
    SENT = "sent"
    REPLIED = "replied"
    ENDED = "ended"
    DESTROYED = "destroyed"
    LOST = "lost"

    @property
    def is_open(self) -> bool:
        return self in _OPEN


_OPEN = frozenset({OpStatus.CREATED, OpStatus.WAITING, OpStatus.SENT, OpStatus.REPLIED})


class Step(msgspec.Struct, frozen=True, gc=False):
    """One thing that happened to an op: a log line, in the words of the flow.

    `text` is the line's message as written: not masked, not safe for a terminal. `cursor` is the place of the
    line in the journal it comes from, None for one out of a file.
    """

    step: str
    at: Nanos | None
    component: Component
    text: str
    source: str
    line: int
    offset: int
    certainty: Certainty
    cursor: str | None = None


def is_told_before(one: Step | LogRecord, other: Step | LogRecord) -> bool:
    """Whether a log tells of one line before another. No line of one log is before one of another log.

    By their times, since a log that was rotated begins again at byte 0; by their bytes where the times are
    the same, to a second as logs write it, or one has none.
    """
    if one.source != other.source:
        return False
    if one.at is None or other.at is None or one.at == other.at:
        return one.offset < other.offset
    return one.at < other.at


class Op(msgspec.Struct, frozen=True, kw_only=True):
    """One op with everything that is known of it.

    `agent` is the agent it was sent to, None when it never was; `assigned_agent` the one it was meant for.
    `run_dir` is that of the creation line. `result` is how it ended in the supervisor's own word (`ok`,
    `completed`, `error`, `canceled`), None while that is not known. `certainty` tells how the op was tied to
    its job, `candidates` the ids of other jobs it may belong to when that could not be decided. `sent_dir` is
    the run directory it was sent with, where that is another one: the one on a cluster.
    """

    key: int
    op: OpPrefix
    name: str
    status: OpStatus
    jid: JobId | None = None
    op_id: OpId | None = None
    api: str | None = None
    job_cmd: str | None = None
    driver: str | None = None
    agent: AgentPrefix | None = None
    assigned_agent: AgentPrefix | None = None
    kind: str | None = None
    uid: str | None = None
    run_dir: RunDir | None = None
    sent_dir: RunDir | None = None
    result: str | None = None
    error: str | None = None
    created_at: Nanos | None = None
    sent_at: Nanos | None = None
    arrived_at: Nanos | None = None
    replied_at: Nanos | None = None
    ended_at: Nanos | None = None
    sends: int = 0
    replies: int = 0
    updates: int = 0
    certainty: Certainty = Certainty.JID
    candidates: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    dropped_steps: int = 0


class AgentState(StrEnum):
    """What is known of an agent from the supervisor's lines.

    `idle`: connected, and no op is with it. `lost`: its connection or process ended by itself, or the
    supervisor that knew it did. `killed`: the supervisor ended it. `never_connected`: given up as it started.
    """

    STARTING = "starting"
    CONNECTED = "connected"
    IDLE = "idle"
    LOST = "lost"
    KILLED = "killed"
    NEVER_CONNECTED = "never_connected"
    UNKNOWN = "unknown"

    @property
    def is_live(self) -> bool:
        return self in _LIVE


_LIVE = frozenset({AgentState.STARTING, AgentState.CONNECTED, AgentState.IDLE})


class HeldOp(msgspec.Struct, frozen=True):
    """An op that an agent has and has not finished. `jid` is None where its creation was not read."""

    op: OpPrefix
    name: str
    jid: JobId | None = None
    sent_at: Nanos | None = None


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """One agent identity as its driver has it.

    `uid` is the user's id as far as it is known, four characters of it at least. `since` is when the agent
    came into its state, and `why` what was said of that: outside text. `container_id` are the first twelve
    digits of that of its present or last container, `image` what that is made of, where a log names it.
    `restarts` counts the starts before this one, in today's Docker those of the agents it replaces; `falls`
    are the last times at which it ended by itself or did not come up. `ops` are those it holds now.
    `supervisor` is the source in which its driver speaks of it, `log` that in which its own lines were read,
    both with the place where its last start is; `cluster_log` is the path of its log on a cluster.
    """

    agent: AgentPrefix
    driver: str
    kind: str
    uid: str
    state: AgentState
    since: Nanos | None = None
    why: str = ""
    host: str | None = None
    container: ContainerName | None = None
    container_id: str | None = None
    image: str | None = None
    started_at: Nanos | None = None
    connected_at: Nanos | None = None
    last_message_at: Nanos | None = None
    messages: int = 0
    starts: int = 0
    restarts: int = 0
    falls: tuple[Nanos, ...] = ()
    ops: tuple[HeldOp, ...] = ()
    supervisor: str = ""
    supervisor_at: int = 0
    log: str | None = None
    log_at: int = 0
    cluster_log: str | None = None


class Unlinked(msgspec.Struct, frozen=True, gc=False):
    """A line that names a job but belongs to no op that is known. `why` says what was missing."""

    jid: JobId
    step: Step
    why: str


class Writer(NamedTuple):
    """The process that wrote the last lines of a supervisor's log, and its last time.

    `pid` is None where its lines do not tell, `before` the last line of the process before, if one was read.
    """

    pid: int | None
    before: LogRecord | None
    end: Nanos | None


class Damage(NamedTuple):
    """A place of a log that cannot be read: its byte, and the times of the lines read before and after it.

    A log that was rotated begins again at byte 0: then only the times tell what a place is near to.
    """

    offset: int
    since: Nanos | None = None
    until: Nanos | None = None


class Heard(NamedTuple):
    """Which kinds of writers were read, and the newest time in a supervisor's log, if its lines have any.

    `writers` are the last writers of supervisors' logs, `damaged` places that cannot be read, both by source.
    """

    components: frozenset[Component] = frozenset()
    supervisor_end: Nanos | None = None
    writers: Mapping[str, Writer] = MappingProxyType({})
    damaged: Mapping[str, tuple[Damage, ...]] = MappingProxyType({})


class Correlation:
    """What log records tell of ops and agents; here that of no record."""

    def begun(self) -> "Correlation":
        """The one that takes in the first records; only then what correlates is imported."""
        return self

    def feed(self, records: Iterable[LogRecord]) -> set[JobId]:
        """Take in records, each source's in its order; the jobs that are now known better."""
        raise NotImplementedError("this correlation takes in no records")

    def take_in(self, other: Any) -> None:
        """Take over what another of this kind was told and this one was not. The other is used up."""
        raise NotImplementedError("this correlation takes in no others")

    @property
    def heard(self) -> Heard:
        """Whose lines were read, and who wrote last in each log of a supervisor."""
        return Heard()

    @property
    def repeated(self) -> Mapping[str, str]:
        """What is to be said of logs with lines that another has, too."""
        return {}

    @property
    def dropped_ops(self) -> int:
        """How many old ops were dropped to stay within bounds."""
        return 0

    def ops(self, after: int = 0) -> Iterable[Op]:
        """Every op that is kept and has a larger key, also those without a job, oldest first."""
        return ()

    def ops_of(self, job_id: JobId) -> tuple[Op, ...]:
        """The ops of a job, oldest first, each with the API server's call that caused it."""
        return ()

    def open_ops(self) -> tuple[Op, ...]:
        """Every op that has not ended, oldest first."""
        return tuple(op for op in self.ops() if op.status.is_open)

    def runs_like(self, model: str, driver: str | None) -> tuple[Op, ...]:
        """The latest runs of a model on a driver that have ended, newest first."""
        return ()

    def restarted_ops(self, job_id: JobId) -> Mapping[int, Step]:
        """Those ops of a job that are older than a restart of their supervisor, by key: the restart."""
        return {}

    def unlinked_of(self, job_id: JobId) -> tuple[Unlinked, ...]:
        """Lines that name a job and could not be placed, in the order of their sources."""
        return ()

    def agents(self) -> tuple[Agent, ...]:
        return ()

    def agent_of(self, job_id: JobId) -> Agent | None:
        """The agent that holds or last held the job's run op."""
        return None
