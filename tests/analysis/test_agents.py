"""What is known of agents: where each is, what it does, what it holds, and what became of it."""

import pytest

from jobtui.analysis.correlate import Correlator
from jobtui.model.clock import SECOND
from jobtui.model.ops import Agent, AgentState, HeldOp
from tests.analysis.captured import CAPTURES, correlate, correlate_interleaved, expected, logs
from tests.analysis.lines import (
    AGENT,
    JID,
    START,
    Log,
    begun,
    correlated,
    message,
    sent,
    update,
)

SBATCH = "SbatchDriver(a=ukUt k=parallel u=VUlh [])"
FULL_AGENT = "t7K7Gov6a5UmCGYNsiZFC9Eir3jSge4x"
WITH_RUN = AGENT.replace("[]", "[_Op(run, abcd)]")
EXEC_DIR = "agent_exec_dir=/srv/db/user/VUlhaMOD/agent-docker/v4.example.org/srj-p-VUlhaMOD"
STARTS = f"{AGENT} _Op(begin_session, sess) await=_do_agent_start"
ALIVE = message("alive")


def the_agent(*lines: str) -> Agent:
    (agent,) = correlated(*lines).agents()
    return agent


@pytest.mark.parametrize("order", ["supervisor first", "agents first"])
@pytest.mark.parametrize("seed", [None, 0, 1])
@pytest.mark.parametrize("capture", CAPTURES)
def test_agents_of_a_capture_are_those_that_were(capture: str, seed: int | None, order: str) -> None:
    found = dict(sorted(logs(capture).items(), reverse=order == "supervisor first"))
    correlator = correlate(found) if seed is None else correlate_interleaved(found, seed)
    truth = expected(capture)["agents"]
    agents = correlator.agents()
    assert {agent.agent: agent.messages for agent in agents} == {
        prefix: told["messages"] for prefix, told in truth.items()
    }
    # an agent says once that it is alive each time it connects
    for agent in agents:
        failed = 1 if (capture, agent.agent) == ("sbatch", "ukUt") else 0  # the login with a wrong password
        assert agent.starts - failed == truth[agent.agent]["alive"]


def test_what_became_of_the_agents_of_a_capture() -> None:
    agents = {str(agent.agent): agent for agent in correlate(logs("docker")).agents()}
    lost, after = agents["t7K7"], agents["hOJT"]
    assert (lost.state, lost.why, lost.restarts) == (AgentState.LOST, "docker start: non-zero exit=137", 0)
    assert (lost.container, lost.container_id) == ("srj-p-VUlhaMOD", "14ebb6cea369")
    assert (after.container, after.container_id) == ("srj-p-VUlhaMOD", "b480371a1a8b")
    assert (after.state, after.restarts) == (AgentState.KILLED, 1)
    assert {agent.host for agent in agents.values()} == {"v1.sirepo.example"}
    local = {str(agent.agent): agent for agent in correlate(logs("local")).agents()}
    assert (local["3jJv"].restarts, local["3jJv"].uid) == (1, "hZk95g40")
    cluster = {str(agent.agent): agent for agent in correlate(logs("sbatch")).agents()}
    assert (cluster["ukUt"].state, cluster["ukUt"].why) == (AgentState.LOST, "the supervisor was restarted")
    assert (cluster["somG"].state, cluster["somG"].uid) == (AgentState.IDLE, "3pMDuIiL")
    assert cluster["somG"].cluster_log == "/srv/sirepo/hpc/scratch/jdoe/sirepo-dev/job_agent.log"


@pytest.mark.parametrize(
    ("lines", "state", "why"),
    [
        ([STARTS], AgentState.STARTING, ""),
        ([f"{AGENT} {EXEC_DIR}"], AgentState.STARTING, ""),
        ([STARTS, ALIVE], AgentState.IDLE, ""),
        ([ALIVE], AgentState.IDLE, ""),
        ([message("ok", "abcd", WITH_RUN)], AgentState.CONNECTED, ""),
        ([STARTS, ALIVE, WITH_RUN + " opName=ok o=wxyz"], AgentState.CONNECTED, ""),
        ([STARTS, AGENT + " timeout=8"], AgentState.NEVER_CONNECTED, "did not connect within 8 s"),
        ([STARTS, AGENT + " timeout=8", AGENT + " cid=14ebb6cea369"], AgentState.NEVER_CONNECTED, None),
        ([STARTS, ALIVE, "websocket_on_close> " + AGENT], AgentState.LOST, "its connection ended"),
        ([ALIVE, "websocket_on_close> " + AGENT, AGENT + " cid=14eb"], AgentState.LOST, None),
        ([ALIVE, "websocket_on_close> " + AGENT, AGENT + " returncode=-9"], AgentState.LOST, "code -9"),
        ([ALIVE, AGENT + " pid=31"], AgentState.KILLED, "the supervisor stopped it"),
        ([ALIVE, AGENT + " pid=31", "websocket_on_close> " + AGENT], AgentState.KILLED, None),
        ([ALIVE, "_kill_if_idle> " + AGENT, AGENT + " pid=31"], AgentState.KILLED, "idle"),
        ([ALIVE, "websocket_on_close> " + AGENT, STARTS], AgentState.STARTING, ""),
        ([ALIVE, "websocket_on_close> " + AGENT, STARTS, ALIVE], AgentState.IDLE, ""),
        ([ALIVE, "default_command> ip=127.0.0.1 port=8001"], AgentState.LOST, "restarted"),
        ([AGENT], AgentState.UNKNOWN, ""),
        ([STARTS, f"{AGENT} error=no such image stack=Traceback", f"{AGENT} caller=_agent_start"],
         AgentState.NEVER_CONNECTED, "its start failed: no such image"),
        ([STARTS, f"{AGENT} error=X(params={{'reason': 'invalid-creds'}}) stack=T",
          f"{AGENT} caller=_agent_start"], AgentState.NEVER_CONNECTED, "its start failed: invalid-creds"),
        ([STARTS, ALIVE, f"{AGENT} caller=_agent_start"], AgentState.IDLE, ""),
    ],
)  # fmt: skip
def test_the_state_of_an_agent(lines: list[str], state: AgentState, why: str | None) -> None:
    agent = the_agent(*lines)
    assert agent.state is state
    assert why is None or (agent.why == why if not why else why in agent.why)


def test_an_agents_times() -> None:
    correlator = Correlator()
    log = Log()
    log.feed(correlator, [STARTS, "f> nothing", ALIVE])
    (agent,) = correlator.agents()
    assert (agent.started_at, agent.connected_at) == (START, START + 2 * SECOND)
    assert agent.since == agent.last_message_at == START + 2 * SECOND
    log.feed(correlator, ["websocket_on_close> " + AGENT, AGENT + " returncode=-9"])
    (agent,) = correlator.agents()
    assert agent.since == START + 3 * SECOND


@pytest.mark.parametrize(
    ("line", "host", "container"),
    [
        (f"{AGENT} {EXEC_DIR}", "v4.example.org", "srj-p-VUlhaMOD"),
        (f"{AGENT} running: docker --host=tcp://v4:2376 run --name=srj-p-VUlhaMOD x", "v4", "srj-p-VUlhaMOD"),
        (f"{AGENT} subprocess: docker --host=tcp://v4:2376 create --name=srj-p-VUlhaMOD x", "v4",
         "srj-p-VUlhaMOD"),
        (f"{AGENT} cname=srj-p-VUlhaMOD cid=14ebb6cea3697bf0d6c8914b391118833ad13dc62d8c28", None,
         "srj-p-VUlhaMOD"),
    ],
)  # fmt: skip
def test_where_an_agent_is(line: str, host: str | None, container: str) -> None:
    agent = the_agent(line)
    assert (agent.host, agent.container, agent.uid) == (host, container, "VUlhaMOD")
    assert agent.container_id in (None, "14ebb6cea369")


def test_a_docker_error_tells_host_and_reason() -> None:
    command = "('docker', '--host=tcp://v7:2376', 'start')"
    error = f"cmd=start cname=srj-p-VUlhaMOD error=non-zero exit=125 cmd={command}"
    agent = the_agent(f"{AGENT} cname=srj-p-VUlhaMOD cid=14ebb6cea369", error)
    assert (agent.host, agent.why) == ("v7", "docker start: non-zero exit=125")
    stop = error.replace("cmd=start", "cmd=stop")
    assert the_agent(f"{AGENT} cname=srj-p-VUlhaMOD cid=14ebb6cea369", stop).why == ""
    assert correlated(error).agents() == ()


def test_instances_of_a_container_are_kept_apart() -> None:
    second = AGENT.replace("t7K7", "hOJT")
    correlator = correlated(
        f"{AGENT} {EXEC_DIR}",
        f"{AGENT} cname=srj-p-VUlhaMOD cid=14ebb6cea369",
        ALIVE,
        "websocket_on_close> " + AGENT,
        f"{second} {EXEC_DIR}",
        f"{second} cname=srj-p-VUlhaMOD cid=b480371a1a8b",
        "cmd=start cname=srj-p-VUlhaMOD error= cmd=('docker',)",
    )
    first, then = correlator.agents()
    assert [(a.container_id, a.restarts) for a in (first, then)] == [("14ebb6cea369", 0), ("b480371a1a8b", 1)]
    assert (first.why, then.why) == ("its connection ended", "its container ended")


def test_a_container_after_a_restart_of_the_supervisor_is_no_restart_of_the_agent() -> None:
    second = AGENT.replace("t7K7", "hOJT")
    restart = "default_command> ip=127.0.0.1 port=8001"
    agents = correlated(f"{AGENT} {EXEC_DIR}", restart, f"{second} {EXEC_DIR}").agents()
    assert [agent.restarts for agent in agents] == [0, 0]


def test_the_ops_an_agent_holds() -> None:
    correlator = correlated(*begun()[:2], sent("run", "abcd", WITH_RUN))
    (agent,) = correlator.agents()
    assert agent.ops == (HeldOp("abcd", "run", JID, START + 2 * SECOND),)  # type: ignore[arg-type]
    log = Log(seconds=10)
    log.feed(correlator, [message("ok", "abcd", WITH_RUN)])
    assert [op.op for op in correlator.agents()[0].ops] == ["abcd"]
    log.feed(correlator, [line.replace(AGENT, WITH_RUN) for line in update("completed")])
    (agent,) = correlator.agents()
    assert (agent.ops, agent.state) == ((), AgentState.IDLE)


def test_an_op_that_was_not_read_is_held_all_the_same() -> None:
    agent = the_agent(WITH_RUN + " opName=run_status_update o=None")
    assert [(op.op, op.name, op.jid) for op in agent.ops] == [("abcd", "run", None)]
    given_up = AGENT.replace("[]", "[_Op(DESTROYED, run, abcd)]")
    assert the_agent(given_up + " opName=run_status_update o=None").ops == ()


def test_an_agent_that_is_gone_holds_nothing() -> None:
    agent = the_agent(*begun(), ALIVE, "websocket_on_close> " + WITH_RUN)
    assert (agent.state, agent.ops) == (AgentState.LOST, ())


@pytest.mark.parametrize("agent_first", [True, False])
def test_the_copy_of_a_clusters_log_tells_user_and_host(agent_first: bool) -> None:
    correlator = Correlator()
    copy = Log("/srv/db/user/VUlhaMOD/agent-sbatch/cori.example/20261120203431-remote-after-start.log")
    start = f"start> {{'agent_id': '{FULL_AGENT.replace('t7K7', 'ukUt')}', 'dev_source_dirs': False}}"
    if agent_first:
        copy.feed(correlator, [start])
    Log().feed(
        correlator,
        [f"{SBATCH} _Op(sbatch_login, wxyz) await=_do_agent_start", message("alive", agent=SBATCH)],
    )
    if not agent_first:
        copy.feed(correlator, [start])
    (agent,) = correlator.agents()
    assert (agent.uid, agent.host, agent.log) == ("VUlhaMOD", "cori.example", copy.name)


def test_full_ids_of_agents_are_nowhere() -> None:
    for capture in CAPTURES:
        shown = repr(correlate(logs(capture)).agents())
        for text in logs(capture).values():
            for line in text.decode(errors="replace").splitlines():
                if "'agent_id': '" in line:
                    full = line.partition("'agent_id': '")[2][:32]
                    assert full[4:] not in shown


def test_a_run_directory_on_a_cluster_tells_where_the_log_there_is() -> None:
    there = f"/scratch/jdoe/sirepo-prod/user/VUlhaMOD/myapp/{JID}"
    agent = the_agent(*begun()[:1], sent("run", "abcd", SBATCH, there))
    assert agent.cluster_log == "/scratch/jdoe/sirepo-prod/job_agent.log"
    assert the_agent(*begun()).cluster_log is None


COPY = "/srv/db/user/VUlhaMOD/agent-sbatch/cori/20261120203431-start.log"


@pytest.mark.parametrize(
    ("sources", "log"),
    [
        (["supervisor.log"], "supervisor.log"),
        (["supervisor.log", "own.log"], "own.log"),
        (["own.log", "supervisor.log"], "own.log"),
        ([COPY, "own.log"], "own.log"),
        (["own.log", COPY], "own.log"),
        (["supervisor.log", COPY], COPY),
        (["own.log", "later.log"], "later.log"),
    ],
)
def test_an_agents_own_log_comes_before_what_was_forwarded_or_copied(sources: list[str], log: str) -> None:
    correlator = correlated(STARTS)
    for at, name in enumerate(sources):
        lines = [f"start> {{'agent_id': '{FULL_AGENT}', 'dev_source_dirs': False}}"]
        Log(name, seconds=at + 1, pid=77).feed(correlator, lines)
    (agent,) = correlator.agents()
    assert agent.log == log
