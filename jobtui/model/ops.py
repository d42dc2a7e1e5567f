"""Ops: the messages that a supervisor and its agents exchange about a job, and the steps of each."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from itertools import islice
from operator import itemgetter
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import msgspec

from jobtui.model.clock import Nanos
from jobtui.model.ids import AgentPrefix, ContainerName, JobId, OpId, OpPrefix, RunDir
from jobtui.model.logs import LogRecord


class Component(StrEnum):
    """What wrote a line or changed the state of a job. These are the lanes of a timeline, see `LANES`."""

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
"""The components of each system: Sirepo, Balsam, Slurm (itself and the job's nodes), HTCondor (its queue, the
host, the job), and traces (spans, and log lines with a trace id)."""


class Certainty(StrEnum):
    """How a line was linked to its op or job, surest first."""

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
    job continues. `ended`: nothing more will come. `destroyed`: given up before a reply. `lost`: the
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
    """One step of an op: a log line, in the words of the flow.

    `text` is the line's message as written: not masked, not safe for a terminal. `cursor` is its position
    in its journal, None for a line of a file.
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


AnyStep = TypeVar("AnyStep", bound=Step)


def is_line_before(one: Step | LogRecord, other: Step | LogRecord) -> bool:
    """Whether one line comes before another in the same log; False for lines of two logs.

    Times decide, as a rotated log begins again at byte 0. Offsets decide between lines of one second, or if
    one line has no time.
    """
    if one.source != other.source:
        return False
    if one.at is None or other.at is None or one.at == other.at:
        return one.offset < other.offset
    return one.at < other.at


def in_order(steps: Iterable[AnyStep]) -> tuple[AnyStep, ...]:
    """Steps by time. Those of one source keep their order; one without a time stays after the one before it.

    At equal times the order is that of the components on the way of a message.
    """
    known = tuple(steps)
    first: dict[str, int] = {}
    for step in known:
        part = _PARTS[step.component]
        first[step.source] = min(part, first.get(step.source, part))
    last = dict.fromkeys(first, min((step.at for step in known if step.at is not None), default=Nanos(0)))
    keyed = []
    for step in known:
        at = last[step.source] = step.at if step.at is not None else last[step.source]
        keyed.append(((at, first[step.source], step.source), step))
    return tuple(step for _, step in sorted(keyed, key=itemgetter(0)))


_PARTS = {component: part for part, component in enumerate(Component)}
BY_SUPERVISOR = frozenset({Component.SUPERVISOR, Component.DRIVER})


class OpFacts(msgspec.Struct, kw_only=True):
    """What is known of one op, while its lines come in too.

    `agent` is the agent it was sent to, None if it was not sent; `assigned_agent` the one it was meant for.
    `run_dir` is from its creation line. `result` is its end in the supervisor's own word (`ok`, `completed`,
    `error`, `canceled`), None while that is not known. `certainty` is how the op was linked to its job, and
    `candidates` are other jobs to which it may belong. `sent_dir` is the run directory with which it was sent
    if it is another one: the one on a cluster. `wrote_stderr` says that its agent sent on what job_cmd wrote.
    """

    key: int
    op: OpPrefix
    name: str
    status: OpStatus = OpStatus.CREATED
    jid: JobId | None = None
    op_id: OpId | None = None
    api: str | None = None
    job_cmd: str | None = None
    driver: str | None = None
    agent: AgentPrefix | None = None
    assigned_agent: AgentPrefix | None = None
    kind: str | None = None
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
    dropped_steps: int = 0
    wrote_stderr: bool = False

    @property
    def any_agent(self) -> AgentPrefix | None:
        """The agent it was sent to, else the one it was meant for."""
        return self.agent or self.assigned_agent


class Op(OpFacts, frozen=True):  # type: ignore[misc] # the facts as they were at one time
    uid: str | None = None
    steps: tuple[Step, ...] = ()


class AgentState(StrEnum):
    """The state of an agent by the supervisor's lines.

    `idle`: connected and without an op. `lost`: its connection, its process or its supervisor ended.
    `killed`: the supervisor ended it. `never_connected`: the supervisor gave it up while it started.
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
UNWANTED_ENDS = frozenset({AgentState.LOST, AgentState.NEVER_CONNECTED})


class HeldOp(msgspec.Struct, frozen=True):
    """An op that an agent has not finished. `jid` is None if its creation was not read."""

    op: OpPrefix
    name: str
    jid: JobId | None = None
    sent_at: Nanos | None = None


class AgentFacts(msgspec.Struct, kw_only=True):
    """What is known of one agent, while its lines come in too.

    `uid` is the user's id, or its first characters, at least four. `since` is when the agent came into its
    state and `why` the reason that a log gives: outside text. `container_id` is the first twelve digits of
    the id of its last container, `image` the image of it, if a log names one. `falls` are the last times at
    which it ended by itself or did not start. `supervisor` is the source of its driver's lines and `log` the
    source of its own, each with the position of its last start. `cluster_log` is its path on a cluster.
    """

    agent: AgentPrefix
    driver: str
    kind: str
    uid: str
    state: AgentState = AgentState.UNKNOWN
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
    falls: tuple[Nanos, ...] = ()
    supervisor: str = ""
    supervisor_at: int = 0
    log: str | None = None
    log_at: int = 0
    cluster_log: str | None = None


class Agent(AgentFacts, frozen=True):  # type: ignore[misc] # the facts as they were at one time
    """One agent as its driver knows it.

    `restarts` counts the starts before this one; with Docker these are the agents that it replaces. `ops` are
    those it holds now.
    """

    restarts: int = 0
    ops: tuple[HeldOp, ...] = ()


class Unlinked(msgspec.Struct, frozen=True, gc=False):
    """A line that names a job and belongs to no known op. `why` says what was missing."""

    jid: JobId
    step: Step
    why: str


class Writer(NamedTuple):
    """The process that wrote the last lines of a supervisor's log, and its last time.

    `pid` is None if its lines have none. `before` is the last line of the process before it, if one was read.
    """

    pid: int | None
    before: LogRecord | None
    end: Nanos | None


class Damage(NamedTuple):
    """A part of a log that cannot be read: its byte, and the times of the lines before and after it.

    The times are needed because a rotated log begins again at byte 0.
    """

    offset: int
    since: Nanos | None = None
    until: Nanos | None = None


class WritersRead(NamedTuple):
    """Which kinds of writers were read.

    By source: `writers` are the last writers of supervisors' logs, `damaged` the parts that cannot be read.
    """

    components: frozenset[Component] = frozenset()
    writers: Mapping[str, Writer] = MappingProxyType({})
    damaged: Mapping[str, tuple[Damage, ...]] = MappingProxyType({})

    @property
    def supervisor_end(self) -> Nanos | None:
        """The newest time in a supervisor's log, if its lines have times."""
        return max((one.end for one in self.writers.values() if one.end is not None), default=None)


RUNS_COMPARED = 300


class CorrelationSnapshot(NamedTuple):
    """What a correlation knew at one time; of lines that could not be placed, those of jobs with ops."""

    ops: tuple[Op, ...] = ()
    agents: tuple[Agent, ...] = ()
    writers_read: WritersRead = WritersRead()
    repeated: Mapping[str, str] = MappingProxyType({})
    dropped_ops: int = 0
    ops_of: Mapping[JobId, tuple[Op, ...]] = MappingProxyType({})
    restarted: Mapping[JobId, Mapping[int, Step]] = MappingProxyType({})
    unlinked: Mapping[JobId, tuple[Unlinked, ...]] = MappingProxyType({})
    agent_of: Mapping[JobId, Agent | None] = MappingProxyType({})


class Correlation:
    """Ops and agents found in log records. This one takes in no record: it has a snapshot, or nothing."""

    _known = CorrelationSnapshot()

    def begun(self) -> "Correlation":
        """The correlation to feed with records. It is imported only when the first record comes."""
        return self

    def snapshot(self) -> "Correlation":
        """What it knows now. Costs some microseconds for each op."""
        ops = tuple(self.ops())
        jobs = {op.jid for op in ops if op.jid is not None}
        copy = Correlation()
        copy._known = CorrelationSnapshot(
            ops,
            self.agents(),
            self.writers_read,
            self.repeated,
            self.dropped_ops,
            ops_of={job: self.ops_of(job) for job in jobs},
            restarted={job: self.restarted_ops(job) for job in jobs},
            unlinked={job: self.unlinked_of(job) for job in jobs},
            agent_of={job: self.agent_of(job) for job in jobs},
        )
        return copy

    def feed(self, records: Sequence[LogRecord]) -> set[JobId]:
        """Take in records, in order for each source. Returns the jobs that changed."""
        raise NotImplementedError("this correlation takes in no records")

    def take_in(self, other: Any) -> None:
        """Add what another correlation knows and this one does not. The other must not be used afterwards."""
        raise NotImplementedError("this correlation takes in no others")

    @property
    def writers_read(self) -> WritersRead:
        """Which writers were read, and the last one of each supervisor's log."""
        return self._known.writers_read

    @property
    def repeated(self) -> Mapping[str, str]:
        """By source, a note on lines that another log has too."""
        return self._known.repeated

    @property
    def dropped_ops(self) -> int:
        return self._known.dropped_ops

    def ops(self, after: int = 0) -> Iterable[Op]:
        """Every kept op with a larger key, also those without a job, oldest first."""
        return (op for op in self._known.ops if op.key > after)

    def ops_of(self, job_id: JobId) -> tuple[Op, ...]:
        """The ops of a job, oldest first, each with the server's call that caused it."""
        return self._known.ops_of.get(job_id, ())

    def open_ops(self) -> tuple[Op, ...]:
        return tuple(op for op in self.ops() if op.status.is_open)

    def runs_like(self, model: str, driver: str | None) -> tuple[Op, ...]:
        """The latest runs of a model on a driver that have ended, newest first."""
        ended = (op for op in reversed(self._known.ops) if op.name == "run" and not op.status.is_open)
        alike = (op for op in ended if op.driver == driver and (op.jid or "").endswith(f"-{model}"))
        return tuple(islice(alike, RUNS_COMPARED))

    def restarted_ops(self, job_id: JobId) -> Mapping[int, Step]:
        """The restart of the supervisor that ended each op of a job, by the op's key."""
        return self._known.restarted.get(job_id, {})

    def unlinked_of(self, job_id: JobId) -> tuple[Unlinked, ...]:
        """Lines that name a job and could not be placed, in the order of their sources."""
        return self._known.unlinked.get(job_id, ())

    def agents(self) -> tuple[Agent, ...]:
        return self._known.agents

    def agent_of(self, job_id: JobId) -> Agent | None:
        """The agent that holds or last held the job's run op."""
        return self._known.agent_of.get(job_id)
