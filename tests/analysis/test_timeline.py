"""Jobs of one timeline folded where steps repeat, its lines of logs, and ops by their state."""

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobtui.analysis.correlation.ops import in_order
from jobtui.analysis.timeline import (
    Fold,
    folds_in,
    in_time_order,
    job_lines,
    ops_of_changes,
    timeline_rows,
)
from jobtui.model.changes import StateChange
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import JobId
from jobtui.model.ops import Certainty, Component, OpStatus, Step, Unlinked
from tests.builders import a_job, a_step, an_op, job_id
from tests.conftest import NOW


def folds(*steps: str, every_s: float = 1.0) -> list[Fold]:
    op = an_op(steps=[a_step(step, nth * every_s) for nth, step in enumerate(steps)])
    return list(folds_in(timeline_rows(op, NOW)))


PAIR = ["update", "status running"]


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        ([], []),
        (["a"] * 3, []),
        (["a"] * 4, [Fold(0, 3, 1, 4, 1.0)]),
        (["sent", *PAIR * 214, "reply ok"], [Fold(1, 428, 2, 214, 1.0)]),
        (["sent", *PAIR * 5, "update"], [Fold(1, 10, 2, 5, 1.0)]),
        (["status running", *PAIR * 5], [Fold(0, 9, 2, 5, 1.0)]),
        ([*PAIR * 3, "reply ok", *PAIR * 3], []),
        ([*PAIR * 4, "reply ok", *PAIR * 4], [Fold(0, 7, 2, 4, 1.0), Fold(9, 16, 2, 4, 1.0)]),
        (["a", "b", "c"] * 4, [Fold(0, 11, 3, 4, 1.0)]),
        (["status error"] * 9, []),
        (["update", "status error"] * 9, []),
    ],
)
def test_what_repeats_is_found(steps: Sequence[str], found: list[Fold]) -> None:
    assert folds(*steps) == found


def test_the_longest_wait_is_known_and_none_where_no_line_has_a_time() -> None:
    assert [fold.longest_s for fold in folds(*["a"] * 5, every_s=7)] == [7.0]
    op = an_op(steps=[a_step("a", at=None) for _ in range(5)])
    assert [fold.longest_s for fold in folds_in(timeline_rows(op, NOW))] == [None]


JID = job_id()


def line_at(text: str, at_s: float, offset: int, **fields: Any) -> Step:
    return a_step("s", at_s, text=text, offset=offset, **fields)


@pytest.mark.parametrize(
    ("steps", "shown"),
    [
        pytest.param(
            [line_at("late", 2.0, 30), line_at("made", 1.0, 20),
             line_at("called", 1.0, 5, source="server.log", component=Component.SERVER)],
            "called made late", id="sources are merged by time and the server comes first",
        ),
        pytest.param(
            [line_at("a", 0.0, 1), line_at("b", 0.0, 2, at=None), line_at("c", 5.0, 3),
             line_at("other", 2.0, 1, source="b.log")],
            "a b other c", id="a line without a time is where it was written",
        ),
        pytest.param(
            [line_at("old", 0.0, 9_000), line_at("new", 1.0, 10)],
            "old new", id="lines of a log that was rotated come after those before",
        ),
    ],
)  # fmt: skip
def test_lines_come_in_order(steps: list[Step], shown: str) -> None:
    """Whether one op has them all, or each its own."""
    for ops in ([an_op(steps=steps)], [an_op(steps=[step]) for step in steps]):
        assert [line.text for line in job_lines(JID, ops, ())] == shown.split()


def test_a_line_of_two_ops_is_given_once_with_its_surest_link_and_an_unlinked_one_is_of_none() -> None:
    weak = an_op(steps=[a_step("s", offset=1, text="x", certainty=Certainty.ADJACENT)], op="aaaa")
    sure = an_op(steps=[a_step("s", offset=1, text="x", certainty=Certainty.JID)], op="bbbb")
    (line,) = job_lines(JID, [weak, sure], ())
    assert (line.certainty, line.op) == (Certainty.JID, sure)
    (line,) = job_lines(JID, (), [Unlinked(JID, a_step("s", text="loose", line=-5), "no op")])
    assert (line.text, line.op, line.line) == ("loose", None, 0)


@pytest.mark.parametrize(
    ("text", "level"),
    [("ERROR:tornado.application:boom", "error"), ("INFO:tornado.access:200 POST /x", "info"),
     ("_Op(run, abcd) error=ERROR: x", None)],
)  # fmt: skip
def test_a_level_is_only_read_where_python_logging_wrote_it(text: str, level: str | None) -> None:
    assert [line.level for line in job_lines(JID, [an_op(steps=[a_step("s", text=text)])], ())] == [level]


_STEPS = st.lists(
    st.builds(
        lambda at, source, offset: a_step(
            "s", at=None if at is None else Nanos(at), source=source, offset=offset, text=f"{source}{offset}"
        ),
        st.none() | st.integers(0, 10),
        st.sampled_from("abc"),
        st.integers(0, 20),
    ),
    max_size=20,
)


@given(_STEPS)
def test_every_source_keeps_its_order(steps: list[Step]) -> None:
    lines = job_lines(JobId("x"), [an_op(steps=steps)], ())
    assert {line.place for line in lines} == {(s.source, s.offset, s.text) for s in steps}
    for source in "abc":
        own = [line for line in lines if line.source == source]
        assert [line for line in own if line.at is not None] == sorted(
            (line for line in own if line.at is not None), key=lambda line: (line.at, line.offset)
        )
    assert in_time_order(reversed(lines)) == lines


JOB = JobId("balsam/7")


def change(number: int, at_s: int, before: str, after: str, **detail: object) -> StateChange:
    nodes = detail.get("num_nodes")
    return StateChange(
        number, JOB, Nanos(at_s * SECOND), before, after, "b", float(str(nodes)) if nodes else None, detail
    )


FIRST = (
    change(1, 0, "CREATED", "STAGED_IN"),
    change(2, 10, "STAGED_IN", "PREPROCESSED"),
    change(3, 70, "PREPROCESSED", "RUNNING", num_nodes=4.0),
    change(4, 100, "RUNNING", "RUN_ERROR", returncode=3, error="no such element"),
)
AGAIN = (
    change(5, 101, "RUN_ERROR", "RESTART_READY"),
    change(6, 130, "RESTART_READY", "RUNNING", num_nodes=1.0),
)


def test_each_run_is_an_op_with_a_step_for_each_change() -> None:
    first, second = ops_of_changes(None, (*AGAIN, *FIRST))
    assert [step.step for step in first.steps] == [
        "STAGED_IN", "PREPROCESSED", "RUNNING on 4 nodes", "RUN_ERROR, return code 3"
    ]  # fmt: skip
    assert [step.component for step in first.steps] == [
        Component.BALSAM, Component.SITE, Component.LAUNCHER, Component.LAUNCHER
    ]  # fmt: skip
    assert (first.result, first.error, first.status) == (
        "error", "return code 3: no such element", OpStatus.ENDED
    )  # fmt: skip
    assert [step.step for step in second.steps] == ["RESTART_READY", "RUNNING on 1 node"]
    assert second.status is OpStatus.REPLIED
    assert "after 1m" in first.steps[2].text
    assert "no such element" in first.steps[3].text


def test_the_order_in_which_changes_were_learnt_counts_and_what_waits_is_known_to_wait() -> None:
    (op,) = ops_of_changes(None, (change(4, 60, "RUNNING", "RUN_DONE"), *FIRST[:3]))
    assert [step.line for step in op.steps] == [1, 2, 3, 4]
    (op,) = ops_of_changes(None, FIRST[:2])
    assert (op.status, op.result, op.sent_at) == (OpStatus.WAITING, None, None)
    assert ops_of_changes(a_job(1), ()) == ()


def test_the_order_of_steps_does_not_depend_on_which_file_was_read_first() -> None:
    def step(source: str, component: Component, line: int, at: int | None) -> Step:
        text, when = f"{source}{line}", None if at is None else Nanos(at)
        return Step(text, when, component, text, source, line, line, Certainty.FULL_ID)

    server = [step("z", Component.SERVER, 1, None), step("z", Component.SERVER, 2, 5)]
    agent = [
        step("a", Component.AGENT, 1, 5),
        step("a", Component.AGENT, 2, None),
        step("a", Component.AGENT, 3, 9),
    ]
    others = [step("m", Component.JOB_CMD, line, None) for line in (1, 2)]
    orders = {
        tuple(one.text for one in in_order([*one, *two, *three]))
        for one, two, three in permutations((server, agent, others))
    }
    assert orders == {("z1", "z2", "a1", "a2", "m1", "m2", "a3")}
