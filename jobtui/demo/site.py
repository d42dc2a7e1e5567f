"""What the parts of a simulated site share: settings, clock, disk, processes and their logs, sockets.

A process works on one thing at a time and each of its lines takes a little while, so its own clock runs ahead
of the kernel's while it is busy. A stream sorts the lines of its processes by these clocks, which mixes the
lines of a supervisor and of its local agents.
"""

from __future__ import annotations

import random
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from heapq import heappop, heappush
from itertools import count
from typing import Protocol

import msgspec

from jobtui.demo.kernel import Kernel, TaskGroup
from jobtui.demo.messages import TABLES, DemoMessage, Identity, Ids, OpRequest, lines_of
from jobtui.demo.programs import BatchJob, Disk, Plan, SimRunDirs
from jobtui.model.clock import SECOND, Nanos, from_seconds

START = from_seconds(1_795_206_870)
"""When a simulated site starts by default: 2026-11-20 20:34:30 UTC."""
SUPERVISOR_LOG = "supervisor.log"
SERVER_LOG = "server.log"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """A simulated site.

    `prefixes` limits how many different first four characters op and agent ids have, so that they clash
    (None: as random as real ones). `pid_time` is the time and process id at the head of supervisor and server
    lines, which in production are only in the journal. `dev`: the sbatch driver echoes the cluster's log.
    """

    users: int = 4
    sbatch_users: int = 0
    prefixes: int | None = None
    pid_time: bool = True
    slots_parallel: int = 2
    slots_sequential: int = 2
    slots_run_sbatch: int = 1
    hosts: tuple[str, ...] = ("v1.sirepo.example", "v2.sirepo.example", "v3.sirepo.example")
    start: Nanos = START
    root: str = "/srv/sirepo/db"
    site_packages: str = "../../venv/lib/python3.11/site-packages/"
    agent_site_packages: str = "/srv/sirepo/venv/lib/python3.11/site-packages/"
    cluster_root: str = "/scratch/{user}/sirepo-prod"
    cluster_host: str = "hpc.sirepo.example"
    supervisor_port: int = 8001
    server_port: int = 8000
    max_secs_sequential: int = 360
    max_secs_parallel: int = 3600
    max_secs_parallel_paid: int = 7200
    max_secs_analysis: int = 144
    idle_check_secs: float = 1800
    dev: bool = True


class Sink:
    """The lines of several processes in one file, and its newest `kept` records."""

    def __init__(self, kernel: Kernel, kept: int = 0) -> None:
        self.newest: deque[str] = deque(maxlen=kept)
        self._kernel = kernel
        self._waiting: list[tuple[int, int, bytes]] = []
        self._written = 0

    def write(self, at: Nanos, text: str) -> None:
        self._written += 1
        heappush(self._waiting, (at, self._written, text.encode("utf-8", "surrogateescape") + b"\n"))
        self.newest.append(text)

    def take(self, everything: bool = False) -> bytes:
        """All lines before which none can come; with `everything` also those ahead of the clock."""
        waiting, parts = self._waiting, []
        now = self._kernel.now
        while waiting and (everything or waiting[0][0] <= now):
            parts.append(heappop(waiting)[2])
        return b"".join(parts)


class Process:
    """A process: it has a pid, writes lines and has tasks, until it ends."""

    def __init__(self, site: SimSite, stream: Sink, *, agent: bool = False, pid: int | None = None) -> None:
        settings = site.settings
        self.kernel = site.kernel
        self.pid = pid or site.next_pid()
        self.alive = True
        self.tasks = TaskGroup(site.kernel)
        self._rng = random.Random(site.rng.random())  # its lines are as many as paths are long
        self._lines = lines_of(settings.agent_site_packages if agent else settings.site_packages)
        self._stream = stream
        self._has_head = agent or settings.pid_time
        self._head = (-1, "")
        """The time, process and thread at the head of a line, made once per second."""
        self._clock = site.kernel.now

    @property
    def clock(self) -> Nanos:
        return max(self._clock, self.kernel.now)

    @property
    def seconds(self) -> int:
        return self.clock // SECOND

    def work(self, seconds: float) -> None:
        self._clock = Nanos(self.clock + round(seconds * SECOND))

    def log(self, name: str, *values: object) -> str:
        if not self.alive:
            return ""
        where, words = self._lines[name]
        self._clock = Nanos(self.clock + self._rng.randint(60_000, 420_000))  # as long as writing it takes
        second = self._clock // SECOND
        if self._has_head and second != self._head[0]:
            stamp = datetime.fromtimestamp(second, UTC).strftime("%b %d %H:%M:%S")
            self._head = (second, f"{stamp} {self.pid:5d} {0:5d} ")
        text = f"{self._head[1]}{where}{words.format(*values)}"
        self.emit(text)
        return text

    def emit(self, text: str) -> None:
        self._stream.write(self._clock, text)

    def end(self) -> None:
        self.alive = False
        self.tasks.close()


class SupervisorEnd(Protocol):
    """The part of a supervisor that agents use."""

    process: Process

    def accept(self) -> None: ...
    def receive(self, message: DemoMessage, socket: Socket) -> None: ...


class Socket:
    """A websocket between an agent and a supervisor: messages in order, until either end is gone."""

    def __init__(
        self, site: SimSite, agent: Process, take: Callable[[OpRequest], None], lost: Callable[[], None]
    ) -> None:
        self.lost_by_agent: Callable[[], None] | None = None
        """Tells its driver, once the supervisor knows it."""
        self._site = site
        self._supervisor = site.supervisor
        self._agent = agent
        self._take, self._lost = take, lost
        self._open = True
        self._arrived: dict[Process, int] = {}
        """When what a process sent last arrives."""

    def order(self, order: OpRequest) -> None:
        self._send(self._supervisor.process, lambda: self._agent.alive and self._take(order))

    def message(self, message: DemoMessage) -> None:
        def arrive() -> None:
            if self._supervisor.process.alive and self._open:
                self._supervisor.receive(message, self)

        if self._open:
            self._send(self._agent, arrive)

    def close(self) -> None:
        self.lost_by_agent = None
        self._close(self._lost)

    def close_by_agent(self) -> None:
        def tell_driver() -> None:
            if self.lost_by_agent is not None and self._supervisor.process.alive:
                self.lost_by_agent()

        self._close(tell_driver)

    def _send(self, sender: Process, action: Callable[[], object]) -> None:
        arrives = sender.clock + round(self._site.delay("latency") * SECOND)
        self._arrived[sender] = max(self._arrived.get(sender, 0), arrives)
        self._site.kernel.at(Nanos(self._arrived[sender]), action)

    def _close(self, tell: Callable[[], None]) -> None:
        if self._open:
            self._open = False
            self._site.later("close", tell)


class SimSite:
    """A site before anything runs. Logs are kept by file name until they are taken.

    `mute` are users whose agents are started and never report, `slow` how many seconds an analysis of a job
    takes, if that is unusual. `supervisor` is the one that runs now.
    """

    supervisor: SupervisorEnd
    process_class: type[Process] = Process

    def __init__(self, seed: int, settings: Settings, *, keep_run_dirs: bool) -> None:
        self.seed = seed
        self.settings = settings
        self.rng = random.Random(f"{seed}/timing")
        self.kernel = Kernel(settings.start)
        self.ids = Ids(random.Random(f"{seed}/names"), settings.prefixes)
        self.disk = Disk(self.kernel)
        self.run_dirs = SimRunDirs(self.disk, kept=keep_run_dirs)
        self.tasks = TaskGroup(self.kernel)
        self.agents: dict[Identity, Callable[[int], None]] = {}
        """The live agents, and the function that ends each, with a return code."""
        self.mute: set[str] = set()
        self.slow: dict[str, float] = {}
        self.plans: dict[str, Plan] = {}
        """What the next run of a job will do, by jid."""
        self.batch_jobs: dict[str, BatchJob] = {}
        """The latest run of each job on the cluster, by jid."""
        self.saved: dict[str, bytes] = {}
        """Job records that were written since they were last taken, by path."""
        self.record_paths: dict[str, None] = {}
        self.tokens = defaultdict[str, str](self.ids.draw)
        self._streams: dict[str, Sink] = {}
        self._pid = 30_698
        self.batch_numbers = count(4_001)

    def delay(self, name: str) -> float:
        """How many seconds something takes, in its range in the tables."""
        least, most = TABLES["delays"][name]
        return self.rng.uniform(least, most)

    def pause(self, name: str) -> Awaitable[None]:
        return self.kernel.sleep(self.delay(name))

    def later(self, name: str, action: Callable[[], object]) -> None:
        self.kernel.later(self.delay(name), action)

    def save(self, path: str, data: bytes) -> None:
        self.record_paths[path] = None
        self.saved[path] = data
        self.disk.write(path, data)

    def next_pid(self) -> int:
        self._pid += self.rng.randint(1, 9)
        return self._pid

    def stream(self, name: str, kept: int = 0) -> Sink:
        return self._streams.setdefault(name, Sink(self.kernel, kept))

    def process(self, stream: Sink, *, agent: bool = False, pid: int | None = None) -> Process:
        return self.process_class(self, stream, agent=agent, pid=pid)

    def take(self, name: str) -> bytes:
        return self._streams[name].take() if name in self._streams else b""

    def logs(self) -> tuple[str, ...]:
        return tuple(self._streams)
