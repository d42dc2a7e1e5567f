"""Single lines of a supervisor that are steps of an op or a job."""

import pytest

from jobtui.model.ops import AgentState, OpStatus
from tests.analysis.lines import (
    AGENT,
    FULL,
    JID,
    assigned,
    begun,
    correlated,
    created,
    job,
    message,
    steps_of,
    the_op,
)

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
