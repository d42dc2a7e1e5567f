"""A chart in cells: an area or lines of dots, the two axes around them, the values at one time in words, and
the table of how long jobs stay in each state.
"""

import math
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from jobtui.analysis.reports.charts import Chart, ChartKind
from jobtui.analysis.reports.curves import Curve, CurveStep, rate, rate_at, rate_width, steps
from jobtui.analysis.reports.rates import StateTime
from jobtui.analysis.times import ROUND_S
from jobtui.model.clock import DAY, SECOND, Nanos
from jobtui.model.jobs import JobStatus
from jobtui.render.columns import head, table_rows
from jobtui.render.spans import Line, Piece, fitting, padded, width_of
from jobtui.render.styles import STATUS_STYLES
from jobtui.render.text import NONE, Zone, clock_time, date_time, duration, fit, show, width

DOTS_WIDE, DOTS_HIGH = 2, 4
"""Dots of one cell."""
_DOT_BITS = ((0x40, 0x04, 0x02, 0x01), (0x80, 0x20, 0x10, 0x08))
"""The dots of a braille character from the bottom up, of the left and the right column."""
BARS = " ▁▂▃▄▅▆▇█"


class ChartCell(NamedTuple):
    """A character of the picture, and the number of the line it shows, -1 for none."""

    text: str
    line: int


BLANK = ChartCell(" ", -1)
Cells = list[list[ChartCell]]
"""Rows from the top, of cells from the left."""


def put_dots(cells: Cells, found: Sequence[CurveStep], top: float, number: int) -> None:
    """Draw a line of braille, one column of dots for each step. Where lines meet, the last one is on top."""
    high = len(cells) * DOTS_HIGH - 1
    bits: dict[tuple[int, int], int] = {}
    last: int | None = None
    for column, step in enumerate(found):
        heights = [min(high, max(0, int(value / top * high))) for value in step]
        reached = heights if last is None else [last, *heights]
        for height in range(min(reached), max(reached) + 1):
            row, dot = divmod(height, DOTS_HIGH)
            cell = (len(cells) - 1 - row, column // DOTS_WIDE)
            bits[cell] = bits.get(cell, 0) | _DOT_BITS[column % DOTS_WIDE][dot]
        last = heights[-1]
    for (row, column), dots in bits.items():
        cells[row][column] = ChartCell(chr(0x2800 + dots), number)


def put_area(cells: Cells, found: Sequence[CurveStep], top: float, number: int) -> None:
    """Fill the area below a curve, solid up to the least of each column and shaded up to the most."""
    rows = len(cells)
    for column, step in enumerate(found):
        low, high = (min(1.0, max(0.0, value / top)) * rows for value in (step.low, step.high))
        for row in range(math.ceil(high)):
            is_edge = row <= low and high <= row + 1
            sign = "█" if row + 1 <= low else BARS[math.ceil((high - row) * 8)] if is_edge else "▒"
            cells[rows - 1 - row][column] = ChartCell(sign, number)


def put_line(cells: Cells, found: Sequence[CurveStep], top: float, number: int, sign: str) -> None:
    """Draw the values at the ends of columns as a line; within an area it is cut out."""
    rows, before = len(cells), None

    def put(row: int, column: int, text: str) -> None:
        is_inside = cells[row][column].text in "█▒"
        cells[row][column] = ChartCell(text, IN_AREA if is_inside else number)

    for column, step in enumerate(found):
        row = rows - 1 - min(rows - 1, max(0, round(step.last / top * rows - 0.5)))
        ends = ("╯", "╭") if before is not None and row < before else ("╮", "╰")
        if before in (None, row):
            put(row, column, sign)
        else:
            put(before, column, ends[0])
            put(row, column, ends[1])
            for between in range(min(row, before) + 1, max(row, before)):
                put(between, column, "│")
        before = row


def time_text(at: Nanos, span: int) -> str:
    """A time in the precision that a window of this length needs: "14:20:31", "14:20", "11-20 14:20"."""
    if span > DAY:
        return date_time(at)[5:16]
    return clock_time(at) if span <= 2 * 3_600 * SECOND else clock_time(at)[:5]


def axis_lines(
    since: Nanos, until: Nanos, left: int, columns: int, cursor: int | None, failed: Collection[int] = ()
) -> list[Line]:
    """The axis and the times below it, after `left` cells; columns in `failed` are marked."""
    axis = ["─"] * columns
    texts = [" "] * columns
    apart = min(1, left)  # from the mark of the zone
    for column, text in axis_ticks(since, until, columns):
        begin = max(apart, min(column - len(text) // 2, columns - len(text)))
        axis[column] = "┬"
        if begin + len(text) <= columns:
            texts[begin : begin + len(text)] = text
            apart = begin + len(text) + 1
    if cursor is not None and 0 <= cursor < columns:
        axis[cursor] = "▲"
    marked = [(FAILED, "status.failed") if at in failed else (sign, "rule") for at, sign in enumerate(axis)]
    parts = groupby(marked, key=itemgetter(1))
    drawn = [Piece("".join(sign for sign, _ in group), style) for style, group in parts]
    zone = Zone.mark().strip()
    mark = f"{zone[: max(0, left)]:>{left}}"
    return [
        (Piece(" " * (left - 1) + "└", "rule", left), *drawn),
        (Piece(mark, "dim", left), Piece("".join(texts)[:columns], "dim", columns)),
    ]


def axis_ticks(since: Nanos, until: Nanos, columns: int) -> Iterator[tuple[int, str]]:
    """The columns of round times, each with its words, with the day if that is a new one."""
    span = max(1, until - since)
    ticks = _ticks(since, until, columns)
    step, day = ticks[1] - ticks[0] if len(ticks) > 1 else 0, ""
    is_whole = step > 0 and step % (DAY if span > DAY else 60 * SECOND) == 0
    for at in ticks:
        date, text = date_time(at)[5:10], time_text(at, span)
        day_words = f"{date} " * (span <= DAY and date != day)
        day = date
        yield (at - since) * columns // span, f"{day_words}{text[:5] if is_whole else text}"


def _ticks(since: Nanos, until: Nanos, columns: int) -> list[Nanos]:
    """Round times in the window, at the smallest step at which their texts do not touch."""
    span = until - since
    room = len(time_text(since, span)) + 3  # blank cells between two times
    for step_s in ROUND_S:
        step = step_s * SECOND
        if span / step * room <= columns:
            break
    else:
        return []
    # Days begin at midnight of the zone that is shown
    offset = Zone.offset_s(since) * SECOND if step >= 3_600 * SECOND else 0
    first = -(-(since + offset) // step) * step - offset
    return [Nanos(at) for at in range(first, until, step)]


ROWS_BETWEEN = 4
"""Rows from one number at the side to the next."""
STYLES_IN_TURN = ("source.0", "source.2", "source.1", "source.3", "source.4")
SIGNS, SIGN_EVERY = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", 24
"""The letters that distinguish lines, and how many cells apart they are written."""
OUTLINE, WAITING, FAILED = "┄", "─", "✗"
"""Signs of available nodes, of waiting jobs, of times at which jobs failed."""
AREA_STYLES = ("accent", "dim", STATUS_STYLES[JobStatus.PENDING], "accent reverse")
IN_AREA = 3
"""The index of the style of a line that crosses the area."""
LEGEND_GAP = "   "
_KNOWN_STYLES = {
    **{
        status.value: STATUS_STYLES[status]
        for status in JobStatus  # settled ones would look like completed ones
        if status not in (JobStatus.CANCELED, JobStatus.MISSING, JobStatus.PURGED)
    },
    "RUNNING": STATUS_STYLES[JobStatus.RUNNING],
    "JOB_FINISHED": STATUS_STYLES[JobStatus.COMPLETED],
    "FAILED": STATUS_STYLES[JobStatus.FAILED],
    "RUN_ERROR": STATUS_STYLES[JobStatus.FAILED],
}


class Frame(NamedTuple):
    """The visible part: its times, and its size in cells."""

    since: Nanos
    until: Nanos
    cells: int
    rows: int


class DrawnChart(NamedTuple):
    """A chart that was drawn. `left` is how many cells the numbers at the side take, `top` the highest.

    `styles` are those of its lines by their numbers, `failed` the columns in which jobs failed.
    """

    frame: Frame
    cells: Cells
    left: int
    top: float
    styles: tuple[str, ...]
    failed: frozenset[int] = frozenset()

    @property
    def columns(self) -> int:
        return self.frame.cells - self.left

    def time_of(self, column: int) -> tuple[Nanos, Nanos]:
        """The times of the begin and end of a column of cells, without the end itself."""
        since, until, _, _ = self.frame
        span, columns = until - since, max(1, self.columns)
        # rounded up, so that its first instant is in this column and not in the one before
        return Nanos(since - -span * column // columns), Nanos(since - -span * (column + 1) // columns)


def main_curves(chart: Chart, frame: Frame) -> tuple[Curve, ...]:
    if chart.kind is not ChartKind.RATE:
        return chart.curves
    shown = rate(chart.curves[0], frame.since, frame.until, chart.end, max(1, frame.cells // 2))
    return (Curve(shown),)


def style_names(chart: Chart) -> tuple[str, ...]:
    """The styles of its lines: of its curves, or of the area, available nodes and waiting jobs."""
    if chart.kind is not ChartKind.STATES:
        return AREA_STYLES
    names, free = [], 0
    for curve in chart.curves:
        style = _KNOWN_STYLES.get(curve.series.name)
        if style is None:
            style, free = STYLES_IN_TURN[free % len(STYLES_IN_TURN)], free + 1
        names.append(style)
    return tuple(names)


def draw_chart(chart: Chart, frame: Frame, chosen: int | None = None) -> DrawnChart:
    """Draw the visible part: an area, or lines of all curves or the chosen one. Not for the event loop."""
    rows = max(1, frame.rows - 2)  # below are the axis, and the times on it
    curves, styles = main_curves(chart, frame), style_names(chart)
    is_area = chart.kind is not ChartKind.STATES
    if chosen is not None:
        curves, styles = curves[chosen : chosen + 1], styles[chosen : chosen + 1]
    beside = [(chart.outline, OUTLINE), (chart.waiting, WAITING)] if is_area else []
    shown = [*curves, *(curve for curve, _ in beside if curve is not None)]
    top = nice_top(max((curve.step(frame.since, frame.until).high for curve in shown), default=0.0))
    left = 1 + max(len(number) for number in _numbers(top, rows).values())
    columns = max(1, frame.cells - left)
    frame = frame._replace(cells=left + columns)
    cells: Cells = [[BLANK] * columns for _ in range(rows)]

    def found(curve: Curve, count: int = columns) -> list[CurveStep]:
        return steps(curve, frame.since, frame.until, chart.end, count)

    if is_area:
        put_area(cells, found(curves[0]), top, 0)
        for number, (curve, sign) in enumerate(beside, 1):
            if curve is not None:
                put_line(cells, found(curve), top, number, sign)
    else:
        for number, curve in enumerate(curves):
            put_dots(cells, found(curve, columns * DOTS_WIDE), top, number)
        if len(curves) > 1:
            _put_signs(cells, len(curves))
    failures = found(chart.failures) if chart.failures is not None else ()
    failed = frozenset(at for at, step in enumerate(failures) if step.last > step.first)
    return DrawnChart(frame, cells, left, top, styles, failed)


def _put_signs(cells: Cells, lines: int) -> None:
    """Write the sign of each line into it at intervals: colours repeat, or are missing."""
    for number in range(lines):
        for column in range(number * SIGN_EVERY // lines, len(cells[0]), SIGN_EVERY):
            row = next((row for row in cells if row[column].line == number), None)
            if row is not None:
                row[column] = ChartCell(sign_of(number), number)


def sign_of(number: int) -> str:
    return SIGNS[number % len(SIGNS)]


def nice_top(most: float) -> float:
    """The number at the top of the side: 1, 2, 4, 5, 6 or 8 times a power of ten, not below `most`."""
    if not 0 < most < math.inf:
        return 1.0
    power = 10.0 ** math.floor(math.log10(max(most, 0.1)))
    return next(power * part for part in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if power * part >= most)


def side_values(top: float, rows: int) -> list[float]:
    """Round numbers for the side, as many as fit; the first is 0."""
    count = max(1, min((rows - 1) // ROWS_BETWEEN, 8))
    while count > 1 and (top / count) % 1:
        count -= 1
    return [top * at / count for at in range(count + 1)]


def _numbers(top: float, rows: int) -> dict[int, str]:
    return {round((rows - 1) * (1 - one / top)): number_text(one) for one in side_values(top, rows)}


def number_text(value: float) -> str:
    """A number in few cells: "1,200", "3.5", "0.15"."""
    return f"{value:,.{1 if value >= 1 else 2}f}".rstrip("0").rstrip(".")


def chart_lines(drawn: DrawnChart, cursor: int | None = None) -> list[Line]:
    numbers = _numbers(drawn.top, len(drawn.cells))
    lines = []
    for row, cells in enumerate(drawn.cells):
        number = numbers.get(row, "")
        side = "┤" if number else "│"
        spans = [Piece(f"{number:>{drawn.left - 1}}", "dim", drawn.left - 1), Piece(side, "rule", 1)]
        styles = [drawn.styles[cell.line] if cell.line >= 0 else "" for cell in cells]
        if cursor is not None and cursor < len(styles):
            styles[cursor] = f"{styles[cursor]} cursor".strip()
        for style, group in groupby(zip(styles, cells, strict=True), key=itemgetter(0)):
            text = "".join(cell.text for _, cell in group)
            spans.append(Piece(text, style, len(text)))
        lines.append(tuple(spans))
    frame = drawn.frame
    return [*lines, *axis_lines(frame.since, frame.until, drawn.left, drawn.columns, cursor, drawn.failed)]


def spark_line(chart: Chart, frame: Frame, words: str) -> Line:
    text = fit(words, max(0, min(frame.cells, width(words))))
    room = frame.cells - width(text) - 2
    if room < 4 or not chart.curves:
        return padded((Piece(fit(words, frame.cells), ""),), frame.cells)
    curve = main_curves(chart, frame._replace(cells=room))[0]
    found = steps(curve, frame.since, frame.until, chart.end, room)
    top = max((step.high for step in found), default=0.0) or 1.0
    drawn = "".join(BARS[max(1, round(step.high / top * 8))] if step.high > 0 else "▁" for step in found)
    return (Piece(f"{drawn:<{room}} ", "accent"), Piece(f" {text}"))


def scale_words(chart: Chart, frame: Frame) -> str:
    """The meaning of a line of bars: its highest value, and its begin and end in time."""
    curve = main_curves(chart, frame)[0]
    top = curve.step(frame.since, frame.until).high
    since, until = (date_time(at)[5:16] for at in (frame.since, frame.until))
    return f"0 to {number_text(top)} {show(curve.series.unit)}, {since} to {until}{Zone.mark()}"


def legend_lines(chart: Chart, chosen: int | None, cells: int, most: int) -> list[Line]:
    """The names of the curves in their styles, in at most `most` rows, and how many are left out."""
    entries = list(_legend_entries(chart, chosen))
    lines: list[Line] = [()]
    for at, entry in enumerate(entries):
        gap = (Piece(LEGEND_GAP, "", len(LEGEND_GAP)),) if lines[-1] else ()
        is_last_row, is_last = len(lines) >= most, at == len(entries) - 1
        room = cells - (len(LEGEND_GAP) + len("99 more") if is_last_row and not is_last else 0)
        if lines[-1] and width_of((*lines[-1], *gap, *entry)) > room:
            if is_last_row:
                lines[-1] = (*lines[-1], *gap, Piece(f"{len(entries) - at} more", "dim"))
                break
            lines.append(())
            gap = ()
        lines[-1] = (*lines[-1], *gap, *entry)
    return lines


def _legend_entries(chart: Chart, chosen: int | None) -> Iterator[Line]:
    styles = style_names(chart)
    if chart.kind is not ChartKind.STATES:
        area = chart.curves[0]
        for sign, words, curve, style in (
            ("█", show(area.series.name), area, styles[0]),
            ("▒", "its peaks", area, styles[0]),
            (OUTLINE, "nodes available", chart.outline, styles[1]),
            (WAITING, "jobs waiting", chart.waiting, styles[2]),
            (FAILED, "failed", chart.failures, "status.failed"),
        ):
            if curve is not None:
                yield Piece(f"{sign} ", style, 2), Piece(words)
        return
    for number, (curve, style) in enumerate(zip(chart.curves, styles, strict=True)):
        look = f"strong {style}" if number == chosen else style if chosen is None else "rule"
        name = Piece(show(curve.series.name), "strong" if number == chosen else "")
        yield Piece(f"{sign_of(number)}━ ", look, 3), name


def words_at(chart: Chart, at: Nanos, frame: Frame, *, has_legend: bool = True) -> str:
    """ "14:07  38 of 40 nodes busy, 2 idle, 11 jobs waiting", safe to show.

    Without a legend states have their signs; those with the most jobs come first.
    """
    time = f"{time_text(at, frame.until - frame.since)}{Zone.mark()}"
    if at > chart.end:
        return f"{time}  not yet"
    if not chart.curves and chart.kind is not ChartKind.TIMES:
        return f"{time}  no jobs are known"
    reading = "still being read, so far " if chart.is_reading else ""
    failed = 0.0
    if chart.failures is not None:  # in the column of this time
        width = max(1, (frame.until - frame.since) // max(1, frame.cells))
        failed = chart.failures.at(at) - chart.failures.at(Nanos(at - width))
    shown = f", {number_text(failed)} failed" if failed > 0 else ""
    return f"{time}  {reading}{_values(chart, at, frame, has_legend=has_legend)}{shown}"


def _counted(value: float, word: str) -> str:
    return f"{number_text(value)} {word}{'s' * (value != 1)}"


def _values(chart: Chart, at: Nanos, frame: Frame, *, has_legend: bool) -> str:
    match chart.kind:
        case ChartKind.UTILIZATION:
            return _utilization(chart, at)
        case ChartKind.THROUGHPUT | ChartKind.RATE:
            width = rate_width(frame.until - frame.since, max(1, frame.cells // 2))
            done, pace = chart.curves[0].at(at), rate_at(chart.curves[0], at, width)
            return f"{_counted(done, 'job')} done, {number_text(pace)}/min over {duration(width / 1e9)}"
        case ChartKind.STATES:
            there = [(curve.at(at), sign_of(nth), curve) for nth, curve in enumerate(chart.curves)]
            if not has_legend:
                there.sort(key=lambda one: -one[0])
            named = (
                f"{'' if has_legend else f'{sign} '}{number_text(value)} {show(curve.series.name)}"
                for value, sign, curve in there
                if value
            )
            return ", ".join(named) or "no jobs"
    return ""


def _utilization(chart: Chart, at: Nanos) -> str:
    busy = chart.curves[0].at(at)
    waits = chart.waiting.at(at) if chart.waiting is not None else 0.0
    waiting = f"{_counted(waits, 'job')} waiting"
    unit = show(chart.curves[0].series.unit)
    if unit == "jobs":
        return f"{_counted(busy, 'job')} running, {waiting}"
    if chart.outline is None:
        return f"{_counted(busy, 'node')} busy, {waiting}"
    there = chart.outline.at(at)
    idle = f"{number_text(there - busy)} idle" if there >= busy else f"{number_text(busy - there)} too many"
    return f"{number_text(busy)} of {_counted(there, 'node')} busy, {idle}, {waiting}"


TITLES = {
    ChartKind.UTILIZATION: "", ChartKind.THROUGHPUT: "jobs done since the start",
    ChartKind.RATE: "jobs done per minute", ChartKind.STATES: "jobs in each state",
    ChartKind.TIMES: "how long jobs stay in each state",
}  # fmt: skip


def title_of(chart: Chart) -> str:
    unit = show(chart.curves[0].series.unit) if chart.curves else "jobs"
    return TITLES[chart.kind] or f"{unit} {'busy' if unit == 'nodes' else 'running'}"


HEADS = (
    head("STATE"),
    *(head(one, align="right") for one in ("STAYS", "NOW", "HALF WITHIN", "9 OF 10", "LONGEST")),
)
NAME_CELLS, LEAST_BAR = 20, 10


def time_rows(times: Sequence[StateTime]) -> list[tuple[str, ...]]:
    """The cells of the table, safe to show."""
    return [
        (
            fit(show(one.state), NAME_CELLS).rstrip(),
            f"{one.stays:,}",
            f"{one.open:,}",
            duration(one.p50_s) if one.stays else NONE,
            duration(one.p90_s) if one.stays else NONE,
            duration(one.longest_s),
        )
        for one in times
    ]


def times_lines(times: Sequence[StateTime], cells: int, chosen: int | None = None) -> list[Line]:
    """The table. A bar is solid up to the median stay, and thin up to the 90th percentile."""
    rows = [
        [Piece(text, "strong" if number == chosen else "") for text in row]
        for number, row in enumerate(time_rows(times))
    ]
    lines = [(Piece(" "), *line, Piece("  ")) for line in table_rows(HEADS, rows, None)]
    bar = cells - width_of(lines[0])
    longest = max((one.p90_s for one in times), default=0.0)
    for number, one in enumerate(times if bar >= LEAST_BAR and longest > 0 else (), 1):
        half, most = (round(seconds / longest * bar) for seconds in (one.p50_s, one.p90_s))
        lines[number] += (Piece("━" * half, "accent", half), Piece("─" * (most - half), "dim", most - half))
    return [fitting(line, cells) for line in lines]
