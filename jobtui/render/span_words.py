"""Of one span in words: how long it took, and what is odd about it."""

from collections.abc import Mapping

from jobtui.analysis.time_words import NONE, duration
from jobtui.analysis.traces.tree import SpanFlag

MICROSECOND = 1_000
MILLISECOND = 1_000_000
SECOND = 1_000_000_000

FLAG_WORDS: Mapping[SpanFlag, str] = {
    SpanFlag.OPEN: "open",
    SpanFlag.NEGATIVE: "ends before it begins",
    SpanFlag.UNTIMED: "without a time",
    SpanFlag.TWICE: "came twice",
    SpanFlag.LOOP: "circle of parents",
    SpanFlag.SKEWED: "before its parent",
}


def span_time(nanos: int | None) -> str:
    """A length of time as spans have it: "1m23s", "2.9s", "845ms", "12.3µs"."""
    if nanos is None:
        return NONE
    if nanos < 0:
        return f"-{span_time(-nanos)}"
    if nanos < MICROSECOND:
        return f"{nanos}ns" if nanos else "0"
    if nanos < MILLISECOND:
        return f"{nanos / MICROSECOND:.1f}µs" if nanos < 100 * MICROSECOND else f"{nanos // MICROSECOND}µs"
    if nanos < SECOND:
        return f"{nanos / MILLISECOND:.1f}ms" if nanos < 10 * MILLISECOND else f"{nanos // MILLISECOND}ms"
    return duration(nanos / SECOND)
