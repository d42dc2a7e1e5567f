"""A supervisor's lines about jobs as wholes: news of their state, results of polls, what a restart did."""

from collections.abc import Mapping

from jobtui.analysis.messages import read_message
from jobtui.analysis.op_track import OpTrack
from jobtui.analysis.pass_state import FINAL_STATES, RUNS, Handler, PassState, jid_in
from jobtui.model.ids import JobId
from jobtui.model.logs import LogRecord
from jobtui.model.ops import Certainty, Component, OpStatus

_SUPERVISOR, _DRIVER = Component.SUPERVISOR, Component.DRIVER
_JID, _ADJACENT = Certainty.JID, Certainty.ADJACENT

_STATUS_STEPS: Mapping[str, str] = {
    "late_update": "late status, ignored",
    "stale_update": "status of an older run, ignored",
    "inactive_update": "status for a job not in memory",
}
_JOB_STEPS: Mapping[str, str] = {
    "canceled_after_restart": "canceled, was live when the supervisor stopped",
    "cancel_ignored": "cancel ignored, not running",
    "cancel_not_sent": "cancel could not be sent",
    "reply_ignored": "reply ignored, the record has changed",
    "job_failed": "exception in the supervisor",
    "purged": "run directory purged",
    "purge_failed": "run directory not purged",
    "request_refused": "request refused, the job is another user's",
    "request_not_met": "request cannot be met",
    "request_raised": "exception in the supervisor",
    "unhandled_message": "message not understood",
    "slot_wait_job": "waits for the run dir",
    "request_failed": "request failed",
}
_REFUSALS: Mapping[str, str] = {
    "foreign_update": "news from another user's agent, ignored",
    "stray_message": "message from an agent that is not known",
}


def _status(state: PassState, record: LogRecord) -> JobId | None:
    """The line that names the job of the update before it, and what became of it."""
    jid = jid_in(record) or read_message(record.fields.get("message") or "").jid
    update, state.update = state.update, None
    if jid is None:
        return None
    word = record.fields.get("state")
    op = next((t for t in reversed(state.ops.of_job(jid)) if t.name in RUNS), None)
    if op is None:
        state.events.keep(jid, record, _SUPERVISOR, "status", _JID, "no run op of this job is known")
        return jid
    if update is not None and update[0].shape == "agent_message":
        op.updates += 1
        op.add(update[0], "update", _DRIVER, _ADJACENT)
    op.add(record, _STATUS_STEPS.get(record.shape, f"status {word}"), _SUPERVISOR, _JID)
    if record.shape == "status_update" and word in FINAL_STATES:
        _end_runs(state, jid, record, word)
    return jid


def _end_runs(state: PassState, jid: JobId, record: LogRecord, result: str | None) -> None:
    for op in state.ops.of_job(jid):
        if op.name in RUNS and op.is_open and op.sends:
            op.end(OpStatus.ENDED, record.at, result)


def _run_status_result(state: PassState, record: LogRecord) -> JobId | None:
    jid = jid_in(record)
    if jid is None:
        return None
    word = read_message(record.fields.get("reply") or "").state
    op = next((t for t in reversed(state.ops.of_job(jid)) if t.name == "run_status"), None)
    if op is None:
        return about_job(state, record)
    op.add(record, f"run_status result {word}", _SUPERVISOR, _JID)
    if word in FINAL_STATES:
        _end_runs(state, jid, record, word)
    return jid


def about_job(state: PassState, record: LogRecord) -> JobId | None:
    """A line that names a job: a step of its newest run, or kept beside when there is none."""
    jid = jid_in(record) or read_message(record.fields.get("message") or "").jid
    if jid is None:
        return None
    step = _JOB_STEPS.get(record.shape, record.shape.replace("_", " "))
    op = _to_newest_run(state, jid, record, _SUPERVISOR, step)
    if op is not None and record.shape == "canceled_after_restart":
        op.end(OpStatus.LOST, record.at, "canceled")
    return jid


def from_agent(state: PassState, record: LogRecord) -> JobId | None:
    """A driver's line about a job: an agent's message was refused."""
    state.update = None
    jid = jid_in(record) or read_message(record.fields.get("message") or "").jid
    if jid is not None:
        _to_newest_run(state, jid, record, _DRIVER, _REFUSALS[record.shape])
    return jid


def _to_newest_run(
    state: PassState, jid: JobId, record: LogRecord, component: Component, step: str
) -> OpTrack | None:
    op = next((t for t in reversed(state.ops.of_job(jid)) if t.name == "run"), None)
    if op is None:
        state.events.keep(jid, record, component, step, _JID, "no run op of this job is known")
    else:
        op.add(record, step, component, _JID)
    return op


def _restarted(state: PassState, record: LogRecord) -> JobId | None:
    """A supervisor has started: what its forerunner held is lost."""
    state.others |= state.restarts.restarted(state.log, record)
    state.agents.supervisor_restarted(record)
    state.update = state.newest = None
    return None


def _debug_message(state: PassState, record: LogRecord) -> JobId | None:
    state.debug = read_message(record.fields["message"] or "")
    return None


HANDLERS: Mapping[str, Handler] = {
    "status_update": _status,
    **dict.fromkeys(_STATUS_STEPS, _status),
    "run_status_result": _run_status_result,
    "supervisor_started": _restarted,
    "debug_message": _debug_message,
    "foreign_update": from_agent,
    **dict.fromkeys(_JOB_STEPS.keys() - {"request_failed"}, about_job),
}
"""What reads each shape."""
