"""Lines of agents and of the API server, tied to the ops of a supervisor."""

import pytest

from jobtui.analysis.correlate import Correlator
from tests.analysis.lines import (
    FULL,
    JID,
    RUN_DIR,
    START,
    Log,
    arrived,
    begun,
    cmd,
    correlated,
    message,
    steps_of,
    the_op,
    update,
)

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
