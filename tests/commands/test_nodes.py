"""`nodes`, and why a job waits, as commands print them: the contract, exit codes, out of recordings."""

import csv
import io
from pathlib import Path

import pytest

from jobtui.model.pending import Category
from tests.commands.contract import (
    check_document,
    each,
    has,
    mapping,
    number,
    one_of,
    or_null,
    text,
    texts,
    time,
)
from tests.commands.running import Runner
from tests.slurm_stand_in import StandIn

HELD = each({"job": text, "user": text, "has": text, "held_s": or_null(number), "usual_s": or_null(number)})
PENDING = {
    "category": one_of(*Category), "reason": text, "words": text, "since": or_null(time), "queue": text,
    "ahead": or_null(number), "of": or_null(number), "nodes": or_null(mapping), "limit": or_null(mapping),
    "holders": HELD, "next": HELD, "needs": each({"what": text, "how": text}), "eligible_at": or_null(time),
    "scheduler_estimate": or_null(time), "history": each({"at": time, "reason": text}), "asked": texts,
}  # fmt: skip
SLURM = ("--slurm", "local")


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    made = StandIn(tmp_path)
    monkeypatch.setenv("PATH", made.search_path)
    made.waiting()
    return made


def test_the_contract_of_nodes(cluster: StandIn, run: Runner) -> None:
    ran = run(*SLURM, "nodes", "--json")
    assert ran.code == 0
    check_document(ran.json, "nodes", ["clusters", "nodes"])
    assert [one["node"] for one in ran.json["nodes"]][:3] == ["n5", "n6", "n7"]
    rows = list(csv.DictReader(io.StringIO(run(*SLURM, "nodes", "job:slurm/1", "--csv").out)))
    assert [(row["node"], row["standing"], row["jobs"]) for row in rows] == [("n1", "full", "slurm/1")]


def test_what_is_asked_wrongly_or_of_nobody(run: Runner, cluster: StandIn) -> None:
    assert run(*SLURM, "nodes", "nosuch:x").code == 2
    cluster.fault("sdiag", "slurmctld hangs")
    assert run(*SLURM, "nodes").code == 5


@pytest.mark.parametrize("job", ["13", "18", "21", "24", "39"])
def test_the_contract_of_pending(job: str, cluster: StandIn, run: Runner) -> None:
    has(run(*SLURM, "explain", f"slurm/{job}", "--json").json["pending"], PENDING)
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
