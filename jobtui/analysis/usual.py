"""What is usual among lengths of time, and what is beyond that."""

from collections.abc import Sequence

from jobtui.analysis.time_words import duration
from jobtui.model.verdicts import Usual

LEAST_RUNS = 3
"""Fewer runs tell nothing of what is usual."""
TELLING_RUNS = 20
"""From so many on the longest of them tell what is late."""
LEAST_BEYOND_S, BEYOND = 10.0, 0.2
"""Late is what takes longer than 99 of 100 by so many seconds, and by so large a part of that."""


def usual_of(seconds: Sequence[float]) -> Usual | None:
    """What is usual among these, None where they are too few."""
    if len(seconds) < LEAST_RUNS:
        return None
    ordered = sorted(seconds)
    return Usual(len(ordered), _quantile(ordered, 0.5), _quantile(ordered, 0.99))


def is_beyond(seconds: float, usual: Usual | None) -> bool:
    """Whether it takes longer than is usual; never by too few runs."""
    if usual is None or usual.n < TELLING_RUNS:
        return False
    return seconds > usual.p99_s + max(LEAST_BEYOND_S, BEYOND * usual.p99_s)


def usual_words(usual: Usual) -> str:
    """What is usual: "usually 2m (p99 5m, n=34)"; of few runs that they are few."""
    spread = f"p99 {duration(usual.p99_s)}, n={usual.n}"
    if usual.n < TELLING_RUNS:
        spread = f"n={usual.n}, too few to tell what is late"
    return f"usually {duration(usual.p50_s)} ({spread})"


def _quantile(ordered: Sequence[float], share: float) -> float:
    """The value below which a share of all lies (nearest rank)."""
    return ordered[min(len(ordered) - 1, max(0, -(-int(share * 100) * len(ordered) // 100) - 1))]
