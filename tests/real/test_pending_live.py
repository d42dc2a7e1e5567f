"""Why jobs of a real Slurm of six nodes wait: category and counts beside what Slurm's own commands say."""

import json
import os
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from jobtui.backends.slurm.client import sacct_words, squeue_words
from jobtui.formats.slurm import SACCT, SQUEUE, rows_of
from jobtui.model.clock import Nanos
from tests.commands.running import Runner
from tests.real.slurm_system import SlurmSystem, a_cluster
from tests.waiting import wait_for

TOLD: dict[str, Any] = tomllib.loads(Path(__file__).with_name("pending_plants.toml").read_text())
PARTITIONS, MORE = TOLD.pop("slurm.conf").values()
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


FIRST, PENDING = ([_plant(told) for told in plants] for plants in TOLD.values())


class Waiting(NamedTuple):
    """The cluster, and the number of each job."""

    system: SlurmSystem
    ids: dict[str, str]


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


pytestmark = pytest.mark.real

COMPETING = ("Priority", "Resources", "Nodes required", "ReqNodeNotAvail")
"""How the reasons of jobs begin that wait for nodes."""
NUMBERS = {
    "qos-jobs": ("qos", "onejob", "MaxJobsPerUser"), "qos-cpus": ("qos", "fewcpus", "GrpTRES"),
    "qos-per-job": ("qos", "tiny", "MaxTRESPerJob"), "qos-wall": ("qos", "brief", "MaxWall"),
    "account-cpus": ("assoc", "capped", "GrpTRES"), "account-jobs": ("assoc", "group", "GrpJobs"),
    "user-jobs": ("assoc", "single", "MaxJobs"), "user-cpus": ("assoc", "narrow", "MaxTRESPerJob"),
}  # fmt: skip
"""Where sacctmgr has the limit that a job runs into."""


@pytest.fixture(scope="module")
def waiting() -> Iterator[Waiting]:
    options = {"nodes": 7, "partitions": PARTITIONS, "node_options": NODES, "gres": GRES}
    for system in a_cluster(more=MORE, enforces=True, **options):
        yield _planted(system)


@pytest.fixture
def run(waiting: Waiting, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Runner:
    monkeypatch.setenv("SLURM_CONF", str(waiting.system.conf))
    monkeypatch.setenv("PATH", waiting.system.search_path)
    return Runner(capsys)


def truths(waiting: Waiting) -> dict[str, dict[str, Any]]:
    """What Slurm's own commands say of each job that waits: its reason, and what there is to count."""
    system, ids = waiting
    reasons = reasons_of(system, ids)
    return {plant.name: {"id": ids[plant.name], "category": plant.category, "reason": reasons[plant.name],
                         **_counted(system, plant.name, plant.options, ids[plant.name], reasons[plant.name])}
            for plant in PENDING}  # fmt: skip


def _counted(
    system: SlurmSystem, name: str, options: tuple[str, ...], number: str, reason: str
) -> dict[str, Any]:
    partition = options[options.index("-p") + 1]
    found: dict[str, Any] = {}
    if reason.startswith(COMPETING):
        found |= {"ahead": _ahead(system, partition, number), "nodes": _nodes(system, partition, options)}
    if name in NUMBERS:
        found["most"] = _most(system, *NUMBERS[name])
    if reason == "Licenses":
        said = dict(word.split("=") for word in system.run("scontrol", "show", "license", "matlab").split())
        found |= {"most": float(said["Total"]), "used": float(said["Used"])}
    if (start := system.run("squeue", "-h", "--start", "-j", number, "-o", "%S").strip()) != "N/A":
        found["estimate"] = start
    return found


def _ahead(system: SlurmSystem, partition: str, number: str) -> int:
    """By sprio: how many of those that wait for nodes there have a higher priority, or were there before."""
    words = ("squeue", "-h", "-t", "PENDING", "-p", partition, "-o", "%A|%r")
    rows = [line.split("|") for line in system.run(*words).splitlines()]
    priorities = _priorities(system)
    rivals = [job for job, reason in rows if reason.startswith(COMPETING)]
    return sorted(rivals, key=lambda job: (-priorities[job], int(job))).index(number)


def _priorities(system: SlurmSystem) -> dict[str, int]:
    rows = (line.split("|") for line in system.run("sprio", "-h", "-o", "%i|%Y").splitlines())
    return {number.strip(): int(priority) for number, priority in rows}


def _nodes(system: SlurmSystem, partition: str, options: tuple[str, ...]) -> dict[str, int]:
    """By sinfo: all that the job may run on, those drained, those down."""
    words = ("sinfo", "-h", "-N", "-p", partition, "-o", "%N|%T")
    rows = dict(line.split("|") for line in system.run(*words).splitlines())
    only = options[options.index("-w") + 1] if "-w" in options else None
    states = [state for node, state in rows.items() if only in (None, node)]
    drained = sum(state.startswith("drain") for state in states)
    down = sum(state.startswith("down") for state in states)
    return {"total": len(states), "drained": drained, "down": down, "up": len(states) - drained - down}


def _most(system: SlurmSystem, entity: str, name: str, limit: str) -> float:
    """The limit as sacctmgr has it, which sets it."""
    where = f"name={name}" if entity == "qos" else f"account={name}"
    printed = system.run("sacctmgr", "-n", "-P", "show", entity, "where", where, f"format={limit}")
    value = next(line for line in printed.splitlines() if line.strip())
    hours, minutes, seconds = ([*map(int, value.split(":"))] if ":" in value else [0, 0, 0])[:3]
    return hours * 60 + minutes + seconds / 60 if ":" in value else float(value.rpartition("=")[2])


def wrong_of(name: str, truth: dict[str, Any], said: dict[str, Any]) -> list[str]:
    """Where what is said of why a job waits is not what Slurm's commands say."""
    pending = said["pending"]
    nodes, limit = pending["nodes"] or {}, pending["limit"] or {}
    told = {
        "category": pending["category"],
        "ahead": pending["ahead"],
        "nodes": {key: nodes.get(key) for key in truth.get("nodes", {})},
        "most": limit.get("most"),
        "used": limit.get("used"),
        "estimate": (pending["scheduler_estimate"] or pending["eligible_at"] or "").removesuffix("Z"),
    }
    due = {key: value for key, value in truth.items() if key in told}
    return [f"{name}: {key} is {told[key]}, not {value}" for key, value in due.items() if told[key] != value]


def test_category_and_counts_are_what_slurm_says(
    waiting: Waiting, run: Runner, capsys: pytest.CaptureFixture[str]
) -> None:
    before = truths(waiting)
    said = {
        name: run("--slurm", "local", "explain", f"slurm/{one['id']}", "--json").json
        for name, one in before.items()
    }
    after = truths(waiting)
    same = {name: one for name, one in after.items() if one == before[name]}
    wrong = [line for name, one in same.items() for line in wrong_of(name, one, said[name])]
    with capsys.disabled():
        print(f"\n{len(same)} jobs that wait, {len(wrong)} figures wrong")  # noqa: T201
    assert not wrong, "\n".join(wrong)
    assert len(same) > len(PENDING) * 0.9


def test_the_priorities_of_squeue_are_those_of_sprio(waiting: Waiting) -> None:
    """So what is ahead costs no command of its own. They age between the two answers."""
    rows = waiting.system.run("squeue", "-h", "-t", "PENDING", "-o", "%A %Q").splitlines()
    queue, told = dict(map(str.split, rows)), _priorities(waiting.system)
    assert [number for number, one in told.items() if abs(one - int(queue[number])) > 1] == []


def test_a_job_that_waits_costs_one_more_command(waiting: Waiting, run: Runner) -> None:
    for name in ("resources", "qos-cpus", "held-by-user"):
        pending = run("--slurm", "local", "explain", f"slurm/{waiting.ids[name]}", "--json").json["pending"]
        assert len(pending["asked"]) == (name != "held-by-user")


def test_nodes_are_what_sinfo_says(waiting: Waiting, run: Runner) -> None:
    told = {one["node"]: one for one in run("--slurm", "local", "nodes", "--json").json["nodes"]}
    rows = waiting.system.run("sinfo", "-h", "-N", "-o", "%N|%T|%E|%C").splitlines()
    for node, state, reason, cpus in (row.split("|") for row in set(rows)):
        word = {"down*": "down", "allocated": "full", "planned": "idle"}.get(state, state.rstrip("*"))
        assert told[node]["standing"] == word
        assert told[node]["reason"] == ("" if reason == "none" else reason)
        assert told[node]["cpus_used"] == int(cpus.partition("/")[0])


def test_a_job_that_a_node_took_with_it_says_so(waiting: Waiting, run: Runner) -> None:
    said = run("--slurm", "local", "explain", f"slurm/{waiting.ids['victim']}", "--json").json
    assert said["verdict"] == "node_failed"
    assert "kernel: Oops" in said["sentence"]
    assert f"{waiting.ids['other-victim']} of nobody" in said["sentence"]


def test_a_bundle_keeps_the_pending_reason(waiting: Waiting, run: Runner, tmp_path: Path) -> None:
    bundle = tmp_path / "job.jobtui"
    number = waiting.ids["resources"]
    run("--slurm", "local", "bundle", f"slurm/{number}", "-o", str(bundle))
    live = run("--slurm", "local", "explain", f"slurm/{number}", "--json").json["pending"]
    kept = run("replay", str(bundle), "explain", f"slurm/{number}", "--json").json["pending"]
    same = ("category", "reason", "words", "ahead", "nodes", "scheduler_estimate")
    assert {name: kept[name] for name in same} == {name: live[name] for name in same}
    assert len(run("replay", str(bundle), "nodes", "--json").json["nodes"]) == len(waiting.system.nodes)


def test_the_capture_is_renewed(waiting: Waiting) -> None:
    """Only where REAL_CAPTURE names a file: what the commands print there, with the truth beside it."""
    if not (path := os.environ.get("REAL_CAPTURE")):
        pytest.skip("REAL_CAPTURE names no file")
    Path(path).write_text(json.dumps(captured(waiting, truths(waiting)), indent=1) + "\n")
    assert FIRST
