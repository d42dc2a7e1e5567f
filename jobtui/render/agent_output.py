"""Agents as the JSON contract has them. Texts from outside are masked; full ids of agents are not known."""

from jobtui.analysis.agent_logs import AgentLog
from jobtui.model.ops import Agent, HeldOp
from jobtui.render.json_output import Document, text_or_null, time_or_null


def agent_record(agent: Agent, log: AgentLog) -> Document:
    """An agent as in `agents`."""
    return {
        "agent": agent.agent,
        "driver": agent.driver,
        "kind": agent.kind,
        "uid": agent.uid,
        "host": text_or_null(agent.host),
        "container": text_or_null(agent.container),
        "state": agent.state.value,
        "connected_at": time_or_null(agent.connected_at),
        "last_message_at": time_or_null(agent.last_message_at),
        "messages": agent.messages,
        "ops": [_held_record(op) for op in agent.ops],
        "log": text_or_null(log.described or None),
        "since": time_or_null(agent.since),
        "started_at": time_or_null(agent.started_at),
        "container_id": agent.container_id,
        "restarts": agent.restarts,
        "why": text_or_null(agent.why or None),
        "log_place": log.place.value,
        "log_command": text_or_null(log.command or None),
        "log_note": text_or_null(log.note or None),
    }


def _held_record(op: HeldOp) -> Document:
    return {"op": op.op, "name": op.name, "job": op.jid, "sent_at": time_or_null(op.sent_at)}
