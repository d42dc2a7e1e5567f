"""The chart: what it says of a time, keys in it, its picture in every theme and size."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from textual.pilot import Pilot

from jobtui.analysis.reports.charts import Chart, ChartKind
from jobtui.analysis.reports.curves import Curve, Series
from jobtui.analysis.reports.rates import StateTime
from jobtui.model.clock import SECOND, Nanos
from jobtui.render.chart import legend_lines
from jobtui.theme import DARK
from jobtui.widgets.chart import ChartView
from tests.conftest import NOW
from tests.waiting import wait_until
from tests.widgets.widget_app import WidgetApp, text_of

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
        return Chart(kind, (), BEGIN, end, times=(StateTime("READY", 7, 1, 70.0, 5.0, 9.0, 20.0),))
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


async def test_zoom_and_pan_show_other_times() -> None:
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


async def test_of_a_long_past_the_last_day_is_shown_first() -> None:
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


@pytest.mark.parametrize(
    ("states", "rows", "more"), [(2, 1, ""), (8, 1, "   4 more"), (8, 2, ""), (40, 3, "   26 more")]
)
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
