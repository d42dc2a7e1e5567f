"""The rules by which a supervisor's lines become ops, each with the few lines that need it."""

import pytest

from jobtui.analysis.correlate import Correlator
from jobtui.model.ids import JobId
from jobtui.model.ops import AgentState, Certainty, OpStatus
from tests.analysis.lines import (
    AGENT,
    FULL,
    JID,
    RUN_DIR,
    START,
    Log,
    assigned,
    begun,
    correlated,
    created,
    job,
    message,
    sent,
    steps_of,
    the_op,
    update,
)


def test_an_op_passes_from_its_request_to_its_end() -> None:
    correlator = correlated(
        f"ServerReq(api_runSimulation, {JID})",
        *begun(),
        "_Op(run, abcd) await _reply_q.get()",
        message("ok", "abcd"),
        *update("running"),
        *update("running", "same"),
        *update("completed"),
    )
    op = the_op(correlator)
    assert (op.jid, op.api, op.job_cmd, op.agent, op.kind) == (
        JID,
        "api_runSimulation",
        "compute",
        "t7K7",
        "parallel",
    )
    assert (op.sends, op.replies, op.updates, op.status) == (1, 1, 3, OpStatus.ENDED)
    assert op.created_at == START + 1_000_000_000
    assert steps_of(op) == [
        "request", "op created", "driver assigned", "sent", "waits for the reply", "reply ok", "update",
        "status running", "update", "status running", "update", "status completed",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("send> websocket closed op=_Op(run, abcd)", "websocket closed"),
        ("send> error=no route op=_Op(run, abcd) stack=Traceback (most recent call last):", "no route"),
    ],
)
def test_a_send_may_not_be_delivered(line: str, error: str) -> None:
    op = the_op(correlated(*begun(), line))
    assert steps_of(op)[-2:] == ["sent", "not delivered"]
    assert op.error == error
    assert not op.status.is_open


LATE = f"ignoring state=completed already in exit state=canceled msg={{'computeJid': '{JID}'}}"
STALE = f"{job()} db.computeJobSerial=1795206886 does not match msg.computeJobSerial=1795206000, ignoring"
INACTIVE = f"inactive job jid={JID} msg={{'agentId': 'x'}}"


@pytest.mark.parametrize(
    ("line", "step"),
    [
        (LATE, "late status, ignored"),
        (STALE, "status of an older run, ignored"),
        (INACTIVE, "status for a job not in memory"),
    ],
)
def test_news_that_are_not_used_end_nothing(line: str, step: str) -> None:
    op = the_op(correlated(*begun(), message("ok", "abcd"), message("run_status_update"), line))
    assert steps_of(op)[-2:] == ["update", step]
    assert (op.updates, op.status) == (1, OpStatus.REPLIED)


def test_news_of_a_job_without_any_op_are_left_over() -> None:
    correlator = correlated(message("run_status_update"), INACTIVE)
    assert list(correlator.ops()) == []
    (left,) = correlator.unlinked_of(JID)
    assert left.step.text == INACTIVE
    assert left.why


def test_an_update_belongs_to_the_job_of_the_next_line_only() -> None:
    other = "VUlhaMOD-4u2Pj0fB-heightWeightReport"
    correlator = correlated(
        *begun(),
        *begun("run", "wxyz", "/srv/sirepo/db/user/VUlhaMOD/myapp/4u2Pj0fB/heightWeightReport"),
        *update("running"),
        f"new status=completed {job('running', jid=other)}",
    )
    assert [op.updates for op in correlator.ops()] == [1, 0]
    assert [op.status.is_open for op in correlator.ops()] == [True, False]


def test_the_time_limit_of_an_analysis_names_no_job() -> None:
    correlator = correlated(
        *begun(),
        message("ok", "abcd"),
        *begun("analysis", "anal"),
        "_Op(analysis, anal) max_run_secs=144",
        f"{job()} cancel args={{'opId': 'anal{FULL[4:]}'}}",
        created("cancel", "stop", "None"),
        sent("cancel", "stop", run_dir="None"),
        message("ok", "stop"),
    )
    run, analysis, cancel = correlator.ops_of(JID)
    assert run.status is OpStatus.REPLIED
    assert analysis.status is OpStatus.ENDED
    assert steps_of(analysis)[-2:] == ["time limit reached", "canceled by the time limit"]
    assert analysis.steps[-1].certainty is Certainty.FULL_ID
    assert (cancel.jid, cancel.api, cancel.sends, cancel.replies) == (JID, None, 1, 1)
    assert cancel.assigned_agent is None


def test_a_user_cancels_the_run_and_no_analysis() -> None:
    correlator = correlated(
        *begun(),
        message("ok", "abcd"),
        *begun("analysis", "anal"),
        f"ServerReq(api_runCancel, {JID})",
        f"{job('canceled')} cancel args={{'jid': '{JID}'}}",
        created("cancel", "stop", "None"),
        assigned("cancel", "stop"),
        sent("cancel", "stop", run_dir="None"),
    )
    run, analysis, cancel = correlator.ops_of(JID)
    assert (steps_of(run)[-1], run.status) == ("canceled by the user", OpStatus.ENDED)
    assert analysis.status is OpStatus.SENT
    assert steps_of(cancel)[:3] == ["request", "cancel", "op created"]
    assert (cancel.jid, cancel.status) == (JID, OpStatus.SENT)
    assert correlator.unlinked_of(JID) == ()


def test_a_destroyed_op_may_hold_any_text() -> None:
    dead = "_Op(DESTROYED, run, abcd, internal_error=no [way]) out] _Op(x, y )"
    busy = AGENT.replace("[]", f"[{dead}]")
    correlator = correlated(*begun(), message("alive", agent=busy), f"{dead} no reply")
    op = the_op(correlator)
    assert steps_of(op)[-1] == "destroyed, no reply"
    assert (op.status, op.error) == (OpStatus.DESTROYED, "no [way]) out] _Op(x, y ")


@pytest.mark.parametrize(
    ("words", "replies", "reply_step"),
    [
        (
            f"'opId': 'abcd{FULL[4:]}', 'opName': 'error', 'reply': {{'runDirNotFound': True}}",
            1,
            "reply error",
        ),
        (
            f"'opId': 'abcd{FULL[4:]}', 'opName': 'ok', 'reply': {{'state': 'error', 'error': 'no'}}",
            1,
            "reply error",
        ),
        (f"'opId': 'none{FULL[4:]}', 'opName': 'ok', 'reply': {{'state': 'error'}}", 0, "sent"),
        ("'opId': None, 'opName': 'error', 'error': 'no'", 0, "sent"),
        ("'error': 'no'", 0, "sent"),
    ],
)
def test_an_error_is_the_reply_when_it_names_the_op(words: str, replies: int, reply_step: str) -> None:
    op = the_op(correlated(*begun("io"), f"{AGENT} error msg={{'agentId': 't7K7', {words}}}"), "io")
    assert (op.replies, steps_of(op)[-1]) == (replies, reply_step)
    assert op.status.is_open == (not replies)
    assert op.op_id == (f"abcd{FULL[4:]}" if replies else None)


def test_an_error_told_twice_is_one_reply() -> None:
    text = f"{{'agentId': 't7K7', 'error': 'no', 'opId': 'abcd{FULL[4:]}', 'opName': 'error'}}"
    correlator = correlated(*begun(), f"{AGENT} error msg={text}", f"{AGENT} agent error msg={text}")
    assert the_op(correlator).replies == 1


def test_an_error_without_op_is_news_of_its_job() -> None:
    text = f"{{'agentId': 't7K7', 'computeJid': '{JID}', 'opName': 'error', 'state': 'error'}}"
    op = the_op(
        correlated(*begun(), message("ok", "abcd"), f"{AGENT} error msg={text}", f"new status=error {job()}")
    )
    assert (op.replies, op.updates, op.status) == (1, 0, OpStatus.ENDED)
    assert steps_of(op)[-1] == "status error"


def test_a_log_that_begins_after_the_creation_gives_the_op_by_its_send() -> None:
    op = the_op(correlated(sent("run", "abcd"), message("ok", "abcd"), *update("completed")))
    assert (op.jid, op.sends, op.replies, op.updates) == (JID, 1, 1, 1)
    assert op.created_at is None
    assert op.status is OpStatus.ENDED


def test_a_log_that_begins_after_the_send_makes_up_no_op() -> None:
    correlator = correlated(
        message("ok", "abcd"), "_Op(run, abcd) no reply", "send> websocket closed op=_Op(run, abcd)"
    )
    assert list(correlator.ops()) == []


def test_a_restart_ends_what_was_going_on() -> None:
    correlator = correlated(
        *begun(),
        message("ok", "abcd"),
        *begun("analysis", "done"),
        message("ok", "done"),
        "default_command> ip=127.0.0.1 port=8001",
        *begun("run_status", "stat"),
        *update("canceled"),
    )
    run, analysis, status = correlator.ops_of(JID)
    assert (run.status, steps_of(run)[-1]) == (OpStatus.LOST, "supervisor restarted")
    assert (analysis.status, steps_of(analysis)[-1]) == (OpStatus.ENDED, "reply ok")
    assert (status.updates, status.status) == (1, OpStatus.ENDED)


def test_a_restart_is_news_of_every_job_it_ends() -> None:
    correlator = Correlator()
    log = Log()
    log.feed(correlator, [*begun(), *begun("run", "wxyz", RUN_DIR.replace("HrCJ26rQ", "4u2Pj0fB"))])
    changed = log.feed(correlator, ["default_command> ip=127.0.0.1 port=8001"])
    assert changed == {JID, JobId(JID.replace("HrCJ26rQ", "4u2Pj0fB"))}


def test_a_run_of_2020_is_answered_by_its_name_again_and_again() -> None:
    correlator = correlated(
        *begun(),
        "_Op(run, abcd) await _reply_q.get()",
        message("run", "abcd"),
        message("run", "abcd"),
        *begun("analysis", "anal"),
        message("analysis", "anal"),
        message("run", "abcd"),
    )
    run, analysis = correlator.ops_of(JID)
    assert (run.replies, run.status) == (3, OpStatus.REPLIED)
    assert (analysis.replies, analysis.status) == (1, OpStatus.ENDED)


def test_a_cancel_of_2020_names_the_ops_it_ends() -> None:
    ops = "_Op(run, abcd), _Op(cancel, stop)"
    correlator = correlated(
        f"ServerReq(api_runCancel, {JID})",
        *begun(),
        *begun("analysis", "anal"),
        created("cancel", "stop", "None"),
        f"{job('running', ops)} cancel=[{ops}]",
        sent("cancel", "stop", run_dir="None"),
    )
    by_name = {op.name: op for op in correlator.ops()}
    assert (by_name["run"].status, steps_of(by_name["run"])[-1]) == (OpStatus.ENDED, "canceled")
    assert by_name["analysis"].status is OpStatus.SENT
    assert by_name["cancel"].status is OpStatus.SENT


def test_an_op_that_only_starts_an_agent_is_never_sent() -> None:
    correlator = correlated(
        "ServerReq(api_beginSession, None)",
        created("begin_session", "sess", "None"),
        assigned("begin_session", "sess"),
        f"{AGENT} _Op(begin_session, sess) await=_do_agent_start",
        f"{AGENT} _Op(begin_session, sess) await _websocket_ready",
        message("alive"),
        f"{AGENT} _Op(begin_session, sess) websocket alive",
    )
    op = the_op(correlator, "begin_session")
    assert (op.jid, op.api, op.sends, op.status) == (None, "api_beginSession", 0, OpStatus.ENDED)
    assert steps_of(op)[-3:] == ["agent start", "waits for the agent", "agent alive"]
    (agent,) = correlator.agents()
    assert (agent.state, agent.starts, agent.messages) == (AgentState.IDLE, 1, 1)


def test_a_run_without_a_login_is_refused() -> None:
    error = "SRException(params={'isModal': True},routeName=sbatchLogin)"
    correlator = correlated(
        f"ServerReq(api_runSimulation, {JID})",
        created("run", "abcd"),
        assigned("run", "abcd"),
        f"{job('pending')} exception={error}",
        f"ServerReq(api_runSimulation, {JID}) error={error}",
    )
    op = the_op(correlator)
    assert (op.status, op.error, op.sends) == (OpStatus.DESTROYED, error, 0)
    assert steps_of(op)[-2:] == ["exception in the supervisor", "request failed"]


def test_a_mere_check_leaves_its_request_to_the_op_that_follows() -> None:
    correlator = correlated(
        f"ServerReq(api_sbatchLogin, {JID})",
        created("sbatch_agent_ready", "redy"),
        created("sbatch_login", "logn"),
        assigned("sbatch_login", "logn"),
        sent("sbatch_login", "logn"),
    )
    check, login = correlator.ops_of(JID)
    assert [check.api, login.api] == ["api_sbatchLogin", "api_sbatchLogin"]
    assert [check.status, login.status] == [OpStatus.ENDED, OpStatus.SENT]


def test_each_run_of_a_job_has_its_own_news() -> None:
    correlator = correlated(
        *begun(), message("ok", "abcd"), *update("completed"), *begun("run", "wxyz"), *update("error")
    )
    assert [(op.op, op.updates, op.result) for op in correlator.ops_of(JID)] == [
        ("abcd", 1, "completed"),
        ("wxyz", 1, "error"),
    ]


def test_a_poll_after_a_restart_tells_what_became_of_a_run() -> None:
    correlator = correlated(
        *begun("run_status", "stat"),
        message("ok", "stat"),
        f"{job()} status change reply={{'state': 'canceled'}}",
    )
    op = the_op(correlator, "run_status")
    assert (op.api, steps_of(op)[-1], op.status) == (None, "run_status result canceled", OpStatus.ENDED)


def test_an_agent_is_placed_by_its_directory_and_container() -> None:
    directory = "/srv/sirepo/db/user/VUlhaMOD/agent-docker/v1.sirepo.example/srj-p-VUlhaMOD"
    correlator = correlated(*begun(), f"{AGENT} agent_exec_dir={directory}")
    agent = correlator.agent_of(JID)
    assert agent is not None
    assert (agent.host, agent.container, agent.uid) == ("v1.sirepo.example", "srj-p-VUlhaMOD", "VUlhaMOD")


def test_two_users_may_share_an_op_prefix() -> None:
    other_dir = "/srv/sirepo/db/user/EPRSqtUW/myapp/4u2Pj0fB/heightWeightReport"
    other_agent = "DockerDriver(a=9mgt k=sequential u=EPRS [])"
    correlator = correlated(
        created("run", "abcd"),
        created("run", "abcd", other_dir),
        assigned("run", "abcd", other_agent),
        assigned("run", "abcd"),
        sent("run", "abcd"),
        sent("run", "abcd", other_agent, other_dir),
        message("ok", "abcd", other_agent),
    )
    assert [(op.uid, op.agent, op.replies, op.candidates) for op in correlator.ops()] == [
        ("VUlhaMOD", "t7K7", 0, ()),
        ("EPRSqtUW", "9mgt", 1, ()),
    ]


def test_what_cannot_be_decided_is_said() -> None:
    dirs = [RUN_DIR, RUN_DIR.replace("HrCJ26rQ", "4u2Pj0fB")]
    correlator = correlated(
        *(created("analysis", "abcd", run_dir) for run_dir in dirs),
        *(assigned("analysis", "abcd") for _ in dirs),
        *(sent("analysis", "abcd", run_dir=run_dir) for run_dir in dirs),
        message("ok", "abcd"),
    )
    answered = next(op for op in correlator.ops() if op.replies)
    assert answered.candidates == (JID.replace("HrCJ26rQ", "4u2Pj0fB"),)
    assert answered.steps[-1].certainty is Certainty.ADJACENT


def test_an_op_is_sent_by_the_agent_it_was_meant_for() -> None:
    """Not another one of the same user and prefix, which was replaced or came later."""
    other = AGENT.replace("t7K7", "hOJT")
    correlator = correlated(
        created("cancel", "stop", "None"),
        assigned("cancel", "stop"),
        created("cancel", "stop", "None"),
        assigned("cancel", "stop", other),
        sent("cancel", "stop", run_dir="None"),
        sent("cancel", "stop", other, "None"),
    )
    assert [op.agent for op in correlator.ops()] == ["t7K7", "hOJT"]
