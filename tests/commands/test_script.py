"""`script` on what SArchive and Slurm wrote."""

import json
import os
from pathlib import Path

import pytest

from tests.backends.archive import captured
from tests.commands.running import CAPTURES, Runner, check_document

ARCHIVE = f"huppel={captured.FIXTURES / 'slurm-daily'}"
SIREPO = "3pMDuIiL-0R4tZXQg-activityAnimation"


@pytest.mark.parametrize("number", captured.JOBS)
def test_every_job_is_printed_exactly(run: Runner, number: str) -> None:
    ran = run("script", number, "--json", "--archive", ARCHIVE)
    assert ran.code == 0
    assert ran.json["script"].encode() == captured.script_of(number)
    found = {name.encode(): value.encode() for name, value in ran.json["environment"].items()}
    assert found == captured.environment_of(number)


def test_the_document_keeps_to_its_contract(run: Runner) -> None:
    for number in ("10_2", "77"):
        check_document(run("script", number, "--json", "--archive", ARCHIVE).json, "script")


def test_a_job_of_sirepo_leads_to_its_script(run: Runner, tmp_path: Path) -> None:
    captured.archive_in(tmp_path / "archive", "")
    noted = CAPTURES / "sbatch" / "scratch" / "jdoe" / "sirepo-dev" / "user" / "3pMDuIiL" / "myapp" / SIREPO
    number = json.loads((noted / "sbatch_status.json").read_text())["sbatch_id"]
    for kind in ("script", "environment"):
        (tmp_path / "archive" / f"job.1_{kind}").rename(tmp_path / "archive" / f"job.{number}_{kind}")
        os.utime(tmp_path / "archive" / f"job.{number}_{kind}", (1_795_207_696,) * 2)
    (tmp_path / "config.toml").write_text(
        f'[mounts]\n"/srv/sirepo/hpc/scratch" = "{CAPTURES / "sbatch" / "scratch"}"\n'
    )
    ran = run(
        "script", SIREPO, "--json", "--config", tmp_path / "config.toml", "--archive", tmp_path / "archive",
        "--srdb", CAPTURES / "sbatch", "--log", CAPTURES / "sbatch" / "supervisor.log",
        "--at", "2026-11-20T21:00:00Z",
    )  # fmt: skip
    assert ran.json["script"].encode() == captured.script_of("1")
    assert ran.json["number"] == number


def test_scripts_that_contain_something(run: Runner, tmp_path: Path) -> None:
    captured.torque_in(tmp_path)
    found = run("script", "--grep", r"sleep \d", "--json", "--archive", ARCHIVE, "--archive", tmp_path).json
    numbers = {match["number"].partition(".")[0] for match in found["matches"]}
    assert numbers == {n for n in captured.JOBS if b"sleep " in captured.script_of(n)} | {"2720870"}
    assert found["scripts"] == len(captured.JOBS) + 2
    mine = run("script", "--grep", "PBS", "--user", "vsc40000", "--csv", "--archive", tmp_path)
    assert mine.out.splitlines()[1].startswith("2720868.master")
    assert run("script", "--grep", "nowhere in it", "--archive", ARCHIVE).code == 4
    assert run("script", "--grep", "x", "--archive", tmp_path / "gone").err.count("gone: no such") == 1
