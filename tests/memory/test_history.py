"""Three weeks of made-up history, many times: what is said is what was planted, and ranges hold as stated."""

import os
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import accumulate
from math import log, log1p
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from jobtui.analysis.recurrence import Day, Frequency, RunCounts, changes, deviation, on_same_days, unusual
from jobtui.analysis.signature import signature
from jobtui.analysis.statistics import bounds, expected
from jobtui.memory.database import Memory
from jobtui.memory.writer import MemoryWriter
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.memory import EndedRun
from tests.builders import a_job

DAYS, RUNS = 21, 3_000
FIRST_DAY = 20_000
VALUES: Mapping[str, int] = {"host": 10, "version": 5, "user": 40, "app": 6}
"""The fields, and how many values each has."""
PLANTED = "ValueError: planted in cell {}"
TEXTS = (PLANTED, "OSError: [Errno 28] No space left on device: '/scratch/{}/x'",
         "FloatingPointError at step {}", "KeyError: 'beam'", "MPI_ABORT on rank {}")  # fmt: skip
SLOW_DAYS = 3


class World(NamedTuple):
    """Runs in the order of their ends, in columns. `failures` are numbers of TEXTS, -1 for a good run."""

    field: str
    value: str
    facts: Mapping[str, list[str]]
    days: list[int]
    failures: list[int]
    waited: list[float]
    ran: list[float]

    @property
    def late(self) -> int:
        """How many of its runs are of the days on which a slow host is slow."""
        begin = FIRST_DAY + DAYS - SLOW_DAYS
        own = zip(self.facts[self.field], self.days, strict=True)
        return sum(value == self.value and day >= begin for value, day in own)

    @property
    def effect(self) -> tuple[int, float]:
        """How many runs failed by the planted cause, and how many times as often as others."""
        own = [at for at, value in enumerate(self.facts[self.field]) if value == self.value]
        count = sum(self.failures[at] == 0 for at in own)
        elsewhere = sum(one == 0 for one in self.failures) - count
        return count, count / len(own) / max(elsewhere / (RUNS - len(own)), 1e-9)

    def finished(self) -> Iterator[EndedRun]:
        for at, number in enumerate(self.failures):
            text = TEXTS[number].format(at * 7919 % 1_000_003) if number >= 0 else ""
            yield EndedRun(
                id=f"job{at}", system="sirepo", kind=f"sirepo\t{self.facts['app'][at]}", verdict="x",
                ended_at=Nanos((self.days[at] * 86_400 + at) * SECOND), is_failed=bool(text), text=text,
                waited_s=self.waited[at], ran_s=self.ran[at],
                **{name: values[at] for name, values in self.facts.items()},
            )  # fmt: skip


def world(kind: str, seed: int) -> World:
    """One in which the cause is a host, version or user, a host that became slow (`site`), or none.

    A cause has 20 to 60 failures, at three to twelve times the rate of others; a version is bad from the
    middle on.
    """
    rng = Random(f"{kind} {seed}")
    facts = {}
    for name, n in VALUES.items():
        weights = list(accumulate(rng.uniform(0.3, 1.0) for _ in range(n)))
        facts[name] = rng.choices([f"{name}{at}" for at in range(n)], cum_weights=weights, k=RUNS)
    days = [FIRST_DAY + at * DAYS // RUNS for at in range(RUNS)]
    weights = list(accumulate(rng.uniform(0.5, 2.0) for _ in TEXTS[1:]))
    usual = rng.choices(range(1, len(TEXTS)), cum_weights=weights, k=RUNS)
    failures = [one if rng.random() < 0.06 else -1 for one in usual]
    field = {"none": "", "site": "host"}.get(kind, kind)
    value = f"{field}{rng.randrange(VALUES[field])}" if field else ""
    if field and kind != "site":
        begin = RUNS // 2 if kind == "version" else 0
        own = sum(one == value for one in facts[field][begin:])
        rate, lift = rng.uniform(25, 60) / own, rng.uniform(3, 12)
        for at in range(begin, RUNS):
            if rng.random() < rate / (1 if facts[field][at] == value else lift):
                failures[at] = 0
    queue, slow, waited = 0.0, log(rng.uniform(3, 12)), list[float]()
    for at in range(RUNS):
        queue = 0.98 * queue + rng.gauss(0, 0.07)  # waits hang together
        is_slow = kind == "site" and facts["host"][at] == value and days[at] >= FIRST_DAY + DAYS - SLOW_DAYS
        waited.append(rng.lognormvariate(4.0 + queue + slow * is_slow, 0.7))
    length = {f"app{at}": rng.uniform(3, 6) for at in range(VALUES["app"])}
    ran = [rng.lognormvariate(length[app], 0.5) for app in facts["app"]]
    return World(field, value, facts, days, failures, waited, ran)


SEEDS = int(os.environ.get("JOBTUI_WORLDS", "40"))
LEAST_RUNS, LEAST_EFFECT = 20, 3.0
LAST_DAY = FIRST_DAY + DAYS - 1
Said = set[tuple[str, str, str]]


def where_said(one: World) -> Said:
    """What every failure is said to go with."""
    said: Said = set()
    every = Counter(one.days)
    tests = sum(VALUES.values())
    by_value = {name: Counter(zip(one.days, values, strict=True)) for name, values in one.facts.items()}
    for number in range(len(TEXTS)):
        at = [at for at, failure in enumerate(one.failures) if failure == number]
        own = Counter(one.days[one_at] for one_at in at)
        tallies = []
        for name, values in one.facts.items():
            for value, _ in Counter(values[one_at] for one_at in at).most_common(3):
                mine = Counter(one.days[one_at] for one_at in at if values[one_at] == value)
                having = {day: by_value[name][day, value] for day in own}
                tallies.append(on_same_days(name, value, own, mine, every, having))
        said |= {(f"where {number}", share.field, share.value) for share in unusual(tallies, tests)}
    return said


def places_said(one: World) -> Said:
    runs = Counter(one.facts["host"])
    bad = Counter(host for host, number in zip(one.facts["host"], one.failures, strict=True) if number >= 0)
    tallies = [
        Frequency("host", host, bad[host], n, bad.total() - bad[host], RUNS - n) for host, n in runs.items()
    ]
    return {("places", share.field, share.value) for share in unusual(tallies, len(tallies), 10)}


def stretch(one: World, part: slice) -> RunCounts:
    failures = one.failures[part]
    counts = Counter({("all", ""): len(failures)})
    failed = Counter({("all", ""): sum(number >= 0 for number in failures)})
    counts.update(("signature", TEXTS[number]) for number in failures if number >= 0)
    for name, values in one.facts.items():
        counts.update((name, value) for value in values[part])
        failed.update((name, value) for value, n in zip(values[part], failures, strict=True) if n >= 0)
    return RunCounts(len(failures), counts, failed, {})


def changes_said(one: World) -> Said:
    found = changes(stretch(one, slice(RUNS // 2)), stretch(one, slice(RUNS // 2, RUNS)))
    return {("changed", change.field, change.value) for change in found}


def sites_said(one: World) -> Said:
    days: defaultdict[str, dict[int, Day]] = defaultdict(dict)
    for day, host, number, waited in zip(one.days, one.facts["host"], one.failures, one.waited, strict=True):
        known = days[host].get(day, Day())
        days[host][day] = Day(
            known.runs + 1, known.failed + (number >= 0), known.waited + 1, known.wait + log1p(waited)
        )
    found = (one for host, own in days.items() for one in deviation("host", host, own, LAST_DAY))
    return {("site", one.field, one.value) for one in found}


def said_in(one: World) -> Said:
    return where_said(one) | places_said(one) | changes_said(one) | sites_said(one)


@pytest.mark.parametrize("kind", ["host", "version", "user", "site", "none"])
def test_associations_name_what_was_planted(kind: str) -> None:
    """Found in 9 of 10 worlds with 20 runs and three times the rate; nothing else is said in 95 of 100."""
    found, false = [], []
    for seed in range(SEEDS):
        one = world(kind, seed)
        said = said_in(one)
        if kind == "site" and one.late >= LEAST_RUNS:
            found.append(("site", "host", one.value) in said)
        elif kind != "none" and one.effect[0] >= LEAST_RUNS and one.effect[1] >= LEAST_EFFECT:
            found.append(("where 0", one.field, one.value) in said)
        if kind == "version":  # it is bad from the middle on
            found.append(("changed", "signature", TEXTS[0]) in said)
            said = {fact for fact in said if fact[0] != "changed"}
        if others := {fact for fact in said if fact[1:] != (one.field, one.value)}:
            false.append((seed, others))
    assert sum(found) >= 0.9 * len(found)
    assert len(false) <= 0.05 * SEEDS, false


def runs_of(one: World, app: str) -> list[tuple[int, int, float]]:
    """Waits of like runs: when they began, when they were known, and how long they were."""
    found = []
    for at, name in enumerate(one.facts["app"]):
        if name == app:
            ended = round((FIRST_DAY + at * DAYS / RUNS) * 86_400)
            started = ended - round(one.ran[at])
            found.append((started - round(one.waited[at]), started, one.waited[at]))
    return found


def test_estimated_ranges_are_right_as_often_as_stated() -> None:
    stated, held, checked = [], 0, 0
    for kind in ("none", "site"):
        for seed in range(SEEDS):
            runs = sorted(runs_of(world(kind, seed), "app0"))
            for at in range(len(runs) - 40, len(runs), 8):
                began, _, length = runs[at]
                found = expected([run for run in runs[:at] if run[1] <= began])
                if found is not None:
                    stated.append(found.held / found.of)
                    held += found.low_s <= length <= found.high_s
                    checked += 1
    assert checked > 3 * SEEDS
    assert abs(sum(stated) / len(stated) - held / checked) <= 0.05


def test_a_range_needs_thirty_like_runs_and_as_many_to_try_it_on() -> None:
    runs = [(at * 100, at * 100 + 50, float(at % 7)) for at in range(59)]
    assert bounds([1.0] * 29) is None
    assert bounds(sorted(range(30))) == (2, 27)
    assert expected(runs) is None
    assert expected([*runs, (6_000, 6_050, 3.0), (6_100, 6_150, 3.0)]) is not None
    assert expected([*runs, (6_000, 6_050, 3.0), (6_100, 6_150, 3.0)], 5.5) is None  # few took this long


@pytest.mark.parametrize("kind", ["host", "version", "user"])
def test_the_file_gives_the_answers_that_the_runs_give(kind: str, tmp_path: Path) -> None:
    one = world(kind, 3)
    writer = MemoryWriter(tmp_path / "memory.jobtui", 1 << 30)
    with writer.together():
        assert all(map(writer.add, one.finished()))
        writer.flush()
    memory, now = Memory(writer.path), Nanos((LAST_DAY * 86_400 + 80_000) * SECOND)
    names = [signature(text.format(1)) for text in TEXTS]
    seen = {names.index(seen.signature): seen for seen in memory.signatures(now)}
    assert {n: found.count for n, found in seen.items()} == Counter(n for n in one.failures if n >= 0)
    whole = {n: memory.of_job(a_job(ended_at=now), TEXTS[n].format(1), now).seen for n in seen}
    said = {(f"where {n}", s.field, s.value) for n, found in whole.items() if found for s in found.where}
    assert said == where_said(one)
    assert {("places", share.field, share.value) for share in memory.shares(now)} == places_said(one)
    middle = FIRST_DAY + DAYS // 2
    compared = memory.compared(range(FIRST_DAY, middle), range(middle, LAST_DAY + 1))
    assert compared.before + compared.now == RUNS
    new = {one.what for one in compared.changes if one.field == "signature"}
    assert new == ({"new"} if kind == "version" else set())
