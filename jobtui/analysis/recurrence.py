"""Finds, in counts of finished runs, what goes with a failure, what changed, and which sites deviate.

Every test allows for the number of comparisons (Bonferroni), so that without a cause it hardly names one.
Runs are compared with other runs of the same days, because the usual share changes with time.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import erfc, sqrt
from operator import attrgetter
from typing import NamedTuple

import msgspec

from jobtui.analysis.signature import signature
from jobtui.analysis.statistics import by_chance, interval, ratio_interval
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.condor import CONDOR, JOBSUB
from jobtui.model.jobs import SLURM, Job, Run
from jobtui.model.memory import Deviation, EndedRun, PeriodChange, Share

CHANCE = 0.002
"""The chance of a false statement in one answer."""
LEAST = 5
LEAST_LIFT = 1.5
"""The lowest ratio of a share to the usual share for a statement."""
MOST_SHARES, MOST_CHANGES = 3, 10
DAY_S = 86_400
BASELINE_DAYS, LEAST_DAYS = 28, 7
"""The days before that a site is compared with, and the fewest of them."""
LEAST_DEVIANT, DEVIANT_DAYS = 2, 7
"""The fewest days in a row on which a site deviates, and how many first days are tried."""
LEAST_A_DAY = 5
"""The fewest runs of a site on a day that counts."""
APART = 3.0
"""A site deviates if it is this many standard deviations of its days above their mean."""
VERSION_TAGS = ("version", "release", "image")


def day_of(at: Nanos) -> int:
    return at // (DAY_S * SECOND)


def _model(job: Job) -> str:
    """What a job computes; for Slurm its name, without the numbers that count jobs."""
    return signature(job.name or "") if job.system == SLURM else job.model


def kind_of(job: Job, run: Run | None = None) -> str:
    driver, mode = (run or job).driver or job.driver or "", (run or job).mode or job.mode
    return "\t".join((job.system, job.app, _model(job), driver, mode))


def finished(job: Job, verdict: str, text: str, run: Run | None = None) -> EndedRun | None:
    """A finished job, or an earlier run of it, as the memory keeps it; None if its end is not known.

    The app of a Slurm job is its partition. Slurm and HTCondor give nodes, other systems hosts.
    """
    ended = run or job
    ended_at, started, queued = ended.ended_at or ended.updated_at, ended.started_at, ended.queued_at
    if ended_at is None or ended.status.is_live or job.is_quasi:
        return None
    where, of_nodes = ended.host or job.host or "", job.system in (SLURM, CONDOR, JOBSUB)
    tags = dict(word.partition(":")[::2] for word in job.tags.split())
    return EndedRun(
        id=job.id,
        system=job.system,
        kind=kind_of(job, run),
        ended_at=ended_at,
        verdict=verdict,
        user=job.owner,
        app=job.app,
        model=_model(job),
        driver=ended.driver or job.driver or "",
        host="" if of_nodes else where,
        node=where if of_nodes else "",
        version=next((tags[name] for name in VERSION_TAGS if name in tags), ""),
        is_failed=bool(text),
        text=text,
        waited_s=None if started is None or queued is None else max(0.0, (started - queued) / SECOND),
        ran_s=None if started is None else max(0.0, (ended_at - started) / SECOND),
    )


class Frequency(msgspec.Struct, frozen=True, order=True):
    """`count` of `of` runs have a fact, and `elsewhere` of `known` others."""

    field: str
    value: str
    count: int
    of: int
    elsewhere: int
    known: int

    @property
    def share(self) -> Share:
        return Share(
            self.field, self.value, self.count, self.of, round(self.count / self.of, 4),
            round(self.elsewhere / max(1, self.known), 4), interval(self.count, self.of),
        )  # fmt: skip

    @property
    def chance(self) -> float:
        """The p-value of the share (Fisher); 1 for too few runs, or if it is not above the usual share."""
        is_above = self.count * self.known >= LEAST_LIFT * self.elsewhere * self.of
        if min(self.count, self.of, self.known) < LEAST or not is_above:
            return 1.0
        return by_chance(self.count, self.of, self.elsewhere, self.known)


def unusual(found: Iterable[Frequency], tests: int, most: int = MOST_SHARES) -> tuple[Share, ...]:
    """The shares above the usual ones, the most significant first."""
    said = ((one.chance, one) for one in found)
    likely = sorted((chance, one) for chance, one in said if chance * max(1, tests) < CHANCE)
    return tuple(one.share for _, one in likely[:most])


Days = Mapping[int, int]
"""Runs by day, which is a number of days since 1970."""


def on_same_days(field: str, value: str, own: Days, own_having: Days, every: Days, having: Days) -> Frequency:
    """How often runs of a signature have a fact, beside the other runs of the same days.

    By day: runs of the signature, those with the fact, all runs, and those with the fact.
    """
    of, share, known, weights = sum(own.values()), 0.0, 0, 0
    for day, runs in own.items():
        others = every.get(day, 0) - runs
        if others > 0:
            share += runs * (having.get(day, 0) - own_having.get(day, 0)) / others
            weights += runs
            known += others
    elsewhere = round(known * share / weights) if weights else 0
    return Frequency(field, value, sum(own_having.values()), of, elsewhere, known)


class RunCounts(NamedTuple):
    """Counts of one stretch of time, by field and value; field `signature` has those of failures.

    `slow` are logarithms of lengths against the usual ones of like runs: how many, their sum, of squares.
    """

    runs: int
    counts: Mapping[tuple[str, str], int]
    failed: Mapping[tuple[str, str], int]
    slow: Mapping[tuple[str, str], tuple[int, float, float]]


def changes(before: RunCounts, now: RunCounts) -> tuple[PeriodChange, ...]:
    """The differences from before, the most significant first, at most MOST_CHANGES."""
    compared = list(_compared(before, now))
    found = [*map(_more_or_less, compared), *_slower(before, now)]
    tests = len(found) + len(compared)  # each may be more, or less
    said = sorted((chance, number) for number, (chance, _) in enumerate(found) if chance * tests < CHANCE)
    return tuple(found[number][1] for _, number in said[:MOST_CHANGES])


def _more_or_less(one: Frequency) -> tuple[float, PeriodChange]:
    """The p-value of the difference of a share from the one before, and the change."""
    other = Frequency(one.field, one.value, one.elsewhere, one.known, one.count, one.of)
    is_more = one.count * one.known > one.elsewhere * one.of
    what = "more" if is_more else "less"
    if one.field == "signature":
        what = what if one.count and one.elsewhere else "new" if is_more else "gone"
    return (one if is_more else other).chance, PeriodChange(what, one.share)


def _compared(before: RunCounts, now: RunCounts) -> Iterator[Frequency]:
    names = {key for one in (before, now) for key in one.counts if key[0] == "signature"}
    for key in sorted(names) if before.runs and now.runs else ():
        yield Frequency(*key, now.counts.get(key, 0), now.runs, before.counts.get(key, 0), before.runs)
    for key in sorted(now.counts):
        of, known = now.counts[key], before.counts.get(key, 0)
        if key[0] != "signature" and min(of, known) >= LEAST:
            yield Frequency(*key, now.failed.get(key, 0), of, before.failed.get(key, 0), known)


def _slower(before: RunCounts, now: RunCounts) -> Iterator[tuple[float, PeriodChange]]:
    for key in sorted(now.slow):
        found = ratio_interval(now.slow[key], before.slow.get(key, (0, 0.0, 0.0)))
        if found is not None:
            factor, low, high, deviations = found
            chance = erfc(deviations / sqrt(2)) / 2 if factor >= LEAST_LIFT else 1.0
            n = now.slow[key][0]
            yield chance, PeriodChange("slower", Share(*key, n, n, factor, 1.0, (low, high)))


class Day(NamedTuple):
    """One day of a site: its runs, failed runs, known waits, and the sum of their logarithms."""

    runs: int = 0
    failed: int = 0
    waited: int = 0
    wait: float = 0.0


def deviation(field: str, value: str, days: Mapping[int, Day], today: int) -> Iterator[Deviation]:
    """How the last days of a site deviate from its days before, by either of the two rules.

    The days that deviate are not part of the baseline.
    """
    amounts = {"failures": attrgetter("failed", "runs"), "waits": attrgetter("wait", "waited")}
    for rule, least in (("failures", 0.02), ("waits", 0.2)):
        counted = ((number, *amounts[rule](day)) for number, day in days.items())
        rates = sorted((number, amount / of) for number, amount, of in counted if of >= LEAST_A_DAY)
        for n in range(DEVIANT_DAYS):
            last = rates[len(rates) - LEAST_DEVIANT - n :]
            baseline = [rate for day, rate in rates[: -len(last)] if day >= last[0][0] - BASELINE_DAYS]
            if len(baseline) < LEAST_DAYS or last[-1][0] < today - 1:
                break
            usual, spread = _mean_and_spread(baseline)
            spread = max(spread, least)
            if min(rate for _, rate in last) > usual + APART * spread * sqrt(1 + 1 / len(baseline)):
                since = Nanos(last[0][0] * DAY_S * SECOND)
                rate, _ = _mean_and_spread([rate for _, rate in last])
                yield Deviation(field, value, rule, since, rate, usual)
                break


def _mean_and_spread(rates: Sequence[float]) -> tuple[float, float]:
    """The mean and the standard deviation. `statistics.stdev` takes fifty times as long."""
    mean = sum(rates) / len(rates)
    return mean, sqrt(sum((rate - mean) ** 2 for rate in rates) / max(1, len(rates) - 1))


def sustained(found: Sequence[Deviation]) -> tuple[Deviation, ...]:
    """The deviations of hosts, and those of systems if no host deviates by the same rule."""
    hosts = {one.rule for one in found if one.field == "host"}
    return tuple(one for one in found if one.field == "host" or one.rule not in hosts)
