"""A supervisor's lines about requests and ops: asked for, created, waiting for a slot, canceled, given up."""

import re
from collections.abc import Mapping

from jobtui.analysis.job_events import MERE_CHECKS
from jobtui.analysis.messages import read_message
from jobtui.analysis.op_track import OpTrack
from jobtui.analysis.pass_state import Handler, PassState, jid_in, last_line, latest_op, path_in
from jobtui.analysis.supervisor_jobs import about_job
from jobtui.model.ids import JobId, jid_of_run_dir, op_prefix
from jobtui.model.logs import LogRecord
from jobtui.model.ops import Certainty, Component, OpStatus

UNREQUESTED = frozenset({"run_status"})
"""Ops that no logged request asks for: polls make them."""

_NAMING_A_JOB = frozenset({"request", "analysis_wanted", "cancel"})
_SUPERVISOR = Component.SUPERVISOR
_JID, _PREFIX, _ADJACENT, _FULL = Certainty.JID, Certainty.PREFIX, Certainty.ADJACENT, Certainty.FULL_ID

_NAMED_OP = re.compile(r"_Op\((?:DESTROYED, )?(\w+), (\w{4})", re.ASCII)
"""An op in the text of a cancel, as it was until 2024; today a cancel names a full id, or none."""

_OP_STEPS: Mapping[str, tuple[str, bool]] = {
    "reply_wait": ("waits for the reply", False),
    "no_reply": ("destroyed, no reply", True),
    "time_limit": ("time limit reached", False),
    "op_failed": ("op failed", False),
    "op_destroyed": ("given up before it was sent", True),
    "op_superseded": ("ignored, another run took over", False),
    "op_agent_ready": ("agent alive", False),
    "agent_start_delayed": ("agent start delayed", False),
}

_SENT_OR_NOT: Mapping[str, bool] = {
    "reply_wait": True,
    "no_reply": True,
    "time_limit": True,
    "op_destroyed": False,
}
"""Whether the op that a line speaks of must have been sent."""


def _request(state: PassState, record: LogRecord) -> JobId | None:
    return state.events.requested(record)


def _request_failed(state: PassState, record: LogRecord) -> JobId | None:
    jid = jid_in(record)
    if jid is None:
        return None
    api = record.fields["api"]
    unsent = [t for t in state.ops.of_job(jid) if not t.sends and not t.error and t.api in (api, None)]
    op = max(unsent, key=last_line, default=None)
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
    """Tie an op to the request or cancel it came from; for one without a run directory, to its job too."""
    before = state.before
    if before is not None and before.shape in _NAMING_A_JOB and op.jid in (None, jid_in(before)):
        jid = jid_in(before)
        if jid is not None:
            state.ops.tie(op, jid)
        if op.name == "cancel":
            _take_cancel(state, op, before)
            return
    if op.name not in UNREQUESTED:
        state.events.claim_request(op, before)


def _take_cancel(state: PassState, op: OpTrack, before: LogRecord) -> None:
    if not read_message(before.fields.get("args") or "").op_id:
        state.events.claim_request(op, before)
    op.add(before, "cancel", _SUPERVISOR, _ADJACENT)


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
    """A line that names nothing but an op: it speaks of the one last spoken of."""
    sent = _SENT_OR_NOT.get(record.shape)
    op = latest_op(state, record, lambda t: sent is None or sent == (t.sends > 0))
    if op is None:
        return None
    op.told_destroyed |= record.fields.get("dead") is not None
    step, ends = _OP_STEPS[record.shape]
    op.add(record, step, _SUPERVISOR, _PREFIX)
    op.error = record.fields.get("op_error") or record.fields.get("error") or op.error
    if ends or record.fields.get("dead"):
        op.end(OpStatus.DESTROYED, record.at)
    return op.jid


HANDLERS: Mapping[str, Handler] = {
    "request": _request,
    "analysis_wanted": _request,
    "request_failed": _request_failed,
    "op_created": _op_created,
    "slot_wait": _slot,
    "slot_got": _slot,
    "cancel": _cancel,
    **dict.fromkeys(_OP_STEPS, _of_op),
}
"""What reads each shape."""
