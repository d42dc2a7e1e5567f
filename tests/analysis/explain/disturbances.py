"""What befalls the sources of a world, and the verdicts that are given then.

Logs are damaged: a site is explained whole once, then `DAMAGES` times with sources left out, logs cut,
lines lost, bytes spoilt, clocks shifted. Sources are disturbed: they are polled by the real poller into the
real store while time goes on, and from some moment on are away, late or at odds; at some times the job is
explained as every view does it. A verdict is wrong that is not what is so at that time in the world. A wrong
one that is not sure is a guess, unless nothing befell its sources.
"""

import asyncio
import itertools
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgspec

from jobtui.analysis.correlation.correlator import Correlator
from jobtui.analysis.explain.verdict import explain
from jobtui.analysis.incidents import Sample
from jobtui.backends.base import Batch
from jobtui.backends.job_reader import JobReader
from jobtui.demo.incidents import INCIDENTS
from jobtui.demo.site import SERVER_LOG, SUPERVISOR_LOG
from jobtui.model.clock import SECOND, FixedClock, Nanos
from jobtui.model.health import QUIET_S, SourceUnreachable
from jobtui.model.ids import JobId
from jobtui.model.jobs import JobDetail
from jobtui.model.logs import RawLine
from jobtui.model.ops import Step
from jobtui.model.verdicts import Verdict
from jobtui.session.evidence import Gatherer
from jobtui.store.poller import Poller
from jobtui.store.store import Store
from tests.analysis.explain.cases import detail_of, evidence_of, reach_back, without
from tests.analysis.explain.worlds import EVERY_S, SYSTEMS, SirepoWorld, World, site_of

SURE = 0.5
DAMAGES = 5
LOOKS = 4
"""How often the job of a world is explained."""
LAG_S = 2 * EVERY_S
"""So long after a change what was so before may still be told; where polls hang, until that is noticed."""
_TIME = re.compile(rb"^([A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d)(?= )", re.MULTILINE)
_SHIFTS_S = (-5, 5, -60, 60, 3600, -3600, -5 * 3600, 19_800)


class Told(NamedTuple):
    """A verdict on a world of this number, and what would have been right.

    `sample` is the job as incidents see it, None if no source reported it; `blind_spots` is of sources.
    """

    disturbance: str
    number: int
    right: set[str]
    verdict: Verdict
    after_s: int = 0
    sample: Sample | None = None
    blind_spots: tuple[str, ...] = ()

    @property
    def is_right(self) -> bool:
        return self.verdict.code.value in self.right

    @property
    def is_sure(self) -> bool:
        return self.verdict.confidence >= SURE

    @property
    def is_sure_and_wrong(self) -> bool:
        """Not where a record that tells a wrong end is all that can be read, as the verdict says."""
        is_unread = "no log of the supervisor was read" in self.verdict.blind_spots
        has_witness = not (is_unread and self.disturbance.endswith("+contradicting"))
        return (self.is_sure or self.disturbance == "none") and not self.is_right and has_witness


class Sources(NamedTuple):
    logs: dict[str, bytes]
    detail: JobDetail | None


Damage = Callable[[random.Random, bytes], bytes]


def _middle(draw: random.Random, log: bytes, fill: bytes = b"") -> bytes:
    first, last = sorted(draw.randrange(len(log)) for _ in range(2))
    return log[:first] + fill * (last - first) + log[last:]


def _lines(draw: random.Random, log: bytes) -> bytes:
    lost = draw.choice((0.02, 0.1, 0.5))
    return b"".join(line for line in log.splitlines(keepends=True) if draw.random() > lost)


def _bytes(draw: random.Random, log: bytes) -> bytes:
    spoilt = bytearray(log)
    for _ in range(20):
        spoilt[draw.randrange(len(log))] = draw.randrange(256)
    return bytes(spoilt)


def _later(draw: random.Random, log: bytes) -> bytes:
    by = timedelta(seconds=draw.choice(_SHIFTS_S))

    def shifted(found: re.Match[bytes]) -> bytes:
        try:
            at = datetime.strptime(f"2026 {found[1].decode()}", "%Y %b %d %H:%M:%S").replace(tzinfo=UTC)
        except ValueError:
            return found[0]
        return (at + by).strftime("%b %d %H:%M:%S").encode()

    return _TIME.sub(shifted, log)


TO_LOGS: Mapping[str, Damage] = {
    "head lost": lambda draw, log: log[draw.randrange(len(log)) :],
    "tail lost": lambda draw, log: log[: draw.randrange(len(log))],
    "middle lost": _middle,
    "lines lost": _lines,
    "bytes spoilt": _bytes,
    "hole": lambda draw, log: _middle(draw, log, b"\0"),
    "clock": _later,
}
NO_AGENT = without(r"job_agent\.py")
LEFT_OUT: Mapping[str, Callable[[Sources], Sources]] = {
    "record": lambda left: left._replace(detail=None),
    "supervisor's log": lambda left: _without_logs(left, lambda name: name == SUPERVISOR_LOG),
    "server's log": lambda left: _without_logs(left, lambda name: name == SERVER_LOG),
    "agents' logs": lambda left: _without_logs(left, lambda name: name not in (SUPERVISOR_LOG, SERVER_LOG)),
    "agents' lines": lambda left: left._replace(logs={n: NO_AGENT(log) for n, log in left.logs.items()}),
}


def _without_logs(left: Sources, is_lost: Callable[[str], bool]) -> Sources:
    return left._replace(logs={name: log for name, log in left.logs.items() if not is_lost(name)})


def _damage(draw: random.Random, whole: Sources) -> tuple[Sources, tuple[str, ...]]:
    left, ways = whole, []
    for _ in range(draw.choice((1, 1, 2))):
        way = draw.choice((*LEFT_OUT, *TO_LOGS, *TO_LOGS))
        if way in LEFT_OUT:
            left = LEFT_OUT[way](left)
            ways.append(f"without {way}")
            continue
        full = [name for name, log in left.logs.items() if log]
        if not full:
            continue
        name = SUPERVISOR_LOG if SUPERVISOR_LOG in full and draw.random() < 0.8 else draw.choice(full)
        left = left._replace(logs={**left.logs, name: TO_LOGS[way](draw, left.logs[name])})
        ways.append(f"{way} in {name}")
    return left, tuple(ways)


def damaged(number: int) -> Iterator[Told]:
    """The verdicts on a site: on all that it wrote, then on what is left of that."""
    draw = random.Random(f"damaged/{number}")
    incident = draw.choice(list(INCIDENTS))
    site, jid = site_of(draw, incident)
    right = {INCIDENTS[incident].verdict}
    whole = Sources({name: site.log(name) for name in site.logs()}, detail_of(site.records().get(jid), jid))
    yield Told("none", number, right, explain(evidence_of(jid, *whole, site.kernel.now)))
    for _ in range(DAMAGES):
        left, ways = _damage(draw, whole)
        verdict = explain(evidence_of(jid, *left, site.kernel.now))
        yield Told(", ".join(ways) or "none", number, right, verdict)


class Feed:
    """One source of a world, as it is polled. What disturbs it is set from outside."""

    def __init__(self, world: World, name: str, clock: FixedClock) -> None:
        self.name, self.kind = name, world.sources[name]
        self.is_gone = self.is_quiet = False
        self.late_s = self.ahead_s = 0
        self._world, self._clock = world, clock

    @property
    def until(self) -> Nanos:
        return Nanos(self._clock.now() - self.late_s * SECOND)

    async def poll(self, cursor: str | None) -> Batch:
        if self.is_gone:
            raise SourceUnreachable(f"{self.name}: no answer")
        batch = self._world.told(self.name, None if cursor is None else Nanos(int(cursor)), self.until)
        measured = float(self.ahead_s) if self.kind in MEASURED else 0.0
        return msgspec.structs.replace(
            _shifted(batch, self.ahead_s * SECOND), cursor=str(self.until), count=1, ahead_s=measured
        )

    async def detail(self, job_id: JobId) -> JobDetail | None:
        if self.is_gone:
            raise SourceUnreachable(f"{self.name}: no answer")
        if self.kind != "sirepo_db" or not isinstance(self._world, SirepoWorld):
            return None
        found = self._world.detail(self.until)
        by = self.ahead_s * SECOND
        return None if found is None else msgspec.structs.replace(found, job=_moved(found.job, by))

    async def changed(self, timeout_s: float) -> None: ...

    async def aclose(self) -> None: ...


MEASURED = frozenset({"balsam"})
"""Kinds of sources that tell what their clock shows."""
TIMES = ("at", "queued_at", "started_at", "updated_at", "ended_at", "written_at", "start_at", "end_at",
         "heartbeat_at", "seen_at", "submitted_at")  # fmt: skip


def _moved(one: Any, by: int) -> Any:
    """A record with all its times later."""
    times = {name: at + by for name in TIMES if (at := getattr(one, name, None)) is not None}
    if others := getattr(one, "others", ()):
        times["others"] = tuple(_moved(other, by) for other in others)
    return msgspec.structs.replace(one, **times) if by and times else one


def _shifted(batch: Batch, by: int) -> Batch:
    fields = ("jobs", "records", "changes", "allocations", "sites", "condor")
    return msgspec.structs.replace(
        batch, **{name: tuple(_moved(one, by) for one in getattr(batch, name)) for name in fields}
    )


class StillJobReader(JobReader):
    """Reads lines behind steps out of the logs of a world."""

    def __init__(self, world: World, feeds: Sequence[Feed]) -> None:
        super().__init__(lambda: feeds, reach_back)
        self._logs = world.logs if isinstance(world, SirepoWorld) else {}

    async def lines_behind(self, step: Step, most: int) -> tuple[RawLine, ...]:
        text = bytes(self._logs[step.source][step.offset : step.offset + 6_000]).decode("utf-8", "replace")
        return tuple(RawLine(None, 0, line) for line in text.split("\n")[:most])


DISTURBANCES = ("none", "taken away", "stale", "late", "clock", "contradicting")
PAIRS = tuple("+".join(pair) for pair in itertools.combinations(DISTURBANCES[1:], 2))[1:]
"""Two at once; what does not answer at all, the first, is either away or stale."""


def _disturb(disturbance: str, draw: random.Random, world: World, feeds: Sequence[Feed]) -> None:
    ahead_s = draw.choice((-3_600, -330, -90, 90, 330, 3_600)) if disturbance == "clock" else 0
    some = draw.sample(feeds, draw.randint(1, len(feeds))) if disturbance in OF_SOME else feeds
    for feed in some:
        feed.is_gone |= disturbance == "taken away"
        feed.is_quiet |= disturbance == "stale"
        feed.late_s += draw.choice((90, 300, 1_200)) if disturbance == "late" else 0
        feed.ahead_s += ahead_s
    if disturbance == "contradicting":
        world.contradict(draw)


def _hidden_s(feeds: Sequence[Feed]) -> int:
    """What is late by as much as its clock is ahead looks new, and nothing shows that it is not."""
    hidden = (one.late_s for one in feeds if one.late_s == one.ahead_s and one.kind not in MEASURED)
    return max(hidden, default=0)


OF_SOME = frozenset({"taken away", "stale", "late"})
MEASURED_IN_TIME = frozenset({"late", "clock"})
"""What shows in news that come while jobtui runs, so it is not started again: it could not know then."""
FROM_THE_START = MEASURED_IN_TIME | {"contradicting"}


def disturbed(system: str, disturbance: str, number: int) -> list[Told]:
    """The verdicts on one world; jobtui is started again in the middle of every other one."""
    return asyncio.run(_disturbed(system, disturbance, number))


async def _disturbed(system: str, disturbance: str, number: int) -> list[Told]:
    draw = random.Random(f"{system}/{disturbance}/{number}")
    world = SYSTEMS[system](draw)
    clock = FixedClock(world.begin)
    feeds = [Feed(world, name, clock) for name in world.sources]
    steps = world.length_s // EVERY_S
    kinds = {*disturbance.split("+")}
    begins = 0 if kinds & FROM_THE_START else draw.randrange(steps)
    restarts = draw.randrange(steps) if draw.random() < 0.5 and not kinds & MEASURED_IN_TIME else -1
    looks = {steps - 1} if world.settles else {draw.randrange(begins, steps) for _ in range(LOOKS)}
    lag_s = QUIET_S + EVERY_S if "stale" in kinds else LAG_S
    store, pollers = _begin(feeds, clock)
    found = []
    for step in range(steps):
        clock.advance(EVERY_S)
        if step == begins:
            for kind in disturbance.split("+"):
                _disturb(kind, draw, world, feeds)
        if step == restarts:
            store, pollers = _begin(feeds, clock)
        for poller, feed in zip(pollers, feeds, strict=True):
            if not feed.is_quiet:
                await poller.poll_once()
        if step in looks:
            now, job_reader = clock.now(), StillJobReader(world, feeds)
            verdict = explain(await Gatherer(store, job_reader, now).whole(world.job_id))
            job, gatherer = store.job(world.job_id), Gatherer(store, job_reader, now)
            sample = await gatherer.sample(job) if job is not None else None
            right, spots = world.truth(now, lag_s + _hidden_s(feeds)), gatherer.blind_spots()
            found.append(Told(disturbance, number, right, verdict, step * EVERY_S, sample, spots))
    return found


def _begin(feeds: Sequence[Feed], clock: FixedClock) -> tuple[Store, list[Poller]]:
    store = Store(Correlator(), clock)
    return store, [Poller(feed, store) for feed in feeds]


def of_any_system(number: int) -> list[Told]:
    """The verdicts on a world of this number, whose system and disturbance it draws."""
    kinds = [*itertools.product(SYSTEMS, (*DISTURBANCES, *PAIRS))]
    return disturbed(*kinds[number % len(kinds)], number)
