"""A simulated site: deterministic, in the real formats, with its truth beside its output."""

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

from jobtui.demo.site import DriverName
from tests.demo.shapes import DRIVER, JOB, LINE, OP
from tests.demo.workload import Settings, WatchedWorld, simulate

FIXTURES = Path(__file__).parent.parent / "fixtures" / "sirepo"
REAL_RECORD = FIXTURES / "local" / "supervisor-job" / "DJouDZ9T-4F4EUZjI-heightWeightReport.json"

SITES = {
    "local": Settings(users=3, ops=150),
    "troubled": Settings(users=3, ops=150, restarts=0.03, crashes=0.03, agent_deaths=0.06),
    "docker": Settings(users=3, ops=150, driver=DriverName.DOCKER, pid_time=False, agent_deaths=0.05),
    "cluster": Settings(users=1, sbatch_users=3, ops=150, agent_deaths=0.03, restarts=0.01),
}


@pytest.fixture(params=SITES, scope="module")
def world(request: pytest.FixtureRequest) -> WatchedWorld:
    return simulate(11, SITES[request.param])


def _everything(world: WatchedWorld) -> dict[str, object]:
    logs: dict[str, object] = {name: world.log(name) for name in world.logs()}
    return logs | {"records": json.dumps(world.records()), "truth": world.witness.ops}


@pytest.mark.parametrize("site", SITES)
def test_same_seed_gives_same_bytes(site: str) -> None:
    assert _everything(simulate(5, SITES[site])) == _everything(simulate(5, SITES[site]))


def test_texts_have_the_described_grammar(world: WatchedWorld) -> None:
    driver = re.compile(r"\b\w+Driver\(")
    for match in filter(None, map(LINE.match, world.log("supervisor.log").decode().splitlines())):
        message = match["msg"]
        if match["func"] in {"_write", "_write_to_log"}:
            continue
        assert bool(driver.search(message)) == bool(DRIVER.search(message)), message
        assert ("_ComputeJob(" in message) == bool(JOB.search(message)), message
        assert ("_Op(" in message) == bool(OP.search(message)), message


def test_times_never_go_back(world: WatchedWorld) -> None:
    if not world.settings.pid_time:
        pytest.skip("production lines have no time")
    own = [line for line in world.log("server.log").decode().splitlines() if LINE.match(line)]
    stamps = [line[:15] for line in own]
    assert stamps == sorted(stamps)


def test_truth_counts_what_the_log_shows(world: WatchedWorld) -> None:
    messages = _own_messages(world)
    ops = world.witness.ops

    created = [m.groups() for t in messages if (m := re.match(r"_Op\((\w+), (\w{4})\) runDir=", t))]
    assert created == [(op.name, op.op) for op in ops]
    assert _count(messages, r"\w+Driver\(.*?\]\) _Op\(\w+, \w{4}\) runDir=") == sum(op.sends for op in ops)
    answered = _count(messages, r"\w+Driver\(.*\]\) opName=\w+ o=(?!None$)\w{4}$")
    failed = _count(messages, r"\w+Driver\(.*\]\) error msg=.*'opId'")
    assert answered + failed == sum(op.replies for op in ops)
    told = _count(messages, r"\w+Driver\(.*\]\) opName=run_status_update o=None$")
    assert sum(op.updates for op in ops) == told


def _own_messages(world: WatchedWorld) -> list[str]:
    lines = filter(None, map(LINE.match, world.log("supervisor.log").decode().splitlines()))
    own = [m for m in lines if m["file"].endswith(("sirepo/job_supervisor.py", "job_driver/__init__.py"))]
    return [m["msg"] for m in own]


def _count(messages: list[str], pattern: str) -> int:
    return sum(bool(re.match(pattern, text)) for text in messages)


def test_truth_of_jobs_is_what_the_records_say(world: WatchedWorld) -> None:
    records = world.records()

    assert {op.jid for op in world.witness.ops} - {None} <= set(records)
    for jid, record in records.items():
        runs = [entry for entry in (*record["history"], record) if entry["computeJobSerial"]]
        assert len(runs) == sum(op.name == "run" for op in world.witness.of_job(jid)), jid


def test_records_have_the_fields_of_the_real_ones(world: WatchedWorld) -> None:
    real = set(json.loads(REAL_RECORD.read_bytes()))
    for record in world.records().values():
        assert real <= set(record) <= real | {"parallelStatus", "queuedState", "internalError"}
        assert ("parallelStatus" in record) == record["isParallel"]


def test_there_is_one_supervisor_at_a_time() -> None:
    world = simulate(8, Settings(users=4, ops=200, driver=DriverName.DOCKER, restarts=0.05, crashes=0.02))
    lines = filter(None, map(LINE.match, world.log("supervisor.log").decode().splitlines()))
    pids = [m["pid"] for m in lines if not m["file"].endswith(("job_agent.py", "job_cmd.py"))]

    changes = [pid for before, pid in pairwise(pids) if pid != before]
    assert len(changes) >= 3
    assert len(set(changes)) == len(changes)


def test_what_containers_print_is_forwarded_in_pieces_that_are_cut_and_glued() -> None:
    world = simulate(4, Settings(driver=DriverName.DOCKER, users=2, ops=40))
    log = world.log("supervisor.log").decode()
    names = [name for name in world.logs() if name.startswith("container-")]
    assert names
    for name in names:
        container = name.removeprefix("container-").removesuffix(".log")
        printed = world.log(name).decode()
        shown = "".join(re.findall(rf"_write {container} (.*)", log))
        assert printed.replace("\n", "").startswith(shown)
        assert len(shown) > len(printed) / 2
    assert re.search(r"_write srj-\S+ .*runDir=\S+[a-zA-Z][A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d +\d+ ", log)
