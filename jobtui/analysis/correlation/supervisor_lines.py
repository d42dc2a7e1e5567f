"""Lines of a supervisor about jobs, requests and ops."""

import re
from collections.abc import Iterator, Mapping

from jobtui.analysis.correlation.job_events import MERE_CHECKS
from jobtui.analysis.correlation.ops import OpTrack
from jobtui.analysis.correlation.supervisor_state import (
    FINAL_STATES,
    RUNS,
    Handler,
    PassState,
    jid_in,
    last_told,
    latest_op,
    path_in,
    read_message,
)
from jobtui.formats.schema import step_words
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import JobId, jid_of_run_dir, op_prefix
from jobtui.model.logs import LogRecord
from jobtui.model.ops import Certainty, Component, OpStatus

_SUPERVISOR, _DRIVER = Component.SUPERVISOR, Component.DRIVER
_JID, _PREFIX, _ADJACENT, _FULL = Certainty.JID, Certainty.PREFIX, Certainty.ADJACENT, Certainty.FULL_ID

STATUS_NEWS = frozenset({"late_update", "stale_update", "inactive_update"})
_OF_A_JOB = frozenset(
    {"canceled_after_restart", "cancel_ignored", "cancel_not_sent", "reply_ignored", "job_failed", "purged",
     "purge_failed", "request_refused", "request_not_met", "request_raised", "unhandled_message",
     "slot_wait_job", "serial_mismatch"}
)  # fmt: skip


LATE = 600 * SECOND
"""A line is not about an op created up to this much later. A clock that was set back differs by more."""


def _ops_at(state: PassState, jid: JobId, at: Nanos | None) -> Iterator[OpTrack]:
    """The ops of a job that were created by a time, newest first.

    Another log may be read ahead of the one that has the line: it is still about the run of its own time.
    """
    for op in reversed(state.ops.of_job(jid)):
        if at is None or op.created_at is None or not SECOND <= op.created_at - at < LATE:
            yield op


def _status(state: PassState, record: LogRecord) -> JobId | None:
    """The line that names the job of the update before it, and its new status."""
    jid = jid_in(record) or read_message(record.fields.get("message") or "").jid
    update = state.update
    if jid is None:
        return None
    word = record.fields.get("state")
    op = next((t for t in _ops_at(state, jid, record.at) if t.name in RUNS), None)
    if op is None:
        state.events.keep(jid, record, _SUPERVISOR, "status", _JID, "no run op of this job is known")
        return jid
    if update is not None and update.shape == "agent_message":
        op.updates += 1
        op.add(update, "update", _DRIVER, _ADJACENT)
    step = step_words(record.shape)[0] if record.shape in STATUS_NEWS else f"status {word}"
    op.add(record, step, _SUPERVISOR, _JID)
    if record.shape == "status_update" and word in FINAL_STATES:
        _end_runs(state, jid, record, word)
    return jid


def _end_runs(state: PassState, jid: JobId, record: LogRecord, result: str | None) -> None:
    for op in _ops_at(state, jid, record.at):
        if op.name in RUNS and op.is_open and op.sends:
            op.end(OpStatus.ENDED, record.at, result)


def _run_status_result(state: PassState, record: LogRecord) -> JobId | None:
    jid = jid_in(record)
    if jid is None:
        return None
    word = read_message(record.fields.get("reply") or "").state
    op = next((t for t in _ops_at(state, jid, record.at) if t.name == "run_status"), None)
    if op is None:
        return about_job(state, record)
    op.add(record, f"run_status result {word}", _SUPERVISOR, _JID)
    if word in FINAL_STATES:
        _end_runs(state, jid, record, word)
    return jid


def about_job(state: PassState, record: LogRecord) -> JobId | None:
    """A line that names a job: a step of its newest run, or kept with the job if there is none."""
    jid = jid_in(record) or read_message(record.fields.get("message") or "").jid
    if jid is None and record.shape == "serial_mismatch" and state.before is not None:
        jid = jid_in(state.before) if state.before.shape in _NAMING_A_JOB else None
    if jid is None:
        return None
    op = _to_newest_run(state, jid, record, _SUPERVISOR)
    if op is not None and record.shape == "canceled_after_restart":
        op.end(OpStatus.LOST, record.at, "canceled")
    return jid


def from_agent(state: PassState, record: LogRecord) -> JobId | None:
    """A driver's line about a job: an agent's message was refused."""
    jid = jid_in(record) or read_message(record.fields.get("message") or "").jid
    if jid is not None:
        _to_newest_run(state, jid, record, _DRIVER)
    return jid


def _to_newest_run(state: PassState, jid: JobId, record: LogRecord, component: Component) -> OpTrack | None:
    step, _ = step_words(record.shape)
    op = next((t for t in _ops_at(state, jid, record.at) if t.name == "run"), None)
    if op is None:
        state.events.keep(jid, record, component, step, _JID, "no run op of this job is known")
    else:
        op.add(record, step, component, _JID)
    return op


def _restarted(state: PassState, record: LogRecord) -> JobId | None:
    state.others |= state.restarts.restarted(state.log, record)
    state.agents.supervisor_restarted(record)
    return None


UNREQUESTED = frozenset({"run_status"})
"""Ops without a logged request: polls make them."""

_NAMING_A_JOB = frozenset({"request", "analysis_wanted", "cancel"})

_NAMED_OP = re.compile(r"_Op\((?:DESTROYED, )?(\w+), (\w{4})", re.ASCII)
"""An op in the text of a cancel until 2024. Today a cancel has a full id, or none."""

_OF_AN_OP = frozenset(
    {"reply_wait", "no_reply", "time_limit", "op_failed", "op_destroyed", "op_superseded", "op_agent_ready",
     "agent_start_delayed"}
)  # fmt: skip
_ENDS = frozenset({"no_reply", "op_destroyed"})
_SENT_OR_NOT: Mapping[str, bool] = {
    "reply_wait": True,
    "no_reply": True,
    "time_limit": True,
    "op_destroyed": False,
}
"""Whether the op of a line must have been sent."""


def _request_failed(state: PassState, record: LogRecord) -> JobId | None:
    jid = jid_in(record)
    if jid is None:
        return None
    api = record.fields["api"]
    unsent = [t for t in state.ops.of_job(jid) if not t.sends and not t.error and t.api in (api, None)]
    op = max(unsent, key=last_told, default=None)
    if op is None:
        return about_job(state, record)
    op.add(record, "request failed", _SUPERVISOR, _JID)
    op.error = record.fields["error"]
    op.end(OpStatus.DESTROYED, record.at, "error")
    return jid


def _op_created(state: PassState, record: LogRecord) -> JobId | None:
    fields = record.fields
    op = state.ops.create(fields["o"] or "", fields["name"] or "", record.source, record.at)
    state.newest = op
    if run_dir := path_in(fields["run_dir"]):
        op.run_dir = run_dir
        state.others |= state.restarts.learn_run_dir(state.log, run_dir)
        if jid := jid_of_run_dir(run_dir):
            state.ops.tie(op, jid)
            op.certainty = _JID
    _take_what_made_it(state, op)
    op.add(record, "op created", _SUPERVISOR, op.certainty if op.run_dir else _ADJACENT)
    if op.name in MERE_CHECKS:
        op.end(OpStatus.ENDED, record.at)
    return op.jid


def _take_what_made_it(state: PassState, op: OpTrack) -> None:
    """Link an op to its request or cancel. An op without a run directory gets its job from it."""
    before = state.before
    if before is not None and before.shape in _NAMING_A_JOB and op.jid in (None, jid_in(before)):
        jid = jid_in(before)
        if jid is not None:
            state.ops.tie(op, jid)
        if op.name == "cancel":
            if not read_message(before.fields.get("args") or "").op_id:
                state.events.claim_request(op, before)
            op.add(before, "cancel", _SUPERVISOR, _ADJACENT)
            return
    if op.name not in UNREQUESTED:
        state.events.claim_request(op, before)


def _slot(state: PassState, record: LogRecord) -> JobId | None:
    jid = jid_in(record)
    entering = record.shape != "slot_got"
    op = latest_op(state, record, lambda t: not t.sends and (jid is None or t.jid in (None, jid)))
    if op is None:
        return about_job(state, record) if jid else None
    op.add(record, "waits for a slot" if entering else "got the slot", _SUPERVISOR, _JID if jid else _PREFIX)
    return op.jid


def _cancel(state: PassState, record: LogRecord) -> JobId | None:
    jid = jid_in(record)
    if jid is None:
        return None
    args = record.fields["args"] or ""
    timed_out = read_message(args).op_id
    named = set(_NAMED_OP.findall(args))
    for op in state.ops.of_job(jid):
        if timed_out:
            hit, step = op.op == op_prefix(timed_out), "canceled by the time limit"
        elif named:
            hit, step = op.name != "cancel" and (op.name, op.op) in named, "canceled"
        else:
            hit, step = op.name == "run", "canceled by the user"
        if hit and op.is_open:
            op.op_id = timed_out or op.op_id
            op.add(record, step, _SUPERVISOR, _FULL if timed_out else _JID)
            op.end(OpStatus.ENDED, record.at, "canceled")
    return jid


def _of_op(state: PassState, record: LogRecord) -> JobId | None:
    """A line that names only an op: it means the last op with this prefix."""
    sent = _SENT_OR_NOT.get(record.shape)
    op = latest_op(state, record, lambda t: sent is None or sent == (t.sends > 0))
    if op is None:
        return None
    op.told_destroyed |= record.fields.get("dead") is not None
    op.add(record, step_words(record.shape)[0], _SUPERVISOR, _PREFIX)
    op.error = record.fields.get("op_error") or record.fields.get("error") or op.error
    if record.shape in _ENDS or record.fields.get("dead"):
        op.end(OpStatus.DESTROYED, record.at)
    return op.jid


HANDLERS: Mapping[str, Handler] = {
    **dict.fromkeys(("status_update", *STATUS_NEWS), _status),
    "run_status_result": _run_status_result,
    "supervisor_started": _restarted,
    "debug_message": lambda state, record: None,
    "foreign_update": from_agent,
    **dict.fromkeys(_OF_A_JOB, about_job),
    **dict.fromkeys(("request", "analysis_wanted"), lambda state, record: state.events.requested(record)),
    "request_failed": _request_failed,
    "op_created": _op_created,
    **dict.fromkeys(("slot_wait", "slot_got"), _slot),
    "cancel": _cancel,
    **dict.fromkeys(_OF_AN_OP, _of_op),
}
