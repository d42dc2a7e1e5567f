"""A chart as an SVG picture of its own: for a post-mortem, a wiki, a mail. It loads nothing."""

from collections.abc import Iterator
from html import escape

from jobtui.analysis.reports.charts import Chart, ChartKind
from jobtui.analysis.reports.curves import Curve, steps
from jobtui.model.clock import Nanos
from jobtui.render.chart import Frame, axis_ticks, main_curves, nice_top, number_text, side_values, title_of
from jobtui.render.text import Zone, date_time, show

WIDTH, HEIGHT = 960, 400
LEFT, TOP, RIGHT, BOTTOM = 64, 56, 16, 32
COLUMNS, ROWS = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
CELL_WIDTH, CELL_HEIGHT = 8, 14
"""A terminal's cell in pixels: the axes have as many times and numbers as would fit there."""
COLOURS = ("#3b82c4", "#d9822b", "#3c9a5f", "#9b59b6", "#c0392b", "#7f8c8d", "#16a085", "#8e6e53")
AREA, OUTLINE, WAITING, FAILED = COLOURS[0], "#888888", COLOURS[1], COLOURS[4]
STYLE = "text{font:12px sans-serif;fill:#333}.t{font-size:14px;font-weight:bold}path,line{fill:none}"


def chart_svg(chart: Chart, since: Nanos, until: Nanos) -> Iterator[str]:
    frame = Frame(since, until, COLUMNS // CELL_WIDTH, ROWS // CELL_HEIGHT)
    curves = main_curves(chart, frame)
    beside = {"nodes available": chart.outline, "jobs waiting": chart.waiting}
    shown = [*curves, *(curve for curve in beside.values() if curve is not None)]
    top = nice_top(max((curve.step(since, until).high for curve in shown), default=0.0))
    title = f"{title_of(chart)}, {date_time(since)} to {date_time(until)}{Zone.mark()}"
    yield f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
    yield f'<style>{STYLE}</style><rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>'
    yield _text(LEFT, 20, title, "t")
    yield from _axes(frame, top)
    names: dict[str, str] = {}
    if chart.kind is ChartKind.STATES:
        for number, curve in enumerate(curves):
            names[show(curve.series.name)] = colour = COLOURS[number % len(COLOURS)]
            yield _path(curve, chart, frame, top, f'stroke="{colour}" stroke-width="1.5"')
    else:
        names[show(curves[0].series.name)] = AREA
        yield _path(curves[0], chart, frame, top, f'style="fill:{AREA}" fill-opacity=".6"', is_area=True)
        for (name, beside_it), colour in zip(beside.items(), (OUTLINE, WAITING), strict=True):
            if beside_it is not None:
                names[name] = colour
                yield _path(beside_it, chart, frame, top, f'stroke="{colour}" stroke-width="1.5"')
        if chart.failures is not None:
            names["failed"] = FAILED
            for column, step in enumerate(steps(chart.failures, since, until, chart.end, COLUMNS)):
                if step.last > step.first:
                    yield _text(LEFT + column - 4, HEIGHT - BOTTOM + 4, "×", fill=FAILED)
    x = float(LEFT)
    for name, colour in names.items():
        yield f'<rect x="{x:.0f}" y="{TOP - 22}" width="10" height="10" fill="{colour}"/>'
        yield _text(x + 14, TOP - 13, name)
        x += 30 + 7 * len(name)
    yield "</svg>"


def _text(x: float, y: float, words: str, kind: str = "", fill: str = "", anchor: str = "start") -> str:
    look = (f' class="{kind}"' if kind else "") + (f' style="fill:{fill}"' if fill else "")
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}"{look}>{escape(words)}</text>'


def _axes(frame: Frame, top: float) -> Iterator[str]:
    base = HEIGHT - BOTTOM
    for value in side_values(top, frame.rows):
        y = TOP + ROWS * (1 - value / top)
        yield f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#ddd"/>'
        yield _text(LEFT - 6, y + 4, number_text(value), anchor="end")
    for column, words in axis_ticks(frame.since, frame.until, frame.cells):
        x = LEFT + COLUMNS * column / frame.cells
        yield f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{base}" y2="{base + 4}" stroke="#888"/>'
        yield _text(x, base + 18, words, anchor="middle")


def _path(curve: Curve, chart: Chart, frame: Frame, top: float, look: str, *, is_area: bool = False) -> str:
    """A curve, one column of pixels at a time; changes within one are a stroke up and down."""
    points = [
        (LEFT + column, TOP + ROWS * (1 - min(1.0, max(0.0, value / top))))
        for column, step in enumerate(steps(curve, frame.since, frame.until, chart.end, COLUMNS))
        for value in dict.fromkeys((step.first, step.low, step.high, step.last))
    ]
    if is_area and points:
        base = float(TOP + ROWS)
        points = [(points[0][0], base), *points, (points[-1][0], base)]
    way = " L".join(f"{x} {y:.1f}" for x, y in points)
    return f'<path d="M{way or "0 0"}" {look}/>'
