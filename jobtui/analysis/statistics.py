"""How sure a count, a share or a length is: exact tests and intervals that assume no distribution."""

from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence
from heapq import heappop, heappush
from math import exp, lgamma, sqrt

from jobtui.model.memory import Range

NORMAL_95 = 1.959964
"""So many standard deviations around the mean hold 95 % of a normal distribution."""
NEGLIGIBLE = 1e-12
LEAST_LIKE = 30
"""Of fewer like runs no range is told."""
RANGE_SHARE = 0.8
"""The part of like runs that a range is made to hold."""
NEWEST_KEPT = 300
"""A range is that of so many like runs, the newest."""


def interval(count: int, of: int) -> tuple[float, float]:
    """Wilson's interval of a share, which holds the true one 95 times of 100."""
    share, square = count / of, NORMAL_95**2
    middle = (share + square / (2 * of)) / (1 + square / of)
    half = NORMAL_95 * sqrt(share * (1 - share) / of + square / (4 * of * of)) / (1 + square / of)
    return round(max(0.0, middle - half), 4), round(min(1.0, middle + half), 4)


def by_chance(count: int, of: int, elsewhere: int, known: int) -> float:
    """How likely `count` or more of a group have a fact when it is no likelier there than elsewhere.

    Fisher's exact test, one-sided.
    """
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
    """How many times as long, its 95 % interval, and by how many standard deviations it is not once.

    Each is how many logarithms of lengths there are, their sum and that of their squares; None of too few.
    """
    (n, total, squares), (m, other, others) = now, before
    if min(n, m) < LEAST_LIKE:
        return None
    one, two = total / n, other / m
    spread = sqrt(max(squares / n - one * one, NEGLIGIBLE) / n + max(others / m - two * two, NEGLIGIBLE) / m)
    apart = one - two
    return exp(apart), exp(apart - NORMAL_95 * spread), exp(apart + NORMAL_95 * spread), apart / spread


def bounds(ordered: Sequence[float]) -> tuple[float, float] | None:
    """The values between which the next of its kind is with a chance of RANGE_SHARE at least.

    Order statistics, which hold for any distribution; None of fewer than LEAST_LIKE values.
    """
    n = len(ordered)
    if n < LEAST_LIKE:
        return None
    cut = int((n + 1) * (1 - RANGE_SHARE) / 2)
    return ordered[cut - 1], ordered[n - cut]


def expected(runs: Iterable[tuple[int, int, float]], passed_s: float = 0.0) -> Range | None:
    """The range for a run like these, and how often such ranges held: each was told of all before it.

    Of each run when it began, when its length was known, and the length in seconds. Only those count that
    took longer than `passed_s`, as the run in question did; what is given is what is left of it.
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
    return Range(found[0] - passed_s, found[1] - passed_s, held, of)
