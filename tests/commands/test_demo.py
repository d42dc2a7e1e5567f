"""`demo` without a terminal, and `jobtui THING` without one."""

import json
import re
import tempfile
from pathlib import Path

import pytest

from jobtui.demo.incidents import INCIDENTS
from jobtui.demo.live import LiveDemo
from jobtui.model.clock import FixedClock
from tests.commands.running import AT, ROOT, Runner, sources_of
from tests.conftest import NOW

FAILED = "DJouDZ9T-4F4EUZjI-heightWeightReport"


def test_commands_run_on_it_with_the_same_ids_each_time_and_nothing_is_left_behind(
    run: Runner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    failed = (ROOT / "README.md").read_text().split("jobtui demo explain ")[1].split()[0]
    assert failed in run("demo", "jobs", "status:failed").out
    why = run("demo", "explain", failed, "--json")
    assert why.code == 1
    assert f"jobtui demo logs {failed}" in why.out
    assert run("demo", "--seed", "3", "explain", failed).code == 4
    assert run("demo", "wait", failed).code == 2
    assert [*tmp_path.iterdir()] == []


def test_its_failures_are_asked_for_as_those_of_a_memory(run: Runner) -> None:
    seen = run("demo", "seen", "out of memory", "--json", "--at", "2020-01-01T00:00:00Z")
    assert seen.code == 0
    assert [one["count"] > 1 for one in seen.json["signatures"]] == [True]
    assert run("demo", "changed", "host:v4", "host:none", "--json").json["before"] >= 0
    assert "nothing is remembered yet" in run("seen").err


def test_incidents_are_listed(run: Runner) -> None:
    listed = run("demo", "--incident", "list")
    assert listed.code == 0
    assert all(name in listed.out for name in INCIDENTS)


def test_without_a_terminal_a_thing_is_shown_and_nothing_is_the_job_table(run: Runner) -> None:
    shown = run(FAILED, "--at", AT, *sources_of("local"))
    assert shown == run("show", FAILED, "--at", AT, *sources_of("local"))
    assert shown.code == 1
    assert run(FAILED, "--json", *sources_of("local")).json["schema"] == "jobtui/show/1"
    assert run("--at", AT, *sources_of("local")) == run("jobs", "--at", AT, *sources_of("local"))


def test_every_run_on_the_cluster_has_an_archived_script(tmp_path: Path, run: Runner) -> None:
    demo = LiveDemo(tmp_path, seed=1, clock=FixedClock(NOW))
    demo.prepare()
    noted = sorted(tmp_path.glob("scratch/*/sirepo-prod/user/*/*/*/sbatch_status.json"))
    assert len(noted) > 2
    for path in noted:
        number = json.loads(path.read_text())["sbatch_id"]
        ran = run("script", number, "--json", "--archive", demo.sources.archive)
        assert ran.json["script"].encode().count(b"#SBATCH") == 5
        assert ran.json["environment"]["SLURM_SUBMIT_DIR"] == str(path.parent)
        assert ran.json["environment"]["SIREPO_SIM_DB_FILE_SERVER_TOKEN"] == "***"
        assert ran.json["outputs"][0]["path"] == f"{path.parent}/run.log"
        assert (path.parent / "run.log").exists()


def test_a_job_of_the_demo_leads_to_its_script(tmp_path: Path, run: Runner) -> None:
    demo = LiveDemo(tmp_path, seed=1, clock=FixedClock(NOW))
    demo.prepare()
    noted = next(iter(sorted(tmp_path.glob("scratch/*/sirepo-prod/user/*/*/*/sbatch_status.json"))))
    logs = [word for role, path in demo.sources.logs for word in ("--log", f"{role}={path}")]
    ran = run(
        "script", noted.parent.name, "--json", "--at", "2026-11-20T21:00:00Z",
        "--srdb", demo.sources.srdb, *logs, "--archive", demo.sources.archive,
    )  # fmt: skip
    assert ran.json["number"] == json.loads(noted.read_text())["sbatch_id"]


def test_two_runs_on_the_cluster_are_compared_with_script_and_environment(
    tmp_path: Path, run: Runner
) -> None:
    demo = LiveDemo(tmp_path, seed=1, clock=FixedClock(NOW))
    demo.prepare()
    jobs = sorted(
        {path.parent for path in tmp_path.glob("scratch/*/sirepo-prod/user/*/*/*/sbatch_status.json")}
    )
    logs = [word for role, path in demo.sources.logs for word in ("--log", f"{role}={path}")]
    one, other = jobs[0].name, jobs[-1].name
    ran = run(
        "compare", one, other, "--json", "--at", "2026-11-20T21:00:00Z",
        "--srdb", demo.sources.srdb, *logs, "--archive", demo.sources.archive,
    )  # fmt: skip
    files = {file["name"]: file for file in ran.json["files"]}
    assert set(files) == {"in.json", "parameters.py", "script", "environment"}
    (changed,) = [line for line in files["environment"]["diff"] if line.startswith("+SLURM_SUBMIT_DIR")]
    assert str(jobs[0]) in changed
    assert files["script"]["diff"] or files["script"]["note"]
    kept = b"".join(path.read_bytes() for path in Path(demo.sources.archive or "").rglob("*_environment"))
    tokens = {token.decode() for token in re.findall(rb"TOKEN=(\w{16,})", kept)}
    assert tokens
    assert not any(token in ran.out for token in tokens)
