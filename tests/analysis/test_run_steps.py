"""Two runs step by step."""

from jobtui.analysis.run_steps import StepPair, Took, step_pairs
from jobtui.model.clock import Nanos
from jobtui.model.ops import LANES, Component, Op, OpStatus
from tests.builders import a_step, ago, an_op
from tests.conftest import NOW

_, SUPERVISOR, DRIVER, AGENT, _ = LANES[0]


def a_run(*steps: tuple[str, float, Component], name: str = "run", takes_s: float = 10) -> Op:
    """An op with these steps: what, seconds after its creation, where."""
    return an_op(
        name,
        steps=[a_step(text, at, component=component) for text, at, component in steps],
        status=OpStatus.ENDED,
        ended_at=Nanos(ago(60) + round(takes_s * 1e9)),
    )


def texts(pairs: tuple[StepPair, ...]) -> list[str]:
    """Each pair in a word: what it is, and a sign for in which of the runs it is."""
    signs = {(True, True): "=", (True, False): "<", (False, True): ">"}
    return [f"{signs[pair.left is not None, pair.right is not None]} {pair.text}" for pair in pairs]


def test_the_first_step_that_only_one_has_is_where_they_part() -> None:
    bad = a_run(("created", 0, SUPERVISOR), ("sent", 1, DRIVER), ("no reply", 9, DRIVER), ("lost", 9, AGENT))
    good = a_run(("created", 0, SUPERVISOR), ("sent", 1, DRIVER), ("reply ok", 2, DRIVER), takes_s=2)
    pairs = step_pairs([bad], [good], NOW)
    assert texts(pairs) == ["= run", "= created", "= sent", "< no reply", "< lost", "> reply ok"]
    assert [pair.text for pair in pairs if pair.parts] == ["no reply"]
    assert (pairs[0].left, pairs[0].right) == (Took(10.0), Took(2.0))
    assert (pairs[2].left, pairs[2].right) == (Took(1.0), Took(1.0))
    assert pairs[3].left == Took(8.0)


def test_of_runs_that_went_alike_the_first_slow_step_is_marked() -> None:
    slow = a_run(("created", 0, SUPERVISOR), ("agent start", 0.5, DRIVER), ("alive", 38, DRIVER))
    good = a_run(("created", 0, SUPERVISOR), ("agent start", 0.2, DRIVER), ("alive", 1, DRIVER))
    pairs = step_pairs([slow], [good], NOW)
    assert [pair.text for pair in pairs if pair.parts] == ["alive"]
    assert not any(pair.parts for pair in step_pairs([good], [slow], NOW)), "quicker is no fault"


def test_steps_that_come_again_are_counted() -> None:
    many = a_run(*(("update", float(at), DRIVER) for at in range(400)))
    few = a_run(("update", 0, DRIVER), ("update", 1, DRIVER))
    (_, update) = step_pairs([many], [few], NOW)
    assert update.left is not None
    assert update.right is not None
    assert (update.left.times, update.right.times, update.parts) == (400, 2, False)


def test_ops_are_paired_by_name_and_those_that_only_ask_are_left_out() -> None:
    left = [a_run(name="run"), a_run(name="run_status"), a_run(name="cancel")]
    right = [a_run(name="run"), a_run(name="analysis"), a_run(name="begin_session")]
    assert texts(step_pairs(left, right, NOW)) == ["= run", "< cancel", "> analysis"]
    assert step_pairs([], [], NOW) == ()


def test_steps_without_a_time_are_told_without_one() -> None:
    op = an_op("run", steps=[a_step("a"), a_step("b", at=None), a_step("c", 3)], status=OpStatus.ENDED)
    assert [pair.left.seconds for pair in step_pairs([op], [], NOW)[1:] if pair.left] == [None, None, 3.0]
