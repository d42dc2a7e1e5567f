"""A driver's lines about its agent: where it is, and when it started, connected, was lost or killed."""

from collections.abc import Mapping

from jobtui.analysis.agent_track import AgentTrack
from jobtui.analysis.pass_state import Handler, PassState
from jobtui.model.ids import JobId
from jobtui.model.logs import LogRecord
from jobtui.model.ops import AgentState, Certainty, Component, OpStatus

_ENDS: Mapping[str, AgentState] = {
    "agent_not_started": AgentState.NEVER_CONNECTED,
    "agent_closed": AgentState.LOST,
    "agent_exited": AgentState.LOST,
    "agent_killed": AgentState.KILLED,
    "agent_idle": AgentState.KILLED,
}
_END_STEPS: Mapping[str, str] = {
    "agent_not_started": "agent did not start in time",
    "agent_closed": "agent lost",
    "agent_exited": "agent exited",
}


def _agent_line(state: PassState, record: LogRecord) -> JobId | None:
    agent = state.agents.of_driver(record)
    fields = record.fields
    agent.learn_exec_dir(fields.get("dir") or "")
    agent.learn_command(fields.get("command") or "")
    if record.shape == "container_up":
        agent.learn_command(f"--name={fields['container']}")
    return None


def _agent_ended(state: PassState, record: LogRecord) -> JobId | None:
    agent = state.agents.of_driver(record)
    never = agent.connected_at is None or agent.state is AgentState.STARTING
    life = _ENDS[record.shape]
    if life is AgentState.LOST and agent.state is AgentState.KILLED:
        life = AgentState.KILLED
    agent_state(agent, AgentState.NEVER_CONNECTED if never else life, record)
    _steps_of_lost_ops(state, record, agent)
    return None


def _steps_of_lost_ops(state: PassState, record: LogRecord, agent: AgentTrack) -> None:
    step = _END_STEPS.get(record.shape)
    for op in state.ops.open_ops() if step else ():
        mine = (op.agent or op.assigned_agent) == agent.agent and op.kind == agent.kind
        if mine and op.belongs_to_user(agent.uid) and step:
            op.add(record, step, Component.DRIVER, Certainty.PREFIX)
            if op.jid is not None:
                state.others.add(op.jid)
            if op.sends:
                op.end(OpStatus.DESTROYED, record.at)


def agent_state(agent: AgentTrack, state: AgentState, record: LogRecord) -> None:
    """Note what a line says of an agent's life."""
    agent.state = state
    if state is AgentState.CONNECTED:
        agent.connected_at = record.at
    elif state is AgentState.STARTING:
        agent.started_at = record.at
        agent.starts += 1


HANDLERS: Mapping[str, Handler] = {
    "agent_exec_dir": _agent_line,
    "container_up": _agent_line,
    "docker_command": _agent_line,
    "driver_made": _agent_line,
    **dict.fromkeys(_ENDS, _agent_ended),
}
"""What reads each shape."""
