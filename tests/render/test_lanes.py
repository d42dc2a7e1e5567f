import pytest

from jobtui.analysis.timeline import BAD, folds_in, timeline_rows
from jobtui.model.ops import Certainty, Component, Op
from jobtui.render import lanes
from jobtui.render.lanes import Times
from jobtui.render.spans import width_of
from tests.builders import a_step, an_op, text_of
from tests.conftest import NOW

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


def drawn(op: Op, cells: int, times: Times | None = None) -> list[str]:
    rows = timeline_rows(op, NOW)
    before = [None, *rows]
    lines = [
        lanes.row_line(row, before[at], cells, times or Times(fine=lanes.is_fine(rows)))
        for at, row in enumerate(rows)
    ]
    return [text_of(line) for line in lines]


def test_an_inferred_link_is_dotted_and_a_sure_one_is_not() -> None:
    lines = drawn(OP, 100)
    assert "┄" in lines[3]
    assert "─" in lines[2]
    assert "┄" not in lines[2]


@pytest.mark.parametrize(
    ("word", "is_bad"),
    [
        ("destroyed, no reply", True),
        ("time limit reached", True),
        ("agent did not start in time: timeout", True),
        ("killed", True),
        ("reply ok", False),
        ("error", True),
        ("terror", False),
    ],
)
def test_words_that_somebody_looks_for(word: str, is_bad: bool) -> None:
    assert bool(BAD.search(word)) is is_bad


def test_where_it_is_narrow_there_is_a_list() -> None:
    assert lanes.lanes_in(60) is None
    lines = drawn(OP, 40)
    assert lines[0] == " server  api_runSimulation            0s"
    assert lines[1].startswith(" superv  request")
    assert any(line.startswith(" superv  ✗ status error") for line in lines)
    assert all(len(line) == 40 for line in lines)
    assert text_of(lanes.heading(OP, 40)) == " step                              start"


def test_the_heading_names_lanes_driver_and_agent() -> None:
    text = text_of(lanes.heading(OP, 100))
    assert len(text) == 100
    assert "driver Local" in text
    assert "agent WUt4" in text
    assert text.rstrip().endswith("step")
    assert width_of(lanes.heading(None, 100)) == 100


def test_times_to_the_millisecond_only_where_logs_have_them() -> None:
    op = an_op(steps=[a_step("a", 0), a_step("b", 0.911)])
    assert drawn(op, 40)[1].endswith("0.911")
    assert drawn(OP, 40)[4].endswith("31s")


def test_times_of_day() -> None:
    assert drawn(OP, 40, Times(absolute=True))[0].endswith("20:59:00")


def test_a_step_without_a_time_has_none() -> None:
    op = an_op(steps=[a_step("a", 0), a_step("b", at=None)])
    assert drawn(op, 40)[1].endswith("–")


def test_a_gap_and_a_silence_are_told() -> None:
    rows = timeline_rows(OP, NOW)
    assert rows[4].is_gap
    assert text_of(lanes.gap_line(rows[4], rows[3], 100)).strip() == "┊ 30s"
    assert "◌ nothing for 1m" in text_of(lanes.waiting_line(rows[5], 60.4, 100))
    assert "┊ 30s" in text_of(lanes.gap_line(rows[4], rows[3], 40))


def test_what_repeats_is_told_in_one_row_as_sure_as_the_least_sure_of_its_steps() -> None:
    steps = [a_step("status running", 20 + 12 * nth) for nth in range(5)]
    steps[2] = a_step("status running", 44, certainty=Certainty.ADJACENT)
    rows = timeline_rows(an_op(steps=[a_step("sent", 0), *steps]), NOW)
    (fold,) = folds_in(rows)
    row = lanes.folded(rows, fold, Times(fine=True))
    assert row.text == "status running × 5  20s – 1m08s  waits up to 12s"
    assert row.certainty is Certainty.ADJACENT
    assert (row.from_start_s, row.since_prev_s, row.is_gap) == (20.0, 20.0, True)
