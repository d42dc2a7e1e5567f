"""Slurm's words for why a job waits or ended, in plain words. Data.

Basis: the list of reasons in Slurm's manual (job_reason_codes) up to 25.05, and `job_reason_string` of 22.05.
Limits of associations and of a QOS have a word for each resource, made of three parts.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple


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
