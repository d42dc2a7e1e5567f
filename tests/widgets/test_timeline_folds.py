"""Steps that repeat stand in one row of the timeline, until they are unfolded."""

import pytest

from jobtui.model.clock import FixedClock
from jobtui.model.ops import Op, OpStatus
from jobtui.widgets.row_view import Move
from jobtui.widgets.timeline import Timeline
from tests.builders import a_step, an_op
from tests.widgets.stage import Stage, text_of


def repeating(times: int, every_s: float = 0.5) -> Op:
    steps = [a_step("sent", 0)]
    for nth in range(times):
        at = 10 + nth * every_s
        steps += [a_step("update", at, line=2 * nth), a_step("status running", at, line=2 * nth + 1)]
    return an_op(steps=[*steps, a_step("reply ok", 50)], key=7, status=OpStatus.ENDED)


@pytest.mark.parametrize("columns", [100, 40])
async def test_what_repeats_is_one_row_and_all_of_them_when_unfolded(clock: FixedClock, columns: int) -> None:
    shown = Timeline(clock.now)
    async with Stage(shown).run_test(size=(columns, 30)):
        shown.set_op(repeating(10))
        # heading, sent, a gap, what repeats, a gap, the reply
        rows = [line for line in text_of(shown) if line]
        assert len(rows) == 6
        assert "▸ status running × 10" in rows[3]
        if columns == 100:
            assert "status running × 10  10s – 14s  each after update" in rows[3]
        shown.move(Move.UP)
        assert shown.step is not None
        assert (shown.step.step, shown.step.line) == ("status running", 19)
        assert shown.toggle_fold()
        rows = [line for line in text_of(shown) if line]
        assert len(rows) == 26
        assert "▾ status running × 10" in rows[3]
        shown.move(Move.DOWN)
        assert shown.step is not None
        assert (shown.step.step, shown.step.line) == ("update", 0)
        assert not shown.toggle_fold()
        shown.move(Move.UP)
        assert shown.toggle_fold()
        assert len([line for line in text_of(shown) if line]) == 6


async def test_it_stays_unfolded_while_steps_come_and_waits_in_it_are_told(clock: FixedClock) -> None:
    shown = Timeline(clock.now)
    async with Stage(shown).run_test(size=(100, 60)):
        shown.set_op(repeating(4, every_s=6))
        assert any("× 4  10s – 28s  waits up to 6s" in line for line in text_of(shown))
        shown.move(Move.UP)
        assert shown.toggle_fold()
        shown.set_op(repeating(5, every_s=6))
        assert sum("● update" in line for line in text_of(shown)) == 5
        shown.set_op(None)
        shown.set_op(repeating(5, every_s=6))
        assert sum("● update" in line for line in text_of(shown)) == 0
