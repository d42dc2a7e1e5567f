"""A job as Slurm tells of it, whichever of its commands was asked and in whichever form it answered."""

import re
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from jobtui.model.clock import Nanos
from jobtui.model.jobs import JobStatus

SYSTEM = "slurm"
LEFT = "it left the queue, and accounting has not told yet how it ended"
"""What is said of a job that was live when it was last in the queue."""

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


NOT_STARTED: Mapping[int, str] = {
    36: "its credential was refused",
    39: "its credential had expired",
    40: "its credential was revoked",
    42: "the directory for its script could not be made",
    46: "its environment could not be set up",
    48: "its user or group could not be set",
    52: "its program could not be executed",
    53: "its output, errors or input file could not be opened",
    54: "the prolog failed on a node",
    63: "its container could not be set up",
    64: "it could not be bound to its CPUs",
}
"""Why slurmd started nothing, by the signal that Slurm writes then: its own error number, 4004 to 4032, of
which the status of a process keeps the lowest seven bits. A real-time signal that ended a program looks the
same."""


class Exit(NamedTuple):
    """How a program ended: its exit code, and the signal that ended it, 0 for none."""

    code: int
    signal: int = 0

    def __str__(self) -> str:
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
    is_whole: bool = False

    @property
    def status(self) -> JobStatus:
        return STATUSES.get(self.state, JobStatus.UNKNOWN)

    @property
    def not_started(self) -> str:
        """Why slurmd started nothing, "" where something ran: a step, a program that used memory."""
        if self.status is not JobStatus.FAILED or self.exit is None:
            return ""
        ran = any(step.max_rss or step.id not in ("batch", "extern") for step in self.steps)
        return "" if ran else NOT_STARTED.get(self.exit.signal, "")

    @property
    def is_rest(self) -> bool:
        """Whether it stands for those tasks of an array that have not begun."""
        return "[" in self.id


class Reason(NamedTuple):
    """What a job waits for, in words; whether it waits for ever unless a person does something."""

    words: str
    is_stuck: bool = False


REASONS: Mapping[str, Reason] = {
    "Priority": Reason("jobs of higher priority"),
    "Resources": Reason("free nodes"),
    "BeginTime": Reason("the time at which it may begin"),
    "Cleaning": Reason("the end of its run before"),
    "Dependency": Reason("the jobs that it depends on"),
    "DependencyNeverSatisfied": Reason("a job that it depends on, and that ended otherwise", is_stuck=True),
    "JobArrayTaskLimit": Reason("other tasks of its array, of which only some may run at once"),
    "JobHeldUser": Reason("its user, who holds it"),
    "JobHeldAdmin": Reason("an administrator, who holds it", is_stuck=True),
    "JobHoldMaxRequeue": Reason("a person: it was requeued too often and is held", is_stuck=True),
    "user_env_retrieval_failed_requeued_held": Reason(
        "a person: the environment of its user could not be had, and it is held", is_stuck=True
    ),
    "launch_failed_requeued_held": Reason("a person: it could not be launched and is held", is_stuck=True),
    "job_requeued_in_held_state": Reason("a person: it was requeued and is held", is_stuck=True),
    "AccountNotAllowed": Reason("an account that its partition allows", is_stuck=True),
    "AccountingPolicy": Reason("what accounting allows"),
    "BadConstraints": Reason("nodes with features that no node has", is_stuck=True),
    "InvalidAccount": Reason("an account that is valid", is_stuck=True),
    "InvalidQOS": Reason("a QOS that is valid", is_stuck=True),
    "QOSNotAllowed": Reason("a QOS that its partition allows", is_stuck=True),
    "PartitionDown": Reason("its partition, which is down"),
    "PartitionInactive": Reason("its partition, which is inactive"),
    "PartitionNodeLimit": Reason("more nodes than its partition gives to a job", is_stuck=True),
    "PartitionTimeLimit": Reason("more time than its partition gives to a job", is_stuck=True),
    "PartitionConfig": Reason("more than its partition is made for", is_stuck=True),
    "NodeDown": Reason("a node that is down"),
    "ReqNodeNotAvail": Reason("nodes that are down, drained or reserved"),
    "Nodes_required_for_job_are_DOWN": Reason("nodes that are down, drained or reserved"),
    "Reservation": Reason("the begin of its reservation"),
    "ReservationDeleted": Reason("a reservation that was deleted", is_stuck=True),
    "Licenses": Reason("a license"),
    "Prolog": Reason("the prolog, which is still running"),
    "BurstBufferResources": Reason("room in the burst buffer"),
    "BurstBufferStageIn": Reason("its data in the burst buffer"),
    "BurstBufferOperation": Reason("the burst buffer, which failed", is_stuck=True),
    "FrontEndDown": Reason("a front end node"),
    "DeadLine": Reason("nothing: it cannot end before its deadline", is_stuck=True),
    "FedJobLock": Reason("the other clusters of its federation"),
    "SchedDefer": Reason("the scheduler, which does not start jobs at once"),
    "MaxMemPerLimit": Reason("more memory than a job may have", is_stuck=True),
    "QOSUsageThreshold": Reason("its share: its QOS has used too much of late"),
    "None": Reason("the scheduler's next round"),
}
"""What a pending job waits for."""

ENDED: Mapping[str, str] = {
    "NonZeroExitCode": "its program ended with an exit code",
    "RaisedSignal": "its program was ended by a signal",
    "JobLaunchFailure": "it could not be launched, or its script was ended by a signal",
    "NodeDown": "a node of it went down",
    "TimeLimit": "its time was over",
    "InactiveLimit": "it was inactive for too long",
    "OutOfMemory": "it needed more memory than it had",
    "SystemFailure": "Slurm or a node of it failed",
    "BootFail": "its nodes did not start",
    "Prolog": "the prolog failed on a node",
    "BadConstraints": "no node has the features that it asked for",
    "DependencyNeverSatisfied": "a job that it depended on ended otherwise",
    "DeadLine": "its deadline was over",
    "AssociationJobLimit": "its association has all the jobs it may have",
    "NodeFail": "a node of it failed",
}
"""Why a job ended."""

WHOSE: Mapping[str, str] = {
    "Assoc": "its account or user",
    "AssocGrp": "its account or group",
    "AssocMax": "its account or user",
    "QOS": "its QOS",
    "QOSGrp": "its QOS",
    "QOSMax": "its QOS",
    "QOSMin": "its QOS",
    "Max": "its account",
}
RESOURCES: Mapping[str, str] = {
    "Cpu": "CPUs",
    "CPU": "CPUs",
    "GRES": "GPUs or other devices",
    "Gres": "GPUs or other devices",
    "Node": "nodes",
    "Mem": "memory",
    "Memory": "memory",
    "Job": "jobs",
    "Jobs": "jobs",
    "SubmitJob": "submitted jobs",
    "SubmitJobs": "submitted jobs",
    "Wall": "time",
    "WallDuration": "time",
    "Time": "time",
    "BB": "burst buffer",
    "License": "licenses",
    "Billing": "billing units",
    "Energy": "energy",
    "Resource": "resources",
    "Unknown": "resources",
}
"""Whose limit it is, and of what, in the words of limits: `QOSMaxCpuPerUserLimit`."""

_LIMIT = re.compile(
    r"(?P<whose>AssocGrp|AssocMax|Assoc|QOSGrp|QOSMax|QOSMin|QOS|Max)"
    r"(?P<what>[A-Za-z]*?)(?P<minutes>(?:Run)?Minutes)?(?:Per(?P<each>User|Account|Job|Node))?"
    r"(?:NotSatisfied)?(?:Limit)?",
    re.ASCII,
)
_PER: Mapping[str | None, str] = {
    "User": "its user has all the {what} that {whose} gives to one",
    "Account": "its account has all the {what} that {whose} gives to one",
    "Job": "it asks for more {what} than {whose} gives to a job",
    "Node": "it asks for more {what} on a node than {whose} gives",
    None: "{whose} has all the {what} it may have",
}
_LEAST = "it asks for fewer {what} than {whose} wants of a job"
STUCK_PER = frozenset({"Job", "Node"})
"""Limits that a job is over by itself, so that waiting does not help."""


def reason_of(word: str) -> Reason:
    """What a pending job waits for. A word that is not known stays as it is; "" says nothing."""
    head = word.partition(",")[0].strip("() ")
    if known := REASONS.get(head):
        return known
    limit = _LIMIT.fullmatch(head)
    if limit is None or limit["what"] not in RESOURCES:
        return Reason(word)
    what = RESOURCES[limit["what"]] + (", counted in minutes," if limit["minutes"] else "")
    is_least = limit["whose"] == "QOSMin"
    words = (_LEAST if is_least else _PER[limit["each"]]).format(what=what, whose=WHOSE[limit["whose"]])
    return Reason(f"a limit: {words}", is_least or limit["each"] in STUCK_PER)
