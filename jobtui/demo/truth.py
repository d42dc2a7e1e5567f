"""What really happened in a simulated site, noted inside the supervisor and not derived from its logs.

Counted as the captures' `expected.json` does: sends are attempts to send, replies are messages with the op's
id (also late ones), updates are `run_status_update` messages that arrived, counted to the latest run or
run_status op of their job.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from jobtui.model.clock import Nanos
from jobtui.model.ids import PREFIX_LENGTH

OWNS_UPDATES = frozenset({"run", "run_status"})


class TrueOp(msgspec.Struct, frozen=True, kw_only=True):
    """One op as it was. `agent` is the prefix of the agent it was sent to, None when it never was."""

    op: str
    op_id: str
    name: str
    jid: str | None
    uid: str
    api: str | None
    job_cmd: str | None
    agent: str | None
    sends: int
    replies: int
    updates: int
    created_at: Nanos


class TrueAgent(msgspec.Struct, frozen=True, kw_only=True):
    """One agent identity: how often it connected and how many messages came from it."""

    agent: str
    driver: str
    kind: str
    uid: str
    alive: int
    messages: int


class Truth(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known for sure. Ops in the order of their creation, the final status of each job by jid."""

    ops: tuple[TrueOp, ...]
    agents: tuple[TrueAgent, ...]
    statuses: dict[str, str]

    def of_job(self, jid: str | None) -> tuple[TrueOp, ...]:
        """The ops of one job, or with None those without a job."""
        return tuple(op for op in self.ops if op.jid == jid)


@dataclass(slots=True)
class OpNote:
    """An op while it is being followed."""

    op_id: str
    name: str
    jid: str | None
    uid: str
    api: str | None
    job_cmd: str | None
    created_at: Nanos
    agent: str | None = None
    sends: int = 0
    replies: int = 0
    updates: int = 0

    def freeze(self) -> TrueOp:
        """The op as it is now."""
        return TrueOp(
            op=self.op_id[:PREFIX_LENGTH],
            op_id=self.op_id,
            name=self.name,
            jid=self.jid,
            uid=self.uid,
            api=self.api,
            job_cmd=self.job_cmd,
            agent=self.agent,
            sends=self.sends,
            replies=self.replies,
            updates=self.updates,
            created_at=self.created_at,
        )


@dataclass(slots=True)
class AgentNote:
    """An agent while it is being followed."""

    agent: str
    driver: str
    kind: str
    uid: str
    alive: int = 0
    messages: int = 0


class Witness:
    """Takes the notes."""

    def __init__(self) -> None:
        self._ops: dict[str, OpNote] = {}
        self._owners: dict[str, OpNote] = {}
        self._agents: dict[str, AgentNote] = {}

    def __len__(self) -> int:
        """How many ops there were."""
        return len(self._ops)

    def __iter__(self) -> Iterator[OpNote]:
        """Every op so far."""
        return iter(self._ops.values())

    def created(self, note: OpNote) -> None:
        """An op was made."""
        self._ops[note.op_id] = note
        if note.jid is not None and note.name in OWNS_UPDATES:
            self._owners[note.jid] = note

    def sent(self, op_id: str, agent_id: str) -> None:
        """The supervisor tried to send an op to an agent."""
        note = self._ops[op_id]
        note.sends += 1
        note.agent = agent_id[:PREFIX_LENGTH]

    def agent_made(self, agent_id: str, driver: str, kind: str, uid: str) -> None:
        """A driver with this identity was made."""
        self._agents[agent_id] = AgentNote(agent_id[:PREFIX_LENGTH], driver, kind, uid)

    def received(self, agent_id: str, op_name: str, op_id: str | None, jid: str | None) -> None:
        """A message came from a known agent."""
        agent = self._agents[agent_id]
        agent.messages += 1
        agent.alive += op_name == "alive"
        if op_id is not None and op_id in self._ops:
            self._ops[op_id].replies += 1
        if op_name == "run_status_update" and jid in self._owners:
            self._owners[jid].updates += 1

    def truth(self, statuses: dict[str, str]) -> Truth:
        """What is known by now."""
        return Truth(
            ops=tuple(note.freeze() for note in self._ops.values()),
            agents=tuple(
                TrueAgent(
                    agent=note.agent,
                    driver=note.driver,
                    kind=note.kind,
                    uid=note.uid,
                    alive=note.alive,
                    messages=note.messages,
                )
                for note in self._agents.values()
            ),
            statuses=statuses,
        )
