"""Lines of a supervisor: about jobs, requests and ops; those of its drivers about agents and their ops."""

import re
from collections.abc import Collection, Mapping

from jobtui.analysis.correlation.agents import AgentTrack
from jobtui.analysis.correlation.job_events import MERE_CHECKS
from jobtui.analysis.correlation.ops import OpTrack
from jobtui.analysis.correlation.supervisor_state import (
    FINAL_STATES,
    NEVER_SENT,
    NOTHING,
    RUNS,
    AgentMessage,
    Handler,
    PassState,
    add_step,
    jid_in,
    last_named,
    latest_op,
    message_in,
    path_in,
    read_message,
)
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import JobId, is_full_id, jid_of_run_dir, op_prefix
from jobtui.model.logs import LogRecord
from jobtui.model.ops import AgentState, Certainty, OpStatus

_FULL, _JID, _PREFIX, _ADJACENT = Certainty.FULL_ID, Certainty.JID, Certainty.PREFIX, Certainty.ADJACENT
_WAITING, _SENT, _REPLIED = OpStatus.WAITING, OpStatus.SENT, OpStatus.REPLIED
_ENDED, _DESTROYED, _LOST = OpStatus.ENDED, OpStatus.DESTROYED, OpStatus.LOST
_STARTING, _UNKNOWN = AgentState.STARTING, AgentState.UNKNOWN
"""By names of their own: to get a member from its class takes twenty times as long in Python 3.11."""

STATUS_NEWS = frozenset({"late_update", "stale_update", "inactive_update"})
_OF_A_JOB = frozenset(
    {"canceled_after_restart", "cancel_ignored", "cancel_not_sent", "reply_ignored", "job_failed", "purged",
     "purge_failed", "request_refused", "request_not_met", "request_raised", "unhandled_message",
     "slot_wait_job", "serial_mismatch"}
)  # fmt: skip

LATE = 600 * SECOND
"""A line is not about an op created up to this much later. A clock that was set back differs by more."""


def _is_before(op: OpTrack, at: Nanos | None) -> bool:
    """Whether an op was created by a time.

    Another log may be read ahead of the one that has the line: it is still about the run of its own time.
    """
    return at is None or op.created_at is None or not SECOND <= op.created_at - at < LATE


def _newest_of(state: PassState, jid: JobId, at: Nanos | None, names: Collection[str]) -> OpTrack | None:
    """The newest op of a job with one of these names that was created by a time."""
    for op in reversed(state.ops.of_job(jid)):
        if op.name in names and _is_before(op, at):
            return op
    return None


def _status(state: PassState, record: LogRecord) -> None:
    """The line that names the job of the update before it, and its new status."""
    jid, update, word = jid_in(record), state.update, record.fields.get("state")
    if jid is None:
        return
    op = _newest_of(state, jid, record.at, RUNS)
    if op is None:
        state.events.keep(jid, record, _NO_RUN, "status")
        return
    if update is not None and update.shape == "agent_message":
        op.updates += 1
        op.add(update, _ADJACENT, "update")
    op.add(record, _JID, "" if record.shape in STATUS_NEWS else f"status {word}")
    if record.shape == "status_update" and word in FINAL_STATES:
        _end_runs(state, jid, record, word)


def _end_runs(state: PassState, jid: JobId, record: LogRecord, result: str | None) -> None:
    for op in state.ops.of_job(jid):
        if op.is_open and op.name in RUNS and op.sends and _is_before(op, record.at):
            op.end(_ENDED, record.at, result)


def _run_status_result(state: PassState, record: LogRecord) -> None:
    jid = jid_in(record)
    if jid is None:
        return
    word = read_message(record.fields.get("reply")).state
    op = _newest_of(state, jid, record.at, ("run_status",))
    if op is None:
        about_job(state, record)
        return
    op.add(record, _JID, f"run_status result {word}")
    if word in FINAL_STATES:
        _end_runs(state, jid, record, word)


def about_job(state: PassState, record: LogRecord) -> None:
    """A line that names a job: a step of its newest run, or kept with the job if there is none."""
    jid = jid_in(record)
    if jid is None and record.shape == "serial_mismatch" and state.before is not None:
        jid = jid_in(state.before) if state.before.shape in _NAMING_A_JOB else None
    if jid is None:
        return
    op = _newest_of(state, jid, record.at, ("run",))
    if op is None:
        state.events.keep(jid, record, _NO_RUN)
        return
    op.add(record, _JID)
    if record.shape == "canceled_after_restart":
        op.end(_LOST, record.at, "canceled")


_NO_RUN = "no run op of this job is known"


def _restarted(state: PassState, record: LogRecord) -> None:
    state.restarts.restarted(state.log, record)
    state.agents.supervisor_restarted(record)


UNREQUESTED = frozenset({"run_status"})
"""Ops without a logged request: polls make them."""

_NAMING_A_JOB = frozenset({"request", "analysis_wanted", "cancel"})

_NAMED_OP = re.compile(r"_Op\((?:DESTROYED, )?(\w+), (\w{4})", re.ASCII)
"""An op in the text of a cancel until 2024. Today a cancel has a full id, or none."""

_OF_AN_OP: Mapping[str, tuple[bool | None, bool]] = {
    "reply_wait": (True, False), "no_reply": (True, True), "time_limit": (True, False),
    "op_destroyed": (False, True), "op_failed": (None, False), "op_superseded": (None, False),
    "op_agent_ready": (None, False), "agent_start_delayed": (None, False),
}  # fmt: skip
"""Lines that name only an op: whether it must have been sent, None if it may; whether they end it."""


def _request_failed(state: PassState, record: LogRecord) -> None:
    jid = jid_in(record)
    if jid is None:
        return
    api = record.fields["api"]
    unsent = [t for t in state.ops.of_job(jid) if not t.sends and not t.error and t.api in (api, None)]
    op = max(unsent, key=last_named, default=None)
    if op is None:
        about_job(state, record)
        return
    op.add(record, _JID)
    op.error = record.fields["error"]
    op.end(_DESTROYED, record.at, "error")


def _op_created(state: PassState, record: LogRecord) -> None:
    fields = record.fields
    op = state.ops.create(fields["o"] or "", fields["name"] or "", record.source, record.at)
    state.newest = op
    if run_dir := path_in(fields["run_dir"]):
        op.run_dir = run_dir
        state.restarts.learn_run_dir(state.log, run_dir)
        if jid := jid_of_run_dir(run_dir):
            state.ops.tie(op, jid)
            op.certainty = _JID
    _take_what_made_it(state, op)
    op.add(record, op.certainty if op.run_dir else _ADJACENT)
    if op.name in MERE_CHECKS:
        op.end(_ENDED, record.at)


def _take_what_made_it(state: PassState, op: OpTrack) -> None:
    """Link an op to its request or cancel. An op without a run directory gets its job from it."""
    before = state.before
    if before is not None and before.shape in _NAMING_A_JOB and op.jid in (None, jid_in(before)):
        jid = jid_in(before)
        if jid is not None:
            state.ops.tie(op, jid)
        if op.name == "cancel":
            if not read_message(before.fields.get("args")).op_id:
                state.events.claim_request(op, before)
            op.add(before, _ADJACENT, "cancel")
            return
    if op.name not in UNREQUESTED:
        state.events.claim_request(op, before)


def _slot(state: PassState, record: LogRecord) -> None:
    jid = jid_in(record)
    found = [t for t in state.named(record) if not t.sends and (jid is None or t.jid in (None, jid))]
    op = latest_op(record, found)
    if op is None:
        about_job(state, record)
    else:
        op.add(record, _JID if jid else _PREFIX)


def _cancel(state: PassState, record: LogRecord) -> None:
    jid = jid_in(record)
    if jid is None:
        return
    args = record.fields["args"] or ""
    timed_out = read_message(args).op_id
    named = set(_NAMED_OP.findall(args))
    for op in state.ops.of_job(jid):
        if not op.is_open:
            continue
        if timed_out:
            hit, step = op.op == op_prefix(timed_out), "canceled by the time limit"
        elif named:
            hit, step = op.name != "cancel" and (op.name, op.op) in named, "canceled"
        else:
            hit, step = op.name == "run", "canceled by the user"
        if hit:
            op.op_id = timed_out or op.op_id
            op.add(record, _FULL if timed_out else _JID, step)
            op.end(_ENDED, record.at, "canceled")


def _of_op(state: PassState, record: LogRecord) -> None:
    """A line that names only an op: it means the last op with this prefix."""
    sent, is_end = _OF_AN_OP[record.shape]
    op = latest_op(record, [t for t in state.named(record) if sent is None or sent == (t.sends > 0)])
    if op is None:
        return
    op.saw_destroyed |= record.fields.get("dead") is not None
    op.add(record, _PREFIX)
    op.error = record.fields.get("op_error") or record.fields.get("error") or op.error
    if is_end or record.fields.get("dead"):
        op.end(_DESTROYED, record.at)


_AGENT_ENDS: Mapping[str, tuple[AgentState, str, str]] = {
    "agent_not_started": (
        AgentState.NEVER_CONNECTED, "did not connect within {timeout} s", "agent did not start in time",
    ),
    "agent_closed": (AgentState.LOST, "its connection ended", "agent lost"),
    "agent_exited": (AgentState.LOST, "it ended with code {returncode}", "agent exited"),
    "agent_killed": (AgentState.KILLED, "the supervisor stopped it", ""),
    "agent_idle": (AgentState.KILLED, "stopped when idle", ""),
}  # fmt: skip
"""An agent's end by the shape of the line: its state then, the reason, and the step of the ops it had."""
_OVER = frozenset({AgentState.LOST, AgentState.KILLED, AgentState.NEVER_CONNECTED})
"""States after an end: further lines about it come from the cleanup and are ignored."""

_HELD = re.compile(r"_Op\(\w+, (\w{4})")
_SHOW_A_START = frozenset({"agent_exec_dir", "container_up"})
"""Lines that show a start if its first line was not read."""
FREED_BY_START = "_agent_start"
"""The supervisor's function that gives up an agent whose start has failed."""
_REASON = re.compile(r"'reason': '([\w-]+)'", re.ASCII)
_STOPS = frozenset({"stop", "rm", "kill"})
"""Docker commands of the cleanup. Their failure says nothing about the agent."""


def _agent_line(state: PassState, record: LogRecord) -> None:
    agent = state.agents.of_driver(record)
    fields = record.fields
    agent.learn_exec_dir(fields.get("dir") or "")
    agent.learn_command(fields.get("command") or "")
    if record.shape == "container_up":
        agent.learn_container(fields["container"] or "", fields["cid"] or "")
    if record.shape in _SHOW_A_START and agent.state is _UNKNOWN:
        agent.enter(_STARTING, record.at)


def _agent_ended(state: PassState, record: LogRecord) -> None:
    agent = state.agents.of_driver(record)
    life, words, step = _AGENT_ENDS[record.shape]
    why = words.format_map(record.fields)
    if agent.state not in _OVER:
        never = agent.state is _STARTING
        known = agent.why if agent.why.startswith("docker ") else why
        agent.fall(AgentState.NEVER_CONNECTED if never else life, record.at, known)
    elif record.shape == "agent_exited" and agent.state is AgentState.LOST:
        agent.explain(why)
    for op in _lost_ops(state, record, agent) if step else ():
        op.add(record, _PREFIX, step)
        if op.sends:
            op.end(_DESTROYED, record.at)


def _lost_ops(state: PassState, record: LogRecord, agent: AgentTrack) -> list[OpTrack]:
    """The ops that it had. The line about its connection usually comes before its exit and has ended them."""
    lost = [
        op
        for op in state.ops.open_ops()
        if op.any_agent == agent.agent and op.kind == agent.kind and op.belongs_to_user(agent.uid)
    ]
    held = _HELD.findall(record.fields["held"] or "") if record.shape == "agent_exited" else ()
    ended = ([op for op in state.ops.kept_with(prefix) if op.has_agent(agent)][-1:] for prefix in held)
    return lost + [op for ops in ended for op in ops if op.status is _DESTROYED]


def _agent_freed(state: PassState, record: LogRecord) -> None:
    """Resources are freed: after an end that another line reports, or after a failed start."""
    agent = state.agents.of_driver(record)
    if record.fields["caller"] == FREED_BY_START and agent.state is _STARTING:
        agent.fall(AgentState.NEVER_CONNECTED, record.at, agent.why or "its start failed")


def _driver_note(state: PassState, record: LogRecord) -> None:
    """Another line of a driver: an error while its agent starts is the reason for its end."""
    agent = state.agents.of_driver(record)
    rest = record.fields["rest"] or ""
    if agent.state is _STARTING and rest.startswith("error="):
        error = rest.removeprefix("error=")
        found = _REASON.search(error)  # in a logged exception; else the line before its traceback tells
        agent.explain(f"its start failed: {found[1] if found else error.partition(' stack=')[0]}")


def _docker_failed(state: PassState, record: LogRecord) -> None:
    """A docker command ended with an error. The command that runs an agent ends with the agent."""
    fields = record.fields
    agent = state.agents.in_container(fields["container"] or "")
    if agent is None:
        return
    agent.learn_command(fields["command"] or "")
    error = fields["error"]
    if fields["verb"] not in _STOPS and agent.state is not AgentState.KILLED:
        agent.explain(f"docker {fields['verb']}: {error}" if error else "its container ended")


def _cluster_log(state: PassState, record: LogRecord) -> None:
    """The path of an agent's log on a cluster, written by its start; the line before names the agent."""
    before = state.before
    if before is not None and before.shape == "agent_start_wanted":
        state.agents.of_driver(before).cluster_log = record.fields["path"]


REPLY_WORDS = frozenset({"ok", "error", None})
"""Names of messages that do not contain the name of the op."""
NAMED_IN_REPLIES = frozenset({"run", "analysis"})
"""Ops whose replies had the op's name until 2024."""

_WAYPOINTS = frozenset({"agent_start_wanted", "agent_wait", "agent_ready", "slot_wait_driver"})


def _op_assigned(state: PassState, record: LogRecord) -> None:
    agent = state.agents.of_driver(record)
    found = [
        t
        for t in state.named(record)
        if t.is_open and t.assigned_agent is None and not t.sends and t.belongs_to_user(agent.uid)
    ]
    op = found[-1] if found else _adopt(state, record, agent)
    certain = op is state.newest or len(found) == 1
    op.assigned_agent = agent.agent
    op.driver, op.kind = agent.driver, agent.kind
    op.learn_user(agent.uid)
    op.status = _WAITING
    add_step(op, record, _PREFIX, () if certain else found)
    if op.name in NEVER_SENT:
        op.end(_ENDED, record.at)


def _op_sent(state: PassState, record: LogRecord) -> None:
    agent = state.agents.of_driver(record)
    run_dir = path_in(record.fields["run_dir"])
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
    op.sent_turn = op.shared.given
    op.status = _SENT
    add_step(op, record, _JID if jid is not None else _PREFIX, found if jid is None else ())


def _unsent(
    state: PassState, record: LogRecord, agent: AgentTrack, jid: JobId | None
) -> tuple[OpTrack, list[OpTrack]]:
    """The op that a send line means, and all that it may mean.

    An op that was assigned to this agent comes before one whose agent was replaced or that was not assigned
    (such as the cancel of a time limit); the one just created comes before those that wait.
    """
    found = [
        t
        for t in state.named(record)
        if t.is_open
        and not t.sends
        and (jid is None or t.jid is None or t.jid == jid)
        and t.belongs_to_user(agent.uid)
        and (t.kind is None or (t.kind, t.driver) == (agent.kind, agent.driver))
    ]
    fitting = [t for t in found if t.assigned_agent == agent.agent] or found
    if not fitting:
        return _adopt(state, record, agent), []
    return (state.newest if state.newest in fitting else fitting[0]), fitting


def _adopt(state: PassState, record: LogRecord, agent: AgentTrack) -> OpTrack:
    """Make an op whose creation was not read, because reading began after it."""
    op = state.ops.create(record.fields["o"] or "", record.fields["name"] or "", record.source, None)
    op.learn_user(agent.uid)
    return op


def _not_delivered(state: PassState, record: LogRecord) -> None:
    op = latest_op(record, [t for t in state.named(record) if t.sends])
    if op is not None:
        op.error = record.fields.get("error") or "websocket closed"
        op.add(record, _ADJACENT)
        op.end(_DESTROYED, record.at, "error")


def _on_the_way(state: PassState, record: LogRecord) -> None:
    """A line of a driver about a waiting op: it waits for its agent's start, the agent, or a slot."""
    agent = state.agents.of_driver(record)
    if record.shape == "agent_start_wanted":
        agent.started_at = record.at
        agent.supervisor_at = record.offset
        agent.starts += 1
        agent.why = ""
        agent.enter(_STARTING, record.at)
    found = [t for t in state.named(record) if not t.sends and t.belongs_to_user(agent.uid)]
    fitting = [t for t in found if t.assigned_agent == agent.agent] or found
    if not fitting:
        return
    op = fitting[-1]
    if op.name in NEVER_SENT:
        state.ops.reopen(op, _WAITING)
        if record.shape == "agent_ready":
            op.end(_ENDED, record.at)
    add_step(op, record, _PREFIX, fitting)


def _agent_message(state: PassState, record: LogRecord) -> None:
    agent = state.agents.of_driver(record)
    _note_contact(agent, record)
    name = record.fields["op_name"]
    if name == "job_cmd_stderr":
        _sent_stderr(state, record)
    elif record.fields["o"] != "None" and name != "run_status_update":
        before = state.before
        full_id = message_in(before).op_id if before and before.shape == "debug_message" else None
        op_id = full_id if full_id and op_prefix(full_id) == record.fields["o"] else None
        _reply(state, record, agent, record.fields["o"] or "", AgentMessage(op_id, name))
    elif name == "alive":
        agent.connected_at = record.at
        agent.why = ""
        agent.enter(AgentState.CONNECTED, record.at)


def _sent_stderr(state: PassState, record: LogRecord) -> None:
    """An agent sends on what job_cmd wrote, and for which op it does not say: it counts where it has one."""
    agent, held = state.agents.of_driver(record), _HELD.findall(record.fields["held"] or "")
    ops = state.ops.kept_with(held[0]) if len(held) == 1 else ()
    found = [t for t in ops if t.is_open and t.has_agent(agent)]
    for op in found if len(found) == 1 else ():
        op.wrote_stderr = True
        op.note_change()


def _agent_error(state: PassState, record: LogRecord) -> None:
    agent = state.agents.of_driver(record)
    _note_contact(agent, record)
    message = message_in(record)
    found = [op_prefix(message.op_id)] if message.op_id is not None else []
    if not found and not message.jid and not (record.fields["message"] or "").endswith("}"):
        # the op of an error whose line is cut: the only one that its agent has not answered
        held = _HELD.findall(record.fields["held"] or "")
        found = [op for op in held if _unanswered(state, agent, op, NOTHING)]
    if len(found) == 1:
        _reply(state, record, agent, found[0], message)


def _reply(
    state: PassState, record: LogRecord, agent: AgentTrack, prefix: str, message: AgentMessage
) -> None:
    waiting = _unanswered(state, agent, prefix, message)
    if not waiting:
        if message.jid is not None:
            state.events.keep(message.jid, record, "no op with this id is known", "reply")
        return
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
    add_step(op, record, _FULL if message.op_id else _PREFIX, waiting, step)
    if op.name == "run_status" or (op.name == "run" and not failed):
        op.status = _REPLIED
    else:
        op.end(_ENDED, record.at, "error" if failed else "ok")


def _unanswered(state: PassState, agent: AgentTrack, prefix: str, message: AgentMessage) -> list[OpTrack]:
    """The ops that a reply may mean, the likeliest first.

    Until 2024 a reply to a run or an analysis had the op's name, and each state of a run came as another
    reply: an agent has one run at a time, the one sent last. A canceled op may still be answered.
    """
    sent = [t for t in state.ops.kept_with(prefix) if t.sends and t.has_agent(agent)]
    found = [t for t in sent if t.is_open]
    if message.op_id and (known := [t for t in found if t.op_id == message.op_id]):
        return known
    if message.op_name not in REPLY_WORDS:
        found = [t for t in found if t.name == message.op_name]
        if message.op_name == "run" and found:
            return [max(found, key=lambda t: t.sent_turn)]
    elif state.replies_bear_names:
        found = [t for t in found if t.name not in NAMED_IN_REPLIES] or found
    new = [t for t in found if not t.replies]
    return new or [t for t in sent if not t.replies and t.status is not _LOST][-1:]


def _late_reply(state: PassState, record: LogRecord) -> None:
    """A reply to an op that was given up before. Sirepo of 2020 writes the op's id as opName."""
    agent = state.agents.of_driver(record)
    name = record.fields["op_name"] or ""
    prefix = op_prefix(name) if is_full_id(name) else record.fields["o"] or ""
    found = [t for t in state.ops.kept_with(prefix) if t.sends and t.has_agent(agent)]
    if found:
        add_step(found[-1], record, _PREFIX, found)


def _stray_message(state: PassState, record: LogRecord) -> None:
    """A message of an agent that this supervisor did not start: a reply to an op, or the state of a job."""
    op_id = message_in(record).op_id
    if op_id is None:
        about_job(state, record)
    elif found := [t for t in state.ops.kept_with(op_prefix(op_id)) if t.op_id in (None, op_id)]:
        add_step(found[-1], record, _FULL if found[-1].op_id else _PREFIX, found)


NOTED = frozenset(
    {"agent_error", "agent_message", "foreign_update", "status_update", "stray_message", "supervisor_started",
     *STATUS_NEWS}
)  # fmt: skip
"""Lines of which the next one needs to know, also if a copy had them before."""


def note_place(state: PassState, record: LogRecord) -> None:
    if record.shape == "agent_error":
        message = message_in(record)
        if message.op_id is None:
            state.update = record if message.jid else None
        elif message.op_name not in REPLY_WORDS:
            state.replies_bear_names = True
    elif record.shape != "agent_message":
        state.update = None
        if record.shape == "supervisor_started":
            state.newest = None
    elif record.fields["op_name"] == "run_status_update":
        state.update = record
    elif record.fields["o"] != "None" and record.fields["op_name"] not in REPLY_WORDS:
        state.replies_bear_names = True


def _note_contact(agent: AgentTrack, record: LogRecord) -> None:
    agent.messages += 1
    agent.last_message_at = record.at
    agent.speaks()


HANDLERS: Mapping[str, Handler] = {
    **dict.fromkeys(("status_update", *STATUS_NEWS), _status),
    "run_status_result": _run_status_result,
    "supervisor_started": _restarted,
    "debug_message": lambda state, record: None,
    **dict.fromkeys((*_OF_A_JOB, "foreign_update"), about_job),
    **dict.fromkeys(("request", "analysis_wanted"), lambda state, record: state.events.requested(record)),
    "request_failed": _request_failed,
    "op_created": _op_created,
    **dict.fromkeys(("slot_wait", "slot_got"), _slot),
    "cancel": _cancel,
    **dict.fromkeys(_OF_AN_OP, _of_op),
    **dict.fromkeys(("agent_exec_dir", "container_up", "docker_command", "driver_made"), _agent_line),
    "agent_freed": _agent_freed,
    "driver_note": _driver_note,
    "docker_failed": _docker_failed,
    "cluster_log_path": _cluster_log,
    **dict.fromkeys(_AGENT_ENDS, _agent_ended),
    "op_assigned": _op_assigned,
    "op_sent": _op_sent,
    "not_delivered": _not_delivered,
    "agent_message": _agent_message,
    "agent_error": _agent_error,
    "job_cmd_stderr": _sent_stderr,
    "late_reply": _late_reply,
    "stray_message": _stray_message,
    **dict.fromkeys(_WAYPOINTS, _on_the_way),
}
"""The handler of each shape. A shape without one says nothing about a job."""
