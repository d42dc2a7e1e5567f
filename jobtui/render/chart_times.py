"""How long jobs stay in each state, as a table with bars."""

from collections.abc import Sequence

from jobtui.analysis.rates import StateTime
from jobtui.render.spans import Line, Span, fitting
from jobtui.render.text import duration, fit, show, width

HEADS = ("STATE", "STAYS", "NOW", "HALF WITHIN", "9 OF 10", "LONGEST")
NAME_CELLS = 20
FEWEST_BAR_CELLS = 10
GAP = "  "


def time_rows(times: Sequence[StateTime]) -> list[tuple[str, ...]]:
    """The cells of the table, safe to show."""
    return [
        (
            fit(show(one.state), NAME_CELLS).rstrip(),
            f"{one.stays:,}",
            f"{one.open:,}",
            duration(one.p50_s),
            duration(one.p90_s),
            duration(one.longest_s),
        )
        for one in times
    ]


def times_lines(times: Sequence[StateTime], cells: int, chosen: int | None = None) -> list[Line]:
    """The table. A bar is solid for half of the stays, and goes on thin for 9 of 10."""
    rows = time_rows(times)
    widths = [max(map(width, column)) for column in zip(HEADS, *rows, strict=True)]
    bar = cells - sum(widths) - len(GAP) * len(widths) - 1
    longest = max((one.p90_s for one in times), default=0.0)
    lines = [fitting(_spans(HEADS, widths, "heading"), cells)]
    for number, (one, row) in enumerate(zip(times, rows, strict=True)):
        spans = _spans(row, widths, "strong" if number == chosen else "")
        if bar >= FEWEST_BAR_CELLS and longest > 0:
            spans += _bar(one, longest, bar)
        lines.append(fitting(spans, cells))
    return lines


def _spans(row: Sequence[str], widths: Sequence[int], style: str) -> list[Span]:
    spans = [Span(" ", style, 1)]
    for column, (text, cells) in enumerate(zip(row, widths, strict=True)):
        spans.append(Span(fit(text, cells, align="left" if column == 0 else "right"), style, cells))
        spans.append(Span(GAP, style, len(GAP)))
    return spans


def _bar(one: StateTime, longest_s: float, cells: int) -> list[Span]:
    half, most = (round(seconds / longest_s * cells) for seconds in (one.p50_s, one.p90_s))
    return [Span("━" * half, "accent", half), Span("─" * (most - half), "dim", most - half)]
