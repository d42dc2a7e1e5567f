"""Where an agent's log is, and the command that shows it to whoever types it."""

import shlex
import subprocess

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.analysis.agent_logs import AgentLog, LogPlace, log_of, over_ssh
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import AgentPrefix, ContainerName
from jobtui.model.ops import Agent, AgentState

STARTED = Nanos(1_795_207_772 * SECOND)
"""Nov 20 20:49:32 of 2026."""
DOCKER = Agent(
    agent=AgentPrefix("t7K7"),
    driver="DockerDriver",
    kind="parallel",
    uid="VUlhaMOD",
    state=AgentState.CONNECTED,
    host="v1.sirepo.example",
    container=ContainerName("srj-p-VUlhaMOD"),
    container_id="14ebb6cea369",
    started_at=STARTED,
    supervisor="supervisor.log",
)
SBATCH = Agent(
    agent=AgentPrefix("ukUt"),
    driver="SbatchDriver",
    kind="parallel",
    uid="3pMDuIiL",
    state=AgentState.IDLE,
    host="cori.example",
    cluster_log="/scratch/jdoe/sirepo prod/job_agent.log",
)
GROUP = (("CONTAINER_NAME", "srj-p-VUlhaMOD"), ("CONTAINER_ID", "14ebb6cea369"))


def but(of: Agent, /, **changes: object) -> Agent:
    return msgspec.structs.replace(of, **changes)


def typed(command: str) -> list[str]:
    """The words that a program on the other side gets of a command typed into a shell here."""
    said = (
        'ssh() { test "$1" = v1.sirepo.example -o "$1" = cori.example || exit 9; shift; sh -c "$*"; }\n'
        "print() { printf '%s\\n' \"$@\"; }\n"
        "export -f print\n"
    )
    ends = "journalctl", "tail"
    for program in ends:
        said += f"{program}() {{ printf '%s\\n' {program} \"$@\"; }}\nexport -f {program}\n"
    said = said.replace('sh -c "$*"', 'bash -c "$*"')
    done = subprocess.run(
        ["bash", "-c", said + command], capture_output=True, text=True, check=True, timeout=20
    )
    return done.stdout.splitlines()


def test_the_log_of_a_local_agent_is_the_supervisors() -> None:
    local = but(DOCKER, driver="LocalDriver", container=None, host=None)
    assert log_of(local, {}) == AgentLog(LogPlace.SUPERVISOR, "supervisor.log", at=STARTED)
    assert log_of(but(local, log="other.log"), {}).name == "other.log"


def test_a_docker_agent_on_a_host_that_is_not_configured() -> None:
    found = log_of(DOCKER, {"v2": "ssh://v2"})
    assert found.place is LogPlace.REMOTE
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


def test_the_command_for_an_agent_that_is_gone_has_an_end() -> None:
    gone = but(DOCKER, state=AgentState.LOST, since=Nanos(STARTED + 10 * SECOND))
    assert typed(log_of(gone, {}).command)[-2:] == ["--until", "2026-11-20 20:50:42 UTC"]
    killed_before = but(gone, since=Nanos(STARTED - SECOND))
    assert "--until" not in log_of(killed_before, {}).command
    timeless = but(DOCKER, started_at=None)
    assert typed(log_of(timeless, {}).command)[-2:] == ["-n", "1000"]


@pytest.mark.parametrize("name", ["v1.sirepo.example", "v1"])
def test_a_docker_agent_on_a_host_that_is_configured(name: str) -> None:
    found = log_of(DOCKER, {name: "ssh://op@v1:22"})
    assert (found.place, found.name, found.matches) == (LogPlace.JOURNAL, "ssh://op@v1:22", (GROUP,))
    assert found.described == "ssh://op@v1:22 CONTAINER_NAME=srj-p-VUlhaMOD CONTAINER_ID=14ebb6cea369"
    assert found.command.startswith("ssh v1.sirepo.example ")


def test_the_log_of_a_docker_agent_whose_own_lines_are_read_is_where_they_are() -> None:
    read = log_of(but(DOCKER, log="srj-p-VUlhaMOD@v1"), {})
    assert (read.place, read.described, read.note) == (LogPlace.READ, "srj-p-VUlhaMOD@v1", "")
    assert read.command.startswith("ssh v1.sirepo.example ")
    forwarded = log_of(but(DOCKER, log="supervisor.log"), {})
    assert forwarded.place is LogPlace.REMOTE


def test_what_is_not_known_is_said() -> None:
    assert "container" in log_of(but(DOCKER, container=None), {}).described
    no_host = log_of(but(DOCKER, host=None), {"v1": "ssh://v1"})
    assert (no_host.place, "not known" in no_host.note) == (LogPlace.REMOTE, True)
    assert shlex.split(no_host.command)[0] == "journalctl"
    assert log_of(but(DOCKER, driver="OddDriver"), {}).place is LogPlace.UNKNOWN
    assert "cluster" in log_of(but(SBATCH, cluster_log=None), {}).described


@pytest.mark.parametrize("host", ["-oProxyCommand=touch x", "a b", "$(id)", "", "v1;id", "v1\n", "-v", "[x]"])
def test_what_is_no_name_of_a_host_gets_no_command(host: str) -> None:
    assert log_of(but(DOCKER, host=host), {}).command == ""
    assert over_ssh(host, ["true"]) == ""


def test_an_odd_container_gets_no_command() -> None:
    assert log_of(but(DOCKER, container="x; rm -rf /"), {}).place is LogPlace.UNKNOWN


def test_the_log_of_a_clusters_agent() -> None:
    found = log_of(SBATCH, {"cori": "ssh://cori"}, ["/srv/db/"])
    assert (found.place, found.name) == (LogPlace.CLUSTER, "ssh://cori")
    assert found.copies == "/srv/db/user/3pMDuIiL/agent-sbatch/cori.example"
    assert typed(found.command) == ["tail", "-n", "1000", "/scratch/jdoe/sirepo prod/job_agent.log"]
    assert log_of(but(SBATCH, host=None), {}, ["/srv/db"]).copies == "/srv/db/user/3pMDuIiL/agent-sbatch"
    assert log_of(but(SBATCH, uid="3pMD"), {}, ["/srv/db"]).copies == ""


@given(st.text(max_size=30))
@settings(max_examples=60, deadline=None)
def test_a_path_is_one_word_or_no_command(path: str) -> None:
    command = over_ssh("cori.example", ["tail", path])
    if not path.isprintable():
        assert command == ""
    elif "'" in path or '"' in path or "$" in path:
        assert typed(command) == ["tail", path]
    else:
        there = shlex.split(command)[2]
        assert shlex.split(there) == ["tail", path]
