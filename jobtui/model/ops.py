"""Ops: the messages a supervisor and its agents exchange about a job, and the steps each has passed."""

from enum import StrEnum

import msgspec

from jobtui.model.clock import Nanos
from jobtui.model.ids import AgentPrefix, ContainerName, JobId, OpId, OpPrefix, RunDir


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
        """Whether more may come."""
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
        """Whether the agent is there, or is about to be."""
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
