"""A simulated site: deterministic, in the real formats; its streams, and its truth beside its output."""

import json
import random
import re
from itertools import pairwise
from pathlib import Path

import pytest

from jobtui.demo.kernel import Kernel
from jobtui.demo.messages import lines_of
from jobtui.demo.site import DriverName, Stream, TailStream
from jobtui.model.clock import SECOND, Nanos
from tests.demo.shapes import DRIVER, JOB, LINE, OP
from tests.demo.workload import Settings, TearingProcess, WatchedWorld, simulate

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
def world(request: pytest.FixtureRequest) -> WatchedWorld:
    return simulate(11, SITES[request.param])


def _everything(world: WatchedWorld) -> dict[str, object]:
    logs: dict[str, object] = {name: world.log(name) for name in world.logs()}
    return logs | {"records": json.dumps(world.records()), "truth": world.witness.ops}


@pytest.mark.parametrize("site", SITES)
def test_same_seed_gives_same_bytes(site: str) -> None:
    assert _everything(simulate(5, SITES[site])) == _everything(simulate(5, SITES[site]))


def test_other_seed_gives_another_site() -> None:
    assert simulate(1, SITES["local"]).log("supervisor.log") != simulate(2, SITES["local"]).log(
        "supervisor.log"
    )


def test_every_line_begins_a_record_or_goes_on_with_one(world: WatchedWorld) -> None:
    lines = world.log("supervisor.log").decode().splitlines()

    assert LINE.match(lines[0])
    begun = sum(bool(LINE.match(line)) for line in lines)
    assert begun > 1_000


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
    unowned = _count(messages, r"inactive job jid=")
    assert told - unowned <= sum(op.updates for op in ops) <= told


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


def test_prefixes_can_be_made_few() -> None:
    witness = simulate(3, SITES["clashing"]).witness

    assert len({op.op for op in witness.ops} | witness.agents) <= 20
    assert len({op.op_id for op in witness.ops}) == witness.count


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


START = Nanos(1_795_206_870 * SECOND)


def _process(stream: Stream, kernel: Kernel, *, head: bool = True) -> TearingProcess:
    lines = lines_of(Settings().site_packages)
    return TearingProcess(kernel, random.Random(1), lines, stream, 4711, head=head)


def test_a_line_has_time_process_and_call_site() -> None:
    kernel = Kernel(START)
    stream = Stream(kernel)

    _process(stream, kernel).log("listening", 8001)

    assert stream.take(everything=True) == (
        b"Nov 20 20:34:30  4711     0 ../../venv/lib/python3.11/site-packages/sirepo/pkcli/job_supervisor.py"
        b":78:default_command ip=127.0.0.1 port=8001\n"
    )


def test_production_lines_have_no_time() -> None:
    kernel = Kernel(START)
    stream = Stream(kernel)

    _process(stream, kernel, head=False).log("listening", 8001)

    assert stream.take(everything=True).startswith(b"../../venv/")


def test_lines_of_two_processes_are_mixed_by_their_clocks() -> None:
    kernel = Kernel(START)
    stream = Stream(kernel)
    busy, quick = _process(stream, kernel), _process(stream, kernel)
    busy.work(0.5)
    busy.log("listening", 1)
    quick.log("listening", 2)

    assert re.findall(rb"port=(\d)", stream.take(everything=True)) == [b"2", b"1"]


def test_only_what_is_settled_is_taken() -> None:
    kernel = Kernel(START)
    stream = Stream(kernel)
    _process(stream, kernel).log("listening", 1)

    assert stream.take() == b""
    kernel.run(Nanos(START + SECOND))
    assert stream.take().endswith(b"port=1\n")
    assert stream.take(everything=True) == b""


def test_an_ended_process_writes_nothing() -> None:
    kernel = Kernel(START)
    stream = Stream(kernel)
    process = _process(stream, kernel)
    process.end()
    process.log("listening", 1)

    assert stream.take(everything=True) == b""


def test_a_torn_record_loses_nothing() -> None:
    kernel = Kernel(START)
    stream = Stream(kernel)
    process = _process(stream, kernel)
    process.torn = 1.0
    process.log("program", "cmd", "one\ntwo\nthree")

    text = stream.take(everything=True)
    assert text.endswith(b"cmd=cmd stdin=one\ntwo\nthree\n")
    assert text.count(b"\n") == 3


def test_a_tail_remembers_what_was_taken() -> None:
    kernel = Kernel(START)
    stream = TailStream(kernel, keep=2)
    for text in ("a", "b", "c"):
        stream.write(START, text)

    assert stream.take(everything=True) == b"a\nb\nc\n"
    assert stream.tail() == "b\nc\n"


@pytest.fixture(scope="module")
def forwarded() -> dict[str, tuple[str, str]]:
    """For each container what it printed, and what the supervisor's log has of it, without newlines."""
    world = simulate(4, Settings(driver=DriverName.DOCKER, users=2, ops=40))
    found = {}
    log = world.log("supervisor.log").decode()
    for name in [name for name in world.logs() if name.startswith("container-")]:
        container = name.removeprefix("container-").removesuffix(".log")
        pieces = re.findall(rf"_write {container} (.*)", log)
        found[container] = (world.log(name).decode(), "".join(pieces))
    return found


def test_forwarded_output_is_a_prefix_of_what_was_printed(forwarded: dict[str, tuple[str, str]]) -> None:
    assert forwarded
    for printed, shown in forwarded.values():
        assert printed.replace("\n", "").startswith(shown)
        assert len(shown) > len(printed) / 2


def test_forwarded_output_is_cut_and_glued(forwarded: dict[str, tuple[str, str]]) -> None:
    world = simulate(4, Settings(driver=DriverName.DOCKER, users=2, ops=40))
    log = world.log("supervisor.log").decode()

    glued = re.findall(r"_write srj-\S+ .*runDir=\S+[a-zA-Z][A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d +\d+ ", log)
    assert glued
