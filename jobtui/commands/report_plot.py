"""`report --plot`: the series of a report drawn as the dashboard draws them, as wide as the terminal."""

import os
import sys
from collections.abc import Iterator, Sequence

from jobtui.analysis.charts import Chart, ChartKind
from jobtui.analysis.curves import Curve, curve_turns
from jobtui.analysis.series import Series, Window
from jobtui.analysis.turns import at_once
from jobtui.model.clock import SECOND, Nanos
from jobtui.render.chart import Frame, chart_lines, draw_chart, legend_lines
from jobtui.render.spans import Line
from jobtui.render.table import paint
from jobtui.render.text import Zone, date_time, show

ROWS = 22
COLUMNS, FEWEST, MOST = 80, 20, 500
"""Cells of a line where there is no terminal, and at least and at most."""
OUTLINE = "available nodes"


def plot_lines(series: Sequence[Series], window: Window, now: Nanos, *, colour: bool) -> Iterator[str]:
    """One picture for all series of one unit, each below its names."""
    if not series:
        yield paint("no points", "heading", colour)
    for unit in dict.fromkeys(one.unit for one in series):
        alike = [one for one in series if one.unit == unit]
        if any(one.x for one in alike):
            yield from _picture(alike, window, now, colour=colour)
        else:
            yield paint(f"{', '.join(show(one.name) for one in alike)}: no points", "heading", colour)


def _picture(series: Sequence[Series], window: Window, now: Nanos, *, colour: bool) -> Iterator[str]:
    frame = _frame(series, window, now)  # before the curves, which take the points out of the series
    outlines = [one for one in series if one.name.startswith(OUTLINE)] if len(series) > 1 else []
    curves = tuple(at_once(curve_turns(one)) for one in series if one not in outlines)
    outline = at_once(curve_turns(outlines[0])) if outlines else None
    kind = ChartKind.STATES if len(curves) > 1 else ChartKind.UTILIZATION
    chart = Chart(kind, curves, frame.since, min(now, frame.until), outline)
    *names, last = legend_lines(chart, None, frame.cells, len(series))
    yield from (_painted(line, colour) for line in names)
    yield f"{_painted(last, colour)}   ({series[0].unit})"
    for line in chart_lines(draw_chart(chart, frame)):
        yield _painted(line, colour).rstrip()
    times = f"{date_time(frame.since)} to {date_time(frame.until)}{Zone.mark()}"
    yield paint(times, "dim", colour)
    if (low := _lowest(curves, frame)) < 0:
        yield f"note: the lowest value is {low:g}; what is below 0 is drawn at 0"


def _frame(series: Sequence[Series], window: Window, now: Nanos) -> Frame:
    first = min(one.x[0] for one in series if one.x)
    since = first if window.since is None else window.since
    until = now if window.until is None else min(now, window.until)
    until = Nanos(max(until, since + SECOND))
    return Frame(since, until, terminal_columns(), ROWS)


def _lowest(curves: Sequence[Curve], frame: Frame) -> float:
    return min(curve.step(frame.since, frame.until).low for curve in curves)


def _painted(line: Line, colour: bool) -> str:
    return "".join(paint(span.text, span.style, colour) for span in line)


def terminal_columns() -> int:
    """How wide the terminal is that is printed to; without one, what `COLUMNS` says, or as is usual."""
    try:
        found = os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        text = os.environ.get("COLUMNS", "")
        found = int(text) if text.isascii() and text.isdigit() and len(text) < 5 else COLUMNS
    return max(FEWEST, min(MOST, found or COLUMNS))
