"""Lines of a driver about its agent and about ops: started, lost, assigned, sent, answered."""

import re
from collections.abc import Mapping

from jobtui.analysis.correlation.agents import AgentTrack
from jobtui.analysis.correlation.ops import OpTrack
from jobtui.analysis.correlation.supervisor_lines import from_agent
from jobtui.analysis.correlation.supervisor_state import (
    NEVER_SENT,
    NOTHING,
    RUNS,
    AgentMessage,
    Handler,
    PassState,
    add_step,
    latest_op,
    path_in,
    read_message,
)
from jobtui.formats.schema import step_words
from jobtui.model.ids import JobId, is_full_id, jid_of_run_dir, op_prefix
from jobtui.model.logs import LogRecord
from jobtui.model.ops import AgentState, Certainty, Component, OpStatus

_ENDS: Mapping[str, tuple[AgentState, str, str]] = {
    "agent_not_started": (
        AgentState.NEVER_CONNECTED, "did not connect within {timeout} s", "agent did not start in time",
    ),
    "agent_closed": (AgentState.LOST, "its connection ended", "agent lost"),
    "agent_exited": (AgentState.LOST, "it ended with code {returncode}", "agent exited"),
    "agent_killed": (AgentState.KILLED, "the supervisor stopped it", ""),
    "agent_idle": (AgentState.KILLED, "stopped, as it was idle", ""),
}  # fmt: skip
"""An agent's end by the shape of the line: its state then, the reason, and the step of the ops it had."""
_ENDED = frozenset({AgentState.LOST, AgentState.KILLED, AgentState.NEVER_CONNECTED})
"""States after an end: further lines about it come from the cleanup and are ignored."""

_HELD = re.compile(r"_Op\(\w+, (\w{4})")
_STARTING = frozenset({"agent_exec_dir", "container_up"})
"""Lines that show a start if its first line was not read."""
FREED_BY_START = "_agent_start"
"""The supervisor's function that gives up an agent whose start has failed."""
_REASON = re.compile(r"'reason': '([\w-]+)'", re.ASCII)
_STOPS = frozenset({"stop", "rm", "kill"})
"""Docker commands of the cleanup. Their failure says nothing about the agent."""


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
    life, words, step = _ENDS[record.shape]
    why = words.format_map(record.fields)
    if agent.state not in _ENDED:
        never = agent.state is AgentState.STARTING
        known = agent.why if agent.why.startswith("docker ") else why
        agent.fall(AgentState.NEVER_CONNECTED if never else life, record.at, known)
    elif record.shape == "agent_exited" and agent.state is AgentState.LOST:
        agent.explain(why)
    for op in _lost_ops(state, record, agent) if step else ():
        op.add(record, step, Component.DRIVER, Certainty.PREFIX)
        if op.jid is not None:
            state.others.add(op.jid)
        if op.sends:
            op.end(OpStatus.DESTROYED, record.at)
    return None


def _lost_ops(state: PassState, record: LogRecord, agent: AgentTrack) -> list[OpTrack]:
    """The ops that it had. The line about its connection usually comes before its exit and has ended them."""
    lost = [
        op
        for op in state.ops.open_ops()
        if (op.agent or op.assigned_agent) == agent.agent
        and op.kind == agent.kind
        and op.belongs_to_user(agent.uid)
    ]
    held = _HELD.findall(record.fields["held"] or "") if record.shape == "agent_exited" else ()
    ended = (state.ops.kept_with(prefix, lambda op: op.has_agent(agent))[-1:] for prefix in held)
    return lost + [op for ops in ended for op in ops if op.status is OpStatus.DESTROYED]


def _agent_freed(state: PassState, record: LogRecord) -> JobId | None:
    """Resources are freed: after an end that another line reports, or after a failed start."""
    agent = state.agents.of_driver(record)
    if record.fields["caller"] == FREED_BY_START and agent.state is AgentState.STARTING:
        agent.fall(AgentState.NEVER_CONNECTED, record.at, agent.why or "its start failed")
    return None


def _driver_note(state: PassState, record: LogRecord) -> JobId | None:
    """Another line of a driver: an error while its agent starts is the reason for its end."""
    agent = state.agents.of_driver(record)
    rest = record.fields["rest"] or ""
    if agent.state is AgentState.STARTING and rest.startswith("error="):
        error = rest.removeprefix("error=")
        found = _REASON.search(error)  # in a logged exception; else the line before its traceback tells
        agent.explain(f"its start failed: {found[1] if found else error.partition(' stack=')[0]}")
    return None


def _docker_failed(state: PassState, record: LogRecord) -> JobId | None:
    """A docker command ended with an error. The command that runs an agent ends with the agent."""
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
    """The path of an agent's log on a cluster, written by its start; the line before names the agent."""
    before = state.before
    if before is not None and before.shape == "agent_start_wanted":
        state.agents.of_driver(before).cluster_log = record.fields["path"]
    return None


_DRIVER = Component.DRIVER
_JID, _PREFIX, _ADJACENT, _FULL = Certainty.JID, Certainty.PREFIX, Certainty.ADJACENT, Certainty.FULL_ID

REPLY_WORDS = frozenset({"ok", "error", None})
"""Names of messages that do not contain the name of the op."""
NAMED_IN_REPLIES = frozenset({"run", "analysis"})
"""Ops whose replies had the op's name until 2024."""

_WAYPOINTS = frozenset({"agent_start_wanted", "agent_wait", "agent_ready", "slot_wait_driver"})


def _op_assigned(state: PassState, record: LogRecord) -> JobId | None:
    agent = state.agents.of_driver(record)
    fields = record.fields
    name = fields["name"]
    found = state.ops.open_with(
        fields["o"] or "",
        lambda t: (
            t.name == name and t.assigned_agent is None and not t.sends and t.belongs_to_user(agent.uid)
        ),
    )
    op = found[-1] if found else _adopt(state, record, agent)
    certain = op is state.newest or len(found) == 1
    op.assigned_agent = agent.agent
    op.driver, op.kind = agent.driver, agent.kind
    op.learn_user(agent.uid)
    op.status = OpStatus.WAITING
    add_step(op, record, "driver assigned", _DRIVER, _PREFIX, () if certain else found)
    if op.name in NEVER_SENT:
        op.end(OpStatus.ENDED, record.at)
    return op.jid


def _op_sent(state: PassState, record: LogRecord) -> JobId | None:
    agent = state.agents.of_driver(record)
    fields = record.fields
    run_dir = path_in(fields["run_dir"])
    jid = jid_of_run_dir(run_dir) if run_dir else None
    op, found = _unsent(state, record, agent, jid)
    if jid is not None and op.jid is None:
        state.ops.tie(op, jid)
        op.certainty = _JID
    op.run_dir = op.run_dir or run_dir
    op.sent_dir = run_dir if run_dir != op.run_dir else None
    agent.learn_cluster_dir(op.sent_dir or "")
    op.agent, op.driver, op.kind = agent.agent, agent.driver, agent.kind
    op.learn_user(agent.uid)
    agent.learn_user(op.uid)
    agent.speaks()
    op.sends += 1
    op.sent_at = record.at
    op.sent_turn = op.room.given
    op.status = OpStatus.SENT
    add_step(op, record, "sent", _DRIVER, _JID if jid is not None else _PREFIX, found if jid is None else ())
    return op.jid


def _unsent(
    state: PassState, record: LogRecord, agent: AgentTrack, jid: JobId | None
) -> tuple[OpTrack, list[OpTrack]]:
    """The op that a send line means, and all that it may mean.

    An op that was assigned to this agent comes before one whose agent was replaced or that was not assigned
    (such as the cancel of a time limit); the one just created comes before those that wait.
    """
    name = record.fields["name"]
    found = state.ops.open_with(
        record.fields["o"] or "",
        lambda t: (
            t.name == name
            and not t.sends
            and (jid is None or t.jid is None or t.jid == jid)
            and t.belongs_to_user(agent.uid)
            and (t.kind is None or (t.kind, t.driver) == (agent.kind, agent.driver))
        ),
    )
    meant = [t for t in found if t.assigned_agent == agent.agent] or found
    if not meant:
        return _adopt(state, record, agent), []
    return (state.newest if state.newest in meant else meant[0]), meant


def _adopt(state: PassState, record: LogRecord, agent: AgentTrack) -> OpTrack:
    """Make an op whose creation was not read, because reading began after it."""
    op = state.ops.create(record.fields["o"] or "", record.fields["name"] or "", record.source, None)
    op.learn_user(agent.uid)
    return op


def _not_delivered(state: PassState, record: LogRecord) -> JobId | None:
    op = latest_op(state, record, lambda t: t.sends > 0)
    if op is None:
        return None
    op.error = record.fields.get("error") or "websocket closed"
    op.add(record, "not delivered", _DRIVER, _ADJACENT)
    op.end(OpStatus.DESTROYED, record.at, "error")
    return op.jid


def _on_the_way(state: PassState, record: LogRecord) -> JobId | None:
    """A line of a driver about a waiting op: it waits for its agent's start, the agent, or a slot."""
    agent = state.agents.of_driver(record)
    step = step_words(record.shape)[0]
    if record.shape == "agent_start_wanted":
        agent.started_at = record.at
        agent.supervisor_at = record.offset
        agent.starts += 1
        agent.why = ""
        agent.enter(AgentState.STARTING, record.at)
    name, uid = record.fields["name"], agent.uid
    found = state.ops.kept_with(
        record.fields["o"] or "", lambda t: t.name == name and not t.sends and t.belongs_to_user(uid)
    )
    meant = [t for t in found if t.assigned_agent == agent.agent] or found
    if not meant:
        return None
    op = meant[-1]
    if op.name in NEVER_SENT:
        state.ops.reopen(op, OpStatus.WAITING)
        if record.shape == "agent_ready":
            op.end(OpStatus.ENDED, record.at)
    add_step(op, record, step, _DRIVER, _PREFIX, meant)
    return op.jid


def _agent_message(state: PassState, record: LogRecord) -> JobId | None:
    agent = state.agents.of_driver(record)
    _heard(agent, record)
    name = record.fields["op_name"]
    if name == "run_status_update":
        return None
    if record.fields["o"] == "None":
        if name == "alive":
            agent.connected_at = record.at
            agent.why = ""
            agent.enter(AgentState.CONNECTED, record.at)
        return None
    debug = state.debug
    op_id = debug.op_id if debug and op_prefix(debug.op_id or "") == record.fields["o"] else None
    message = AgentMessage(op_id, name, None, None, None)
    return _reply(state, record, agent, record.fields["o"] or "", message)


def _agent_error(state: PassState, record: LogRecord) -> JobId | None:
    agent = state.agents.of_driver(record)
    _heard(agent, record)
    text = record.fields["message"] or ""
    message = read_message(text)
    if message.op_id is not None:
        return _reply(state, record, agent, op_prefix(message.op_id), message)
    if message.jid or text.endswith("}"):
        return None
    # the op of an error whose line is cut: the only one that its agent has not answered
    held = _HELD.findall(record.fields["held"] or "")
    found = [op for op in held if _unanswered(state, agent, op, NOTHING)]
    return _reply(state, record, agent, found[0], message) if len(found) == 1 else None


def _reply(
    state: PassState, record: LogRecord, agent: AgentTrack, prefix: str, message: AgentMessage
) -> JobId | None:
    waiting = _unanswered(state, agent, prefix, message)
    if not waiting:
        if message.jid is not None:
            state.events.keep(message.jid, record, _DRIVER, "reply", _JID, "no op with this id is known")
        return message.jid
    op = waiting[0]
    op.op_id = message.op_id or op.op_id
    op.replies += 1
    op.replied_at = record.at if op.replied_at is None else op.replied_at
    failed = record.shape == "agent_error"
    if op.name not in RUNS:
        op.result = "error" if failed else "ok"
    if failed:
        op.error = message.error or op.error
    step = "reply error" if failed else f"reply {message.op_name}"
    add_step(op, record, step, _DRIVER, _FULL if message.op_id else _PREFIX, waiting)
    if op.name == "run_status" or (op.name == "run" and not failed):
        op.status = OpStatus.REPLIED
    else:
        op.end(OpStatus.ENDED, record.at, "error" if failed else "ok")
    return op.jid


def _unanswered(state: PassState, agent: AgentTrack, prefix: str, message: AgentMessage) -> list[OpTrack]:
    """The ops that a reply may mean, the likeliest first.

    Until 2024 a reply to a run or an analysis had the op's name, and each state of a run came as another
    reply: an agent has one run at a time, the one sent last. A canceled op may still be answered.
    """
    found = state.ops.open_with(prefix, lambda t: t.sends > 0 and t.has_agent(agent))
    if message.op_id and (known := [t for t in found if t.op_id == message.op_id]):
        return known
    if message.op_name not in REPLY_WORDS:
        found = [t for t in found if t.name == message.op_name]
        if message.op_name == "run" and found:
            return [max(found, key=lambda t: t.sent_turn)]
    elif state.replies_bear_names:
        found = [t for t in found if t.name not in NAMED_IN_REPLIES] or found
    return [t for t in found if not t.replies] or state.ops.kept_with(
        prefix,
        lambda t: t.sends > 0 and not t.replies and t.has_agent(agent) and t.status is not OpStatus.LOST,
    )[-1:]


def _late_reply(state: PassState, record: LogRecord) -> JobId | None:
    """A reply to an op that was given up before. Sirepo of 2020 writes the op's id as opName."""
    agent = state.agents.of_driver(record)
    name = record.fields["op_name"] or ""
    prefix = op_prefix(name) if is_full_id(name) else record.fields["o"] or ""
    found = state.ops.kept_with(prefix, lambda t: t.sends > 0 and t.has_agent(agent))
    if not found:
        return None
    add_step(found[-1], record, "late reply, ignored", _DRIVER, _PREFIX, found)
    return found[-1].jid


def _stray_message(state: PassState, record: LogRecord) -> JobId | None:
    """A message of an agent that this supervisor did not start: a reply to an op, or the state of a job."""
    op_id = read_message(record.fields["message"] or "").op_id
    if op_id is None:
        return from_agent(state, record)
    found = state.ops.kept_with(op_prefix(op_id), lambda t: t.op_id in (None, op_id))
    if not found:
        return None
    certainty = _FULL if found[-1].op_id else _PREFIX
    add_step(found[-1], record, "message from an agent that is not known", _DRIVER, certainty, found)
    return found[-1].jid


def note_place(state: PassState, record: LogRecord) -> None:
    if record.shape == "agent_error":
        message = read_message(record.fields["message"] or "")
        if message.op_id is None:
            state.update = record if message.jid else None
        elif message.op_name not in REPLY_WORDS:
            state.replies_bear_names = True
    elif record.fields["op_name"] == "run_status_update":
        state.update = record
    elif record.fields["o"] != "None" and record.fields["op_name"] not in REPLY_WORDS:
        state.replies_bear_names = True


def _heard(agent: AgentTrack, record: LogRecord) -> None:
    agent.messages += 1
    agent.last_message_at = record.at
    agent.speaks()


HANDLERS: Mapping[str, Handler] = {
    **dict.fromkeys(("agent_exec_dir", "container_up", "docker_command", "driver_made"), _agent_line),
    "agent_freed": _agent_freed,
    "driver_note": _driver_note,
    "docker_failed": _docker_failed,
    "cluster_log_path": _cluster_log,
    **dict.fromkeys(_ENDS, _agent_ended),
    "op_assigned": _op_assigned,
    "op_sent": _op_sent,
    "not_delivered": _not_delivered,
    "agent_message": _agent_message,
    "agent_error": _agent_error,
    "late_reply": _late_reply,
    "stray_message": _stray_message,
    **dict.fromkeys(_WAYPOINTS, _on_the_way),
}
