"""What explaining a job gives: a verdict, how sure it is, and what it rests on."""

from enum import StrEnum
from typing import NamedTuple, Self

import msgspec

from jobtui.model.clock import Nanos
from jobtui.model.commands import Command
from jobtui.model.ids import JobId
from jobtui.model.jobs import Category, Pending
from jobtui.model.memory import JobMemory
from jobtui.model.numbers import whole_of
from jobtui.model.ops import Op, Step


class Concern(StrEnum):
    FINE = "fine"
    FAILED = "failed"
    STUCK = "stuck"
    OPEN = "open"


class Code(StrEnum):
    """What is the matter with a job. The words are stable; scripts depend on them.

    Each with what it asks of the reader, and what a job waits for if its system does not say.
    """

    _value_: str
    concern: Concern
    category: Category

    def __new__(cls, word: str, concern: Concern, category: Category = Category.OTHER) -> Self:
        code = str.__new__(cls, word)
        code._value_, code.concern, code.category = word, concern, category
        return code

    RUNNING = "running", Concern.FINE
    COMPLETED = "completed", Concern.FINE
    WAITING_OP_SLOT = "waiting_op_slot", Concern.FINE, Category.SLOT
    WAITING_RUN_DIR_SLOT = "waiting_run_dir_slot", Concern.FINE, Category.SLOT
    WAITING_CPU_SLOT = "waiting_cpu_slot", Concern.FINE, Category.SLOT
    AGENT_STARTING = "agent_starting", Concern.FINE, Category.AGENT
    AGENT_NEVER_STARTED = "agent_never_started", Concern.STUCK, Category.AGENT
    AGENT_LOST = "agent_lost", Concern.FAILED
    SUPERVISOR_RESTARTED = "supervisor_restarted", Concern.FAILED
    TIMED_OUT = "timed_out", Concern.FAILED
    CANCELED_BY_USER = "canceled_by_user", Concern.FINE
    PROGRAM_FAILED = "program_failed", Concern.FAILED
    KILLED_BY_SIGNAL = "killed_by_signal", Concern.FAILED
    PREPARE_FAILED = "prepare_failed", Concern.FAILED
    SBATCH_LOGIN_NEEDED = "sbatch_login_needed", Concern.STUCK, Category.LOGIN
    SBATCH_QUEUED = "sbatch_queued", Concern.FINE, Category.OTHER
    SBATCH_FAILED = "sbatch_failed", Concern.FAILED
    RUN_DIR_GONE = "run_dir_gone", Concern.FAILED
    NEVER_RUN = "never_run", Concern.FINE
    PURGED = "purged", Concern.FINE
    STALE_RECORD = "stale_record", Concern.STUCK
    REPLY_LOST = "reply_lost", Concern.STUCK
    CANCEL_UNCONFIRMED = "cancel_unconfirmed", Concern.STUCK
    WAITING_PARENTS = "waiting_parents", Concern.FINE, Category.DEPENDENCY
    STAGING = "staging", Concern.FINE, Category.TRANSFER
    STAGING_FAILED = "staging_failed", Concern.STUCK, Category.TRANSFER
    POSTPROCESS_FAILED = "postprocess_failed", Concern.FAILED
    WAITING_ALLOCATION = "waiting_allocation", Concern.FINE, Category.ALLOCATION
    NO_ALLOCATION = "no_allocation", Concern.STUCK, Category.ALLOCATION
    ALLOCATION_KILLED = "allocation_killed", Concern.FAILED
    LAUNCHER_STALE = "launcher_stale", Concern.STUCK
    SITE_AGENT_DOWN = "site_agent_down", Concern.STUCK, Category.SITE
    SLURM_QUEUED = "slurm_queued", Concern.FINE
    HELD = "held", Concern.STUCK, Category.HELD
    NEVER_STARTS = "never_starts", Concern.STUCK
    REQUEUED = "requeued", Concern.FINE, Category.RETRY
    CANCELED = "canceled", Concern.FINE
    OUT_OF_MEMORY = "out_of_memory", Concern.FAILED
    NODE_FAILED = "node_failed", Concern.FAILED
    PREEMPTED = "preempted", Concern.FAILED
    LAUNCH_FAILED = "launch_failed", Concern.FAILED
    IDLE = "idle", Concern.FINE, Category.MACHINE
    UNKNOWN = "unknown", Concern.OPEN


RELIABLE = 0.8
"""A verdict of at least this confidence can be relied on."""


class Fact(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a source says, such as a raw line that a verdict rests on.

    `what` says in the words of the flow what it tells. `text` is as written: neither masked nor
    safe for a terminal. `line` is 0 for what is no line of a log but a fact of a record. `above` are the
    lines before it that say where in the program it was.
    """

    text: str
    source: str
    what: str = ""
    at: Nanos | None = None
    line: int = 0
    cursor: str | None = None
    above: tuple[str, ...] = ()


class Cause(NamedTuple):
    """The line of a program's output that says why it failed, as written, without colour, time and rank.

    `line` counts from 1 in the file at `source`; None where the file is too long to count. `why` says what
    it was chosen by. `above` are the lines right before it. With `is_end` it only tells how it ended.
    """

    text: str
    line: int | None
    family: str
    confidence: float
    why: str
    source: str = ""
    above: tuple[str, ...] = ()
    is_end: bool = False
    weighed: int = 1

    @property
    def rank(self) -> tuple[bool, float]:
        """Higher for the better of two causes of one failure."""
        return not self.is_end, self.confidence


class Killer(NamedTuple):
    """Who ended a program, by what the journal of its host holds.

    `words` is "" where nothing there can be tied to the job, and `doubt` tells why it is not known then.
    `tied` are the messages about it, `near` others around its end; without `is_read` none were read.
    """

    words: str = ""
    confidence: float = 0.0
    tied: tuple[Fact, ...] = ()
    near: tuple[Fact, ...] = ()
    doubt: str = ""
    is_read: bool = True


class Contradiction(NamedTuple):
    """Two facts that cannot both be so. Nothing says which of them is right."""

    about: str
    one: Fact
    other: Fact


class NextStep(NamedTuple):
    """Something to do: why, and the command to type, ready to be copied. It is never run."""

    why: str
    command: Command


class UsualTime(NamedTuple):
    """How long something takes here, in seconds, out of `n` times."""

    n: int
    p50_s: float
    p99_s: float


class Slot(StrEnum):
    """What an op may wait for, in the order in which it is asked for."""

    OP = "op_slot"
    RUN_DIR = "run_dir_slot"
    CPU = "cpu_slot"


class Holder(NamedTuple):
    """An op that has, by inference, the slot that another waits for.

    `held_s` since it was sent; `limit_s` how long it may run, `usual_s` how long such ops do, `cancel_s`
    since it was to be canceled, and `is_confirmed` whether its agent answered; None if none was asked for.
    """

    op: Op
    held_s: float | None
    limit_s: float | None = None
    cancel_s: float | None = None
    is_confirmed: bool | None = None
    usual_s: float | None = None


class OpWait(NamedTuple):
    """One op that waits, since when, for what, behind how many others, and who has it."""

    op: Op
    slot: Slot
    step: Step
    waited_s: float | None
    ahead: int
    holders: tuple[Holder, ...]


class Chain(NamedTuple):
    """From an op to the end of what it waits for. `cycle` names ops that wait for each other.

    `range_s` is the least and the most seconds until the first op gets its slot, None where nothing tells.
    """

    waits: tuple[OpWait, ...] = ()
    cycle: tuple[Op, ...] = ()
    range_s: tuple[float, float] | None = None


class RunHistory(NamedTuple):
    """Earlier runs of the same job by number: those that failed as the last one, the last good one.

    Where none was good, `good_job` is the last good job of the same user and kind before it. `differs` says
    in words, masked, what is known to be otherwise in the last one than in the good one.
    """

    as_runs: tuple[int, ...]
    good_run: int | None = None
    good_at: Nanos | None = None
    differs: tuple[str, ...] = ()
    good_job: str | None = None


def doubt_words(doubts: tuple[str, ...]) -> str:
    """What is added to the sentence of a verdict that is in doubt."""
    return f" Not sure: {'; '.join(doubts)}." if doubts else ""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to "what is the matter with this job".

    `last_step` is the last step seen of the flow, at `last_at`; `missing_step` the one that should have
    followed, None when nothing is missing, and `overdue_s` for how long, beyond `limit_s`. `blind_spots` say
    what could not be read; with each `confidence` (0 to 1) is the lower. `pending` is why it waits.
    """

    job_id: JobId
    code: Code
    sentence: str
    confidence: float
    last_step: str | None = None
    last_at: Nanos | None = None
    missing_step: str | None = None
    waited_s: float | None = None
    limit_s: float | None = None
    usual: UsualTime | None = None
    evidence: tuple[Fact, ...] = ()
    next: tuple[NextStep, ...] = ()
    blind_spots: tuple[str, ...] = ()
    contradictions: tuple[Contradiction, ...] = ()
    waits: Chain = Chain()
    rests_on: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    cause: Cause | None = None
    history: RunHistory | None = None
    remembered: JobMemory | None = None
    pending: Pending | None = None

    @property
    def concern(self) -> Concern:
        return self.code.concern

    @property
    def claim(self) -> str:
        """Its sentence without its doubts."""
        return self.sentence.removesuffix(doubt_words(self.doubts))

    @property
    def is_reliably_bad(self) -> bool:
        """Whether somebody should act on it, as it is sure enough for that."""
        return self.concern in (Concern.FAILED, Concern.STUCK) and self.confidence >= RELIABLE


SIGNALS, MEMORY_SIGNAL = 31, 9
"""The last signal that is no real-time signal; that by which the kernel ends programs if memory is short."""
BY_SHELL, BY_ITSELF = 128, "a program may also give such an exit code itself"
"""What a shell adds to the signal that ended a program, and the doubt about that."""


def signal_of(code: object) -> int:
    """The signal that an exit code tells of, 0 for none: Python writes signal 9 as -9, a shell as 137."""
    number = whole_of(code) or 0
    signal = -number if number < 0 else number - BY_SHELL
    return signal if 0 < signal <= SIGNALS else 0
