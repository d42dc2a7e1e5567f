"""Why jobs of a real Slurm wait: category and counts beside what squeue, sinfo, scontrol and sacctmgr say."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.commands.running import Runner
from tests.real.pending_plants import FIRST, PENDING, Waiting, reasons_of, waiting_cluster
from tests.real.slurm_system import SlurmSystem

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
    yield from waiting_cluster()


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
    """By squeue, which has the one of the highest priority first."""
    words = ("squeue", "-h", "-t", "PENDING", "-p", partition, "--sort=-p,i", "-o", "%A|%r")
    rows = [line.split("|") for line in system.run(*words).splitlines()]
    return [row[0] for row in rows if row[1].startswith(COMPETING)].index(number)


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


def test_what_was_seen_is_kept(waiting: Waiting, run: Runner, tmp_path: Path) -> None:
    bundle = tmp_path / "job.jobtui"
    number = waiting.ids["resources"]
    run("--slurm", "local", "bundle", f"slurm/{number}", "-o", str(bundle))
    live = run("--slurm", "local", "explain", f"slurm/{number}", "--json").json["pending"]
    kept = run("replay", str(bundle), "explain", f"slurm/{number}", "--json").json["pending"]
    same = ("category", "reason", "words", "ahead", "nodes", "scheduler_estimate")
    assert {name: kept[name] for name in same} == {name: live[name] for name in same}
    assert len(run("replay", str(bundle), "nodes", "--json").json["nodes"]) == len(waiting.system.nodes)


def test_the_capture_is_made_anew(waiting: Waiting) -> None:
    """Only where REAL_CAPTURE names a file: what the commands print there, with the truth beside it."""
    if not (path := os.environ.get("REAL_CAPTURE")):
        pytest.skip("REAL_CAPTURE names no file")
    from tests.real.pending_plants import captured

    Path(path).write_text(json.dumps(captured(waiting, truths(waiting)), indent=1) + "\n")
    assert FIRST
