"""The rules by which a supervisor's lines become ops, each with the few lines that need it."""

import pytest

from jobtui.analysis.correlation.correlator import Correlator
from jobtui.model.ids import JobId
from jobtui.model.ops import AgentState, Certainty, OpStatus, Step, is_told_before
from tests.analysis.captured import correlate, correlate_interleaved, logs
from tests.analysis.lines import (
    AGENT,
    FULL,
    JID,
    RUN_DIR,
    START,
    Log,
    arrived,
    assigned,
    begun,
    cmd,
    correlated,
    created,
    job,
    message,
    sent,
    steps_of,
    the_op,
    update,
)
from tests.builders import a_step


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


@pytest.mark.parametrize(
    ("held", "replies"),
    [("_Op(run, abcd)", 1), ("_Op(run, abcd), _Op(run_status, gone)", 1), ("_Op(run, gone)", 0), ("", 0)],
)
def test_an_error_whose_line_breaks_off_is_about_what_its_agent_has_not_answered(
    held: str, replies: int
) -> None:
    """Slurm's refusal ends with a line break, and the id of the op is on the next line."""
    busy = AGENT.replace("[]", f"[{held}]")
    text = "{'agentId': 't7K7', 'error': 'sbatch: error: Invalid partition"
    op = the_op(correlated(*begun(), f"{busy} error msg={text}", f"{busy} agent error msg={text}"))
    assert op.replies == replies
    assert op.error == ("sbatch: error: Invalid partition" if replies else None)


def test_an_error_that_breaks_off_is_about_no_op_where_two_may_be_meant() -> None:
    busy = AGENT.replace("[]", "[_Op(run, abcd), _Op(analysis, anal)]")
    correlator = correlated(
        *begun(), *begun("analysis", "anal"), f"{busy} error msg={{'agentId': 't7K7', 'error': 'no"
    )
    assert [op.replies for op in correlator.ops_of(JID)] == [0, 0]


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


ABOUT_THE_RUN = {
    f"canceling after reload jid={JID} api_runStatus": "canceled, was live when the supervisor stopped",
    f"{job('completed')} ignoring cancel, not running req_is_invalid": "cancel ignored, not running",
    f"{job()} to_cancel=_Op(DESTROYED, run, abcd) destroyed": "cancel ignored, not running",
    f"{job()} prepare_send failed op=_Op(DESTROYED, cancel, stop)": "cancel could not be sent",
    f"{job()} db updated during op_run, not saving reply=x": "reply ignored, the record has changed",
    f"update collision jid={JID}, ignoring": "reply ignored, the record has changed",
    f"{job()} exception=boom": "exception in the supervisor",
    f"{job()} await self.run_dir_mutex": "waits for the run dir",
    f"_purge_job> jid={JID}": "run directory purged",
    f"purge_non_paid> u=VUlhaMOD j={JID} error=no": "run directory not purged",
    f"req.content.uid=a is not same as db.uid=b for jid={JID}": "request refused, the job is another user's",
    f"purged or missing ServerReq(api_simulationFrame, {JID})": "request cannot be met",
    f"unhandled opName=ok msg={{'computeJid': '{JID}'}} {job()}": "message not understood",
    f"""exception=no handler=x content=b'{{"computeJid":"{JID}"}}'""": "exception in the supervisor",
    f"{AGENT} jid={JID} not for this uid=EPRSqtUW; msg={{}}": "news from another user's agent, ignored",
    f"unknown agent, sending kill; msg={{'computeJid': '{JID}'}}": "message from an agent that is not known",
}


@pytest.mark.parametrize(("line", "step"), ABOUT_THE_RUN.items())
def test_a_line_about_a_job_is_a_step_of_its_newest_run(line: str, step: str) -> None:
    op = the_op(correlated(*begun(), line))
    assert steps_of(op)[-1] == step


@pytest.mark.parametrize("line", ABOUT_THE_RUN)
def test_a_line_about_a_job_without_a_run_is_left_over(line: str) -> None:
    (left,) = correlated(line).unlinked_of(JID)
    assert left.step.text == line.rpartition("> ")[2]


@pytest.mark.parametrize(
    ("line", "step"),
    [
        (f"{AGENT} op not in prepared_sends opName=ok o=abcd content={{}}", "late reply, ignored"),
        (f"{AGENT} not in prepared_sends opName=ok o=abcd content={{}}", "late reply, ignored"),
        (f"{AGENT} not pending opName={FULL} o=run", "late reply, ignored"),
        (f"unknown agent, sending kill; msg={{'opId': '{FULL}'}}", "message from an agent that is not known"),
    ],
)
def test_a_reply_that_comes_too_late_is_a_step(line: str, step: str) -> None:
    op = the_op(correlated(*begun("analysis"), f"{job()} cancel args={{'opId': '{FULL}'}}", line), "analysis")
    assert steps_of(op)[-2:] == ["canceled by the time limit", step]
    assert op.replies == 0


SLOT = "Waiting for CPU resources await=cpu_slot"


@pytest.mark.parametrize(
    ("line", "step"),
    [
        (f"_Op(run, abcd) enter={SLOT} {job('pending')}", "waits for a slot"),
        (f"_Op(run, abcd) exit={SLOT} {job('pending')}", "got the slot"),
        (f"_Op(run, abcd) enter={SLOT} _Supervisor(api=api_x uid=VUlhaMOD)", "waits for a slot"),
        (f"_Op(run, abcd) situation={SLOT}", "waits for a slot"),
        (f"_Op(run, abcd) situation={SLOT} stack=Traceback", "op failed"),
        ("exception=boom op=_Op(run, abcd) stack=Traceback", "op failed"),
        ("isSbatchLogin op=_Op(run, abcd)", "op failed"),
        ("ignore start op=_Op(run, abcd) because not run_op=None", "ignored, another run took over"),
        ("_Op(run, abcd) websocket alive", "agent alive"),
        ("op=_Op(run, abcd) agent_start_delay=3", "agent start delayed"),
        ("after agent_start op=_Op(DESTROYED, run, abcd) destroyed", "given up before it was sent"),
        ("op=_Op(DESTROYED, run, abcd) is destroyed", "given up before it was sent"),
        (f"{AGENT} _Op(run, abcd) await op_q.get()", "waits for a slot"),
    ],
)
def test_a_line_about_an_op_that_waits_is_a_step(line: str, step: str) -> None:
    op = the_op(correlated(created("run", "abcd"), assigned("run", "abcd"), line))
    assert steps_of(op)[-1] == step
    assert op.status.is_open == ("DESTROYED" not in line)


@pytest.mark.parametrize(
    ("lines", "state", "step", "open_"),
    [
        (["_f> " + AGENT + " timeout=8"], AgentState.NEVER_CONNECTED, "agent did not start in time", True),
        ([message("alive"), "websocket_on_close> " + AGENT], AgentState.LOST, "agent lost", True),
        ([message("alive"), AGENT + " returncode=-9"], AgentState.LOST, "agent exited", True),
        (
            [message("alive"), AGENT + " pid=31", AGENT + " returncode=-15"],
            AgentState.KILLED,
            "agent exited",
            True,
        ),
    ],
)
def test_the_end_of_an_agent_is_seen_by_the_ops_it_has(
    lines: list[str], state: AgentState, step: str, open_: bool
) -> None:
    correlator = correlated(created("run", "abcd"), assigned("run", "abcd"), *lines)
    (agent,) = correlator.agents()
    op = the_op(correlator)
    assert (agent.state, steps_of(op)[-1], op.status.is_open) == (state, step, open_)
    held = the_op(correlated(*begun(), message("alive"), "websocket_on_close> " + AGENT))
    assert held.status is OpStatus.DESTROYED


RESTART = "default_command> ip=127.0.0.1 port=8001"
OTHER_RUN_DIR = "/srv/sirepo/alpha/user/aB3dE6gH/myapp/xY7zW9vU/animation"
OTHER_JID = JobId("aB3dE6gH-xY7zW9vU-animation")
NEXT_RUN_DIR = RUN_DIR.replace("HrCJ26rQ", "4u2Pj0fB")
LOG, OLD_LOG = "/var/log/supervisor.log", "/var/log/supervisor.log.1"


def test_it_ends_nothing_of_another_database_whose_log_lies_beside_it() -> None:
    correlator = Correlator()
    agent = "LocalDriver(a=Zz9q k=parallel u=aB3d [])"
    begun_there = (created("run", "wxyz", OTHER_RUN_DIR), sent("run", "wxyz", agent, OTHER_RUN_DIR))
    Log("/var/log/alpha.log").feed(correlator, begun_there)
    changed = Log("/var/log/prod.log", seconds=60).feed(correlator, [*begun(), RESTART])
    assert changed == {JID}
    assert status_of(correlator, OTHER_JID) is OpStatus.SENT
    assert status_of(correlator, JID) is OpStatus.LOST


def status_of(correlator: Correlator, jid: JobId) -> OpStatus:
    (op,) = correlator.ops_of(jid)
    return op.status


def test_it_ends_nothing_of_a_supervisor_of_which_nothing_tells_that_it_was_the_one_before() -> None:
    correlator = Correlator()
    Log(OLD_LOG).feed(correlator, begun())
    Log(LOG, seconds=60).feed(correlator, [RESTART, "f> no run directory is named yet"])
    assert the_op(correlator).status is OpStatus.SENT


@pytest.mark.parametrize("name", ["/collected/v2/supervisor.log", "ssh://v2", "local"])
def test_it_ends_nothing_of_another_place_that_has_its_database_at_the_same_path(name: str) -> None:
    correlator = Correlator()
    Log(name).feed(correlator, begun())
    Log("/collected/v1/supervisor.log", seconds=60).feed(
        correlator, [RESTART, *begun("run", "next", NEXT_RUN_DIR)]
    )
    assert status_of(correlator, JID) is OpStatus.SENT


@pytest.mark.parametrize("root_is_known", [True, False])
def test_it_ends_what_stands_in_the_log_that_was_rotated_away(root_is_known: bool) -> None:
    correlator = Correlator()
    Log(OLD_LOG).feed(correlator, begun())
    log = Log(LOG, seconds=60)
    following = begun("run", "next", NEXT_RUN_DIR)
    changed = log.feed(correlator, [*following, RESTART] if root_is_known else [RESTART, *following])
    assert JID in changed
    (op,) = correlator.ops_of(JID)
    assert (op.status, steps_of(op)[-1]) == (OpStatus.LOST, "supervisor restarted")
    (next_op,) = correlator.ops_of(JobId(JID.replace("HrCJ26rQ", "4u2Pj0fB")))
    assert next_op.status is (OpStatus.LOST if root_is_known else OpStatus.SENT)


def test_it_ends_nothing_that_was_made_after_it() -> None:
    correlator = Correlator()
    Log(OLD_LOG, seconds=120).feed(correlator, begun())
    Log(LOG, seconds=60).feed(correlator, [RESTART, *begun("run", "next", NEXT_RUN_DIR)])
    assert status_of(correlator, JID) is OpStatus.SENT


def test_a_log_that_has_gone_on_since_is_of_another_supervisor() -> None:
    correlator = Correlator()
    other = Log("/var/log/other.log")
    other.feed(correlator, begun())
    Log("/var/log/supervisor.log", seconds=1).feed(correlator, [*begun("run", "next", NEXT_RUN_DIR)])
    other.feed(correlator, [f"new status=running {job()}"])
    Log("/var/log/third.log", seconds=1).feed(
        correlator, [RESTART, *begun("run", "last", NEXT_RUN_DIR.replace("4u2P", "5u2P"))]
    )
    assert status_of(correlator, JID) is OpStatus.SENT


def test_what_was_taken_for_lost_is_open_again_when_its_log_goes_on() -> None:
    correlator = Correlator()
    other = Log("/var/log/other.log")
    other.feed(correlator, begun())
    Log(LOG, seconds=5).feed(correlator, [*begun("run", "next", NEXT_RUN_DIR), RESTART])
    assert status_of(correlator, JID) is OpStatus.LOST
    other.feed(correlator, ["f> x"] * 30)
    changed = other.feed(correlator, [message("ok", "abcd")])
    assert changed == {JID}
    (op,) = correlator.ops_of(JID)
    assert (op.status, op.replies) == (OpStatus.REPLIED, 1)
    assert "supervisor restarted" not in steps_of(op)


def test_what_is_open_again_is_news_though_the_line_is_about_another_job() -> None:
    correlator = Correlator()
    other = Log("/var/log/other.log")
    other.feed(correlator, begun())
    Log(LOG, seconds=5).feed(correlator, [*begun("run", "next", NEXT_RUN_DIR), RESTART])
    other.feed(correlator, ["f> x"] * 30)
    third = RUN_DIR.replace("HrCJ26rQ", "7u2Pj0fB")
    changed = other.feed(correlator, begun("run", "more", third))
    assert JID in changed
    assert status_of(correlator, JID) is OpStatus.SENT
    assert other.feed(correlator, [RESTART]) >= {JID}
    assert status_of(correlator, JID) is OpStatus.LOST


@pytest.mark.parametrize("seed", range(3))
def test_an_op_whose_agent_never_starts_waits_for_ever(seed: int) -> None:
    correlator = correlate_interleaved(logs("docker-agents-never-start"), seed)
    runs = [op for op in correlator.ops() if op.name == "run"]
    assert [(op.status, op.sends, op.replies) for op in runs] == [(OpStatus.WAITING, 0, 0)] * len(runs)
    assert {agent.state for agent in correlator.agents()} == {AgentState.NEVER_CONNECTED}
    for op in runs:
        assert op.jid is not None
        steps = steps_of(op)
        assert steps.index("waits for the agent") < steps.index("agent did not start in time")
        assert correlator.unlinked_of(op.jid) == ()


def test_ops_of_2020() -> None:
    correlator = correlate(logs("legacy-2020"))
    run, analysis = correlator.ops_of(JobId("EPRSqtUW-IVh7w74d-heightWeightReport"))
    assert (run.op, run.name, run.agent, run.sends, run.replies) == ("pb5u", "run", "WUt4", 1, 2)
    assert run.api == "api_runSimulation"
    assert run.arrived_at is not None
    assert "job_cmd wrote" in steps_of(run)
    assert (analysis.op, analysis.name, analysis.replies, analysis.status) == (
        "Kd81",
        "analysis",
        1,
        OpStatus.ENDED,
    )
    (other,) = correlator.ops_of(JobId("EPRSqtUW-ZaU3VvUy-multiElectronAnimation"))
    assert (other.op, other.status, steps_of(other)[-1]) == ("j2FX", OpStatus.ENDED, "canceled")
    docker = next(agent for agent in correlator.agents() if agent.driver == "DockerDriver")
    assert (docker.host, docker.container) == ("localhost.localdomain", "srj-p-EPRSqtUW")


AGENT_LINES = [
    "start> {'agent_id': 't7K7Gov6a5UmCGYNsiZFC9Eir3jSge4x', 'dev_source_dirs': False}",
    "_op> " + arrived(),
    "start> cmd=('/bin/bash', '-l') stdin=b\"source $HOME/.bashrc",
    f"_on_exit> _Process(pid=31 cmd={cmd()}) returncode=0",
]
AGENT_STEPS = ["arrived", "job_cmd started", "job_cmd exited 0"]


@pytest.mark.parametrize("agent_first", [True, False])
def test_an_agents_lines_are_placed_whenever_they_are_read(agent_first: bool) -> None:
    correlator = Correlator()
    supervisor, agent = Log(), Log("agent.log", seconds=2, pid=77)
    if agent_first:
        agent.feed(correlator, AGENT_LINES)
        assert [left.step.step for left in correlator.unlinked_of(JID)] == ["op arrived", "job cmd exited"]
    supervisor.feed(correlator, begun())
    if not agent_first:
        agent.feed(correlator, AGENT_LINES)
    op = the_op(correlator)
    assert [step.step for step in op.steps if step.source == "agent.log"] == AGENT_STEPS
    assert op.arrived_at == START + 3_000_000_000
    assert correlator.unlinked_of(JID) == ()


def test_what_an_agent_says_in_two_logs_is_said_once() -> None:
    correlator = Correlator()
    Log().feed(correlator, begun())
    for name in ("container.log", "copy.log"):
        Log(name, seconds=2, pid=77).feed(correlator, AGENT_LINES)
    steps = steps_of(the_op(correlator))
    assert [steps.count(step) for step in ("arrived", "job_cmd exited 0")] == [1, 1]


@pytest.mark.parametrize(
    ("line", "step"),
    [
        (f"kill> _Process(pid=31 cmd={cmd()})", "kills job_cmd"),
        (f"kill> _Process(pid=31 cmd={cmd()}) error=[Errno 3] No such process", "kills job_cmd"),
        (f"_on_exit> _Process(pid=None cmd={cmd()}) returncode=-9", "job_cmd exited -9"),
        (f"_await_exit> {cmd()} exit=1 stderr=Traceback", "job_cmd ended 1"),
        (f"f> {cmd()} unexpected stdout=x", "note of the agent"),
        (f"f> {cmd()} what no release has said", "note of the agent"),
        (f"f> cmd={cmd()} stderr=b'x'", "job_cmd wrote"),
        (f"f> cmd={cmd()} error=boom stack=x", "error with job_cmd"),
        (f"f> cmd={cmd()}", "cancels job_cmd"),
        ("f> opName=run o=abcd exception=boom stack=x", "exception in the agent"),
        (f"f> reply={{'opId': '{FULL}'}} computeJid={JID}", "answers run_status"),
        (f"f> expected computeJobSerial=3 in msg={{'opId': '{FULL}'}}", "asked for another run than it has"),
        (f"f> msg={{'opId': '{FULL}'}} error=boom stack=x", "fastcgi failed"),
        (f"f> websocket closed in response to len=3 send={{'opId': '{FULL}'}}", "answer could not be sent"),
        ("_scancel> sbatch_id=4", "scancel"),
        ("start> exit=1 stdout= stderr=sbatch: error: no", "sbatch refused"),
    ],
)
def test_an_agents_line_is_a_step_of_its_op(line: str, step: str) -> None:
    correlator = Correlator()
    Log().feed(correlator, begun())
    Log("agent.log", seconds=3, pid=77).feed(correlator, ["_op> " + arrived(), line])
    assert steps_of(the_op(correlator))[-1] == step


@pytest.mark.parametrize(
    "line",
    [
        f"_on_exit> _Process(pid=31 cmd={cmd(kind='_FastCgiCmd')}) returncode=0",
        f"_on_exit> _Process(pid=31 cmd={cmd(kind='_SbatchRunStatus', op='None')}) returncode=0",
        f"_on_exit> _Process(pid=31 cmd={cmd('wxyz')}) returncode=0",
        f"_on_exit> _Process(pid=31 cmd={cmd(agent='9mgt')}) returncode=0",
        f"_on_exit> _Process(pid=31 cmd={cmd(jid='VUlhaMOD-4u2Pj0fB-heightWeightReport')}) returncode=0",
        "_op> " + arrived("analysis"),
        f"f> msg={{'opId': 'None', 'x': '{FULL}'}} error=boom stack=x",
    ],
)
def test_an_agents_line_about_something_else_is_no_step(line: str) -> None:
    correlator = Correlator()
    Log().feed(correlator, begun())
    Log("agent.log", seconds=3, pid=77).feed(correlator, [line])
    assert steps_of(the_op(correlator))[-1] == "sent"


def test_a_process_is_the_agent_it_has_said_to_be() -> None:
    correlator = Correlator()
    Log().feed(correlator, begun())
    log = Log("agent.log", seconds=3, pid=77)
    log.feed(correlator, ["start> {'agent_id': '9mgtGov6a5UmCGYNsiZFC9Eir3jSge4x'}", "_op> " + arrived()])
    assert the_op(correlator).arrived_at is None
    log.feed(correlator, ["start> {'agent_id': 't7K7Gov6a5UmCGYNsiZFC9Eir3jSge4x'}", "_op> " + arrived()])
    assert the_op(correlator).arrived_at is not None


POLLER = cmd("None", kind="_SbatchRunStatus")
STATUS_FILE = f"/scratch/jdoe/sirepo-dev/user/VUlhaMOD/myapp/{JID}/sbatch_status.json"


@pytest.mark.parametrize("agent_first", [True, False])
@pytest.mark.parametrize(
    ("line", "step"),
    [
        (f"{POLLER} scontrol error exit=1 sbatch=4 stderr=no stdout=", "note of the sbatch poller"),
        (f"{POLLER} exit=1 stderr=no", "sbatch poller ended"),
        (f"missing sbatch status file={STATUS_FILE}", "trouble with the sbatch status file"),
    ],
)
def test_what_the_poller_of_a_cluster_says_belongs_to_the_run_of_its_time(
    line: str, step: str, agent_first: bool
) -> None:
    correlator = Correlator()
    supervisor = Log()
    agent = Log("agent.log", seconds=5)
    again = Log("copy.log", seconds=5)
    if agent_first:
        assert agent.feed(correlator, [line]) == {JID}
        assert [left.step.text for left in correlator.unlinked_of(JID)] == [line]
    supervisor.feed(
        correlator, [*begun("run", "abcd"), message("ok", "abcd"), *update("error"), *begun("run", "wxyz")]
    )
    agent.feed(correlator, [] if agent_first else [line])
    again.feed(correlator, [line])
    first, second = correlator.ops_of(JID)
    assert [steps_of(first).count(step), steps_of(second).count(step)] == [1, 0]
    assert correlator.unlinked_of(JID) == ()


def test_the_servers_call_is_the_nearest_before_its_op() -> None:
    correlator = Correlator()
    call = f"_args> api=api_runSimulation runDir={RUN_DIR}"
    request = f"ServerReq(api_runSimulation, {JID})"
    server = Log("server.log")
    server.feed(correlator, [call])
    Log(seconds=1).feed(correlator, [request, *begun()])
    Log("server.log", seconds=600).feed(correlator, [call])
    Log("supervisor.log", seconds=601).feed(correlator, [request, *begun("run", "wxyz")])
    assert [steps_of(op)[0] for op in correlator.ops_of(JID)] == ["api_runSimulation"] * 2
    Log("server.log", seconds=1_200).feed(correlator, [call])
    (left,) = correlator.unlinked_of(JID)
    assert left.why == "no op came of this call"


STARTED = "start> cmd=('/bin/bash', '-l') stdin=b\"source $HOME/.bashrc"
OTHER_DIR = RUN_DIR.replace("HrCJ26rQ", "4u2Pj0fB")


@pytest.mark.parametrize("late", [0, 1, 2])
def test_a_line_without_a_name_belongs_to_the_line_before_it(late: int) -> None:
    """Whether the supervisor's lines of none, one or both ops were read before."""
    correlator = Correlator()
    supervisor = Log()
    begins = [begun(), begun("run", "wxyz", OTHER_DIR)]
    for lines in begins[late:]:
        supervisor.feed(correlator, lines)
    said = [
        "_op> " + arrived(),
        STARTED,
        "_op> " + arrived("run", "wxyz", OTHER_DIR),
        STARTED,
        "_scancel> sbatch_id=4",
    ]
    Log("agent.log", seconds=9, pid=77).feed(correlator, said)
    for lines in begins[:late]:
        supervisor.feed(correlator, lines)
    by_prefix = {
        op.op: [step.step for step in op.steps if step.source == "agent.log"] for op in correlator.ops()
    }
    assert by_prefix == {
        "abcd": ["arrived", "job_cmd started"],
        "wxyz": ["arrived", "job_cmd started", "scancel"],
    }


def test_a_line_placed_late_does_not_draw_what_follows_to_it() -> None:
    correlator = Correlator()
    supervisor, agent = Log(), Log("agent.log", seconds=9, pid=77)
    supervisor.feed(correlator, begun("run", "wxyz", OTHER_DIR))
    agent.feed(correlator, ["_op> " + arrived(), "_op> " + arrived("run", "wxyz", OTHER_DIR)])
    supervisor.feed(correlator, begun())
    agent.feed(correlator, ["_scancel> sbatch_id=4"])
    assert [op.op for op in correlator.ops() if "scancel" in steps_of(op)] == ["wxyz"]


def test_what_follows_a_line_that_fits_nothing_is_no_ops() -> None:
    correlator = Correlator()
    Log().feed(correlator, begun())
    Log("agent.log", seconds=9, pid=77).feed(
        correlator, ["_op> " + arrived(), "_op> " + arrived("run", "none"), STARTED]
    )
    assert "job_cmd started" not in steps_of(the_op(correlator))


def test_a_call_long_before_a_request_is_another_one() -> None:
    correlator = Correlator()
    Log("server.log").feed(correlator, [f"_args> api=api_runSimulation runDir={RUN_DIR}"])
    Log(seconds=60).feed(correlator, [f"ServerReq(api_runSimulation, {JID})", *begun()])
    assert "api_runSimulation" not in steps_of(the_op(correlator))
    assert [left.why for left in correlator.unlinked_of(JID)] == ["no op came of this call"]


@pytest.mark.parametrize("run_dir", [RUN_DIR, RUN_DIR + "N", RUN_DIR + "No", RUN_DIR[:-1], RUN_DIR[:-30]])
def test_a_forwarded_arrival_may_be_cut_or_glued(run_dir: str) -> None:
    head = "Nov 20 20:34:33    77     0 sirepo/pkcli/job_agent.py:487:_op "
    correlator = correlated(*begun(), f"_write> srj-p-VUlhaMOD {head}{arrived('run', 'abcd', run_dir)}")
    assert the_op(correlator).arrived_at == START + 3_000_000_000


def test_a_full_id_decides_against_an_op_of_the_same_prefix() -> None:
    correlator = Correlator()
    Log().feed(correlator, begun())
    agent = Log("agent.log", seconds=3, pid=77)
    agent.feed(correlator, [f"f> msg={{'opId': '{FULL}'}} error=boom stack=x"])
    agent.feed(correlator, [f"f> msg={{'opId': '{FULL[:-1]}y'}} error=boom stack=y"])
    op = the_op(correlator)
    assert op.op_id == FULL
    assert steps_of(op).count("fastcgi failed") == 1


@pytest.mark.parametrize("seconds", [-1, 0, 1])
def test_the_last_writer_of_a_log_is_known_across_a_rotation(seconds: int) -> None:
    """A log is rotated as its supervisor is restarted, maybe in the same second: all begins at byte 0."""
    correlator = Correlator()
    Log(LOG, pid=1).feed(correlator, begun())
    (op,) = correlator.ops_of(JID)
    assert correlator.heard.writers[LOG].before is None
    Log(LOG, seconds=len(op.steps) + seconds, pid=2).feed(correlator, begun("run", "next", NEXT_RUN_DIR)[:1])
    writer = correlator.heard.writers[LOG]
    assert writer.pid == 2
    assert writer.before is not None
    assert not any(is_told_before(writer.before, step) for step in op.steps)


@pytest.mark.parametrize(
    ("one", "other", "is_before"),
    [
        (a_step("s", 0.0, offset=90), a_step("s", 1.0, offset=10), True),
        (a_step("s", 1.0, offset=10), a_step("s", 0.0, offset=90), False),
        (a_step("s", 1.0, offset=10), a_step("s", 1.0, offset=90), True),
        (a_step("s", 1.0, offset=10), a_step("s", 1.0, offset=10), False),
        (a_step("s", at=None, offset=10), a_step("s", 1.0, offset=90), True),
        (a_step("s", 0.0, offset=90), a_step("s", at=None, offset=10), False),
        (a_step("s", 0.0, source="a"), a_step("s", 1.0, source="b"), False),
    ],
)
def test_what_a_log_tells_first(one: Step, other: Step, is_before: bool) -> None:
    assert is_told_before(one, other) is is_before
