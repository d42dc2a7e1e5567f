"""What a chart says of one time, in words."""

from jobtui.analysis.charts import Chart, ChartKind
from jobtui.analysis.curves import rate_at, rate_width
from jobtui.model.clock import Nanos
from jobtui.render.chart import Drawn, Frame, number_text
from jobtui.render.text import Zone, duration, show
from jobtui.render.time_axis import time_text

STATES_TOLD = 12
"""States that are told of one time at most."""


def words_at(chart: Chart, at: Nanos, frame: Frame) -> str:
    """ "14:07  38 of 40 nodes busy, 2 idle, 11 jobs waiting", safe to show."""
    time = f"{time_text(at, frame.until - frame.since)}{Zone.mark()}"
    if at > chart.end:
        return f"{time}  not yet"
    if not chart.curves and chart.kind is not ChartKind.TIMES:
        return f"{time}  nothing is known of jobs"
    return f"{time}  {_values(chart, at, frame)}"


def _values(chart: Chart, at: Nanos, frame: Frame) -> str:
    match chart.kind:
        case ChartKind.UTILIZATION:
            return _utilization(chart, at)
        case ChartKind.THROUGHPUT | ChartKind.RATE:
            width = rate_width(frame.until - frame.since, max(1, frame.cells // 2))
            done, pace = chart.curves[0].at(at), rate_at(chart.curves[0], at, width)
            return f"{number_text(done)} jobs done, {number_text(pace)}/min over {duration(width / 1e9)}"
        case ChartKind.STATES:
            named = [
                f"{number_text(value)} {show(curve.series.name)}"
                for curve in chart.curves
                if (value := curve.at(at))
            ]
            return ", ".join(named[:STATES_TOLD]) or "no jobs"
    return ""


def _utilization(chart: Chart, at: Nanos) -> str:
    busy = chart.curves[0].at(at)
    waits = chart.waiting.at(at) if chart.waiting is not None else 0.0
    waiting = f"{number_text(waits)} jobs waiting" if waits != 1 else "1 job waiting"
    unit = chart.curves[0].series.unit
    if unit == "jobs":
        return f"{number_text(busy)} jobs running, {waiting}" if busy != 1 else f"1 job running, {waiting}"
    if chart.outline is None:
        return f"{number_text(busy)} nodes busy, {waiting}"
    there = chart.outline.at(at)
    idle = f"{number_text(there - busy)} idle" if there >= busy else f"{number_text(busy - there)} too many"
    return f"{number_text(busy)} of {number_text(there)} nodes busy, {idle}, {waiting}"


def title_of(chart: Chart) -> str:
    """What is at the side of a chart."""
    match chart.kind:
        case ChartKind.UTILIZATION:
            unit = chart.curves[0].series.unit if chart.curves else "jobs"
            what = "nodes busy, over nodes available (grey)" if chart.outline else f"{unit} running"
            return what
        case ChartKind.THROUGHPUT:
            return "jobs done since the beginning"
        case ChartKind.RATE:
            return "jobs done per minute"
        case ChartKind.STATES:
            return "jobs in each state"
    return "how long jobs stay in each state"


def time_of_cursor(drawn: Drawn, column: int, end: Nanos) -> Nanos:
    """The time that a column tells of: its last instant, as far as anything is known."""
    begin, behind = drawn.time_of(column)
    return max(begin, min(Nanos(behind - 1), end))
