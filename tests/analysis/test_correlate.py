"""Lines become ops by the rules of `correlation.toml`, within bounds; real logs give what really was."""

import gc
import gzip
import json
import random
import tracemalloc
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from pathlib import Path
from string import ascii_letters, digits
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.analysis.clock_offset import KnownOffsets, OffsetBounds, telling
from jobtui.analysis.correlation import EmptyCorrelation, agent_lines, agents, job_events
from jobtui.analysis.correlation import correlator as correlator_module
from jobtui.analysis.correlation.correlator import Correlator
from jobtui.analysis.correlation.ops import FIRST_STEPS_KEPT, STEPS_KEPT
from jobtui.formats.schema import Shape, load
from jobtui.model.clock import SECOND, Nanos, Offset, Offsets, spread_between
from jobtui.model.ids import JobId, jid_of_run_dir, split_jid
from jobtui.model.logs import LogRecord
from jobtui.model.ops import Component, Correlation, Op, OpStatus, Step, is_line_before
from tests import builders
from tests.analysis import captured
from tests.analysis.lines import (
    AGENT,
    JID,
    LOG,
    OTHER_DIR,
    START,
    TABLES,
    Log,
    arrived,
    begun,
    cmd,
    correlated,
    filled,
    message,
    read,
    steps_of,
    the_op,
    update,
)
from tests.builders import a_step, some
from tests.demo.sites import DriverName
from tests.demo.workload import Settings, simulate
from tests.offenders import each
from tests.rows import FIXTURES, ROWS


def ops_in(correlator: Correlator) -> list[Op]:
    """All ops, those of the job with the server's calls that belong to them."""
    of_job = iter(correlator.ops_of(JID))
    return [next(of_job) if op.jid == JID else op for op in correlator.ops()]


def check(op: Op, told: dict[str, Any]) -> None:
    steps = steps_of(op)
    found: dict[str, Any] = {
        "steps": steps,
        "first": steps[: len(told.get("first", ()))],
        "last": steps[-len(told.get("last", ())) :],
        "once": [
            step for step in dict.fromkeys(steps) if step in told.get("once", ()) and steps.count(step) == 1
        ],
        "of_agent": [step.step for step in op.steps if step.source == "agent.log"],
        "without": "" if told.get("without") in steps else told.get("without"),
        "open": op.status.is_open,
        "certainty": op.steps[-1].certainty,
        "candidates": [*op.candidates],
        "created_s": ((op.created_at or 0) - START) / 1e9,
        "arrived_s": ((op.arrived_at or 0) - START) / 1e9,
        "no": [name for name in told.get("no", ()) if getattr(op, name) is None],
    }
    wanted = {key: filled(value) if isinstance(value, str) else value for key, value in told.items()}
    wanted["candidates"] = [filled(one) for one in told.get("candidates", found["candidates"])]
    assert {key: found[key] if key in found else getattr(op, key) for key in wanted} == wanted


def test_a_line_that_another_log_tells_late_is_about_the_run_of_its_time() -> None:
    correlator, ahead, late = Correlator(), Log("a.log"), Log("b.log", seconds=10)
    ahead.feed(correlator, begun("run", "abcd"))
    later = Log("a.log", seconds=60)
    later.feed(correlator, begun("run", "efgh"))
    late.feed(correlator, update("completed"))
    first, second = (op for op in correlator.ops() if op.name == "run")
    assert (first.updates, first.status) == (1, OpStatus.ENDED)
    assert (second.updates, second.status) == (0, OpStatus.SENT)


@each(*TABLES["case"])
def test_lines_become_ops(case: dict[str, Any]) -> None:
    links, changed = read(case["lines"])
    for op, told in zip(ops_in(links), case["ops"], strict=True):
        check(op, told)
    for agent, told in zip(links.agents() if "agents" in case else (), case.get("agents", ()), strict=True):
        assert {key: getattr(agent, key) for key in told} == told
    left = links.unlinked_of(JID)
    assert [one.step.text for one in left] == [*map(filled, case["left"])] if "left" in case else True
    assert all(one.why for one in left)
    assert [one.step.step for one in left] == case.get("left_steps", [one.step.step for one in left])
    assert [one.why for one in left] == case.get("why", [one.why for one in left])
    assert changed == {*map(filled, case.get("changed", changed))}
    assert filled(case.get("changed_too", "")) in {*changed, ""}


FAMILIES = [(family, *pair) for family in TABLES["family"] for pair in family["lines"]]


@each(*FAMILIES)
def test_a_line_is_a_step(family: dict[str, Any], line: str, step: str) -> None:
    (op,) = read([*family["before"], line])[0].ops()
    last = [family["before_it"], step] if "before_it" in family else [step]
    check(op, {"last": last, **family.get("ops", [{}])[0]})
    if family.get("alone"):
        (left,) = read([line])[0].unlinked_of(JID)
        assert left.step.text == filled(line).rpartition("> ")[2]


@each(("_Op(run, abcd)", 1), ("_Op(run, abcd), _Op(run_status, gone)", 1), ("_Op(run, gone)", 0), ("", 0))
def test_an_error_with_a_cut_line_is_about_an_op_without_an_answer(held: str, replies: int) -> None:
    """Slurm's refusal ends with a line break, and the id of the op is on the next line."""
    busy = AGENT.replace("[]", f"[{held}]")
    text = "{'agentId': 't7K7', 'error': 'sbatch: error: Invalid partition"
    op = the_op(correlated(*begun(), f"{busy} error msg={text}", f"{busy} agent error msg={text}"))
    assert op.replies == replies
    assert op.error == ("sbatch: error: Invalid partition" if replies else None)


POLLER = cmd("None", kind="_SbatchRunStatus")
STATUS_FILE = f"/scratch/jdoe/sirepo-dev/user/VUlhaMOD/myapp/{JID}/sbatch_status.json"


@pytest.mark.parametrize("agent_first", [True, False])
@pytest.mark.parametrize(
    ("line", "step"),
    [
        (f"{POLLER} scontrol error exit=1 sbatch=4 stderr=no stdout=", "note from the sbatch poller"),
        (f"{POLLER} exit=1 stderr=no", "sbatch poller ended"),
        (f"missing sbatch status file={STATUS_FILE}", "problem with the sbatch status file"),
    ],
)
def test_a_cluster_poll_belongs_to_the_run_of_its_time(line: str, step: str, agent_first: bool) -> None:
    correlator = Correlator()
    supervisor = Log()
    agent = Log("agent.log", seconds=5)
    again = Log("copy.log", seconds=5)
    if agent_first:
        assert agent.feed(correlator, [line]) == {JID}
        assert [left.step.text for left in correlator.unlinked_of(JID)] == [line]
    supervisor.feed(
        correlator, [*begun("run", "abcd"), message("ok", "abcd"), *update("error"), *begun("run", "wxyz")]
    )
    agent.feed(correlator, [] if agent_first else [line])
    again.feed(correlator, [line])
    first, second = correlator.ops_of(JID)
    assert [steps_of(first).count(step), steps_of(second).count(step)] == [1, 0]
    assert correlator.unlinked_of(JID) == ()


@each(-1, 0, 1)
def test_the_last_writer_of_a_log_is_known_across_a_rotation(seconds: int) -> None:
    """A log is rotated as its supervisor is restarted, maybe in the same second: all begins at byte 0."""
    correlator = Correlator()
    Log(LOG, pid=1).feed(correlator, begun())
    (op,) = correlator.ops_of(JID)
    assert correlator.writers_read.writers[LOG].before is None
    Log(LOG, seconds=len(op.steps) + seconds, pid=2).feed(correlator, begun("run", "next", OTHER_DIR)[:1])
    writer = correlator.writers_read.writers[LOG]
    assert writer.pid == 2
    assert not any(is_line_before(some(writer.before), step) for step in op.steps)


FEW = 50
SIGNS = digits + ascii_letters


def code(number: int, length: int) -> str:
    """Another word of base 62 for each number."""
    word = ""
    for _ in range(length):
        number, rest = divmod(number, len(SIGNS))
        word += SIGNS[rest]
    return word


def test_steps_of_an_op_are_the_first_and_the_newest() -> None:
    news = [line for number in range(STEPS_KEPT) for line in update(f"running{number}")]
    op = the_op(correlated(*begun(), message("ok", "abcd"), *news))
    assert len(op.steps) == STEPS_KEPT
    assert op.dropped_steps == 4 + 2 * STEPS_KEPT - STEPS_KEPT
    assert op.updates == STEPS_KEPT
    assert [step.step for step in op.steps[:4]] == ["op created", "driver assigned", "sent", "reply ok"]
    assert op.steps[FIRST_STEPS_KEPT - 1].step == f"status running{(FIRST_STEPS_KEPT - 4) // 2 - 1}"
    assert op.steps[-1].step == f"status running{STEPS_KEPT - 1}"


@each(True, False)
def test_the_oldest_ended_ops_are_dropped_first(ends: bool) -> None:
    correlator, log = Correlator(limit=FEW), Log()
    log.feed(correlator, begun("run", "open"))
    for number in range(3 * FEW):
        op = code(number, 4)
        log.feed(correlator, [*begun("analysis", op), *([message("ok", op)] if ends else [])])
    kept = [op.op for op in correlator.ops()]
    assert (len(kept), kept[-1]) == (FEW, code(3 * FEW - 1, 4))
    assert ("open" in kept) is ends
    assert correlator.dropped_ops == 3 * FEW + 1 - FEW
    assert [op.op for op in correlator.ops_of(JID)] == kept


def test_agent_lines_wait_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_lines, "WAITING_KEPT", FEW)
    correlator = Correlator()
    log = Log("agent.log")
    for number in range(5 * FEW):
        log.feed(correlator, [arrived("run", code(number, 4))])
    waiting = correlator.unlinked_of(JID)
    assert len(waiting) == FEW
    assert f"o={code(5 * FEW - 1, 4)} " in waiting[-1].step.text


def day_of_work(correlator: Correlator, numbers: list[int]) -> None:
    """Runs of as many users, each with an agent, a container, a cancel and lines that fit nothing."""
    supervisor, agent = Log(), Log("agent.log", seconds=2)
    for number in numbers:
        uid, op = code(number, 8), code(number * 7, 4)
        jid = f"{uid}-{uid}-animation"
        run_dir = f"/srv/sirepo/db/user/{uid}/myapp/{uid}/animation"
        driver = f"DockerDriver(a={code(number * 3, 4)} k=parallel u={uid[:4]} [])"
        job = f"_ComputeJob({jid} u={uid} running [])"
        supervisor.feed(
            correlator,
            [
                f"_args> api=api_runSimulation runDir={run_dir}",
                f"ServerReq(api_runSimulation, {jid})",
                *begun("run", op, run_dir),
                f"{driver} agent_exec_dir=/srv/sirepo/db/user/{uid}/agent-docker/v1/srj-p-{uid}",
                f"ServerReq(api_runCancel, {jid})",
                f"{job} cancel args={{'jid': '{jid}', 'x': '{'x' * 500}'}}",
                f"{job} exception=boom",
                f"inactive job jid={code(number, 8)}-{uid}-other msg={{}}",
            ],
        )
        agent.pid = number
        agent.feed(correlator, [arrived("run", op, run_dir), arrived("run", code(number * 11 + 5, 4))])
        notes = [f"cmd=_Cmd(a=t7K7 jid={jid} o={op} job_cmd=x run_dir=/x) stdout={i}" for i in range(5)]
        agent.feed(correlator, notes)


def sizes_of(*rounds: Callable[[], object]) -> list[int]:
    sizes = []
    tracemalloc.start()
    try:
        for one in rounds:
            one()
            split_jid.cache_clear()
            jid_of_run_dir.cache_clear()
            gc.collect()
            sizes.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    return sizes


def test_memory_does_not_grow_with_what_has_been_read(monkeypatch: pytest.MonkeyPatch) -> None:
    bounds = ((agent_lines, "WAITING_KEPT"), (job_events, "JOBS_KEPT"), (agents, "AGENTS_KEPT"),
              (agents, "PROCESSES_KEPT"), (correlator_module, "LINES_KNOWN"))  # fmt: skip
    for module, name in bounds:
        monkeypatch.setattr(module, name, FEW)
    correlator, numbers = Correlator(limit=FEW), count(1)
    sizes = sizes_of(*[lambda: day_of_work(correlator, [next(numbers) for _ in range(2 * FEW)])] * 3)
    assert sizes[-1] < sizes[0] * 1.1, sizes


SHAPES = load("sirepo").shapes
WORDS = st.one_of(
    st.none(),
    st.sampled_from(ROWS["words of logs"]),
    st.text(max_size=12),
)  # fmt: skip


@st.composite
def record(draw: st.DrawFn) -> LogRecord:
    """A record of any shape with any values in its fields."""
    shape: Shape = draw(st.sampled_from(SHAPES))
    return LogRecord(
        draw(st.sampled_from(["supervisor.log", "agent.log"])),
        draw(st.integers(1, 9)),
        draw(st.integers(0, 9)),
        draw(st.one_of(st.none(), st.integers(0, 2**62).map(Nanos))),
        draw(st.one_of(st.none(), st.integers(1, 3))),
        shape.name,
        {name: draw(WORDS) for name in shape.pattern.groupindex},
        draw(st.text(max_size=12)),
        draw(st.sampled_from([None, "srj-p-VUlhaMOD", "srj-x"])),
    )


@settings(max_examples=200)
@given(st.lists(record(), max_size=25))
def test_no_records_raise(records: list[LogRecord]) -> None:
    correlator = Correlator(limit=10)
    for changed in (correlator.feed(records), correlator.feed(records[::-1])):
        for jid in {*changed, JID}:
            correlator.ops_of(JobId(jid))
            correlator.unlinked_of(JobId(jid))
            correlator.agent_of(JobId(jid))
    assert len(list(correlator.ops())) <= 10
    assert all(len(op.steps) <= STEPS_KEPT for op in correlator.ops())
    correlator.agents()


def test_ops_take_no_more_memory_than_given_whatever_their_lines_hold() -> None:
    correlator, log, room = Correlator(most_bytes=200_000), Log(), 200_000
    for number in range(FEW):
        op = code(number, 4)
        log.feed(correlator, [*begun("analysis", op), message("x" * 5_000, op)])
    kept = list(correlator.ops())
    assert sum(len(step.text) for op in kept for step in op.steps) <= room
    assert len(kept) > 10
    assert correlator.dropped_ops == FEW - len(kept)
    assert kept[-1].op == code(FEW - 1, 4)


T0 = 1_795_207_772
SUPERVISOR, AGENT_LOG = "sirepo_job_supervisor@v3", "srj-p-VUlhaMOD@v7"


def at(seconds: float, whole: bool = False) -> Nanos:
    micros = round((T0 + seconds) * 1_000_000)
    return Nanos(micros // 1_000_000 * SECOND if whole else (micros | 1) * 1_000)


def an_op(
    sent: Nanos, arrived: Nanos, replied: Nanos | None, agent: str = AGENT_LOG, sends: int = 1, key: int = 1
) -> Op:
    steps = (
        a_step("sent", at=sent, source=SUPERVISOR, component=Component.DRIVER),
        a_step("arrived", at=arrived, source=agent, component=Component.AGENT),
    )
    times = {"sent_at": sent, "arrived_at": arrived, "replied_at": replied}
    return builders.an_op(key=key, steps=steps, sends=sends, status=OpStatus.ENDED, **times)


def clock_offsets(ops: Iterable[Op]) -> Offsets:
    bounds = OffsetBounds()
    for op in ops:
        bounds.take(op)
    return bounds.offsets()


@given(
    lead=st.floats(-50, 50),
    ways=st.lists(st.tuples(st.floats(0.001, 3), st.floats(0.001, 30)), min_size=1, max_size=20),
    whole=st.booleans(),
)
@settings(max_examples=80, deadline=None)
def test_the_true_clock_difference_is_within_the_bounds(
    lead: float, ways: list[tuple[float, float]], whole: bool
) -> None:
    draw = random.Random(len(ways))
    ops = []
    for there, back in ways:
        start = draw.random() * 1_000
        ops.append(an_op(at(start), at(start + there + lead, whole), at(start + there + back)))
    (offset,) = clock_offsets(ops).values()
    assert some(offset.low) - 1e-5 <= lead <= some(offset.high) + 1e-5


def test_quick_messages_give_narrow_bounds() -> None:
    ops = [an_op(at(0), at(0.41), at(0.03)), an_op(at(9), at(9.8), at(9.9))]
    (clocks,) = clock_offsets(ops)
    assert clocks == ("v3", "v7")
    offset = clock_offsets(ops)[clocks]
    assert offset.low == pytest.approx(0.38, abs=1e-4)
    assert offset.high == pytest.approx(0.41, abs=1e-4)
    assert telling(clock_offsets(ops)) == clock_offsets(ops)
    assert spread_between(clock_offsets(ops), "v7", "v3") == pytest.approx(0.41, abs=1e-4)


def test_clocks_that_no_message_bounds_or_that_are_near_enough_tell_nothing() -> None:
    assert clock_offsets([an_op(at(0), at(1), at(2), SUPERVISOR)]) == {}
    assert clock_offsets([an_op(at(0), at(1), at(2), sends=2)]) == {}
    half = clock_offsets([an_op(at(0), at(1), None)])
    assert half["v3", "v7"].low is None
    assert half["v3", "v7"].high == pytest.approx(1.0, abs=1e-4)
    assert telling(half) == {}
    # a clock that was set between two ops: the bounds contradict each other
    assert clock_offsets([an_op(at(0), at(9), at(1)), an_op(at(20), at(20.1), at(21))]) == {}
    assert telling({("a", "b"): Offset(-0.01, 0.02)}) == {}


def test_offsets_are_computed_a_few_ops_at_a_time_and_again_later() -> None:
    now = 0.0
    ops = [an_op(at(n), at(n + 0.4), at(n + 0.5), key=n + 1) for n in range(2_500)]
    asked: list[int] = []

    def ops_after(key: int) -> list[Op]:
        asked.append(key)
        return [op for op in ops if op.key > key]

    known = KnownOffsets(ops_after, lambda: now)
    assert [len(known()) for _ in range(4)] == [0, 0, 1, 1]
    assert asked == [0, 1_000, 2_000]
    now = 100.0
    ops.clear()
    assert known() == {}
    assert asked == [0, 1_000, 2_000, 0]


OF_SUPERVISOR = "supervisor.log"

ORDERS = ("supervisor first", "agents first", "supervisor only")
SEEDS = range(3)
AGENT_SIDE = frozenset({Component.AGENT, Component.JOB_CMD})


def sources(capture: str, order: str) -> dict[str, bytes]:
    found = captured.logs(capture)
    if order == "supervisor only":
        return {OF_SUPERVISOR: found[OF_SUPERVISOR]}
    last_first = order == "supervisor first"
    return dict(sorted(found.items(), key=lambda item: (item[0] == OF_SUPERVISOR) != last_first))


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
    """The steps of every op, whichever of several logs they were read in."""
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
def test_ops_that_share_a_prefix_are_distinguished(capture: str, seed: int, prefixes: int) -> None:
    rewritten, truth = captured.with_few_prefixes(capture, prefixes, seed)
    assert len({op.op for op in truth}) <= prefixes
    assert_true(captured.correlate(rewritten), truth, capture)
    assert_true(captured.correlate_interleaved(rewritten, seed), truth, capture)


@pytest.mark.parametrize("capture", captured.CAPTURES)
def test_jobs_of_which_more_is_known_are_announced(capture: str) -> None:
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
OLD_SITES = sorted((FIXTURES / "simulated-2020").iterdir())


def _assert_exact(correlator: Correlator, ops: Iterable[tuple[object, ...]]) -> None:
    """Every op is as it was. Where two cannot be distinguished, the correlator has to have said so."""
    found = sorted(correlator.ops(), key=lambda op: op.key)
    truth = [*ops]
    made_up = [op for op in found if op.created_at is None and op.steps and op.steps[0].step == "sent"]
    known = [op for op in found if op not in made_up]
    differing = [(t, f) for t, f in zip(truth, known, strict=False) if t != captured.seen(f)[: len(t)]]
    doubted = {(op.op, jid) for op in known for jid in (op.jid, *op.candidates) if op.candidates}
    wrong = [(t, f) for t, f in differing if (f.op, f.jid) not in doubted]
    undecided = len(differing) - len(wrong)
    if wrong or undecided > UNDECIDED_SHARE * len(truth):
        first, instead = (wrong or differing)[0]
        counts = f"{len(wrong)} wrong, {undecided} undecided, {len(made_up)} made up of {len(truth)}"
        pytest.fail(f"{counts}, first:\n{first}\n  but {captured.seen(instead)}", pytrace=False)
    assert len(found) == len(truth)


SIZES = [(site, 101, few) for site in SITES for few in (None, FEW_PREFIXES)]


@pytest.mark.parametrize(("site", "seed", "prefixes"), [*SIZES, ("big", 5, FEW_PREFIXES)])
def test_ops_are_exact(site: str, seed: int, prefixes: int | None) -> None:
    world = simulate(seed, msgspec.structs.replace(SITES.get(site, BIG), prefixes=prefixes))
    given = {"supervisor.log": world.log("supervisor.log")}
    correlator = captured.correlate(given, Nanos(world.kernel.now + SECOND), limit=1_000_000)
    _assert_exact(correlator, map(captured.seen, world.witness.ops))
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
    _assert_exact(correlator, map(tuple, told["ops"]))


def test_nothing_is_known_before_the_first_record() -> None:
    def all_of(knows: Correlation) -> tuple[object, ...]:
        jid = JobId("vn9mSrw1-3mJbMh8p-animation")
        return (
            tuple(knows.ops()), knows.agents(), knows.ops_of(jid), knows.unlinked_of(jid), knows.writers_read,
            knows.agent_of(jid), knows.open_ops(), knows.restarted_ops(jid), knows.dropped_ops,
            knows.runs_like("animation", None),
        )  # fmt: skip

    assert all_of(EmptyCorrelation()) == all_of(Correlator())
    assert isinstance(EmptyCorrelation().begun(), Correlator)
