"""A chart in cells: lines of dots, the two axes around them, and what is told of one time in words."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from jobtui.analysis.charts import Chart, ChartKind
from jobtui.analysis.curves import Curve, Step, curve_turns, rate, steps
from jobtui.analysis.turns import at_once
from jobtui.model.clock import Nanos
from jobtui.model.jobs import JobStatus
from jobtui.render.plot import DOTS_HIGH, DOTS_WIDE, Cell, Dots, draw
from jobtui.render.spans import Line, Span, padded, width_of
from jobtui.render.status import STYLES
from jobtui.render.text import fit, show, width
from jobtui.render.time_axis import axis_lines

AXIS_ROWS = 2
"""Rows below the dots: the axis, and the times on it."""
ROWS_BETWEEN = 4
"""Rows from one number at the side to the next."""
STYLES_IN_TURN = ("source.0", "source.2", "source.1", "source.3", "source.4")
OUTLINE = "dim"
LEGEND_GAP = "   "
MORE_CELLS = len(LEGEND_GAP) + len("99 more")
_SETTLED = frozenset({JobStatus.CANCELED, JobStatus.MISSING, JobStatus.PURGED})
"""Of these that are completed could not be told apart."""
_KNOWN_STYLES = {status.value: STYLES[status] for status in JobStatus if status not in _SETTLED} | {
    "RUNNING": STYLES[JobStatus.RUNNING],
    "JOB_FINISHED": STYLES[JobStatus.COMPLETED],
    "FAILED": STYLES[JobStatus.FAILED],
    "RUN_ERROR": STYLES[JobStatus.FAILED],
}


class Frame(NamedTuple):
    """What is looked at: from when until when, in how many cells."""

    since: Nanos
    until: Nanos
    cells: int
    rows: int


class Drawn(NamedTuple):
    """A chart that was drawn. `left` is how many cells the numbers at the side take, `top` the highest."""

    frame: Frame
    cells: list[list[Cell]]
    left: int
    top: float
    styles: tuple[str, ...]
    """The style of each line of dots."""

    @property
    def columns(self) -> int:
        """Cells beside the numbers at the side."""
        return self.frame.cells - self.left

    def time_of(self, column: int) -> tuple[Nanos, Nanos]:
        """From when until when a column of cells reaches, the end left out."""
        since, until, _, _ = self.frame
        span, columns = until - since, max(1, self.columns)
        return Nanos(since + span * column // columns), Nanos(since + span * (column + 1) // columns)


def shown_curves(chart: Chart, frame: Frame) -> tuple[Curve, ...]:
    """The curves of a chart in the order they are drawn: an outline lies below."""
    if chart.kind is ChartKind.RATE:
        curve = chart.curves[0]
        told = rate(curve, frame.since, frame.until, chart.end, max(1, frame.cells // 2))
        return (at_once(curve_turns(told)),)
    return ((chart.outline,) if chart.outline is not None else ()) + chart.curves


def style_names(chart: Chart) -> tuple[str, ...]:
    """A style for each curve that is shown."""
    below = (OUTLINE,) if chart.outline is not None else ()
    if chart.kind is not ChartKind.STATES:
        return below + ("accent",) * len(chart.curves)
    names, free = list(below), 0
    for curve in chart.curves:
        style = _KNOWN_STYLES.get(curve.series.name)
        if style is None:
            style, free = STYLES_IN_TURN[free % len(STYLES_IN_TURN)], free + 1
        names.append(style)
    return tuple(names)


def draw_chart(chart: Chart, frame: Frame, chosen: int | None = None) -> Drawn:
    """Draw what is looked at: all curves, or the chosen one alone.

    May take long: not to be called where a screen waits.
    """
    rows = max(1, frame.rows - AXIS_ROWS)
    curves, styles = shown_curves(chart, frame), style_names(chart)
    if chosen is not None:
        curves, styles = curves[chosen : chosen + 1], styles[chosen : chosen + 1]
    top = nice_top(max((curve.step(frame.since, frame.until).high for curve in curves), default=0.0))
    left = 1 + max(len(number) for number in _numbers(top, rows).values())
    columns = max(1, frame.cells - left)
    frame = frame._replace(cells=left + columns)
    lines = []
    for curve in curves:
        found = steps(curve, frame.since, frame.until, chart.end, columns * DOTS_WIDE)
        lines.append(_dots(found, top, rows))
    return Drawn(frame, draw(lines, columns, rows), left, top, styles)


def _dots(found: Sequence[Step], top: float, rows: int) -> Dots:
    """A line that goes through all values of each stretch, and from one stretch to the next."""
    high = rows * DOTS_HIGH - 1
    x: list[float] = []
    y: list[float] = []
    for column, step in enumerate(found):
        for value in (step.first, step.low, step.high, step.last):
            height = min(high, max(0.0, value / top * high))
            if not (x and x[-1] == column and y[-1] == height):
                x.append(column)
                y.append(height)
    return Dots(x, y)


def nice_top(most: float) -> float:
    """The number at the top of the side: 1, 2, 4, 5, 6 or 8 times a power of ten, not below `most`."""
    if most <= 1:
        return 1.0
    power = 10.0 ** (len(str(int(most))) - 1)
    return next(power * part for part in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if power * part >= most)


def _numbers(top: float, rows: int) -> dict[int, str]:
    """The numbers at the side, by the row from above they stand in."""
    count = max(1, min((rows - 1) // ROWS_BETWEEN, 8))
    while count > 1 and (top / count) % 1:
        count -= 1
    found = {}
    for at in range(count + 1):
        row = round((rows - 1) * (1 - at / count))
        found[row] = number_text(top * at / count)
    return found


def number_text(value: float) -> str:
    """A number in few cells: "1,200", "3.5"."""
    rounded = round(value, 1)
    return f"{rounded:,.0f}" if rounded == int(rounded) else f"{rounded:,.1f}"


def chart_lines(drawn: Drawn, cursor: int | None = None) -> list[Line]:
    """The rows of a chart. `cursor` is a column."""
    numbers = _numbers(drawn.top, len(drawn.cells))
    lines = []
    for row, cells in enumerate(drawn.cells):
        number = numbers.get(row, "")
        side = "┤" if number else "│"
        spans = [Span(f"{number:>{drawn.left - 1}}", "dim", drawn.left - 1), Span(side, "rule", 1)]
        styles = [drawn.styles[cell.line] if cell.line >= 0 else "" for cell in cells]
        if cursor is not None and cursor < len(styles):
            styles[cursor] = f"{styles[cursor]} cursor".strip()
        for style, group in groupby(zip(styles, cells, strict=True), key=itemgetter(0)):
            text = "".join(cell.text for _, cell in group)
            spans.append(Span(text, style, len(text)))
        lines.append(tuple(spans))
    frame = drawn.frame
    return [*lines, *axis_lines(frame.since, frame.until, drawn.left, drawn.columns, cursor)]


def spark_line(chart: Chart, frame: Frame, words: str) -> Line:
    """What matters most of a chart in one line: bars, and a number."""
    bars = " ▁▂▃▄▅▆▇█"
    text = fit(words, max(0, min(frame.cells, width(words))))
    room = frame.cells - width(text) - 2
    if room < 4 or not chart.curves:
        return padded((Span(fit(words, frame.cells), ""),), frame.cells)
    curves = shown_curves(chart, frame._replace(cells=room))
    curve = curves[-1] if chart.kind is not ChartKind.STATES else curves[0]
    found = steps(curve, frame.since, frame.until, chart.end, room)
    top = max((step.high for step in found), default=0.0) or 1.0
    drawn = "".join(bars[max(1, round(step.high / top * 8))] if step.high > 0 else "▁" for step in found)
    return (Span(f"{drawn:<{room}} ", "accent"), Span(f" {text}"))


def legend_lines(chart: Chart, chosen: int | None, cells: int, most: int) -> list[Line]:
    """The names of the lines of dots in their styles, in so many rows at most; how many more there are."""
    entries = list(_legend_entries(chart, chosen))
    lines: list[Line] = [()]
    for at, entry in enumerate(entries):
        gap = (Span(LEGEND_GAP, "", len(LEGEND_GAP)),) if lines[-1] else ()
        is_last_row, is_last = len(lines) >= most, at == len(entries) - 1
        room = cells - (MORE_CELLS if is_last_row and not is_last else 0)
        if lines[-1] and width_of((*lines[-1], *gap, *entry)) > room:
            if is_last_row:
                lines[-1] = (*lines[-1], *gap, Span(f"{len(entries) - at} more", "dim"))
                break
            lines.append(())
            gap = ()
        lines[-1] = (*lines[-1], *gap, *entry)
    return lines


def _legend_entries(chart: Chart, chosen: int | None) -> Iterator[Line]:
    named = (*((chart.outline,) if chart.outline is not None else ()), *chart.curves)
    for number, (curve, style) in enumerate(zip(named, style_names(chart), strict=True)):
        look = f"strong {style}" if number == chosen else style if chosen is None else "rule"
        yield Span("━━ ", look, 3), Span(show(curve.series.name), "strong" if number == chosen else "")
