"""A simulated site under a rush: so many jobs begin each second, for as long as wanted, in bounded room.

Users run what they have made again, and make something new; what has run often enough is removed with its
record, as an old simulation is. The site notes what happened, forgets what happened long ago, and counts all.
It lives in a process of its own (`site_apart`), so that it has a core beside whoever reads the terminal.
"""

import multiprocessing
import os
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from multiprocessing.managers import BaseManager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from benchmarks.site_logs import WAYS, SiteLogs
from jobtui.demo import incidents, programs
from jobtui.demo.live import SETTINGS
from jobtui.demo.programs import Plan, ProgramEnd, RealDisk
from jobtui.demo.site import SERVER_LOG, SUPERVISOR_LOG
from jobtui.demo.world import Browser, Simulation, User
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.specs import SourceSpec, parse_srdb
from tests.demo.sites import Settings
from tests.demo.workload import WatchedWorld, Witness

USERS_PER_RATE = 3
"""A user runs one job at a time, which takes some seconds with its agent, its polls and its pauses."""
OWN = 10
"""Simulations a user has at a time."""
RUNS = 4
"""After so many runs a simulation is removed."""
NOTES_KEPT = 60_000
"""Ops remembered, three times as many as jobtui keeps."""
PAST_S = 20
"""How long it has lived when it is looked at first."""
TICK_S = 0.1
LONGEST_STEP_S = 5.0
"""A site that is held up goes on from where it was, and does not hurry after."""
SETTLE_S = 20.0
"""Simulated seconds without new jobs, after which all is over that was under way."""
SEQUENTIAL = tuple(model for model in programs.MODELS if not model.parallel)
ENDINGS = {ProgramEnd.COMPLETED: 80, ProgramEnd.RAISES: 12, ProgramEnd.KILLED: 4, ProgramEnd.PREPARE_FAILS: 4}
ERRORS = {
    ProgramEnd.COMPLETED: None,
    ProgramEnd.RAISES: programs.OTHER_ERROR,
    ProgramEnd.KILLED: programs.KILLED,
    ProgramEnd.PREPARE_FAILS: programs.PREPARE_ERROR,
}

TrueOp = tuple[object, ...]
"""Prefix, name, job, agent, sends, replies, updates."""


def op_of(op: Any) -> TrueOp:
    """What is compared of an op, as it is known or as it was."""
    return op.op, op.name, op.jid, op.agent, op.sends, op.replies, op.updates


class Lived(NamedTuple):
    """What a site did until now. `seconds` are without the times at which it was held at rest."""

    begun: int
    ops: int
    seconds: float


class Site:
    """The site in a directory, living on a thread of its own between `start` and `stop`."""

    def __init__(
        self,
        directory: str,
        rate: float,
        seed: int = 1,
        *,
        with_past: bool = False,
        start: Nanos | None = None,
    ) -> None:
        self._directory = Path(directory).resolve()
        self._rate = rate
        self._begun = 0
        self._seconds = 0.0
        self._lock = threading.RLock()
        self._rng = random.Random(f"{seed}/rush")
        self._stopped = threading.Event()
        self._parent = os.getppid()
        self._thread = threading.Thread(target=self._live, name="rush", daemon=True)
        (self._directory / "db" / "supervisor-job").mkdir(parents=True)
        self._logs = SiteLogs(self._directory)
        begin = Nanos(time.time_ns() - with_past * PAST_S * SECOND) if start is None else start
        settings = _settings(self._directory, round(rate * USERS_PER_RATE), begin)
        self._witness = Witness(NOTES_KEPT)
        self._world = WatchedWorld(seed, settings, self._witness)
        self._world.disk = self._world.run_dirs.disk = RealDisk(self._directory)
        self._free = deque(self._world.users)
        self._own: dict[str, list[tuple[Simulation, int]]] = {user.uid: [] for user in self._free}
        self._world.start()
        self._world.play(self._arrivals)
        self.step(TICK_S)
        if with_past:
            self._live_before()
            self._logs.begin_journal()

    def specs(self) -> list[SourceSpec]:
        return [parse_srdb(str(self._directory / "db")), *self._logs.specs()]

    def records(self) -> Path:
        return self._directory / "db" / "supervisor-job"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        if not self._stopped.is_set():
            self._stopped.set()
            if self._thread.is_alive():
                self._thread.join()
            self._settle()
            self._logs.close()

    def hold(self, *, at_rest: bool) -> None:
        """Let nothing happen until `release`, which the same thread is to call; `at_rest`: all is over."""
        self._lock.acquire()
        if at_rest and not self._stopped.is_set():
            self._settle()

    def release(self) -> None:
        self._lock.release()

    def rotate(self, way: str) -> None:
        with self._lock:
            self._logs.rotate(way)

    def break_off(self) -> None:
        with self._lock:
            self._logs.break_off()

    def step(self, seconds: float) -> None:
        with self._lock:
            world = self._world
            world.advance(Nanos(world.kernel.now + round(seconds * SECOND)))
            self._write_logs()
            world.take_saved()

    def lived(self) -> Lived:
        return Lived(self._begun, self._witness.count, self._seconds)

    def ops(self) -> list[TrueOp]:
        return [*map(op_of, self._witness.ops)]

    def idle_records(self, count: int) -> list[Path]:
        """Records of jobs of which nothing runs; to be asked for while it is at rest."""
        paths = sorted(self.records().glob("*.json"))
        return self._rng.sample(paths, min(count, len(paths)))

    def thin_out(self, left: int) -> None:
        for path in sorted(self.records().glob("*.json"))[left:]:
            path.unlink()

    def _live_before(self) -> None:
        """A past of which less is read at first than there is, its logs rotated in all ways meanwhile."""
        for way in WAYS:
            for _ in range(PAST_S // len(WAYS)):
                self.step(1.0)
            self._logs.chatter()
            self._logs.rotate(way)
        self.step(1.0)

    def _live(self) -> None:
        before = time.monotonic()
        while not self._stopped.wait(TICK_S):
            if os.getppid() != self._parent:
                os._exit(1)  # who made it was killed
            held = time.monotonic()
            with self._lock:
                now = time.monotonic()
                self._seconds += held - before
                self.step(min(held - before, LONGEST_STEP_S))
            before = now

    def _settle(self) -> None:
        rate, self._rate = self._rate, 0.0
        for _ in range(round(SETTLE_S)):
            self.step(1.0)
        self._rate = rate
        self._write_logs(everything=True)

    def _write_logs(self, *, everything: bool = False) -> None:
        names = {SUPERVISOR_LOG: "supervisor", SERVER_LOG: "server"}
        for name in self._world.logs():
            data = self._world.stream(name).take(everything)
            if name in names:
                self._logs.write(names[name], data)

    async def _arrivals(self) -> None:
        while True:
            if not self._rate:
                await self._world.kernel.sleep(TICK_S)
                continue
            await self._world.kernel.sleep(self._rng.expovariate(self._rate))
            if self._free and self._rate:
                self._begun += 1
                self._world.play(self._visit(self._free.popleft()))

    def _visit(self, user: User) -> Callable[[], Coroutine[object, None, object]]:
        async def visit() -> None:
            browser = self._world.browser(user)
            simulation, runs = await self._simulation(browser)
            ending = self._rng.choices(list(ENDINGS), list(ENDINGS.values()))[0]
            plan = Plan(ending=ending, duration_s=self._rng.uniform(0.2, 1.0), error=ERRORS[ending])
            answer = await browser.start(simulation, plan, force=runs > 0)
            await browser.watch(simulation, answer)
            self._keep(browser, simulation, runs + 1)
            self._free.append(user)

        return visit

    async def _simulation(self, browser: Browser) -> tuple[Simulation, int]:
        own = self._own[browser.user.uid]
        if len(own) >= OWN:
            return own.pop(0)
        model = self._rng.choice(SEQUENTIAL)
        return await browser.new(model, self._rng.choice(incidents.SIMULATION_NAMES)), 0

    def _keep(self, browser: Browser, simulation: Simulation, runs: int) -> None:
        if runs < RUNS:
            self._own[browser.user.uid].append((simulation, runs))
            return
        jid = simulation.jid
        self._world.supervisor.jobs.pop(jid, None)
        self._world.plans.pop(jid, None)
        path = self.records() / f"{jid}.json"
        self._world.record_paths.pop(str(path), None)
        path.unlink(missing_ok=True)


def _settings(directory: Path, users: int, start: Nanos) -> Settings:
    given = msgspec.structs.asdict(SETTINGS) | {"users": users, "sbatch_users": 0, "start": start}
    slots = {"slots_parallel": users, "slots_sequential": users}
    return Settings(**given | slots | {"root": str(directory / "db"), "agents_in_supervisor_log": False})


class SiteManager(BaseManager):
    """Makes sites in a process of its own; what is made is asked as if it were here."""


SiteManager.register("Site", Site)


@contextmanager
def site_apart(directory: Path, rate: float, seed: int) -> Iterator[Any]:
    """A `Site` with a past in a process of its own, which ends with this."""
    with SiteManager(ctx=multiprocessing.get_context("spawn")) as manager:
        yield manager.Site(str(directory), rate, seed, with_past=True)  # type: ignore[attr-defined]


@contextmanager
def held(site: Site, *, at_rest: bool) -> Iterator[None]:
    """Nothing happens there as long as this lasts; `at_rest`: nor is anything under way."""
    site.hold(at_rest=at_rest)
    try:
        yield
    finally:
        site.release()
