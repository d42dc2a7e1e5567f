"""Explains incidents of other worlds than the demo's, with logs damaged in every way.

A world is drawn from its number: users, driver, hosts, paths, clock, how times and prefixes are written. Each
is explained whole once and damaged `DAMAGES` times: sources left out, logs cut, lines lost, bytes spoilt,
clocks shifted. A verdict is wrong in earnest if it is not the incident's and its confidence is 0.5 or more:
below that it is a guess, by the design. One on the whole world must be the incident's at any confidence.
"""

import random
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from jobtui.analysis.explain.verdict import explain
from jobtui.demo.incidents import INCIDENTS, play
from jobtui.demo.site import SERVER_LOG, SUPERVISOR_LOG
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.jobs import JobDetail
from jobtui.model.verdicts import Verdict
from tests.analysis.explain.cases import detail_of, evidence_of
from tests.demo.sites import DriverName, Settings, World
from tests.demo.workload import WatchedWorld, Workload

SURE = 0.5
DAMAGES = 5
ENOUGH_SLOTS = 30
"""The incident's job does not wait for others then, which would be another verdict."""
_TIME = re.compile(rb"^([A-Z][a-z]{2} \d\d \d\d:\d\d:\d\d)(?= )", re.MULTILINE)
_SHIFTS_S = (-5, 5, -60, 60, 3600, -3600, -5 * 3600, 19_800)


class Told(NamedTuple):
    """A world's number, its incident, what was done to its sources, and the verdict on what was left."""

    number: int
    incident: str
    damage: tuple[str, ...]
    verdict: Verdict

    @property
    def is_wrong(self) -> bool:
        return self.verdict.code != INCIDENTS[self.incident].verdict

    @property
    def is_sure(self) -> bool:
        return self.verdict.confidence >= SURE


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
LEFT_OUT: Mapping[str, Callable[[Sources], Sources]] = {
    "record": lambda left: left._replace(detail=None),
    "supervisor's log": lambda left: _without_logs(left, lambda name: name == SUPERVISOR_LOG),
    "server's log": lambda left: _without_logs(left, lambda name: name == SERVER_LOG),
    "agents' logs": lambda left: _without_logs(left, lambda name: name not in (SUPERVISOR_LOG, SERVER_LOG)),
    "agents' lines": lambda left: left._replace(logs={n: _no_agent(log) for n, log in left.logs.items()}),
}


def _without_logs(left: Sources, is_lost: Callable[[str], bool]) -> Sources:
    return left._replace(logs={name: log for name, log in left.logs.items() if not is_lost(name)})


def _no_agent(log: bytes) -> bytes:
    return b"".join(line for line in log.splitlines(keepends=True) if b"job_agent.py" not in line)


def damaged(draw: random.Random, whole: Sources) -> tuple[Sources, tuple[str, ...]]:
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


def _settings(draw: random.Random, incident: str, *, is_busy: bool) -> Settings:
    kinds = (DriverName.LOCAL,) if INCIDENTS[incident].on_cluster else (DriverName.LOCAL, DriverName.DOCKER)
    return Settings(
        users=draw.choice((0, 1, 3, 5)),
        sbatch_users=draw.choice((0, 1)),
        driver=draw.choice(kinds),
        prefixes=draw.choice((None, None, 3, 30)),
        pid_time=draw.random() < 0.85,
        agents_in_supervisor_log=draw.random() < 0.7,
        slots_parallel=ENOUGH_SLOTS if is_busy else draw.choice((1, 2, 3)),
        slots_sequential=ENOUGH_SLOTS if is_busy else 2,
        hosts=tuple(f"gpu-{number}" for number in range(draw.choice((1, 2)))),
        root=draw.choice(("/srv/sirepo/db", "/var/lib/my-app/db", "/home/x/run")),
        dev=draw.random() < 0.5,
        start=Nanos(draw.randint(1_700_000_000, 1_795_000_000) * SECOND),
        site_packages=draw.choice(("", "/opt/py/lib/python3.12/site-packages/")),
    )


def _played(draw: random.Random, incident: str) -> tuple[World, str]:
    is_busy = incident != "waiting-for-slot" and draw.random() < 0.4
    world = WatchedWorld(draw.randrange(1 << 30), _settings(draw, incident, is_busy=is_busy))
    world.start()
    if is_busy:
        Workload(world).start()
        world.advance(Nanos(world.kernel.now + draw.choice((20, 90, 240)) * SECOND))
    scenario = play(world, incident)
    seconds = 430 if incident == "time-limit" else draw.choice((90, 130, 200, 420))
    world.advance(Nanos(world.kernel.now + seconds * SECOND))
    return world, scenario.jid or ""


def told(number: int) -> Iterator[Told]:
    draw = random.Random(f"damaged/{number}")
    incident = draw.choice(list(INCIDENTS))
    world, jid = _played(draw, incident)
    whole = Sources(
        {name: world.log(name) for name in world.logs()}, detail_of(world.records().get(jid), jid)
    )
    yield Told(number, incident, (), explain(evidence_of(jid, *whole, world.kernel.now)))
    for _ in range(DAMAGES):
        left, ways = damaged(draw, whole)
        yield Told(number, incident, ways, explain(evidence_of(jid, *left, world.kernel.now)))


def wrong(number: int) -> Iterator[str]:
    """Verdicts on a world that were wrong and sure, or wrong with nothing damaged."""
    return (str(one) for one in told(number) if one.is_wrong and (one.is_sure or not one.damage))
