"""Correlation of real logs is equal to the truth noted inside the supervisor, whatever is read first."""

import gzip
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from jobtui.analysis.correlation import NothingRead
from jobtui.analysis.correlation.correlator import Correlator
from jobtui.demo.site import DriverName
from jobtui.formats.parser import LogParser
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import JobId
from jobtui.model.ops import Component, Correlation, Op, Step
from tests.analysis.captured import (
    CAPTURES,
    Seen,
    correlate,
    correlate_interleaved,
    expected,
    growing,
    logs,
    seen,
    true_ops,
    with_few_prefixes,
)
from tests.demo.workload import Settings, TrueOp, WatchedWorld, simulate

SUPERVISOR = "supervisor.log"
ORDERS = ("supervisor first", "agents first", "supervisor only")
SEEDS = range(3)
AGENT_SIDE = frozenset({Component.AGENT, Component.JOB_CMD})


def sources(capture: str, order: str) -> dict[str, bytes]:
    found = logs(capture)
    if order == "supervisor only":
        return {SUPERVISOR: found[SUPERVISOR]}
    last_first = order == "supervisor first"
    return dict(sorted(found.items(), key=lambda item: (item[0] == SUPERVISOR) != last_first))


def ops_of_jobs(correlator: Correlator, capture: str) -> list[Seen]:
    """Every op as a screen asks for it, by its job; and those of none."""
    jids = [JobId(jid) for jid in expected(capture)["jobs"]]
    of_jobs = [seen(op) for jid in jids for op in correlator.ops_of(jid)]
    return of_jobs + [seen(op) for op in correlator.ops() if op.jid is None]


def assert_true(correlator: Correlator, truth: list[Seen], capture: str) -> None:
    assert Counter(ops_of_jobs(correlator, capture)) == Counter(truth)
    assert Counter(seen(op) for op in correlator.ops()) == Counter(truth)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("capture", CAPTURES)
def test_every_op_is_as_it_was(capture: str, order: str) -> None:
    assert_true(correlate(sources(capture, order)), true_ops(capture), capture)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("capture", CAPTURES)
def test_every_op_is_as_it_was_when_logs_grow_together(capture: str, seed: int, order: str) -> None:
    assert_true(correlate_interleaved(sources(capture, order), seed), true_ops(capture), capture)


@pytest.mark.parametrize("prefixes", [20, 5, 1])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("capture", CAPTURES)
def test_ops_that_share_a_prefix_are_told_apart(capture: str, seed: int, prefixes: int) -> None:
    rewritten, truth = with_few_prefixes(capture, prefixes, seed)
    assert len({op.op for op in truth}) <= prefixes
    assert_true(correlate(rewritten), truth, capture)
    assert_true(correlate_interleaved(rewritten, seed), truth, capture)


@pytest.mark.parametrize("capture", CAPTURES)
def test_prefixes_of_a_capture_leave_no_doubt(capture: str) -> None:
    correlator = correlate(logs(capture))
    assert [op.op for op in correlator.ops() if op.candidates] == []


@pytest.mark.parametrize("order", ORDERS[:2])
@pytest.mark.parametrize("capture", CAPTURES)
def test_every_op_that_was_sent_has_arrived(capture: str, order: str) -> None:
    correlator = correlate(sources(capture, order))
    sent = [op for op in correlator.ops() if op.sends]
    assert sent
    assert [op.op for op in sent if op.arrived_at is None] == []
    assert [op.op for op in sent if [s.step for s in op.steps].count("arrived") != 1] == []


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("capture", CAPTURES)
def test_no_line_that_names_a_job_is_left_over(capture: str, order: str) -> None:
    correlator = correlate_interleaved(sources(capture, order), 1)
    jids = [JobId(jid) for jid in expected(capture)["jobs"]]
    assert [left for jid in jids for left in correlator.unlinked_of(jid)] == []


@pytest.mark.parametrize("capture", CAPTURES)
def test_a_process_that_serves_all_jobs_is_no_ops(capture: str) -> None:
    steps = [step for op in correlate(logs(capture)).ops() for step in op.steps]
    agents = [step.text for step in steps if step.component in AGENT_SIDE]
    assert [text for text in agents if "_FastCgiCmd(" in text] == []
    assert agents


def test_captures_hold_lines_of_a_process_that_serves_all_jobs() -> None:
    assert any(b"_FastCgiCmd(" in data for capture in CAPTURES for data in logs(capture).values())


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("capture", CAPTURES)
def test_steps_lead_back_to_their_lines(capture: str, order: str) -> None:
    given = sources(capture, order)
    lines = {name: data.split(b"\n") for name, data in given.items()}
    jids = [JobId(jid) for jid in expected(capture)["jobs"]]
    correlator = correlate_interleaved(given, 2)
    steps = [step for jid in jids for op in correlator.ops_of(jid) for step in op.steps]
    assert {step.source for step in steps} <= given.keys()
    for step in steps:
        line = lines[step.source][step.line - 1]
        assert given[step.source][step.offset :].startswith(line)
        assert step.text in line.decode() or b"_write srj-" in line


@pytest.mark.parametrize("capture", CAPTURES)
def test_steps_come_in_the_order_of_time(capture: str) -> None:
    for op in correlate(sources(capture, "agents first")).ops():
        times = [step.at for step in op.steps if step.at is not None]
        assert times == sorted(times), op.op


@pytest.mark.parametrize("capture", CAPTURES)
def test_jobs_are_announced_as_better_known(capture: str) -> None:
    """Whatever `feed` does not name has not changed: what was asked before is still right."""
    correlator = Correlator()
    jids = [JobId(jid) for jid in expected(capture)["jobs"]]
    known = {jid: (correlator.ops_of(jid), correlator.unlinked_of(jid)) for jid in jids}
    for records in growing(logs(capture), 3):
        changed = correlator.feed(records)
        for jid in jids:
            now = correlator.ops_of(jid), correlator.unlinked_of(jid)
            assert jid in changed or now == known[jid]
            known[jid] = now


def told(correlator: Correlator, capture: str) -> Counter[tuple[str, str, Step]]:
    """What is told of every op, whichever of several logs it was read in."""
    jids = [JobId(jid) for jid in expected(capture)["jobs"]]
    nowhere = {"source": "", "line": 0, "offset": 0, "text": ""}
    return Counter(
        (op.op, op.name, msgspec.structs.replace(step, **nowhere))
        for jid in jids
        for op in correlator.ops_of(jid)
        for step in op.steps
    )


@pytest.mark.parametrize("capture", CAPTURES)
def test_what_is_told_of_an_op_does_not_depend_on_what_was_read_first(capture: str) -> None:
    at_last = told(correlate(sources(capture, "supervisor first")), capture)
    assert told(correlate(sources(capture, "agents first")), capture) == at_last
    for seed in SEEDS:
        assert told(correlate_interleaved(logs(capture), seed), capture) == at_last


FEW_PREFIXES = 20
SITES = {
    "local": Settings(users=5, ops=400),
    "one slot of each kind": Settings(users=5, ops=400, slots_parallel=1, slots_sequential=1),
    "torn records": Settings(users=5, ops=400, torn_records=0.5),
    "restarts": Settings(users=5, ops=400, restarts=0.02, crashes=0.02, agent_deaths=0.05),
    "docker": Settings(users=5, ops=400, driver=DriverName.DOCKER, agent_deaths=0.05),
    "production": Settings(users=5, ops=400, driver=DriverName.DOCKER, pid_time=False, restarts=0.01),
    "cluster": Settings(users=1, sbatch_users=5, ops=400),
    "cluster in trouble": Settings(
        users=1, sbatch_users=5, ops=400, restarts=0.01, crashes=0.01, agent_deaths=0.05
    ),
}
BIG = Settings(users=30, ops=10_000, max_secs_parallel=400, max_secs_parallel_paid=600)
UNDECIDED_SHARE = 0.002
"""How many ops may be left open, and named, when there are only 20 prefixes."""
OLD_SITES = sorted((Path(__file__).parent.parent / "fixtures" / "simulated-2020").iterdir())
BLOCK = 100_000
"""Bytes given to the parser at a time, as a growing file would give them."""


class Counted(NamedTuple):
    """What is compared of an op."""

    op: str
    name: str
    jid: str | None
    agent: str | None
    sends: int
    replies: int
    updates: int


def _seen(op: Op | TrueOp) -> Counted:
    return Counted(op.op, op.name, op.jid, op.agent, op.sends, op.replies, op.updates)


def _correlate(logs: Mapping[str, bytes], now: Nanos) -> Correlator:
    correlator = Correlator(limit=1_000_000)
    newest = Nanos(now + SECOND)
    for name, log in logs.items():
        parser = LogParser(name)
        lines = log.splitlines(keepends=True)
        offset = number = 0
        while number < len(lines):
            block = b"".join(lines[number : number + BLOCK // 100])
            parsed = parser.parse(block, offset, number + 1, newest)
            correlator.feed(parsed.records)
            offset += len(block)
            number += parsed.lines
    return correlator


def _of_site(world: WatchedWorld, *names: str) -> Correlator:
    return _correlate({name: world.log(name) for name in names}, world.kernel.now)


def _assert_exact(correlator: Correlator, ops: Iterable[Counted]) -> None:
    """Every op is as it was. Where two cannot be distinguished, the correlator has to have said so."""
    found = sorted(correlator.ops(), key=lambda op: op.key)
    truth = [*ops]
    made_up = [op for op in found if op.created_at is None and op.steps and op.steps[0].step == "sent"]
    known = [op for op in found if op not in made_up]
    differing = [(t, f) for t, f in zip(truth, known, strict=False) if t != _seen(f)]
    doubted = {(op.op, jid) for op in known for jid in (op.jid, *op.candidates) if op.candidates}
    wrong = [(t, f) for t, f in differing if (f.op, f.jid) not in doubted]
    undecided = len(differing) - len(wrong)
    if wrong or undecided > UNDECIDED_SHARE * len(truth):
        first, instead = (wrong or differing)[0]
        counts = f"{len(wrong)} wrong, {undecided} undecided, {len(made_up)} made up of {len(truth)}"
        pytest.fail(f"{counts}, first:\n{first}\n  but {_seen(instead)}", pytrace=False)
    assert len(found) == len(truth)


@pytest.mark.parametrize("prefixes", [None, FEW_PREFIXES], ids=["random prefixes", "20 prefixes"])
@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("seed", [101, 103])
def test_ops_are_exact(site: str, prefixes: int | None, seed: int) -> None:
    settings = msgspec.structs.replace(SITES[site], prefixes=prefixes)

    world = simulate(seed, settings)

    _assert_exact(_of_site(world, "supervisor.log"), map(_seen, world.witness.ops))


@pytest.mark.parametrize("site", OLD_SITES, ids=lambda path: path.name)
def test_ops_of_2020_are_exact(site: Path) -> None:
    told = json.loads(gzip.decompress(site.read_bytes()))
    logs = {"supervisor.log": told["log"].encode()}

    _assert_exact(_correlate(logs, Nanos(told["newest"])), (Counted(*op) for op in told["ops"]))


@pytest.mark.parametrize("prefixes", [None, FEW_PREFIXES], ids=["random prefixes", "20 prefixes"])
def test_ten_thousand_ops_are_exact(prefixes: int | None) -> None:
    world = simulate(5, msgspec.structs.replace(BIG, prefixes=prefixes))

    assert world.witness.count >= 10_000
    _assert_exact(_of_site(world, "supervisor.log"), map(_seen, world.witness.ops))


@pytest.mark.parametrize("site", ["local", "docker", "cluster"])
def test_other_logs_change_no_count(site: str) -> None:
    world = simulate(7, SITES[site])

    _assert_exact(_of_site(world, *world.logs()), map(_seen, world.witness.ops))


@pytest.mark.parametrize("site", ["local", "production"])
def test_full_ids_are_those_of_the_ops(site: str) -> None:
    world = simulate(8, SITES[site])
    found = sorted(_of_site(world, "supervisor.log").ops(), key=lambda op: op.key)

    known = [(op.op_id, true.op_id) for op, true in zip(found, world.witness.ops, strict=True) if op.op_id]
    assert known
    assert all(got == true for got, true in known)


CAPTURE = Path(__file__).parents[1] / "fixtures" / "sirepo" / "local" / "supervisor.log"
UNKNOWN = JobId("vn9mSrw1-3mJbMh8p-animation")


def all_of(correlation: Correlation, job_id: JobId) -> tuple[object, ...]:
    return (
        tuple(correlation.ops()),
        correlation.agents(),
        correlation.ops_of(job_id),
        correlation.unlinked_of(job_id),
        correlation.agent_of(job_id),
        correlation.open_ops(),
        correlation.restarted_ops(job_id),
        correlation.runs_like("animation", None),
        correlation.dropped_ops,
    )


def test_nothing_is_known_before_the_first_record() -> None:
    assert all_of(NothingRead(), UNKNOWN) == all_of(Correlator(), UNKNOWN)
    assert NothingRead().heard == Correlator().heard


def test_the_first_records_go_to_a_correlator() -> None:
    assert isinstance(NothingRead().begun(), Correlator)
