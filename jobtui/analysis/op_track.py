"""One op while lines about it still come in. Mutable, private to correlation; `freeze` gives the record."""

from sys import intern

from jobtui.analysis.agent_track import AgentTrack
from jobtui.model.clock import Nanos
from jobtui.model.ids import AgentPrefix, JobId, OpId, OpPrefix, RunDir
from jobtui.model.logs import LogRecord
from jobtui.model.ops import Certainty, Component, Op, OpStatus, Step

STEPS_KEPT = 200
"""Steps kept of one op: a run that reports every two seconds would have thousands."""
FIRST_STEPS_KEPT = 60
"""How many of those are the first ones; the rest are the newest."""
LINES_KEPT = 500
"""Agent lines remembered of one op, to know a line that comes again."""
OP_BYTES, STEP_BYTES = 1_000, 250
"""About what an op takes besides its steps, and a step besides its text; measured."""


class Room:
    """How much memory all ops take together, about, in bytes."""

    __slots__ = ("taken",)

    def __init__(self) -> None:
        self.taken = 0


class OpTrack:
    """What is known of one op so far."""

    __slots__ = (
        "agent", "agent_side", "api", "arrived_at", "assigned_agent", "called_api", "candidates",
        "certainty", "created_at", "driver", "dropped_steps", "ended_at", "error", "exited", "frozen",
        "is_open", "jid", "job_cmd", "key", "kind", "name", "op", "op_id", "replied_at", "replies",
        "requested_at", "result", "room", "run_dir", "sends", "sent_at", "sent_dir", "sent_line", "size",
        "source", "status", "steps", "told_destroyed", "uid", "updates",
    )  # fmt: skip

    def __init__(
        self, key: int, op: str, name: str, source: str, created_at: Nanos | None, room: Room
    ) -> None:
        self.key = key
        self.room = room
        self.size = 0
        self.take_room(OP_BYTES)
        self.op = OpPrefix(op)
        self.name = name
        self.source = source
        self.created_at = created_at
        self.status = OpStatus.CREATED
        self.jid: JobId | None = None
        self.op_id: OpId | None = None
        self.api: str | None = None
        self.called_api: str | None = None
        self.job_cmd: str | None = None
        self.driver: str | None = None
        self.agent: AgentPrefix | None = None
        self.assigned_agent: AgentPrefix | None = None
        self.kind: str | None = None
        self.uid = ""
        self.run_dir: RunDir | None = None
        self.sent_dir: RunDir | None = None
        self.result: str | None = None
        self.error: str | None = None
        self.requested_at: Nanos | None = None
        self.sent_at: Nanos | None = None
        self.arrived_at: Nanos | None = None
        self.replied_at: Nanos | None = None
        self.ended_at: Nanos | None = None
        self.sends = 0
        self.sent_line = -1
        self.told_destroyed = False
        self.replies = 0
        self.updates = 0
        self.exited = False
        self.is_open = True
        self.certainty = Certainty.ADJACENT
        self.candidates: tuple[str, ...] = ()
        self.steps: list[Step] = []
        self.dropped_steps = 0
        self.agent_side: dict[int, None] = {}
        self.frozen: Op | None = None

    def has_agent(self, agent: AgentTrack) -> bool:
        """Whether it was sent to this agent; the two agents of a user may share a prefix."""
        return self.agent == agent.agent and self.kind == agent.kind and self.belongs_to_user(agent.uid)

    def belongs_to_user(self, uid: str) -> bool:
        """Whether it may be an op of the user whose id is, or begins with, `uid`."""
        mine = self.uid
        return not mine or not uid or mine.startswith(uid) or uid.startswith(mine)

    def learn_user(self, uid: str) -> None:
        """Keep the longer of what is known of the user's id."""
        if len(uid) > len(self.uid):
            self.uid = uid

    def is_news(self, line: tuple[str, str]) -> bool:
        """Whether an agent's line is said of it for the first time: its log and its echo say the same."""
        mark = hash(line)
        if mark in self.agent_side:
            return False
        self.agent_side[mark] = None
        if len(self.agent_side) > LINES_KEPT:
            del self.agent_side[next(iter(self.agent_side))]
        return True

    def end(self, status: OpStatus, at: Nanos | None, result: str | None = None) -> None:
        """No more comes about it; `result` is how it ended, when the line says so."""
        if self.is_open:
            self.is_open = False
            self.result = result or self.result
            self.status = status
            self.ended_at = at
            self.frozen = None

    def reopen(self, status: OpStatus) -> None:
        """It was taken for ended too early."""
        self.is_open = True
        self.status = status
        self.ended_at = None
        self.frozen = None

    def add(
        self,
        record: LogRecord,
        step: str,
        component: Component,
        certainty: Certainty,
        at: Nanos | None = None,
    ) -> None:
        """A step of it, out of `record`."""
        self.frozen = None
        if len(self.steps) >= STEPS_KEPT:
            self.take_room(-_size(self.steps.pop(FIRST_STEPS_KEPT)))
            self.dropped_steps += 1
        added = Step(
            intern(step),  # the same few words again and again
            at if at is not None else record.at,
            component,
            record.text,
            record.source,
            record.line,
            record.offset,
            certainty,
            record.cursor,
        )
        self.steps.append(added)
        self.take_room(_size(added))

    def leave_room(self) -> None:
        """It is no longer kept: what is still said of it does not count."""
        self.room.taken -= self.size
        self.room = Room()

    def take_room(self, size: int) -> None:
        """Note that it takes so many bytes more."""
        self.size += size
        self.room.taken += size

    def freeze(self) -> Op:
        """The record of what is known now; the same one until something changes."""
        if self.frozen is None:
            self.frozen = self._frozen()
        return self.frozen

    def _frozen(self) -> Op:
        return Op(
            key=self.key,
            op=self.op,
            name=self.name,
            status=self.status,
            jid=self.jid,
            op_id=self.op_id,
            api=self.api,
            job_cmd=self.job_cmd,
            driver=self.driver,
            agent=self.agent,
            assigned_agent=self.assigned_agent,
            kind=self.kind,
            uid=self.uid or None,
            run_dir=self.run_dir,
            sent_dir=self.sent_dir,
            result=self.result,
            error=self.error,
            created_at=self.created_at,
            sent_at=self.sent_at,
            arrived_at=self.arrived_at,
            replied_at=self.replied_at,
            ended_at=self.ended_at,
            sends=self.sends,
            replies=self.replies,
            updates=self.updates,
            certainty=self.certainty,
            candidates=self.candidates,
            steps=in_order(self.steps),
            dropped_steps=self.dropped_steps,
        )


def _size(step: Step) -> int:
    return STEP_BYTES + len(step.text)


def in_order(steps: list[Step]) -> tuple[Step, ...]:
    """Steps by time; those of one source keep their order, one without a time stays behind the one before."""
    keyed: list[tuple[Nanos, Step]] = []
    last = Nanos(0)
    for step in steps:
        last = step.at if step.at is not None else last
        keyed.append((last, step))
    keyed.sort(key=lambda pair: pair[0])
    return tuple(step for _, step in keyed)
