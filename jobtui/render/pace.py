"""How many jobs come and end, as bars of one line and numbers."""

from collections.abc import Sequence

from jobtui.analysis.counts import Pace
from jobtui.render.spans import Line, Span

BARS = "▁▂▃▄▅▆▇█"
"""The first stands for none."""


def pace_line(pace: Pace, *, with_ends: bool) -> Line:
    """What came in the last minutes, and what ended; nothing when all that time nothing did.

    Both have bars on one scale, so that a glance tells whether as much ends as comes.
    """
    if pace.is_still:
        return ()
    flows = [(pace.arrivals, "in")] + ([(pace.ends, "out")] if with_ends else [])
    most = max(count for flow, _ in flows for count in flow.by_minute)
    spans: list[Span] = []
    for flow, word in flows:
        spans += [
            Span("   " if not spans else "  "),
            Span(bars(flow.by_minute, most), "dim", len(flow.by_minute)),
        ]
        spans.append(Span(f" {flow.per_minute:,} {word}", "" if flow.per_minute else "dim"))
    return (*spans, Span("/min", "dim", 4))


def bars(counts: Sequence[int], most: int) -> str:
    return "".join(
        BARS[max(1, round(count / most * (len(BARS) - 1)))] if count > 0 else BARS[0] for count in counts
    )
