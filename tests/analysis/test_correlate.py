"""The rules by which a supervisor's lines become ops: `tests/fixtures/correlation.toml` has lines and ops."""

from typing import Any

import pytest

from jobtui.analysis.correlation.correlator import Correlator
from jobtui.model.ops import Op, OpStatus, Step, is_told_before
from tests.analysis.correlation_tables import LOG, OTHER_DIR, TABLES, filled, read
from tests.analysis.lines import (
    AGENT,
    JID,
    RUN_DIR,
    START,
    Log,
    arrived,
    begun,
    cmd,
    correlated,
    message,
    steps_of,
    the_op,
    update,
)
from tests.builders import a_step


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


@pytest.mark.parametrize("case", TABLES["case"], ids=lambda case: case["about"])
def test_lines_become_ops(case: dict[str, Any]) -> None:
    correlator, changed = read(case["lines"])
    for op, told in zip(ops_in(correlator), case["ops"], strict=True):
        check(op, told)
    for agent, told in zip(
        correlator.agents() if "agents" in case else (), case.get("agents", ()), strict=True
    ):
        assert {key: getattr(agent, key) for key in told} == told
    left = correlator.unlinked_of(JID)
    assert [one.step.text for one in left] == [*map(filled, case["left"])] if "left" in case else True
    assert all(one.why for one in left)
    assert [one.step.step for one in left] == case.get("left_steps", [one.step.step for one in left])
    assert [one.why for one in left] == case.get("why", [one.why for one in left])
    assert changed == {*map(filled, case.get("changed", changed))}
    assert filled(case.get("changed_too", "")) in {*changed, ""}


FAMILIES = [(family, *pair) for family in TABLES["family"] for pair in family["lines"]]


@pytest.mark.parametrize(
    ("family", "line", "step"), FAMILIES, ids=lambda one: "" if isinstance(one, dict) else one
)
def test_a_line_is_a_step(family: dict[str, Any], line: str, step: str) -> None:
    (op,) = read([*family["before"], line])[0].ops()
    last = [family["before_it"], step] if "before_it" in family else [step]
    check(op, {"last": last, **family.get("ops", [{}])[0]})
    if family.get("alone"):
        (left,) = read([line])[0].unlinked_of(JID)
        assert left.step.text == filled(line).rpartition("> ")[2]


@pytest.mark.parametrize(
    ("held", "replies"),
    [("_Op(run, abcd)", 1), ("_Op(run, abcd), _Op(run_status, gone)", 1), ("_Op(run, gone)", 0), ("", 0)],
)
def test_an_error_whose_line_breaks_off_is_about_what_its_agent_has_not_answered(
    held: str, replies: int
) -> None:
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
        (f"{POLLER} scontrol error exit=1 sbatch=4 stderr=no stdout=", "note of the sbatch poller"),
        (f"{POLLER} exit=1 stderr=no", "sbatch poller ended"),
        (f"missing sbatch status file={STATUS_FILE}", "trouble with the sbatch status file"),
    ],
)
def test_what_the_poller_of_a_cluster_says_belongs_to_the_run_of_its_time(
    line: str, step: str, agent_first: bool
) -> None:
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


@pytest.mark.parametrize("run_dir", [RUN_DIR, RUN_DIR + "N", RUN_DIR + "No", RUN_DIR[:-1], RUN_DIR[:-30]])
def test_a_forwarded_arrival_may_be_cut_or_glued(run_dir: str) -> None:
    head = "Nov 20 20:34:33    77     0 sirepo/pkcli/job_agent.py:487:_op "
    correlator = correlated(*begun(), f"_write> srj-p-VUlhaMOD {head}{arrived('run', 'abcd', run_dir)}")
    assert the_op(correlator).arrived_at == START + 3_000_000_000


@pytest.mark.parametrize("seconds", [-1, 0, 1])
def test_the_last_writer_of_a_log_is_known_across_a_rotation(seconds: int) -> None:
    """A log is rotated as its supervisor is restarted, maybe in the same second: all begins at byte 0."""
    correlator = Correlator()
    Log(LOG, pid=1).feed(correlator, begun())
    (op,) = correlator.ops_of(JID)
    assert correlator.heard.writers[LOG].before is None
    Log(LOG, seconds=len(op.steps) + seconds, pid=2).feed(correlator, begun("run", "next", OTHER_DIR)[:1])
    writer = correlator.heard.writers[LOG]
    assert writer.pid == 2
    assert writer.before is not None
    assert not any(is_told_before(writer.before, step) for step in op.steps)


EARLY, LATE = (a_step("s", at, offset=offset) for at, offset in ((0.0, 90), (1.0, 10)))


@pytest.mark.parametrize(
    ("one", "other", "is_before"),
    [
        (EARLY, LATE, True), (LATE, EARLY, False), (LATE, LATE, False),
        (LATE, a_step("s", 1.0, offset=90), True),
        (a_step("s", at=None, offset=10), a_step("s", 1.0, offset=90), True),
        (EARLY, a_step("s", at=None, offset=10), False),
        (a_step("s", 0.0, source="a"), a_step("s", 1.0, source="b"), False),
    ],
)  # fmt: skip
def test_what_a_log_tells_first(one: Step, other: Step, is_before: bool) -> None:
    assert is_told_before(one, other) is is_before
