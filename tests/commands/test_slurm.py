"""The commands on a cluster: the captured one, answered by programs that stand in for Slurm's."""

from pathlib import Path

import pytest

from tests.commands.running import AT, Runner
from tests.formats.slurm_captures import DIRECTORY
from tests.slurm_stand_in import StandIn


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandIn:
    made = StandIn(tmp_path)
    monkeypatch.setenv("PATH", made.search_path)
    return made.captured()


@pytest.fixture
def run(cluster: StandIn, capsys: pytest.CaptureFixture[str]) -> Runner:
    return Runner(capsys)


LOCAL = ("--slurm", "local", "--at", AT)


def test_jobs_are_a_table_as_any_others(run: Runner) -> None:
    rows = {row["id"]: row for row in run(*LOCAL, "jobs", "--json").json["jobs"]}
    assert len(rows) == 18
    assert rows["slurm/4_3"]["status"] == "failed"
    assert rows["slurm/4_3"]["exit"] == "1:0"
    assert rows["slurm/9"]["status"] == "running"


@pytest.mark.parametrize(
    ("words", "ids"),
    [("system:slurm status:running", {"9"}), ("name:hydro", {"3", "9"}), ("native:CANCELLED", {"3"}),
     ("batch:10 status:failed", {"10_3"}), ("exit:0:11", {"5", "11"}),
     ("reason:NonZeroExitCode", {"2", "8", "4_3", "10_3"}), ("error:SIGSEGV", {"5", "11"}),
     ("partition:debug status:canceled", {"3"})],
)  # fmt: skip
def test_filters_know_what_slurm_tells(run: Runner, words: str, ids: set[str]) -> None:
    rows = run(*LOCAL, "jobs", *words.split(), "--json").json["jobs"]
    assert {row["id"].removeprefix("slurm/") for row in rows} == ids


def test_what_never_starts_is_to_be_looked_at(run: Runner, cluster: StandIn) -> None:
    waits = {"%T": "PENDING", "%N": "", "%r": "Priority"}
    cluster.queue({**waits}, {**waits, "%i": "2", "%A": "2", "%r": "BadConstraints"})
    (row,) = run(*LOCAL, "jobs", "flag:stuck", "--json").json["jobs"]
    assert (row["id"], row["flags"]) == ("slurm/2", ["never_starts"])
    assert "nodes with features that no node has" in run(*LOCAL, "jobs", "flag:never_starts").out


@pytest.mark.parametrize("thing", ["slurm/4_3", "4_3", "17", "slurm/17", "sbatch_id=17", "#17"])
def test_a_task_is_found_by_either_number(run: Runner, thing: str) -> None:
    shown = run(*LOCAL, "show", thing, "--json").json
    assert shown["job"]["id"] == "slurm/4_3"
    assert shown["job"]["native"]["slurm"]["stdout"] == f"{DIRECTORY}/sweep-4_3.out"


def test_an_array_is_told_as_a_whole(run: Runner) -> None:
    ran = run(*LOCAL, "show", "slurm/4")
    assert "3 COMPLETED, 1 FAILED" in ran.out
    assert ran.code == 1
    found = run(*LOCAL, "find", "4", "--json").json["candidates"]
    assert {f"slurm/4_{task}" for task in range(1, 5)} <= {one["id"] for one in found}


def test_a_record_is_shown_with_its_steps_and_paths(run: Runner) -> None:
    out = run(*LOCAL, "show", "slurm/2").out
    for words in ("exit code 3", f"{DIRECTORY}/lattice-2.err", "step batch", "science", "2 min"):
        assert words in out


def test_explain_and_timeline_know_it(run: Runner) -> None:
    said = run(*LOCAL, "explain", "slurm/3", "--json").json
    assert said["verdict"] == "canceled"
    assert "canceled by root" in said["sentence"]
    failed = run(*LOCAL, "explain", "slurm/2")
    assert failed.code == 1
    assert f"tail -n 50 -- {DIRECTORY}/lattice-2.err" in failed.out
    assert "jobtui --slurm local" in failed.out
    steps = run(*LOCAL, "timeline", "slurm/2", "--json").json["ops"][0]["steps"]
    assert [(step["component"], step["step"]) for step in steps] == [
        ("slurm", "PENDING"), ("slurm", "RUNNING"), ("nodes", "FAILED"),
    ]  # fmt: skip


def test_two_clusters_are_told_apart(run: Runner) -> None:
    both = ("--slurm", "ssh://cori", "--slurm", "ssh://theta", "--at", AT)
    rows = run(*both, "jobs", "status:running", "--json").json["jobs"]
    assert {row["id"] for row in rows} == {"slurm@cori/9", "slurm@theta/9"}
    assert run(*both, "show", "slurm@theta/9", "--json").json["job"]["id"] == "slurm@theta/9"
    ambiguous = run(*both, "show", "slurm/9")
    assert "ambiguous" in ambiguous.err


def test_incidents_group_what_slurm_lost(run: Runner) -> None:
    out = run(*LOCAL, "incidents", "--json", "--since", "2h")
    assert "program_failed" in out.out
    assert "killed_by_signal" in out.out


def test_a_cluster_that_is_down_is_one_line(run: Runner, cluster: StandIn) -> None:
    cluster.fault("squeue", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)")
    ran = run(*LOCAL, "jobs")
    assert ran.code != 0
    assert ran.err.count("\n") == 1
    assert "scontrol ping" in ran.err


@pytest.mark.parametrize("spec", ["", "remote", "http://cori", "ssh://", "ssh://cori/dir", "ssh://-oX@y"])
def test_what_is_no_cluster_is_refused(run: Runner, spec: str) -> None:
    ran = run("--slurm", spec, "jobs")
    assert ran.code == 2
    assert "ssh://[user@]host" in ran.err


def test_the_doctor_looks_at_it(run: Runner) -> None:
    (check,) = run(*LOCAL, "doctor", "--json").json["checks"]
    assert (check["source"], check["kind"], check["state"]) == ("local", "slurm", "ok")
