"""`nodes`, and why a job waits, as commands print them: the contract, exit codes, out of recordings."""

import csv
import io
from pathlib import Path

import pytest

from tests.commands.contract import check_document
from tests.commands.running import Runner
from tests.slurm_stand_in import StandIn

SLURM = ("--slurm", "local")


@pytest.fixture
def cluster(cluster: StandIn) -> StandIn:
    cluster.waiting()
    return cluster


def test_the_contract_of_nodes(cluster: StandIn, run: Runner) -> None:
    ran = run(*SLURM, "nodes", "--json")
    assert ran.code == 0
    check_document(ran.json, "nodes")
    assert [one["node"] for one in ran.json["nodes"]][:3] == ["n5", "n6", "n7"]
    rows = list(csv.DictReader(io.StringIO(run(*SLURM, "nodes", "job:slurm/1", "--csv").out)))
    assert [(row["node"], row["standing"], row["jobs"]) for row in rows] == [("n1", "full", "slurm/1")]


@pytest.mark.parametrize("job", ["13", "18", "21", "24", "39"])
def test_the_contract_of_pending(job: str, cluster: StandIn, run: Runner) -> None:
    told = run(*SLURM, "explain", f"slurm/{job}", "--json").json
    check_document(told, "explain")
    assert told["pending"]
    assert run(*SLURM, "explain", "slurm/1", "--json").json["pending"] is None


def test_a_bundle_tells_the_same(cluster: StandIn, run: Runner, tmp_path: Path) -> None:
    bundle = str(tmp_path / "job.jobtui")
    assert run(*SLURM, "bundle", "slurm/14", "-o", bundle).code == 0
    live = run(*SLURM, "explain", "slurm/14", "--json").json["pending"]
    cluster.fault("scontrol", "away")
    kept = run("replay", bundle, "explain", "slurm/14", "--json").json["pending"]
    same = ("category", "reason", "ahead", "of", "nodes", "scheduler_estimate")
    assert {name: kept[name] for name in same} == {name: live[name] for name in same}
    nodes = run("replay", bundle, "nodes", "is:broken", "--json").json["nodes"]
    assert [one["node"] for one in nodes] == ["n5", "n6", "n7"]
