"""The timeline of a job out of the changes of its state."""

from jobtui.analysis.state_ops import ops_of_changes
from jobtui.model.changes import StateChange
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.ids import JobId
from jobtui.model.ops import Component, OpStatus
from tests.builders import a_job

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
    assert "after 60.000 s" in first.steps[2].text
    assert "no such element" in first.steps[3].text


def test_the_order_in_which_changes_were_learnt_counts() -> None:
    late = change(4, 60, "RUNNING", "RUN_DONE")
    (op,) = ops_of_changes(None, (late, *FIRST[:3]))
    assert [step.line for step in op.steps] == [1, 2, 3, 4]


def test_what_waits_is_known_to_wait() -> None:
    (op,) = ops_of_changes(None, FIRST[:2])
    assert (op.status, op.result, op.sent_at) == (OpStatus.WAITING, None, None)


def test_a_job_without_changes_has_no_timeline() -> None:
    assert ops_of_changes(a_job(1), ()) == ()
