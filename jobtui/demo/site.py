"""What the parts of a simulated site share: settings, clock, processes and the logs they write.

A process works on one thing at a time and each of its lines takes a little while, so its own clock runs ahead
of the kernel's while it is busy. A stream puts the lines of its processes in the order of those clocks: that
is how the lines of a supervisor and of its local agents come to be mixed.
"""

import random
from collections import deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from heapq import heappop, heappush
from typing import Protocol

import msgspec

from jobtui.demo.kernel import Kernel, TaskGroup
from jobtui.demo.messages import Identity, Ids, Line, Message, Order, lines_of
from jobtui.demo.programs import Disk, Plan, RunDirs, Slurm
from jobtui.model.clock import SECOND, Nanos, from_seconds

START = from_seconds(1_795_206_870)
"""When a simulated site starts unless told otherwise: 2026-11-20 20:34:30 UTC."""
FIRST_PID = 30_698
LINE_COST_NS = (60_000, 420_000)
"""How long writing a line takes, least and most."""
LATENCY_S = (0.00005, 0.0015)
CLOSE_S = (0.001, 0.05)
SUPERVISOR_LOG = "supervisor.log"
SERVER_LOG = "server.log"


class DriverName(StrEnum):
    """How agents are started."""

    LOCAL = "local"
    DOCKER = "docker"


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """A simulated site.

    `prefixes` limits how many different first four characters op and agent ids have, so that they clash
    (None: as random as real ones). `pid_time` is the time and process id at the head of supervisor and server
    lines, which production leaves to the journal. `agents_in_supervisor_log` lets local agents write into the
    supervisor's stream. `dev` is development mode: the sbatch driver echoes the cluster's log into its own.
    """

    users: int = 4
    sbatch_users: int = 0
    prefixes: int | None = None
    driver: DriverName = DriverName.LOCAL
    pid_time: bool = True
    agents_in_supervisor_log: bool = True
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
    max_secs_sequential: float = 360
    max_secs_parallel: float = 3600
    max_secs_parallel_paid: float = 7200
    max_secs_analysis: float = 144
    idle_check_secs: float = 1800
    dev: bool = True


class Stream:
    """What several processes write into one file. `take` gives what is settled so far."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._waiting: list[tuple[int, int, bytes]] = []
        self._written = 0

    def write(self, at: Nanos, text: str) -> None:
        self._written += 1
        heappush(self._waiting, (at, self._written, text.encode("utf-8", "surrogateescape") + b"\n"))

    def take(self, everything: bool = False) -> bytes:
        """All that no later line can come before; with `everything` also what is ahead of the clock."""
        waiting, parts = self._waiting, []
        now = self._kernel.now
        while waiting and (everything or waiting[0][0] <= now):
            parts.append(heappop(waiting)[2])
        return b"".join(parts)


class TailStream(Stream):
    """A stream that also remembers its newest records."""

    def __init__(self, kernel: Kernel, keep: int = 400) -> None:
        super().__init__(kernel)
        self._tail: deque[str] = deque(maxlen=keep)

    def write(self, at: Nanos, text: str) -> None:
        super().write(at, text)
        self._tail.append(text)

    def tail(self) -> str:
        return "".join(f"{text}\n" for text in self._tail)


class Process:
    """Something with a pid that writes lines and has tasks, until it ends."""

    def __init__(
        self,
        kernel: Kernel,
        rng: random.Random,
        lines: Mapping[str, Line],
        stream: Stream,
        pid: int,
        *,
        head: bool,
    ) -> None:
        self.kernel = kernel
        self.pid = pid
        self.alive = True
        self.tasks = TaskGroup(kernel)
        self._rng = random.Random(rng.random())  # how many lines it writes depends on the lengths of paths
        self._lines = lines
        self._stream = stream
        self._has_head = head
        self._head = (-1, "")
        """The time, process and thread at the head of a line, made once per second."""
        self._clock = kernel.now

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
        line = self._lines[name]
        self._clock = Nanos(self.clock + self._rng.randint(*LINE_COST_NS))
        text = f"{self._head_now()}{line.site}{line.text.format(*values)}"
        self.emit(text)
        return text

    def emit(self, text: str) -> None:
        self._stream.write(self._clock, text)

    def _head_now(self) -> str:
        second = self._clock // SECOND
        if self._has_head and second != self._head[0]:
            stamp = datetime.fromtimestamp(second, UTC).strftime("%b %d %H:%M:%S")
            self._head = (second, f"{stamp} {self.pid:5d} {0:5d} ")
        return self._head[1]

    def end(self) -> None:
        self.alive = False
        self.tasks.close()


class AgentEnd(Protocol):
    """What the rest of a site knows of an agent."""

    process: Process
    identity: Identity

    def take(self, order: Order) -> None: ...
    def socket_lost(self) -> None: ...
    def die(self, returncode: int = ...) -> None: ...


class SupervisorEnd(Protocol):
    """What agents know of a supervisor."""

    process: Process

    def accept(self) -> None: ...
    def receive(self, message: Message, socket: "Socket") -> None: ...


class Socket:
    """A websocket between an agent and a supervisor: messages in order, until one end is gone."""

    def __init__(self, site: "Site", supervisor: SupervisorEnd, agent: AgentEnd) -> None:
        self.closed_by_agent: Callable[[], None] | None = None
        """Tells the driver whose it is, once the supervisor knows that."""
        self._kernel, self._rng = site.kernel, site.rng
        self._supervisor = supervisor
        self._agent = agent
        self._open = True
        self._to_agent = self._to_supervisor = 0

    def order(self, order: Order) -> None:
        clock = self._supervisor.process.clock
        self._to_agent = self._deliver(self._to_agent, clock, lambda: self._reach_agent(order))

    def message(self, message: Message) -> None:
        if self._open:
            clock = self._agent.process.clock
            self._to_supervisor = self._deliver(
                self._to_supervisor, clock, lambda: self._reach_supervisor(message)
            )

    def close_by_supervisor(self) -> None:
        self.closed_by_agent = None
        self.close_by_stop()

    def close_by_stop(self) -> None:
        self._close(self._agent.socket_lost)

    def close_by_agent(self) -> None:
        self._close(self._lost)

    def _deliver(self, before: int, clock: Nanos, action: Callable[[], None]) -> int:
        due = max(before, clock + round(self._rng.uniform(*LATENCY_S) * SECOND))
        self._kernel.at(Nanos(due), action)
        return due

    def _reach_agent(self, order: Order) -> None:
        if self._agent.process.alive:
            self._agent.take(order)

    def _reach_supervisor(self, message: Message) -> None:
        if self._supervisor.process.alive and self._open:
            self._supervisor.receive(message, self)

    def _close(self, tell: Callable[[], None]) -> None:
        if self._open:
            self._open = False
            self._kernel.later(self._rng.uniform(*CLOSE_S), tell)

    def _lost(self) -> None:
        if self.closed_by_agent is not None and self._supervisor.process.alive:
            tell, self.closed_by_agent = self.closed_by_agent, None
            tell()


class Site:
    """What is there before anybody runs anything: clock, disk, cluster, streams, ids, and what runs will do.

    `mute` are the users whose agents are started and never heard of, `slow` how many seconds an analysis of a
    job takes, where that is not the usual time. `supervisor` is the one that runs now.
    """

    supervisor: SupervisorEnd
    process_class: type[Process] = Process

    def __init__(self, seed: int, settings: Settings, disk: Disk, *, keep_run_dirs: bool) -> None:
        self.seed = seed
        self.settings = settings
        self.rng = random.Random(f"{seed}/timing")
        self.kernel = Kernel(settings.start)
        self.ids = Ids(random.Random(f"{seed}/names"), settings.prefixes)
        self.disk = disk
        self.run_dirs = RunDirs(disk if keep_run_dirs else None)
        self.slurm = Slurm()
        self.tasks = TaskGroup(self.kernel)
        self.agents: dict[AgentEnd, None] = {}
        self.mute: set[str] = set()
        self.slow: dict[str, float] = {}
        self.plans: dict[str, Plan] = {}
        """What the next run of a job will do, by jid."""
        self.saved: dict[str, bytes] = {}
        """Job records that were written since they were taken last, by path."""
        self.record_paths: dict[str, None] = {}
        self._tokens: dict[str, str] = {}
        self._streams: dict[str, Stream] = {}
        self._logs: dict[str, bytearray] = {}
        self._pid = FIRST_PID
        self._supervisor_lines = lines_of(settings.site_packages)
        self._agent_lines = lines_of(settings.agent_site_packages)

    def save(self, path: str, data: bytes) -> None:
        self.record_paths[path] = None
        self.saved[path] = data
        self.disk.write(path, data)

    def use_disk(self, disk: Disk) -> None:
        self.disk = disk
        if self.run_dirs.disk is not None:
            self.run_dirs.disk = disk

    def next_pid(self) -> int:
        self._pid += self.rng.randint(1, 9)
        return self._pid

    def token_of(self, uid: str) -> str:
        if uid not in self._tokens:
            self._tokens[uid] = self.ids.draw()
        return self._tokens[uid]

    def log(self, name: str) -> bytes:
        self._logs.setdefault(name, bytearray()).extend(self.take(name, everything=True))
        return bytes(self._logs[name])

    def take(self, name: str, *, everything: bool = False) -> bytes:
        return self._streams[name].take(everything) if name in self._streams else b""

    def logs(self) -> tuple[str, ...]:
        return tuple(self._streams)

    def stream(self, name: str) -> Stream:
        return self._streams.setdefault(name, Stream(self.kernel))

    def cluster_stream(self, login: str) -> TailStream:
        name = f"cluster-{login}-job_agent.log"
        stream = self._streams.get(name)
        if not isinstance(stream, TailStream):
            stream = self._streams[name] = TailStream(self.kernel)
        return stream

    def process(self, stream: Stream, *, agent: bool = False, pid: int | None = None) -> Process:
        lines = self._agent_lines if agent else self._supervisor_lines
        head = agent or self.settings.pid_time
        pid = pid or self.next_pid()
        return self.process_class(self.kernel, self.rng, lines, stream, pid, head=head)
