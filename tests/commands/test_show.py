"""`show`: one job, whatever it was called, and what its state means for a script."""

import json
import shutil
from pathlib import Path

import pytest

from jobtui.backends.sirepo.source import SirepoDb
from tests.commands.running import AT, CAPTURES, Runner, a_db, sources_of

FAILED = "DJouDZ9T-4F4EUZjI-heightWeightReport"
RERUN = "W75u0t3i-8tss89dE-heightWeightReport"


def test_the_history_is_whole_and_runs_are_counted(run: Runner) -> None:
    expected = json.loads((CAPTURES / "local" / "expected.json").read_text())["jobs"][RERUN]
    ran = run("show", RERUN, "--json", *sources_of("local"))
    assert len(ran.json["history"]) == expected["historyLength"]
    assert [entry["native_status"] for entry in ran.json["history"]] == expected["historyStatuses"]
    assert ran.json["job"]["runs"] == len(ran.json["runs"]) == 3
    assert [entry["status"] for entry in ran.json["runs"]] == ["completed", "failed", "completed"]
    plain = run("show", RERUN, "--plain", *sources_of("local")).out
    assert plain.count("✗ failed") == 1
    assert "RUN" in plain


def test_it_is_told_where_files_and_logs_are(run: Runner) -> None:
    ran = run("show", FAILED, "--json", *sources_of("local"))
    places = {place["what"]: place for place in ran.json["places"]}
    assert places["record"]["where"].endswith(f"supervisor-job/{FAILED}.json")
    assert places["run directory"]["where"].endswith("/user/DJouDZ9T/myapp/4F4EUZjI/heightWeightReport")
    assert places["run directory"]["where"].startswith(str(CAPTURES)), "the one that is on this machine"
    assert places["run directory"]["exists"] is True
    assert places["agent"]["where"].startswith("LocalDriver dj5k")


def test_a_run_directory_that_is_here_is_found_without_logs(run: Runner) -> None:
    jid = "DJouDZ9T-1O1o56MF-activityAnimation"
    ran = run("show", jid, "--json", "--srdb", CAPTURES / "local")
    places = {place["what"]: place for place in ran.json["places"]}
    assert places["run directory"]["exists"] is True
    assert places["program output"]["where"].endswith("activityAnimation/run.log")


def test_a_completed_job_is_exit_0_and_a_hanging_one_3(run: Runner) -> None:
    assert run("show", "DJouDZ9T-1O1o56MF-activityAnimation", *sources_of("local")).code == 0
    hanging = next((CAPTURES / "docker-agents-never-start" / "supervisor-job").glob("*.json")).stem
    pending = run("jobs", "status:pending", "--json", "--at", AT, *sources_of("docker-agents-never-start"))
    (hanging,) = [job["id"] for job in pending.json["jobs"]]
    ran = run("show", hanging, "--at", AT, *sources_of("docker-agents-never-start"))
    assert ran.code == 3
    assert "never answered" in ran.err


def test_one_job_is_shown_without_reading_the_others(run: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(self: SirepoDb, cursor: str | None) -> None:
        raise AssertionError("read everything")

    monkeypatch.setattr(SirepoDb, "poll", refuse)
    assert run("show", FAILED, "--srdb", CAPTURES / "local").code == 1


def test_an_unknown_id_is_exit_4_and_near_ones_are_offered(run: Runner) -> None:
    ran = run("show", FAILED[:-2] + "xy", *sources_of("local"))
    assert (ran.code, ran.out) == (4, "")
    assert FAILED in ran.err
    as_json = run("show", FAILED[:-2] + "xy", "--json", *sources_of("local"))
    assert as_json.json["job"] is None
    assert as_json.json["candidates"][0]["id"] == FAILED


def test_what_only_logs_know_is_shown_as_far_as_they_tell(tmp_path: Path, run: Runner) -> None:
    log = f"supervisor={CAPTURES / 'local' / 'supervisor.log'}"
    ran = run("show", FAILED, "--json", "--log", log, "--srdb", tmp_path / "gone")
    assert ran.code == run("explain", FAILED, "--log", log, "--srdb", tmp_path / "gone").code == 1
    assert (ran.json["job"]["status"], ran.json["job"]["native"]) == ("unknown", None)
    assert "no record of it was read" in ran.err


def test_a_torn_record_is_named_and_not_called_unknown(tmp_path: Path, run: Runner) -> None:
    db = a_db(tmp_path, aaaaaaaa__aaaaaaaa__torn={})
    (db / "supervisor-job" / "aaaaaaaa-aaaaaaaa-torn.json").write_text("[]")
    ran = run("show", "aaaaaaaa-aaaaaaaa-torn", "--srdb", db)
    assert ran.code == 5
    assert ran.err.count("\n") == 1
    assert "aaaaaaaa-aaaaaaaa-torn.json: not a JSON object" in ran.err


def test_a_record_with_numbers_that_json_cannot_write(tmp_path: Path, run: Runner) -> None:
    db = a_db(tmp_path, aaaaaaaa__aaaaaaaa__report={"status": "completed"})
    path = db / "supervisor-job" / "aaaaaaaa-aaaaaaaa-report.json"
    path.write_text('{"status": "completed", "x": 1e999, "y": [1e400], "z": 123456789012345678901234567890}')
    ran = run("show", "aaaaaaaa-aaaaaaaa-report", "--json", "--srdb", db)
    assert ran.code == 0
    assert set(ran.json["job"]["native"]) == {"status", "x", "y", "z"}


def test_a_job_on_a_cluster_says_which_it_is_in_slurm(tmp_path: Path, run: Runner) -> None:
    config = tmp_path / "c.toml"
    scratch = CAPTURES / "sbatch" / "scratch"
    config.write_text(f'[mounts]\n"/srv/sirepo/hpc/scratch" = "{scratch}"\n')
    arguments = ("show", "3pMDuIiL-e1oQ9PPU-activityAnimation", "--at", AT, *sources_of("sbatch"))
    found = run(*arguments, "--json", "--config", config).json
    assert (found["cluster"]["slurm_id"], found["cluster"]["state"]) == ("12", "completed")
    assert found["cluster"]["directory"].startswith(str(scratch))
    assert "Slurm 12 completed" in run(*arguments, "--plain", "--config", config).out
    beside = run(*arguments, "--json").json  # the directory lies beside the records, so no mount is needed
    assert beside["cluster"]["slurm_id"] == "12"
    records = shutil.copytree(
        CAPTURES / "sbatch" / "supervisor-job", tmp_path / "db" / "supervisor-job"
    ).parent
    assert run(*arguments[:4], "--json", "--srdb", records).json["cluster"] is None


def test_a_run_directory_that_is_elsewhere_is_said_to_be(run: Runner, tmp_path: Path) -> None:
    (tmp_path / "supervisor-job").symlink_to(CAPTURES / "local" / "supervisor-job")
    log = f"supervisor={CAPTURES / 'local' / 'supervisor.log'}"
    ran = run("show", FAILED, "--json", "--srdb", tmp_path, "--log", log)
    places = {place["what"]: place for place in ran.json["places"]}
    assert places["run directory"]["where"].startswith("/srv/sirepo/dev/db/user/")
    assert places["run directory"]["exists"] is False


@pytest.mark.parametrize("capture", ["local", "docker-agents-never-start", "sbatch"])
def test_show_and_timeline_end_as_explain_does(run: Runner, capture: str) -> None:
    """A job whose record is live and whose agent is lost has failed for all of them, or for none."""
    flags = ("--at", AT, *sources_of(capture))
    listed = run("jobs", "--json", *flags).json["jobs"]
    for job in listed[:6]:
        codes = {command: run(command, job["id"], *flags).code for command in ("explain", "show", "timeline")}
        assert len(set(codes.values())) == 1, (job["id"], codes)
