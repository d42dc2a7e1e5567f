"""Correlation of real logs is equal to the truth noted inside the supervisor, whatever is read first."""

from collections import Counter

import msgspec
import pytest

from jobtui.analysis.correlate import Correlator
from jobtui.model.ids import JobId
from jobtui.model.ops import Component, Step
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
def test_agents_have_sent_what_they_sent(capture: str) -> None:
    counted: Counter[str] = Counter()
    for agent in correlate(logs(capture)).agents():
        counted[agent.agent] += agent.messages
    truth = {agent: told["messages"] for agent, told in expected(capture)["agents"].items()}
    assert {agent: count for agent, count in counted.items() if count} == truth


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
