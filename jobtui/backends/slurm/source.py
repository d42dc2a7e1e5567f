"""A Slurm cluster as a source: its queue, what accounting says about ended jobs, the scripts of jobs.

Seen with 22.05: slurmctld gives a script byte for byte, to its owner and to operators. Accounting
(`AccountingStoreFlags=job_script,job_env`) puts two lines before it and a line end after it, replaces bytes
that are not text, and separates variables by line ends, which may also be in their values.

At most one squeue for each poll and one at a time, for all jobs at once, not sooner than `QUEUE_EVERY_S`
after the last, and so rarely that answers take at most a `SHARE` of the time. Accounting is asked less often,
for rows since some minutes before its newest one; and sooner when a job has ended whose end it has not given
yet. A job's own record, and why the job waits, is asked for only when somebody looks at the job; nodes only
while somebody looks at them.
"""

import asyncio
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

import msgspec

from jobtui.backends.base import WINDOW_S, Batch, PolledSource, SourceParts, merged
from jobtui.backends.slurm.client import MOST_BYTES, Commands, NoAccounting
from jobtui.backends.slurm.detail import Queue, fetch_detail
from jobtui.backends.slurm.records import MOST_ENDED, ClusterJobs
from jobtui.formats.slurm_nodes import controller_of, nodes_of, partitions_of
from jobtui.model.clock import SECOND, Nanos
from jobtui.model.health import SourceError, SourceMissing
from jobtui.model.ids import JobId, named
from jobtui.model.jobs import SLURM, JobDetail
from jobtui.model.scripts import Answer, ArchivedScript, Environment, Outcome, Tried, Variable, Wanted
from jobtui.model.slurm import Cluster
from jobtui.model.specs import ReadWindow, SourceSpec
from jobtui.transport.worker import Worker

NONE = b"NONE\n"
"""What accounting says if it keeps nothing."""
RULED = re.compile(rb"[^\n]*\n-+\n(.*)\n\Z", re.DOTALL)
_NAME = re.compile(rb"[A-Za-z_]\w*(?:\(\)|%%)?=", re.ASCII)
LINES_PART = "its variables are separated by newlines: where a value with newlines ends is a guess"


async def find_kept(commands: Commands, wanted: Wanted) -> Answer:
    """The script from slurmctld, else from accounting, and its environment if accounting keeps it."""
    number, tried, script = wanted.number, list[Tried](), None
    for words, ask, script_in, without in (
        (f"scontrol write batch_script {number} -",
         partial(commands.scontrol, "write", "batch_script", number, "-"),
         lambda printed: printed.removesuffix(b"\0") if printed else None, "slurmctld no longer knows it"),
        (f"sacct -j {number} --batch-script", partial(commands.sacct, "--batch-script", number),
         below_rule, "accounting keeps no script of it, or not for this user"),
    ):  # fmt: skip
        outcome, why = Outcome.FOUND, ""
        try:
            answer = await ask()
        except SourceError as error:
            outcome, why = Outcome.NO_ANSWER, str(error).removeprefix(f"{commands.name}: ")
        else:
            if (script := script_in(answer.printed)) is None:
                outcome, why = Outcome.NOT_THERE, without
                if "Invalid user id" in answer.stderr:
                    outcome, why = Outcome.DENIED, "only its owner and operators get it"
        tried.append(Tried(f"{commands.name}: {words}", outcome, why))
        if script is not None:
            break
    else:
        return Answer(None, tuple(tried))
    variables: Environment | None = None
    with suppress(SourceError):
        text = below_rule((await commands.sacct("--env-vars", number)).printed)
        variables = None if text is None else Environment(tuple(variables_of(text)))
    notes = ("from accounting: bytes that are not text were replaced",) if len(tried) > 1 else ()
    made = ArchivedScript(
        number=number,
        script=script,
        source=tried[-1].where,
        cluster=wanted.cluster,
        environment=variables,
        notes=(*notes, LINES_PART) if variables is not None else notes,
    )
    return Answer(made, tuple(tried))


def below_rule(printed: bytes) -> bytes | None:
    """The text below the two lines of heading, None if nothing is kept."""
    found = RULED.match(printed)
    return None if found is None or found[1] + b"\n" == NONE or found[1] == NONE else found[1]


def variables_of(text: bytes) -> list[Variable]:
    """Variables, one per line; a line that does not begin with a name continues the value before."""
    found: list[Variable] = []
    for line in text.removesuffix(b"\n").split(b"\n"):
        if found and not _NAME.match(line):
            name, value = found[-1]
            found[-1] = Variable(name, (value or b"") + b"\n" + line)
        else:
            name, equals, value = line.partition(b"=")
            found.append(Variable(name, value if equals else None))
    return found


QUEUE_EVERY_S = 5.0
ACCOUNTS_EVERY_S, ACCOUNTS_SOON_S, ACCOUNTS_AGAIN_S = 60.0, QUEUE_EVERY_S, 900.0
"""How often accounting is asked: usually, when an end is expected, and if the cluster has none."""
SHARE = 1 / 20
"""The share of the time that each command may take."""
OVERLAP_S = 300
"""How far before its newest row accounting is asked: busy daemons report to it late."""
BATCH_JOBS = 2_000


class Pacer:
    """When a question may be asked again.

    The quicker of the last two answers says what one costs: a wait for a daemon to come back is no load.
    """

    share = SHARE

    def __init__(self, source: PolledSource) -> None:
        self._source = source
        self._asked_at: float | None = None
        self._costs_s = (0.0, 0.0)

    def wait_s(self, every_s: float) -> float:
        """Seconds until it may be asked again, 0 when it may."""
        if self._asked_at is None:
            return 0.0
        return max(0.0, self._asked_at + max(every_s, min(self._costs_s) / self.share) - self._source.timer())

    def begin(self) -> None:
        self._asked_at = self._source.timer()

    def end(self) -> None:
        assert self._asked_at is not None
        self._costs_s = (self._costs_s[1], self._source.timer() - self._asked_at)


ACCOUNTING, NODES = "accounting", "nodes"
"""Its parts that may fail while the queue is read."""
NODE_QUESTIONS = (("show", "node"), ("show", "partition"))
"""The commands of scontrol for the nodes of a cluster; sdiag is run, too."""


class Slurm(PolledSource):
    """One cluster. `label` distinguishes it from others; ended jobs are read from `since` on."""

    kind = "slurm"
    cluster = ""

    every_s = QUEUE_EVERY_S
    batch_jobs = BATCH_JOBS

    def __init__(self, commands: Commands, *, label: str = "", since: Nanos | None = None) -> None:
        self._worker = Worker(f"slurm {commands.name}")
        super().__init__(commands.name, self._worker)
        self._commands = commands
        self.system = named(SLURM, label)
        self._since = since
        self._queue_pace, self._accounts_pace, self._nodes_pace = Pacer(self), Pacer(self), Pacer(self)
        self._asking = asyncio.Lock()
        self._nodes_every_s: float | None = None
        self._known = ClusterJobs(self.name, self.system)
        self._news = Batch()
        """What is known and not given yet."""
        self._parts = SourceParts(self)
        self._has_queue = False
        self._queue_error: SourceError | None = None

    async def read(self, *, begins: bool) -> Batch:
        if begins:
            self._news = Batch()
            await self._learn(self._known.forget)
            await self._ask()
        elif not self._news.jobs:
            await self._ask()
        news, count = self._news, self.batch_jobs
        self._news = Batch(jobs=news.jobs[count:])
        more = bool(self._news.jobs) or self._is_accounts_turn or self._is_nodes_turn
        jobs, note = news.jobs[:count], "; ".join(self._notes())
        if self._nodes_every_s is None:  # nobody looks at them
            self._parts.forget(NODES)
        return msgspec.structs.replace(news, jobs=jobs, more=more, note=note, failing=self._parts.failing)

    @property
    def _is_accounts_turn(self) -> bool:
        every_s = ACCOUNTS_AGAIN_S
        if self._known.has_accounting:
            is_awaited = self._known.wants_accounting and not self._parts.fails(ACCOUNTING)
            every_s = ACCOUNTS_SOON_S if is_awaited else ACCOUNTS_EVERY_S
        return self._has_queue and self._accounts_pace.wait_s(every_s) == 0.0

    @property
    def _is_nodes_turn(self) -> bool:
        return self._nodes_every_s is not None and self._nodes_pace.wait_s(self._nodes_every_s) == 0.0

    async def _ask(self) -> None:
        """Ask one question, if one is due: for the queue, then for what accounting knows, and for nodes."""
        if self._is_accounts_turn:
            self._has_queue = False
            await self._ask_accounts()
        elif self._queue_pace.wait_s(self.every_s) == 0.0:
            await self._ask_queue()
        elif self._queue_error is not None:  # it is too early to ask again: there is no answer
            raise self._queue_error
        elif self._is_nodes_turn:
            await self._ask_nodes()

    async def _ask_queue(self, *, is_first: bool = False) -> None:
        """Read the queue, with one squeue at a time; with `is_first` only if it was not read before."""
        async with self._asking:
            if is_first and self._known.queue_at:
                return
            self._queue_pace.begin()
            asked_at = self.clock.now()
            try:
                answer = await self._commands.queue()
            except SourceError as error:
                self._queue_error = error
                raise
            self._queue_error = None
            self._queue_pace.end()
            self._has_queue = True
            await self._learn(partial(self._known.take_queue, answer, asked_at))

    def ask_for_nodes(self, every_s: float | None) -> None:
        self._nodes_every_s = every_s

    async def _ask_nodes(self) -> None:
        """Read the nodes. If this fails that is said, as for accounting, and the queue counts."""
        self._nodes_pace.begin()
        try:
            answers = [
                await self._commands.scontrol("--oneliner", "--details", *words) for words in NODE_QUESTIONS
            ]
            health = await self._commands.sdiag()
        except SourceError as error:
            self._parts.fail(NODES, error)
            return
        self._nodes_pace.end()
        self._parts.take(NODES)
        nodes, partitions = (answer.printed for answer in answers)
        at = self.clock.now()

        def read() -> Batch:
            made = Cluster(
                source=self.name,
                at=at,
                nodes=nodes_of(nodes),
                partitions=partitions_of(partitions),
                controller=controller_of(health.printed),
            )
            return Batch(clusters=(made,))

        await self._learn(read)

    async def _ask_accounts(self) -> None:
        """Read accounting. If this fails that is said, and the queue is read anyway."""
        self._accounts_pace.begin()
        now, newest = self.clock.now(), self._known.newest
        since = self._since if self._since is not None else Nanos(now - WINDOW_S * SECOND)
        if newest is not None:
            since = Nanos(min(now, newest) - OVERLAP_S * SECOND)
        try:
            answer = await self._commands.accounted(since)
        except (NoAccounting, SourceMissing):
            self._known.has_accounting = False
            self._parts.forget(ACCOUNTING)
            return
        except SourceError as error:
            self._parts.fail(ACCOUNTING, error)
            return
        self._accounts_pace.end()
        self._known.has_accounting = True
        self._parts.take(ACCOUNTING)
        await self._learn(partial(self._known.take_accounts, answer, self.clock.now()))

    async def _learn(self, take: Callable[[], Batch]) -> None:
        self._news = merged((self._news, await self._worker.run(take)))

    def _notes(self) -> Iterator[str]:
        if self._known.is_cut:
            yield f"its queue is longer than {MOST_BYTES >> 20} MB; only those are read"
        if self._known.has_let_go:
            yield f"more than {MOST_ENDED:,} jobs have ended: the newest are kept"
        if not self._known.has_accounting:
            yield "keeps no accounting: ended jobs are known for a few minutes only"

    async def changed(self, timeout_s: float) -> None:
        await super().changed(max(timeout_s, self._queue_pace.wait_s(self.every_s)))

    async def detail(self, job_id: JobId) -> JobDetail | None:
        system, slash, native = job_id.partition("/")
        if not slash or system != self.system:
            return None
        return await fetch_detail(self._commands, native, self.system, self.clock.now(), self._queue)

    async def _queue(self) -> Queue:
        """The queue as the table has it; read once if nobody polls. Raises SourceError."""
        await self._ask_queue(is_first=True)
        return Queue(self._known.queue, self._known.priorities)

    async def cluster_name(self) -> str:
        """The cluster's own name, "" if it gives none. Raises SourceError."""
        answer = await self._commands.scontrol("show", "config")
        found = re.search(rb"(?m)^ClusterName\s*=\s*(\S+)", answer.printed)
        return found[1].decode("utf-8", "replace") if found else ""

    async def find(self, wanted: Wanted) -> Answer:
        return await find_kept(self._commands, wanted)


def open_source(spec: SourceSpec, window: ReadWindow) -> Slurm:
    return Slurm(Commands(spec.target), label=spec.label, since=window.since)
