"""Jobs and nodes as Slurm reports them, whichever command was asked, in whichever form it answered."""

import re
from typing import NamedTuple

import msgspec

from jobtui.model.clock import SECOND, Nanos
from jobtui.model.jobs import SLURM, Category, JobStatus, Pending, statuses_of
from jobtui.model.patterns import regex
from jobtui.model.tables import tables_of

STEP_COLUMNS = "JobID,State,ExitCode,DerivedExitCode,Elapsed,Timelimit,ReqMem,MaxRSS,NodeList"
"""The columns of sacct that a person needs about a job that ended."""
LEFT = "it left the queue; accounting does not say yet how it ended"
"""The words for a job that was live when it was last in the queue."""

STATUSES = statuses_of(SLURM)

ALSO_LOST, NODE_NOT_KNOWN = "also lost", "node not known"
"""Facts of a job that a node took with it: the other jobs, and why the node is not named."""
KNOWN_BY = "known by"
"""The fact that only one of Slurm's daemons knows a job."""
HELD_STATES = frozenset({"REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"})
BY_PROGRAM = frozenset({"FAILED", "COMPLETED", "OUT_OF_MEMORY"})
"""States in which the exit code is that of the program; in others each command gives another one."""


def words_of(kind: str, word: str | int) -> str | None:
    """What one of Slurm's words or numbers means, by a table of `slurm.toml`; None for one not known."""
    words: str | None = tables_of("jobtui.model", "slurm")[kind].get(str(word))
    return words


LAUNCHED_S = 60
"""A job that lasted longer was launched."""


class SlurmExit(NamedTuple):
    """How a program ended: its exit code, and the signal that ended it, 0 for none."""

    code: int
    signal: int = 0

    def __str__(self) -> str:
        return f"{self.code}:{self.signal}"


HANGUP = SlurmExit(0, 1)
"""The end that sacct writes as exit code 1."""


class SlurmStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a job: `batch` is its script, `extern` what came in from outside, a number one srun."""

    id: str
    name: str = ""
    state: str = ""
    exit: SlurmExit | None = None
    started_at: Nanos | None = None
    ended_at: Nanos | None = None
    max_rss: str = ""
    nodes: str = ""


class SlurmJob(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A job, a task of an array (`id` is `22_1`), or the rest of an array that has not begun (`4_[3-4%2]`).

    `raw` is the number that each of them has of its own, `array` that of the array, "" for none, and `task`
    which task or tasks of it. `expected_at` is when Slurm means to start one that waits. `reason` is its own
    word for why it waits or ended. `canceled_by` is a uid or a name. Times are None and texts "" where the
    command that was asked does not tell. `is_whole` says that its exit code is as it was: sacct writes those
    above 127 less 128.
    """

    id: str
    raw: str = ""
    array: str = ""
    task: str = ""
    name: str = ""
    user: str = ""
    account: str = ""
    partition: str = ""
    qos: str = ""
    cluster: str = ""
    state: str = ""
    reason: str = ""
    exit: SlurmExit | None = None
    canceled_by: str = ""
    submitted_at: Nanos | None = None
    eligible_at: Nanos | None = None
    started_at: Nanos | None = None
    ended_at: Nanos | None = None
    expected_at: Nanos | None = None
    limit_s: float | None = None
    nodes: str = ""
    node_count: str = ""
    cpus: str = ""
    memory: str = ""
    restarts: int = 0
    dependency: str = ""
    licenses: str = ""
    comment: str = ""
    command: str = ""
    directory: str = ""
    stdout: str = ""
    stderr: str = ""
    steps: tuple[SlurmStep, ...] = ()
    is_whole: bool = False

    @property
    def status(self) -> JobStatus:
        return STATUSES.get(self.state, JobStatus.UNKNOWN)

    @property
    def never_began(self) -> bool:
        """Whether it ended without nodes, and so no program of it ran since it was submitted or requeued."""
        return self.status in (JobStatus.FAILED, JobStatus.CANCELED) and not self.nodes

    @property
    def not_started(self) -> str:
        """Why slurmd started nothing, "" where something ran: a step, a program that used memory or time."""
        if self.status not in (JobStatus.FAILED, JobStatus.CANCELED) or self.exit is None:
            return ""
        ran = (self.ended_at or 0) - (self.started_at or self.ended_at or 0) > LAUNCHED_S * SECOND
        ran = ran or any(step.max_rss or step.id not in ("batch", "extern") for step in self.steps)
        return "" if ran else words_of("not_started", self.exit.signal) or ""

    @property
    def is_rest(self) -> bool:
        """Whether it stands for those tasks of an array that have not begun."""
        return "[" in self.id


class Reason(NamedTuple):
    """What a job waits for, in words; whether it waits for ever unless a person does something; its kind."""

    words: str
    is_stuck: bool = False
    category: Category = Category.OTHER


LIMIT = regex(
    r"(?P<whose>AssocGrp|AssocMax|Assoc|QOSGrp|QOSMax|QOSMin|QOS|Max)"
    r"(?P<what>[A-Za-z]*?)(?P<minutes>(?:Run)?Minutes)?(?:Per(?P<each>User|Account|Job|Node))?"
    r"(?:NotSatisfied)?(?:Limit)?",
    re.ASCII,
)
STUCK_PER = frozenset({"Job", "Node"})
"""Limits that a job is over by itself, so that waiting does not help."""


def reason_of(word: str) -> Reason:
    """What a pending job waits for. A word that is not known stays as it is; "" says nothing."""
    head = word.partition(",")[0].strip("() ")
    tables = tables_of("jobtui.model", "slurm")
    if known := tables["waits"].get(head):
        category, words, *stuck = known
        return Reason(words, bool(stuck), Category(category))
    limit = LIMIT.fullmatch(head)
    if limit is None or limit["what"] not in tables["resources"]:
        return Reason(word)
    what = tables["resources"][limit["what"]] + (", counted in minutes," if limit["minutes"] else "")
    is_least = limit["whose"] == "QOSMin"
    words = tables["limits"]["least" if is_least else limit["each"] or "all"]
    words = words.format(what=what, whose=tables["whose"][limit["whose"]])
    is_stuck = is_least or limit["each"] in STUCK_PER
    return Reason(f"a limit: {words}", is_stuck, Category.LIMIT)


def queued_as(state: str, word: str, since: Nanos | None, queue: str, estimate: Nanos | None) -> Pending:
    """Why a job waits, by its state and Slurm's reason alone."""
    reason, is_held = reason_of(word or "None"), state in HELD_STATES
    return Pending(
        category=Category.HELD if is_held else reason.category,
        reason=word,
        words=reason.words,
        since=since,
        queue=queue,
        scheduler_estimate=estimate,
        is_stuck=is_held or reason.is_stuck,
    )


BROKEN = frozenset({"DOWN", "UNKNOWN", "ERROR", "FUTURE", "INVAL", "INVALID", "INVALID_REG", "FAIL"})
"""States of nodes that take no job until somebody mends them."""
NO_ANSWER = frozenset({"NOT_RESPONDING", "REBOOT_ISSUED", "POWERING_DOWN"})
DRAINED = frozenset({"DRAIN", "DRAINED", "DRAINING"})
SET_APART = frozenset({"RESERVED", "MAINT", "MAINTENANCE"})


class Node(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One node. `states` are the scheduler's own words with a blank between, `gres` such as `gpu:2,fpga:1`.

    `reason` is why it is down or drained, set by `by` at `since`.
    """

    name: str
    states: str
    partitions: str = ""
    cpus: int = 0
    cpus_used: int = 0
    memory_mb: int = 0
    memory_used_mb: int = 0
    features: str = ""
    gres: str = ""
    gres_used: str = ""
    reason: str = ""
    by: str = ""
    since: Nanos | None = None

    def is_any(self, words: frozenset[str]) -> bool:
        return not words.isdisjoint(self.states.split())

    @property
    def is_down(self) -> bool:
        return self.is_any(BROKEN | NO_ANSWER)

    @property
    def is_drained(self) -> bool:
        return self.is_any(DRAINED)

    @property
    def needs_person(self) -> bool:
        return self.is_down or self.is_drained


class Partition(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A partition; `limit_s` is how long a job may run there, None where nothing limits it."""

    name: str
    state: str
    nodes: int = 0
    cpus: int = 0
    most_nodes: int | None = None
    limit_s: float | None = None


class Controller(msgspec.Struct, frozen=True, kw_only=True):
    """The scheduler's daemons: what waits for accounting, and how long cycles took, in ms."""

    dbd_backlog: int | None = None
    agent_backlog: int | None = None
    threads: int | None = None
    cycle_ms: float | None = None
    backfill_ms: float | None = None
    backfill_at: Nanos | None = None
    queued: int | None = None


class Cluster(msgspec.Struct, frozen=True, kw_only=True):
    """A whole cluster, as a source reported it at one time."""

    source: str
    at: Nanos
    nodes: tuple[Node, ...] = ()
    partitions: tuple[Partition, ...] = ()
    controller: Controller | None = None
