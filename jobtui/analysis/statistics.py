"""Tests and intervals for counts, shares and lengths that assume no distribution."""

from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from math import exp, lgamma, sqrt

from jobtui.model.memory import SecondsRange

NORMAL_95 = 1.959964
"""The mean and this many standard deviations on either side hold 95 % of a normal distribution."""
NEGLIGIBLE = 1e-12
LEAST_LIKE = 30
RANGE_SHARE = 0.8
"""The share of like runs that a range is to hold."""
NEWEST_KEPT = 300


def interval(count: int, of: int) -> tuple[float, float]:
    """The 95 % Wilson interval of a share."""
    share, square = count / of, NORMAL_95**2
    middle = (share + square / (2 * of)) / (1 + square / of)
    half = NORMAL_95 * sqrt(share * (1 - share) / of + square / (4 * of * of)) / (1 + square / of)
    return round(max(0.0, middle - half), 4), round(min(1.0, middle + half), 4)


def by_chance(count: int, of: int, elsewhere: int, known: int) -> float:
    """The one-sided p-value of Fisher's exact test: `count` or more of a group have a fact by chance."""
    having, total = count + elsewhere, of + known

    def ways(n: int, k: int) -> float:
        return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)

    every, found = ways(total, having), 0.0
    for at in range(max(count, having - known), min(of, having) + 1):
        one = exp(ways(of, at) + ways(known, having - at) - every)
        found += one
        if one < NEGLIGIBLE * found and at * total > of * having:
            break  # beyond the likeliest count each is less likely than the one before
    return min(1.0, found)


def ratio_interval(
    now: tuple[int, float, float], before: tuple[int, float, float]
) -> tuple[float, float, float, float] | None:
    """The ratio of two lengths, its 95 % interval, and its distance from 1 in standard deviations.

    Each argument has the number of logarithms of lengths, their sum, and the sum of their squares. None
    if there are too few.
    """
    (n, total, squares), (m, other, others) = now, before
    if min(n, m) < LEAST_LIKE:
        return None
    one, two = total / n, other / m
    spread = sqrt(max(squares / n - one * one, NEGLIGIBLE) / n + max(others / m - two * two, NEGLIGIBLE) / m)
    apart = one - two
    return exp(apart), exp(apart - NORMAL_95 * spread), exp(apart + NORMAL_95 * spread), apart / spread


def bounds(ordered: Sequence[float]) -> tuple[float, float] | None:
    """The bounds that hold the next value with a chance of at least RANGE_SHARE, for any distribution.

    They are order statistics. None for fewer than LEAST_LIKE values.
    """
    n = len(ordered)
    if n < LEAST_LIKE:
        return None
    cut = int((n + 1) * (1 - RANGE_SHARE) / 2)
    return ordered[cut - 1], ordered[n - cut]


def expected(runs: Iterable[tuple[int, int, float]], passed_s: float = 0.0) -> SecondsRange | None:
    """The range for a run like these, and how often such ranges were right for the runs themselves.

    A run has the time it began, the time its length was known, and its length in seconds. Only runs of at
    least `passed_s` count, because the run in question has lasted that long; the range is what is left of it.
    """
    replayed = sorted(run for run in runs if run[2] >= passed_s)
    ordered: list[float] = []
    newest: list[float] = []
    unknown: list[tuple[int, float]] = []
    held = of = 0

    def learn(until: int | None) -> None:
        while unknown and (until is None or unknown[0][0] <= until):
            length = heappop(unknown)[1]
            newest.append(length)
            insort(ordered, length)
            if len(ordered) > NEWEST_KEPT:
                del ordered[bisect_right(ordered, newest[-NEWEST_KEPT - 1]) - 1]

    for began, known_at, length in replayed:
        learn(began)
        if (found := bounds(ordered)) is not None:
            of += 1
            held += found[0] <= length <= found[1]
        heappush(unknown, (known_at, length))
    learn(None)
    found = bounds(ordered)
    if found is None or of < LEAST_LIKE:
        return None
    return SecondsRange(found[0] - passed_s, found[1] - passed_s, held, of)
