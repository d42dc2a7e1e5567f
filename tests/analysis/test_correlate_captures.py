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
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import JobId
from jobtui.model.ops import Component, Correlation, Op, Step
from tests.analysis import captured
from tests.demo.sites import DriverName
from tests.demo.workload import Settings, TrueOp, simulate

SUPERVISOR = "supervisor.log"


ORDERS = ("supervisor first", "agents first", "supervisor only")
SEEDS = range(3)
AGENT_SIDE = frozenset({Component.AGENT, Component.JOB_CMD})


def sources(capture: str, order: str) -> dict[str, bytes]:
    found = captured.logs(capture)
    if order == "supervisor only":
        return {SUPERVISOR: found[SUPERVISOR]}
    last_first = order == "supervisor first"
    return dict(sorted(found.items(), key=lambda item: (item[0] == SUPERVISOR) != last_first))


def jids_of(capture: str) -> list[JobId]:
    return [JobId(jid) for jid in captured.expected(capture)["jobs"]]


def assert_true(correlator: Correlator, truth: list[captured.Seen], capture: str) -> None:
    """Every op is as it was, also as a screen asks for it: by its job."""
    of_jobs = [captured.seen(op) for jid in jids_of(capture) for op in correlator.ops_of(jid)]
    of_none = [captured.seen(op) for op in correlator.ops() if op.jid is None]
    assert Counter(of_jobs + of_none) == Counter(truth)
    assert Counter(captured.seen(op) for op in correlator.ops()) == Counter(truth)


def assert_whole(correlator: Correlator, given: Mapping[str, bytes], capture: str) -> None:
    """No line that names a job is left over, none is of a process that serves all jobs; each leads back."""
    jids = jids_of(capture)
    assert [left for jid in jids for left in correlator.unlinked_of(jid)] == []
    steps = [step for jid in jids for op in correlator.ops_of(jid) for step in op.steps]
    assert not any("_FastCgiCmd(" in step.text for step in steps if step.component in AGENT_SIDE)
    assert {step.source for step in steps} <= given.keys()
    lines = {name: data.split(b"\n") for name, data in given.items()}
    for step in steps:
        line = lines[step.source][step.line - 1]
        assert given[step.source][step.offset :].startswith(line)
        assert step.text in line.decode() or b"_write srj-" in line


def assert_in_order(correlator: Correlator) -> None:
    """Prefixes leave no doubt, all that was sent has arrived once, and steps come in the order of time."""
    assert any(op.sends for op in correlator.ops())
    for op in correlator.ops():
        assert not op.candidates
        if op.sends:
            assert op.arrived_at is not None
            assert [step.step for step in op.steps].count("arrived") == 1
        times = [step.at for step in op.steps if step.at is not None]
        assert times == sorted(times), op.op


def told(correlator: Correlator, capture: str) -> Counter[tuple[str, str, Step]]:
    """What is told of every op, whichever of several logs it was read in."""
    nowhere = {"source": "", "line": 0, "offset": 0, "text": ""}
    return Counter(
        (op.op, op.name, msgspec.structs.replace(step, **nowhere))
        for jid in jids_of(capture)
        for op in correlator.ops_of(jid)
        for step in op.steps
    )


@pytest.mark.parametrize("capture", captured.CAPTURES)
def test_every_op_is_as_it_was_in_whatever_order_logs_are_read(capture: str) -> None:
    all_told = []
    for order in ORDERS:
        given = sources(capture, order)
        at_once = captured.correlate(given)
        assert_true(at_once, captured.true_ops(capture), capture)
        if order != "supervisor only":
            assert_in_order(at_once)
            all_told.append(told(at_once, capture))
        for seed in SEEDS:
            grown = captured.correlate_interleaved(given, seed)
            assert_true(grown, captured.true_ops(capture), capture)
            assert_whole(grown, given, capture)
            if order != "supervisor only":
                all_told.append(told(grown, capture))
    assert all(one == all_told[0] for one in all_told)


@pytest.mark.parametrize("prefixes", [20, 5, 1])
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("capture", captured.CAPTURES)
def test_ops_that_share_a_prefix_are_told_apart(capture: str, seed: int, prefixes: int) -> None:
    rewritten, truth = captured.with_few_prefixes(capture, prefixes, seed)
    assert len({op.op for op in truth}) <= prefixes
    assert_true(captured.correlate(rewritten), truth, capture)
    assert_true(captured.correlate_interleaved(rewritten, seed), truth, capture)


@pytest.mark.parametrize("capture", captured.CAPTURES)
def test_jobs_are_announced_as_better_known(capture: str) -> None:
    correlator = Correlator()
    jids = jids_of(capture)
    known = {jid: (correlator.ops_of(jid), correlator.unlinked_of(jid)) for jid in jids}
    for records in captured.growing(captured.logs(capture), 3):
        changed = correlator.feed(records)
        for jid in jids:
            now = correlator.ops_of(jid), correlator.unlinked_of(jid)
            assert jid in changed or now == known[jid]
            known[jid] = now


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
BIG = Settings(users=30, ops=2_000, max_secs_parallel=400, max_secs_parallel_paid=600)
UNDECIDED_SHARE = 0.002
"""How many ops may be left open, and named, when there are only 20 prefixes."""
OLD_SITES = sorted((Path(__file__).parent.parent / "fixtures" / "simulated-2020").iterdir())


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


SIZES = [(site, 101, few) for site in SITES for few in (None, FEW_PREFIXES)]


@pytest.mark.parametrize(("site", "seed", "prefixes"), [*SIZES, ("big", 5, FEW_PREFIXES)])
def test_ops_are_exact(site: str, seed: int, prefixes: int | None) -> None:
    world = simulate(seed, msgspec.structs.replace(SITES.get(site, BIG), prefixes=prefixes))
    given = {"supervisor.log": world.log("supervisor.log")}
    correlator = captured.correlate(given, Nanos(world.kernel.now + SECOND), limit=1_000_000)
    _assert_exact(correlator, map(_seen, world.witness.ops))
    assert site != "big" or world.witness.count >= 2_000
    if prefixes is None and site in ("local", "production"):
        found = sorted(correlator.ops(), key=lambda op: op.key)
        ids = [(op.op_id, true.op_id) for op, true in zip(found, world.witness.ops, strict=True) if op.op_id]
        assert ids
        assert all(got == true for got, true in ids)


@pytest.mark.parametrize("site", OLD_SITES, ids=lambda path: path.name)
def test_ops_of_2020_are_exact(site: Path) -> None:
    told = json.loads(gzip.decompress(site.read_bytes()))
    correlator = captured.correlate({"supervisor.log": told["log"].encode()}, Nanos(told["newest"] + SECOND))
    _assert_exact(correlator, (Counted(*op) for op in told["ops"]))


def test_nothing_is_known_before_the_first_record() -> None:
    def all_of(knows: Correlation) -> tuple[object, ...]:
        jid = JobId("vn9mSrw1-3mJbMh8p-animation")
        return (
            tuple(knows.ops()), knows.agents(), knows.ops_of(jid), knows.unlinked_of(jid), knows.heard,
            knows.agent_of(jid), knows.open_ops(), knows.restarted_ops(jid), knows.dropped_ops,
            knows.runs_like("animation", None),
        )  # fmt: skip

    assert all_of(NothingRead()) == all_of(Correlator())
    assert isinstance(NothingRead().begun(), Correlator)
