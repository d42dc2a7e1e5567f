"""How far apart two clocks are, by the messages that went between them."""

import random
from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobtui.analysis.clock_offset import Bounds, KnownOffsets, telling
from jobtui.model.clock import SECOND, Nanos, Offset, Offsets, spread_between
from jobtui.model.ops import Component, Op, OpStatus
from tests import builders
from tests.builders import a_step

T0 = 1_795_207_772
SUPERVISOR, AGENT = "sirepo_job_supervisor@v3", "srj-p-VUlhaMOD@v7"


def at(seconds: float, whole: bool = False) -> Nanos:
    micros = round((T0 + seconds) * 1_000_000)
    return Nanos(micros // 1_000_000 * SECOND if whole else (micros | 1) * 1_000)


def an_op(
    sent: Nanos, arrived: Nanos, replied: Nanos | None, agent: str = AGENT, sends: int = 1, key: int = 1
) -> Op:
    steps = (
        a_step("sent", at=sent, source=SUPERVISOR, component=Component.DRIVER),
        a_step("arrived", at=arrived, source=agent, component=Component.AGENT),
    )
    times = {"sent_at": sent, "arrived_at": arrived, "replied_at": replied}
    return builders.an_op(key=key, steps=steps, sends=sends, status=OpStatus.ENDED, **times)


def clock_offsets(ops: Iterable[Op]) -> Offsets:
    bounds = Bounds()
    for op in ops:
        bounds.take(op)
    return bounds.offsets()


@given(
    lead=st.floats(-50, 50),
    ways=st.lists(st.tuples(st.floats(0.001, 3), st.floats(0.001, 30)), min_size=1, max_size=20),
    whole=st.booleans(),
)
@settings(max_examples=80, deadline=None)
def test_the_true_lead_is_within_the_bounds(
    lead: float, ways: list[tuple[float, float]], whole: bool
) -> None:
    draw = random.Random(len(ways))
    ops = []
    for there, back in ways:
        start = draw.random() * 1_000
        ops.append(an_op(at(start), at(start + there + lead, whole), at(start + there + back)))
    (offset,) = clock_offsets(ops).values()
    assert offset.low is not None
    assert offset.high is not None
    assert offset.low - 1e-5 <= lead <= offset.high + 1e-5


def test_quick_ways_bound_it_narrowly() -> None:
    ops = [an_op(at(0), at(0.41), at(0.03)), an_op(at(9), at(9.8), at(9.9))]
    (clocks,) = clock_offsets(ops)
    assert clocks == ("v3", "v7")
    offset = clock_offsets(ops)[clocks]
    assert offset.low == pytest.approx(0.38, abs=1e-4)
    assert offset.high == pytest.approx(0.41, abs=1e-4)
    assert telling(clock_offsets(ops)) == clock_offsets(ops)
    assert spread_between(clock_offsets(ops), "v7", "v3") == pytest.approx(0.41, abs=1e-4)


def test_what_tells_nothing() -> None:
    assert clock_offsets([an_op(at(0), at(1), at(2), SUPERVISOR)]) == {}
    assert clock_offsets([an_op(at(0), at(1), at(2), sends=2)]) == {}
    half = clock_offsets([an_op(at(0), at(1), None)])
    assert half["v3", "v7"].low is None
    assert half["v3", "v7"].high == pytest.approx(1.0, abs=1e-4)
    assert telling(half) == {}
    # a clock that was set between two ops: the bounds contradict each other
    assert clock_offsets([an_op(at(0), at(9), at(1)), an_op(at(20), at(20.1), at(21))]) == {}


def test_clocks_that_are_near_enough_do_not_matter() -> None:
    assert telling({("a", "b"): Offset(-0.01, 0.02)}) == {}


def test_they_are_worked_out_a_few_ops_at_a_time_and_anew_now_and_then() -> None:
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
