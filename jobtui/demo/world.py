"""A simulated site: supervisor, API server, agents, users, all on a virtual clock.

    world = World(seed=7, settings=Settings(users=6))
    world.start()
    world.play(script)                      # what somebody does, a coroutine
    world.advance(until)
    world.log("supervisor.log"), world.records(), world.truth()

Deterministic: the same seed and settings give the same bytes.
"""

import random
from collections.abc import Callable, Coroutine

from jobtui.demo.agents import Agent
from jobtui.demo.browsers import Browser, Server, User
from jobtui.demo.catalog import PLANS
from jobtui.demo.cluster import Slurm
from jobtui.demo.commands import Command
from jobtui.demo.disk import Disk, MemoryDisk
from jobtui.demo.kernel import Future, Kernel, TaskGroup
from jobtui.demo.legacy import Agent2020, Supervisor2020
from jobtui.demo.lines import catalog
from jobtui.demo.messages import Answer, Order, Request
from jobtui.demo.names import Names
from jobtui.demo.output import Process, Stream, TailStream
from jobtui.demo.programs import Plan
from jobtui.demo.records import Record
from jobtui.demo.rundirs import RunDirs
from jobtui.demo.settings import Era, Settings
from jobtui.demo.supervisor import Supervisor
from jobtui.demo.truth import Truth, Witness
from jobtui.model.clock import Nanos

SUPERVISOR_LOG = "supervisor.log"
SERVER_LOG = "server.log"
FIRST_PID = 30_698
FIRST_PORT = 44_292


class World:
    """One site. Logs are kept by file name until taken."""

    def __init__(
        self,
        seed: int,
        settings: Settings | None = None,
        *,
        disk: Disk | None = None,
        keep_run_dirs: bool = False,
    ) -> None:
        self.settings = settings or Settings()
        self.seed = seed
        self.rng = random.Random(f"{seed}/timing")
        self.kernel = Kernel(self.settings.start)
        self.names = Names(random.Random(f"{seed}/names"), self.settings.prefixes)
        self.witness = Witness()
        self.disk: Disk = disk or MemoryDisk()
        self.run_dirs = RunDirs(self.disk if keep_run_dirs else None)
        self.slurm = Slurm()
        self.tasks = TaskGroup(self.kernel)
        self.agents: dict[Agent, None] = {}
        self.mute: set[str] = set()
        self.slow: dict[str, float] = {}
        self._restarting = False
        self._record_paths: dict[str, None] = {}
        self._saved: dict[str, bytes] = {}
        self._plans: dict[str, Plan] = {}
        self._tokens: dict[str, str] = {}
        self._streams: dict[str, Stream] = {}
        self._logs: dict[str, bytearray] = {}
        self._pid = FIRST_PID
        self._port = FIRST_PORT
        self._supervisor_lines = catalog(self.settings)
        self._agent_lines = catalog(self.settings, agent=True)
        self.server = Server(self, self._process(self._stream(SERVER_LOG)))
        self.agent_class: type[Agent] = Agent2020 if self.is_old else Agent
        self.supervisor = self._new_supervisor()
        self.users: list[User] = []
        self._user_rng = random.Random(f"{seed}/users")
        for number in range(self.settings.users + self.settings.sbatch_users):
            self.add_user(on_cluster=number >= self.settings.users)

    @property
    def is_old(self) -> bool:
        """Whether Sirepo of 2020 is played."""
        return self.settings.era is Era.Y2020

    def _new_supervisor(self) -> Supervisor:
        kind = Supervisor2020 if self.is_old else Supervisor
        return kind(self, self._process(self._stream(SUPERVISOR_LOG)))

    def add_user(self, *, on_cluster: bool = False) -> User:
        """Someone who was not here before."""
        user = User(uid=self.names.uid(), plan=self._user_rng.choice(PLANS), on_cluster=on_cluster)
        self.users.append(user)
        return user

    # running

    def start(self) -> None:
        """Start the API server and the supervisor."""
        self.server.start()
        self.supervisor.start()

    def play(self, script: Callable[[], Coroutine[object, None, object]], at: Nanos | None = None) -> None:
        """Let a coroutine act on the site."""
        self.tasks.spawn(script, at)

    def advance(self, until: Nanos) -> None:
        """Do all that is due up to a time."""
        self.kernel.run(until)

    def use_disk(self, disk: Disk) -> None:
        """Keep files there from now on."""
        self.disk = disk
        self.run_dirs.use_disk(disk)

    async def restart(self, *, crash: bool = False, down_s: float = 2.0) -> None:
        """Stop the supervisor (in good order, or not) and start another one, unless that is under way."""
        if self._restarting:
            return
        self._restarting = True
        old = self.supervisor
        if crash:
            old.end()
        else:
            stopped: Future[None] = Future(self.kernel)

            async def stop() -> None:
                await old.stop()
                stopped.set(None)

            self.tasks.spawn(stop)
            await stopped
        await self.kernel.sleep(down_s)
        self.supervisor = self._new_supervisor()
        self.supervisor.start()
        self._restarting = False

    def deliver(self, request: Request, done: Future[Answer]) -> None:
        """Bring a request to the supervisor; refused when that is not there."""
        if self.supervisor.process.alive:
            self.supervisor.request(request, done)
        else:
            done.set(Answer(ok=False))

    def browser(self, user: User) -> Browser:
        """A new window of a user."""
        return Browser(self, user)

    # results

    def log(self, name: str) -> bytes:
        """All that was written to a log so far."""
        self._logs.setdefault(name, bytearray()).extend(self.take(name, everything=True))
        return bytes(self._logs[name])

    def take(self, name: str, *, everything: bool = False) -> bytes:
        """What was written to a log since this was last asked."""
        return self._streams[name].take(everything) if name in self._streams else b""

    def logs(self) -> tuple[str, ...]:
        """The names of all logs."""
        return tuple(self._streams)

    def records(self) -> dict[str, Record]:
        """Every job record by jid, as on disk."""
        found = {}
        for path in self._record_paths:
            if data := self.disk.read(path):
                record = self.supervisor.read(data)
                found[str(record["computeJid"])] = record
        return found

    def save(self, path: str, data: bytes) -> None:
        """Keep a job record."""
        self._record_paths[path] = None
        self._saved[path] = data
        self.disk.write(path, data)

    def forget(self, jid: str) -> None:
        """A job that was removed, its record too, is not asked about any more."""
        self._record_paths.pop(f"{self.settings.root}/supervisor-job/{jid}.json", None)
        self._plans.pop(jid, None)

    def take_saved(self) -> list[Record]:
        """The job records that were saved since this was asked last, as they are now."""
        saved, self._saved = self._saved, {}
        return [self.supervisor.read(data) for data in saved.values()]

    def truth(self) -> Truth:
        """What really happened."""
        return self.witness.truth({jid: str(r["status"]) for jid, r in self.records().items()})

    # what parts of the site ask of it

    def next_pid(self) -> int:
        """A process id that was not used before."""
        self._pid += self.rng.randint(1, 9)
        return self._pid

    def next_port(self) -> int:
        """A port that was not used before."""
        self._port += 2
        return self._port

    def token_of(self, uid: str) -> str:
        """A user's secret."""
        if uid not in self._tokens:
            self._tokens[uid] = self.names.token()
        return self._tokens[uid]

    def set_plan(self, jid: str, plan: Plan) -> None:
        """Say what the next run of a job will do."""
        self._plans[jid] = plan

    def plan_of(self, jid: str) -> Plan:
        """What a run of a job does."""
        return self._plans[jid]

    def agent_is_mute(self, uid: str) -> bool:
        """Whether the agent now being started will never be heard of."""
        return uid in self.mute

    def analysis_s(self, order: Order) -> float:
        """How long an analysis takes, 0 for the usual."""
        return self.slow.get(order.request.jid or "", 0.0) if order.request else 0.0

    def compute_fails(self, order: Order) -> bool:
        """Whether a small computation ends in an error."""
        return order.request is not None and order.request.model == "global_resources"

    def stderr_of(self, command: Command, request: Request, plan: Plan) -> str:
        """What a program that could not be prepared prints: whole log lines of another process."""
        process = self._process(Stream(self.kernel), agent=True, pid=command.pid)
        error = f"UserAlert(error={plan.error})"
        stack = f"Traceback (most recent call last):\nsirepo.util.UserAlert: {error}"
        return process.log("job_cmd_failed", error, request.app, stack) + "\n"

    def agent_process(self, prefix: str, stream: Stream | None = None) -> Process:
        """A process for an agent. Local ones write where the supervisor does, unless told not to."""
        if stream is None:
            mixed = self.settings.agents_in_supervisor_log
            stream = self._stream(SUPERVISOR_LOG if mixed else f"agent-{prefix}.log")
        return self._process(stream, agent=True)

    def container_stream(self, name: str) -> Stream:
        """Where the container of this name prints to, as its host's journal has it."""
        return self._stream(f"container-{name}.log")

    def cluster_stream(self, login: str) -> TailStream:
        """The agent's log in a user's directory on the cluster."""
        name = f"cluster-{login}-job_agent.log"
        stream = self._streams.get(name)
        if not isinstance(stream, TailStream):
            stream = self._streams[name] = TailStream(self.kernel)
        return stream

    def cluster_log(self, login: str) -> str:
        """The newest part of that log."""
        return self.cluster_stream(login).tail()

    def _stream(self, name: str) -> Stream:
        if name not in self._streams:
            self._streams[name] = Stream(self.kernel)
        return self._streams[name]

    def _process(self, stream: Stream, *, agent: bool = False, pid: int | None = None) -> Process:
        lines = self._agent_lines if agent else self._supervisor_lines
        head = agent or self.settings.pid_time
        torn = self.settings.torn_records
        pid = pid or self.next_pid()
        return Process(self.kernel, self.rng, lines, stream, pid, head=head, torn=torn)
