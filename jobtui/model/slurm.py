"""A job as Slurm tells of it, whichever of its commands was asked and in whichever form it answered."""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from jobtui.model.clock import Nanos
from jobtui.model.jobs import JobStatus

SYSTEM = "slurm"

STATUSES: Mapping[str, JobStatus] = {
    "PENDING": JobStatus.PENDING,
    "REQUEUED": JobStatus.PENDING,
    "REQUEUE_HOLD": JobStatus.PENDING,
    "REQUEUE_FED": JobStatus.PENDING,
    "SPECIAL_EXIT": JobStatus.PENDING,
    "RESV_DEL_HOLD": JobStatus.PENDING,
    "CONFIGURING": JobStatus.RUNNING,
    "POWER_UP_NODE": JobStatus.RUNNING,
    "RUNNING": JobStatus.RUNNING,
    "RESIZING": JobStatus.RUNNING,
    "SIGNALING": JobStatus.RUNNING,
    "STAGE_OUT": JobStatus.RUNNING,
    "STOPPED": JobStatus.RUNNING,
    "SUSPENDED": JobStatus.RUNNING,
    "COMPLETING": JobStatus.RUNNING,
    "COMPLETED": JobStatus.COMPLETED,
    "CANCELLED": JobStatus.CANCELED,
    "REVOKED": JobStatus.CANCELED,
    "FAILED": JobStatus.FAILED,
    "BOOT_FAIL": JobStatus.FAILED,
    "DEADLINE": JobStatus.FAILED,
    "LAUNCH_FAILED": JobStatus.FAILED,
    "NODE_FAIL": JobStatus.FAILED,
    "OUT_OF_MEMORY": JobStatus.FAILED,
    "PREEMPTED": JobStatus.FAILED,
    "RECONFIG_FAIL": JobStatus.FAILED,
    "TIMEOUT": JobStatus.FAILED,
}
"""What a job in each of Slurm's states is doing. A job that completes still holds its nodes."""

BY_PROGRAM = frozenset({"FAILED", "COMPLETED", "OUT_OF_MEMORY"})
"""States in which the exit code tells how the program ended; in others each command tells another one."""


class Exit(NamedTuple):
    """How a program ended: its exit code, and the signal that ended it, 0 for none."""

    code: int
    signal: int = 0

    def __str__(self) -> str:
        """As Slurm writes it."""
        return f"{self.code}:{self.signal}"


class SlurmStep(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a job: `batch` is its script, `extern` what came in from outside, a number one srun."""

    id: str
    name: str = ""
    state: str = ""
    exit: Exit | None = None
    started_at: Nanos | None = None
    ended_at: Nanos | None = None
    max_rss: str = ""
    nodes: str = ""


class SlurmJob(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A job, a task of an array (`id` is `22_1`), or the rest of an array that has not begun (`4_[3-4%2]`).

    `raw` is the number that each of them has of its own, `array` that of the array, "" for none, and `task`
    which task or tasks of it. `expected_at` is when Slurm means to start one that waits. `reason` is its own
    word for why it waits or ended. `canceled_by` is a uid or a name. Times are None and texts "" where the
    command that was asked does not tell.
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
    exit: Exit | None = None
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
    comment: str = ""
    command: str = ""
    directory: str = ""
    stdout: str = ""
    stderr: str = ""
    steps: tuple[SlurmStep, ...] = ()

    @property
    def status(self) -> JobStatus:
        """What it is doing, in words that hold for every system."""
        return STATUSES.get(self.state, JobStatus.UNKNOWN)

    @property
    def is_rest(self) -> bool:
        """Whether it stands for those tasks of an array that have not begun."""
        return "[" in self.id
