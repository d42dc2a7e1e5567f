"""What commands say of a captured system that is known from its journals only, over each way to them."""

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.backends.journal.gateway_rig import Gatewayd, needs_gatewayd
from tests.backends.journal.make import needs_journal_tools
from tests.backends.journal.ssh_rig import a_server, needs_sshd
from tests.commands.running import AT, CAPTURES, Runner
from tests.journal_captures import container_rows, supervisor_rows

pytestmark = needs_journal_tools

DOCKER = CAPTURES / "docker"
TRUTH = json.loads((DOCKER / "expected.json").read_text())
RUN_JID = "VUlhaMOD-fuSjgiZf-activityAnimation"
MASKED = "export SIREPO_SIM_DB_FILE_SERVER_TOKEN='***'"
WRITTEN = b"\n".join(
    message
    for _, fields in [*supervisor_rows("docker"), *container_rows("docker")]
    for message in fields["MESSAGE"]
).decode()


@contextmanager
def here(directory: Path) -> Iterator[str]:
    yield str(directory)


@contextmanager
def over_ssh(directory: Path) -> Iterator[str]:
    with a_server() as server:
        yield server.address_of(directory)


@contextmanager
def over_http(directory: Path) -> Iterator[str]:
    with TemporaryDirectory() as text:
        server = Gatewayd(directory, Path(text) / "log")
        server.start()
        try:
            yield server.spec
        finally:
            server.die()


Transport = Callable[[Path], AbstractContextManager[str]]


@pytest.mark.parametrize(
    "transport",
    [
        pytest.param(here, id="journalctl"),
        pytest.param(over_ssh, marks=needs_sshd, id="ssh"),
        pytest.param(over_http, marks=needs_gatewayd, id="gatewayd"),
    ],
)
def test_a_job_and_all_agents_are_as_they_were(transport: Transport, run: Runner, journals: Path) -> None:
    with transport(journals) as spec:
        sources = ("--at", AT, "--srdb", DOCKER, "--journal", spec)
        agents = run("agents", "--json", *sources).json["agents"]
        assert {agent["agent"]: agent["messages"] for agent in agents} == {
            prefix: told["messages"] for prefix, told in TRUTH["agents"].items()
        }
        ops = run("timeline", RUN_JID, "--json", *sources).json["ops"]
        assert list(map(itemgetter("op", "name", "agent", "sends", "replies", "updates"), ops)) == list(
            map(
                itemgetter("op", "opName", "agent", "sent", "replies", "updates"),
                TRUTH["jobs"][RUN_JID]["ops"],
            )
        )
        assert all(op["arrived_at"] for op in ops if op["sends"])
        lines = run("logs", RUN_JID, "--json", *sources).json["lines"]
        assert {line["host"] for line in lines} == {"v3", "docker7"}
        assert [line["text"] for line in lines if line["text"] not in WRITTEN] == [MASKED]
