"""The correlator against simulated sites, whose truth is known: exact, also when prefixes clash."""

from typing import NamedTuple

import msgspec
import pytest

from jobtui.analysis.correlate import Correlator
from jobtui.demo.settings import DriverName, Era, Settings
from jobtui.demo.truth import TrueOp
from jobtui.demo.workload import simulate
from jobtui.demo.world import World
from jobtui.formats.parser import LogParser
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ops import Op

FEW_PREFIXES = 20
SITES = {
    "local": Settings(users=5, ops=400),
    "one slot of each kind": Settings(users=5, ops=400, slots_parallel=1, slots_sequential=1),
    "torn records": Settings(users=5, ops=400, torn_records=0.5),
    "restarts": Settings(users=5, ops=400, restarts=0.02, crashes=0.02, agent_deaths=0.05),
    "docker": Settings(users=5, ops=400, driver=DriverName.DOCKER, agent_deaths=0.05),
    "production": Settings(users=5, ops=400, driver=DriverName.DOCKER, pid_time=False, restarts=0.01),
    "2020": Settings(users=5, ops=400, era=Era.Y2020, slots_parallel=1),
    "2020 with docker": Settings(
        users=5, ops=400, era=Era.Y2020, driver=DriverName.DOCKER, restarts=0.01, slots_sequential=1
    ),
    "cluster": Settings(users=1, sbatch_users=5, ops=400),
    "cluster in trouble": Settings(
        users=1, sbatch_users=5, ops=400, restarts=0.01, crashes=0.01, agent_deaths=0.05
    ),
}
BIG = Settings(users=30, ops=10_000, max_secs_parallel=400, max_secs_parallel_paid=600)
UNDECIDED_SHARE = 0.002
"""How many ops may be left open, and named, when there are only 20 prefixes."""
BLOCK = 100_000
"""Bytes given to the parser at a time, as a growing file would give them."""


class Seen(NamedTuple):
    """What is compared of an op."""

    op: str
    name: str
    jid: str | None
    agent: str | None
    sends: int
    replies: int
    updates: int


def _seen(op: Op | TrueOp) -> Seen:
    return Seen(op.op, op.name, op.jid, op.agent, op.sends, op.replies, op.updates)


def _correlate(world: World, *names: str) -> Correlator:
    correlator = Correlator(limit=1_000_000)
    newest = Nanos(world.kernel.now + SECOND)
    for name in names:
        parser = LogParser(name)
        lines = world.log(name).splitlines(keepends=True)
        offset = number = 0
        while number < len(lines):
            block = b"".join(lines[number : number + BLOCK // 100])
            parsed = parser.parse(block, offset, number + 1, newest)
            correlator.feed(parsed.records)
            offset += len(block)
            number += parsed.lines
    return correlator


def _assert_exact(world: World, *names: str) -> None:
    """Every op is as it was. Where two cannot be told apart, the correlator has to have said so."""
    found = sorted(_correlate(world, *names).ops(), key=lambda op: op.key)
    truth = world.truth().ops
    made_up = [op for op in found if op.created_at is None and op.steps and op.steps[0].step == "sent"]
    known = [op for op in found if op not in made_up]
    differing = [(t, f) for t, f in zip(truth, known, strict=False) if _seen(t) != _seen(f)]
    doubted = {(op.op, jid) for op in known for jid in (op.jid, *op.candidates) if op.candidates}
    wrong = [(t, f) for t, f in differing if (f.op, f.jid) not in doubted]
    undecided = len(differing) - len(wrong)
    if wrong or undecided > UNDECIDED_SHARE * len(truth):
        first, instead = (wrong or differing)[0]
        counts = f"{len(wrong)} wrong, {undecided} undecided, {len(made_up)} made up of {len(truth)}"
        pytest.fail(f"{counts}, first:\n{_seen(first)}\n  but {_seen(instead)}", pytrace=False)
    assert len(found) == len(truth)


@pytest.mark.parametrize("prefixes", [None, FEW_PREFIXES], ids=["random prefixes", "20 prefixes"])
@pytest.mark.parametrize("site", SITES)
@pytest.mark.parametrize("seed", [101, 103])
def test_ops_are_exact(site: str, prefixes: int | None, seed: int) -> None:
    settings = msgspec.structs.replace(SITES[site], prefixes=prefixes)

    _assert_exact(simulate(seed, settings), "supervisor.log")


@pytest.mark.parametrize("prefixes", [None, FEW_PREFIXES], ids=["random prefixes", "20 prefixes"])
def test_ten_thousand_ops_are_exact(prefixes: int | None) -> None:
    world = simulate(5, msgspec.structs.replace(BIG, prefixes=prefixes))

    assert len(world.witness) >= 10_000
    _assert_exact(world, "supervisor.log")


@pytest.mark.parametrize("site", ["local", "docker", "cluster"])
def test_other_logs_change_no_count(site: str) -> None:
    world = simulate(7, SITES[site])

    _assert_exact(world, *world.logs())


@pytest.mark.parametrize("site", ["local", "production"])
def test_full_ids_are_those_of_the_ops(site: str) -> None:
    world = simulate(8, SITES[site])
    found = sorted(_correlate(world, "supervisor.log").ops(), key=lambda op: op.key)

    known = [(op.op_id, true.op_id) for op, true in zip(found, world.truth().ops, strict=True) if op.op_id]
    assert known
    assert all(got == true for got, true in known)
