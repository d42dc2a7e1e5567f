"""What is known of agents: where each is, what it does, what it holds, and what became of it."""

import re
import shlex
import subprocess
from itertools import product

import msgspec

from jobtui.analysis.correlation.correlator import Correlator
from jobtui.analysis.explain.case import FALLS, WITHIN_S, Flaps
from jobtui.analysis.filter import AGENT_FIELDS
from jobtui.analysis.paths import LogKind, log_of
from jobtui.demo.incidents import Scenario, good_plan
from jobtui.demo.site import SUPERVISOR_LOG
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import ContainerName, JobId, OpPrefix
from jobtui.model.ops import Agent, AgentState, HeldOp
from jobtui.model.settings import ClusterAccess
from jobtui.model.verdicts import Code
from tests.analysis.captured import CAPTURES, correlate, correlate_interleaved, expected, logs
from tests.analysis.explain.cases import gatherer_of, incidents, jobs_of, samples_of
from tests.analysis.lines import (
    AGENT,
    JID,
    NAMES,
    START,
    TABLES,
    Log,
    begun,
    correlated,
    message,
    read,
    sent,
    update,
)
from tests.builders import ago, an_agent
from tests.demo.sites import DriverName, Settings, World
from tests.offenders import each
from tests.rows import ROWS, table
from tests.waiting import LONG_S

HEAVY = ("srw", "multiElectronAnimation")
SBATCH = "SbatchDriver(a=ukUt k=parallel u=VUlh [])"
FULL_AGENT = "t7K7Gov6a5UmCGYNsiZFC9Eir3jSge4x"
WITH_RUN, STARTS = NAMES["WITH_RUN"], NAMES["STARTS"]
ALIVE = message("alive")


def the_agent(*lines: str) -> Agent:
    (agent,) = correlated(*lines).agents()
    return agent


@each(*product(CAPTURES, [None, 0, 1], ["supervisor first", "agents first"]))
def test_agents_of_a_capture_are_those_that_were(capture: str, seed: int | None, order: str) -> None:
    found = dict(sorted(logs(capture).items(), reverse=order == "supervisor first"))
    correlator = correlate(found) if seed is None else correlate_interleaved(found, seed)
    truth = expected(capture)["agents"]
    agents = correlator.agents()
    assert {agent.agent: agent.messages for agent in agents} == {
        prefix: told["messages"] for prefix, told in truth.items()
    }
    full_ids = {one for text in found.values() for one in re.findall(rb"'agent_id': '\w{4}(\w{28})", text)}
    assert full_ids
    assert not [full for full in full_ids if full.decode() in repr(agents)]
    # an agent says once that it is alive each time it connects
    for agent in agents:
        failed = 1 if (capture, agent.agent) == ("sbatch", "ukUt") else 0  # the login with a wrong password
        assert agent.starts - failed == truth[agent.agent]["alive"]


@each(*ROWS["what became of agents"])
def test_agents_end_as_the_truth_of_a_capture_says(capture: str, agent: str, told: dict[str, object]) -> None:
    agents = {str(one.agent): one for one in correlate(logs(capture)).agents()}
    assert {name: getattr(agents[agent], name) for name in told} == told
    assert capture != "docker" or {one.host for one in agents.values()} == {"v1.sirepo.example"}


@each(*TABLES["agents"]["state"])
def test_the_state_of_an_agent(lines: list[str], state: str, why: str) -> None:
    (agent,) = read(lines)[0].agents()
    assert agent.state == state
    assert why in agent.why
    assert bool(why) is bool(agent.why)


@each(*TABLES["agents"]["place"])
def test_a_start_line_tells_the_host_and_container_of_an_agent(line: str, host: str, container: str) -> None:
    (agent,) = read([line])[0].agents()
    assert (agent.host or "", agent.container, agent.uid) == (host, container, "VUlhaMOD")
    assert agent.container_id in (None, "14ebb6cea369")


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


def test_an_unread_op_is_held_by_a_live_agent_but_not_by_one_that_is_gone() -> None:
    agent = the_agent(WITH_RUN + " opName=run_status_update o=None")
    assert [(op.op, op.name, op.jid) for op in agent.ops] == [("abcd", "run", None)]
    given_up = AGENT.replace("[]", "[_Op(DESTROYED, run, abcd)]")
    assert the_agent(given_up + " opName=run_status_update o=None").ops == ()
    gone = the_agent(*begun(), ALIVE, "websocket_on_close> " + WITH_RUN)
    assert (gone.state, gone.ops) == (AgentState.LOST, ())


@each(True, False)
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


@each(*ROWS["logs of an agent"])
def test_an_agents_own_log_comes_before_what_was_forwarded_or_copied(sources: list[str], log: str) -> None:
    correlator = correlated(STARTS)
    for at, name in enumerate(sources):
        lines = [f"start> {{'agent_id': '{FULL_AGENT}', 'dev_source_dirs': False}}"]
        Log(name, seconds=at + 1, pid=77).feed(correlator, lines)
    (agent,) = correlator.agents()
    assert agent.log == log


STARTED = Nanos(1_795_207_772 * SECOND)
"""Nov 20 20:49:32 of 2026."""
DOCKER = an_agent(
    "t7K7", uid="VUlhaMOD", state=AgentState.CONNECTED, host="v1.sirepo.example", started_at=STARTED,
    container=ContainerName("srj-p-VUlhaMOD"), supervisor="supervisor.log", since=None, connected_at=None,
)  # fmt: skip
ON_CLUSTER = an_agent(
    "ukUt", driver="SbatchDriver", uid="3pMDuIiL", host="cori.example", started_at=None, container=None,
    container_id=None, cluster_log="/scratch/jdoe/sirepo prod/job_agent.log",
)  # fmt: skip
GROUP = (("CONTAINER_NAME", "srj-p-VUlhaMOD"), ("CONTAINER_ID", "14ebb6cea369"))


def but(of: Agent, /, **changes: object) -> Agent:
    return msgspec.structs.replace(of, **changes)


def typed(command: str) -> list[str]:
    """The words that a program on the other side gets of a command typed into a shell here."""
    said = 'ssh() { test "$1" = v1.sirepo.example -o "$1" = cori.example || exit 9; shift; bash -c "$*"; }\n'
    for program in ("journalctl", "tail"):
        said += f"{program}() {{ printf '%s\\n' {program} \"$@\"; }}\nexport -f {program}\n"
    done = subprocess.run(
        ["bash", "-c", said + command], capture_output=True, text=True, check=True, timeout=LONG_S
    )
    return done.stdout.splitlines()


LOCAL = but(DOCKER, driver="LocalDriver", container=None, host=None)


@each(
    (LOCAL, {}, LogKind.SUPERVISOR, "supervisor.log"),
    (but(LOCAL, log="other.log"), {}, LogKind.SUPERVISOR, "other.log"),
    (DOCKER, {"v2": "ssh://v2"}, LogKind.REMOTE, None),
    (but(DOCKER, log="supervisor.log"), {}, LogKind.REMOTE, None),
    (but(DOCKER, host=None), {"v1": "ssh://v1"}, LogKind.REMOTE, None),
    (DOCKER, {"v1.sirepo.example": "ssh://op@v1:22"}, LogKind.JOURNAL, "ssh://op@v1:22"),
    (DOCKER, {"v1": "ssh://op@v1:22"}, LogKind.JOURNAL, "ssh://op@v1:22"),
    (but(DOCKER, log="srj-p-VUlhaMOD@v1"), {}, LogKind.READ, "srj-p-VUlhaMOD@v1"),
    (but(DOCKER, driver="OddDriver"), {}, LogKind.UNKNOWN, None),
    (but(DOCKER, container="x; rm -rf /"), {}, LogKind.UNKNOWN, None),
    (ON_CLUSTER, {"cori": "ssh://cori"}, LogKind.CLUSTER, "ssh://cori"),
)
def test_log_of_finds_the_log(agent: Agent, hosts: dict[str, str], kind: LogKind, name: str | None) -> None:
    found = log_of(agent, ClusterAccess(hosts=hosts))
    assert found.kind is kind
    assert name is None or found.name == name
    if kind in (LogKind.JOURNAL, LogKind.READ):
        assert found.command.startswith("ssh v1.sirepo.example ")
    if kind is LogKind.JOURNAL:
        assert found.matches == (GROUP,)
        assert found.described == f"{name} CONTAINER_NAME=srj-p-VUlhaMOD CONTAINER_ID=14ebb6cea369"
    if kind is LogKind.READ:
        assert (found.described, found.note) == (name, "")


def test_the_command_for_a_host_that_is_not_configured_has_begin_and_end() -> None:
    found = log_of(DOCKER, ClusterAccess(hosts={"v2": "ssh://v2"}))
    assert found.command == (
        'ssh v1.sirepo.example "journalctl --utc CONTAINER_NAME=srj-p-VUlhaMOD CONTAINER_ID=14ebb6cea369'
        " --since '2026-11-20 20:49:27 UTC'\""
    )
    assert "[hosts]" in found.note
    assert found.described == found.command
    assert typed(found.command) == [
        "journalctl", "--utc", "CONTAINER_NAME=srj-p-VUlhaMOD", "CONTAINER_ID=14ebb6cea369",
        "--since", "2026-11-20 20:49:27 UTC",
    ]  # fmt: skip
    gone = but(DOCKER, state=AgentState.LOST, since=Nanos(STARTED + 10 * SECOND))
    assert typed(log_of(gone).command)[-2:] == ["--until", "2026-11-20 20:50:42 UTC"]
    killed_before = but(gone, since=Nanos(STARTED - SECOND))
    assert "--until" not in log_of(killed_before).command
    timeless = but(DOCKER, started_at=None)
    assert typed(log_of(timeless).command)[-2:] == ["-n", "1000"]


def test_log_of_says_what_is_not_known() -> None:
    assert "container" in log_of(but(DOCKER, container=None)).described
    no_host = log_of(but(DOCKER, host=None), ClusterAccess(hosts={"v1": "ssh://v1"}))
    assert "not known" in no_host.note
    assert shlex.split(no_host.command)[0] == "journalctl"
    assert "cluster" in log_of(but(ON_CLUSTER, cluster_log=None)).described


@each(
    (ON_CLUSTER, ("/srv/db/",), "/srv/db/user/3pMDuIiL/agent-sbatch/cori.example"),
    (but(ON_CLUSTER, host=None), ("/srv/db",), "/srv/db/user/3pMDuIiL/agent-sbatch"),
    (but(ON_CLUSTER, uid="3pMD"), ("/srv/db",), ""),
)
def test_copies_of_the_log_of_a_clusters_agent(agent: Agent, roots: tuple[str, ...], copies: str) -> None:
    found = log_of(agent, ClusterAccess({}, {"cori": "ssh://cori"}, roots))
    assert found.copies == copies
    if agent is ON_CLUSTER:
        log = "/scratch/jdoe/sirepo prod/job_agent.log"
        assert typed(found.command) == ["tail", "-n", "1000", "--", log]


HELD = HeldOp(OpPrefix("pb5u"), "run", JobId("VUlhaMOD-HrCJ26rQ-activityAnimation"))
AGENTS: dict[str, Agent] = {
    "docker": but(DOCKER, ops=(HELD,)),
    "sbatch": ON_CLUSTER,
    "lost": but(DOCKER, agent="hOJT", state=AgentState.LOST, why="docker start: non-zero exit=137"),
    "never": but(DOCKER, agent="XGv8", state=AgentState.NEVER_CONNECTED, host="v2", kind="sequential"),
}


@each(*table("filters")["agents"].items())
def test_filters_select_agents(text: str, found: str) -> None:
    passes = AGENT_FIELDS.parse(text)
    assert {name for name, agent in AGENTS.items() if passes(agent)} == set(found.split())


def fallen(*seconds: float, uid: str = "EPRSqtUW", host: str = "v3.example.org") -> Agent:
    return an_agent(uid=uid, host=host, falls=tuple(ago(one) for one in seconds))


OTHERS = [fallen(5, 60, uid=f"u{n}serabc") for n in (1, 2)]
ELSEWHERE = [fallen(5, 60, uid=f"u{n}serabc", host="v9") for n in (1, 2)]
OF_USER = "the parallel agent of user EPRSqtUW ended 3 times within "


@each(
    ([fallen(10, 20)], 0, None),
    ([fallen(10, 200, 400)], 0, f"{OF_USER}6m30s"),
    ([fallen(10, 20, WITHIN_S + 1)], 0, None),
    ([fallen(10), fallen(20), fallen(30)], 0, f"{OF_USER}20s"),  # with Docker each start is another
    ([fallen(10, 20), *OTHERS], 0, "agents on v3.example.org ended 6 times within 55s"),
    ([fallen(10, 20), *ELSEWHERE], 0, None),
    ([fallen(10, 20, 30)], 25, None),  # what ended later does not count
)
def test_many_ends_in_a_short_time_flap(agents: list[Agent], at_s: float, words: str | None) -> None:
    found = Flaps(agents).around(agents[0], ago(at_s))
    assert (found.words if found is not None else None) == words


async def dies_again_and_again(scenario: Scenario, times: int) -> None:
    for number in range(times):
        simulation = await scenario.simulation(HEAVY, f"beamline {number}")
        answer = await scenario.browser.start(simulation, good_plan(simulation.model, 900))
        answer = await scenario.browser.watch(simulation, answer, for_s=10 + 3 * number)
        await scenario.kill_agent("parallel")
        await scenario.browser.watch(simulation, answer)


@each(*product(list(DriverName), [1, FALLS + 1]))
def test_the_jobs_of_an_agent_that_flaps_are_one_incident(driver: DriverName, times: int) -> None:
    world = World(5, Settings(users=0, driver=driver))
    world.start()
    scenario = Scenario(world, world.add_user())
    world.play(lambda: dies_again_and_again(scenario, times))
    world.advance(Nanos(world.kernel.now + 300 * SECOND))
    now = world.kernel.now
    jobs = jobs_of(world)
    knows = correlate({SUPERVISOR_LOG: world.log(SUPERVISOR_LOG)})
    explained = samples_of(gatherer_of(knows, jobs, now), jobs)
    verdicts = [sample.verdict for sample in explained if sample.verdict is not None]
    assert {verdict.code for verdict in verdicts} == {Code.AGENT_LOST}
    flaps = [verdict for verdict in verdicts if "It flaps" in verdict.sentence]
    assert len(flaps) == max(0, times - FALLS + 1)
    if flaps:
        found = incidents(explained)
        assert any(one.name == "flapping" for group in found.groups for one in group.shared)
