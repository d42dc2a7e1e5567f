"""A real Slurm of six nodes in which some thirty jobs wait, each for a reason that was planted."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from jobtui.backends.slurm.client import sacct_words, squeue_words
from jobtui.formats.slurm import SACCT, SQUEUE, rows_of
from jobtui.model.clock import Nanos
from tests.real.slurm_system import SlurmSystem, a_cluster
from tests.waiting import wait_for

PARTITIONS = """\
PartitionName=debug Nodes=n1,n2 Default=YES MaxTime=60 State=UP
PartitionName=small Nodes=n3 MaxTime=60 State=UP
PartitionName=gpu Nodes=n4 MaxTime=60 State=UP
PartitionName=feature Nodes=n4 MaxTime=60 State=UP
PartitionName=many Nodes=n4 MaxTime=60 State=UP
PartitionName=drained Nodes=n5,n7 MaxTime=60 State=UP
PartitionName=dead Nodes=n6 MaxTime=60 State=UP
PartitionName=closed Nodes=n3 MaxTime=60 State=DOWN
PartitionName=asleep Nodes=n3 MaxTime=60 State=UP
PartitionName=limited Nodes=n1,n2 MaxTime=10 MaxNodes=1 State=UP
"""
MORE = """\
EnforcePartLimits=NO
GresTypes=gpu,fpga
Licenses=matlab:2
SlurmdTimeout=10
JobRequeue=0"""
NODES = {"n4": "Gres=gpu:2,fpga:1 Features=fast"}
GRES = "NodeName=n4 Name=gpu File={root}/gpu[0-1]\nNodeName=n4 Name=fpga File={root}/fpga0\n"
ACCOUNTS = {"capped": "GrpTRES=cpu=2", "group": "GrpJobs=1", "single": "", "narrow": ""}
OF_USER = {"single": "MaxJobs=1", "narrow": "MaxTRESPerJob=cpu=2"}
QOS = {"onejob": "MaxJobsPerUser=1", "fewcpus": "GrpTRES=cpu=2", "tiny": "MaxTRESPerJob=cpu=1",
       "brief": "MaxWallDurationPerJob=5"}  # fmt: skip
SETTLES_S = 120.0
SEPARATOR = "~5e9a7a70~"


class Plant(NamedTuple):
    """A job: how it is submitted, what Slurm calls the reason ("" for one of several), our category."""

    name: str
    options: tuple[str, ...]
    reason: str = ""
    category: str = ""
    script: str = "sleep 3600"
    act: tuple[str, ...] = ()


def _plant(told: dict[str, Any]) -> Plant:
    lists: dict[str, Any] = {name: tuple(told[name]) for name in ("options", "act") if name in told}
    return Plant(**{**told, **lists})


FIRST, PENDING = (
    [_plant(told) for told in plants]
    for plants in tomllib.loads(Path(__file__).with_suffix(".toml").read_text()).values()
)


class Waiting(NamedTuple):
    """The cluster, and the number of each job."""

    system: SlurmSystem
    ids: dict[str, str]


def waiting_cluster() -> Iterator[Waiting]:
    options = {"nodes": 7, "partitions": PARTITIONS, "node_options": NODES, "gres": GRES}
    for system in a_cluster(more=MORE, enforces=True, **options):
        yield _planted(system)


def _planted(system: SlurmSystem) -> Waiting:
    _add_limits(system)
    ids: dict[str, str] = {}
    for plant in FIRST:
        ids[plant.name] = _submit(system, plant, ids)
    running = {ids[plant.name] for plant in FIRST if plant.name != "fails"}
    wait_for(lambda: running <= _numbers(system, "RUNNING"), timeout_s=SETTLES_S, step_s=0.5)
    wait_for(lambda: ids["fails"] not in _numbers(system, "RUNNING,PENDING"), timeout_s=SETTLES_S, step_s=0.5)
    _reserve(system)
    for name, why in (("n5", "disk: replace sda"), ("n7", "swap fan")):
        system.run("scontrol", "update", f"NodeName={name}", "State=DRAIN", f"Reason={why}")
    for plant in PENDING:
        ids[plant.name] = _submit(system, plant, ids)
        if plant.act:
            system.run(*(word.format(ids[plant.name]) for word in plant.act))
    system.run("scontrol", "update", "PartitionName=asleep", "State=INACTIVE")
    system.run("scontrol", "update", "NodeName=n4", "AvailableFeatures=slow", "ActiveFeatures=slow")
    system.kill_node("n6")
    system.run("scontrol", "update", "NodeName=n6", "State=DOWN", "Reason=kernel: Oops")
    reasons = {plant.name: plant.reason for plant in PENDING if plant.reason}
    wait_for(lambda: reasons.items() <= reasons_of(system, ids).items(), timeout_s=SETTLES_S, step_s=1.0)
    return Waiting(system, ids)


def reasons_of(system: SlurmSystem, ids: dict[str, str]) -> dict[str, str]:
    lines = system.run("squeue", "-h", "-a", "-t", "PENDING", "-o", "%A %r").splitlines()
    told = {number: reason for number, _, reason in (line.partition(" ") for line in lines)}
    return {name: told[number] for name, number in ids.items() if number in told}


def _numbers(system: SlurmSystem, states: str) -> set[str]:
    return set(system.run("squeue", "-h", "-t", states, "-o", "%A").split())


def _submit(system: SlurmSystem, plant: Plant, ids: dict[str, str]) -> str:
    options = [option.format_map(ids) for option in plant.options]
    return system.submit(plant.script, f"--job-name={plant.name}", *options)


def _add_limits(system: SlurmSystem) -> None:
    user = "nobody"
    for name, limit in QOS.items():
        system.run("sacctmgr", "-i", "add", "qos", name, *filter(None, [limit]))
    for name, limit in ACCOUNTS.items():
        system.run("sacctmgr", "-i", "add", "account", name, "Description=x", "Organization=lab",
                   *filter(None, [limit]))  # fmt: skip
        system.run("sacctmgr", "-i", "add", "user", user, f"Account={name}",
                   *filter(None, [OF_USER.get(name, "")]))  # fmt: skip
    for account in ("science", *ACCOUNTS):
        system.run("sacctmgr", "-i", "modify", "user", user, "where", f"Account={account}", "set",
                   f"QOS+={','.join(QOS)}")  # fmt: skip


def _reserve(system: SlurmSystem) -> None:
    system.run("scontrol", "create", "reservation", "ReservationName=later", "StartTime=now+3hours",
               "Duration=60", "Nodes=n3", "Users=nobody")  # fmt: skip


def captured(waiting: Waiting, truth: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What the commands print that jobtui runs, by the last word of each, as slurm_stand_in.py gives it."""
    system, ids = waiting
    shows = ["node", "partition", "licenses", "flags=qos", "flags=assoc", *("closed", "asleep", "limited")]
    texts = {name: system.run("scontrol", "--oneliner", "--details", *_show(name), name) for name in shows}
    texts["later"] = system.run("scontrol", "--oneliner", "show", "reservation", "later")
    texts["n6"] = system.run("scontrol", "--oneliner", "--details", "show", "node", "n6")
    for number in ids.values():
        texts[number] = system.run("scontrol", "--all", "show", "job", number)
    told = {
        "squeue": _rows(system.run(*squeue_words(SEPARATOR)), tuple(SQUEUE)),
        "sacct": _rows(system.run(*sacct_words(SEPARATOR, Nanos(0))), tuple(SACCT)),
        "scontrol": texts,
        "sdiag": system.run("sdiag"),
        "truth": truth,
        "ids": ids,
    }
    moved: dict[str, Any] = json.loads(json.dumps(told).replace(str(system.root), "/srv/slurm"))
    return moved


def _show(name: str) -> tuple[str, ...]:
    if name.startswith("flags="):
        return ("show", "assoc_mgr")
    return ("show", "partition") if name in PARTITIONS and name != "partition" else ("show",)


def _rows(printed: str, fields: tuple[str, ...]) -> list[dict[str, str]]:
    return rows_of(printed.encode(), SEPARATOR, fields)
