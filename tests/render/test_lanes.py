import pytest

from jobtui.analysis.timeline import BAD, folds_in, timeline_rows
from jobtui.model.ops import Certainty, Component, Op
from jobtui.render import lanes
from jobtui.render.lanes import TimeStyle
from tests.builders import a_step, an_op, text_of
from tests.rows import ROWS

OP = an_op(
    steps=[
        a_step("api_runSimulation", 0, component=Component.SERVER),
        a_step("request", 0),
        a_step("sent", 1, component=Component.DRIVER),
        a_step("arrived", 1, component=Component.AGENT, certainty=Certainty.ADJACENT),
        a_step("reply ok", 31, component=Component.DRIVER),
        a_step("status error", 31),
    ]
)


def drawn(op: Op, cells: int, times: TimeStyle | None = None) -> list[str]:
    rows = timeline_rows(op)
    before = [None, *rows]
    lines = [
        lanes.row_line(row, before[at], cells, times or TimeStyle(fine=lanes.is_fine(rows)))
        for at, row in enumerate(rows)
    ]
    return [text_of(line) for line in lines]


@pytest.mark.parametrize(("word", "is_bad"), ROWS["words that somebody looks for"])
def test_bad_words_are_recognized(word: str, is_bad: bool) -> None:
    assert bool(BAD.search(word)) is is_bad


def test_times_are_as_fine_as_logs_have_them_or_left_out() -> None:
    op = an_op(steps=[a_step("a", 0), a_step("b", 0.911, component=Component.EXECUTE)])
    assert drawn(op, 40)[1].split() == ["execut", "b", "0.911"]
    assert drawn(OP, 40)[4].endswith("31s")
    assert drawn(an_op(steps=[a_step("a", 0), a_step("b", at=None)]), 40)[1].endswith("–")


def test_a_gap_and_a_silence_are_shown() -> None:
    rows = timeline_rows(OP)
    assert rows[4].is_gap
    assert text_of(lanes.gap_line(rows[4], rows[3], 100)).strip() == "┊ 30s"
    assert "◌ nothing for 1m" in text_of(lanes.waiting_line(rows[5], 60.4, 100))
    assert "┊ 30s" in text_of(lanes.gap_line(rows[4], rows[3], 40))


def test_repeats_have_one_row_with_the_certainty_of_the_least_sure_step() -> None:
    steps = [a_step("status running", 20 + 12 * nth) for nth in range(5)]
    steps[2] = a_step("status running", 44, certainty=Certainty.ADJACENT)
    rows = timeline_rows(an_op(steps=[a_step("sent", 0), *steps]))
    (fold,) = folds_in(rows)
    row = lanes.folded(rows, fold, TimeStyle(fine=True))
    assert row.step.step == "status running × 5  20s – 1m08s  waits up to 12s"
    assert row.step.certainty is Certainty.ADJACENT
    assert (row.from_start_s, row.since_prev_s, row.is_gap) == (20.0, 20.0, True)
