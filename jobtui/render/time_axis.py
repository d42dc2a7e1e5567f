"""The axis below a chart: round times, so far apart that they can be read."""

from jobtui.model.clock import SECOND, Nanos
from jobtui.render.spans import Line, Span
from jobtui.render.text import Zone, clock_time, date_time

DAY = 86_400 * SECOND
STEPS_S = (
    1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400,
    172_800, 604_800, 1_209_600, 2_592_000, 7_776_000, 31_536_000,
)  # fmt: skip
GAP = 3
"""Blank cells between two times at least."""
FINE_S = 2 * 3_600
"""Up to this long seconds are told."""


def time_text(at: Nanos, span: int) -> str:
    """A time as fine as it matters in a window of this length: "14:20:31", "14:20", "11-20 14:20"."""
    if span > DAY:
        return date_time(at)[5:16]
    return clock_time(at) if span <= FINE_S * SECOND else clock_time(at)[:5]


def axis_lines(since: Nanos, until: Nanos, left: int, columns: int, cursor: int | None) -> list[Line]:
    """The axis and the times below it, `left` cells further to the right."""
    span = max(1, until - since)
    ticks = _ticks(since, until, columns)
    axis = ["─"] * columns
    texts = [" "] * columns
    apart = min(1, left)  # from the mark of the zone
    for at in ticks:
        column = (at - since) * columns // span
        text = _tick_text(at, ticks, span)
        begin = max(apart, min(column - len(text) // 2, columns - len(text)))
        axis[column] = "┬"
        texts[begin : begin + len(text)] = text
    if cursor is not None and 0 <= cursor < columns:
        axis[cursor] = "▲"
    zone = Zone.mark().strip()
    mark = f"{zone[: max(0, left)]:>{left}}"
    return [
        (Span(" " * (left - 1) + "└", "rule", left), Span("".join(axis), "rule", columns)),
        (Span(mark, "dim", left), Span("".join(texts)[:columns], "dim", columns)),
    ]


def _ticks(since: Nanos, until: Nanos, columns: int) -> list[Nanos]:
    """Round times in the window, at the smallest step at which their texts do not touch."""
    span = until - since
    room = len(time_text(since, span)) + GAP
    for step_s in STEPS_S:
        step = step_s * SECOND
        if span / step * room <= columns:
            break
    else:
        return []
    # Days begin at midnight of the zone that is shown
    offset = _offset(since) if step >= 3_600 * SECOND else 0
    first = -(-(since + offset) // step) * step - offset
    return [Nanos(at) for at in range(first, until, step)]


def _tick_text(at: Nanos, ticks: list[Nanos], span: int) -> str:
    text = time_text(at, span)
    step = ticks[1] - ticks[0] if len(ticks) > 1 else 0
    if span > DAY and step and step % DAY == 0:
        return text[:5]
    return text[:5] if step and step % (60 * SECOND) == 0 and span <= DAY else text


def _offset(at: Nanos) -> int:
    """How far the zone that is shown is ahead of UTC."""
    if not Zone.is_local:
        return 0
    import time

    return (time.localtime(at // SECOND).tm_gmtoff or 0) * SECOND
