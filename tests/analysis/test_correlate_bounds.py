"""Correlation stays within bounds, whatever comes and however long."""

import gc
import tracemalloc
from collections.abc import Callable
from itertools import count
from string import ascii_letters, digits

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.analysis.correlation import agent_lines, agents, job_events
from jobtui.analysis.correlation import correlator as correlator_module
from jobtui.analysis.correlation.correlator import Correlator
from jobtui.analysis.correlation.ops import FIRST_STEPS_KEPT, STEPS_KEPT, OpTrack, Room
from jobtui.formats.schema import Shape, load
from jobtui.model.clock import Nanos
from jobtui.model.ids import JobId, OpPrefix, jid_of_run_dir, split_jid
from jobtui.model.logs import LogRecord
from tests.analysis.lines import FULL, JID, Log, arrived, begun, correlated, message, the_op, update

FEW = 100
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


@pytest.mark.parametrize("ends", [True, False])
def test_the_oldest_go_first_those_that_have_ended(ends: bool) -> None:
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
    """Bytes that are taken after each of these."""
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
    st.sampled_from(
        [
            "abcd", "wxyz", "None", "run", "analysis", "cancel", "run_status", "begin_session",
            "run_status_update", "alive", "ok", "completed", "running", JID, FULL, "t7K7",
            "VUlhaMOD-4u2Pj0fB-heightWeightReport",
            "DockerDriver", "parallel", "VUlh", "DESTROYED, ", f"{{'opId': '{FULL}', 'computeJid': '{JID}'}}",
            "/srv/sirepo/db/user/VUlhaMOD/myapp/HrCJ26rQ/activityAnimation", "_Op(run, abcd)", "_FastCgiCmd",
            "_SbatchRunStatus",
        ]
    ),
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


def test_one_op_larger_than_the_room_for_all_is_kept_and_one_that_was_let_go_takes_none() -> None:
    correlator, log = Correlator(most_bytes=1), Log()
    for number in range(3):
        log.feed(correlator, begun("run", code(number, 4)))
    assert [op.op for op in correlator.ops()] == [code(2, 4)]
    room = Room()
    track = OpTrack(1, OpPrefix("abcd"), "run", "log", None, room)
    assert room.taken > 0
    track.leave_room()
    track.take_room(1_000)
    assert room.taken == 0
