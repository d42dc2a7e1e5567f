"""A simulated site under a rush: so many jobs begin each second, for as long as wanted, in bounded room.

Users run what they have made again, and make something new; what has run often enough is removed with its
record, as an old simulation is. The site notes what happened, forgets what happened long ago, and counts all.
"""

import random
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from jobtui.demo import catalog
from jobtui.demo.browsers import Browser, Simulation, User
from jobtui.demo.disk import RealDisk
from jobtui.demo.live import LIVE
from jobtui.demo.programs import Ending, Plan
from jobtui.demo.settings import DriverName, Settings
from jobtui.demo.truth import OpNote, Witness
from jobtui.demo.world import SERVER_LOG, SUPERVISOR_LOG, World
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.specs import SourceSpec, parse_log, parse_srdb

USERS_PER_RATE = 3
"""A user runs one job at a time, which takes some seconds with its agent, its polls and its pauses."""
OWN = 10
"""Simulations a user has at a time."""
RUNS = 4
"""After so many runs a simulation is removed."""
NOTES_KEPT = 60_000
"""Ops remembered, three times as many as jobtui keeps."""
TICK_S = 0.1
LONGEST_STEP_S = 5.0
"""A site that is held up goes on from where it was, and does not hurry after."""
SETTLE_S = 20.0
"""Simulated seconds without new jobs, after which all is over that was under way."""
SEQUENTIAL = tuple(model for model in catalog.MODELS if not model.parallel)
ENDINGS = {Ending.COMPLETED: 80, Ending.RAISES: 12, Ending.KILLED: 4, Ending.PREPARE_FAILS: 4}
ERRORS = {
    Ending.COMPLETED: None,
    Ending.RAISES: catalog.OTHER_ERROR,
    Ending.KILLED: catalog.KILLED,
    Ending.PREPARE_FAILS: catalog.PREPARE_ERROR,
}

TrueOp = tuple[object, ...]
"""Prefix, name, job, agent, sends, replies, updates."""


class ForgetfulWitness(Witness):
    """Notes the newest ops, and counts all."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def created(self, note: OpNote) -> None:
        """An op was made; the oldest are forgotten."""
        super().created(note)
        self.count += 1
        while len(self._ops) > NOTES_KEPT:
            oldest = self._ops.pop(next(iter(self._ops)))
            if oldest.jid is not None and self._owners.get(oldest.jid) is oldest:
                del self._owners[oldest.jid]

    def sent(self, op_id: str, agent_id: str) -> None:
        """The supervisor tried to send an op; nothing is noted of one that is forgotten."""
        if op_id in self._ops:
            super().sent(op_id, agent_id)


class RushSite:
    """The site in a directory, living on a thread of its own between `start` and `stop`."""

    name = "rush"

    def __init__(self, directory: Path, rate: float, seed: int = 1) -> None:
        self.directory = directory.resolve()
        self.logs = {name: self.directory / f"{name}.log" for name in ("supervisor", "server")}
        self.begun = self.over = 0
        self.lived_s = 0.0
        """How long it lived in all, without the times at which it was held at rest."""
        self.lock = threading.RLock()
        """Held while the site moves: whoever holds it finds files at rest."""
        self.rate = rate
        self._rng = random.Random(f"{seed}/rush")
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._live, name="rush")
        (self.directory / "db" / "supervisor-job").mkdir(parents=True)
        settings = _settings(self.directory, round(rate * USERS_PER_RATE))
        self._world = World(seed, settings, disk=RealDisk(self.directory))
        self._witness = ForgetfulWitness()
        self._world.witness = self._world.supervisor.witness = self._witness
        self._free = deque(self._world.users)
        self._own: dict[str, list[tuple[Simulation, int]]] = {user.uid: [] for user in self._free}
        self._world.start()
        self._world.play(self._arrivals)
        self.step(TICK_S)

    @property
    def specs(self) -> Sequence[SourceSpec]:
        """Its database and its logs."""
        return [
            parse_srdb(str(self.directory / "db")),
            *(parse_log(f"{role}={path}") for role, path in self.logs.items()),
        ]

    @property
    def records(self) -> Path:
        """Where its records are."""
        return self.directory / "db" / "supervisor-job"

    def start(self) -> None:
        """Let it live."""
        self._thread.start()

    def stop(self) -> None:
        """Let all end that is under way, and nothing begin. May be called twice."""
        if not self._stopped.is_set():
            self._stopped.set()
            if self._thread.is_alive():
                self._thread.join()
            self._settle()

    @contextmanager
    def at_rest(self) -> Iterator[None]:
        """Nothing happens, and nothing is under way, as long as this lasts."""
        with self.lock:
            self._settle()
            yield

    def step(self, seconds: float) -> None:
        """Let so much time pass."""
        with self.lock:
            world = self._world
            world.advance(Nanos(world.kernel.now + round(seconds * SECOND)))
            self._write_logs()
            world.take_saved()

    def count(self) -> int:
        """How many ops there were in all."""
        return self._witness.count

    def ops(self) -> list[TrueOp]:
        """The newest ops as they were."""
        return [
            (op.op, op.name, op.jid, op.agent, op.sends, op.replies, op.updates)
            for op in (note.freeze() for note in self._witness)
        ]

    def idle_records(self, count: int) -> list[Path]:
        """Records of jobs of which nothing runs; to be asked for while it is at rest."""
        paths = sorted(self.records.glob("*.json"))
        return self._rng.sample(paths, min(count, len(paths)))

    def thin_out(self, left: int) -> None:
        """Remove all records but so many."""
        for path in sorted(self.records.glob("*.json"))[left:]:
            path.unlink()

    def _live(self) -> None:
        before = time.monotonic()
        while not self._stopped.wait(TICK_S):
            held = time.monotonic()
            with self.lock:
                now = time.monotonic()
                self.lived_s += held - before
                self.step(min(held - before, LONGEST_STEP_S))
            before = now

    def _settle(self) -> None:
        rate, self.rate = self.rate, 0.0
        for _ in range(round(SETTLE_S)):
            self.step(1.0)
        self.rate = rate
        self._write_logs(everything=True)

    def _write_logs(self, *, everything: bool = False) -> None:
        for path in self.logs.values():
            if data := self._world.take(path.name, everything=everything):
                with path.open("ab") as file:
                    file.write(data)
        for name in set(self._world.logs()) - {SUPERVISOR_LOG, SERVER_LOG}:
            self._world.take(name, everything=everything)

    async def _arrivals(self) -> None:
        while True:
            if not self.rate:
                await self._world.kernel.sleep(TICK_S)
                continue
            await self._world.kernel.sleep(self._rng.expovariate(self.rate))
            if self._free and self.rate:
                self.begun += 1
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
            self.over += 1
            self._free.append(user)

        return visit

    async def _simulation(self, browser: Browser) -> tuple[Simulation, int]:
        own = self._own[browser.user.uid]
        if len(own) >= OWN:
            return own.pop(0)
        model = self._rng.choice(SEQUENTIAL)
        return await browser.new(model, self._rng.choice(catalog.SIMULATION_NAMES)), 0

    def _keep(self, browser: Browser, simulation: Simulation, runs: int) -> None:
        if runs < RUNS:
            self._own[browser.user.uid].append((simulation, runs))
            return
        jid = browser.jid(simulation)
        self._world.supervisor.jobs.pop(jid, None)
        self._world.forget(jid)
        (self.records / f"{jid}.json").unlink(missing_ok=True)


def _settings(directory: Path, users: int) -> Settings:
    return msgspec.structs.replace(
        LIVE,
        users=users,
        sbatch_users=0,
        root=str(directory / "db"),
        start=Nanos(time.time_ns()),
        driver=DriverName.LOCAL,
        agents_in_supervisor_log=False,
        slots_parallel=users,
        slots_sequential=users,
    )
