"""What is drawn against time: the steps of an op, and charts."""

import re
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.pilot import Pilot

from jobtui.analysis.reports.charts import Chart, ChartKind
from jobtui.analysis.reports.curves import Curve, Series
from jobtui.analysis.reports.rates import StateTime
from jobtui.analysis.timeline import job_lines
from jobtui.model.clock import SECOND, FixedClock, Nanos
from jobtui.model.ops import Certainty, Component, Op, OpStatus
from jobtui.render.chart import DrawnChart, Frame, draw_chart, legend_lines
from jobtui.render.lanes import op_glyph
from jobtui.render.log_lines import Tags, tags
from jobtui.theme import DARK, LAYOUT
from jobtui.widgets.chart import ChartView, ChartWindow
from jobtui.widgets.row_view import Move
from jobtui.widgets.timeline import JobLog, OpList, StepDetail, Timeline
from tests.builders import a_step, an_op, job_id, some
from tests.conftest import NOW
from tests.offenders import each
from tests.rows import ROWS
from tests.waiting import wait_until
from tests.widgets.widget_app import WidgetApp, text_of, watch


def test_all_spans_have_one_tag_and_are_no_log(monkeypatch: pytest.MonkeyPatch) -> None:
    spans = [a_step(component=Component.SPAN, source=f"span {nth} of trace 6cfb") for nth in range(2)]
    lines = job_lines(job_id(), [an_op(steps=[a_step(), *spans])], ())
    found = tags(lines, ())
    first, second, other = map(Tags(found, 16).of, [*(span.source for span in spans), a_step().source])
    assert (first, second) == (first, first) != (other, other)
    monkeypatch.setattr(JobLog, "cells", 40)
    (log := JobLog()).set_lines(lines, found)
    assert "3 lines of 1 log " in "".join(piece.text for piece in log.heading(0))


class Panes(WidgetApp):
    CSS = f"{LAYOUT} OpList {{ width: 30; }} Timeline {{ width: 1fr; }} StepDetail {{ dock: bottom; }}"

    def __init__(self, clock: FixedClock) -> None:
        super().__init__()
        self.ops = OpList(clock.now)
        self.timeline = Timeline(clock.now)
        self.detail = StepDetail()

    def compose(self) -> ComposeResult:
        with Horizontal():
            yield self.ops
            yield self.timeline
        yield self.detail


@pytest.fixture
def panes(clock: FixedClock) -> Panes:
    return Panes(clock)


async def test_an_open_op_says_for_how_long_nothing_came(panes: Panes, clock: FixedClock) -> None:
    op = an_op(steps=[a_step("request", 0), a_step("sent", 20)], status=OpStatus.SENT)
    async with panes.run_test(size=(120, 20)) as pilot:
        panes.timeline.set_op(op)
        await pilot.pause()
        assert "◌ nothing for 40s" in text_of(panes.timeline)[4]
        painted = watch(panes.timeline)
        clock.advance(1)
        panes.timeline.tick()
        await pilot.pause()
        assert painted == [4]
        for _ in range(5):
            panes.timeline.move(Move.DOWN)
        assert panes.timeline.step is op.steps[1]


async def test_until_it_is_moved_the_cursor_is_on_the_last_failure_however_steps_arrive(panes: Panes) -> None:
    steps = tuple(map(a_step, ("request", "sent", "agent lost", "status=error", "reply ok"), range(5)))
    async with panes.run_test(size=(120, 20)):
        for parts in ([(0, 1), (0, 2)], [(0, 3)], [(0, 4)], [(1, 2), (0, 3)], [(2, 5)]):
            panes.timeline.set_op(None)
            for begin, end in (*parts, (0, 5)):
                panes.timeline.set_op(an_op(key=7, steps=steps[begin:end]))
                assert panes.timeline.step is steps[min(end, 4) - 1], "the last failure, else the end"
        for begin in (2, 0):
            panes.timeline.set_op(an_op(key=7, steps=steps[begin:4]))
            panes.timeline.move(Move.TOP)
            panes.timeline.set_op(an_op(key=7, steps=steps))
            assert panes.timeline.step is steps[begin], "the step that was moved to"


async def test_the_line_behind_a_step_with_its_place_and_certainty_without_secrets(panes: Panes) -> None:
    step = a_step(text="new status=error _ComputeJob(x)", line=88214, certainty=Certainty.JID)
    secret = "dj5kQcH8mCu3Vw9UfMUcnzG0nOm7X3ZK"
    async with panes.run_test(size=(80, 20)) as pilot:
        panes.detail.step = step
        await pilot.pause()
        lines = text_of(panes.detail)
        assert lines[0] == " supervisor.log:88214  new status=error _ComputeJob(x)"
        assert lines[1] == " sure: the line names the job"
        panes.detail.step = msgspec.structs.replace(step, text="word " * 200)
        assert "…" in text_of(panes.detail)[2]
        told = f"start {{'agent_id': '{secret}', 'sim_db_file_server_token': '{secret[::-1]}'}}"
        panes.detail.step = a_step(text=told)
        assert "start" in text_of(panes.detail)[0]
        assert not any(one in "".join(text_of(panes.detail)) for one in (secret, secret[::-1]))
        panes.detail.step = None
        assert text_of(panes.detail) == ["", "", "", ""]


def repeating(times: int) -> Op:
    steps = [a_step("sent", 0)]
    for nth in range(times):
        at = 10 + nth * 0.5
        steps += [a_step("update", at, line=2 * nth), a_step("status running", at, line=2 * nth + 1)]
    return an_op(steps=[*steps, a_step("reply ok", 50)], key=7, status=OpStatus.ENDED)


@pytest.mark.parametrize("columns", [100, 40])
async def test_repeated_steps_are_one_row_until_unfolded(clock: FixedClock, columns: int) -> None:
    shown = Timeline(clock.now)
    async with WidgetApp(shown).run_test(size=(columns, 30)):
        shown.set_op(repeating(10))
        # heading, sent, a gap, what repeats, a gap, the reply
        rows = [line for line in text_of(shown) if line]
        assert len(rows) == 6
        assert "▸ status running × 10" in rows[3]
        if columns == 100:
            assert "status running × 10  10s – 14s  each after update" in rows[3]
        shown.move(Move.UP)
        assert (some(shown.step).step, some(shown.step).line) == ("status running", 19)
        assert shown.toggle_fold()
        rows = [line for line in text_of(shown) if line]
        assert len(rows) == 26
        assert "▾ status running × 10" in rows[3]
        shown.move(Move.DOWN)
        assert (some(shown.step).step, some(shown.step).line) == ("update", 0)
        assert not shown.toggle_fold()
        shown.move(Move.UP)
        assert shown.toggle_fold()
        assert len([line for line in text_of(shown) if line]) == 6


@each(*ROWS["signs of ops"])
def test_an_op_is_drawn_by_how_it_ended(status: str, told: dict[str, Any], sign: str) -> None:
    assert op_glyph(an_op(status=OpStatus(status), **told))[0] == sign


MINUTE = 60 * SECOND
BEGIN = Nanos(NOW - 100 * MINUTE)


def series(name: str, *values: float, unit: str = "nodes") -> Series:
    return Series(name, unit, [Nanos(BEGIN + at * MINUTE) for at in range(len(values))], list(values))


def a_chart(kind: ChartKind = ChartKind.UTILIZATION, end: Nanos = NOW) -> Chart:
    busy = Curve(series("utilization", 10, 10, 10, *([38] * 97)))
    if kind is ChartKind.STATES:
        waits = Curve(series("READY", 3, *([5] * 100), unit="jobs"))
        runs = Curve(series("RUNNING", *range(100), unit="jobs"))
        return Chart(kind, (waits, runs), BEGIN, end)
    if kind is ChartKind.TIMES:
        return Chart(kind, (), BEGIN, end, times=(StateTime("READY", 7, 1, 5.0, 9.0, 20.0),))
    there = Curve(series("available nodes", *([40] * 100)))
    waits = Curve(series("waiting", *([11] * 100), unit="jobs"))
    failed = Curve(series("to failed", 0, 0, *([1] * 50), *([3] * 45), unit="jobs"))
    return Chart(kind, (busy,), BEGIN, end, there, waits, failed)


async def drawn(view: ChartView, pilot: Pilot[None]) -> None:
    await wait_until(lambda: view._wish() is None and not view._is_drawing, pilot)


@asynccontextmanager
async def a_view(
    size: tuple[int, int] = (100, 20), theme: str = DARK.name
) -> AsyncIterator[tuple[ChartView, Pilot[None]]]:
    view = ChartView(lambda: NOW)
    async with WidgetApp(view, theme=theme).run_test(size=size) as pilot:
        yield view, pilot


async def shown(pilot: Pilot[None], view: ChartView, chart: Chart) -> list[str]:
    view.set_chart(chart)
    await drawn(view, pilot)
    return text_of(view)


async def test_the_cursor_goes_through_time() -> None:
    async with a_view() as (view, pilot):
        await shown(pilot, view, a_chart())
        for _ in range(120):
            view.move_cursor(-1)
        await drawn(view, pilot)
        assert "10 of 40 nodes busy, 30 idle" in view.words
        assert "failed" not in view.words
        view.move_cursor(1000)
        await drawn(view, pilot)
        assert "38 of 40" in view.words
        assert view.window.cursor is None


async def test_zoom_and_pan_change_the_shown_times() -> None:
    async with a_view() as (view, pilot):
        await shown(pilot, view, a_chart())
        whole = view.frame
        view.window.zoom(0.5)
        assert view.frame.until - view.frame.since == pytest.approx((whole.until - whole.since) / 2, rel=0.03)
        before = view.frame
        view.window.pan(-0.5)
        assert view.frame.until < before.until
        assert not view.window.follows
        view.window.pan(-9)
        assert view.frame.since >= BEGIN - MINUTE
        view.window.pan(9)
        assert view.window.follows
        view.window.zoom(2)
        assert view.window.is_whole


async def test_a_chart_shows_the_last_day_first() -> None:
    async with a_view() as (view, pilot):
        await shown(pilot, view, a_chart()._replace(begin=Nanos(NOW - 300 * 24 * 60 * MINUTE)))
        assert view.window.span == 24 * 60 * MINUTE
        view.window.next_span()
        assert view.window.span == 7 * 24 * 60 * MINUTE
        view.window.next_span()
        assert view.window.is_whole
        view.window.next_span()
        assert view.window.span == 5 * MINUTE


async def test_one_state_can_stand_alone() -> None:
    async with a_view() as (view, pilot):
        lines = await shown(pilot, view, a_chart(ChartKind.STATES))
        assert "5 READY, 99 RUNNING" in lines[0]
        assert lines[1].rstrip() == " a━ READY   b━ RUNNING"
        assert lines[2].lstrip().startswith("100┤")
        view.choose(1)
        await drawn(view, pilot)
        assert text_of(view)[2].lstrip().startswith("5┤")
        view.choose(-1)
        await drawn(view, pilot)
        assert text_of(view)[2].lstrip().startswith("100┤")


@each((2, 1, ""), (8, 1, "   4 more"), (8, 2, ""), (40, 3, "   26 more"))
def test_the_legend_takes_as_many_rows_as_it_may(states: int, rows: int, more: str) -> None:
    curve = Curve(series("STATE", 1))
    chart = Chart(ChartKind.STATES, (curve,) * states, BEGIN, NOW)
    lines = ["".join(span.text for span in line) for line in legend_lines(chart, None, 60, rows)]
    assert len(lines) <= rows
    assert max(map(len, lines)) <= 60
    assert lines[-1].endswith(more or "STATE")


async def test_times_are_a_table_and_what_is_not_known_yet_is_not_told() -> None:
    async with a_view() as (view, pilot):
        lines = await shown(pilot, view, a_chart(ChartKind.TIMES))
        assert lines[1].split()[:6] == ["READY", "7", "1", "5s", "9s", "20s"]
        lines = await shown(pilot, view, a_chart()._replace(outline=None, is_reading=True))
        assert "still being read, so far 38 nodes busy" in lines[0]
        await shown(pilot, view, a_chart(end=Nanos(NOW - 20 * MINUTE)))
        assert "38 of 40" in view.words
        picture = [line for line in text_of(view)[1:] if "┤" in line or "│" in line]
        assert all(not line[85:].strip() for line in picture)


async def test_no_key_is_lost_while_a_chart_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    may_draw = threading.Event()
    may_draw.set()

    def draw_slowly(*given: Any) -> DrawnChart:
        may_draw.wait(30)
        return draw_chart(*given)

    monkeypatch.setattr("jobtui.render.chart.draw_chart", draw_slowly)
    async with a_view() as (view, pilot):
        view.move_cursor(-1)
        await shown(pilot, view, a_chart())
        width = view._drawn.time_of(1)[0] - view._drawn.time_of(0)[0] if view._drawn else 0
        assert abs(NOW - 1.5 * width - (view.window.cursor or 0)) < width, "a key before the first chart"
        view.window.cursor = None
        may_draw.clear()
        view.window.zoom(0.1)
        view.redraw()
        for _ in range(3):
            view.move_cursor(-1)
        in_time = view.window.cursor
        for _ in range(3):
            view.move_cursor(1)
        assert view.window.cursor is None or view.window.cursor > NOW - width
        for _ in range(3):
            view.move_cursor(-1)
        assert view.window.cursor == in_time is not None
        may_draw.set()
        await drawn(view, pilot)
        assert NOW - width < in_time < NOW, "columns of the window before"
        view.kind = ChartKind.STATES
        view.choose(1)
        assert view.chosen is None
        view.set_chart(a_chart(ChartKind.STATES))
        assert view.chosen == 0
        await drawn(view, pilot)


@pytest.mark.parametrize("odd", [float("inf"), float("-inf"), float("nan"), 1e300])
async def test_no_number_keeps_a_chart_from_being_drawn(odd: float) -> None:
    busy = Curve(series("utilization", 10, odd, 20))
    async with a_view() as (view, pilot):
        lines = await shown(pilot, view, Chart(ChartKind.UTILIZATION, (busy,), BEGIN, NOW))
        assert any("nodes busy" in line for line in lines)


@pytest.mark.parametrize("size", [(60, 5), (24, 12)])
async def test_a_chart_without_room_shows_its_scale_in_words(size: tuple[int, int]) -> None:
    busy = Curve(series("utilization", 10, 38, 20))
    async with a_view(size) as (view, pilot):
        told = " ".join(await shown(pilot, view, Chart(ChartKind.UTILIZATION, (busy,), BEGIN, NOW)))
        assert re.search(r"0 to 38 +nodes, +\d\d-\d\d +\d\d:\d\d +to +\d\d-\d\d", told)


async def test_lines_of_many_states_differ_without_colour() -> None:
    names = [f"STATE_{nth}" for nth in range(11)]
    curves = tuple(Curve(series(name, *([10.0 * nth] * 100), unit="jobs")) for nth, name in enumerate(names))
    async with a_view((150, 40)) as (view, pilot):
        lines = await shown(pilot, view, Chart(ChartKind.STATES, curves, BEGIN, NOW))
    legend = " ".join(lines[1:4])
    signs = [legend.partition(f"━ {name}")[0][-1] for name in names]
    assert len(set(signs)) == len(names)
    picture = "".join(line.partition("┤")[2] or line.partition("│")[2] for line in lines)
    assert not [sign for sign in signs if sign not in picture], lines


@each(0.5, 60, 13_579, 90_000_000)
def test_a_window_that_follows_is_the_same_until_it_moves_by_a_cell(known_s: float) -> None:
    at, cells, frames = [NOW], 100, set[Frame]()
    window = ChartWindow(lambda: at[0])
    window.begin = Nanos(NOW - round(known_s * SECOND))
    window.show_whole()
    for nth in range(1_000):
        frames.add(window.frame(cells, 20))
        at[0] = Nanos(NOW + nth * window.span // cells // 1_000)
    assert len(frames) <= 5  # it moves once or twice, and grows as often
