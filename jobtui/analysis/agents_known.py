"""Records of the agents that are known, with the ops each holds now.

A driver's text lists the ops that are with its agent, as of its last line; an op that has ended since is not
held any more.
"""

import re

from jobtui.analysis.agent_track import Agents, AgentTrack
from jobtui.analysis.op_index import OpIndex
from jobtui.analysis.op_track import OpTrack
from jobtui.model.ids import OpPrefix
from jobtui.model.ops import Agent, HeldOp

_LISTED = re.compile(r"_Op\((?!DESTROYED)(\w+), (\w{4})", re.ASCII)


def known_agents(agents: Agents, ops: OpIndex) -> tuple[Agent, ...]:
    """Every agent, oldest first."""
    replaced = agents.replaced()
    return tuple(t.freeze(held_by(t, ops), replaced.get(key, 0)) for key, t in agents.items())


def held_by(agent: AgentTrack, ops: OpIndex) -> tuple[HeldOp, ...]:
    """The ops an agent has not finished; none when it is not there any more."""
    if not agent.held or not agent.state.is_live:
        return ()
    held = (_held(agent, ops, name, prefix) for name, prefix in _LISTED.findall(agent.held))
    return tuple(op for op in held if op is not None)


def _held(agent: AgentTrack, ops: OpIndex, name: str, prefix: str) -> HeldOp | None:
    def may_be(op: OpTrack) -> bool:
        return op.name == name and (op.has_agent(agent) or (not op.sends and op.belongs_to_user(agent.uid)))

    found = ops.kept_with(prefix, may_be)
    if not found:
        return HeldOp(OpPrefix(prefix), name)
    op = next((op for op in reversed(found) if op.is_open), None)
    return None if op is None else HeldOp(op.op, name, op.jid, op.sent_at)
