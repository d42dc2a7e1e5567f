"""What a soak has seen, and what became more meanwhile."""

import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.rows import Row, at_most

WARM_UP_SHARE = 0.4
TYPICAL_OF = 5
"""So many samples at most of which the median is taken, of the first after the warm-up and of the last."""
GROWTH_MB = 8.0
"""How much memory may grow after the warm-up, for what was learnt meanwhile."""


@dataclass(slots=True)
class Found:
    """What a soak has seen."""

    samples: int = 0
    compared: int = 0
    rows_compared: int = 0
    wrong: list[str] = field(default_factory=list)
    rss_mb: list[tuple[float, float]] = field(default_factory=list)
    counts: list[dict[str, int]] = field(default_factory=list)
    """Of each sample: how many there were of what must not become more."""
    threads: list[str] = field(default_factory=list)
    """Names of those there were at the last sample."""
    keys: int = 0
    screens: Counter[str] = field(default_factory=Counter)

    def differ(self, where: str, expected: Mapping[str, str], seen: Mapping[str, str]) -> None:
        """Note every job of which something else is seen than expected."""
        self.wrong += [
            f"{where}: {job} is {status}, seen as {seen.get(job)}"
            for job, status in expected.items()
            if seen.get(job) != status
        ]


def growth(name: str, found: Found, most_mb: float | None = None) -> Iterator[Row]:
    """What became more after the warm-up, in which every screen was seen once.

    With `most_mb`, memory may grow up to that; without, by what is learnt meanwhile.
    """
    begin = int(len(found.rss_mb) * WARM_UP_SHARE)
    memory, counts = found.rss_mb[begin:], found.counts[begin:]
    if len(memory) < 2:
        return
    each = min(TYPICAL_OF, len(memory) // 2)
    kept = typical(memory[:each]), typical(memory[-each:])
    highest, grown = max(mb for _, mb in found.rss_mb), kept[1] - kept[0]
    what = f"{name}: memory, growth after the warm-up"
    if most_mb is not None:
        yield at_most(f"{name}: memory, highest", highest, "MB", most_mb)
        yield Row(what=what, measured=grown, unit="MB")
    else:
        yield Row(what=f"{name}: memory, highest", measured=highest, unit="MB")
        yield at_most(what, grown, "MB", GROWTH_MB)
    yield Row(what=f"{name}: memory, slope after the warm-up", measured=slope(memory), unit="MB/min")
    for what in ("jobs", "ops"):
        first, last = counts[0][what], counts[-1][what]
        yield Row(
            what=f"{name}: {what} known, at the end and after the warm-up",
            measured=last,
            unit=what,
            reference=first,
        )
    for what in ("tasks", "threads", "listeners"):
        yield at_most(
            f"{name}: {what}, at the end",
            counts[-1][what],
            "",
            max(c[what] for c in counts[: len(counts) // 2]),
        )


def slope(points: Sequence[tuple[float, float]]) -> float:
    """How much a value grows in a minute, by least squares."""
    if len(points) < 2:
        return 0.0
    return statistics.linear_regression(*zip(*points, strict=True)).slope * 60


def typical(samples: Sequence[tuple[float, float]]) -> float:
    """The median of what was sampled: a single one depends on what was on the screen just then."""
    return statistics.median(value for _, value in samples)
