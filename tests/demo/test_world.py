"""A simulated site as a whole: deterministic, in the real formats, and its truth agrees with its output."""

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

from jobtui.demo.settings import DriverName, Settings
from jobtui.demo.workload import simulate
from jobtui.demo.world import World
from tests.demo.shapes import DRIVER, JOB, LINE, OP

FIXTURES = Path(__file__).parent.parent / "fixtures" / "sirepo"
REAL_RECORD = FIXTURES / "local" / "supervisor-job" / "DJouDZ9T-4F4EUZjI-heightWeightReport.json"

SITES = {
    "local": Settings(users=3, ops=150),
    "troubled": Settings(users=3, ops=150, restarts=0.03, crashes=0.03, agent_deaths=0.06),
    "docker": Settings(users=3, ops=150, driver=DriverName.DOCKER, pid_time=False, agent_deaths=0.05),
    "cluster": Settings(users=1, sbatch_users=3, ops=150, agent_deaths=0.03, restarts=0.01),
    "clashing": Settings(users=3, ops=150, prefixes=20, torn_records=0.3),
}


@pytest.fixture(params=SITES, scope="module")
def world(request: pytest.FixtureRequest) -> World:
    return simulate(11, SITES[request.param])


def _everything(world: World) -> dict[str, object]:
    logs: dict[str, object] = {name: world.log(name) for name in world.logs()}
    return logs | {"records": json.dumps(world.records()), "truth": world.truth()}


@pytest.mark.parametrize("site", SITES)
def test_same_seed_gives_same_bytes(site: str) -> None:
    assert _everything(simulate(5, SITES[site])) == _everything(simulate(5, SITES[site]))


def test_other_seed_gives_another_site() -> None:
    assert simulate(1, SITES["local"]).log("supervisor.log") != simulate(2, SITES["local"]).log(
        "supervisor.log"
    )


def test_every_line_begins_a_record_or_goes_on_with_one(world: World) -> None:
    lines = world.log("supervisor.log").decode().splitlines()

    assert LINE.match(lines[0])
    begun = sum(bool(LINE.match(line)) for line in lines)
    assert begun > 1_000


def test_texts_have_the_described_grammar(world: World) -> None:
    driver = re.compile(r"\b\w+Driver\(")
    for match in filter(None, map(LINE.match, world.log("supervisor.log").decode().splitlines())):
        message = match["msg"]
        if match["func"] in {"_write", "_write_to_log"}:
            continue
        assert bool(driver.search(message)) == bool(DRIVER.search(message)), message
        assert ("_ComputeJob(" in message) == bool(JOB.search(message)), message
        assert ("_Op(" in message) == bool(OP.search(message)), message


def test_times_never_go_back(world: World) -> None:
    if not world.settings.pid_time:
        pytest.skip("production lines have no time")
    own = [line for line in world.log("server.log").decode().splitlines() if LINE.match(line)]
    stamps = [line[:15] for line in own]
    assert stamps == sorted(stamps)


def test_truth_counts_what_the_log_shows(world: World) -> None:
    messages = _own_messages(world)
    ops = world.truth().ops

    created = [m.groups() for t in messages if (m := re.match(r"_Op\((\w+), (\w{4})\) runDir=", t))]
    assert created == [(op.name, op.op) for op in ops]
    assert _count(messages, r"\w+Driver\(.*?\]\) _Op\(\w+, \w{4}\) runDir=") == sum(op.sends for op in ops)
    answered = _count(messages, r"\w+Driver\(.*\]\) opName=\w+ o=(?!None$)\w{4}$")
    failed = _count(messages, r"\w+Driver\(.*\]\) error msg=.*'opId'")
    assert answered + failed == sum(op.replies for op in ops)
    told = _count(messages, r"\w+Driver\(.*\]\) opName=run_status_update o=None$")
    unowned = _count(messages, r"inactive job jid=")
    assert told - unowned <= sum(op.updates for op in ops) <= told


def _own_messages(world: World) -> list[str]:
    """Messages of the supervisor's own, in order."""
    lines = filter(None, map(LINE.match, world.log("supervisor.log").decode().splitlines()))
    own = [m for m in lines if m["file"].endswith(("sirepo/job_supervisor.py", "job_driver/__init__.py"))]
    return [m["msg"] for m in own]


def _count(messages: list[str], pattern: str) -> int:
    return sum(bool(re.match(pattern, text)) for text in messages)


def test_truth_of_jobs_is_what_the_records_say(world: World) -> None:
    truth = world.truth()
    records = world.records()

    assert truth.statuses == {jid: record["status"] for jid, record in records.items()}
    assert {op.jid for op in truth.ops} - {None} <= set(records)
    for jid, record in records.items():
        runs = [entry for entry in (*record["history"], record) if entry["computeJobSerial"]]
        assert len(runs) == sum(op.name == "run" for op in truth.of_job(jid)), jid


def test_records_have_the_fields_of_the_real_ones(world: World) -> None:
    real = set(json.loads(REAL_RECORD.read_bytes()))
    for record in world.records().values():
        assert real <= set(record) <= real | {"parallelStatus", "queuedState", "internalError"}
        assert ("parallelStatus" in record) == record["isParallel"]


def test_prefixes_can_be_made_few() -> None:
    truth = simulate(3, SITES["clashing"]).truth()

    assert len({op.op for op in truth.ops} | {agent.agent for agent in truth.agents}) <= 20
    assert len({op.op_id for op in truth.ops}) == len(truth.ops)


def test_local_agents_may_have_logs_of_their_own() -> None:
    world = simulate(3, Settings(users=2, ops=40, agents_in_supervisor_log=False))

    assert b"job_agent.py" not in world.log("supervisor.log")
    agents = [name for name in world.logs() if name.startswith("agent-")]
    assert agents
    assert all(b"job_agent.py:109:start" in world.log(name) for name in agents)


def test_there_is_one_supervisor_at_a_time() -> None:
    world = simulate(8, Settings(users=4, ops=200, driver=DriverName.DOCKER, restarts=0.05, crashes=0.02))
    lines = filter(None, map(LINE.match, world.log("supervisor.log").decode().splitlines()))
    pids = [m["pid"] for m in lines if not m["file"].endswith(("job_agent.py", "job_cmd.py"))]

    changes = [pid for before, pid in pairwise(pids) if pid != before]
    assert len(changes) >= 3
    assert len(set(changes)) == len(changes)
