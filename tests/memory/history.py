"""Three weeks of finished runs of a made-up site, with a cause that is planted, or none."""

from collections.abc import Iterator, Mapping
from itertools import accumulate
from math import log
from random import Random
from typing import NamedTuple

from jobtui.model.clock import SECOND, Nanos
from jobtui.model.memory import Finished

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

    def finished(self) -> Iterator[Finished]:
        for at, number in enumerate(self.failures):
            text = TEXTS[number].format(at * 7919 % 1_000_003) if number >= 0 else ""
            yield Finished(
                id=f"job{at}", system="sirepo", kind=f"sirepo\t{self.facts['app'][at]}", verdict="x",
                ended_at=Nanos((self.days[at] * 86_400 + at) * SECOND), is_failed=bool(text), text=text,
                waited_s=self.waited[at], ran_s=self.ran[at],
                **{name: values[at] for name, values in self.facts.items()},
            )  # fmt: skip


def world(kind: str, seed: int) -> World:
    """One in which the cause is a host, version or user, a host that is slow of late (`site`), or none.

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
