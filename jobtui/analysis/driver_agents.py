"""A driver's lines about its agent: where it is, and when it started, connected, was lost or killed."""

import re
from collections.abc import Callable, Mapping

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
_ENDED = frozenset({AgentState.LOST, AgentState.KILLED, AgentState.NEVER_CONNECTED})
"""States in which a further line about the end tells nothing new: each end is followed by a clearing up."""
_WORDS: Mapping[str, Callable[[LogRecord], str]] = {
    "agent_not_started": lambda record: f"did not connect within {record.fields['timeout']} s",
    "agent_closed": lambda record: "its connection ended",
    "agent_exited": lambda record: f"it ended with code {record.fields['returncode']}",
    "agent_killed": lambda record: "the supervisor stopped it",
    "agent_idle": lambda record: "stopped, as it was idle",
}
"""What a line says of why an agent is no more."""

_STARTING = frozenset({"agent_exec_dir", "container_up"})
"""Lines of a start, which tell it where reading began behind its first one."""
FREED_BY_START = "_agent_start"
"""The function that gives an agent up whose start has failed."""
_REASON = re.compile(r"'reason': '([\w-]+)'", re.ASCII)
_STOPS = frozenset({"stop", "rm", "kill"})
"""What is asked of docker to clear up; that it fails tells nothing of the agent."""


def _agent_line(state: PassState, record: LogRecord) -> JobId | None:
    agent = state.agents.of_driver(record)
    fields = record.fields
    agent.learn_exec_dir(fields.get("dir") or "")
    agent.learn_command(fields.get("command") or "")
    if record.shape == "container_up":
        agent.learn_container(fields["container"] or "", fields["cid"] or "")
    if record.shape in _STARTING and agent.state is AgentState.UNKNOWN:
        agent.enter(AgentState.STARTING, record.at)
    return None


def _agent_ended(state: PassState, record: LogRecord) -> JobId | None:
    agent = state.agents.of_driver(record)
    if agent.state not in _ENDED:
        never = agent.state is AgentState.STARTING
        life = AgentState.NEVER_CONNECTED if never else _ENDS[record.shape]
        agent.fall(life, record.at, _WORDS[record.shape](record))
    elif record.shape == "agent_exited" and agent.state is AgentState.LOST:
        agent.explain(_WORDS[record.shape](record))
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


def _agent_freed(state: PassState, record: LogRecord) -> JobId | None:
    """Its resources are given back: after an end that another line tells, or after a start that failed."""
    agent = state.agents.of_driver(record)
    if record.fields["caller"] == FREED_BY_START and agent.state is AgentState.STARTING:
        agent.fall(AgentState.NEVER_CONNECTED, record.at, agent.why or "its start failed")
    return None


def _driver_note(state: PassState, record: LogRecord) -> JobId | None:
    """What a driver says beside; of an error while its agent starts, why."""
    agent = state.agents.of_driver(record)
    rest = record.fields["rest"] or ""
    if agent.state is AgentState.STARTING and rest.startswith("error="):
        agent.explain(_reason(rest.removeprefix("error=")))
    return None


def _reason(error: str) -> str:
    """The words of an exception as logged: the reason it names, else the line before its traceback."""
    found = _REASON.search(error)
    return f"its start failed: {found[1] if found else error.partition(' stack=')[0]}"


def _docker_failed(state: PassState, record: LogRecord) -> JobId | None:
    """A docker command ended with an error; the one that runs an agent ends so when the agent does."""
    fields = record.fields
    agent = state.agents.in_container(fields["container"] or "")
    if agent is None:
        return None
    agent.learn_command(fields["command"] or "")
    error = fields["error"]
    if fields["verb"] not in _STOPS and agent.state is not AgentState.KILLED:
        agent.explain(f"docker {fields['verb']}: {error}" if error else "its container ended")
    return None


def _cluster_log(state: PassState, record: LogRecord) -> JobId | None:
    """Where an agent logs on a cluster: written by the start of it, which the line before announces."""
    before = state.before
    if before is not None and before.shape == "agent_start_wanted":
        state.agents.of_driver(before).cluster_log = record.fields["path"]
    return None


def agent_connected(agent: AgentTrack, record: LogRecord) -> None:
    """It has said that it is there."""
    agent.connected_at = record.at
    agent.why = ""
    agent.enter(AgentState.CONNECTED, record.at)


def agent_starts(agent: AgentTrack, record: LogRecord) -> None:
    """Its driver has begun to start it."""
    agent.started_at = record.at
    agent.source_at = record.offset
    agent.starts += 1
    agent.why = ""
    agent.enter(AgentState.STARTING, record.at)


HANDLERS: Mapping[str, Handler] = {
    "agent_exec_dir": _agent_line,
    "container_up": _agent_line,
    "docker_command": _agent_line,
    "driver_made": _agent_line,
    "agent_freed": _agent_freed,
    "driver_note": _driver_note,
    "docker_failed": _docker_failed,
    "cluster_log_path": _cluster_log,
    **dict.fromkeys(_ENDS, _agent_ended),
}
"""What reads each shape."""
